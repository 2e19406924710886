"""What rows hold, as one number each, and how often each number occurs: equal rows have equal numbers.

A row's number is folded column by column, each step a bijection of 64 bits: ``h <- mix(h ^ value)``. Numbers are
counted in a table with open addressing (64-bit word, tag, rows with label 0, rows with label 1), until it is half full.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import mix, mixed
from calibrant.kernels.runtime import as_readonly, few, inlined, kernel
from calibrant.kernels.tally import fixed, fixed_point

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

FIELDS = 4  # of a place in the table: word (0 where it is free), tag, rows with label 0, rows with label 1
TAG_BITS = 10  # of a tag that tell where the score lies, in 1,024 equal cells; the others are the score's hash
NOT_A_NUMBER = np.uint64(0x7FF8000000000000)
_SHIFT = np.int64(30 - TAG_BITS)
_CELL = np.uint64((1 << TAG_BITS) - 1)
_NONE, _ONE = np.uint64(0), np.uint64(1)


def tags_of(p: ArrayLike) -> Words:
    """One number a score in [0, 1]: equal for equal scores, the cell of the score in its lowest bits."""
    scores = as_readonly(p, np.float64)
    if few(len(scores)):
        return plain_tags_of(scores)
    out = np.empty(len(scores), dtype=np.uint64)
    _tags(scores, scores.view(np.uint64), out)
    return out


@inlined
def _plain(x: np.float64, bits: np.uint64) -> np.uint64:
    """The bits of a double, the same for both zeros and for all that is not a number."""
    if x == 0.0:
        return _NONE
    return bits if x == x else NOT_A_NUMBER


@kernel
def _tags(p: Floats, bits: Words, out: Words) -> None:
    for i in range(out.shape[0]):
        cell = np.uint64(fixed(p[i]) >> _SHIFT)
        out[i] = (mixed(_plain(p[i], bits[i])) & ~_CELL) | cell


def fold(words: Words, column: ArrayLike) -> None:
    """Fold a column into the rows' numbers, in place: doubles, whole numbers from zero on, or 64-bit hashes."""
    values = np.asarray(column)
    if few(len(words)):
        whole = values.dtype != np.float64
        words[:] = mix(words ^ (values.astype(np.uint64) if whole else plain_bits_of(as_readonly(values, np.float64))))
    elif values.dtype == np.float64:
        numbers = as_readonly(values, np.float64)
        _fold_numbers(numbers, numbers.view(np.uint64), words)
    elif values.dtype == np.uint64:
        _fold_words(as_readonly(values, np.uint64), words)
    else:
        _fold_codes(as_readonly(values, np.int32), words)


@kernel
def _fold_numbers(x: Floats, bits: Words, words: Words) -> None:
    for i in range(words.shape[0]):
        words[i] = mixed(words[i] ^ _plain(x[i], bits[i]))


@kernel
def _fold_codes(codes: NDArray[np.int32], words: Words) -> None:
    for i in range(words.shape[0]):
        words[i] = mixed(words[i] ^ np.uint64(codes[i]))


@kernel
def _fold_words(values: Words, words: Words) -> None:
    for i in range(words.shape[0]):
        words[i] = mixed(words[i] ^ values[i])


def total(words: Words, y: ArrayLike) -> int:
    """The sum of the rows' numbers, three times where the label is 1, modulo 2^64: the same in any order."""
    numbers, labels = as_readonly(words, np.uint64), as_readonly(y, np.int8)
    if few(len(numbers)):
        return int(plain_total(numbers, labels))
    return int(_total(numbers, labels))


@kernel
def _total(words: Words, y: NDArray[np.int8]) -> np.uint64:
    out = _NONE
    for i in range(words.shape[0]):
        out += words[i] * np.uint64(1 + 2 * y[i])
    return out


def count(words: Words, tags: Words, y: ArrayLike, limit: np.uint64, table: Words) -> int:
    """Count rows in the table until it is half full; return how many were looked at.

    Parameters
    ----------
    words, tags : uint64 arrays of shape (n,)
    y : int8 array of shape (n,)
        Labels 0 and 1.
    limit : uint64
        Larger words are not counted.
    table : uint64 array of shape (places + 1, 4)
        A power of two of places; a word is looked for from its lowest bits on. The word 0 counts as 1. The line after
        the places begins with the number of different words.
    """
    rows = as_readonly(words, np.uint64), as_readonly(tags, np.uint64), as_readonly(y, np.int8)
    if few(len(words)):
        return int(plain_count(*rows, limit, table))
    return int(_count(*rows, limit, table))


@kernel
def _count(words: Words, tags: Words, y: NDArray[np.int8], limit: np.uint64, table: Words) -> np.int64:
    places = np.uint64(table.shape[0] - 1)
    last, most = places - _ONE, places >> _ONE
    for i in range(words.shape[0]):
        if words[i] <= limit:
            word = max(words[i], _ONE)
            at = word & last
            while table[at, 0] != word and table[at, 0] != _NONE:
                at = (at + _ONE) & last
            if table[at, 0] == _NONE:
                if table[places, 0] == most:
                    return np.int64(i)
                table[places, 0] += _ONE
                table[at, 0], table[at, 1] = word, tags[i]
            table[at, np.uint64(2) + np.uint64(y[i])] += _ONE
    return np.int64(words.shape[0])


# ---- the same in NumPy, for few rows ----


def plain_bits_of(x: Floats) -> Words:
    """The bits of doubles, the same for both zeros and for all that is not a number."""
    bits = np.where(x == 0.0, np.uint64(0), x.view(np.uint64))
    return np.where(np.isnan(x), NOT_A_NUMBER, bits)


def plain_tags_of(p: Floats) -> Words:
    """The hash of each score, the cell of the score in its lowest bits."""
    low = np.uint64((1 << TAG_BITS) - 1)
    cell = (fixed_point(p) >> (30 - TAG_BITS)).astype(np.uint64)
    return (mix(plain_bits_of(p)) & ~low) | cell


def plain_total(words: Words, y: NDArray[np.int8]) -> int:
    """The sum of the rows' numbers, three times where the label is 1, modulo 2^64."""
    return int((words * (1 + 2 * y.astype(np.int64)).astype(np.uint64)).sum(dtype=np.uint64))


def plain_count(words: Words, tags: Words, y: NDArray[np.int8], limit: np.uint64, table: Words) -> int:
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
