"""Variable-based calibration: a small tree of variables, and a map of the score, or of all scores, in each leaf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice, flag, names, number
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.repair.calibrators.augmented import Form, coefficients, score_columns, score_terms
from calibrant.repair.calibrators.dirichlet import (
    AS_THEY_ARE,
    ClassCalibrator,
    Classes,
    Dirichlet,
    fit_classes,
    log_columns,
    log_terms,
    solved,
    weighed,
)
from calibrant.repair.calibrators.parted import (
    STEEPEST,
    Fields,
    Gain,
    Growth,
    Parted,
    Table,
    Target,
    Tree,
    best_depth,
    grown,
    numbers_of,
)
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.disclosure import MASK
from calibrant.repair.fitted import Batch, Order, fitted_on, shares, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Formula, Term
from calibrant.repair.regression import (
    FOLDS,
    Edges,
    Floats,
    Trial,
    Whole,
    edge_of,
    edges_of,
    encoded,
    expit,
    fit_rows,
    independent,
    losses,
    softmax,
    targets,
)
from calibrant.stats.logistic import regress
from calibrant.views.points import even_weights

HEIGHT = 0.1  # share of the penalty that the height of a node's curve takes

# ---- Two classes: a beta curve in each node ----


@dataclass(frozen=True, kw_only=True)
class Branches(Parted):
    """The map ``expit(a_l ln p - b_l ln(1 - p) + c_l)`` in leaf l of a tree."""

    slopes: tuple[tuple[float, float], ...]  # a and b of each node
    intercepts: tuple[float, ...]  # c of each node
    edges: Edges  # nearer to 0, and to 1, than these logarithms are continued along their tangents
    form: Form = "beta"

    @property
    def order(self) -> Order:
        if len(self.feature) > 1 or min(self.slopes[0]) < 0:
            return "may change"
        return "kept" if max(self.slopes[0]) > 0 else "kept up to ties"

    def check(self) -> None:
        super().check()
        sound({len(self.slopes), len(self.intercepts)} == {len(self.feature)}, "every node needs a curve")
        sound(min(self.edges) > 0 and shares(self.edges), "edges must lie between 0 and 1")

    def values(self, rows: Batch) -> Floats:
        t, at = score_columns(rows.p, self.form, self.edges), self.at(rows)
        return expit((t * np.array(self.slopes)[at]).sum(axis=1) + np.array(self.intercepts)[at])

    def formula(self, row: Formula) -> Term:
        t = row.step(dict(zip("ab", score_terms(row.score, self.form, self.edges), strict=True)))
        leaves = {
            node: expression.total([t["a"] * self.slopes[node][0], t["b"] * self.slopes[node][1]])
            + self.intercepts[node]
            for node in self.leaf_nodes
        }
        return expression.probability(self.branched(row, leaves))


@dataclass(frozen=True, kw_only=True)
class CurveTable(Table):
    """Rows of two classes."""

    by_row = (*Table.by_row, "y", "score", "target")

    y: Floats
    score: Floats  # shape (n, 2): ``ln p`` and ``-ln(1 - p)``
    target: Floats  # Platt's targets, in place of the outcomes, for the curve of everyone
    edges: Edges
    form: Form

    @classmethod
    def of(cls, rows: Predictions, settings: VariableTree, shared: Fields) -> CurveTable:
        edges = edges_of(rows.p)
        form: Form = "published beta" if settings.paper else "beta"
        score, y, (_, cluster) = score_columns(rows.p, form, edges), rows.y.astype(np.float64), independent(rows)
        return cls(y=y, cluster=cluster, score=score, target=targets(rows), edges=edges, form=form, **shared)

    def root(self, g: Growth) -> Floats:
        """Beta calibration."""
        if g.paper:
            return np.append(*regress(self.score, self.y, self.weight, ridge=1.0))
        slopes, _, height = coefficients(self.target, self.weight, self.score)
        return np.append(slopes, height)

    def aims(self, root: Floats, g: Growth) -> tuple[Floats, Floats]:
        """What that curve leaves, or (as published) the outcome."""
        aim = self.y if g.target == "outcome" else self.y - expit(self.score @ root[:2] + root[2])
        return aim, aim

    def spread(self, _: Floats) -> Floats:
        scale: Floats = np.maximum(self.score.std(axis=0), 1e-12)
        return scale

    def moved(self, own: Whole, parent: Floats, spread: Floats, g: Growth, leaf: bool) -> Floats:  # noqa: ARG002
        y, score, weight = self.y[own], self.score[own], self.weight[own]
        slopes, height = parent[:2], parent[2]
        if g.paper:  # a curve of its own, with scikit-learn's ridge of 1; a leaf of one class takes its parent's
            return parent if y.min() == y.max() else np.append(*regress(score, y, weight, ridge=1.0))
        middle = np.average(score, axis=0, weights=weight)
        columns = np.column_stack([np.ones(len(y)), (score - middle) / spread])
        none = np.zeros(len(y), dtype=np.int64)
        trial = Trial(y, weight, score @ slopes + height, columns, 1, 0, none, none)
        penalty = g.shrink * np.array([HEIGHT, 1.0, 1.0])
        while True:
            moved = trial.fitted(penalty)
            after = slopes + moved[1:] / spread
            falling = (after < 0) & np.isfinite(penalty[1:])
            if not falling.any():
                return np.append(after, height + (moved[0] - (moved[1:] / spread) @ middle))
            # a and b stay at least 0: the one that falls most keeps its parent's value
            penalty[1 + int(np.argmin(np.where(falling, after * spread, 0.0)))] = np.inf

    def losses(self, here: NDArray[np.bool_], one: Floats) -> Floats:
        return losses(self.y[here], (self.score[here] * one[:2]).sum(axis=1) + one[2])

    def calibrator(self, tree: Tree, leaves: Sequence[NDArray[np.bool_]], kept: Fields, gain: Gain) -> Branches:
        rows, events = [int(h.sum()) for h in leaves], [int(self.y[h].sum()) for h in leaves]
        one_class = sum(e in (0, n) for n, e in zip(rows, events, strict=True))
        reported = {"one_class_leaves": one_class, **gain, "leaf_rows": tuple(rows), "leaf_events": tuple(events)}
        return Branches(
            **kept | {"settings": kept["settings"] | reported},
            slopes=tuple((float(a), float(b)) for a, b, _ in tree.maps),
            intercepts=tuple(float(c) for _, _, c in tree.maps),
            edges=self.edges,
            form=self.form,
        )


# ---- Several classes: a Dirichlet map in each leaf ----


@dataclass(frozen=True, kw_only=True)
class ClassBranches(Parted, ClassCalibrator):
    """The map ``softmax(W_l ln p + b_l)`` of a row's probabilities of K classes in leaf l of a tree."""

    matrices: tuple[tuple[tuple[float, ...], ...], ...]  # of each leaf in order: K rows of K weights and an intercept
    edge: float  # nearer to 0 than this logarithms are continued along their tangent

    def check(self) -> None:
        super().check()
        sound(len(self.matrices) == len(self.leaf_nodes), "every leaf needs a matrix")
        k = len(self.matrices[0])
        whole = all([len(row) for row in m] == [k + 1] * k for m in self.matrices)
        sound(k > 2 and whole, "every matrix must be K rows of K + 1, of three classes or more")
        sound(AS_THEY_ARE <= self.edge < 1.0, "edge must lie between 0 and 1")

    @property
    def classes(self) -> int:
        return len(self.matrices[0])

    def formulas(self, row: Formula) -> tuple[Term, ...]:
        logs, leaves = log_terms(row, self.classes, self.edge), self.leaf_nodes
        z = [
            self.branched(row, {node: weighed(logs, m[k]) for node, m in zip(leaves, self.matrices, strict=True)})
            for k in range(self.classes)
        ]
        return expression.softmax(row, z)

    def values(self, rows: Batch) -> Floats:
        x = self.logs(rows.p, self.classes, self.edge)
        at, out = self.at(rows), np.empty_like(rows.p)
        for node, matrix in zip(self.leaf_nodes, self.matrices, strict=True):
            out[at == node] = softmax(x[at == node] @ np.array(matrix).T)
        return out


