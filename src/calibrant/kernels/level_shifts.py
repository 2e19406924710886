"""Sums and shifts of scores in cells (group x level of the score), compiled; twins of `level_shifts_reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.bins import _sealed
from calibrant.kernels.level_shifts_reference import cell_count
from calibrant.kernels.trees_reference import BINS


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
