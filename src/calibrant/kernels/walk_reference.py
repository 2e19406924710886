"""How high and low many walks get, step by step over rows: NumPy twin of `walk`, meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np


def extremes(cases: Any, weight: Any, expected: Any, read: Any, at: Any, low: Any, high: Any) -> None:
    """Continue the walks ``sum weight cases - expected`` over some rows, in place.

    Parameters
    ----------
    cases : int32 array of shape (m, draws)
        Cases of each entry in each draw.
    weight, expected : float64 arrays of shape (m,)
        Weight of a case, and what is to be subtracted in all up to and with each entry.
    read : bool array of shape (m,)
        Where the walk is looked at.
    at, low, high : float64 arrays of shape (draws,), written
        Weighted cases so far, and the lowest and highest point of each walk so far.
    """
    path = at + np.cumsum(weight[:, None] * cases, axis=0)
    at[:] = path[-1]
    seen = (path - expected[:, None])[read]
    low[:] = np.minimum(low, seen.min(axis=0, initial=np.inf))
    high[:] = np.maximum(high, seen.max(axis=0, initial=-np.inf))
