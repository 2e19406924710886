"""The peak of a binomial's notch by brute force: slow, short, and meant to be read first."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def penalty_peaks(n: Sequence[int], centre: Sequence[float], alpha: Sequence[float]) -> NDArray[np.float64]:
    """Return `penalty_peak` of each triple."""
    return np.array([penalty_peak(int(m), float(c), float(a)) for m, c, a in zip(n, centre, alpha, strict=True)])


def penalty_peak(n: int, centre: float, alpha: float) -> float:
    r"""Return ``max over e of ln E exp(-alpha (k - centre)^2 / 2)``, ``k ~ Binomial(n, e)``.

    The maximum is over a fine grid of ``e`` refined around its best point, so it can fall short of the true one only by
    the grid's resolution; the kernel searches the same unimodal function.
    """
    k = np.arange(n + 1, dtype=np.float64)
    log_choose = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)])
    weight = log_choose - 0.5 * alpha * (k - centre) ** 2

    def value(e: float) -> float:
        if e <= 0.0:
            return float(weight[0])
        if e >= 1.0:
            return float(weight[n])
        terms = weight + k * math.log(e) + (n - k) * math.log1p(-e)
        top = terms.max()
        return float(top + math.log(np.exp(terms - top).sum()))

    low, high = 0.0, 1.0
    for _ in range(12):
        grid = np.linspace(low, high, 41)
        values = [value(e) for e in grid]
        best = int(np.argmax(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    return max(values)
