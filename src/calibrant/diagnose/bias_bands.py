"""What the simulated null says about a bias map: p-values and bands, at each point and over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.stats.simulate import critical, p_value

GUARD = 1.0  # events added to the null variance of each point, so that no point of rare events sets the band of all


@dataclass(frozen=True)
class Judged:
    """The p-values and bands of a map; arrays of shape (points,).

    Parameters
    ----------
    statistic, p_value, critical : float
        Of the whole map.
    low, high : simultaneous band
    point_low, point_high : band of each point by itself
    adjusted, single : p-values over the map, and of each point by itself
    """

    statistic: float
    p_value: float
    critical: float
    low: Any
    high: Any
    point_low: Any
    point_high: Any
    adjusted: Any
    single: Any


def judged(bias: Any, null: Any, spread: Any, per: Any, drawn: Any, alpha: float) -> Judged:
    """Compare a map with its simulated ones.

    Parameters
    ----------
    bias, null, spread : float arrays of shape (points,)
        Estimate, its variance if the model is calibrated, and its variance from the residuals; both positive.
    per : float array of shape (points,)
        What the variance grows by per unit of bias, at most: one over the effective rows.
    drawn : float array of shape (points, draws)
        Simulated estimates; overwritten.
    alpha : float
    """
    scale = np.sqrt(null)
    observed = np.abs(bias) / scale
    np.abs(drawn, out=drawn)
    drawn /= scale[:, None]
    top = drawn.max(axis=0)
    wide = float(critical(top, alpha))
    narrow = critical(drawn.T, alpha)
    ordered = np.sort(top)
    limit = observed - 1e-9 * np.maximum(1.0, observed)
    above = len(top) - np.searchsorted(ordered, limit, side="left")
    single = (1 + (drawn >= limit[:, None]).sum(axis=1)) / (len(top) + 1)
    statistic = float(observed.max())
    return Judged(
        statistic,
        p_value(statistic, top),
        wide,
        *band(bias, null, spread, per, wide),
        *band(bias, null, spread, per, narrow),
        (1 + above) / (len(top) + 1),
        single,
    )


def band(bias: Any, null: Any, spread: Any, per: Any, c: Any) -> tuple[Any, Any]:
    r"""Return the values ``b`` not rejected: ``|bias - b| <= c sd(b)``, a score interval.

    ``sd(b)^2`` is `null` at ``b = 0`` and `spread` at the estimate, linear between, `null` on the other side of zero,
    and from the larger of the two on beyond the estimate, where it grows on at the same rate, at most `per`. The
    interval excludes zero exactly where ``|bias| > c sd(0)``.
    """
    size = np.abs(bias)
    c = np.where(np.isfinite(c), c, 0.0) + np.zeros_like(size) if np.isfinite(c).all() else np.full_like(size, np.inf)
    with np.errstate(invalid="ignore"):
        over = size**2 - c**2 * null
        q = 2 * size**2 + c**2 * (spread - null)
        root = np.sqrt(np.maximum(q * q - 4 * size**2 * over, 0.0))
        t = 2 * over / np.where(over > 0, q + root, 1.0)
        inner = np.where(over > 0, t * size, size - c * np.sqrt(null))
        grows = c**2 * np.clip((spread - null) / np.maximum(size, 1e-12), 0.0, per)
        outer = size + (grows + np.sqrt(grows**2 + 4 * c**2 * np.maximum(null, spread))) / 2
    low, high = np.where(bias < 0, -outer, inner), np.where(bias < 0, -inner, outer)
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
