"""Simulated outcomes that depend on a row's identity only: NumPy twin of `draws`, meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.reference import mix

GOLDEN = 0x9E3779B97F4A7C15


def outcomes(ids: Any, rate: Any, first: int, draws: int, salt: int) -> Any:
    """Return outcomes of a calibrated model: ``Y* ~ Bernoulli(rate)``, independent over rows and draws.

    Draw b of a row is the b-th number of the SplitMix64 stream that starts at ``mix(id ^ salt)``, so that it depends
    neither on the other rows nor on how rows or draws are cut into chunks.

    Parameters
    ----------
    ids : uint64 array of shape (n,)
        Row identities.
    rate : float64 array of shape (n,)
        Event rates in [0, 1].
    first, draws : int
        Number of the first draw, and how many.
    salt : int
        From the seed; two salts give independent outcomes.

    Returns
    -------
    uint8 array of shape (n, draws)
    """
    with np.errstate(over="ignore"):
        start = mix(np.asarray(ids, dtype=np.uint64) ^ np.uint64(salt))
        steps = np.arange(first, first + draws, dtype=np.uint64) * np.uint64(GOLDEN)
        bits = mix(start[:, None] + steps[None, :]) >> np.uint64(11)
    return (bits.astype(np.float64) * 2.0**-53 < np.asarray(rate)[:, None]).astype(np.uint8)


def uniforms(ids: Any, salt: int) -> Any:
    """Return one uniform number in [0, 1) a row, keyed by its identity: an outcome of draw 0 is 1 where this is below the rate."""
    bits = mix(mix(np.asarray(ids, dtype=np.uint64) ^ np.uint64(salt))) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53
