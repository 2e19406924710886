"""What is certified of everyone, the calibration error and more; and what is measured, which no verdict rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from calibrant.audit import lost
from calibrant.audit.context import AuditContext, Check, CheckResult, Cost
from calibrant.audit.judging import verdict_of
from calibrant.audit.record import Finding, Status, Verdict, size
from calibrant.certify.closed import ErrorEvidence, Evidence, Limit, SignedEvidence
from calibrant.certify.groups import signed
from calibrant.certify.jittered import jittered
from calibrant.certify.rows_needed import rows_to_decide
from calibrant.certify.whole import distance_certificate, raw_certificate, shown_certificate
from calibrant.results import Curve, Estimate, Interval, Layered
from calibrant.views.population import Population, Target

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def of_everyone(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify everyone: each end of the range spends all of alpha."""
    plan, q = context.judging, context.everyone
    alpha, level, by, limit = plan.alpha, 1.0 - plan.alpha, plan.by("everyone"), plan.limit_of(q.predicted)
    lower = raw_certificate(q).run((alpha, 0.0), level, context.seed)
    upper = shown_certificate(q, q.judged(plan.steps)).run((0.0, alpha), level, context.seed)
    mean_gap = replace(gap(q, alpha, plan.target), method="certify.gap")
    low, high = (
        (lower.interval.low, upper.interval.high)
        if by == "error"
        else size(mean_gap.interval.low, mean_gap.interval.high)
    )
    error, verdict = between(lower, upper), verdict_of(low, high, limit)
    need = None
    if verdict == "undecided" and limit is not None:
        off = error if by == "error" else abs(mean_gap.value)
        need = rows_to_decide(q, (low, off, high), limit, plan.steps, (alpha, alpha), by)
    rows, clusters = context.needed(None if need is None else need.rows)
    p = (
        p_value(ErrorEvidence.of(q, plan.steps, alpha, context.seed)),
        p_value(SignedEvidence.of(q, alpha / 2.0, plan.target or q.target)),
    )
    result = Finding(
        id="everyone",
        variables=(),
        rows=q.n,
        events=q.events,
        expected=q.expected,
        lower=lower,
        upper=upper,
        **layered(context, q, (lower, upper, mean_gap), p),
        verdict=verdict,
        by=by,
        limit=limit,
        rows_needed=rows,
        clusters_needed=clusters,
        rows_at_least=need is not None and need.at_least,
    )
    return CheckResult(
        status=status(verdict),
        estimate=upper if by == "error" else mean_gap,
        findings=(result,),
        shares=() if limit is None else plan.shares.of_everyone(),
    )


# ---- Estimates next to what is certified ----


class Layers(TypedDict):
    """The numbers of a finding in two layers."""

    error: Layered
    gap: Layered
    observed_expected: Layered | None


def p_value(evidence: Evidence) -> float:
    """The p-value against "there is none", at any number of rows: 1 / e of an e-value."""
    return min(math.exp(-evidence.over(Limit(0.0, 0.0))), 1.0)


def layered(
    context: AuditContext, q: Population, certified: tuple[Estimate, Estimate, Estimate], p: tuple[float, float]
) -> Layers:
    """Put estimates with ordinary intervals next to what is certified of error (two ends) and gap.

    `p`: the p-values of error and gap.
    """
    lower, upper, mean_gap = certified
    plan, of = context.judging, q.estimated
    error, gap_of, ratio = (
        (None, None, None)
        if of is None
        else (of.error(plan.steps, plan.alpha, context.seed), of.gap(plan.alpha), of.observed_expected(plan.alpha))
    )
    level = round(lower.interval.level + upper.interval.level - 1.0, 12)  # each end has its own share of alpha
    value, range_of = between(lower, upper), replace(upper.interval, low=lower.interval.low, level=level)
    return Layers(
        error=Layered(
            value=value,
            interval=_around(error, value),
            guaranteed=range_of,
            p_value=p[0],
            assumes=upper.assumes,
            settings={"about": f"from below {lower.settings['about']}, from above {upper.settings['about']}"},
        ),
        gap=Layered(
            value=mean_gap.value,
            interval=_around(gap_of, mean_gap.value),
            guaranteed=mean_gap.interval,
            p_value=p[1],
            assumes=mean_gap.assumes,
            settings=mean_gap.settings,
        ),
        observed_expected=None if ratio is None else _ratio(mean_gap, ratio, q.predicted, p[1]),
    )


