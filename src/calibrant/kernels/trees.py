"""Small regression trees on binned columns, and shifts of scores in cells of group and level.

A tree of depth D is complete: nodes 0 to 2**D - 2, the children of node k are 2k + 1 (left) and 2k + 2 (right), and the
leaves follow in the same order. A row goes left if the bit of its bin is set in the node's mask; a node that does not
split has every bit set.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.runtime import as_readonly, few, inlined, kernel

Floats = NDArray[np.float64]
Codes = NDArray[np.uint8]
Rows = NDArray[np.int32]
Masks = NDArray[np.uint64]

BINS = 52  # bins of a column, so that a mask of them is a whole number that any JSON reader keeps exactly
EVERY = (1 << BINS) - 1
_EVERY, _ONE = np.uint64(EVERY), np.uint64(1)


class Columns(NamedTuple):
    """Binned columns."""

    codes: Codes  # shape (n, d): bins, each below 52
    # Shape (d,): whether a column's bins have an order, so that a split is a cut; otherwise a split is any set of bins,
    # found by sorting them by their own step, and bins without rows go with the heavier side.
    ordered: NDArray[np.bool_]


class Rule(NamedTuple):
    """How a tree grows."""

    depth: int
    ridge: float  # above 0; shrinks the leaves and penalises the gain
    least: float  # hessian that each side of a split must hold


class Tree(NamedTuple):
    """One tree, or several along a first axis."""

    feature: NDArray[np.int32]  # shape (2**depth - 1,)
    left: Masks  # shape (2**depth - 1,): masks of the bins that go left
    value: Floats  # shape (2**depth,)


def gradients(log_odds: ArrayLike, y: ArrayLike, weight: ArrayLike, gradient: Floats, hessian: Floats) -> None:
    """Write the gradient ``w (y - p)`` of the log likelihood and minus its hessian, ``w p (1 - p)``, of each row.

    ``p = expit(log_odds)``; all arrays of shape (n,), the last two written.
    """
    write = plain_gradients if few(len(gradient), often=True) else _gradients
    write(
        as_readonly(log_odds, np.float64), as_readonly(y, np.int8), as_readonly(weight, np.float64), gradient, hessian
    )


@kernel
def _gradients(log_odds: Floats, y: NDArray[np.int8], weight: Floats, gradient: Floats, hessian: Floats) -> None:
    for i in range(log_odds.shape[0]):
        p = 1.0 / (1.0 + math.exp(-log_odds[i]))
        gradient[i] = weight[i] * (y[i] - p)
        hessian[i] = weight[i] * (p * (1.0 - p))


def grow(columns: Columns, gradient: ArrayLike, hessian: ArrayLike, rows: ArrayLike, rule: Rule) -> Tree:
    """Grow one tree that takes a Newton step: a leaf's value is ``sum gradient / (sum hessian + ridge)`` over its rows.

    `gradient`, `hessian`: float64 of shape (n,); of the log likelihood in the log-odds; the hessian's sign turned.
    `rows`: int32 of shape (m,); rows to learn from.
    """
    nodes = (1 << rule.depth) - 1
    feature, left = np.zeros(nodes, dtype=np.int32), np.full(nodes, EVERY, dtype=np.uint64)
    tree = Tree(feature, left, np.empty(nodes + 1))
    own = Columns(as_readonly(columns.codes, np.uint8), as_readonly(columns.ordered, np.bool_))
    sums = as_readonly(gradient, np.float64), as_readonly(hessian, np.float64)
    how = Rule(int(rule.depth), float(rule.ridge), float(rule.least))
    if few(np.size(rows), often=True):
        plain_grow(own, sums, as_readonly(rows, np.int32), how, tree)
    else:
        _grow(own, *sums, as_readonly(rows, np.int32), how, tree)
    return tree


@kernel
def _grow(columns: Columns, gradient: Floats, hessian: Floats, rows: Rows, rule: Rule, tree: Tree) -> None:
    codes = columns.codes
    order, step = np.empty(BINS, np.int64), np.empty(BINS)
    at = np.zeros(rows.shape[0], np.int32)
    for level in range(rule.depth):
        first, count = (1 << level) - 1, 1 << level
        hist = np.zeros((count, codes.shape[1], BINS, 2))
        for k in range(rows.shape[0]):
            i, here = np.uint32(rows[k]), np.uint32(at[k])
            a, b = gradient[i], hessian[i]
            for f in range(np.uint32(codes.shape[1])):
                c = np.uint32(codes[i, f])
                hist[here, f, c, 0] += a
                hist[here, f, c, 1] += b
        for k in range(count):
            tree.feature[first + k], tree.left[first + k] = _split(hist[k], columns.ordered, rule, order, step)
        for k in range(rows.shape[0]):
            node = first + at[k]
            bit = (tree.left[node] >> np.uint64(codes[rows[k], tree.feature[node]])) & _ONE
            at[k] = 2 * at[k] + 1 - np.int64(bit)
    total = np.zeros((tree.value.shape[0], 2))
    for k in range(rows.shape[0]):
        total[at[k], 0] += gradient[rows[k]]
        total[at[k], 1] += hessian[rows[k]]
    for leaf in range(tree.value.shape[0]):
        tree.value[leaf] = total[leaf, 0] / (total[leaf, 1] + rule.ridge)


@kernel
def _split(
    hist: Floats, ordered: NDArray[np.bool_], rule: Rule, order: NDArray[np.int64], step: Floats
) -> tuple[int, np.uint64]:
    """The column and the mask of the best split of one node's histogram."""
    best, column, mask = 0.0, 0, _EVERY
    for f in range(hist.shape[0]):
        own = hist[f]
        kept = _order_of(own, ordered[f], rule.ridge, order, step)
        g, h = 0.0, 0.0
        for j in range(kept):
            g += own[order[j], 0]
            h += own[order[j], 1]
        base = g**2 / (h + rule.ridge)
        a, b, where, light = 0.0, 0.0, -1, True
        for j in range(kept):
            a += own[order[j], 0]
            b += own[order[j], 1]
            rest, other = g - a, h - b
            if b >= rule.least and other >= rule.least:
                gain = a**2 / (b + rule.ridge) + rest**2 / (other + rule.ridge) - base
                if gain > best:
                    best, where, light = gain, j, ordered[f] or b <= other
        if where >= 0:
            column, mask = f, np.uint64(0)
            for j in range(kept):
                if (j <= where) == light:
                    mask |= _ONE << np.uint64(order[j])
    return column, mask


