"""Sums of scores and outcomes by bin, and residuals spread on a grid, in plain NumPy; twins of `bins`."""

from __future__ import annotations

from typing import Any

import numpy as np


def bin_sums(p: Any, y: Any, count: Any, weight: Any, edges: Any, bins: int) -> Any:
    """Return six sums for each bin.

    Parameters
    ----------
    p, y : arrays of shape (n,)
        Scores in [0, 1] and outcomes 0 or 1.
    count, weight : arrays of shape (n,) or None
        How many rows each entry stands for, and their sampling weight; None for one.
    edges : increasing array of shape (bins - 1,) or None
        Inner edges, each bin closed on the left; None for bins of equal width.
    bins : int

    Returns
    -------
    float64 array of shape (bins, 6)
        Rows, weight, weight of cases, weighted scores, squared weighted residuals, squared weights.
    """
    f = np.ones(len(p)) if count is None else np.asarray(count, dtype=float)
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=float)
    if edges is None:
        b = np.minimum((np.asarray(p) * bins).astype(np.int64), bins - 1)
    else:
        b = np.searchsorted(edges, p, side="right")
    columns = (f, f * w, f * w * y, f * w * p, f * w**2 * (y - p) ** 2, f * w**2)
    return np.stack([np.bincount(b, c, bins) for c in columns], axis=1)


def spread(p: Any, y: Any, count: Any, weight: Any, steps: int) -> Any:
    """Return three sums for each of the points ``0, 1/steps, ..., 1``.

    Weighted residuals, each shared between the two points next to its score in proportion to nearness, so that
    mass and mean are kept; their squares, and the squared weights, at the nearer point. Shape (steps + 1, 3).
    """
    f = np.ones(len(p)) if count is None else np.asarray(count, dtype=float)
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=float)
    at = np.asarray(p) * steps
    j = np.minimum(at.astype(np.int64), steps - 1)
    share, r = at - j, w * (y - p)
    residual = np.bincount(j, f * r * (1 - share), steps + 1) + np.bincount(j + 1, f * r * share, steps + 1)
    near = j + (share + 0.5).astype(np.int64)
    return np.stack([residual, np.bincount(near, f * r**2, steps + 1), np.bincount(near, f * w**2, steps + 1)], axis=1)
