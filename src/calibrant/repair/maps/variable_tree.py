"""Variable-based calibration: a small tree of variables, and a beta curve in each of its leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.arguments import checked_seed
from calibrant.data.coding import Coding, Encoded
from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput
from calibrant.repair.catalogue import recipe
from calibrant.repair.fitted import Batch, FittedMap, fitted_on, inputs_of, shares, sound
from calibrant.repair.maps.augmented import Form, coefficients, score_columns
from calibrant.repair.regression import (
    FOLDS,
    Edges,
    Trial,
    checked_names,
    edges_of,
    encoded,
    fit_rows,
    fitted,
    folds_of,
    logistic_fit,
    losses,
    paired,
    targets,
)

# ---- The map with a beta curve in each leaf of a small tree of variables ----

SHOWN = 8  # levels named in a rule
Path = dict[int, tuple[float, float]]  # inputs and the ends between which they lie


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
    places: tuple[tuple[float, ...], ...] = ()
    edges: Edges
    form: Form = "beta"

    @property
    def order(self) -> Any:
        """Kept if the tree has one leaf and its curve rises."""
        if len(self.feature) > 1 or min(self.slopes[0]) < 0:
            return "may change"
        return "kept" if max(self.slopes[0]) > 0 else "kept up to ties"

    def check(self) -> None:
        """Raise `ValueError` if the nodes do not make a tree of these covariates."""
        x, size = inputs_of(self.codings), len(self.feature)
        lengths = {len(v) for v in (self.threshold, self.left, self.right, self.slopes, self.intercepts)}
        sound(size > 0 and lengths == {size}, "every node needs a feature, a threshold, two children and a curve")
        for node, (j, *children) in enumerate(zip(self.feature, self.left, self.right, strict=True)):
            sound(j < x.columns, "a node asks for a covariate that is not there")
            sound(j < 0 or all(node < child < size for child in children), "children must follow their node")
        sound(tuple(map(len, self.places)) == x.levels, "every level needs a place")
        sound(min(self.edges) > 0 and shares(self.edges), "edges must lie between 0 and 1")

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        from scipy.special import expit

        t = score_columns(np.asarray(rows.p, dtype=np.float64), self.form, self.edges)
        at = np.zeros(len(t), dtype=np.int64)
        if rows.covariates is not None:
            at = leaf_of(tree_inputs(rows.covariates, self.codings, self.places), self)
        return expit((t * np.array(self.slopes)[at]).sum(axis=1) + np.array(self.intercepts)[at])

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
            return (
                f"{c.name} > {_shown(c, low)}"
                if np.isinf(high)
                else f"{_shown(c, low)} < {c.name} <= {_shown(c, high)}"
            )
        name, labels = [
            *((c.name, c.labels) for c in self.codings if c.kind == "category"),
            *((f"{c.name} is missing", ("no", "yes")) for c in numbers if c.missing),
        ][j - len(numbers)]
        of = [v for v, place in zip(labels, self.places[j - len(numbers)], strict=True) if low < place <= high]
        return f"{name} is {' or '.join(of[:SHOWN])}{f' or {len(of) - SHOWN} more' if len(of) > SHOWN else ''}"


def _shown(c: Coding, value: float) -> str:
    return str(np.datetime64(int(np.floor(value)), "D")) if c.kind == "date" else f"{value:.6g}"


def tree_inputs(x: Encoded, how: Sequence[Coding], places: Sequence[Sequence[float]]) -> Any:
    """Return the numbers as they come (missing ones by the median) and the places of the levels, shape (n, inputs)."""
    fill = np.array([c.fill for c in how if c.kind in ("number", "date")])
    numbers = np.where(np.isnan(x.numbers), fill, x.numbers)
    return np.column_stack([numbers, *(np.array(v)[x.codes[:, j]] for j, v in enumerate(places))])


def leaf_of(inputs: Any, tree: Any) -> Any:
    """Return the leaf of each row."""
    feature, cut = np.array(tree.feature), np.array(tree.threshold)
    left, right = np.array(tree.left), np.array(tree.right)
    at, rows = np.zeros(len(inputs), dtype=np.int64), np.arange(len(inputs))
    while len(rows := rows[feature[at[rows]] >= 0]):
        node = at[rows]
        at[rows] = np.where(inputs[rows, feature[node]] <= cut[node], left[node], right[node])
    return at


# ---- A small tree of variables, the beta curves of its nodes, and how deep it should be ----

Target = Literal["residual", "outcome"]
LEAST = 10  # rows of a leaf
PRIOR = 20.0  # rows of average outcome by which a level's place in the order is drawn in
LEVEL = 0.1  # share of the penalty that the height of a node's curve takes
DEEPEST = 4


@dataclass(frozen=True)
class Table:
    """Rows to fit a tree on.

    Parameters
    ----------
    y, weight : float arrays of shape (n,)
    target : float array of shape (n,)
        Platt's, in place of the outcomes, for the curve of everyone.
    score : float array of shape (n, 2)
        ``ln p`` and ``-ln(1 - p)``.
    x : Encoded
    how : tuple of Coding
    """

    y: Any
    weight: Any
    target: Any
    score: Any
    x: Encoded
    how: tuple[Coding, ...]

    def __getitem__(self, at: Any) -> Table:
        x = self.x
        part = Encoded(
            numbers=x.numbers[at],
            scaled=x.scaled[at],
            codes=x.codes[at],
            number_names=x.number_names,
            level_names=x.level_names,
            level_labels=x.level_labels,
            level_of=x.level_of,
        )
        return Table(self.y[at], self.weight[at], self.target[at], self.score[at], part, self.how)


@dataclass(frozen=True)
class Tree:
    """A tree with a curve in every node; see `Branches`."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    depth: tuple[int, ...]
    places: tuple[tuple[float, ...], ...]
    slopes: Any
    intercepts: Any
    rows: tuple[int, ...]
    cases: tuple[int, ...]
    fell_back: tuple[bool, ...]

    def log_odds(self, t: Table, deepest: int) -> Any:
        """Return the log-odds of rows by the curves at most so deep."""
        at = leaf_of(tree_inputs(t.x, t.how, self.places), self.cut(deepest))
        return (t.score * self.slopes[at]).sum(axis=1) + self.intercepts[at]

    def cut(self, deepest: int) -> Cut:
        """Return the tree without what is deeper."""
        feature = tuple(f if d < deepest else -1 for f, d in zip(self.feature, self.depth, strict=True))
        return Cut(feature, self.threshold, self.left, self.right)


