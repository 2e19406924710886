"""Small regression trees on binned columns, and shifts of scores in cells of group and level."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.level_shifts_reference import cell_count
from calibrant.kernels.strata import _sealed
from calibrant.kernels.trees_reference import BINS, EVERY

# ---- Small regression trees on binned columns, compiled; twins of `trees_reference` ----

_EVERY, _ONE = np.uint64(EVERY), np.uint64(1)


@njit(cache=True, nogil=True)
def _histogram(codes: Any, pull: Any, curve: Any, rows: Any, at: Any, hist: Any) -> None:
    columns = np.uint32(codes.shape[1])
    for k in range(rows.shape[0]):
        i, node = np.uint32(rows[k]), np.uint32(at[k])
        a, b = pull[i], curve[i]
        for f in range(columns):
            c = np.uint32(codes[i, f])
            hist[node, f, c, 0] += a
            hist[node, f, c, 1] += b


@njit(cache=True, nogil=True)
def _order_of(own: Any, ordered: bool, ridge: float, order: Any, step: Any) -> int:
    """Write the order in which bins are tried, and return how many there are."""
    if ordered:
        for c in range(own.shape[0]):
            order[c] = c
        return own.shape[0]
    held = 0
    for c in range(own.shape[0]):
        if own[c, 1] > 0.0:
            s = own[c, 0] / (own[c, 1] + ridge)
            j = held
            while j > 0 and step[j - 1] > s:
                step[j], order[j] = step[j - 1], order[j - 1]
                j -= 1
            step[j], order[j] = s, c
            held += 1
    return held


@njit(cache=True, nogil=True)
def _split(hist: Any, ordered: Any, ridge: float, least: float, order: Any, step: Any) -> Any:
    """Return the column and the mask of the best split of one node's histogram."""
    best, column, mask = 0.0, 0, _EVERY
    for f in range(hist.shape[0]):
        own = hist[f]
        held = _order_of(own, ordered[f], ridge, order, step)
        g, h = 0.0, 0.0
        for j in range(held):
            g += own[order[j], 0]
            h += own[order[j], 1]
        base = g**2 / (h + ridge)
        a, b, where, light = 0.0, 0.0, -1, True
        for j in range(held):
            a += own[order[j], 0]
            b += own[order[j], 1]
            rest, other = g - a, h - b
            if b >= least and other >= least:
                gain = a**2 / (b + ridge) + rest**2 / (other + ridge) - base
                if gain > best:
                    best, where, light = gain, j, ordered[f] or b <= other
        if where >= 0:
            column, mask = f, np.uint64(0)
            for j in range(held):
                if (j <= where) == light:
                    mask |= _ONE << np.uint64(order[j])
    return column, mask


@njit(cache=True, nogil=True)
def _grow(
    codes: Any,
    ordered: Any,
    pull: Any,
    curve: Any,
    rows: Any,
    depth: int,
    ridge: float,
    least: float,
    at: Any,
    feature: Any,
    left: Any,
    value: Any,
) -> None:
    order, step = np.empty(BINS, np.int64), np.empty(BINS)
    for level in range(depth):
        first, count = (1 << level) - 1, 1 << level
        hist = np.zeros((count, codes.shape[1], BINS, 2))
        _histogram(codes, pull, curve, rows, at, hist)
        for k in range(count):
            feature[first + k], left[first + k] = _split(hist[k], ordered, ridge, least, order, step)
        for k in range(rows.shape[0]):
            node = first + at[k]
            bit = (left[node] >> np.uint64(codes[rows[k], feature[node]])) & _ONE
            at[k] = 2 * at[k] + 1 - np.int64(bit)
    total = np.zeros((value.shape[0], 2))
    for k in range(rows.shape[0]):
        total[at[k], 0] += pull[rows[k]]
        total[at[k], 1] += curve[rows[k]]
    for leaf in range(value.shape[0]):
        value[leaf] = total[leaf, 0] / (total[leaf, 1] + ridge)


