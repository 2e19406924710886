"""Variable-based calibration: a small tree of variables, and a beta curve in each of its leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed, choice, flag, names, number, whole
from calibrant.data.predictions import Predictions
from calibrant.data.specs.coding import Coding, Encoded
from calibrant.repair.catalogue import recipe
from calibrant.repair.fitted import Batch, FittedMap, Order, fitted_on, inputs_of, shares, sound
from calibrant.repair.maps.augmented import Form, coefficients, score_columns
from calibrant.repair.regression import (
    FOLDS,
    Edges,
    Floats,
    Trial,
    Whole,
    edges_of,
    encoded,
    even_weights,
    expit,
    filled,
    fit_rows,
    folds_of,
    losses,
    paired,
    targets,
)
from calibrant.repair.told import MASK, grain, spread, stepped
from calibrant.stats.logistic import regress

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeRegressor

Codes = NDArray[np.int32]
Places = tuple[tuple[float, ...], ...]  # where each level of each level variable stands in the order that is split
Curve = tuple[Floats, float]  # slopes and intercept

# ---- The map with a beta curve in each leaf of a small tree of variables ----

SHOWN = 8  # levels named in a rule
STEEPEST = 8  # splits on the way to a leaf, at most
Path = dict[int, tuple[float, float]]  # inputs and the ends between which they lie


@dataclass(frozen=True)
class Splits:
    """The splits of a tree, node 0 its root: the input that each node asks (-1: a leaf), and where rows go."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]

    def leaf_of(self, inputs: Floats) -> Whole:
        """Return the leaf of each row."""
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        left, right = np.array(self.left), np.array(self.right)
        at, rows = np.zeros(len(inputs), dtype=np.int64), np.arange(len(inputs))
        while len(rows := rows[feature[at[rows]] >= 0]):
            node = at[rows]
            at[rows] = np.where(inputs[rows, feature[node]] <= threshold[node], left[node], right[node])
        return at


def tree_inputs(numbers: Floats, codes: Codes, places: Places) -> Floats:
    """Return the numbers and the places of the levels, shape (n, inputs)."""
    return np.column_stack([numbers, *(np.array(v)[codes[:, j]] for j, v in enumerate(places))])


