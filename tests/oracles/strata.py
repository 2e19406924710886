"""Sums in bins of the score and in cells along a variable, in plain NumPy: slow, short, and meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import Draws
from calibrant.kernels.strata import Seen
from oracles.draws import outcomes

Array = NDArray[Any]


def bin_sums(p: Array, y: Array, count: Array | None, weight: Array | None, edges: Array | None, bins: int) -> Array:
    """Each column counted by bin."""
    f = np.ones(len(p)) if count is None else np.asarray(count, dtype=float)
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=float)
    if edges is None:
        b = np.minimum((np.asarray(p) * bins).astype(np.int64), bins - 1)
    else:
        b = np.searchsorted(edges, p, side="right")
    columns = (f, f * w, f * w * y, f * w * p, f * w**2 * (y - p) ** 2, f * w**2)
    return np.stack([np.bincount(b, c, bins) for c in columns], axis=1)


def spread(p: Array, y: Array, count: Array | None, weight: Array | None, steps: int) -> Array:
    """Residuals shared between two points, squares at the nearer one."""
    f = np.ones(len(p)) if count is None else np.asarray(count, dtype=float)
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=float)
    at = np.asarray(p) * steps
    j = np.minimum(at.astype(np.int64), steps - 1)
    share, r = at - j, w * (y - p)
    residual = np.bincount(j, f * r * (1 - share), steps + 1) + np.bincount(j + 1, f * r * share, steps + 1)
    near = j + (share + 0.5).astype(np.int64)
    return np.stack([residual, np.bincount(near, f * r**2, steps + 1), np.bincount(near, f * w**2, steps + 1)], axis=1)


def locate(x: Array, edges: Array) -> Array:
    """NumPy's own search."""
    return np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x, side="right")).astype(np.int32)


def strata_sums(cell: Array, cells: int, y: Array, seen: Seen, x: Array | None = None) -> Array:
    """Each column counted by cell."""
    p = np.asarray(seen.p)
    w = np.ones(len(p)) if seen.weight is None else np.asarray(seen.weight, dtype=float)
    turned = (p < 0.5) & seen.confidence
    hit, s = np.where(turned, 1.0 - y, y), np.where(turned, 1.0 - p, p)
    at = np.zeros(len(p)) if x is None else x
    columns = (np.ones(len(p)), w, w**2, w * hit, w * s, w**2 * s * (1.0 - s), w**2 * (hit - s) ** 2, at)
    return np.stack([np.bincount(cell, c, cells) for c in columns], axis=1)


def null_sums(ids: Array, cell: Array, cells: int, seen: Seen, draws: Draws) -> Array:
    """All outcomes, added at their cells."""
    hit = outcomes(ids, seen.p, draws.first, draws.count, draws.salt).astype(float)
    hit = np.where((np.asarray(seen.p) < 0.5)[:, None] & seen.confidence, 1.0 - hit, hit)
    out = np.zeros((cells, draws.count))
    np.add.at(out, cell, hit if seen.weight is None else hit * np.asarray(seen.weight)[:, None])
    return out


def power_sums(residual: Array, cell: Array, block: Array, cells: int, blocks: int) -> Array:
    """Each power counted by block and cell."""
    at = np.asarray(block, dtype=np.int64) * cells + cell
    columns = [np.bincount(at, np.asarray(residual) ** k, blocks * cells) for k in range(5)]
    return np.stack(columns, axis=1).reshape(blocks, cells, 5)


def fine_sums(cell: Array, x: Array | None, ends: Array | None, p: Array, y: Array, out: Array) -> None:
    """Whole numbers, added at cell, side and label."""
    q = np.minimum((np.asarray(p) * 2.0**30).astype(np.int64), (1 << 30) - 1)
    place = np.zeros(len(q), dtype=np.int64)
    if x is not None and ends is not None:
        known = np.flatnonzero(cell < len(ends) - 1)
        low, high = ends[cell[known]], ends[cell[known] + 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(high > low, (x[known] - low) / (high - low), 0.0)
        place[known] = (np.clip(share, 0.0, 1.0) * 65535.0).astype(np.int64)
    at = (cell, (q >> 29).astype(np.int64), np.asarray(y).astype(np.int64))
    for field, value in enumerate((np.ones_like(q), q, (q >> 14) ** 2, place)):
        np.add.at(out[..., field], at, value)
