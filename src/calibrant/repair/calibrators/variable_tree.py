"""Variable-based calibration: a small tree of variables, and a map of the score in each of its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice, flag, names, number
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.specs.coding import Coding, Encoded
from calibrant.repair.calibrators.augmented import Form, coefficients, score_columns, score_terms
from calibrant.repair.calibrators.class_tree import (
    ClassBranches,
    ClassTree,
    best_class_depth,
    class_table,
    grown_classes,
)
from calibrant.repair.calibrators.dirichlet import Dirichlet, fit_classes
from calibrant.repair.calibrators.parted import (
    STEEPEST,
    Codes,
    Growth,
    Parted,
    Places,
    Splits,
    Target,
    numbers_of,
    places_of,
    preferred,
    splits_of,
    tree_inputs,
)
from calibrant.repair.catalogue import recipe
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
    edges_of,
    encoded,
    expit,
    fit_rows,
    folds_of,
    losses,
    targets,
)
from calibrant.repair.tunable import Tunable
from calibrant.stats.logistic import regress
from calibrant.views.points import even_weights

Curve = tuple[Floats, float]  # slopes and intercept

# ---- The map with a beta curve in each leaf of a small tree of variables ----


@dataclass(frozen=True, kw_only=True)
class Branches(Parted):
    """The map ``expit(a_l ln p - b_l ln(1 - p) + c_l)`` in leaf l of a tree.

    Parameters
    ----------
    slopes : tuple of (float, float)
        a and b of each node.
    intercepts : tuple of float
        c of each node.
    edges : tuple of float
        Nearer to 0, and to 1, than these logarithms of the score are continued along their tangents.
    form : {"beta", "published beta"}
    """

    slopes: tuple[tuple[float, float], ...]
    intercepts: tuple[float, ...]
    edges: Edges
    form: Form = "beta"

    @property
    def order(self) -> Order:
        """Kept if the tree has one leaf and its curve rises."""
        if len(self.feature) > 1 or min(self.slopes[0]) < 0:
            return "may change"
        return "kept" if max(self.slopes[0]) > 0 else "kept up to ties"

    def check(self) -> None:
        """Raise `ValueError` if the nodes do not make a tree of these covariates."""
        super().check()
        sound({len(self.slopes), len(self.intercepts)} == {len(self.feature)}, "every node needs a curve")
        sound(min(self.edges) > 0 and shares(self.edges), "edges must lie between 0 and 1")

    def values(self, rows: Batch) -> Floats:
        """The repaired scores."""
        t, at = score_columns(rows.p, self.form, self.edges), self.at(rows)
        return expit((t * np.array(self.slopes)[at]).sum(axis=1) + np.array(self.intercepts)[at])

    def formula(self, row: Formula) -> Term:
        """The repaired score as a formula."""
        t = row.step(dict(zip("ab", score_terms(row.score, self.form, self.edges), strict=True)))
        leaves = {
            node: expression.total([t["a"] * self.slopes[node][0], t["b"] * self.slopes[node][1]])
            + self.intercepts[node]
            for node in self.leaf_nodes
        }
        return expression.probability(self.branched(row, leaves))


# ---- A small tree of variables, the beta curves of its nodes, and how deep it should be ----

HEIGHT = 0.1  # share of the penalty that the height of a node's curve takes
DEEPEST = 4  # that cross-fitting tries: 16 leaves, of a twentieth of the rows or more


@dataclass(frozen=True)
class Table:
    """Rows to fit a tree on.

    Parameters
    ----------
    y, weight, target : float64 arrays of shape (n,)
        Outcomes; weights of mean one; Platt's targets, in place of the outcomes, for the curve of everyone.
    score : float64 array of shape (n, 2)
        ``ln p`` and ``-ln(1 - p)``.
    numbers : float64 array of shape (n, d)
        Missing ones by the median.
    codes : int32 array of shape (n, c)
    sizes : tuple of int
        How many levels each level variable has.
    """

    y: Floats
    weight: Floats
    target: Floats
    score: Floats
    numbers: Floats
    codes: Codes
    sizes: tuple[int, ...]

    def __getitem__(self, rows: NDArray[np.bool_]) -> Table:
        kept = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "sizes"}
        return replace(self, **kept)


def table_of(rows: Predictions, how: Sequence[Coding], x: Encoded, edges: Edges, form: Form) -> Table:
    """The rows of a fit."""
    return Table(
        y=rows.y.astype(np.float64),
        weight=even_weights(rows),
        target=targets(rows),
        score=score_columns(rows.p, form, edges),
        numbers=numbers_of(x, how, form == "published beta"),
        codes=x.codes,
        sizes=tuple(map(len, x.level_labels)),
    )


@dataclass(frozen=True)
class Nodes:
    """Of each node: its depth, its curve, its rows and events, and whether its rows have one outcome."""

    depth: tuple[int, ...]
    slopes: Floats
    intercepts: Floats
    rows: tuple[int, ...]
    events: tuple[int, ...]
    one_class: tuple[bool, ...]


@dataclass(frozen=True)
class Tree:
    """A tree with a curve in every node; see `Branches`."""

    splits: Splits
    places: Places
    nodes: Nodes

    def log_odds(self, t: Table, deepest: int) -> Floats:
        """The log-odds of rows by the curves at most so deep."""
        cut = self.splits.cut(self.nodes.depth, deepest)
        at = cut.leaf_of(tree_inputs(t.numbers, t.codes, self.places))
        eta: Floats = (t.score * self.nodes.slopes[at]).sum(axis=1) + self.nodes.intercepts[at]
        return eta


def grown(t: Table, g: Growth) -> Tree:
    """Grow a tree and fit the curve of every node, each drawn to that of its parent."""
    # (1) The curve of everyone: beta calibration.
    slopes, _, height = coefficients(t.target, t.weight, t.score)
    root = regress(t.score, t.y, t.weight, ridge=1.0) if g.paper else (slopes, height)
    # (2) What the tree explains: what that curve leaves, or (as published) the outcome.
    aim = t.y if g.target == "outcome" else t.y - expit(t.score @ root[0] + root[1])
    # (3) Levels in the order of their mean of it, so that a split cuts them as it cuts a number.
    places = tuple(places_of(aim, t.weight, t.codes[:, j], size) for j, size in enumerate(t.sizes))
    # (4) The tree, and (5) from the root down the curve of each node.
    inputs = tree_inputs(t.numbers, t.codes, places)
    splits = splits_of(aim, t.weight, inputs, g)
    return Tree(splits, places, _curves(t, g, root, splits, inputs))


def _curves(t: Table, g: Growth, root: Curve, splits: Splits, inputs: Floats) -> Nodes:
    size = len(splits.feature)
    slopes, heights = np.tile(root[0], (size, 1)), np.full(size, root[1])
    depth, rows, events, one_class = [0] * size, [len(t.y)] * size, [int(t.y.sum())] * size, [False] * size
    spread = np.maximum(t.score.std(axis=0), 1e-12)
    for node, child, own in splits.down(inputs):
        depth[child], rows[child], events[child] = depth[node] + 1, len(own), int(t.y[own].sum())
        one_class[child] = events[child] in (0, rows[child])
        slopes[child], heights[child] = _curve(t, own, g, (slopes[node], float(heights[node])), spread)
    return Nodes(tuple(depth), slopes, heights, tuple(rows), tuple(events), tuple(one_class))


def _curve(t: Table, own: Whole, g: Growth, parent: Curve, spread: Floats) -> Curve:
    """The curve of a node: its parent's, moved as far as its rows say against a penalty."""
    y, score, weight = t.y[own], t.score[own], t.weight[own]
    slopes, height = parent
    if g.paper:  # a curve of its own, with scikit-learn's ridge of 1; a leaf of one class takes its parent's
        return parent if y.min() == y.max() else regress(score, y, weight, ridge=1.0)
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
            return after, height + float(moved[0] - (moved[1:] / spread) @ middle)
        # a and b stay at least 0: the one that falls most keeps its parent's value
        penalty[1 + int(np.argmin(np.where(falling, after * spread, 0.0)))] = np.inf