@dataclass(frozen=True, kw_only=True)
class Branches(FittedMap):
    """The map ``expit(a_l ln p - b_l ln(1 - p) + c_l)`` in leaf l of a tree; node 0 is the root.

    Parameters
    ----------
    feature, left, right : tuple of int
        Of each node: which input it splits (numbers, then level variables; -1 for a leaf), and where rows go.
    threshold : tuple of float
        Rows up to it go left.
    slopes : tuple of (float, float)
        a and b of each node.
    intercepts : tuple of float
        c of each node.
    places : tuple of tuple of float
        Where each level of each level variable stands in the order by which the tree splits it.
    edges : tuple of float
        Nearer to 0, and to 1, than these logarithms of the score are continued along their tangents.
    form : {"beta", "published beta"}
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    slopes: tuple[tuple[float, float], ...]
    intercepts: tuple[float, ...]
    places: Places = ()
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
        x, size = inputs_of(self.codings), len(self.feature)
        lengths = {len(v) for v in (self.threshold, self.left, self.right, self.slopes, self.intercepts)}
        sound(size < 2 << STEEPEST, "more nodes than a fit grows")
        sound(size > 0 and lengths == {size}, "every node needs a feature, a threshold, two children and a curve")
        for node, (j, *children) in enumerate(zip(self.feature, self.left, self.right, strict=True)):
            sound(j < x.columns, "a node asks for a covariate that is not there")
            sound(j < 0 or all(node < child < size for child in children), "children must follow their node")
        sound(tuple(map(len, self.places)) == x.levels, "every level needs a place")
        sound(min(self.edges) > 0 and shares(self.edges), "edges must lie between 0 and 1")

    def values(self, rows: Batch) -> Floats:
        """Return the repaired scores."""
        t, at = score_columns(rows.p, self.form, self.edges), np.zeros(len(rows.p), dtype=np.int64)
        if rows.covariates is not None:
            at = self.leaf_of(rows.covariates)
        return expit((t * np.array(self.slopes)[at]).sum(axis=1) + np.array(self.intercepts)[at])

    def leaf_of(self, x: Encoded) -> Whole:
        """Return the leaf of each row of covariates."""
        splits = Splits(self.feature, self.threshold, self.left, self.right)
        return splits.leaf_of(tree_inputs(filled(x, self.codings), x.codes, self.places))

    @property
    def leaves(self) -> tuple[str, ...]:
        """The leaves in words, in the order of their nodes."""
        return tuple(text for _, text in sorted(self._leaves(0, {})))

    def _leaves(self, node: int, path: Path) -> Iterator[tuple[int, str]]:
        j, cut = self.feature[node], self.threshold[node]
        if j < 0:
            yield node, " and ".join(self._told(k, *ends) for k, ends in path.items()) or "everyone"
            return
        low, high = path.get(j, (-np.inf, np.inf))
        yield from self._leaves(self.left[node], path | {j: (low, min(high, cut))})
        yield from self._leaves(self.right[node], path | {j: (max(low, cut), high)})

    def _told(self, j: int, low: float, high: float) -> str:
        """Say between which ends an input lies."""
        numbers = [c for c in self.codings if c.kind in ("number", "date")]
        if j < len(numbers):
            c = numbers[j]
            if np.isinf(low):
                return f"{c.name} <= {_shown(c, high)}"
            if np.isinf(high):
                return f"{c.name} > {_shown(c, low)}"
            return f"{_shown(c, low)} < {c.name} <= {_shown(c, high)}"
        level_variables = [
            *((c.name, c.labels) for c in self.codings if c.kind == "category"),
            *((f"{c.name} is missing", ("no", "yes")) for c in numbers if c.missing),
        ]
        (name, labels), places = level_variables[j - len(numbers)], self.places[j - len(numbers)]
        of = [v for v, place in zip(labels, places, strict=True) if low < place <= high]
        return f"{name} is {' or '.join(of[:SHOWN])}{f' or {len(of) - SHOWN} more' if len(of) > SHOWN else ''}"


def _shown(c: Coding, value: float) -> str:
    return str(np.datetime64(int(np.floor(value)), "D")) if c.kind == "date" else f"{value:.6g}"


# ---- A small tree of variables, the beta curves of its nodes, and how deep it should be ----

Target = Literal["residual", "outcome"]
LEAST = MASK  # rows of a leaf
PRIOR = 20.0  # rows of average outcome by which a level's place in the order is drawn in
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
        return Table(
            y=self.y[rows],
            weight=self.weight[rows],
            target=self.target[rows],
            score=self.score[rows],
            numbers=self.numbers[rows],
            codes=self.codes[rows],
            sizes=self.sizes,
        )


def table_of(rows: Predictions, how: Sequence[Coding], x: Encoded, edges: Edges, form: Form) -> Table:
    """Return the rows of a fit."""
    return Table(
        y=rows.y.astype(np.float64),
        weight=even_weights(rows),
        target=targets(rows),
        score=score_columns(rows.p, form, edges),
        numbers=filled(x, how) if form == "published beta" else _rounded(filled(x, how)),
        codes=x.codes,
        sizes=tuple(map(len, x.level_labels)),
    )


def _rounded(numbers: Floats) -> Floats:
    """Return numbers in steps, so that a split halfway between two of them is halfway between no two people's."""
    return np.column_stack([numbers[:, :0], *(stepped(v, grain(spread(v))) for v in numbers.T)])


@dataclass(frozen=True)
class Nodes:
    """Of each node: its depth, its curve, its rows and cases, and whether its rows have one outcome."""

    depth: tuple[int, ...]
    slopes: Floats
    intercepts: Floats
    rows: tuple[int, ...]
    cases: tuple[int, ...]
    one_class: tuple[bool, ...]


