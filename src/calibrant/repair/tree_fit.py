"""A small tree of variables, the beta curves of its nodes, and how deep it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.data.coding import Coding, Encoded
from calibrant.data.predictions import Predictions
from calibrant.repair.augmented import coefficients, score_columns
from calibrant.repair.branches import leaf_of, tree_inputs
from calibrant.repair.fitting import logistic_fit, targets
from calibrant.repair.inputs import Edges
from calibrant.repair.shrinkage import FOLDS, Trial, fitted, losses, paired

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
