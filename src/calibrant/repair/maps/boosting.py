"""Boosting of the residual: small trees on the log-odds and the covariates, as many as other rows ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Encoded
from calibrant.errors import BadInput
from calibrant.kernels.strata import locate
from calibrant.kernels.trees import BINS, Columns, Rule, Tree, add_trees, gradients, grow
from calibrant.repair.fitted import Batch, FittedMap, Order, inputs_of, rising, sound
from calibrant.repair.regression import logit

# ---- Covariates as a few bins each, by rules fixed without a label ----

RARE, LAST = BINS - 3, 2  # levels beyond the 49 most frequent share a bin; unseen and missing ones keep their own
Edges = tuple[tuple[float, ...], ...]


def edges_of(values: Any, bins: int) -> tuple[float, ...]:
    """Return inner edges of at most `bins` bins: between the values if they are few, at quantiles otherwise."""
    found = np.unique(values)
    if len(found) > bins:
        cut = np.quantile(values, np.linspace(0.0, 1.0, bins + 1)[1:-1])
        return tuple(float(v) for v in np.unique(cut) if v > found[0])
    return tuple(float(v) for v in (found[1:] + found[:-1]) / 2.0)


def filled(columns: Encoded, how: Sequence[Coding]) -> Any:
    """Return the numbers with each missing one replaced by its median."""
    fill = np.array([c.fill for c in how if c.kind in ("number", "date")])
    return np.where(np.isnan(columns.numbers), fill, columns.numbers)


def number_edges(columns: Encoded, how: Sequence[Coding], bins: int) -> Edges:
    """Return the edges of every number."""
    numbers = filled(columns, how)
    return tuple(edges_of(numbers[:, j], bins) for j in range(numbers.shape[1]))


def binned(columns: Encoded | None, how: Sequence[Coding], edges: Edges, n: int) -> Any:
    """Return the bins of numbers and levels, uint8 of shape (n, 1 + d); the first column is left at 0 for the score."""
    if columns is None:
        return np.zeros((n, 1), dtype=np.uint8)
    numbers = filled(columns, how)
    width = len(edges)
    out = np.zeros((n, 1 + width + columns.codes.shape[1]), dtype=np.uint8)
    for j, cuts in enumerate(edges):
        out[:, 1 + j] = locate(numbers[:, j], np.array(cuts))
    for j, labels in enumerate(columns.level_labels):
        code, held = columns.codes[:, j], len(labels)
        if held > BINS:
            kept = held - LAST
            code = np.where(code >= kept, code - kept + RARE + 1, np.minimum(code, RARE))
        out[:, 1 + width + j] = code
    return out


def ordered(columns: int, edges: Edges) -> Any:
    """Return whether the bins of each column have an order: those of the score and of numbers do."""
    return np.arange(columns) <= len(edges)


# ---- Boosting of the residual: small trees on the log-odds and the covariates, as many as other rows ask for ----

SALT = 0x7EE5
ROUND = 10  # trees that see the same score, before it is brought up to date
PATIENCE = 3 * ROUND  # trees without a better loss after which no more are tried
SAMPLED = 4000  # rows that a tree sees at least, if there are so many
STEPS = 30


@dataclass(frozen=True, kw_only=True)
class Trees:
    """How `Multicalibrator` boosts.

    Parameters
    ----------
    depth : int
        Splits on the way to a leaf, 1 to 6: how many of the score and the variables can matter together.
    rate : float in (0, 1]
        Share of its Newton step that a tree takes.
    most : int
        Trees at most.
    ridge : float
        Above 0: information (``p (1 - p)`` summed over rows) by which a leaf is drawn towards no change.
    least : float
        Information that each side of a split must hold: 5 is 20 rows at ``p = 0.5``, 500 at ``p = 0.01``.
    folds : int
        Of the cross-validation that chooses how many trees.
    doubt : float
        Standard errors by which the changes must be confirmed on other folds; the scores are left alone otherwise.
    """

    depth: int = 2
    rate: float = 0.1
    most: int = 300
    ridge: float = 10.0
    least: float = 5.0
    folds: int = 5
    doubt: float = 2.5

    def __post_init__(self) -> None:
        for name, few, many in (("depth", 1, 6), ("most", 1, 5000), ("folds", 2, 20)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not few <= value <= many:
                raise BadInput(f"{name}={value!r}: pass a whole number from {few} to {many}")
        for name, low, high in (("rate", 1e-3, 1.0), ("ridge", 1e-3, 1e6), ("least", 1e-3, 1e6), ("doubt", 0.0, 10.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise BadInput(f"{name}={value!r}: pass a number from {low:g} to {high:g}")


@dataclass(frozen=True)
class Problem:
    """Rows to boost on.

    Parameters
    ----------
    codes : uint8 array of shape (n, 1 + d)
        Bins of the covariates from column 1 on.
    ordered : bool array of shape (1 + d,)
    start : float64 array of shape (n,)
        Log-odds of the score.
    y : int8 array of shape (n,)
    weight : float64 array of shape (n,)
        Mean one.
    """

    codes: Any
    ordered: Any
    start: Any
    y: Any
    weight: Any


class Booster:
    """One run of boosting on some rows; every row's log-odds are kept up to date."""

    def __init__(self, problem: Problem, how: Trees, rows: Any, seed: tuple[int, ...]) -> None:
        self.problem, self.how, self.rows = problem, how, rows.astype(np.int32)
        self.rng = np.random.default_rng([*seed, SALT])
        self.codes = problem.codes.copy()
        self.slope, self.intercept = straight(problem, rows)
        self.log_odds = self.intercept + self.slope * problem.start
        self.gradient, self.hessian = np.empty((2, len(problem.start)))
        self.edges: list[tuple[float, ...]] = []
        self.feature: list[Any] = []
        self.left: list[Any] = []
        self.value: list[Any] = []

    def step(self) -> None:
        """Grow one more tree."""
        if len(self.value) % ROUND == 0:
            self.edges.append(edges_of(self.log_odds, BINS))
            self.codes[:, 0] = locate(self.log_odds, np.array(self.edges[-1]))
        gradients(self.log_odds, self.problem.y, self.problem.weight, self.gradient, self.hessian)
        share = max(0.5, SAMPLED / len(self.rows))
        rows = self.rows if share >= 1.0 else self.rows[self.rng.random(len(self.rows)) < share]
        how = self.how
        ridge, least = (v * len(rows) / len(self.rows) for v in (how.ridge, how.least))
        columns = Columns(self.codes, self.problem.ordered)
        feature, left, value = grow(columns, self.gradient, self.hessian, rows, Rule(how.depth, ridge, least))
        value *= how.rate
        add_trees(self.codes, Tree(feature[None], left[None], value[None]), self.log_odds)
        self.feature.append(feature)
        self.left.append(left)
        self.value.append(value)


