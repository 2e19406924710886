"""Nadaraya-Watson smoothing one point at a time, in plain NumPy; twin of `window`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def smooth(
    at: Floats, scores: Floats, labels: Floats, bandwidth: float, slope: float, curvature: float
) -> tuple[Floats, Floats, int]:
    """Return the surrogate at each point of `at`, its error bound `g` (Lemma 6), and how many fell back.

    Epanechnikov weights to the power 1.2, then normalised; where no score lies within the bandwidth, all the
    weight is on the nearest score (the first of those equally near).
    """
    fit, error, alone = np.empty(at.size), np.empty(at.size), 0
    for j, s in enumerate(at):
        near = (scores > s - bandwidth) & (scores < s + bandwidth)
        gap, y = np.abs(scores[near] - s), labels[near]
        weight = np.maximum(1 - (gap / bandwidth) ** 2, 0.0) ** 1.2
        if weight.sum() == 0:
            alone += 1
            nearest = int(np.argmin(np.abs(scores - s)))
            gap, y, weight = np.abs(scores[[nearest]] - s), labels[[nearest]], np.ones(1)
        weight = weight / weight.sum()
        fit[j] = weight @ y
        error[j] = slope * weight @ gap + curvature / 2 * weight @ gap**2 + np.sqrt(weight @ weight) / 2
    return fit, error, alone
