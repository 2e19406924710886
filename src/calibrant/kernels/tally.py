"""Counting rows into score cells: whole numbers only, so that equal rows give equal bits in any order and any parts.

While rows are read, a count and a sum share one integer: a packed cell holds ``count << 40 | remainder sum`` for each
label and, for everyone, the sum of squares; a packed level holds ``negatives | positives << 32``. A block's counters
lie together. Nothing overflows for up to `Packed.capacity` rows; then `Packed.settle` unpacks.

Where the score takes few values, rows are counted by it too, in a small table with open addressing, never more than a
quarter full; nothing is looked at after the first score that finds no room, so a continuous one costs a thousand rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import hash_split, mix, mixed
from calibrant.kernels.runtime import as_readonly, few, inlined, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SCORE_BITS = 30  # a score is the integer floor(p * 2**30), at most 2**30 - 1
CELL_BITS = 14  # cells of the sketch over all rows
GROUP_BITS = 10  # cells of the sketch of a group
LEVELS = 200  # fine levels from which rounding to 10, 20, 50 and 100 steps follows exactly
FIELDS = 6  # negatives, positives, remainder sums of each, and their squares in limbs of 32 bits
FAULTS = 8  # score not a number, score outside [0, 1], label missing, label not 0/1: count and first row

CAPACITY = 1 << 20  # with groups: so many remainders below 2**20 stay below 2**40
CAPACITY_ALONE = 1 << 22  # without: remainders are below 2**16, and their squares below 2**32
AT_ONCE = 1 << 18  # rows that one call takes with groups, which bounds its scratch
AT_ONCE_ALONE = 1 << 20  # and without

# Unsigned throughout: numba then leaves out the check for negative indices.
_S16, _S20, _S30, _S31, _S32 = (np.uint64(bits) for bits in (16, 20, 30, 31, 32))
_Q, _REST, _GROUP_REST = np.uint64(0x3FFFFFFF), np.uint64(0xFFFF), np.uint64(0xFFFFF)
_FINE, _ONE, _LAST_LEVEL = np.uint64(LEVELS), np.uint64(1), np.uint64(LEVELS - 1)
_STEPS, _LAST = float(1 << SCORE_BITS), (1 << SCORE_BITS) - 1
_ONE_ROW, _SUM = 1 << 40, 0xFFFFFFFFFF
_POSITIVE, _NEGATIVES = 0xFFFFFFFF, 0xFFFFFFFF  # what a positive adds beyond the one of a negative; the lower half


def fixed_point(p: ArrayLike) -> Ints:
    """Scores as integers in [0, 2**30 - 1]."""
    return np.minimum(np.floor(np.asarray(p) * _STEPS).astype(np.int64), _LAST)


def levels_of(q: Ints) -> Ints:
    """The fine levels of scores as integers: see `_level`."""
    return np.minimum(((q + 1) * LEVELS) >> SCORE_BITS, LEVELS - 1)


@inlined
def fixed(score: float) -> np.int64:
    return min(np.int64(score * _STEPS), np.int64(_LAST))


@inlined
def _level(q: np.uint64) -> np.uint64:
    """The fine level of a score, which lies up to a step above q: 0.005 is in the level that begins there."""
    return min(((q + _ONE) * _FINE) >> _S30, _LAST_LEVEL)


def carry(cells: Ints) -> None:
    """Bring the squares' low limb, in place, below 2**32, so that equal sums are equal bits."""
    cells[..., 5] += cells[..., 4] >> 32
    cells[..., 4] &= 0xFFFFFFFF


class Rows(NamedTuple):
    """Rows as read, to be counted."""

    p: Floats  # shape (n,): scores; NaN where missing
    y: NDArray[np.int8]  # shape (n,): labels: 0, 1, -1 where missing; anything else is a fault
    codes: NDArray[np.int32]  # shape (v, n): level of each grouping, counted from zero
    bases: Ints  # shape (v,): where each grouping's groups start
    ids: NDArray[np.uint64]  # shape (n,) or (0,): row identities; empty to use `first_row + i`
    # `first_row` and `salt`: number of the first row in its file, and the hash of seed and file.
    first_row: int
    salt: int | np.uint64


