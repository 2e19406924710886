"""What a record tells of units and weights: how many, how alike their rows are, and what that does to the ranges."""

from __future__ import annotations

from dataclasses import replace

from calibrant.audit.checks.certified import shift
from calibrant.audit.question import Case
from calibrant.results import Estimate
from calibrant.views.population import everyone
from calibrant.views.units import alone


def units(case: Case) -> dict[str, int | float | bool | None] | None:
    """Return what a record holds of units; None where rows are independent and count alike."""
    held = case.everyone.units
    if held is None:
        return None
    sample = case.whole.parts["sample"]
    return {
        "count": sample.of_units,
        "exact": not sample.cut,
        "held": held.count,
        "rows_held": len(held.unit),
        "effective": held.effective,
        "pilots": held.pilots,
        "lightened": held.lightened,
        "design_effect": held.design_effect,
        "wider": _wider(case),
    }


def _wider(case: Case) -> float | None:
    """Return how many times as wide everyone's gap is as with rows taken as independent and alike; None if no rows."""
    q = case.everyone  # counts are of all rows: where not all units are held, of those alone
    rows = everyone(alone(case.whole.rows()), case.seed) if case.whole.parts["sample"].cut else replace(q, units=None)
    by_units, by_rows = (shift(each, case.judging.alpha) for each in (q, rows))
    width = _width(by_rows)
    return _width(by_units) / width if width > 0.0 else None


def _width(gap: Estimate) -> float:
    return gap.interval.high - gap.interval.low