@dataclass(frozen=True)
class Cut:
    """Splits alone."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Settings of a tree: see `VariableTree`."""

    depth: int
    leaf: float
    target: Target
    shrink: float
    paper: bool


def table_of(rows: Predictions, how: tuple[Coding, ...], x: Encoded, edges: Edges, paper: bool) -> Table:
    """Return the rows of a fit."""
    weight = np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()
    score = score_columns(rows.p, "published beta" if paper else "beta", edges)
    return Table(rows.y.astype(np.float64), weight, targets(rows), score, x, how)


def grown(t: Table, g: Growth) -> Tree:
    """Grow a tree and fit the curve of every node, each drawn to that of its parent."""
    from scipy.special import expit
    from sklearn.tree import DecisionTreeRegressor

    n = len(t.y)
    slopes, _, height = coefficients(t.target, t.weight, t.score)
    root = logistic_fit(t.score, t.y, t.weight, 1.0) if g.paper else (slopes, height)
    aim = t.y if g.target == "outcome" else t.y - expit(t.score @ root[0] + root[1])
    places = tuple(_places(aim, t, j) for j in range(t.x.codes.shape[1]))
    inputs = tree_inputs(t.x, t.how, places)
    even = bool((t.weight == 1.0).all())
    least = max(1 if g.paper else LEAST, int(g.leaf * n) if even else 1)
    share = {} if even else {"min_weight_fraction_leaf": g.leaf}
    if g.depth == 0 or not inputs.shape[1] or n < 2 * least:
        return _curves(t, g, root, places, np.zeros(n, dtype=np.int64), None)
    model = DecisionTreeRegressor(max_depth=g.depth, min_samples_leaf=least, random_state=0, **share)
    model.fit(inputs, aim, sample_weight=None if even else t.weight)
    return _curves(t, g, root, places, inputs, model.tree_)