class Counters(NamedTuple):
    """The four counting arrays of a sketch."""

    cells: Ints  # shape (blocks, 2**14, 6) and (blocks, 200, 2)
    levels: Ints  # shape (blocks, 2**14, 6) and (blocks, 200, 2)
    # `group_cells` and `group_levels`, shape (groups, blocks, 2**10, 4) and (groups, blocks, 200, 2): packed, they are
    # of shape (blocks, 1, 2**14, 4), (blocks, 200), (blocks, groups, 2**10, 2) and (blocks, groups, 200).
    group_cells: Ints
    group_levels: Ints


class HashSplit(NamedTuple):
    """Scratch: rows dealt to blocks, as ``label << 31 | q``, with their levels, and how many each block holds."""

    words: NDArray[np.uint32]
    levels: NDArray[np.int32]
    kept: Ints


class Packed:
    """The four packed arrays of one sketch and the rows they hold."""

    def __init__(self, blocks: int, groups: int, groupings: int) -> None:
        self.counters = Counters(
            np.zeros((blocks, 1, 1 << CELL_BITS, 4), dtype=np.int64),  # the fourth pads to half a cache line
            np.zeros((blocks, LEVELS), dtype=np.int64),
            np.zeros((blocks, groups, 1 << GROUP_BITS, 2), dtype=np.int64),
            np.zeros((blocks, groups, LEVELS), dtype=np.int64),
        )
        self.at_once = AT_ONCE if groups else AT_ONCE_ALONE
        self.split = HashSplit(  # mostly unused pages
            np.empty((blocks, self.at_once), dtype=np.uint32),
            np.empty((groupings, blocks, self.at_once), dtype=np.int32),
            np.empty(blocks, dtype=np.int64),
        )
        self.capacity = CAPACITY if groups else CAPACITY_ALONE
        self.rows = 0

    def settle(self, into: Counters) -> None:
        """Add everything to a sketch's plain arrays and start again from zero."""
        cells, levels = unpack_cells, unpack_levels
        if few(self.rows):
            cells, levels = plain_unpack_cells, plain_unpack_levels
        cells(self.counters.cells, into.cells[:, None])
        levels(self.counters.levels[:, None], into.levels[:, None])
        cells(self.counters.group_cells, into.group_cells.swapaxes(0, 1))
        levels(self.counters.group_levels, into.group_levels.swapaxes(0, 1))
        carry(into.cells)
        self.rows = 0


def tally(rows: Rows, packed: Packed, faults: Ints) -> None:
    """Add rows to packed counters, which have room for them; faulty rows are counted in `faults`, of shape (8,)."""
    packed.rows += len(rows.p)
    one_type = Rows(
        as_readonly(rows.p, np.float64),
        as_readonly(rows.y, np.int8),
        as_readonly(rows.codes, np.int32),
        as_readonly(rows.bases, np.int64),
        as_readonly(rows.ids, np.uint64),
        int(rows.first_row),
        np.uint64(rows.salt),
    )
    if few(len(one_type.p)):
        plain_tally(one_type, packed.counters, faults)
    else:
        _tally(one_type, packed.split, packed.counters, faults)


@inlined
def _note(faults: Ints, slot: int, row: int) -> None:
    if faults[2 * slot] == 0:
        faults[2 * slot + 1] = row
    faults[2 * slot] += 1


@kernel
def _split(rows: Rows, split: HashSplit, faults: Ints) -> None:
    """Deal each row to its block, or note what is wrong with it."""
    p, y, codes, kept = rows.p, rows.y, rows.codes, split.kept
    blocks = np.uint64(kept.shape[0])
    own_ids = rows.ids.shape[0] > 0
    kept[:] = 0
    for i in range(p.shape[0]):
        s, label = p[i], np.int64(y[i])
        if not (s >= 0.0 and s <= 1.0 and (label == 0 or label == 1)):
            if s != s:
                _note(faults, 0, rows.first_row + i)
            elif not (s >= 0.0 and s <= 1.0):
                _note(faults, 1, rows.first_row + i)
            if label == -1:
                _note(faults, 2, rows.first_row + i)
            elif label != 0 and label != 1:
                _note(faults, 3, rows.first_row + i)
            continue
        q = fixed(s)
        who = rows.ids[i] if own_ids else np.uint64(rows.first_row + i)
        b = ((mixed(who ^ rows.salt) >> _S32) * blocks) >> _S32
        at = np.uint64(kept[b])
        kept[b] += 1
        split.words[b, at] = np.uint32(q | (label << 31))
        for v in range(codes.shape[0]):
            split.levels[v, b, at] = codes[v, i]