@dataclass(frozen=True)
class Tree:
    """A tree with a curve in every node; see `Branches`."""

    splits: Splits
    places: Places
    nodes: Nodes

    def log_odds(self, t: Table, deepest: int) -> Floats:
        """Return the log-odds of rows by the curves at most so deep."""
        s, depth = self.splits, self.nodes.depth
        feature = tuple(f if d < deepest else -1 for f, d in zip(s.feature, depth, strict=True))
        cut = Splits(feature, s.threshold, s.left, s.right)
        at = cut.leaf_of(tree_inputs(t.numbers, t.codes, self.places))
        eta: Floats = (t.score * self.nodes.slopes[at]).sum(axis=1) + self.nodes.intercepts[at]
        return eta


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Settings of a tree: see `VariableTree`."""

    depth: int
    leaf: float
    target: Target
    shrink: float
    paper: bool


def grown(t: Table, g: Growth) -> Tree:
    """Grow a tree and fit the curve of every node, each drawn to that of its parent."""
    # (1) The curve of everyone: beta calibration.
    slopes, _, height = coefficients(t.target, t.weight, t.score)
    root = regress(t.score, t.y, t.weight, ridge=1.0) if g.paper else (slopes, height)
    # (2) What the tree explains: what that curve leaves, or (as published) the outcome.
    aim = t.y if g.target == "outcome" else t.y - expit(t.score @ root[0] + root[1])
    # (3) Levels in the order of their mean of it, so that a split cuts them as it cuts a number.
    places = tuple(_places(aim, t, j) for j in range(t.codes.shape[1]))
    # (4) The tree, and (5) from the root down the curve of each node.
    inputs = tree_inputs(t.numbers, t.codes, places)
    splits = _splits(aim, t, inputs, g)
    return Tree(splits, places, _curves(t, g, root, splits, inputs))


def _places(aim: Floats, t: Table, j: int) -> tuple[float, ...]:
    """Return the mean aim of each level of a level variable, drawn to that of everyone."""
    code, size = t.codes[:, j], t.sizes[j]
    middle = float(np.average(aim, weights=t.weight))
    total = np.bincount(code, t.weight * (aim - middle), size)
    return tuple((total / (np.bincount(code, t.weight, size) + PRIOR)).tolist())


def _splits(aim: Floats, t: Table, inputs: Floats, g: Growth) -> Splits:
    """Return the splits of a regression tree of the aim: squared error, as in the paper."""
    n, even = len(t.y), bool((t.weight == 1.0).all())
    least = max(1 if g.paper else LEAST, int(g.leaf * n) if even else 1)
    if g.depth == 0 or not inputs.shape[1] or n < 2 * least:
        return Splits((-1,), (0.0,), (-1,), (-1,))
    tree = _learner(g, least, even).fit(inputs, aim, sample_weight=None if even else t.weight).tree_
    inner = tree.children_left >= 0
    return Splits(
        tuple(int(f) if i else -1 for f, i in zip(tree.feature, inner, strict=True)),
        tuple(float(c) if i else 0.0 for c, i in zip(tree.threshold, inner, strict=True)),
        tuple(tree.children_left.tolist()),
        tuple(tree.children_right.tolist()),
    )


def _learner(g: Growth, least: int, even: bool) -> DecisionTreeRegressor:
    from sklearn.tree import DecisionTreeRegressor

    weight = {} if even else {"min_weight_fraction_leaf": g.leaf}
    return DecisionTreeRegressor(max_depth=g.depth, min_samples_leaf=least, random_state=0, **weight)


def _curves(t: Table, g: Growth, root: Curve, splits: Splits, inputs: Floats) -> Nodes:
    size = len(splits.feature)
    slopes, heights = np.tile(root[0], (size, 1)), np.full(size, root[1])
    depth, rows, cases, one_class = [0] * size, [len(t.y)] * size, [int(t.y.sum())] * size, [False] * size
    spread = np.maximum(t.score.std(axis=0), 1e-12)
    stack = [(0, np.arange(len(t.y)))]
    while stack:
        node, members = stack.pop()
        if splits.feature[node] < 0:
            continue
        low = inputs[members, splits.feature[node]] <= splits.threshold[node]
        for child, own in ((splits.left[node], members[low]), (splits.right[node], members[~low])):
            depth[child], rows[child], cases[child] = depth[node] + 1, len(own), int(t.y[own].sum())
            one_class[child] = cases[child] in (0, rows[child])
            slopes[child], heights[child] = _curve(t, own, g, (slopes[node], float(heights[node])), spread)
            stack.append((child, own))
    return Nodes(tuple(depth), slopes, heights, tuple(rows), tuple(cases), tuple(one_class))


def _curve(t: Table, own: Whole, g: Growth, parent: Curve, spread: Floats) -> Curve:
    """Return the curve of a node: its parent's, moved as far as its rows say against a penalty."""
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


def best_depth(t: Table, g: Growth, unit: Whole, fold: Whole) -> tuple[int, float, float]:
    """Return the depth that gains most log loss on left-out folds over no tree, and the gain with its standard error.

    The gain must exceed its standard error, or the depth is 0.
    """
    eta = np.empty((DEEPEST + 1, len(t.y)))
    for k in range(FOLDS):
        out = fold == k
        tree, rest = grown(t[~out], g), t[out]
        for d in range(DEEPEST + 1):  # one tree of full depth holds all the others
            eta[d, out] = tree.log_odds(rest, d)
    flat, best = losses(t.y, eta[0]), (0, 0.0, 0.0)
    for d in range(1, DEEPEST + 1):
        gain, error = paired(t.weight * (flat - losses(t.y, eta[d])), unit)
        if gain > max(error, best[1]):
            best = (d, gain, error)
    return best