def _places(aim: Any, t: Table, j: int) -> tuple[float, ...]:
    """Return the mean outcome of each level of a level variable, drawn to that of everyone."""
    code, size = t.x.codes[:, j], len(t.x.level_labels[j])
    middle = float(np.average(aim, weights=t.weight))
    total = np.bincount(code, t.weight * (aim - middle), size)
    return tuple((total / (np.bincount(code, t.weight, size) + PRIOR)).tolist())


def _curves(t: Table, g: Growth, root: Any, places: Any, inputs: Any, tree: Any) -> Tree:
    feature: tuple[int, ...] = (-1,)
    cuts: tuple[float, ...] = (0.0,)
    left = right = feature
    if tree is not None:
        inner = tree.children_left >= 0
        feature = tuple(int(f) if i else -1 for f, i in zip(tree.feature, inner, strict=True))
        cuts = tuple(float(c) if i else 0.0 for c, i in zip(tree.threshold, inner, strict=True))
        left, right = tuple(tree.children_left.tolist()), tuple(tree.children_right.tolist())
    size = len(feature)
    slopes, heights = np.tile(np.asarray(root[0], dtype=float), (size, 1)), np.full(size, float(root[1]))
    depth, rows, cases, back = [0] * size, [len(t.y)] * size, [int(t.y.sum())] * size, [False] * size
    spread = np.maximum(t.score.std(axis=0), 1e-12)
    stack = [(0, np.arange(len(t.y)))]
    while stack:
        node, members = stack.pop()
        if feature[node] < 0:
            continue
        low = inputs[members, feature[node]] <= cuts[node]
        for child, own in ((left[node], members[low]), (right[node], members[~low])):
            depth[child], rows[child], cases[child] = depth[node] + 1, len(own), int(t.y[own].sum())
            back[child] = cases[child] in (0, rows[child])
            found = _curve(t, own, g, slopes[node], heights[node], spread)
            slopes[child], heights[child] = found
            stack.append((child, own))
    return Tree(
        feature, cuts, left, right, tuple(depth), places, slopes, heights, tuple(rows), tuple(cases), tuple(back)
    )


def _curve(t: Table, own: Any, g: Growth, slopes: Any, height: float, spread: Any) -> tuple[Any, float]:
    """Return the curve of a node: its parent's, moved as far as its rows say against a penalty."""
    y, score, weight = t.y[own], t.score[own], t.weight[own]
    if g.paper:
        if y.min() == y.max():
            return slopes, height
        return logistic_fit(score, y, weight, 1.0)
    middle = np.average(score, axis=0, weights=weight)
    columns = np.column_stack([np.ones(len(y)), (score - middle) / spread])
    none = np.zeros(len(y), dtype=np.int64)
    trial = Trial(y, weight, score @ slopes + height, columns, 1, 0, none, none)
    penalty = g.shrink * np.array([LEVEL, 1.0, 1.0])
    while True:
        moved = fitted(trial, penalty)
        after = slopes + moved[1:] / spread
        falling = (after < 0) & np.isfinite(penalty[1:])
        if not falling.any():
            return after, height + float(moved[0] - (moved[1:] / spread) @ middle)
        penalty[1 + int(np.argmin(np.where(falling, after * spread, 0.0)))] = np.inf


def best_depth(t: Table, g: Growth, unit: Any, fold: Any) -> tuple[int, float, float]:
    """Return the depth that gains most log loss on left-out folds over no tree, and the gain with its standard error.

    The gain must exceed its standard error, or the depth is 0.
    """
    eta = np.empty((DEEPEST + 1, len(t.y)))
    for k in range(FOLDS):
        out = fold == k
        tree, rest = grown(t[~out], g), t[out]
        for d in range(DEEPEST + 1):
            eta[d, out] = tree.log_odds(rest, d)
    flat, best = losses(t.y, eta[0]), (0, 0.0, 0.0)
    for d in range(1, DEEPEST + 1):
        gain, error = paired(t.weight * (flat - losses(t.y, eta[d])), unit)
        if gain > max(error, best[1]):
            best = (d, gain, error)
    return best


