"""The increasing fit by its formula, a value at a time: slow, short, and meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def isotonic(values: Array, weights: Array) -> Array:
    """Of each value, the largest over beginnings of the smallest over ends of the mean from one to the other."""
    n = len(values)

    def mean(a: int, b: int) -> float:
        return float(np.average(values[a:b], weights=weights[a:b]))

    return np.array([max(min(mean(a, b) for b in range(i + 1, n + 1)) for a in range(i + 1)) for i in range(n)])