@njit(cache=True, nogil=True)
def _add_trees(codes: Any, feature: Any, left: Any, value: Any, out: Any) -> None:
    nodes = feature.shape[1]
    for i in range(codes.shape[0]):
        total = out[i]
        for t in range(feature.shape[0]):
            at = np.uint32(0)
            while at < nodes:
                bit = (left[t, at] >> np.uint64(codes[i, feature[t, at]])) & _ONE
                at = np.uint32(2) * at + np.uint32(2) - np.uint32(bit)
            total += value[t, at - np.uint32(nodes)]
        out[i] = total


@njit(cache=True, nogil=True)
def _slopes(log_odds: Any, y: Any, weight: Any, pull: Any, curve: Any) -> None:
    for i in range(log_odds.shape[0]):
        p = 1.0 / (1.0 + math.exp(-log_odds[i]))
        pull[i] = weight[i] * (y[i] - p)
        curve[i] = weight[i] * (p * (1.0 - p))


def grow(
    codes: Any, ordered: Any, pull: Any, curve: Any, rows: Any, depth: int, ridge: float, least: float
) -> tuple[Any, Any, Any]:
    """Grow one tree; see `trees_reference.grow`."""
    nodes = (1 << depth) - 1
    feature, left = np.zeros(nodes, dtype=np.int32), np.full(nodes, EVERY, dtype=np.uint64)
    value, at = np.empty(nodes + 1), np.zeros(len(rows), dtype=np.int32)
    _grow(
        _sealed(codes, np.uint8),
        _sealed(ordered, np.bool_),
        _sealed(pull, np.float64),
        _sealed(curve, np.float64),
        _sealed(rows, np.int32),
        int(depth),
        float(ridge),
        float(least),
        at,
        feature,
        left,
        value,
    )
    return feature, left, value


def add_trees(codes: Any, feature: Any, left: Any, value: Any, out: Any) -> None:
    """Add the values of some trees to `out`; see `trees_reference.add_trees`."""
    _add_trees(
        _sealed(codes, np.uint8), _sealed(feature, np.int32), _sealed(left, np.uint64), _sealed(value, np.float64), out
    )


def slopes(log_odds: Any, y: Any, weight: Any, pull: Any, curve: Any) -> None:
    """Write slopes and curvatures; see `trees_reference.slopes`."""
    _slopes(_sealed(log_odds, np.float64), _sealed(y, np.int8), _sealed(weight, np.float64), pull, curve)


# ---- Sums and shifts of scores in cells (group x level of the score), compiled; twins of ----


@njit(cache=True, nogil=True, inline="always")
def _cell(codes: Any, i: int, first: int, second: int, score: float, levels: int) -> Any:
    key = np.int64(codes[i, first]) * BINS if first >= 0 else np.int64(0)
    key += np.int64(codes[i, second]) if second >= 0 else np.int64(0)
    level: Any = min(np.int64(score * levels), levels - 1)
    return np.uint64(key * levels + level)


@njit(cache=True, nogil=True)
def _sums(codes: Any, first: int, second: int, y: Any, p: Any, weight: Any, levels: int, out: Any) -> None:
    for i in range(p.shape[0]):
        c = _cell(codes, i, first, second, p[i], levels)
        out[c, 0] += weight[i]
        out[c, 1] += weight[i] * y[i]
        out[c, 2] += weight[i] * p[i]


@njit(cache=True, nogil=True)
def _shift(codes: Any, first: int, second: int, by: Any, levels: int, p: Any) -> None:
    for i in range(p.shape[0]):
        s = p[i] + by[_cell(codes, i, first, second, p[i], levels)]
        p[i] = min(max(s, 0.0), 1.0)


def cell_sums(codes: Any, first: int, second: int, y: Any, p: Any, weight: Any, levels: int) -> Any:
    """Return sums a cell; see `level_shifts_reference.cell_sums`."""
    out = np.zeros((cell_count(first, second, levels), 3))
    _sums(
        _sealed(codes, np.uint8),
        int(first),
        int(second),
        _sealed(y, np.int8),
        _sealed(p, np.float64),
        _sealed(weight, np.float64),
        int(levels),
        out,
    )
    return out


def shift(codes: Any, first: int, second: int, by: Any, levels: int, p: Any) -> None:
    """Shift scores in place; see `level_shifts_reference.shift`."""
    _shift(_sealed(codes, np.uint8), int(first), int(second), _sealed(by, np.float64), int(levels), p)