def leaves_told(tree: Tree, kept: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return rows and cases of each leaf."""
    return {"leaf_rows": tuple(tree.rows[i] for i in kept), "leaf_cases": tuple(tree.cases[i] for i in kept)}


# ---- Variable-based calibration: a small tree of variables, and a beta curve in each of its leaves ----

STREAM = 0x7EAF
FEWEST = 20  # cases, and non-cases, from which a depth can be chosen


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
        Least share of the rows (by weight) in a leaf; never under ten rows.
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
        checked_names(self.variables)
        d, low = self.depth, self.shrink
        if d is not None and (isinstance(d, bool) or not isinstance(d, (int, np.integer)) or not 0 <= d <= 8):
            raise BadInput(f"depth={d!r}: pass a whole number from 0 to 8, or None to choose it")
        if isinstance(self.leaf, bool) or not isinstance(self.leaf, (float, np.floating)) or not 0 < self.leaf < 0.5:
            raise BadInput(f"leaf={self.leaf!r}: pass a share of the rows between 0 and 0.5, such as 0.05")
        if self.target not in ("residual", "outcome"):
            raise BadInput(f"target={self.target!r}: choose 'residual' or 'outcome'")
        if isinstance(low, bool) or not isinstance(low, (int, float, np.number)) or not 0 <= low < np.inf:
            raise BadInput(f"shrink={low!r}: pass a number from 0 up, such as 10.0")
        if not isinstance(self.paper, bool):
            raise BadInput(f"paper={self.paper!r}: pass True or False")
        checked_seed(self.seed)

    def fit(self, data: Any) -> Branches:
        """Grow the tree on rows and fit the curves."""
        rows = fit_rows(data, "VariableTree")
        how, x, constants = encoded(rows, checked_names(self.variables))
        edges = edges_of(rows.p)
        table = table_of(rows, how, x, edges, self.paper)
        depth, gain = self._depth(rows, table)
        tree = grown(table, self._growth(depth))
        leaves = [i for i, f in enumerate(tree.feature) if f < 0]
        settings = {
            "variables": checked_names(self.variables),
            "depth": depth,
            "depth_asked": self.depth,
            "leaf": float(self.leaf),
            "target": "outcome" if self.paper else self.target,
            "shrink": 0.0 if self.paper else float(self.shrink),
            "paper": self.paper,
            "constant": constants,
            "one_class_leaves": sum(tree.fell_back[i] for i in leaves),
            **gain,
            **leaves_told(tree, leaves),
            "seed": self.seed,
        }
        return Branches(
            recipe="VariableTree",
            settings=settings,
            codings=how,
            fitted_on=fitted_on(rows),
            feature=tree.feature,
            threshold=tree.threshold,
            left=tree.left,
            right=tree.right,
            slopes=tuple(map(tuple, tree.slopes.tolist())),
            intercepts=tuple(tree.intercepts.tolist()),
            places=tree.places,
            edges=edges,
            form="published beta" if self.paper else "beta",
        )

    def _growth(self, depth: int) -> Growth:
        target: Target = "outcome" if self.paper else self.target
        return Growth(depth=depth, leaf=float(self.leaf), target=target, shrink=float(self.shrink), paper=self.paper)

    def _depth(self, rows: Any, table: Any) -> tuple[int, dict[str, Any]]:
        if self.depth is not None or self.paper:
            return (2 if self.depth is None else int(self.depth)), {"gain": None, "gain_error": None}
        unit, fold = folds_of(rows, np.random.default_rng([self.seed, STREAM]))
        if min(rows.cases, rows.n - rows.cases) < FEWEST or unit.max() + 1 < FOLDS:
            return 0, {"gain": None, "gain_error": None}
        depth, gain, error = best_depth(table, self._growth(DEEPEST), unit, fold)
        return depth, {"gain": gain, "gain_error": error}
