"""The peak of a binomial's Gaussian notch, for many: that of `calibrant.kernels.quadratic_penalty`, to rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS = 60  # Newton's method takes five or six, and where it leaves what is known to hold the peak, halving fifty
ENOUGH = 1e-13  # of a logarithm, that another step would gain
FARTHEST = 60.0  # log odds beyond which a chance is 0 or 1


def penalty_peaks(n: Ints, centre: Floats, alpha: Floats) -> Floats:
    """The largest log mean of each binomial's notch.

    ``ln sum_k C(n, k) exp(-alpha (k - centre)^2 / 2) e^k (1 - e)^(n - k)`` is unimodal in e; with t the log odds of e
    its slope is ``E[k] - n e``, the mean under the weights of the sum, and its curvature ``Var[k] - n e (1 - e)``.
    """
    k, weight = _windows(n, centre, alpha)
    share = np.clip(centre / n, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        t = np.clip(np.log(share) - np.log1p(-share), -FARTHEST, FARTHEST)
    low, high = np.full(len(t), -FARTHEST), np.full(len(t), FARTHEST)
    best = _ends(n, k, weight)
    # The mean rises from e = 0 where the notch is higher at one success than at none, and falls to e = 1 likewise;
    # as it has one peak, elsewhere that is at the end
    going = np.flatnonzero((centre > 0.5) & (centre < n - 0.5))
    for _ in range(ROUNDS if len(going) else 0):
        # (1) Value, slope and curvature at t
        own, at = t[going], k[going]
        terms = weight[going] + at * own[:, None]
        top = terms.max(axis=1)
        mass = np.exp(terms - top[:, None])
        total = mass.sum(axis=1)
        mean = (mass * at).sum(axis=1) / total
        square = (mass * (at - mean[:, None]) ** 2).sum(axis=1) / total
        m, e = n[going], 1.0 / (1.0 + np.exp(-own))
        value = top + np.log(total) - m * np.logaddexp(0.0, own)
        best[going] = np.maximum(best[going], value)
        slope, curve = mean - m * e, square - m * e * (1.0 - e)
        # (2) The peak lies on the side to which it rises
        low[going] = np.where(slope > 0.0, own, low[going])
        high[going] = np.where(slope < 0.0, own, high[going])
        # (3) Newton's step, or halving where that leads out of what holds the peak
        with np.errstate(divide="ignore", invalid="ignore"):
            step = own - slope / curve
        inside = (curve < 0.0) & (step > low[going]) & (step < high[going])
        t[going] = np.where(inside, step, 0.5 * (low[going] + high[going]))
        done = np.where(inside, slope * slope < -ENOUGH * curve, high[going] - low[going] < 1e-9)
        going = going[~done & (slope != 0.0)]
        if not len(going):
            break
    return best


def _windows(n: Ints, centre: Floats, alpha: Floats) -> tuple[Floats, Floats]:
    """The numbers of successes that can matter, a row a binomial, and their log weights.

    Binomials of one n share the logarithms of their coefficients.
    """
    from scipy.special import gammaln

    e = np.clip(centre / n, 0.0, 1.0)
    spread = n * e * (1.0 - e) + 1.0
    reach = (10.0 * np.sqrt(spread / (1.0 + alpha * spread)) + 0.02 * np.sqrt(spread)).astype(np.int64) + 12
    middle = np.clip((centre + 0.5).astype(np.int64), 0, n)
    first, last = np.maximum(middle - reach, 0), np.minimum(middle + reach, n)
    k = first[:, None] + np.arange(int((last - first).max()) + 1, dtype=np.float64)
    inside = k <= last[:, None]
    k = np.minimum(k, last[:, None])
    m = n[:, None].astype(np.float64)
    ratio = np.log((m - k[:, :-1]) / (k[:, :-1] + 1.0), where=inside[:, 1:], out=np.zeros_like(k[:, 1:]))
    at_first = gammaln(n + 1.0) - gammaln(first + 1.0) - gammaln(n - first + 1.0)
    choose = np.cumsum(np.column_stack([at_first, ratio]), axis=1)
    weight = choose - 0.5 * alpha[:, None] * (k - centre[:, None]) ** 2
    return k, np.where(inside, weight, -np.inf)


def _ends(n: Ints, k: Floats, weight: Floats) -> Floats:
    """The larger of the values at the chances 0 and 1, where the window holds what they are of."""
    none = np.where(k[:, 0] == 0.0, weight[:, 0], -np.inf)
    every = np.where((k == n[:, None]) & np.isfinite(weight), weight, -np.inf).max(axis=1)
    return np.maximum(none, every)
