"""Simulated outcomes that depend on a row's identity only, compiled; twin of `draws_reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.compiled import _mix
from calibrant.kernels.draws_reference import GOLDEN

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
