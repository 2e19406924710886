"""How large a Brownian motion on [0, 1] gets: tails of its maximum modulus and of its range."""

from __future__ import annotations

import math

TERMS = 60  # of each series: more than any argument needs
SIGNS = (1.0, -1.0) * (TERMS // 2)
CROSS = 2.0  # where one series takes over from the other; both are exact to rounding there


def upper_tail(z: float) -> float:
    """Return the chance that a standard normal variable exceeds z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def maximum_tail(x: float) -> float:
    """Return ``P(max |B(t)| >= x)`` (Feller 1971, volume 2, X.5), for B started at 0 and free at 1: no bridge."""
    if x <= 0.0:
        return 1.0
    if x >= CROSS:
        return 4.0 * math.fsum(SIGNS[k] * upper_tail((2 * k + 1) * x) for k in range(TERMS))
    inside = math.fsum(
        SIGNS[k] / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / x) ** 2) / 8.0) for k in range(TERMS)
    )
    return min(max(1.0 - 4.0 / math.pi * inside, 0.0), 1.0)


def range_tail(x: float) -> float:
    """Return ``P(max B(t) - min B(t) >= x)`` (Feller 1951)."""
    if x <= 0.0:
        return 1.0
    if x >= CROSS:
        return 8.0 * math.fsum(SIGNS[k - 1] * k * upper_tail(k * x) for k in range(1, TERMS))
    halves = [(k + 0.5) * math.pi for k in range(TERMS)]
    inside = math.fsum((8.0 / x**2 + 2.0 / h**2) * math.exp(-2.0 * (h / x) ** 2) for h in halves)
    return min(max(1.0 - inside, 0.0), 1.0)