@dataclass(frozen=True, kw_only=True)
class ClassTable(Table):
    """Rows of K classes."""

    by_row = (*Table.by_row, "y", "x")

    y: Classes
    x: Floats  # shape (n, K + 1): logarithms of the probabilities, and ones
    price: Floats  # shape (K, K + 1): what the square of each coefficient costs
    strength: float
    edge: float

    @classmethod
    def of(cls, rows: MulticlassPredictions, settings: VariableTree, shared: Fields) -> ClassTable:
        edge = AS_THEY_ARE if settings.paper else edge_of(rows.p)
        x = log_columns(rows.p, edge)
        everyone = Dirichlet(penalty="published", strength=LAMBDA) if settings.paper else Dirichlet(seed=settings.seed)
        strength = everyone.chosen(x, rows.y, shared["weight"])
        own = {"y": rows.y, "cluster": np.arange(len(rows.y)), **shared}
        return cls(x=x, price=everyone.prices(x.shape[1] - 1, strength), strength=strength, edge=edge, **own)

    def root(self, g: Growth) -> Floats:
        """Dirichlet calibration; as published, the scores as they are."""
        k = self.x.shape[1] - 1
        return np.eye(k, k + 1) if g.paper else solved(self.x, self.y, self.weight, self.price)

    def aims(self, root: Floats, g: Growth) -> tuple[Floats, Floats]:
        """What that map leaves of each class and of the most probable, or the class itself.

        Levels stand in the order of how far the most probable class is right more often than it says.
        """
        shown, happened = softmax(self.x @ root.T), np.eye(len(root))[self.y]
        right = (self.y == shown.argmax(axis=1)) - shown.max(axis=1)
        return happened if g.target == "outcome" else np.column_stack([happened - shown, right]), right

    def spread(self, root: Floats) -> Floats:
        z = self.x @ root.T
        centred = z - z.mean(axis=1, keepdims=True)  # of which every row adds up to 0
        scale: Floats = np.sqrt(np.array([self.weight @ (centred**2).mean(axis=1) / self.weight.sum()]))
        return scale

    def moved(self, own: Whole, parent: Floats, spread: Floats, g: Growth, leaf: bool) -> Floats:
        """The map of a node: its parent's log-odds, stretched and shifted; as published, of each leaf a map of its own.

        ``a >= 0`` and c of least log loss of ``softmax(a z + c)`` plus ``shrink (scale^2 (a - 1)^2 + c . c) / 2`` rows'
        worth, which rows weigh, z what the parent's map makes of the logarithms.
        """
        from scipy.optimize import minimize

        x, y, weight, k = self.x[own], self.y[own], self.weight[own], len(parent)
        if g.paper:
            return solved(x, y, weight, self.price) if leaf else parent
        n, z, happened = len(y), x @ parent.T, np.eye(k)[y]
        share = weight / weight.sum()
        price = g.shrink * np.append(spread**2, np.ones(k)) / (2.0 * weight.sum())
        start = np.append(1.0, np.zeros(k))

        def loss(w: Floats) -> tuple[float, Floats]:
            moved = w[0] * z + w[1:]
            moved -= moved.max(axis=1, keepdims=True)
            e = np.exp(moved)
            total = e.sum(axis=1)
            excess = (e / total[:, None] - happened) * share[:, None]
            value = share @ (np.log(total) - moved[np.arange(n), y]) + (price * (w - start) ** 2).sum()
            return float(value), np.append((excess * z).sum(), excess.sum(axis=0)) + 2.0 * price * (w - start)

        bounds, options = [(0.0, None)] + [(None, None)] * k, {"ftol": 1e-12, "gtol": 1e-8}
        best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        out: Floats = best[0] * parent
        out[:, -1] += best[1:]
        return out

    def losses(self, here: NDArray[np.bool_], one: Floats) -> Floats:
        y, z = self.y[here], self.x[here] @ one.T
        z -= z.max(axis=1, keepdims=True)
        out: Floats = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
        return out

    def calibrator(self, tree: Tree, leaves: Sequence[NDArray[np.bool_]], kept: Fields, gain: Gain) -> ClassBranches:
        reported = {"strength": self.strength, **gain, "leaf_rows": tuple(int(h.sum()) for h in leaves)}
        matrices = tuple(tuple(map(tuple, tree.maps[i].tolist())) for i in tree.splits.leaf_nodes)
        return ClassBranches(**kept | {"settings": kept["settings"] | reported}, matrices=matrices, edge=self.edge)


