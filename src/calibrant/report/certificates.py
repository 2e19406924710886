"""Short lines for the `certify` and `plan` commands."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.report import numbers
from calibrant.results import Estimate


def certificates(found: Sequence[Estimate]) -> str:
    """Return one line a certificate: bounds in points, rounded outward, and what they are about."""
    lines = []
    for e in found:
        low, high = numbers.lower_bound(e.interval.low), numbers.upper_bound(e.interval.high)
        span = (
            f"at least {low}"
            if e.interval.high >= 1.0
            else f"at most {high}"
            if e.interval.low <= 0.0
            else f"{low} to {high}"
        )
        name = e.method.removeprefix("certify.")
        lines.append(f"{name:<18} {span:>16} points   {e.settings['about']}")
        lines.append(f"{'':<18} {'':>16}          assumes {e.assumes}; level {e.interval.level:g}")
    return "\n".join(
        [
            f"{found[0].n:,} rows. 1 point = 1 person in 100; bounds are rounded outward.".replace(",", "\u202f"),
            *lines,
        ]
    )


def plan(found: Estimate) -> str:
    """Return the rows needed, to two digits, and what they were planned for."""
    s = found.settings
    shown = f"shown in {s['levels']} steps" if s["method"] == "rounded" else f"jittered by {s['bandwidth']:g}"
    about = "the raw score, from below" if s["side"] == "lower" else f"the score {shown}"
    if not math.isfinite(found.value):
        return f"No number of rows up to 10^12 gives a gap of {s['gap']:g} for {about}."
    scale = 10 ** max(len(str(int(found.value))) - 2, 0)
    rows = f"{math.ceil(found.value / scale) * scale:,}".replace(",", "\u202f")
    side = {"upper": "an upper bound", "lower": "a lower bound", "two-sided": "both bounds"}[s["side"]]
    return (
        f"About {rows} rows for {side} within {100 * s['gap']:g} points of the error, on average, for {about}\n"
        f"(level {found.interval.level:g}; {found.assumes}). A plan, not a certificate."
    )