@kernel
def _tally(rows: Rows, split: HashSplit, counters: Counters, faults: Ints) -> None:
    """Deal the rows to blocks first, so that the counters of one block at a time stay in the cache."""
    _split(rows, split, faults)
    for b in range(split.kept.shape[0]):
        words, own, fine = split.words[b, : split.kept[b]], counters.cells[b, 0], counters.levels[b]
        for at in range(words.shape[0]):
            word = np.uint64(words[at])
            q, label = word & _Q, word >> _S31
            rest = np.int64(q & _REST)
            own[q >> _S16, label] += _ONE_ROW + rest
            own[q >> _S16, 2] += rest * rest
            fine[_level(q)] += 1 + np.int64(label) * _POSITIVE
        for v in range(rows.codes.shape[0]):
            mine, groups, group_fine = split.levels[v, b], counters.group_cells[b], counters.group_levels[b]
            for at in range(words.shape[0]):
                word = np.uint64(words[at])
                q, label = word & _Q, word >> _S31
                g = np.uint64(rows.bases[v] + mine[at])
                groups[g, q >> _S20, label] += _ONE_ROW + np.int64(q & _GROUP_REST)
                group_fine[g, _level(q)] += 1 + np.int64(label) * _POSITIVE


@kernel
def unpack_cells(packed: Ints, plain: Ints) -> None:
    """Move packed cells of shape (a, b, cells, 2 or more) into plain ones of shape (a, b, cells, 4 or more)."""
    squares = packed.shape[3] > 2
    for a in range(packed.shape[0]):
        for b in range(packed.shape[1]):
            for c in range(packed.shape[2]):
                for label in range(2):
                    v = packed[a, b, c, label]
                    if v:
                        plain[a, b, c, label] += v >> 40
                        plain[a, b, c, 2 + label] += v & _SUM
                        packed[a, b, c, label] = 0
                if squares:
                    plain[a, b, c, 4] += packed[a, b, c, 2]
                    packed[a, b, c, 2] = 0


@kernel
def unpack_levels(packed: Ints, plain: Ints) -> None:
    """Move packed levels of shape (a, b, levels) into plain ones of shape (a, b, levels, 2)."""
    for a in range(packed.shape[0]):
        for b in range(packed.shape[1]):
            for c in range(packed.shape[2]):
                v = packed[a, b, c]
                if v:
                    plain[a, b, c, 0] += v & _NEGATIVES
                    plain[a, b, c, 1] += v >> 32
                    packed[a, b, c] = 0


# ---- the same in NumPy, for few rows ----


def plain_tally(rows: Rows, counters: Counters, faults: Ints) -> None:
    """Add rows to packed counters; faulty rows are counted in `faults`."""
    # 1. what is wrong with rows
    p, y = rows.p, rows.y
    numbers = rows.first_row + np.arange(len(p), dtype=np.int64)
    missing, unlabelled = np.isnan(p), y == -1
    outside = ~missing & ~((p >= 0.0) & (p <= 1.0))
    odd = ~unlabelled & (y != 0) & (y != 1)
    for slot, bad in enumerate((missing, outside, unlabelled, odd)):
        if bad.any():
            if faults[2 * slot] == 0:
                faults[2 * slot + 1] = numbers[bad][0]
            faults[2 * slot] += int(bad.sum())
    good = np.flatnonzero(~(missing | outside | unlabelled | odd))
    # 2. their blocks, cells and levels
    q, label = fixed_point(p[good]), y[good].astype(np.int64)
    who = rows.ids if len(rows.ids) else numbers.astype(np.uint64)
    block = hash_split(mix(who[good] ^ np.uint64(rows.salt)), len(counters.levels))
    level = levels_of(q)
    # 3. packed: a count above, a sum below
    down = SCORE_BITS - CELL_BITS
    cell, rest = q >> down, q & ((1 << down) - 1)
    cells = counters.cells[:, 0]
    np.add.at(cells, (block, cell, label), (1 << 40) + rest)
    np.add.at(cells, (block, cell, np.full_like(cell, 2)), rest * rest)
    np.add.at(counters.levels, (block, level), 1 + label * 0xFFFFFFFF)
    down = SCORE_BITS - GROUP_BITS
    cell, rest = q >> down, q & ((1 << down) - 1)
    for base, codes in zip(rows.bases, rows.codes, strict=True):
        group = base + codes[good].astype(np.int64)
        np.add.at(counters.group_cells, (block, group, cell, label), (1 << 40) + rest)
        np.add.at(counters.group_levels, (block, group, level), 1 + label * 0xFFFFFFFF)