def best_depth(t: Table, g: Growth, cluster: Whole, fold: Whole) -> tuple[int, float, float]:
    """The depth that gains most log loss on left-out folds over no tree, and the gain with its standard error.

    The gain must exceed its standard error, or the depth is 0.
    """
    eta = np.empty((DEEPEST + 1, len(t.y)))
    for k in range(FOLDS):
        out = fold == k
        tree, rest = grown(t[~out], g), t[out]
        for d in range(DEEPEST + 1):  # one tree of full depth holds all the others
            eta[d, out] = tree.log_odds(rest, d)
    return preferred(t.weight * losses(t.y, eta), cluster)


# ---- Variable-based calibration: a small tree of variables, and a beta curve in each of its leaves ----

STREAM = 0x7EAF  # of random numbers, apart from those of other methods at the same seed
FEWEST = 20  # events, and non-events, from which a depth can be chosen: a few in each fold
LAMBDA = 1e-3  # the paper's penalty of a matrix


@recipe(
    calibrators=[Branches, ClassBranches],
    words="a tree of attributes with a curve in each leaf",
    simplicity=120,
    command="variable-tree",
    covariates=True,
)
@dataclass(frozen=True, kw_only=True)
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
    depth. **Guarantee.** None by itself: judge with `calibrant.repair.compare` on other rows. For people of one leaf
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
    >>> y = rng.uniform(size=20_000) < p + np.where(age < 40, 0.1, -0.05)  # too low for the young, too high for others
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
        return self._of_classes(data) if isinstance(data, MulticlassPredictions) else self._of_two(data)

    def _of_two(self, data: Predictions) -> Branches:
        rows, variables = fit_rows(data, "VariableTree"), names("variables", self.variables)
        form: Form = "published beta" if self.paper else "beta"
        how, x, constants = encoded(rows, variables)
        edges = edges_of(rows.p)
        table = table_of(rows, how, x, edges, form)
        depth, gain = self._depth(rows, table)
        tree = grown(table, self._growth(depth))
        nodes, leaves = tree.nodes, tree.splits.leaf_nodes
        return Branches(
            **self._kept(rows, how, tree),
            settings={
                **self._settings(variables, depth, constants),
                "one_class_leaves": sum(nodes.one_class[i] for i in leaves),
                **gain,
                "leaf_rows": tuple(nodes.rows[i] for i in leaves),
                "leaf_events": tuple(nodes.events[i] for i in leaves),
            },
            slopes=tuple((float(a), float(b)) for a, b in nodes.slopes),
            intercepts=tuple(nodes.intercepts.tolist()),
            edges=edges,
            form=form,
        )

    def _of_classes(self, data: MulticlassPredictions) -> ClassBranches:
        """Grow the tree on rows of several classes, and fit the matrices of its leaves."""
        rows, variables = fit_classes(data, "VariableTree"), names("variables", self.variables)
        how, x, constants = encoded(rows, variables)
        table = class_table(rows, how, x, self.paper)
        everyone = Dirichlet(penalty="published", strength=LAMBDA) if self.paper else Dirichlet(seed=self.seed)
        strength = everyone.chosen(table.x, rows.y, table.weight)
        depth, gain = 2 if self.depth is None else int(self.depth), dict[str, Any](gain=None, gain_error=None)
        if self.depth is None and not self.paper:
            depth = 0
            if len(rows.y) - np.bincount(rows.y).max() >= FEWEST:
                fold = np.random.default_rng([self.seed, STREAM]).permutation(len(rows.y)) % FOLDS
                depth, gained, error = best_class_depth(table, self._growth(DEEPEST), everyone, strength, fold)
                gain = {"gain": gained, "gain_error": error}
        tree = grown_classes(table, self._growth(depth), everyone, strength)
        at, leaves = tree.splits.leaf_of(tree_inputs(table.numbers, table.codes, tree.places)), tree.splits.leaf_nodes
        return ClassBranches(
            **self._kept(rows, how, tree),
            settings={
                **self._settings(variables, depth, constants),
                "strength": strength,
                **gain,
                "leaf_rows": tuple(int((at == i).sum()) for i in leaves),
            },
            matrices=tuple(tuple(map(tuple, tree.matrices[i].tolist())) for i in leaves),
            edge=table.edge,
        )

    def _kept(
        self, rows: Predictions | MulticlassPredictions, how: tuple[Coding, ...], tree: Tree | ClassTree
    ) -> dict[str, Any]:
        """Return what the map keeps of rows and tree, however many classes there are."""
        return {
            "recipe": "VariableTree",
            "codings": how,
            "mask": 1 if self.paper else MASK,
            "fitted_on": fitted_on(rows),
            **vars(tree.splits),
            "places": tree.places,
        }

    def _settings(self, variables: tuple[str, ...], depth: int, constants: tuple[str, ...]) -> dict[str, Any]:
        """The settings of a fit that do not depend on how many classes there are."""
        return {
            "variables": variables,
            "depth": depth,
            "depth_requested": self.depth,
            "leaf": float(self.leaf),
            "target": "outcome" if self.paper else self.target,
            "shrink": 0.0 if self.paper else float(self.shrink),
            "paper": self.paper,
            "constant": constants,
            "seed": self.seed,
        }

    def _growth(self, depth: int) -> Growth:
        target: Target = "outcome" if self.paper else self.target
        return Growth(depth=depth, leaf=float(self.leaf), target=target, shrink=float(self.shrink), paper=self.paper)

    def _depth(self, rows: Predictions, table: Table) -> tuple[int, dict[str, Any]]:
        """The depth asked for or chosen, and what was gained by it where it was chosen."""
        none = {"gain": None, "gain_error": None}
        if self.depth is not None or self.paper:
            return (2 if self.depth is None else int(self.depth)), none  # 2: the paper's text
        cluster, fold = folds_of(rows, np.random.default_rng([self.seed, STREAM]))
        if min(rows.events, rows.n - rows.events) < FEWEST or cluster.max() + 1 < FOLDS:
            return 0, none
        depth, gain, error = best_depth(table, self._growth(DEEPEST), cluster, fold)
        return depth, {"gain": gain, "gain_error": error}
