"""What is certified of everyone: the calibration error, judged against the limit, and more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.context import AuditContext, Check, CheckResult, Cost
from calibrant.audit.record import Finding, Status, Verdict
from calibrant.certify.groups import signed
from calibrant.certify.jittered import jittered
from calibrant.certify.rows_needed import rows_to_decide
from calibrant.certify.whole import distance_certificate, raw_certificate, shown_certificate
from calibrant.results import Curve, Estimate
from calibrant.views.population import Population, Target

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def of_everyone(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify everyone: each end of the range spends all of alpha."""
    plan, q = context.judging, context.everyone
    alpha, level = plan.alpha, 1.0 - plan.alpha
    lower = raw_certificate(q).run((alpha, 0.0), level, context.seed)
    upper = shown_certificate(q, q.judged(plan.steps)).run((0.0, alpha), level, context.seed)
    mean_gap = replace(gap(q, alpha, plan.target), method="certify.gap")
    low, high = (lower.interval.low, upper.interval.high) if plan.judge == "error" else size(mean_gap)
    error, verdict = between(lower, upper), plan.verdict(low, high)
    need = None
    if verdict == "undecided" and plan.limit is not None:
        off = error if plan.judge == "error" else abs(mean_gap.value)
        need = rows_to_decide(q, (low, off, high), plan.limit, plan.steps, (alpha, alpha), plan.judge)
    rows, clusters = context.needed(None if need is None else need.rows)
    result = Finding(
        id="everyone",
        variables=(),
        rows=q.n,
        events=q.events,
        expected=q.expected,
        lower=lower,
        upper=upper,
        error=error,
        gap=mean_gap,
        verdict=verdict,
        rows_needed=rows,
        clusters_needed=clusters,
        rows_at_least=need is not None and need.at_least,
    )
    return CheckResult(
        status=status(verdict), estimate=upper if plan.judge == "error" else mean_gap, findings=(result,)
    )


def between(lower: Estimate, upper: Estimate) -> float:
    """The estimate of the judged score's error, moved between the two ends unless they cross."""
    low, high = lower.interval.low, upper.interval.high
    return min(max(upper.value, low), high) if low <= high else upper.value


def size(gap: Estimate) -> tuple[float, float]:
    """Return how large a gap is at least and at most, by its range."""
    low, high = gap.interval.low, gap.interval.high
    return max(low, -high, 0.0), max(high, -low)


def status(verdict: Verdict) -> Status:
    """The status of a check by its verdict."""
    return "measured" if verdict == "not_checked" else verdict


def gap(q: Population, alpha: float, target: Target | None = None) -> Estimate:
    """Certify the mean residual of the raw score, of the rows where that is proved and nobody asks otherwise."""
    each = alpha / 2.0
    return replace(signed(q, (each, each), 1.0 - alpha, each, target or q.target), method="measure.gap")


def coarse(q: Population, bins: NDArray[np.int64]) -> tuple[Whole, Floats, Floats, Floats]:
    """Sum the cells over bins of consecutive cells: counts, score sums, lower and upper ends."""
    size = int(bins.max()) + 1
    counts, sums = np.zeros((size, 2), dtype=np.int64), np.zeros((size, 2))
    np.add.at(counts, bins, q.counted.totals)
    np.add.at(sums, bins, q.counted.score_sums)
    first = np.searchsorted(bins, np.arange(size))
    last = np.searchsorted(bins, np.arange(size), side="right") - 1
    return counts, sums, q.counted.low[first], q.counted.high[last]


def _check_of(
    code: str, make: Callable[[AuditContext], Estimate]
) -> Callable[[AuditContext, Mapping[str, Curve]], CheckResult]:
    def answer(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
        result = make(context)
        return CheckResult(status="measured", estimate=result, estimates={code: result})

    return answer


def _distance(context: AuditContext) -> Estimate:
    alpha = context.judging.alpha
    return distance_certificate(context.everyone).run((0.0, alpha), 1.0 - alpha, context.seed)


def _jittered(context: AuditContext) -> Estimate:
    plan = context.judging
    return jittered(context.sketch, bandwidth=plan.bandwidth, alpha=plan.alpha, side="upper", seed=context.seed)


DECLARED = (
    Check(
        code="error-everyone",
        order=10,
        make=of_everyone,
        step="certifying everyone",
        cost=Cost(flat=0.06),
        crosses=True,
    ),
    Check(
        code="gap",
        order=30,
        make=_check_of("gap", lambda context: gap(context.everyone, context.judging.alpha, context.judging.target)),
        crosses=True,
    ),
    Check(code="distance", order=40, make=_check_of("distance", _distance), cost=Cost(flat=0.08), crosses=True),
    Check(code="jittered", order=50, make=_check_of("jittered", _jittered)),
)
