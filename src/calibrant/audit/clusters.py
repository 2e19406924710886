"""What a record reports about clusters and weights: how many, how alike their rows are, and what it does to ranges."""

from __future__ import annotations

import numpy as np

from calibrant.audit.checks.certified import gap
from calibrant.audit.context import AuditContext
from calibrant.data.predictions import Predictions
from calibrant.results import Estimate
from calibrant.views.points import weights_of
from calibrant.views.population import Population
from calibrant.views.sample import alone, everyone


def clusters(context: AuditContext) -> dict[str, int | float | bool | None] | None:
    """Return what a record holds of clusters; None where rows are independent and count alike."""
    kept = context.everyone.clusters
    if kept is None:
        return None
    if context.sketch.two_way is not None:
        return _two_way(context, context.sketch.two_way)
    sample = context.sketch.parts["sample"]
    return {
        "count": sample.of_clusters,
        "exact": not sample.cut,
        "held": kept.count,
        "rows_in_sample": len(kept.cluster),
        "effective": kept.effective,
        "pilots": kept.pilots,
        "truncated_weights": kept.truncated_weights,
        "design_effect": kept.design_effect,
        "wider": _wider(context),
    }


def _two_way(context: AuditContext, rows: Predictions) -> dict[str, int | float | bool | None]:
    """Return what a record holds of clusters that cross: blocks are of the mean shift."""
    gaps = context.everyone.diagonals
    blocks, pilots = (round(sum(of) / len(gaps)) for of in ([u.count for u in gaps], [u.pilots for u in gaps]))
    return {
        "count": blocks,
        "exact": True,
        "held": blocks,
        "rows_in_sample": rows.n,
        "effective": sum(u.effective for u in gaps) / len(gaps),
        "pilots": pilots,
        "truncated_weights": 0,
        "design_effect": _design_effect(rows),
        "wider": _wider(context),
    }


def _design_effect(rows: Predictions) -> float:
    """The variance of the mean residual, of rows that share a cluster of either column, over rows alone."""
    weight = weights_of(rows)
    residual = rows.y - rows.p
    off = weight * (residual - np.average(residual, weights=weight))
    codes = [] if rows.crossing is None else [c.astype(np.int64) for c in rows.crossing.codes]
    both = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].reshape(-1)
    one, other, pair = (float((np.bincount(c, off) ** 2).sum()) for c in (*codes, both))
    alone = float((off**2).sum())
    return max(one + other - pair, 0.0) / alone if alone else 1.0


def _wider(context: AuditContext) -> float | None:
    """Return how many times as wide everyone's gap is as with rows taken as independent and alike; None if no rows."""
    q = context.everyone  # counts are of all rows: where not all clusters are held, of those alone
    part = context.sketch.two_way is None and context.sketch.parts["sample"].cut
    every = Population(q.raw, q.fine, q.scores, q.by_score)
    rows = everyone(alone(context.sketch.rows()), context.seed) if part else every
    by_clusters, by_rows = (gap(each, context.judging.alpha) for each in (q, rows))
    width = _width(by_rows)
    return _width(by_clusters) / width if width > 0.0 else None


def _width(gap: Estimate) -> float:
    return gap.interval.high - gap.interval.low
