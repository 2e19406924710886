"""The root of a function between two points where its signs differ, without loading a library of optimisers."""

from __future__ import annotations

import math
from collections.abc import Callable

SPACING = 2.0**-52  # of doubles next to one
RELATIVE = 4.0 * SPACING  # the finest error, relative to the root, that can be asked for
ROUNDS = 100


def crossing(
    function: Callable[[float], float], a: float, b: float, *, xtol: float = 2e-12, rtol: float = RELATIVE
) -> float:
    """Return where a function crosses zero between `a` and `b`, by Brent's method.

    Parameters
    ----------
    function : callable of a float
        Continuous; its values at `a` and `b` differ in sign.
    a, b : float
    xtol, rtol : float
        The root is found to within ``xtol + rtol |root|``.

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
