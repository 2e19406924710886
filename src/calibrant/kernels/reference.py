"""NumPy twins of the compiled kernels: slow, short, and meant to be read first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SCORE_BITS = 30  # a score is the integer floor(p * 2**30), at most 2**30 - 1
CELL_BITS = 14  # cells of the sketch over all rows
GROUP_BITS = 10  # cells of the sketch of a group
LEVELS = 200  # fine levels from which rounding to 10, 20, 50 and 100 steps follows exactly
FIELDS = 6  # negatives, positives, remainder sums of each, and their squares in limbs of 32 bits
FAULTS = 8  # score not a number, score outside [0, 1], label missing, label not 0/1: count and first row


def mix(x: Any) -> Any:
    """SplitMix64's finaliser: a bijection of 64-bit integers that looks random (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = np.asarray(x, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def fixed_point(p: Any) -> Any:
    """Return scores as integers in [0, 2**30 - 1]."""
    top = (1 << SCORE_BITS) - 1
    return np.minimum(np.floor(np.asarray(p) * float(1 << SCORE_BITS)).astype(np.int64), top)


def tally(
    p: Any,
    y: Any,
    codes: Any,
    bases: Any,
    ids: Any,
    first_row: int,
    salt: int,
    cells: Any,
    levels: Any,
    group_cells: Any,
    group_levels: Any,
    faults: Any,
) -> None:
    """Add rows to a sketch's integer arrays, in place; faulty rows are counted instead.

    Parameters
    ----------
    p : float64 array of shape (n,)
        Scores as read; NaN where missing.
    y : int8 array of shape (n,)
        Labels: 0, 1, -1 where missing; anything else is a fault.
    codes : int32 array of shape (v, n)
        Level of each grouping, counted from zero.
    bases : int64 array of shape (v,)
        Where each grouping's groups start.
    ids : uint64 array of shape (n,) or (0,)
        Row identities; empty to use ``first_row + i``.
    first_row, salt : int
        Number of the first row in its file, and the hash of seed and file.
    cells, levels : int64 arrays of shape (blocks, 2**14, 6) and (blocks, 200, 2)
    group_cells, group_levels : int64 arrays of shape (groups, blocks, 2**10, 4) and (groups, blocks, 200, 2)
    faults : int64 array of shape (8,)
    """
    n = p.shape[0]
    rows = first_row + np.arange(n, dtype=np.int64)
    missing_p, missing_y = np.isnan(p), y == -1
    outside = ~missing_p & ~((p >= 0.0) & (p <= 1.0))
    not_binary = ~missing_y & (y != 0) & (y != 1)
    for slot, bad in enumerate((missing_p, outside, missing_y, not_binary)):
        if bad.any():
            if faults[2 * slot] == 0:
                faults[2 * slot + 1] = rows[bad][0]
            faults[2 * slot] += int(bad.sum())
    good = ~(missing_p | missing_y | outside | not_binary)
    q, label = fixed_point(p[good]), y[good].astype(np.int64)
    with np.errstate(over="ignore"):
        identity = ids if ids.size else rows.astype(np.uint64)
        high = mix(identity ^ np.uint64(salt)) >> np.uint64(32)
    block = ((high * np.uint64(cells.shape[0])) >> np.uint64(32)).astype(np.int64)[good]
    cell, rest = q >> (SCORE_BITS - CELL_BITS), q & ((1 << (SCORE_BITS - CELL_BITS)) - 1)
    level = (q * LEVELS) >> SCORE_BITS
    one = np.ones_like(q)
    np.add.at(cells, (block, cell, label), one)
    np.add.at(cells, (block, cell, 2 + label), rest)
    np.add.at(cells, (block, cell, 4), rest * rest)
    carry(cells)
    np.add.at(levels, (block, level, label), one)
    cell, rest = q >> (SCORE_BITS - GROUP_BITS), q & ((1 << (SCORE_BITS - GROUP_BITS)) - 1)
    for base, code in zip(bases, codes, strict=True):
        group = base + code[good].astype(np.int64)
        np.add.at(group_cells, (group, block, cell, label), one)
        np.add.at(group_cells, (group, block, cell, 2 + label), rest)
        np.add.at(group_levels, (group, block, level, label), one)


def carry(cells: Any) -> None:
    """Bring the squares' low limb, in place, below 2**32, so that equal sums are equal bits."""
    cells[..., 5] += cells[..., 4] >> 32
    cells[..., 4] &= 0xFFFFFFFF


def hash_bytes(offsets: Any, data: Any, seed: int) -> Any:
    """Hash variable-length byte strings (Arrow's large layout) to uint64: FNV-1a, then SplitMix64."""
    out = np.empty(offsets.shape[0] - 1, dtype=np.uint64)
    raw = bytes(data)
    for i in range(out.shape[0]):
        h = 0xCBF29CE484222325 ^ (seed & 0xFFFFFFFFFFFFFFFF)
        for byte in raw[int(offsets[i]) : int(offsets[i + 1])]:
            h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        out[i] = mix(np.uint64(h))
    return out


def notch_peaks(n: Any, centre: Any, alpha: Any) -> Any:
    """Return `notch_peak` of each triple."""
    return np.array([notch_peak(int(m), float(c), float(a)) for m, c, a in zip(n, centre, alpha, strict=True)])


def notch_peak(n: int, centre: float, alpha: float) -> float:
    r"""Return ``max over e of ln E exp(-alpha (k - centre)^2 / 2)``, ``k ~ Binomial(n, e)``, by brute force.

    The maximum is over a fine grid of ``e`` refined around its best point, so it can fall short of the true
    one only by the grid's resolution; the compiled twin searches the same unimodal function.
    """
    k = np.arange(n + 1, dtype=np.float64)
    log_choose = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)])
    weight = log_choose - 0.5 * alpha * (k - centre) ** 2

    def value(e: float) -> float:
        if e <= 0.0:
            return float(weight[0])
        if e >= 1.0:
            return float(weight[n])
        terms = weight + k * math.log(e) + (n - k) * math.log1p(-e)
        top = terms.max()
        return float(top + math.log(np.exp(terms - top).sum()))

    low, high = 0.0, 1.0
    for _ in range(12):
        grid = np.linspace(low, high, 41)
        values = [value(e) for e in grid]
        best = int(np.argmax(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    return max(values)
