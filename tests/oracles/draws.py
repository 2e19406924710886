"""Random numbers keyed by identity, in plain NumPy: slow, short, and meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import GOLDEN, LANES, Draws, Walks, mix

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
    shifts = np.arange(LANES, dtype=np.uint64)
    columns = [
        np.bitwise_or.reduce(outcomes(ids, rate, first, LANES, salt).astype(np.uint64) << shifts, axis=1)
        for rate in (low, high)
    ]
    return np.stack(columns, axis=1)


def peaks(word: Array, at: Array, gain: Array, drift: Array, scale: Array, floor: float) -> Array:
    """All cumulative sums, then their maximum."""
    bits = (word[at][:, None] >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1)
    sums = np.cumsum(gain[:, None] * bits, axis=0) + drift[:, None]
    seen = scale > 0
    return np.maximum(floor, (scale[seen, None] * sums[seen]).max(axis=0, initial=-np.inf))


def extremes(cases: Array, weight: Array, expected: Array, read: Array, walks: Walks) -> None:
    """Whole paths, then their lowest and highest points."""
    at, low, high = walks
    path = at + np.cumsum(weight[:, None] * cases, axis=0)
    at[:] = path[-1]
    seen = (path - expected[:, None])[read]
    low[:] = np.minimum(low, seen.min(axis=0, initial=np.inf))
    high[:] = np.maximum(high, seen.max(axis=0, initial=-np.inf))