def plain_unpack_cells(packed: Ints, plain: Ints) -> None:
    """Move packed cells of shape (a, b, cells, 2 or more) into plain ones of shape (a, b, cells, 4 or more)."""
    at = np.nonzero(packed[..., :2])
    kept = packed[..., :2][at]
    np.add.at(plain, at, kept >> 40)
    np.add.at(plain, (*at[:3], 2 + at[3]), kept & ((1 << 40) - 1))
    if packed.shape[3] > 2:
        at = np.nonzero(packed[..., 2])
        plain[..., 4][at] += packed[..., 2][at]
    packed[np.nonzero(packed.any(axis=3))] = 0


def plain_unpack_levels(packed: Ints, plain: Ints) -> None:
    """Move packed levels of shape (a, b, levels) into plain ones of shape (a, b, levels, 2)."""
    at = np.nonzero(packed)
    plain[..., 0][at] += packed[at] & 0xFFFFFFFF
    plain[..., 1][at] += packed[at] >> 32
    packed[at] = 0


# ---- rows counted by the score itself, as long as it takes few values ----

Numbers = NDArray[np.int16]

MOST = 1 << 10  # different scores
PLACE_BITS = 12
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_DOWN = np.uint64(64 - PLACE_BITS)
_LAST_PLACE = np.uint64((1 << PLACE_BITS) - 1)
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

    `p`: float64 of shape (n,); in [0, 1].
    """
    scores = as_readonly(p, np.float64)
    if few(len(scores)):
        return plain_numbers_of(scores, table)
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
            at = (at + _ONE) & _LAST_PLACE
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
        plain_count_numbers(*one_type, counts)
    else:
        _count_numbers(*one_type, counts)


@kernel
def _count_numbers(numbers: Numbers, y: NDArray[np.int8], groups: NDArray[np.int32], bases: Ints, counts: Ints) -> None:
    for i in range(numbers.shape[0]):
        counts[0, numbers[i], y[i]] += 1
    for v in range(groups.shape[0]):
        first = 1 + bases[v]
        for i in range(numbers.shape[0]):
            counts[first + groups[v, i], numbers[i], y[i]] += 1


# ---- the same in NumPy, for few rows ----

SPREAD, LAST = 0x9E3779B97F4A7C15, (1 << PLACE_BITS) - 1


def plain_numbers_of(p: NDArray[np.float64], table: Table) -> Numbers:
    """The number of each score, new ones for those not seen before; -1 from the first that has no room on."""
    different, begins, which = np.unique(fixed_point(p), return_index=True, return_inverse=True)
    number, stop = np.full(len(different), FREE, dtype=np.int16), len(p)
    for k in np.argsort(begins).tolist():
        q = int(different[k])
        at = ((q * SPREAD) & (2**64 - 1)) >> (64 - PLACE_BITS)
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
    out[stop:] = FREE
    return out


def plain_count_numbers(
    numbers: Numbers, y: NDArray[np.int8], groups: NDArray[np.int32], bases: Ints, counts: Ints
) -> None:
    """Count rows by the number of their score, in place."""
    labels = y.astype(np.int64)
    np.add.at(counts[0], (numbers, labels), 1)
    for levels, base in zip(groups, bases, strict=True):
        np.add.at(counts, (1 + base + levels, numbers, labels), 1)