# ---- Variable-based calibration: a small tree of variables, and a map in each of its leaves ----

STREAM = 0x7EAF  # of random numbers, apart from those of other methods at the same seed
FEWEST = 20  # events, and non-events, from which a depth can be chosen: a few in each fold
DEEPEST = 4  # that cross-fitting tries: 16 leaves, of a twentieth of the rows or more
LAMBDA = 1e-3  # the paper's penalty of a matrix


@recipe(
    calibrators=[Branches, ClassBranches],
    words="a tree of attributes with a curve in each leaf",
    simplicity=120,
    command="variable-tree",
    covariates=True,
    tried="by the command",
)
class VariableTree(Tunable):
    r"""Variable-based calibration: a curve for each of a few groups of people, found by a small tree of variables.

    Estimand: ``logit P(Y = 1 | p, leaf) = a ln p - b ln(1 - p) + c`` in each leaf of the tree; with K classes
    ``P(Y = k | p, leaf) = softmax(W ln p + b)_k``.

    Parameters
    ----------
    variables : str or sequence of str
        Covariates of any kind.
    depth : int from 0 to 8, optional
        Of the tree. By default that from 0 to 4 which cross-fitted log loss prefers, 0 being one curve for everyone (2
        with `paper`).
    leaf : float in (0, 0.5)
        Least share of the rows (by weight) in a leaf; never under twenty rows.
    target : {"residual", "outcome"}
        What the tree explains: what beta calibration of everyone leaves, or the outcome itself. With K classes: what
        Dirichlet calibration of everyone leaves of each class, and of the most probable being right; or the class.
    shrink : float, 0 or more
        How strongly a node's curve is drawn to its parent's: penalty on the difference of slopes, in rows' worth, and a
        tenth of it on the difference of heights; with K classes on the stretch and the shifts of the log-odds.
    paper : bool
        The published procedure: the tree explains the outcome, and each leaf has a curve of its own, fitted with
        scikit-learn's default ridge to outcomes 0 and 1; a leaf of one class takes its parent's. With K classes each
        leaf has ``Dirichlet(penalty="published", strength=0.001)``. `target` and `shrink` are not read.
    seed : int
        Of the folds.

    Returns
    -------
    Parted
        From `fit`: a map with `leaves`, the groups in words; of `multiclass_predictions` where it was fitted on such.

    Raises
    ------
    BadInput
        A setting out of range; no such covariate.
    NotComputable
        One class only; several classes, and fewer than six rows.

    Notes
    -----
    **Assumes.** Within a leaf the error depends on the score alone. Independent rows or clusters, for the choice of the
    depth. **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on other rows. For people of one leaf
    the order is kept. **Method.** Section 6 and appendix B of the paper. Its text has depth 2 and leaves of a tenth of
    the rows; its tables depth 3 on Adult. Departures: the tree explains residuals, so that it parts people for whom the
    score is wrong, not those whose outcomes differ; curves are drawn to their parents', by penalised maximum
    likelihood, so that small leaves do not follow noise and one-class leaves need no rule; a and b stay at least 0; the
    depth is chosen, and must gain more than a standard error; several variables and categories, whose levels are put in
    the order of their mean residual, drawn in by 20 rows. Missing numbers go with the median, or, if there were such at
    the fit, may be split off; unseen levels stand in the middle of the order. With K classes the map of everyone is
    `Dirichlet()`, and each node stretches its parent's log-odds by one number and shifts those of each class: a matrix
    of its own for each leaf, the paper's way, costs log loss (0.178, everyone's map 0.106, this one 0.101 on the
    paper's images). Levels stand in the order of how far the most probable class is right more often than it says.
    **Cost.** Six trees, and Newton's method in each node: 5 s of CPU time for 100,000 rows and ten variables. With ten
    classes 4 s for 2,000 rows. **Reads.** Rows; weights are used, and clusters of two classes.

    References
    ----------
    Kelly and Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154.
    Leathart, Frank, Holmes and Pfahringer, "Probability calibration trees", ACML 2017.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.2, 0.8, 20_000), rng.integers(18, 90, 20_000)
    >>> y = rng.uniform(size=20_000) < p + np.where(age < 40, 0.1, -0.05)  # underpredicts for the young
    >>> data = cal.predictions(y, p, {"age": age})
    >>> fitted = cal.repair.VariableTree(variables="age", depth=1).fit(data)
    >>> fitted.leaves
    ('age <= 39.5', 'age > 39.5')
    >>> round(cal.measure.vece(data, "age").value, 2), round(cal.measure.vece(fitted(data), "age").value, 2)
    (0.07, 0.0)
    """

    variables: str | Sequence[str]
    depth: int | None = None
    leaf: float = 0.05
    target: Target = "residual"
    shrink: float = 10.0
    paper: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        names("variables", self.variables, what="a covariate", least=1)
        if self.depth is not None:
            check_int("depth", self.depth, 0, STEEPEST, hint="or None to choose it")
        number("leaf", self.leaf, above=0, below=0.5, what="a share of the rows", hint="such as 0.05")
        choice("target", self.target, get_args(Target))
        number("shrink", self.shrink, least=0, hint="such as 10.0")
        flag("paper", self.paper)
        checked_seed(self.seed)

    def fit(self, data: Predictions | MulticlassPredictions) -> Parted:
        """Grow the tree on rows and fit the maps of its leaves."""
        variables = names("variables", self.variables)
        several = isinstance(data, MulticlassPredictions)
        rows = fit_classes(data, "VariableTree") if several else fit_rows(data, "VariableTree")
        make: Callable[..., Table] = ClassTable.of if several else CurveTable.of
        how, x, constants = encoded(rows, variables)
        shared = {"numbers": numbers_of(x, how, self.paper), "codes": x.codes, "sizes": tuple(map(len, x.level_labels))}
        table = make(rows, self, shared | {"weight": even_weights(rows)})
        depth, gain = self._depth(table, rows.y)
        tree = grown(table, self._growth(depth))
        at = tree.leaf_of(table)
        kept = {
            "recipe": "VariableTree",
            "codings": how,
            "mask": 1 if self.paper else MASK,
            "fitted_on": fitted_on(rows),
            **vars(tree.splits),
            "places": tree.places,
            "settings": {
                "variables": variables,
                "depth": depth,
                "depth_requested": self.depth,
                "leaf": float(self.leaf),
                "target": "outcome" if self.paper else self.target,
                "shrink": 0.0 if self.paper else float(self.shrink),
                "paper": self.paper,
                "constant": constants,
                "seed": self.seed,
            },
        }
        return table.calibrator(tree, [at == node for node in tree.splits.leaf_nodes], kept, gain)

    def _growth(self, depth: int) -> Growth:
        target: Target = "outcome" if self.paper else self.target
        return Growth(depth=depth, leaf=float(self.leaf), target=target, shrink=float(self.shrink), paper=self.paper)

    def _depth(self, table: Table, y: NDArray[np.int8 | np.int32]) -> tuple[int, Gain]:
        """The depth asked for or chosen, and what was gained by it where it was chosen."""
        if self.depth is not None or self.paper:
            return (2 if self.depth is None else int(self.depth)), {"gain": None, "gain_error": None}  # 2: the paper's
        parts = int(table.cluster.max()) + 1
        if len(y) - np.bincount(y).max() < FEWEST or parts < FOLDS:
            return 0, {"gain": None, "gain_error": None}
        rng = np.random.default_rng([self.seed, STREAM])
        fold = rng.permutation(np.arange(parts) % FOLDS)[table.cluster]
        depth, gain, error = best_depth(table, self._growth(DEEPEST), fold)
        return depth, {"gain": gain, "gain_error": error}
