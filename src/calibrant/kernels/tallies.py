"""Simulated outcomes added up by cell, compiled; twin of `tallies_reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.compiled import _mix
from calibrant.kernels.draws import _GOLDEN, _S11

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
