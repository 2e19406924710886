"""What rows hold, as one number each, and how often each occurs: the same as `calibrant.kernels.contents` finds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import contents as c
from calibrant.kernels.draws import mix
from calibrant.kernels.tally import fixed_point

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


def bits_of(x: Floats) -> Words:
    """The bits of doubles, the same for both zeros and for all that is not a number."""
    bits = np.where(x == 0.0, np.uint64(0), x.view(np.uint64))
    return np.where(np.isnan(x), c.NOT_A_NUMBER, bits)


def tags_of(p: Floats) -> Words:
    """The hash of each score, the cell of the score in its lowest bits."""
    low = np.uint64((1 << c.TAG_BITS) - 1)
    cell = (fixed_point(p) >> (30 - c.TAG_BITS)).astype(np.uint64)
    return (mix(bits_of(p)) & ~low) | cell


def total(words: Words, y: NDArray[np.int8]) -> int:
    """The sum of the rows' numbers, three times where the label is 1, modulo 2^64."""
    return int((words * (1 + 2 * y.astype(np.int64)).astype(np.uint64)).sum(dtype=np.uint64))


def count(words: Words, tags: Words, y: NDArray[np.int8], limit: np.uint64, table: Words) -> int:
    """Count rows in the table until it is half full; return how many were looked at."""
    # 1. different words in the order in which they come, as each takes the first place that is free
    rows = np.flatnonzero(words <= limit)
    own, begins, which = np.unique(np.maximum(words[rows], np.uint64(1)), return_index=True, return_inverse=True)
    kept, last, most, size = table[:-1, 0], len(table) - 2, (len(table) - 1) >> 1, int(table[-1, 0])
    place, stop = np.zeros(len(own), dtype=np.int64), len(words)
    for k in np.argsort(begins).tolist():
        word = int(own[k])
        at = word & last
        while kept[at] and kept[at] != word:
            at = (at + 1) & last
        if not kept[at]:
            if size == most:
                stop = int(rows[begins[k]])
                break
            size += 1
            table[at, 0], table[at, 1] = own[k], tags[rows[begins[k]]]
        place[k] = at
    # 2. rows of each, by label
    table[-1, 0] = size
    looked = rows < stop
    np.add.at(table, (place[which[looked]], 2 + y[rows[looked]].astype(np.int64)), np.uint64(1))
    return stop
