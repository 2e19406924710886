"""Small regression trees on binned columns, grown by histograms, in plain NumPy; twin of `trees`, meant to be read first.

A tree of depth D is complete: nodes 0 to 2**D - 2, the children of node k are 2k + 1 (left) and 2k + 2 (right), and the
leaves follow in the same order. A row goes left if the bit of its bin is set in the node's mask; a node that does not
split has every bit set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BINS = 52  # bins of a column, so that a mask of them is a whole number that any JSON reader keeps exactly
EVERY = (1 << BINS) - 1


def grow(
    codes: Any, ordered: Any, pull: Any, curve: Any, rows: Any, depth: int, ridge: float, least: float
) -> tuple[Any, Any, Any]:
    """Grow one tree that takes a Newton step: a leaf's value is ``sum pull / (sum curve + ridge)`` over its rows.

    Parameters
    ----------
    codes : uint8 array of shape (n, d)
        Bins, each below 52.
    ordered : bool array of shape (d,)
        Whether a column's bins have an order, so that a split is a cut; otherwise a split is any set of bins, found by
        sorting them by their own step, and bins without rows go with the heavier side.
    pull, curve : float64 arrays of shape (n,)
        Slope of the log likelihood in the log-odds, and minus its curvature.
    rows : int32 array of shape (m,)
        Rows to learn from.
    depth : int
    ridge : float
        Above 0; shrinks the leaves and penalises the gain.
    least : float
        Curvature that each side of a split must hold.

    Returns
    -------
    feature : int32 array of shape (2**depth - 1,)
    left : uint64 array of shape (2**depth - 1,)
    value : float64 array of shape (2**depth,)
    """
    nodes = (1 << depth) - 1
    feature, left = np.zeros(nodes, dtype=np.int32), np.full(nodes, EVERY, dtype=np.uint64)
    at = np.zeros(len(rows), dtype=np.int64)
    own, a, b = codes[rows], pull[rows], curve[rows]
    for level in range(depth):
        first, count = (1 << level) - 1, 1 << level
        for k in range(count):
            feature[first + k], left[first + k] = _split(own, ordered, a, b, at == k, ridge, least)
        here = own[np.arange(len(rows)), feature[first + at]].astype(np.uint64)
        at = 2 * at + 1 - ((left[first + at] >> here) & np.uint64(1)).astype(np.int64)
    sums = [np.bincount(at, v, nodes + 1) for v in (a, b)]
    return feature, left, sums[0] / (sums[1] + ridge)


def _split(own: Any, ordered: Any, a: Any, b: Any, here: Any, ridge: float, least: float) -> tuple[int, int]:
    """Return the column and the mask of the best split of one node."""
    best, found = 0.0, (0, EVERY)
    for f in range(own.shape[1]):
        g, h = (np.bincount(own[here, f], v[here], BINS) for v in (a, b))
        there = np.arange(BINS) if ordered[f] else np.flatnonzero(h > 0.0)
        order = there if ordered[f] else there[np.argsort(g[there] / (h[there] + ridge), kind="stable")]
        if not len(order):
            continue
        pull, curve = np.cumsum(g[order]), np.cumsum(h[order])
        rest, other = pull[-1] - pull, curve[-1] - curve
        gain = pull**2 / (curve + ridge) + rest**2 / (other + ridge) - pull[-1] ** 2 / (curve[-1] + ridge)
        gain = np.where((curve >= least) & (other >= least), gain, 0.0)
        t = int(np.argmax(gain))
        if gain[t] > best:
            best = float(gain[t])
            lighter = ordered[f] or curve[t] <= other[t]
            found = (f, sum(1 << int(v) for v in (order[: t + 1] if lighter else order[t + 1 :])))
    return found


def add_trees(codes: Any, feature: Any, left: Any, value: Any, out: Any) -> None:
    """Add the values of some trees to `out`, in place.

    Parameters
    ----------
    codes : uint8 array of shape (n, d)
    feature, left : int32 and uint64 arrays of shape (trees, 2**depth - 1)
    value : float64 array of shape (trees, 2**depth)
    out : float64 array of shape (n,), written
    """
    every = np.arange(len(codes))
    for f, mask, leaf in zip(feature, left, value, strict=True):
        at = np.zeros(len(codes), dtype=np.int64)
        while (at < len(f)).any():
            here = codes[every, f[at]].astype(np.uint64)
            at = 2 * at + 2 - ((mask[at] >> here) & np.uint64(1)).astype(np.int64)
        out += leaf[at - len(f)]


def slopes(log_odds: Any, y: Any, weight: Any, pull: Any, curve: Any) -> None:
    """Write the slope ``w (y - p)`` and the curvature ``w p (1 - p)`` of each row, ``p = expit(log_odds)``."""
    p = 1.0 / (1.0 + np.exp(-log_odds))
    pull[:] = weight * (y - p)
    curve[:] = weight * (p * (1.0 - p))
