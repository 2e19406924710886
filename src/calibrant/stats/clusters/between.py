"""Random-effects meta-analysis of estimates with known variances: mean, spread between sites, and a new site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Spread = Literal["reml", "paule-mandel"]

BRACKET = 64  # doublings until tau^2 is surely too large


@dataclass(frozen=True)
class Pooled:
    """A random-effects meta-analysis."""

    # `mean` and `error`: the mean over sites, and its standard error by Hartung and Knapp.
    mean: float
    error: float
    # `low`, `high`, `new_low` and `new_high`: the interval of the mean, and the prediction interval of a new site.
    low: float
    high: float
    new_low: float
    new_high: float
    # `tau2`, `tau2_low` and `tau2_high`: variance between sites, and its Q-profile interval.
    tau2: float
    tau2_low: float
    tau2_high: float
    weight: Floats  # shape (k,): of each site, adding up to one
    # `q`, `p_value` and `i2`: Cochran's Q, its p-value, and the share of its spread beyond chance.
    q: float
    p_value: float
    i2: float


def pooled(effect: Floats, variance: Floats, alpha: float, spread: Spread) -> Pooled:
    """Pool the effects of k >= 3 sites: mean by Hartung and Knapp, prediction interval with k - 2 degrees of freedom.

    `effect`, `variance` (k,): estimates, and the variances of their errors. `spread`: how the variance between sites is
    estimated.
    """
    from scipy.stats import chi2, t

    k = len(effect)
    tau2 = (reml if spread == "reml" else paule_mandel)(effect, variance)
    # (1) The mean, and its error from how far the sites lie apart, weighted: right to first order whatever tau^2.
    weight = 1.0 / (variance + tau2)
    mean = float(weight @ effect / weight.sum())
    error = float(np.sqrt(weight @ (effect - mean) ** 2 / ((k - 1) * weight.sum())))
    half = float(t.isf(alpha / 2.0, k - 1)) * error
    # (2) A new site: the spread of sites on top of the error of the mean (Higgins, Thompson and Spiegelhalter).
    new = float(t.isf(alpha / 2.0, k - 2) * np.sqrt(tau2 + error**2))
    # (3) Homogeneity; its Q, taken at other values of tau^2, has the interval of tau^2.
    q = _generalised_q(effect, variance, 0.0)
    ends = [_solved(effect, variance, float(chi2.isf(a, k - 1))) for a in (alpha / 2.0, 1.0 - alpha / 2.0)]
    return Pooled(
        mean=mean,
        error=error,
        low=mean - half,
        high=mean + half,
        new_low=mean - new,
        new_high=mean + new,
        tau2=tau2,
        tau2_low=ends[0],
        tau2_high=ends[1],
        weight=weight / weight.sum(),
        q=q,
        p_value=float(chi2.sf(q, k - 1)),
        i2=max(0.0, 1.0 - (k - 1) / q) if q > 0 else 0.0,
    )


def paule_mandel(effect: Floats, variance: Floats) -> float:
    """The tau^2 at which Cochran's Q, weighted with it, is what is expected of it: k - 1; zero if it is less."""
    return _solved(effect, variance, len(effect) - 1.0)


def reml(effect: Floats, variance: Floats) -> float:
    """The tau^2 of the largest restricted likelihood, the largest of its maxima if it has several."""
    from scipy.optimize import minimize_scalar

    def loss(tau2: float) -> float:
        w = 1.0 / (variance + tau2)
        mean = w @ effect / w.sum()
        return float(-np.log(w).sum() + np.log(w.sum()) + w @ (effect - mean) ** 2)

    # (1) tau^2 is at most the squared range; a grid even in the logarithm sees each of the maxima.
    top = float(np.ptp(effect)) ** 2
    if top <= 0.0:
        return 0.0
    grid = np.concatenate([[0.0], np.geomspace(1e-6 * min(top, float(variance.min())), top, 200)])
    at = int(np.argmin([loss(x) for x in grid]))
    # (2) The best of them, refined between its neighbours.
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    result = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10 * top})
    return float(result.x) if result.fun < loss(0.0) else 0.0


def _generalised_q(effect: Floats, variance: Floats, tau2: float) -> float:
    w = 1.0 / (variance + tau2)
    return float(w @ (effect - w @ effect / w.sum()) ** 2)


def _solved(effect: Floats, variance: Floats, target: float) -> float:
    """The tau^2 at which the generalised Q, which falls in it, comes down to a target; zero if it is below."""
    from scipy.optimize import brentq

    def above(tau2: float) -> float:
        return _generalised_q(effect, variance, tau2) - target

    if above(0.0) <= 0.0:
        return 0.0
    top = max(float(variance.max()), float(np.ptp(effect)) ** 2)
    for _ in range(BRACKET):
        if above(top) < 0.0:
            break
        top *= 2.0
    return float(brentq(above, 0.0, top, xtol=1e-14 * top, rtol=1e-13))
