"""What a record tells of units and weights: how many, how alike their rows are, and what that does to the ranges."""

from __future__ import annotations

from dataclasses import replace

from calibrant.audit.checks.certified import shift
from calibrant.audit.question import Case
from calibrant.results import Estimate


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
    by_units, by_rows = (shift(q, case.judging.alpha) for q in (case.everyone, replace(case.everyone, units=None)))
    width = _width(by_rows)
    return _width(by_units) / width if width > 0.0 else None


def _width(gap: Estimate) -> float:
    return gap.interval.high - gap.interval.low
