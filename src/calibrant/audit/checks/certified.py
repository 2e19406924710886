"""What is certified of everyone: the calibration error, judged against the limit, and more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.question import Answer, Case, Cost, Question
from calibrant.audit.record import Check, Finding, Status, Verdict
from calibrant.certify.distance import distance_of
from calibrant.certify.jittered import jittered
from calibrant.certify.judged import judged_of
from calibrant.certify.raw_lower import raw_lower_of
from calibrant.certify.rows_needed import rows_to_decide
from calibrant.results import Curve, Estimate, Interval
from calibrant.stats.betting import residual_mean_limits
from calibrant.views.population import Population

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
SHIFT_CELLS = 256  # cells whose residuals bet together: the limits widen little, and take milliseconds


def of_everyone(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Certify everyone: each end of the range spends all of alpha."""
    plan, q = case.judging, case.everyone
    alpha, level = plan.alpha, 1.0 - plan.alpha
    lower = raw_lower_of(q, alpha, level, case.seed)
    upper = judged_of(q, plan.levels, (0.0, alpha), level, case.seed)
    gap = replace(shift(q, alpha), method="certify.gap")
    low, high = (lower.interval.low, upper.interval.high) if plan.judge == "error" else size(gap)
    error, verdict = between(lower, upper), plan.verdict(low, high)
    need = None
    if verdict == "undecided" and plan.limit is not None and not q.crossed:
        off = error if plan.judge == "error" else abs(gap.value)
        need = rows_to_decide(q, (low, off, high), plan.limit, plan.levels, (alpha, alpha), plan.judge)
    rows, units = case.needed(None if need is None else need.rows)
    found = Finding(
        id="everyone",
        variables=(),
        rows=q.n,
        cases=q.cases,
        expected=q.expected,
        lower=lower,
        upper=upper,
        error=error,
        gap=gap,
        verdict=verdict,
        rows_needed=rows,
        units_needed=units,
        rows_at_least=need is not None and need.at_least,
    )
    check = Check(code="error-everyone", status=status(verdict), estimate=upper if plan.judge == "error" else gap)
    return Answer(checks=(check,), findings=(found,))


def between(lower: Estimate, upper: Estimate) -> float:
    """Return the estimate of the judged score's error, moved between the two ends unless they cross."""
    low, high = lower.interval.low, upper.interval.high
    return min(max(upper.value, low), high) if low <= high else upper.value


def size(gap: Estimate) -> tuple[float, float]:
    """Return how large a gap is at least and at most, by its range."""
    low, high = gap.interval.low, gap.interval.high
    return max(low, -high, 0.0), max(high, -low)


def status(verdict: Verdict) -> Status:
    """Return the status of a check by its verdict."""
    return "measured" if verdict == "none" else verdict


def shift(q: Population, alpha: float) -> Estimate:
    """Certify the mean residual of the raw score."""
    if q.units is None:
        limits = residual_mean_limits(*coarse(q, np.arange(q.grid) * SHIFT_CELLS // q.grid), alpha)
    else:
        gap = q.gap(alpha / 2.0)
        limits = gap.limit(alpha / 2.0, 1.0), gap.limit(alpha / 2.0, -1.0)
    return Estimate(
        method="shift",
        value=q.off,
        unit="probability",
        n=q.n,
        interval=Interval(low=limits[0], high=limits[1], level=1.0 - alpha, guarantee="finite-sample"),
        assumes=q.assumes,
        settings={"about": "the raw score", **q.told},
    )


def coarse(q: Population, bins: NDArray[np.int64]) -> tuple[Whole, Floats, Floats, Floats]:
    """Sum the cells over bins of consecutive cells: counts, score sums, lower and upper ends."""
    size = int(bins.max()) + 1
    counts, sums = np.zeros((size, 2), dtype=np.int64), np.zeros((size, 2))
    np.add.at(counts, bins, q.counted.totals)
    np.add.at(sums, bins, q.counted.score_sums)
    first = np.searchsorted(bins, np.arange(size))
    last = np.searchsorted(bins, np.arange(size), side="right") - 1
    return counts, sums, q.counted.low[first], q.counted.high[last]


def _asked(code: str, make: Callable[[Case], Estimate]) -> Callable[[Case, Mapping[str, Curve]], Answer]:
    def answer(case: Case, _: Mapping[str, Curve]) -> Answer:
        found = make(case)
        return Answer(checks=(Check(code=code, status="measured", estimate=found),), estimates={code: found})

    return answer


def _distance(case: Case) -> Estimate:
    return distance_of(case.everyone, (0.0, case.judging.alpha), 1.0 - case.judging.alpha, case.seed)


def _jittered(case: Case) -> Estimate:
    plan = case.judging
    return jittered(case.whole, bandwidth=plan.bandwidth, alpha=plan.alpha, side="upper", seed=case.seed)


DECLARED = (
    Question(
        code="error-everyone",
        order=10,
        make=of_everyone,
        step="certifying everyone",
        cost=Cost(flat=0.06),
        crosses=True,
    ),
    Question(
        code="shift",
        order=30,
        make=_asked("shift", lambda case: shift(case.everyone, case.judging.alpha)),
        crosses=True,
    ),
    Question(code="distance", order=40, make=_asked("distance", _distance), cost=Cost(flat=0.08), crosses=True),
    Question(code="jittered", order=50, make=_asked("jittered", _jittered)),
)