@kernel
def _order_of(own: Floats, ordered: bool, ridge: float, order: NDArray[np.int64], step: Floats) -> int:
    """Write the order in which bins are tried, and return how many there are."""
    if ordered:
        for c in range(own.shape[0]):
            order[c] = c
        return own.shape[0]
    kept = 0
    for c in range(own.shape[0]):
        if own[c, 1] > 0.0:
            s = own[c, 0] / (own[c, 1] + ridge)
            j = kept
            while j > 0 and step[j - 1] > s:  # insertion keeps ties in order
                step[j], order[j] = step[j - 1], order[j - 1]
                j -= 1
            step[j], order[j] = s, c
            kept += 1
    return kept


def add_trees(codes: ArrayLike, trees: Tree, out: Floats) -> None:
    """Add the values of some trees to `out`, of shape (n,), in place; `codes` as in `Columns`."""
    feature, left = as_readonly(trees.feature, np.int32), as_readonly(trees.left, np.uint64)
    add = plain_add_trees if few(len(out), often=True) else _add_trees
    add(as_readonly(codes, np.uint8), Tree(feature, left, as_readonly(trees.value, np.float64)), out)


@kernel
def _add_trees(codes: Codes, trees: Tree, out: Floats) -> None:
    nodes = trees.feature.shape[1]
    for i in range(codes.shape[0]):
        total = out[i]
        for t in range(trees.feature.shape[0]):
            at = np.uint32(0)
            while at < nodes:
                bit = (trees.left[t, at] >> np.uint64(codes[i, trees.feature[t, at]])) & _ONE
                at = np.uint32(2) * at + np.uint32(2) - np.uint32(bit)
            total += trees.value[t, at - np.uint32(nodes)]
        out[i] = total


