"""Integer features of score and covariates, compiled; twin of `features_reference`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels import features_reference as reference
from calibrant.kernels.features_reference import PER_UNIT


@njit(cache=True, nogil=True)
def _bells(cross: Any, own: Any, marks: Any, scale: Any, table: Any) -> None:
    last = table.shape[0] - 1.0
    for i in range(cross.shape[0]):
        for j in range(cross.shape[1]):
            squared = own[i] + marks[j] - 2.0 * cross[i, j]
            cross[i, j] = table[np.uint64(min(squared * scale, last))]


@njit(cache=True, nogil=True)
def _looked_up(cells: Any, table: Any, first: Any, start: Any, out: Any) -> None:
    for j in range(cells.shape[1]):
        to, width, base = np.uint64(start[j]), np.uint64(start[j + 1] - start[j]), np.uint64(first[j])
        for i in range(cells.shape[0]):
            at = base + np.uint64(cells[i, j]) * width
            for k in range(width):
                out[i, to + k] = table[at + k]


@cache
def _table() -> Any:
    table = reference.bell_table()
    table.flags.writeable = False
    return table


def bells(points: Any, marks: Any, scale: float) -> Any:
    """Return a Gaussian bell of the distances between whole coordinates; see `features_reference.bells`."""
    cross = np.ascontiguousarray(points @ marks.T)
    own, theirs = (np.ascontiguousarray((a * a).sum(axis=1)) for a in (points, marks))
    _bells(cross, own, theirs, float(scale) * PER_UNIT, _table())
    return cross


class Tables:
    """Functions of single coordinates, tabulated one after the other.

    Parameters
    ----------
    tables : sequence of int16 arrays of shape (CELLS, functions)
    start : int
        Column of the first function.
    """

    def __init__(self, tables: Any, start: int) -> None:
        flat = [np.ascontiguousarray(t, dtype=np.int16).reshape(-1) for t in tables]
        self._flat = np.concatenate(flat) if flat else np.zeros(0, dtype=np.int16)
        self._first = np.cumsum([0, *(len(t) for t in flat)])[:-1].astype(np.int64)
        self._start = np.cumsum([start, *(t.shape[1] for t in tables)]).astype(np.int64)
        for array in (self._flat, self._first, self._start):
            array.flags.writeable = False

    def write(self, cells: Any, out: Any) -> None:
        """Write every function of every row; see `features_reference.looked_up`."""
        sealed = np.ascontiguousarray(cells, dtype=np.int64).view()
        sealed.flags.writeable = False
        _looked_up(sealed, self._flat, self._first, self._start, out)
