"""Random numbers keyed by identity, in plain NumPy: slow, short, and meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import GOLDEN, LANES, Bars, Draws, Refits, Tables, Walks, mix

Array = NDArray[Any]


def hash_bytes(offsets: Array, data: Array, seed: int) -> Array:
    """FNV-1a in whole numbers of Python, then SplitMix64."""
    out = np.empty(offsets.shape[0] - 1, dtype=np.uint64)
    raw = bytes(data)
    for i in range(out.shape[0]):
        h = 0xCBF29CE484222325 ^ (seed & 0xFFFFFFFFFFFFFFFF)
        for byte in raw[int(offsets[i]) : int(offsets[i + 1])]:
            h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        out[i] = mix(np.uint64(h))
    return out


def outcomes(ids: Array, rate: Array, first: int, draws: int, salt: int) -> Array:
    """Every number of every row's stream at once."""
    with np.errstate(over="ignore"):
        start = mix(np.asarray(ids, dtype=np.uint64) ^ np.uint64(salt))
        steps = np.arange(first, first + draws, dtype=np.uint64) * GOLDEN
        bits = mix(start[:, None] + steps[None, :]) >> np.uint64(11)
    return (bits.astype(np.float64) * 2.0**-53 < np.asarray(rate)[:, None]).astype(np.uint8)


def tallies(ids: Array, rate: Array, weight: Array | None, codes: Array, cells: int, draws: Draws) -> Array:
    """Weighted outcomes added at the cells of each cutting."""
    y = outcomes(ids, rate, draws.first, draws.count, draws.salt).astype(float)
    y *= 1.0 if weight is None else np.asarray(weight)[:, None]
    out = np.zeros((cells, draws.count))
    for code in np.asarray(codes).T:
        held = code >= 0
        np.add.at(out, code[held], y[held])
    return out


def words(ids: Array, low: Array, high: Array, first: int, salt: int) -> Array:
    """Outcomes at two rates, shifted to their bits."""
    gaps = np.arange(LANES, dtype=np.uint64)
    columns = [
        np.bitwise_or.reduce(outcomes(ids, rate, first, LANES, salt).astype(np.uint64) << gaps, axis=1)
        for rate in (low, high)
    ]
    return np.stack(columns, axis=1)


def peaks(word: Array, at: Array, gain: Array, drift: Array, scale: Array, floor: float) -> Array:
    """All cumulative sums, then their maximum."""
    bits = (word[at][:, None] >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1)
    sums = np.cumsum(gain[:, None] * bits, axis=0) + drift[:, None]
    seen = scale > 0
    return np.maximum(floor, (scale[seen, None] * sums[seen]).max(axis=0, initial=-np.inf))


def extremes(events: Array, weight: Array, expected: Array, read: Array, walks: Walks) -> None:
    """Whole paths, then their lowest and highest points."""
    at, low, high = walks
    path = at + np.cumsum(weight[:, None] * events, axis=0)
    at[:] = path[-1]
    seen = (path - expected[:, None])[read]
    low[:] = np.minimum(low, seen.min(axis=0, initial=np.inf))
    high[:] = np.maximum(high, seen.max(axis=0, initial=-np.inf))


def table_sums(bits: Array, weight: Array | None, codes: Array, tables: Tables, cells: int) -> Array:
    """Every row added to its cell of every table."""
    out = np.zeros((cells, LANES))
    each = np.ones(len(bits)) if weight is None else weight
    drawn = ((bits[:, None] >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1)) * each[:, None]
    for first, second, start, width in zip(*tables, strict=True):
        np.add.at(out, start + codes[:, first].astype(int) * width + codes[:, second], drawn)
    return out


def refit_peaks(
    bits: Array, codes: Array, ends: Array, refits: Refits, bars: Bars, look: tuple[int, float, float]
) -> Array:
    """A data set and a model at a time: predictions, levels, sums along them."""
    levels, least, fewest = look
    fold = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    out = np.zeros((refits.size.shape[1], 3))
    for b in range(len(out)):
        y = ((bits >> np.uint64(b)) & np.uint64(1)).astype(float)
        stated = np.zeros((2, len(bits)), dtype=np.float32)
        for i, f in enumerate(fold):
            for s, (c, lo, hi, d, low, high) in enumerate(refits.bounds[f, b]):
                if lo <= codes[c, i] <= hi and low <= codes[d, i] <= high:
                    stated[int(s >= refits.second), i] += refits.size[f, b, s]
        for m, g in enumerate((*stated, np.float32(0.5) * stated[0] + np.float32(0.5) * stated[1])):
            up, down = g.astype(float) - bars.above, -g.astype(float) - bars.below
            excess, side = np.maximum(up, down), np.where(up > down, 1.0, -1.0)
            level = np.minimum((np.maximum(excess, 0) * (levels / refits.tops()[b, m])).astype(int), levels - 1)
            h, spread = (level + 0.5) / levels, bars.rate * (1 - bars.rate)
            whole = ((h * bars.weight) ** 2 * spread)[excess > 0].sum()
            for cut in np.unique(level[excess > 0]):
                held = (excess > 0) & (level >= cut)
                seen = ((h * bars.weight) ** 2 * spread)[held].sum()
                if spread[held].sum() >= fewest and seen > 0 and bars.weight[held].sum() >= least:
                    total = (side * h * bars.weight * (y - bars.rate))[held].sum()
                    out[b, m] = max(out[b, m], total * (seen * whole) ** -0.25)
    return out