# ---- Sums and shifts of scores in cells: group x level of the score ----


class Grouping(NamedTuple):
    """Cells of one binned column, of a pair of them, or of everyone, times levels of the score.

    The cell of a row is ``(first bin * 52 + second bin) * levels + level``, its level the whole part of ``p * levels``,
    at most ``levels - 1``; -1 stands for no column.
    """

    first: int
    second: int
    levels: int

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.levels * (BINS * BINS if self.first >= 0 else BINS if self.second >= 0 else 1)


def cell_sums(codes: ArrayLike, by: Grouping, y: ArrayLike, p: ArrayLike, weight: ArrayLike) -> Floats:
    """Sums of weights, weighted outcomes and weighted scores.

    `codes`: uint8 of shape (n, d). `y`, `p`, `weight`: arrays of shape (n,). Returned: float64 of shape (cells, 3).
    """
    rows = as_readonly(y, np.int8), as_readonly(p, np.float64), as_readonly(weight, np.float64)
    if few(len(rows[0]), often=True):
        return plain_cell_sums(as_readonly(codes, np.uint8), Grouping(*map(int, by)), *rows)
    out = np.zeros((by.cells, 3))
    _cell_sums(as_readonly(codes, np.uint8), Grouping(*map(int, by)), *rows, out)
    return out


def gap(codes: ArrayLike, by: Grouping, table: ArrayLike, p: Floats) -> None:
    """Add each row's entry of `table`, a number a cell, to its score, in place, and clip to [0, 1]."""
    move = plain_gap if few(len(p), often=True) else _gap
    move(as_readonly(codes, np.uint8), Grouping(*map(int, by)), as_readonly(table, np.float64), p)


@inlined
def _cell(codes: Codes, i: int, by: Grouping, score: float) -> np.uint64:
    key = np.int64(codes[i, by.first]) * BINS if by.first >= 0 else np.int64(0)
    key += np.int64(codes[i, by.second]) if by.second >= 0 else np.int64(0)
    level = min(int(score * by.levels), by.levels - 1)
    return np.uint64(key * by.levels + level)


@kernel
def _cell_sums(codes: Codes, by: Grouping, y: NDArray[np.int8], p: Floats, weight: Floats, out: Floats) -> None:
    for i in range(p.shape[0]):
        c = _cell(codes, i, by, p[i])
        out[c, 0] += weight[i]
        out[c, 1] += weight[i] * y[i]
        out[c, 2] += weight[i] * p[i]


@kernel
def _gap(codes: Codes, by: Grouping, table: Floats, p: Floats) -> None:
    for i in range(p.shape[0]):
        s = p[i] + table[_cell(codes, i, by, p[i])]
        p[i] = min(max(s, 0.0), 1.0)


# ---- the same in NumPy, for few rows ----

Ints = NDArray[np.int64]


def plain_gradients(log_odds: Floats, y: NDArray[np.int8], weight: Floats, gradient: Floats, hessian: Floats) -> None:
    """Write the gradient and minus the hessian of the log likelihood of each row."""
    with np.errstate(over="ignore"):
        p = 1.0 / (1.0 + np.exp(-log_odds))
    gradient[:] = weight * (y - p)
    hessian[:] = weight * (p * (1.0 - p))


def plain_grow(columns: Columns, sums: tuple[Floats, Floats], rows: Rows, rule: Rule, tree: Tree) -> None:
    """Write a tree that takes a Newton step: a level at a time, all nodes and columns together."""
    codes, (a, b) = columns.codes[rows].astype(np.int64), (v[rows] for v in sums)
    d, every = codes.shape[1], np.arange(len(rows))
    at = np.zeros(len(rows), dtype=np.int64)
    for level in range(rule.depth):
        # (1) Sums of each bin of each column in each node
        first, count = (1 << level) - 1, 1 << level
        place = ((at[:, None] * d + np.arange(d)) * BINS + codes).ravel()
        hist: Floats = np.stack([np.bincount(place, np.repeat(v, d), count * d * BINS) for v in (a, b)], axis=1)
        feature, left = _splits(np.reshape(hist, (count, d, BINS, 2)), columns.ordered, rule)
        # (2) Rows go to one side of their node's split
        tree.feature[first : first + count], tree.left[first : first + count] = feature, left
        bins = codes[every, feature[at]].astype(np.uint64)
        at = 2 * at + 1 - ((left[at] >> bins) & np.uint64(1)).astype(np.int64)
    total = [np.bincount(at, v, len(tree.value)) for v in (a, b)]
    tree.value[:] = total[0] / (total[1] + rule.ridge)