def straight(problem: Problem, rows: Any) -> tuple[float, float]:
    """Return slope and intercept of a logistic curve of the log-odds, drawn towards the identity by one row's worth."""
    t, y, w = problem.start[rows], problem.y[rows], problem.weight[rows]
    x = np.stack([t, np.ones(len(t))])
    at, worth = np.array([1.0, 0.0]), np.diag([1.0, 0.25])
    target = np.array([1.0, 0.0])

    def loss(b: Any) -> float:
        return loss_of(b @ x, y, w) + 0.5 * float((b - target) @ worth @ (b - target))

    now = loss(at)
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-(at @ x)))
        pull = x @ (w * (y - p)) - worth @ (at - target)
        move = np.linalg.solve((x * (w * p * (1.0 - p))) @ x.T + worth, pull)
        for _ in range(STEPS):
            if (then := loss(at + move)) <= now:
                break
            move = move / 2.0
        else:
            break
        at, gained, now = at + move, now - then, then
        if gained <= 1e-10 * (1.0 + now):
            break
    return float(at[0]), float(at[1])


def loss_of(log_odds: Any, y: Any, w: Any) -> float:
    """Return the weighted sum of the logarithmic loss."""
    return float(w @ np.logaddexp(0.0, np.where(y == 1, -log_odds, log_odds)))


# ---- How many trees, and whether any: decided on rows that did not grow them ----


@dataclass(frozen=True)
class Choice:
    """What cross-validation chose.

    Parameters
    ----------
    used : bool
        Whether the scores are changed at all.
    trees : int
    scale : float
        What the whole change is multiplied by.
    before, after : float
        Mean logarithmic loss on other folds, of the scores as they came and of the chosen repair.
    standard : float
        By how many standard errors the change points the right way on other folds.
    """

    used: bool
    trees: int
    scale: float
    before: float
    after: float
    standard: float


def choose(problem: Problem, how: Trees, fold: Any, p: Any, clusters: Any, seed: int) -> Choice:
    """Grow trees on all folds but one, in step, and watch the loss on the one."""
    held = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]
    runs = [Booster(problem, how, np.flatnonzero(fold != k), (seed, k + 1)) for k in range(len(held))]
    best, at, kept, trees = np.inf, 0, problem.start.copy(), 0
    while True:
        loss = sum(loss_of(r.log_odds[h], problem.y[h], problem.weight[h]) for r, h in zip(runs, held, strict=True))
        if loss < best:
            best, at = loss, trees
            for r, h in zip(runs, held, strict=True):
                kept[h] = r.log_odds[h]
        if trees >= how.most or trees - at >= PATIENCE:
            break
        for r in runs:
            r.step()
        trees += 1
    change = kept - problem.start
    before = loss_of(problem.start, problem.y, problem.weight)
    standard = _standard(problem, p, change, clusters)
    n = len(p)
    used = best < before and standard > how.doubt
    return Choice(used, at, _scale(problem, change), before / n, best / n, standard)


