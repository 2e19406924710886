"""Event rates of a group: one-sided evidence and limits that hold at any number of rows, weights and clusters too."""

from __future__ import annotations

from typing import Any

import numpy as np

STAKES = (0.5, 1.0, 2.0, 4.0, 8.0)  # bets times the root of the units, over the largest deviation one half
LARGEST = 0.45


def rate_evidence(cases: int, rows: int, rate: float) -> float:
    """Return a p-value against "the mean event rate is at most `rate`", for independent rows of unequal rates.

    The binomial tail bounds that of unequal rates from ``rows x rate + 1`` cases on (Hoeffding 1956); below, the p-value
    is 1, and for a single case it is the expected number.
    """
    from scipy.special import bdtrc

    expected = rows * rate
    if cases == 1:
        return min(1.0, expected)
    if cases < expected + 1.0:
        return 1.0
    return float(bdtrc(cases - 1, rows, min(rate, 1.0)))


def rate_limits(cases: int, rows: int, delta: float) -> tuple[float, float]:
    """Return limits that hold the mean event rate of independent rows with probability at least ``1 - delta``.

    Clopper and Pearson's, which hold for unequal rates too where they exclude something (Hoeffding 1956), but for a
    single case, or non-case, whose limit is that of the expected number.
    """
    from scipy.special import betaincinv

    def lower(k: int) -> float:
        if k <= 1:
            return k * delta / (2.0 * rows)
        return float(betaincinv(k, rows - k + 1, delta / 2.0))

    return lower(cases), 1.0 - lower(rows - cases)


def ratio_evidence(excess: Any, size: Any, mean: float, side: float) -> float:
    """Return a p-value against "the ratio of sums is at most `mean`" (`side` 1) or at least it (-1).

    Parameters
    ----------
    excess, size : float arrays of shape (units,)
        Sums of weighted residuals, and of weights, of independent units (rows, or clusters); ``|excess| <= size``.
    mean : float
    side : float

    Notes
    -----
    ``prod (1 + k (a_u - m b_u))`` has mean at most one if ``E sum a = m sum b``; an average over fixed bets k likewise.
    """
    return float(min(1.0, np.exp(-_log_wealth(excess, size, mean, side))))


def ratio_limits(excess: Any, size: Any, delta: float) -> tuple[float, float]:
    """Return limits that hold ``E sum excess / sum size`` with probability at least ``1 - delta``."""
    from scipy.optimize import brentq

    target = float(np.log(2.0 / delta))

    def limit(side: float) -> float:
        start, stop = -side, side
        if _log_wealth(excess, size, start, side) <= target:
            return start
        if _log_wealth(excess, size, stop, side) >= target:
            return stop
        return float(brentq(lambda m: _log_wealth(excess, size, m, side) - target, start, stop, xtol=1e-10))

    return limit(1.0), limit(-1.0)


def _log_wealth(excess: Any, size: Any, mean: float, side: float) -> float:
    """Return the logarithm of the mean, over bets, of what they make of the units."""
    scale = float(size.max())
    kish = float(size.sum()) ** 2 / float((size**2).sum())
    stakes = np.minimum(2.0 * np.array(STAKES) / np.sqrt(kish), LARGEST) * side / scale
    gain = np.log1p(stakes[:, None] * (excess - mean * size)[None, :]).sum(axis=1)
    top = float(gain.max())
    return top + float(np.log(np.exp(gain - top).mean()))
