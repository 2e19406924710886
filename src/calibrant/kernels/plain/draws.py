"""Hashes and simulated outcomes: those of `calibrant.kernels.draws`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import draws as d

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]


def hash_bytes(offsets: NDArray[np.int64], data: NDArray[np.uint8], seed: np.uint64) -> Ids:
    """Hash byte strings, a byte of each at a time."""
    h = np.full(len(offsets) - 1, d.BASIS ^ seed, dtype=np.uint64)
    sizes, bytes_ = np.diff(offsets), data.astype(np.uint64)
    for j in range(int(sizes.max(initial=0))):
        on = np.flatnonzero(sizes > j)
        h[on] = (h[on] ^ bytes_[offsets[on] + j]) * d.PRIME
    return d.mix(h)
