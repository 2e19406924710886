"""Concentration of customers, or of exposure, in few grades."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def variation(amounts: ArrayLike) -> float:
    """The coefficient of variation of the grades' shares: ``sqrt(K sum (R_i - 1/K)^2)``, 0 if all are equal."""
    kept = np.asarray(amounts, dtype=float)
    k = len(kept)
    return math.sqrt(k * float(((kept / kept.sum() - 1.0 / k) ** 2).sum()))


def herfindahl(cv: float, grades: int) -> float:
    """The Herfindahl index on a scale from 0 (all equal) to 1 (one grade): ``1 + ln((CV^2 + 1) / K) / ln K``."""
    return 1.0 + math.log((cv**2 + 1.0) / grades) / math.log(grades)


def variation_of(index: float, grades: int) -> float:
    """The coefficient of variation that a Herfindahl index says."""
    return math.sqrt(max(grades**index - 1.0, 0.0))


def rise(initial: float, current: float, grades: int) -> float:
    r"""The p-value of more concentration now than at initial validation, by coefficients of variation.

    ``1 - Phi(sqrt(K - 1) (CV_curr - CV_init) / sqrt(CV_curr^2 (1/2 + CV_curr^2)))``: the normal law of a coefficient of
    variation of K values (Miller 1991), the initial one taken as known. The number of customers is not in it. Without
    any concentration now it is 1.
    """
    from scipy.special import ndtr

    if current == 0.0:
        return 1.0
    return float(ndtr(-math.sqrt(grades - 1) * (current - initial) / math.sqrt(current**2 * (0.5 + current**2))))
