"""Rows counted by the score itself, as long as it takes few values: a small table with open addressing.

A score is the integer ``q = min(floor(p 2^30), 2^30 - 1)``. The table is never more than a quarter full, and nothing
is looked at after the first score that finds no room, so that a continuous score costs a thousand rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.runtime import as_readonly, few, kernel, plain
from calibrant.kernels.tally import fixed

Ints = NDArray[np.int64]
Numbers = NDArray[np.int16]

MOST = 1 << 10  # different scores
PLACE_BITS = 12
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_DOWN = np.uint64(64 - PLACE_BITS)
_LAST = np.uint64((1 << PLACE_BITS) - 1)
_ONE = np.uint64(1)
FREE = -1


class Table(NamedTuple):
    """Different scores, in the order in which they came, and rows that have each."""

    places: Numbers  # shape (4096,): number of the score that lies there, or -1
    scores: Ints  # shape (1024,)
    size: Ints  # shape (1,): how many there are
    counts: Ints  # shape (1 + groups, 1024, 2): rows by label: of everyone, then of each group

    @classmethod
    def empty(cls, groups: int) -> Table:
        """A table of no rows."""
        return cls(
            np.full(1 << PLACE_BITS, FREE, dtype=np.int16),
            np.zeros(MOST, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            np.zeros((1 + groups, MOST, 2), dtype=np.int64),  # pages that no row touches cost nothing
        )


def numbers_of(p: ArrayLike, table: Table) -> Numbers:
    """The number of each score, new ones for those not seen before; -1 from the first that has no room on.

    Parameters
    ----------
    p : float64 array of shape (n,)
        In [0, 1].
    table : Table
    """
    scores = as_readonly(p, np.float64)
    if few(len(scores)):
        numbers: Numbers = plain(__name__).numbers_of(scores, table)
        return numbers
    out = np.full(len(scores), FREE, dtype=np.int16)
    _numbers(scores, table, out)
    return out


@kernel
def _numbers(p: NDArray[np.float64], table: Table, out: Numbers) -> None:
    scores, places, size = table.scores, table.places, table.size
    for i in range(p.shape[0]):
        q = fixed(p[i])
        at = (np.uint64(q) * _SPREAD) >> _DOWN
        while places[at] >= 0 and scores[places[at]] != q:
            at = (at + _ONE) & _LAST
        if places[at] < 0:
            if size[0] == scores.shape[0]:
                return
            places[at] = size[0]
            scores[size[0]] = q
            size[0] += 1
        out[i] = places[at]


def count_numbers(numbers: ArrayLike, y: ArrayLike, groups: ArrayLike, bases: ArrayLike, counts: Ints) -> None:
    """Count rows by the number of their score, in place.

    Parameters
    ----------
    numbers : int16 array of shape (n,)
        From 0 on.
    y : int8 array of shape (n,)
        0 or 1.
    groups : int32 array of shape (groupings, n)
        Level of each grouping, counted from zero.
    bases : int64 array of shape (groupings,)
        Where each grouping's groups start.
    counts : int64 array of shape (1 + groups, 1024, 2)
    """
    one_type = (
        as_readonly(numbers, np.int16),
        as_readonly(y, np.int8),
        as_readonly(groups, np.int32),
        as_readonly(bases, np.int64),
    )
    if few(len(one_type[0])):
        plain(__name__).count_numbers(*one_type, counts)
    else:
        _count(*one_type, counts)


@kernel
def _count(numbers: Numbers, y: NDArray[np.int8], groups: NDArray[np.int32], bases: Ints, counts: Ints) -> None:
    for i in range(numbers.shape[0]):
        counts[0, numbers[i], y[i]] += 1
    for v in range(groups.shape[0]):
        first = 1 + bases[v]
        for i in range(numbers.shape[0]):
            counts[first + groups[v, i], numbers[i], y[i]] += 1
