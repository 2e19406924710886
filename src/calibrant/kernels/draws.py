"""Outcomes simulated from a row's identity alone, and what many simulated outcomes add up to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.cusum_reference import LANES
from calibrant.kernels.draws_reference import GOLDEN
from calibrant.kernels.tally import _mix

# ---- Simulated outcomes that depend on a row's identity only, compiled; twin of `draws_reference` ----

_GOLDEN = np.uint64(GOLDEN)
_S11 = np.uint64(11)


@njit(cache=True, nogil=True)
def _outcomes(ids: Any, rate: Any, first: Any, salt: Any, out: Any) -> None:
    for i in range(ids.shape[0]):
        state = _mix(ids[i] ^ salt) + first * _GOLDEN
        p = rate[i]
        for b in range(out.shape[1]):
            out[i, b] = np.float64(_mix(state) >> _S11) * 1.1102230246251565e-16 < p
            state += _GOLDEN


def outcomes(ids: Any, rate: Any, first: int, draws: int, salt: int) -> Any:
    """Return simulated outcomes; see `draws_reference.outcomes`."""
    ids, rate = np.ascontiguousarray(ids, dtype=np.uint64), np.ascontiguousarray(rate, dtype=np.float64)
    sealed = ids.view(), rate.view()
    for array in sealed:
        array.flags.writeable = False
    out = np.empty((len(ids), draws), dtype=np.uint8)
    _outcomes(*sealed, np.uint64(first), np.uint64(salt), out)
    return out


# ---- Simulated outcomes added up by cell, compiled; twin of `tallies_reference` ----

AT_ONCE = 256  # draws whose sums stay in the cache together


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _tallies(ids: Any, rate: Any, weight: Any, codes: Any, first: Any, salt: Any, out: Any) -> None:
    weighted, draws = weight.shape[0] > 0, out.shape[1]
    drawn = np.empty(draws, dtype=np.float64)
    for i in range(ids.shape[0]):
        state = _mix(ids[i] ^ salt) + first * _GOLDEN
        p, w = rate[i], weight[i] if weighted else 1.0
        for b in range(draws):
            drawn[b] = w if np.float64(_mix(state) >> _S11) * 1.1102230246251565e-16 < p else 0.0
            state += _GOLDEN
        for v in range(codes.shape[1]):
            c = codes[i, v]
            if c >= 0:
                for b in range(draws):
                    out[c, b] += drawn[b]


def tallies(ids: Any, rate: Any, weight: Any, codes: Any, first: int, draws: int, salt: int, cells: int) -> Any:
    """Return simulated sums by cell; see `tallies_reference.tallies`."""
    given = ((ids, np.uint64), (rate, np.float64), ([] if weight is None else weight, np.float64), (codes, np.int32))
    sealed = []
    for array, dtype in given:
        view = np.ascontiguousarray(array, dtype=dtype).view()
        view.flags.writeable = False
        sealed.append(view)
    parts = []
    for start in range(first, first + draws, AT_ONCE):
        out = np.zeros((cells, min(AT_ONCE, first + draws - start)))
        _tallies(*sealed, np.uint64(start), np.uint64(salt), out)
        parts.append(out)
    return np.concatenate(parts, axis=1)


# ---- Peaks of cumulative scores under simulated outcomes, compiled; twin of `cusum_reference` ----
# Outcomes are bits, 64 draws to a word, so that a draw costs one masked addition a step and all models and both signs
# share the same random numbers.

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


# ---- How high and low many walks get, compiled; twin of `walk_reference` ----


@njit(cache=True, nogil=True)
def _extremes(cases: Any, weight: Any, expected: Any, read: Any, at: Any, low: Any, high: Any) -> None:
    draws = cases.shape[1]
    for i in range(cases.shape[0]):
        w, e = weight[i], expected[i]
        if read[i]:
            for b in range(draws):
                at[b] += w * cases[i, b]
                seen = at[b] - e
                low[b] = min(low[b], seen)
                high[b] = max(high[b], seen)
        else:
            for b in range(draws):
                at[b] += w * cases[i, b]


def extremes(cases: Any, weight: Any, expected: Any, read: Any, at: Any, low: Any, high: Any) -> None:
    """Continue the walks in place; see `walk_reference.extremes`."""
    kinds = ((cases, np.int32), (weight, np.float64), (expected, np.float64), (read, np.bool_))
    sealed: list[Any] = [np.ascontiguousarray(v, dtype=kind).view() for v, kind in kinds]
    for array in sealed:
        array.flags.writeable = False
    _extremes(*sealed, at, low, high)
