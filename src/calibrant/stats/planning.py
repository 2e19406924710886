r"""How many rows a certificate needs: expected bounds at a sample size not yet collected. Guides, not guarantees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.stats.jitter import jitter
from calibrant.stats.product import JITTER_WEIGHTS, gammas, solve_upper
from calibrant.stats.rounded import SLACK, expected_linear_cost, notch_normaliser, notch_width

MOST = 10**12
AVERAGING, LEARNING = 2.5, 1.4


def least_rows(shrinking: Callable[[float], float], gap: float, start: float = 1000.0) -> float:
    """Return about the least n at which a decreasing function of n falls to `gap`; infinity beyond 1e12.

    Bounds shrink about like ``n^(-1/2)``, so each step multiplies n by the squared ratio to the target.
    """
    n = start
    for _ in range(40):
        ratio = shrinking(n) / gap
        if abs(ratio - 1.0) < 0.005 or (n <= 20.0 and ratio < 1.0):
            break
        n = max(n * min(max(ratio**2, 0.05), 20.0), 20.0)
        if n > MOST:
            return float("inf")
    return n


def rounded_gap(s: Any, mass: Any, n: float, delta: float) -> float:
    """Expected upper bound of a calibrated score shown at levels `s` with probabilities `mass`.

    Plugs the expected cost of each level, its label-free choice included, into Theorem U.
    """
    keep = mass > 0
    s, rows = s[keep], np.maximum(n * mass[keep], 1.0)
    bets, phi = gammas(int(n)), []
    inner = (s > 0) & (s < 1)
    for gamma in bets:
        linear = expected_linear_cost(s, rows, gamma)
        notch = np.full(len(s), np.inf)
        t, m = s[inner], np.round(rows[inner])
        a = notch_width(gamma * np.sqrt(m * t * (1 - t)))
        notch[inner] = 0.5 * a + notch_normaliser(t, m, gamma, a / (m * t * (1 - t))) - SLACK
        phi += [linear.sum(), np.minimum(linear, notch).sum()]
    return solve_upper(np.array(phi), np.repeat(bets, 2), np.full(8, 1 / 8), int(n), delta)


def jittered_gap(mass: Any, bandwidth: float, n: float, delta: float) -> float:
    """Expected upper bound of a calibrated, then jittered, score with probabilities `mass` per grid cell."""
    kernel = jitter(len(mass), bandwidth)
    t, bets = kernel.points, gammas(int(n))
    c = kernel.points
    positive, negative = n * kernel.spread(mass * c), n * kernel.spread(mass * (1 - c))
    noise = np.sqrt(n * kernel.spread_square(mass * c * (1 - c)))
    phi = []
    for g in bets:
        plus = positive * np.log1p(g * (1 - t)) + negative * np.log1p(-g * t)
        minus = positive * np.log1p(-g * (1 - t)) + negative * np.log1p(g * t)
        slope = np.log1p(g * (1 - t)) - np.log1p(-g * t) - np.log1p(-g * (1 - t)) + np.log1p(g * t)
        phi.append(-0.5 * (plus + minus).sum() + 0.5 * _mean_absolute(plus - minus, slope * noise).sum())
    return solve_upper(np.array(phi), bets, np.array(JITTER_WEIGHTS), int(n), delta)


def jittered_truth(mass: Any, bandwidth: float) -> float:
    """Calibration error that the jitter itself causes in a calibrated score."""
    kernel = jitter(len(mass), bandwidth)
    t = kernel.points
    return float(np.abs(t * kernel.spread(mass) - kernel.spread(mass * t)).sum())


def lower_gap(moment: float, n: float, delta: float, blocks: int = 8) -> float:
    """Expected shortfall of Theorem L: ``sqrt(2 v L / n)``, with what learning and averaging cost.

    Averaging e-values costs about `AVERAGING` nats; learning signs on early blocks makes rows worth less by `LEARNING`.
    Both are set by simulation, so that about half of the bounds reach the target where the error has one sign or
    changes it once; an error that alternates over narrow ranges takes several times as many.
    """
    nats = (-np.log(delta) + AVERAGING) * LEARNING
    return float(np.sqrt(2.0 * moment * nats * blocks / ((blocks - 1) * n)))


def _mean_absolute(mean: Any, sd: Any) -> Any:
    """Return ``E|N(mean, sd^2)|``."""
    from scipy.special import ndtr

    sd = np.maximum(np.abs(sd), 1e-300)
    z = mean / sd
    return sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * z * z) + mean * (2 * ndtr(z) - 1)
