"""Small trees: those of `calibrant.kernels.trees`, to rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import trees as t

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def gradients(log_odds: Floats, y: NDArray[np.int8], weight: Floats, gradient: Floats, hessian: Floats) -> None:
    """Write the gradient and minus the hessian of the log likelihood of each row."""
    with np.errstate(over="ignore"):
        p = 1.0 / (1.0 + np.exp(-log_odds))
    gradient[:] = weight * (y - p)
    hessian[:] = weight * (p * (1.0 - p))


def grow(columns: t.Columns, sums: tuple[Floats, Floats], rows: t.Rows, rule: t.Rule, tree: t.Tree) -> None:
    """Write a tree that takes a Newton step: a level at a time, all nodes and columns together."""
    codes, (a, b) = columns.codes[rows].astype(np.int64), (v[rows] for v in sums)
    d, every = codes.shape[1], np.arange(len(rows))
    at = np.zeros(len(rows), dtype=np.int64)
    for level in range(rule.depth):
        # (1) Sums of each bin of each column in each node
        first, count = (1 << level) - 1, 1 << level
        place = ((at[:, None] * d + np.arange(d)) * t.BINS + codes).ravel()
        hist: Floats = np.stack([np.bincount(place, np.repeat(v, d), count * d * t.BINS) for v in (a, b)], axis=1)
        feature, left = _splits(np.reshape(hist, (count, d, t.BINS, 2)), columns.ordered, rule)
        # (2) Rows go to one side of their node's split
        tree.feature[first : first + count], tree.left[first : first + count] = feature, left
        bins = codes[every, feature[at]].astype(np.uint64)
        at = 2 * at + 1 - ((left[at] >> bins) & np.uint64(1)).astype(np.int64)
    total = [np.bincount(at, v, len(tree.value)) for v in (a, b)]
    tree.value[:] = total[0] / (total[1] + rule.ridge)


def _splits(hist: Floats, ordered: NDArray[np.bool_], rule: t.Rule) -> tuple[Ints, t.Masks]:
    """The column and the mask of the best split of each node."""
    g, h = hist[..., 0], hist[..., 1]
    # (1) The order in which bins are tried: their own, or that of their step, those without rows last
    step = np.where(h > 0.0, g / (h + rule.ridge), np.inf)
    key = np.where(ordered[:, None], np.arange(t.BINS), step)
    order = np.argsort(key, axis=2, kind="stable")
    kept = np.where(ordered, t.BINS, (h > 0.0).sum(axis=2))
    # (2) What each cut gains
    a, b = (np.cumsum(np.take_along_axis(v, order, axis=2), axis=2) for v in (g, h))
    rest, other = a[..., -1:] - a, b[..., -1:] - b
    base = a[..., -1:] ** 2 / (b[..., -1:] + rule.ridge)
    gain = a**2 / (b + rule.ridge) + rest**2 / (other + rule.ridge) - base
    may = (b >= rule.least) & (other >= rule.least) & (np.arange(t.BINS) < kept[..., None])
    gain = np.where(may, gain, 0.0).reshape(len(hist), -1)
    # (3) The first of the best
    best = gain.argmax(axis=1)
    feature, left = np.zeros(len(hist), dtype=np.int64), np.full(len(hist), t.EVERY, dtype=np.uint64)
    for node in np.flatnonzero(gain.max(axis=1) > 0.0).tolist():
        f, where = divmod(int(best[node]), t.BINS)
        lighter = ordered[f] or b[node, f, where] <= other[node, f, where]
        own = order[node, f, : kept[node, f]]
        side = own[: where + 1] if lighter else own[where + 1 :]
        feature[node], left[node] = f, np.bitwise_or.reduce(np.uint64(1) << side.astype(np.uint64))
    return feature, left


def add_trees(codes: t.Codes, trees: t.Tree, out: Floats) -> None:
    """Add the values of some trees to `out`, in place."""
    every, nodes = np.arange(len(codes)), trees.feature.shape[1]
    for f, left, value in zip(trees.feature, trees.left, trees.value, strict=True):
        at = np.zeros(len(codes), dtype=np.int64)
        for _ in range((nodes + 1).bit_length() - 1):
            bins = codes[every, f[at]].astype(np.uint64)
            at = 2 * at + 2 - ((left[at] >> bins) & np.uint64(1)).astype(np.int64)
        out += value[at - nodes]


def _cells_of(codes: t.Codes, by: t.Grouping, p: Floats) -> Ints:
    key = np.zeros(len(p), dtype=np.int64)
    for column in (by.first, by.second):
        key = key * t.BINS + (codes[:, column] if column >= 0 else 0)
    return key * by.levels + np.minimum((p * by.levels).astype(np.int64), by.levels - 1)


def cell_sums(codes: t.Codes, by: t.Grouping, y: NDArray[np.int8], p: Floats, weight: Floats) -> Floats:
    """Return sums of weights, weighted outcomes and weighted scores."""
    at = _cells_of(codes, by, p)
    return np.stack([np.bincount(at, v, by.cells) for v in (weight, weight * y, weight * p)], axis=1)


def gap(codes: t.Codes, by: t.Grouping, table: Floats, p: Floats) -> None:
    """Add each row's entry of a table to its score, in place, and clip."""
    p[:] = np.clip(p + table[_cells_of(codes, by, p)], 0.0, 1.0)
