"""Peaks of cumulative scores under simulated outcomes: NumPy twin of `cusum`, meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.draws_reference import outcomes

LANES = 64  # draws in a word


def words(ids: Any, low: Any, high: Any, first: int, salt: int) -> Any:
    """Return 64 draws of each row's outcome at two rates, from one uniform number a draw.

    Parameters
    ----------
    ids : uint64 array of shape (n,)
        Row identities.
    low, high : float64 arrays of shape (n,)
        Event rates.
    first, salt : int
        As in `draws_reference.outcomes`: draw b is that function's draw ``first + b``.

    Returns
    -------
    uint64 array of shape (n, 2)
        Bit b is draw b, at `low` and at `high`.
    """
    shifts = np.arange(LANES, dtype=np.uint64)
    columns = [
        np.bitwise_or.reduce(outcomes(ids, rate, first, LANES, salt).astype(np.uint64) << shifts, axis=1)
        for rate in (low, high)
    ]
    return np.stack(columns, axis=1)


def peaks(word: Any, at: Any, gain: Any, drift: Any, scale: Any, floor: float) -> Any:
    """Return ``max(floor, max_k scale_k (sum_{j <= k} gain_j bit_j + drift_k))`` of each of 64 draws, over scale > 0.

    Parameters
    ----------
    word : uint64 array of shape (m,)
        64 draws of one bit each.
    at : uint64 array of shape (K,)
        The word of each step.
    gain, drift, scale : float64 arrays of shape (K,)
        What a set bit adds; what has been added by step k whatever the bits; by what the sum is multiplied. A step
        of scale 0 is not looked at.
    floor : float

    Returns
    -------
    float64 array of shape (64,)
    """
    bits = (word[at][:, None] >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1)
    sums = np.cumsum(gain[:, None] * bits, axis=0) + drift[:, None]
    seen = scale > 0
    return np.maximum(floor, (scale[seen, None] * sums[seen]).max(axis=0, initial=-np.inf))
