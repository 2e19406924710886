"""Small trees and shifts in cells, in plain NumPy: slow, short, and meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.trees import BINS, EVERY, Columns, Grouping, Rule, Tree

Array = NDArray[Any]


def gradients(log_odds: Array, y: Array, weight: Array, gradient: Array, hessian: Array) -> None:
    """The formulas."""
    p = 1.0 / (1.0 + np.exp(-log_odds))
    gradient[:] = weight * (y - p)
    hessian[:] = weight * (p * (1.0 - p))


def grow(columns: Columns, gradient: Array, hessian: Array, rows: Array, rule: Rule) -> Tree:
    """A level at a time, each node by itself."""
    nodes = (1 << rule.depth) - 1
    feature, left = np.zeros(nodes, dtype=np.int32), np.full(nodes, EVERY, dtype=np.uint64)
    at = np.zeros(len(rows), dtype=np.int64)
    own, a, b = columns.codes[rows], gradient[rows], hessian[rows]
    for level in range(rule.depth):
        first, count = (1 << level) - 1, 1 << level
        for k in range(count):
            here = at == k
            feature[first + k], left[first + k] = split(Columns(own[here], columns.ordered), a[here], b[here], rule)
        bins = own[np.arange(len(rows)), feature[first + at]].astype(np.uint64)
        at = 2 * at + 1 - ((left[first + at] >> bins) & np.uint64(1)).astype(np.int64)
    sums = [np.bincount(at, v, nodes + 1) for v in (a, b)]
    return Tree(feature, left, sums[0] / (sums[1] + rule.ridge))


def split(columns: Columns, a: Array, b: Array, rule: Rule) -> tuple[int, int]:
    """Return the column and the mask of the best split of one node's rows."""
    best, found = 0.0, (0, EVERY)
    for f, ordered in enumerate(columns.ordered):
        g, h = (np.bincount(columns.codes[:, f], v, BINS) for v in (a, b))
        there = np.arange(BINS) if ordered else np.flatnonzero(h > 0.0)
        order = there if ordered else there[np.argsort(g[there] / (h[there] + rule.ridge), kind="stable")]
        if not len(order):
            continue
        one, two = np.cumsum(g[order]), np.cumsum(h[order])
        rest, other = one[-1] - one, two[-1] - two
        gain = one**2 / (two + rule.ridge) + rest**2 / (other + rule.ridge) - one[-1] ** 2 / (two[-1] + rule.ridge)
        gain = np.where((two >= rule.least) & (other >= rule.least), gain, 0.0)
        t = int(np.argmax(gain))
        if gain[t] > best:
            best = float(gain[t])
            lighter = ordered or two[t] <= other[t]
            found = (f, sum(1 << int(v) for v in (order[: t + 1] if lighter else order[t + 1 :])))
    return found


def add_trees(codes: Array, trees: Tree, out: Array) -> None:
    """Every row walked down each tree."""
    every = np.arange(len(codes))
    for f, mask, leaf in zip(*trees, strict=True):
        at = np.zeros(len(codes), dtype=np.int64)
        while (at < len(f)).any():
            here = codes[every, f[at]].astype(np.uint64)
            at = 2 * at + 2 - ((mask[at] >> here) & np.uint64(1)).astype(np.int64)
        out += leaf[at - len(f)]


def cells_of(codes: Array, by: Grouping, p: Array) -> Array:
    """Return the cell of each row, int64."""
    key = np.zeros(len(p), dtype=np.int64)
    for column in (by.first, by.second):
        key = key * BINS + (codes[:, column] if column >= 0 else 0)
    return key * by.levels + np.minimum((p * by.levels).astype(np.int64), by.levels - 1)


def cell_sums(codes: Array, by: Grouping, y: Array, p: Array, weight: Array) -> Array:
    """Each column counted by cell."""
    cell = cells_of(codes, by, p)
    return np.stack([np.bincount(cell, v, by.cells) for v in (weight, weight * y, weight * p)], axis=1)


def gap(codes: Array, by: Grouping, table: Array, p: Array) -> None:
    """Looked up, added, clipped."""
    p[:] = np.clip(p + table[cells_of(codes, by, p)], 0.0, 1.0)
