"""What a record tells of clusters and weights: how many, how alike their rows are, and what that does to the ranges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.audit.checks.certified import shift
from calibrant.audit.question import Case
from calibrant.data.predictions import Predictions
from calibrant.results import Estimate
from calibrant.views.population import everyone
from calibrant.views.units import alone


def units(case: Case) -> dict[str, int | float | bool | None] | None:
    """Return what a record holds of clusters; None where rows are independent and count alike."""
    held = case.everyone.units
    if held is None:
        return None
    if case.whole.crossed is not None:
        return _crossed(case, case.whole.crossed)
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


def _crossed(case: Case, rows: Predictions) -> dict[str, int | float | bool | None]:
    """Return what a record holds of clusters that cross: blocks are of the mean shift."""
    shifts = case.everyone.crossed
    blocks, pilots = (round(sum(of) / len(shifts)) for of in ([u.count for u in shifts], [u.pilots for u in shifts]))
    return {
        "count": blocks,
        "exact": True,
        "held": blocks,
        "rows_held": rows.n,
        "effective": sum(u.effective for u in shifts) / len(shifts),
        "pilots": pilots,
        "lightened": 0,
        "design_effect": _alike(rows),
        "wider": _wider(case),
    }


def _alike(rows: Predictions) -> float:
    """Return the variance of the mean residual, of rows that share a cluster of either column, over rows alone."""
    weight = np.ones(rows.n) if rows.weights is None else rows.weights
    residual = rows.y - rows.p
    off = weight * (residual - np.average(residual, weights=weight))
    codes = [] if rows.crossing is None else [c.astype(np.int64) for c in rows.crossing.codes]
    both = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].reshape(-1)
    one, other, pair = (float((np.bincount(c, off) ** 2).sum()) for c in (*codes, both))
    alone = float((off**2).sum())
    return max(one + other - pair, 0.0) / alone if alone else 1.0


def _wider(case: Case) -> float | None:
    """Return how many times as wide everyone's gap is as with rows taken as independent and alike; None if no rows."""
    q = case.everyone  # counts are of all rows: where not all units are held, of those alone
    part = case.whole.crossed is None and case.whole.parts["sample"].cut
    rows = everyone(alone(case.whole.rows()), case.seed) if part else replace(q, units=None, crossed=())
    by_units, by_rows = (shift(each, case.judging.alpha) for each in (q, rows))
    width = _width(by_rows)
    return _width(by_units) / width if width > 0.0 else None


def _width(gap: Estimate) -> float:
    return gap.interval.high - gap.interval.low
