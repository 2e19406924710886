"""Counting rows into score cells: whole numbers only, so that equal rows give equal bits in any order and any parts.

While rows are read, a count and a sum share one integer: a packed cell holds ``count << 40 | remainder sum`` for each
label and, for everyone, the sum of squares; a packed level holds ``negatives | positives << 32``. A block's counters
lie together. Nothing overflows for up to `Packed.capacity` rows; then `Packed.settle` unpacks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import mixed
from calibrant.kernels.runtime import as_readonly, few, inlined, kernel, plain

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
    """Return scores as integers in [0, 2**30 - 1]."""
    return np.minimum(np.floor(np.asarray(p) * _STEPS).astype(np.int64), _LAST)


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
            cells, levels = plain(__name__).unpack_cells, plain(__name__).unpack_levels
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
        plain(__name__).tally(one_type, packed.counters, faults)
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
