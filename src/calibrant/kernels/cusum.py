"""Peaks of cumulative scores under simulated outcomes, compiled; twin of `cusum_reference`.

Outcomes are bits, 64 draws to a word, so that a draw costs one masked addition a step and all models and both signs
share the same random numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.compiled import _mix
from calibrant.kernels.cusum_reference import LANES
from calibrant.kernels.draws_reference import GOLDEN

_GOLDEN = np.uint64(GOLDEN)
_S11 = np.uint64(11)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def _words(ids: Any, low: Any, high: Any, first: Any, salt: Any, out: Any) -> None:
    for i in range(ids.shape[0]):
        state = _mix(ids[i] ^ salt) + first * _GOLDEN
        a, b = low[i], high[i]
        below, above = np.uint64(0), np.uint64(0)
        for lane in range(LANES):
            u = np.float64(_mix(state) >> _S11) * 1.1102230246251565e-16
            below |= np.uint64(u < a) << np.uint64(lane)
            above |= np.uint64(u < b) << np.uint64(lane)
            state += _GOLDEN
        out[i, 0] = below
        out[i, 1] = above


@njit(cache=True, nogil=True)
def _peaks(word: Any, at: Any, gain: Any, drift: Any, scale: Any, best: Any) -> None:
    sums = np.zeros(LANES)
    for k in range(at.shape[0]):
        bits = word[at[k]]
        add = np.float64(gain[k]).view(np.int64)
        for lane in range(LANES):
            taken = np.int64((bits >> np.uint64(lane)) & _ONE)
            sums[lane] += np.int64(-taken & add).view(np.float64)
        c = scale[k]
        if c > 0.0:
            d = drift[k]
            for lane in range(LANES):
                value = c * (sums[lane] + d)
                best[lane] = value if value > best[lane] else best[lane]


def _sealed(array: Any, dtype: Any) -> Any:
    """Return a read-only contiguous view, so that one signature is compiled."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def words(ids: Any, low: Any, high: Any, first: int, salt: int) -> Any:
    """Return 64 draws of each row's outcome at two rates; see `cusum_reference.words`."""
    out = np.empty((len(ids), 2), dtype=np.uint64)
    rates = (_sealed(v, np.float64) for v in (low, high))
    _words(_sealed(ids, np.uint64), *rates, np.uint64(first), np.uint64(salt), out)
    return out


def peaks(word: Any, at: Any, gain: Any, drift: Any, scale: Any, floor: float) -> Any:
    """Return the largest scaled cumulative sum of each of 64 draws; see `cusum_reference.peaks`."""
    best = np.full(LANES, float(floor))
    numbers = (_sealed(v, np.float64) for v in (gain, drift, scale))
    _peaks(_sealed(word, np.uint64), _sealed(at, np.uint64), *numbers, best)
    return best
