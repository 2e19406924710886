"""Certified ranges of every ranked variable: of its whole error, and of that beyond the overall shift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.certify.residuals import Cut, Dealt, cut_of, dealt_of
from calibrant.certify.residuals_sketch import sketched_cut
from calibrant.certify.variable import FOR_SHIFT
from calibrant.data.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.stats.strata import View
from calibrant.stats.witness import NONE, lower_bound, shift_limits, upper_bound

Ends = dict[str, float]


def certified_ranges(
    data: Any, names: Sequence[str], bins: int, view: View, alpha: float, seed: int
) -> tuple[dict[str, Ends], str | None]:
    """Return the ends for each variable, or none and why no proof covers the data.

    All ends hold together with probability at least ``1 - alpha``: each is `certify.variable`'s with its part of it.
    Each variable is cut once for both of its ranges.
    """
    delta = alpha / (4.0 * len(names))
    try:
        dealt: Dealt | None = None if isinstance(data, Sketch) else dealt_of(data, view, seed)
        out = {}
        for name in names:
            cut = sketched_cut(data, name, bins, None, view) if dealt is None else cut_of(dealt, name, bins, False)
            low, high = _ends(cut, delta, NONE, seed)
            shifts = shift_limits(cut.ledger, 2.0 * FOR_SHIFT * delta)
            beyond_low, beyond_high = _ends(cut, delta * (1.0 - FOR_SHIFT), shifts, seed)
            out[name] = {"low": low, "high": high, "beyond_low": beyond_low, "beyond_high": beyond_high}
    except NotComputable as e:
        return {}, e.reason
    return out, None


def _ends(cut: Cut, delta: float, shifts: tuple[float, ...], seed: int) -> tuple[float, float]:
    low = lower_bound(cut.ledger, delta, seed, cut.ordered, shifts) - cut.rounding
    return max(low, 0.0), min(upper_bound(cut.ledger, delta, shifts) + cut.rounding, 1.0)