def _ratio(mean_gap: Estimate, ordinary: Interval, predicted: float, p: float) -> Layered:
    """Observed over expected: one plus the gap over the mean score, which is given where the gap is of the rows."""
    value, of = max(1.0 + mean_gap.value / predicted, 0.0), mean_gap.interval
    ends = replace(of, low=max(1.0 + of.low / predicted, 0.0), high=1.0 + of.high / predicted)
    return Layered(
        value=value,
        interval=_around(ordinary, value),
        guaranteed=ends if mean_gap.settings["target"] == "rows" else None,
        p_value=p,
        assumes=mean_gap.assumes,
        settings={"about": "observed over expected events", "target": mean_gap.settings["target"]},
    )


def _around(interval: Interval | None, value: float) -> Interval | None:
    """An interval with its estimate in it, which certified ends may have moved."""
    if interval is None:
        return None
    return replace(interval, low=min(interval.low, value), high=max(interval.high, value))


def between(lower: Estimate, upper: Estimate) -> float:
    """The estimate of the judged score's error, moved between the two ends unless they cross."""
    low, high = lower.interval.low, upper.interval.high
    return min(max(upper.value, low), high) if low <= high else upper.value


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


# ---- the standard measures of the raw score, with asymptotic intervals: none is certified ----

MEASURES = (
    "ece",
    "smooth_ece",
    "max_calibration_error",
    "brier",
    "log_loss",
    "auroc",
    "calibration_intercept",
    "calibration_slope",
    "observed_expected",
)
ICI = "integrated_calibration_index"
BY_CENSORING = *MEASURES[3:], ICI  # those that have weights of censoring


def _measured(name: str) -> Callable[[AuditContext, Mapping[str, Curve]], CheckResult]:
    """What computes a measure; it lists a check only where the measure does not exist for the data."""

    def answer(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
        from calibrant import measure

        return CheckResult(estimates={name: getattr(measure, name)(context.read, alpha=context.judging.alpha)})

    return answer


def _measured_of_lost(name: str) -> Callable[[AuditContext, Mapping[str, Curve]], CheckResult]:
    """The same by weights of censoring, of the measures that have them."""

    def answer(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
        if name not in BY_CENSORING:
            context.needs_outcomes()
        return CheckResult(estimates={name: lost.measured(name, context)})

    return answer


def _only_by_a_horizon(_context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Ask nothing where every outcome is known: the smoothed curve says more."""
    return CheckResult()


DECLARED = (
    Check(
        code="error-everyone",
        order=10,
        make=of_everyone,
        make_of_lost=lost.of_everyone,
        step="certifying everyone",
        cost=Cost(flat=0.06),
        crosses=True,
    ),
    Check(
        code="gap",
        order=30,
        make=_check_of("gap", lambda context: gap(context.everyone, context.judging.alpha, context.judging.target)),
        make_of_lost=lost.gap,
        crosses=True,
    ),
    Check(code="distance", order=40, make=_check_of("distance", _distance), cost=Cost(flat=0.08), crosses=True),
    Check(code="jittered", order=50, make=_check_of("jittered", _jittered)),
    *(
        Check(
            code=name.replace("_", "-"),
            order=70 + i,
            make=_measured(name),
            make_of_lost=_measured_of_lost(name),
            step="measuring",
        )
        for i, name in enumerate(MEASURES)
    ),
    Check(
        code=ICI.replace("_", "-"),
        crosses=True,  # it asks nothing where no horizon is named
        order=79,
        make=_only_by_a_horizon,
        make_of_lost=_measured_of_lost(ICI),
        step="measuring",
    ),
)
