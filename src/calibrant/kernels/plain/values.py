"""Rows counted by the score itself: the same as `calibrant.kernels.values` counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import values as v
from calibrant.kernels.tally import fixed_point

Ints = NDArray[np.int64]
Numbers = NDArray[np.int16]
SPREAD, LAST = 0x9E3779B97F4A7C15, (1 << v.PLACE_BITS) - 1


def numbers_of(p: NDArray[np.float64], table: v.Table) -> Numbers:
    """The number of each score, new ones for those not seen before; -1 from the first that has no room on."""
    different, begins, which = np.unique(fixed_point(p), return_index=True, return_inverse=True)
    number, stop = np.full(len(different), v.FREE, dtype=np.int16), len(p)
    for k in np.argsort(begins).tolist():
        q = int(different[k])
        at = ((q * SPREAD) & (2**64 - 1)) >> (64 - v.PLACE_BITS)
        while table.places[at] >= 0 and table.scores[table.places[at]] != q:
            at = (at + 1) & LAST
        if table.places[at] < 0:
            if table.size[0] == len(table.scores):
                stop = int(begins[k])
                break
            table.places[at] = table.size[0]
            table.scores[table.size[0]] = q
            table.size[0] += 1
        number[k] = table.places[at]
    out: Numbers = number[which]
    out[stop:] = v.FREE
    return out


def count_numbers(numbers: Numbers, y: NDArray[np.int8], groups: NDArray[np.int32], bases: Ints, counts: Ints) -> None:
    """Count rows by the number of their score, in place."""
    labels = y.astype(np.int64)
    np.add.at(counts[0], (numbers, labels), 1)
    for levels, base in zip(groups, bases, strict=True):
        np.add.at(counts, (1 + base + levels, numbers, labels), 1)
