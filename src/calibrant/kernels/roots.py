"""Where a function is zero, or lowest, between two points, without loading a library of optimisers."""

from __future__ import annotations

import math
from collections.abc import Callable

SPACING = 2.0**-52  # of doubles next to one
RELATIVE = 4.0 * SPACING  # the finest error, relative to the root, that can be asked for
ROUNDS = 100
Point = tuple[float, float]


def crossing(
    function: Callable[[float], float], a: float, b: float, *, xtol: float = 2e-12, rtol: float = RELATIVE
) -> float:
    """Where a function crosses zero between `a` and `b`, by Brent's method.

    `function`: continuous; its values at `a` and `b` differ in sign. `xtol`, `rtol`: the root is found to within ``xtol
    + rtol |root|``.

    Raises
    ------
    ValueError
        Both values have one sign.
    RuntimeError
        It is not found within `ROUNDS` steps.

    Notes
    -----
    **Method.** Step by step that of `scipy.optimize.brentq` (Brent 1973, chapter 4; hyperbolic extrapolation in place
    of inverse quadratic), so that roots are the same to the bit; but its import costs more than a thousand roots.
    **Cost.** About ten values of the function.
    """
    before, now, other = float(a), float(b), float(a)
    f_before, f_now = function(before), function(now)
    if f_before == 0.0:
        return before
    if f_now == 0.0:
        return now
    if (f_before < 0.0) == (f_now < 0.0):
        raise ValueError("no root: the function has one sign at both ends")
    f_other, step, last = f_before, now - before, now - before
    for _ in range(ROUNDS):
        # (1) The root lies between the last two points, or between the last and the one before that pair
        if f_before != 0.0 and f_now != 0.0 and (f_before < 0.0) != (f_now < 0.0):
            other, f_other, step, last = before, f_before, now - before, now - before
        if abs(f_other) < abs(f_now):
            before, now, other = now, other, now
            f_before, f_now, f_other = f_now, f_other, f_now
        # (2) Near enough?
        near, half = (xtol + rtol * abs(now)) / 2.0, (other - now) / 2.0
        if f_now == 0.0 or abs(half) < near:
            return now
        # (3) The secant or the hyperbola, where it is short enough; else halve
        if abs(last) > near and abs(f_now) < abs(f_before):
            if before == other:
                trial = -f_now * (now - before) / (f_now - f_before)
            else:
                d = (f_before - f_now) / (before - now)
                e = (f_other - f_now) / (other - now)
                under = e * d * (f_other - f_before)
                trial = -f_now * (f_other * e - f_before * d) / under if under else math.inf
            short = 2.0 * abs(trial) < min(abs(last), 3.0 * abs(half) - near)
            last, step = (step, trial) if short else (half, half)
        else:
            last, step = half, half
        before, f_before = now, f_now
        now += step if abs(step) > near else near if half > 0.0 else -near
        f_now = function(now)
    raise RuntimeError(f"no root within {ROUNDS} steps")


GOLDEN = (3.0 - math.sqrt(5.0)) / 2.0  # of the longer side of the bracket


def lowest(function: Callable[[float], float], a: float, b: float, *, xtol: float) -> float:
    """Where a function is lowest between `a` and `b`, by Brent's method; a local minimum if it has several.

    `a`, `b`: increasing. `xtol`: the place is found to about so much.

    Notes
    -----
    **Method.** Step by step that of `scipy.optimize.minimize_scalar` with ``method="bounded"`` (Brent 1973, chapter 5),
    so that places are the same to the bit. **Cost.** About ten values of the function.
    """
    best = a + GOLDEN * (b - a)
    second = third = best
    f_best = f_second = f_third = function(best)
    step = last = 0.0
    while True:
        middle = 0.5 * (a + b)
        near = math.sqrt(2.2e-16) * abs(best) + xtol / 3.0
        if abs(best - middle) <= 2.0 * near - 0.5 * (b - a):
            return best
        # (1) The lowest point of a parabola through the three best, where it is inside and its step short; else golden
        under, before = 0.0, last
        if abs(last) > near:
            over, under = _parabola((best, f_best), (second, f_second), (third, f_third))
            last = step
        if under and abs(over) < abs(0.5 * under * before) and under * (a - best) < over < under * (b - best):
            step = over / under
            x = best + step
            if x - a < 2.0 * near or b - x < 2.0 * near:
                step = near if middle >= best else -near
        else:
            last = (a if best >= middle else b) - best
            step = GOLDEN * last
        x = best + math.copysign(max(abs(step), near), step if step else 1.0)
        f_x = function(x)
        # (2) The bracket shrinks to the sides of the lower of the two
        edge, beyond = (best, x >= best) if f_x <= f_best else (x, x < best)
        a, b = (edge, b) if beyond else (a, edge)
        # (3) The three best, in order
        if f_x <= f_best:
            third, f_third, second, f_second, best, f_best = second, f_second, best, f_best, x, f_x
        elif f_x <= f_second or second == best:
            third, f_third, second, f_second = second, f_second, x, f_x
        elif f_x <= f_third or third in (best, second):
            third, f_third = x, f_x


def _parabola(best: Point, second: Point, third: Point) -> tuple[float, float]:
    """The step from the best point to the lowest of the parabola through three, as a fraction."""
    r = (best[0] - second[0]) * (best[1] - third[1])
    q = (best[0] - third[0]) * (best[1] - second[1])
    over, under = (best[0] - third[0]) * q - (best[0] - second[0]) * r, 2.0 * (q - r)
    return (-over if under > 0.0 else over), abs(under)