def _standard(problem: Problem, p: Any, change: Any, clusters: Any) -> float:
    """Return the score test of the change: its product with the residual, in standard errors of calibrated scores."""
    product = problem.weight * change * (problem.y - p)
    if clusters is None:
        spread = float(np.sum((problem.weight * change) ** 2 * p * (1.0 - p)))
    else:
        spread = float(np.sum(np.bincount(clusters, product) ** 2))
    return float(product.sum()) / spread**0.5 if spread > 0.0 else 0.0


def _scale(problem: Problem, change: Any) -> float:
    """Return the multiple of the change that fits other folds best, from 0 to 2."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda c: loss_of(problem.start + c * change, problem.y, problem.weight),
        bounds=(0.0, 2.0),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return float(found.x)


# ---- The map that boosting leaves: a straight line of the log-odds, then trees, in plain numbers ----


@dataclass(frozen=True, kw_only=True)
class BoostedTrees(FittedMap):
    """A line of the score's log-odds, and a sum of small trees of the score and the covariates.

    Parameters
    ----------
    slope, intercept : float
        Of the line.
    scale : float
        What the whole change of the log-odds is multiplied by.
    edges : tuple of tuple of float
        Where the bins of each number begin.
    score_edges : tuple of tuple of float
        The same for the log-odds as they stand before trees 0, 10, 20 and so on.
    feature, left : tuple of tuple of int
        A tree each: the column that a node asks (0 the log-odds, then numbers, then levels), and the bins that go left,
        bit by bit. The children of node k are 2k + 1 and 2k + 2; leaves follow the nodes.
    value : tuple of tuple of float
        The leaves.
    """

    slope: float = 1.0
    intercept: float = 0.0
    scale: float = 1.0
    edges: Edges = ()
    score_edges: Edges = ()
    feature: tuple[tuple[int, ...], ...] = ()
    left: tuple[tuple[int, ...], ...] = ()
    value: tuple[tuple[float, ...], ...] = ()

    @property
    def trees(self) -> int:
        """How many trees."""
        return len(self.value)

    @property
    def order(self) -> Order:
        """Kept if there is no tree and the slope is above 0."""
        return "kept" if not self.value and 1.0 + self.scale * (self.slope - 1.0) > 0 else "may change"

    def check(self) -> None:
        """Raise `ValueError` if the trees are not of one shape, or ask for what is not there."""
        x, trees = inputs_of(self.codings), len(self.value)
        sound(len(self.feature) == len(self.left) == trees, "every tree needs features, sides and values")
        if not trees:
            return
        nodes = len(self.feature[0])
        sound(nodes > 0 and nodes & (nodes + 1) == 0, "a tree must be full")
        same = {(len(f), len(m), len(v)) for f, m, v in zip(self.feature, self.left, self.value, strict=True)}
        sound(same == {(nodes, nodes, nodes + 1)}, "trees must be of one shape")
        sound(all(0 <= j <= x.columns for f in self.feature for j in f), "a tree asks for a column that is not there")
        sound(all(0 <= m < 1 << BINS for own in self.left for m in own), "sides must be sets of bins")
        sound(len(self.edges) == x.numbers, "every number needs edges")
        sound(len(self.score_edges) == -(-trees // ROUND), "every ten trees need edges of the score")
        sound(all(len(e) < BINS and rising(e) for e in (*self.edges, *self.score_edges)), "edges must rise, and be few")

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        from scipy.special import expit

        if not self.value and self.slope == 1.0 and self.intercept == 0.0:
            return np.array(rows.p, dtype=np.float64)
        start = logit(rows.p)
        log_odds = self.intercept + self.slope * start
        if self.value:
            codes = binned(rows.covariates, self.codings, self.edges, len(start))
            feature, left, value = np.array(self.feature), np.array(self.left, dtype=np.uint64), np.array(self.value)
            for k, cuts in enumerate(self.score_edges):
                codes[:, 0] = locate(log_odds, np.array(cuts))
                part = slice(k * ROUND, (k + 1) * ROUND)
                add_trees(codes, Tree(feature[part], left[part], value[part]), log_odds)
        return expit(start + self.scale * (log_odds - start))
