"""How high and low many walks get, compiled; twin of `walk_reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


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