def _splits(hist: Floats, ordered: NDArray[np.bool_], rule: Rule) -> tuple[Ints, Masks]:
    """The column and the mask of the best split of each node."""
    g, h = hist[..., 0], hist[..., 1]
    # (1) The order in which bins are tried: their own, or that of their step, those without rows last
    step = np.where(h > 0.0, g / (h + rule.ridge), np.inf)
    key = np.where(ordered[:, None], np.arange(BINS), step)
    order = np.argsort(key, axis=2, kind="stable")
    kept = np.where(ordered, BINS, (h > 0.0).sum(axis=2))
    # (2) What each cut gains
    a, b = (np.cumsum(np.take_along_axis(v, order, axis=2), axis=2) for v in (g, h))
    rest, other = a[..., -1:] - a, b[..., -1:] - b
    base = a[..., -1:] ** 2 / (b[..., -1:] + rule.ridge)
    gain = a**2 / (b + rule.ridge) + rest**2 / (other + rule.ridge) - base
    may = (b >= rule.least) & (other >= rule.least) & (np.arange(BINS) < kept[..., None])
    gain = np.where(may, gain, 0.0).reshape(len(hist), -1)
    # (3) The first of the best
    best = gain.argmax(axis=1)
    feature, left = np.zeros(len(hist), dtype=np.int64), np.full(len(hist), EVERY, dtype=np.uint64)
    for node in np.flatnonzero(gain.max(axis=1) > 0.0).tolist():
        f, where = divmod(int(best[node]), BINS)
        lighter = ordered[f] or b[node, f, where] <= other[node, f, where]
        own = order[node, f, : kept[node, f]]
        side = own[: where + 1] if lighter else own[where + 1 :]
        feature[node], left[node] = f, np.bitwise_or.reduce(np.uint64(1) << side.astype(np.uint64))
    return feature, left


def plain_add_trees(codes: Codes, trees: Tree, out: Floats) -> None:
    """Add the values of some trees to `out`, in place."""
    every, nodes = np.arange(len(codes)), trees.feature.shape[1]
    for f, left, value in zip(trees.feature, trees.left, trees.value, strict=True):
        at = np.zeros(len(codes), dtype=np.int64)
        for _ in range((nodes + 1).bit_length() - 1):
            bins = codes[every, f[at]].astype(np.uint64)
            at = 2 * at + 2 - ((left[at] >> bins) & np.uint64(1)).astype(np.int64)
        out += value[at - nodes]


def _cells_of(codes: Codes, by: Grouping, p: Floats) -> Ints:
    key = np.zeros(len(p), dtype=np.int64)
    for column in (by.first, by.second):
        key = key * BINS + (codes[:, column] if column >= 0 else 0)
    return key * by.levels + np.minimum((p * by.levels).astype(np.int64), by.levels - 1)


def plain_cell_sums(codes: Codes, by: Grouping, y: NDArray[np.int8], p: Floats, weight: Floats) -> Floats:
    """Sums of weights, weighted outcomes and weighted scores."""
    at = _cells_of(codes, by, p)
    return np.stack([np.bincount(at, v, by.cells) for v in (weight, weight * y, weight * p)], axis=1)


def plain_gap(codes: Codes, by: Grouping, table: Floats, p: Floats) -> None:
    """Add each row's entry of a table to its score, in place, and clip."""
    p[:] = np.clip(p + table[_cells_of(codes, by, p)], 0.0, 1.0)
