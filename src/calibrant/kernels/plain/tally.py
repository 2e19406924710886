"""Rows counted into score cells: the same as `calibrant.kernels.tally` counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import tally as t
from calibrant.kernels.draws import hash_split, mix

Ints = NDArray[np.int64]


def tally(rows: t.Rows, counters: t.Counters, faults: Ints) -> None:
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
    q, label = t.fixed_point(p[good]), y[good].astype(np.int64)
    who = rows.ids if len(rows.ids) else numbers.astype(np.uint64)
    block = hash_split(mix(who[good] ^ np.uint64(rows.salt)), len(counters.levels))
    level = np.minimum(((q + 1) * t.LEVELS) >> t.SCORE_BITS, t.LEVELS - 1)
    # 3. packed: a count above, a sum below
    down = t.SCORE_BITS - t.CELL_BITS
    cell, rest = q >> down, q & ((1 << down) - 1)
    cells = counters.cells[:, 0]
    np.add.at(cells, (block, cell, label), (1 << 40) + rest)
    np.add.at(cells, (block, cell, np.full_like(cell, 2)), rest * rest)
    np.add.at(counters.levels, (block, level), 1 + label * 0xFFFFFFFF)
    down = t.SCORE_BITS - t.GROUP_BITS
    cell, rest = q >> down, q & ((1 << down) - 1)
    for base, codes in zip(rows.bases, rows.codes, strict=True):
        group = base + codes[good].astype(np.int64)
        np.add.at(counters.group_cells, (block, group, cell, label), (1 << 40) + rest)
        np.add.at(counters.group_levels, (block, group, level), 1 + label * 0xFFFFFFFF)


def unpack_cells(packed: Ints, plain: Ints) -> None:
    """Move packed cells of shape (a, b, cells, 2 or more) into plain ones of shape (a, b, cells, 4 or more)."""
    at = np.nonzero(packed[..., :2])
    kept = packed[..., :2][at]
    np.add.at(plain, at, kept >> 40)
    np.add.at(plain, (*at[:3], 2 + at[3]), kept & ((1 << 40) - 1))
    if packed.shape[3] > 2:
        at = np.nonzero(packed[..., 2])
        plain[..., 4][at] += packed[..., 2][at]
    packed[np.nonzero(packed.any(axis=3))] = 0


def unpack_levels(packed: Ints, plain: Ints) -> None:
    """Move packed levels of shape (a, b, levels) into plain ones of shape (a, b, levels, 2)."""
    at = np.nonzero(packed)
    plain[..., 0][at] += packed[at] & 0xFFFFFFFF
    plain[..., 1][at] += packed[at] >> 32
    packed[at] = 0
