"""Features of score and covariates in whole steps, so that sums over rows are exact.

Products of whole numbers that stay below 2^53 add up in float64 to the same bits in any order, and over any chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import mix
from calibrant.kernels.runtime import as_readonly, few, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Steps = NDArray[np.int16]

COORDINATE = 4096  # steps of a coordinate in one standard deviation
REACH = 8  # standard deviations within which coordinates are kept
CELLS = 4096  # of the table of a function of one coordinate, 16 steps each
CLUSTER = 8192  # steps of a feature in one
LOGIT = 512  # steps of the logit in one
PER_UNIT = 1024  # entries of the bell's table per unit of the exponent
VARIANCE = 1 << 18  # steps of p (1 - p) in one
SCORE_STEPS = 1 << 30  # steps of the score in one
BELLS_PER_ROW = 128  # that take as long as a row of other kernels
HALF = 15  # bits of the lower half of a score's steps
ROWS = 2048  # rows whose sums are exact: features times outcomes in float32, times features and variances in float64
DITHER = np.uint64(0x8D12A95E3B6C70F4)  # salt of the rounding of variances, any number but those of other draws
_UNIT_INTERVAL = 2.0**-53


def coordinates(z: Floats) -> Floats:
    """Standardised values as whole steps, kept within reach."""
    return np.clip(np.rint(z * COORDINATE), -REACH * COORDINATE, REACH * COORDINATE - 1)


def variances(p: Floats, ids: ArrayLike) -> Floats:
    """``p (1 - p)`` in whole steps, rounded up or down at random by identity, so that rare events add up."""
    u = (mix(np.asarray(ids, dtype=np.uint64) ^ DITHER) >> np.uint64(11)).astype(np.float64) * _UNIT_INTERVAL
    return np.floor(p * (1.0 - p) * VARIANCE + u)


def logits(p: Floats) -> Floats:
    """The logit of the score in whole steps, kept within plus and minus 16."""
    with np.errstate(divide="ignore"):
        return np.rint(np.clip(np.log(p) - np.log1p(-p), -CLUSTER / LOGIT, CLUSTER / LOGIT) * LOGIT)


@cache
def bell_table() -> Floats:
    """``exp(-t)`` in feature steps at the middles of intervals of t; the last entry is zero."""
    last = int(np.log(2.0 * CLUSTER) * PER_UNIT) + 1
    table = np.rint(CLUSTER * np.exp(-(np.arange(last + 1) + 0.5) / PER_UNIT))
    table[-1] = 0.0
    table.flags.writeable = False
    return table


def bells(points: Floats, marks: Floats, scale: float) -> Floats:
    """``exp(-scale |a - b|^2)`` for rows a, b of whole coordinates, in feature steps (whole).

    `points`, `marks`: float64 of shape (n, k) and (m, k). Returned: float64 of shape (n, m).
    """
    cross = np.ascontiguousarray(points @ marks.T)
    own, theirs = (np.ascontiguousarray((a * a).sum(axis=1)) for a in (points, marks))
    if few(cross.size, BELLS_PER_ROW, often=True):
        plain_bells(cross, own, theirs, float(scale) * PER_UNIT, bell_table())
    else:
        _bells(cross, own, theirs, float(scale) * PER_UNIT, bell_table())
    return cross


@kernel
def _bells(cross: Floats, own: Floats, marks: Floats, scale: float, table: Floats) -> None:
    last = table.shape[0] - 1.0
    for i in range(cross.shape[0]):
        for j in range(cross.shape[1]):
            squared = own[i] + marks[j] - 2.0 * cross[i, j]
            cross[i, j] = table[np.uint64(min(squared * scale, last))]


class Tables:
    """Functions of single coordinates, tabulated one after the other.

    `tables`: sequence of int16 of shape (CELLS, functions). `start`: column of the first function.
    """

    def __init__(self, tables: Sequence[Steps], start: int) -> None:
        flat = [np.ascontiguousarray(t, dtype=np.int16).reshape(-1) for t in tables]
        self._flat = as_readonly(np.concatenate(flat) if flat else None, np.int16)
        self._first = as_readonly(np.cumsum([0, *(len(t) for t in flat)])[:-1], np.int64)
        self._start = as_readonly(np.cumsum([start, *(t.shape[1] for t in tables)]), np.int64)

    def write(self, cells: ArrayLike, out: Floats) -> None:
        """Write ``tables[j][cells[:, j]]`` into the columns of `out`, shape (n, columns), from that table's first."""
        write = plain_looked_up if few(len(out), often=True) else _looked_up
        write(as_readonly(cells, np.int64), self._flat, self._first, self._start, out)


@kernel
def _looked_up(cells: Ints, table: Steps, first: Ints, start: Ints, out: Floats) -> None:
    for j in range(cells.shape[1]):
        to, width, base = np.uint64(start[j]), np.uint64(start[j + 1] - start[j]), np.uint64(first[j])
        for i in range(cells.shape[0]):
            at = base + np.uint64(cells[i, j]) * width
            for k in range(width):
                out[i, to + k] = table[at + k]


def flagged(columns: Ints, starts: Sequence[int], out: Floats) -> None:
    """Write ones into the columns ``starts[j] + columns[:, j]`` of `out`, which holds zeros there."""
    rows = np.arange(len(columns))
    for j in range(columns.shape[1]):
        out[rows, starts[j] + columns[:, j]] = 1.0


# ---- the same in NumPy, for few rows ----


def plain_bells(cross: Floats, own: Floats, marks: Floats, scale: float, table: Floats) -> None:
    """Turn products of coordinates into bells, in place."""
    squared = own[:, None] + marks - 2.0 * cross
    cross[:] = table[np.minimum(squared * scale, len(table) - 1.0).astype(np.int64)]


def plain_looked_up(cells: Ints, table: NDArray[np.int16], first: Ints, start: Ints, out: Floats) -> None:
    """Write ``tables[j][cells[:, j]]`` into the columns of `out`, from that table's first."""
    ends = [*first.tolist(), len(table)]
    for j in range(len(first)):
        a, b, to, after = ends[j], ends[j + 1], int(start[j]), int(start[j + 1])
        if after > to:
            out[:, to:after] = table[a:b].reshape(-1, after - to)[cells[:, j]]