# ---- Variable-based calibration: a small tree of variables, and a beta curve in each of its leaves ----

STREAM = 0x7EAF  # of random numbers, apart from those of other methods at the same seed
FEWEST = 20  # cases, and non-cases, from which a depth can be chosen: a few in each fold


@recipe(
    maps=[Branches],
    words="a tree of traits with a curve in each leaf",
    simplicity=120,
    command="variable-tree",
    covariates=True,
)
@dataclass(frozen=True, kw_only=True)
class VariableTree:
    r"""Variable-based calibration: a beta curve for each of a few groups of people, found by a small tree of variables.

    Estimand: ``logit P(Y = 1 | p, leaf) = a ln p - b ln(1 - p) + c`` in each leaf of the tree.

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
        What the tree explains: what beta calibration of everyone leaves, or the outcome itself.
    shrink : float, 0 or more
        How strongly a node's curve is drawn to its parent's: penalty on the difference of slopes, in rows' worth, and a
        tenth of it on the difference of heights.
    paper : bool
        The published procedure: the tree explains the outcome, and each leaf has a curve of its own, fitted with
        scikit-learn's default ridge to outcomes 0 and 1; a leaf of one class takes its parent's. `target` and `shrink`
        are not read.
    seed : int
        Of the folds.

    Raises
    ------
    BadInput
        A setting out of range; no such covariate.
    NotComputable
        One class only.

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
    the fit, may be split off; unseen levels stand in the middle of the order. **Cost.** Six trees, and Newton's method
    in each node: 5 s of CPU time for 100,000 rows and ten variables. **Reads.** Rows; weights and clusters are used.

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
            whole("depth", self.depth, 0, STEEPEST, hint="or None to choose it")
        number("leaf", self.leaf, above=0, below=0.5, what="a share of the rows", hint="such as 0.05")
        choice("target", self.target, get_args(Target))
        number("shrink", self.shrink, least=0, hint="such as 10.0")
        flag("paper", self.paper)
        checked_seed(self.seed)

    def fit(self, data: Predictions) -> Branches:
        """Grow the tree on rows and fit the curves."""
        rows, variables = fit_rows(data, "VariableTree"), names("variables", self.variables)
        form: Form = "published beta" if self.paper else "beta"
        how, x, constants = encoded(rows, variables)
        edges = edges_of(rows.p)
        table = table_of(rows, how, x, edges, form)
        depth, gain = self._depth(rows, table)
        tree = grown(table, self._growth(depth))
        splits, nodes = tree.splits, tree.nodes
        leaves = [i for i, f in enumerate(splits.feature) if f < 0]
        return Branches(
            recipe="VariableTree",
            settings={
                "variables": variables,
                "depth": depth,
                "depth_asked": self.depth,
                "leaf": float(self.leaf),
                "target": "outcome" if self.paper else self.target,
                "shrink": 0.0 if self.paper else float(self.shrink),
                "paper": self.paper,
                "constant": constants,
                "one_class_leaves": sum(nodes.one_class[i] for i in leaves),
                **gain,
                "leaf_rows": tuple(nodes.rows[i] for i in leaves),
                "leaf_cases": tuple(nodes.cases[i] for i in leaves),
                "seed": self.seed,
            },
            codings=how,
            mask=1 if self.paper else MASK,
            fitted_on=fitted_on(rows),
            feature=splits.feature,
            threshold=splits.threshold,
            left=splits.left,
            right=splits.right,
            slopes=tuple((float(a), float(b)) for a, b in nodes.slopes),
            intercepts=tuple(nodes.intercepts.tolist()),
            places=tree.places,
            edges=edges,
            form=form,
        )

    def _growth(self, depth: int) -> Growth:
        target: Target = "outcome" if self.paper else self.target
        return Growth(depth=depth, leaf=float(self.leaf), target=target, shrink=float(self.shrink), paper=self.paper)

    def _depth(self, rows: Predictions, table: Table) -> tuple[int, dict[str, Any]]:
        """Return the depth asked for or chosen, and what was gained by it where it was chosen."""
        none = {"gain": None, "gain_error": None}
        if self.depth is not None or self.paper:
            return (2 if self.depth is None else int(self.depth)), none  # 2: the paper's text
        unit, fold = folds_of(rows, np.random.default_rng([self.seed, STREAM]))
        if min(rows.cases, rows.n - rows.cases) < FEWEST or unit.max() + 1 < FOLDS:
            return 0, none
        depth, gain, error = best_depth(table, self._growth(DEEPEST), unit, fold)
        return depth, {"gain": gain, "gain_error": error}
