r"""Upper bounds on the L1 calibration error of a score shown in finitely many values (theory 1.1 and 1.4).

A level shows the value ``s`` to ``n`` rows of which ``k`` are cases; ``CE = sum_s P(s) |s - e(s)|`` with ``e(s)``
the event rate at the level. Nothing is assumed but independent rows from one distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.stats.product import gammas, solve_upper

SLACK = 1e-9  # added to every notch constant, and a millionth of it per row: above the rounding error of its search


def bernstein_upper(s: Any, n: Any, k: Any, delta: float) -> float:
    r"""Theorem 1, the readable reference: plug-in plus Bernstein, ``delta`` split 0.8 to 0.2.

    ``CE <= F + sqrt(2 v L1 / N) + L1 / (3 N)`` with ``F = sum_s |n s - k| / N``, ``w`` the mean squared residual
    and ``v = (sqrt(L2 / 2N) + sqrt(w + L2 / 2N))^2``, an upper confidence bound on its expectation.
    """
    rows = float(np.sum(n))
    plug_in = float(np.abs(n * s - k).sum()) / rows
    moment = float((k * (1.0 - s) ** 2 + (n - k) * s**2).sum()) / rows
    return bernstein(plug_in, moment, rows, delta)


def bernstein(plug_in: float, moment: float, rows: float, delta: float) -> float:
    """Theorem 1's bound from its plug-in F and empirical second moment w, for either display."""
    l1, l2 = -np.log(0.8 * delta), -np.log(0.2 * delta)
    v = min(1.0, (np.sqrt(l2 / (2 * rows)) + np.sqrt(moment + l2 / (2 * rows))) ** 2)
    return float(min(1.0, plug_in + np.sqrt(2 * v * l1 / rows) + l1 / (3 * rows)))


def product_upper(s: Any, n: Any, k: Any, delta: float) -> float:
    r"""Theorem U with the notch: solve an average of eight products of e-values.

    For each of four bets ``gamma`` one product uses the linear form in every level, another the form, linear or
    notch, whose expected cost in a calibrated model, a function of ``n`` and ``s`` alone, is smaller.
    """
    s, n, k = (np.asarray(v, dtype=float)[np.asarray(n) > 0] for v in (s, n, k))
    rows = int(n.sum())
    bets = gammas(rows)
    phi = []
    for gamma in bets:
        linear = linear_cost(s, n, k, gamma)
        notch, better = notch_cost(s, n, k, gamma)
        phi += [linear.sum(), np.where(better, notch, linear).sum()]
    return solve_upper(np.array(phi), np.repeat(bets, 2), np.full(8, 1 / 8), rows, delta)


def linear_cost(s: Any, n: Any, k: Any, gamma: float) -> Any:
    """Return ``-ln q`` of Theorem U's linear form, per level."""
    over = k * np.log1p(-gamma * (1 - s)) + (n - k) * np.log1p(gamma * s)
    under = k * np.log1p(gamma * (1 - s)) + (n - k) * np.log1p(-gamma * s)
    return -np.minimum(over, under)


def notch_cost(s: Any, n: Any, k: Any, gamma: float) -> tuple[Any, Any]:
    """Return ``-ln q`` of the notch form, per level, and where it is expected to be the cheaper.

    Levels 0 and 1 have no notch (their null variance is zero); there the cost is infinite.
    """
    cost, better = np.full(len(s), np.inf), np.zeros(len(s), dtype=bool)
    inner = (s > 0) & (s < 1)
    if not inner.any():
        return cost, better
    t, m, hits = s[inner], n[inner], k[inner]
    variance = m * t * (1 - t)
    a = notch_width(gamma * np.sqrt(variance))
    alpha = a / variance
    normaliser = notch_normaliser(t, m, gamma, alpha)
    cost[inner] = 0.5 * alpha * (hits - m * t) ** 2 + normaliser
    better[inner] = 0.5 * a + normaliser < expected_linear_cost(t, m, gamma)
    return cost, better


def notch_width(g: Any) -> Any:
    """Return the a that minimises ``a/2 - ln(1 + a)/2 + g^2 (1 + a) / (2 a)``: the root of ``a^3 = g^2 (1 + a)``."""
    a = np.maximum(1.2 * g, g ** (2.0 / 3.0))
    for _ in range(7):  # Newton from above converges quadratically; any a > 0 keeps the certificate valid
        a = a - (a**3 - g**2 * (1 + a)) / (3 * a**2 - g**2)
    return a


def notch_normaliser(s: Any, n: Any, gamma: float, alpha: Any) -> Any:
    r"""Return ``N = max_e [ln E exp(-alpha (k - n s)^2 / 2) - n ln(1 - gamma |e - s|)]``, ``k ~ Binomial(n, e)``.

    On each side of s the change of variable ``e' = e (1 - gamma (1 - s)) / (1 - gamma (e - s))`` turns the
    objective into a binomial mean of a Gaussian in k about a shifted centre: a Bernstein polynomial of a
    log-concave sequence, hence unimodal, whose peak `kernels.notch_peaks` finds. The search ignores that e
    stops at s, which can only raise N.
    """
    from calibrant.kernels.compiled import notch_peaks

    sides = []
    for sign in (1.0, -1.0):
        up, down = np.log1p(-sign * gamma * (1 - s)), np.log1p(sign * gamma * s)
        shift = (down - up) / alpha
        constant = -n * down + 0.5 * alpha * shift * (2 * n * s + shift)
        sides.append(constant + notch_peaks(n, n * s + shift, alpha))
    return np.maximum(*sides) + SLACK * (1.0 + 1e-6 * n)


def expected_linear_cost(s: Any, n: Any, gamma: float) -> Any:
    """Return the linear form's mean cost under calibration, with k normal: a guide for choosing, not a bound."""
    from scipy.special import ndtr

    a = s * np.log1p(-gamma * (1 - s)) + (1 - s) * np.log1p(gamma * s)
    b = s * np.log1p(gamma * (1 - s)) + (1 - s) * np.log1p(-gamma * s)
    slope = np.log1p(-gamma * (1 - s)) - np.log1p(gamma * s) - np.log1p(gamma * (1 - s)) + np.log1p(-gamma * s)
    mean, sd = n * (a - b), np.abs(slope) * np.sqrt(n * s * (1 - s))
    z = mean / np.maximum(sd, 1e-300)
    absolute = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * z * z) + mean * (2 * ndtr(z) - 1)
    return -0.5 * n * (a + b) + 0.5 * absolute


def debiased_error(s: Any, n: Any, k: Any) -> float:
    r"""Return ``sum_s sqrt(max(0, (n s - k)^2 - n s (1 - s))) / N``: the plug-in without its calibrated noise."""
    square = (n * s - k) ** 2 - n * s * (1 - s)
    return float(np.sqrt(np.maximum(square, 0.0)).sum() / np.sum(n))
