"""Sums in bins of the score and in cells along a variable: those of `calibrant.kernels.strata`, to rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.strata import Typed
from calibrant.kernels.tally import fixed_point

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
Cells = NDArray[np.int32]
Ints = NDArray[np.int64]


def _ones_or(value: Floats, n: int) -> Floats:
    """Return what was given, or ones where it is empty."""
    return value if len(value) else np.ones(n)


def _counted(at: Ints | Cells, columns: tuple[Floats, ...], cells: int) -> Floats:
    return np.stack([np.bincount(at, column, cells) for column in columns], axis=1)


def bin_sums(p: Floats, y: Labels, inputs: tuple[Floats, Floats], edges: Floats, bins: int) -> Floats:
    """Return six sums for each bin; given are rows and weights, empty for ones."""
    f, w = (_ones_or(v, len(p)) for v in inputs)
    b = np.searchsorted(edges, p, side="right") if len(edges) else np.minimum((p * bins).astype(np.int64), bins - 1)
    weight = f * w
    residual = y - p
    return _counted(b, (f, weight, weight * y, weight * p, weight * w * residual * residual, weight * w), bins)


def spread(p: Floats, y: Labels, inputs: tuple[Floats, Floats], steps: int) -> Floats:
    """Return three sums for each of the points ``0, 1/steps, ..., 1``; given are rows and weights, empty for ones."""
    f, w = (_ones_or(v, len(p)) for v in inputs)
    at = p * steps
    j = np.minimum(at.astype(np.int64), steps - 1)
    share, r = at - j, w * (y - p)
    low, high = (np.bincount(k, f * r * part, steps + 1) for k, part in ((j, 1.0 - share), (j + 1, share)))
    near = j + (share + 0.5).astype(np.int64)
    squares = _counted(near, (f * r * r, f * w * w), steps + 1)
    return np.column_stack([low + high, squares])


def locate(x: Floats, edges: Floats) -> Cells:
    """The number of edges at or below each value; one more than there are edges for NaN."""
    at = np.searchsorted(edges, x, side="right")
    return np.where(np.isnan(x), len(edges) + 1, at).astype(np.int32)


def strata_sums(cell: Cells, cells: int, y: Labels, seen: Typed, x: Floats) -> Floats:
    """Return eight sums a cell."""
    p, w = seen.p, _ones_or(seen.weight, len(seen.p))
    s, hit = p, y.astype(np.float64)
    if seen.confidence:
        turned = p < 0.5
        s, hit = np.where(turned, 1.0 - p, p), np.where(turned, 1.0 - hit, hit)
    residual, square = w * (hit - s), w * w
    place = x if len(x) else np.zeros(len(p))
    columns = (np.ones(len(p)), w, square, w * hit, w * s, square * s * (1.0 - s), residual * residual, place)
    return _counted(cell, columns, cells)


def power_sums(residual: Floats, at: Ints, size: int) -> Floats:
    """Return sums of ``r^0`` to ``r^4`` at each place."""
    square = residual * residual
    columns = np.ones(len(residual)), residual, square, square * residual, square * square
    return _counted(at, columns, size)


def fine_sums(cell: Cells, x: Floats, ends: Floats, p: Floats, y: Labels, out: Ints) -> None:
    """Add rows to four integer sums per cell, side of the score and label."""
    q = fixed_point(p)
    place = np.zeros(len(q), dtype=np.int64)
    if len(x):
        known = np.flatnonzero(cell < len(ends) - 1)
        low, high = ends[cell[known]], ends[cell[known] + 1]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = np.where(high > low, (x[known] - low) / (high - low), 0.0)
        share = np.where(share > 0.0, share, 0.0)  # not a number, of ends that are infinite, too
        place[known] = (np.minimum(share, 1.0) * 65535.0).astype(np.int64)
    at = cell, q >> 29, y.astype(np.int64)
    for k, value in enumerate((np.ones_like(q), q, (q >> 14) ** 2, place)):
        np.add.at(out[..., k], at, value)
