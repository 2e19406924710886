"""Event rates of a group: one-sided evidence and limits that hold at any number of rows, weights and clusters too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

STAKES = (2.0, 4.0, 8.0, 16.0)  # bets times the root of the units and their size
LARGEST = 0.9  # share of its wealth that a bet may lose on one unit
GRID = 201  # hypotheses scanned from the far end, so that every one beyond a limit is refuted


@dataclass(frozen=True, kw_only=True)
class Units:
    """Independent units: rows, or whole clusters.

    Parameters
    ----------
    excess, size : float arrays of shape (units,)
        Sums of weighted residuals ``w (y - p)``, and of weights.
    least, most : float arrays of shape (units,)
        What `excess` would be without a case, and with cases only.
    """

    excess: Any
    size: Any
    least: Any
    most: Any

    @classmethod
    def of(cls, y: Any, p: Any, weights: Any, unit: Any) -> Units:
        """Add up the rows of each unit (0 to U - 1)."""
        residual = (np.bincount(unit, weights * (v - p)) for v in (y, 0.0, 1.0))
        excess, least, most = residual
        return cls(excess=excess, size=np.bincount(unit, weights), least=least, most=most)


def rate_evidence(cases: int, rows: int, rate: float) -> float:
    """Return a p-value against "the mean event rate is at most `rate`", for independent rows of unequal rates.

    The binomial tail bounds that of unequal rates from ``rows x rate + 1`` cases on (Hoeffding 1956); below, the
    p-value is 1, and for a single case it is the expected number.
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


def ratio_evidence(units: Units, mean: float, side: float) -> float:
    """Return a p-value against "expected excess over size is at most `mean`" (`side` 1), or at least it (-1).

    Notes
    -----
    For a bet k fixed by what the outcomes cannot change, ``prod (1 + k (a_u - m b_u))`` has mean at most one if
    ``E sum a = m sum b``, whatever each unit's own mean; so has an average over bets.
    """
    return float(min(1.0, np.exp(-_log_wealth(units, mean, side))))


def ratio_limits(units: Units, delta: float) -> tuple[float, float]:
    """Return limits that hold ``E sum excess / sum size`` with probability at least ``1 - delta``."""
    from scipy.optimize import brentq

    target = float(np.log(2.0 / delta))

    def limit(side: float) -> float:
        means = np.linspace(-side, side, GRID)
        before = float(means[0])
        for m in map(float, means):
            if _log_wealth(units, m, side) <= target:
                return m if m == before else brentq(lambda v: _log_wealth(units, v, side) - target, before, m)
            before = m
        return before

    return float(limit(1.0)), float(limit(-1.0))


def _log_wealth(units: Units, mean: float, side: float) -> float:
    """Return the logarithm of the mean, over bets, of what they make of the units."""
    worst = float((side * mean * units.size - np.minimum(side * units.least, side * units.most)).max())
    stakes = np.array(STAKES) / np.sqrt(float((units.size**2).sum()))
    stakes = np.minimum(stakes, LARGEST / worst) if worst > 0 else stakes
    gain = np.log1p(stakes[:, None] * side * (units.excess - mean * units.size)[None, :]).sum(axis=1)
    top = float(gain.max())
    return top + float(np.log(np.exp(gain - top).mean()))
