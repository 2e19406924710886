"""Sums and shifts of scores in cells (group x level of the score), in plain NumPy; twin of `level_shifts`.

A grouping is one binned column, a pair of them, or everyone; -1 stands for no column. The cell of a row is
``(first bin * 52 + second bin) * levels + level``, its level the whole part of ``p * levels``, at most ``levels - 1``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.trees_reference import BINS


def cells_of(codes: Any, first: int, second: int, p: Any, levels: int) -> Any:
    """Return the cell of each row, int64."""
    key = np.zeros(len(p), dtype=np.int64)
    for column in (first, second):
        key = key * BINS + (codes[:, column] if column >= 0 else 0)
    return key * levels + np.minimum((p * levels).astype(np.int64), levels - 1)


def cell_count(first: int, second: int, levels: int) -> int:
    """Return how many cells a grouping has."""
    top = BINS * BINS if first >= 0 else BINS if second >= 0 else 1
    return top * levels


def cell_sums(codes: Any, first: int, second: int, y: Any, p: Any, weight: Any, levels: int) -> Any:
    """Return sums of weights, weighted outcomes and weighted scores.

    Parameters
    ----------
    codes : uint8 array of shape (n, d)
    first, second : int
        Columns of the grouping, or -1.
    y, p, weight : arrays of shape (n,)
    levels : int

    Returns
    -------
    float64 array of shape (cells, 3)
    """
    cell = cells_of(codes, first, second, p, levels)
    cells = cell_count(first, second, levels)
    return np.stack([np.bincount(cell, v, cells) for v in (weight, weight * y, weight * p)], axis=1)


def shift(codes: Any, first: int, second: int, by: Any, levels: int, p: Any) -> None:
    """Add each row's entry of `by`, a number a cell, to its score, in place, and clip to [0, 1]."""
    p[:] = np.clip(p + by[cells_of(codes, first, second, p, levels)], 0.0, 1.0)
