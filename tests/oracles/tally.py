"""Counting rows, in plain NumPy: slow, short, and meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import mix
from calibrant.kernels.tally import CELL_BITS, GROUP_BITS, LEVELS, SCORE_BITS, Counters, Rows, carry, fixed_point

Array = NDArray[Any]


def tally(rows: Rows, plain: Counters, faults: Array) -> None:
    """Add rows to a sketch's plain arrays, in place; faulty rows are counted instead."""
    p, y = rows.p, rows.y
    numbers = rows.first_row + np.arange(p.shape[0], dtype=np.int64)
    missing_p, missing_y = np.isnan(p), y == -1
    outside = ~missing_p & ~((p >= 0.0) & (p <= 1.0))
    not_binary = ~missing_y & (y != 0) & (y != 1)
    for slot, bad in enumerate((missing_p, outside, missing_y, not_binary)):
        if bad.any():
            if faults[2 * slot] == 0:
                faults[2 * slot + 1] = numbers[bad][0]
            faults[2 * slot] += int(bad.sum())
    good = ~(missing_p | missing_y | outside | not_binary)
    q, label = fixed_point(p[good]), y[good].astype(np.int64)
    with np.errstate(over="ignore"):
        identity = rows.ids if rows.ids.size else numbers.astype(np.uint64)
        high = mix(identity ^ np.uint64(rows.salt)) >> np.uint64(32)
    block = ((high * np.uint64(plain.cells.shape[0])) >> np.uint64(32)).astype(np.int64)[good]
    cell, rest = q >> (SCORE_BITS - CELL_BITS), q & ((1 << (SCORE_BITS - CELL_BITS)) - 1)
    level = np.minimum(((q + 1) * LEVELS) >> SCORE_BITS, LEVELS - 1)
    one = np.ones_like(q)
    np.add.at(plain.cells, (block, cell, label), one)
    np.add.at(plain.cells, (block, cell, 2 + label), rest)
    np.add.at(plain.cells, (block, cell, 4), rest * rest)
    carry(plain.cells)
    np.add.at(plain.levels, (block, level, label), one)
    cell, rest = q >> (SCORE_BITS - GROUP_BITS), q & ((1 << (SCORE_BITS - GROUP_BITS)) - 1)
    for base, code in zip(rows.bases, rows.codes, strict=True):
        group = base + code[good].astype(np.int64)
        np.add.at(plain.group_cells, (group, block, cell, label), one)
        np.add.at(plain.group_cells, (group, block, cell, 2 + label), rest)
        np.add.at(plain.group_levels, (group, block, level, label), one)


def unpack_cells(packed: Array, plain: Array) -> None:
    """Move packed cells of shape (a, b, cells, 2 or 3) into plain ones of shape (a, b, cells, 4 or more), in place."""
    plain[..., :2] += packed[..., :2] >> 40
    plain[..., 2:4] += packed[..., :2] & ((1 << 40) - 1)
    if packed.shape[-1] > 2:
        plain[..., 4] += packed[..., 2]
    packed[...] = 0


def unpack_levels(packed: Array, plain: Array) -> None:
    """Move packed levels of shape (a, b, levels) into plain ones of shape (a, b, levels, 2), in place."""
    plain[..., 0] += packed & ((1 << 32) - 1)
    plain[..., 1] += packed >> 32
    packed[...] = 0


# ---- Rows counted by the score itself, one by one ----


def numbers_of(p: Any, scores: list[int], most: int) -> list[int]:
    """The number of each score; new ones are added to `scores`, and -1 stands from the first without room on."""
    out: list[int] = []
    for q in fixed_point(p).tolist():
        if q not in scores:
            if len(scores) == most:
                break
            scores.append(q)
        out.append(scores.index(q))
    return out + [-1] * (len(p) - len(out))


def count_numbers(numbers: Any, y: Any, groups: Any, bases: Any, counts: Any) -> None:
    """Rows of everyone and of each group, added by number and label."""
    np.add.at(counts[0], (numbers, y), 1)
    for levels, base in zip(groups, bases, strict=True):
        np.add.at(counts, (1 + base + levels, numbers, y), 1)
