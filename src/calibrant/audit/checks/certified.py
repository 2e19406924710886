"""What is certified: the average error of everyone and of every group, judged against the limit; more of everyone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.judging import worst
from calibrant.audit.pooling import Name, group_populations
from calibrant.audit.question import Answer, Case, NotRun, Question
from calibrant.audit.record import Check, Finding, Status, Verdict
from calibrant.audit.rounding import Told, told_estimate, told_gap, two_digits
from calibrant.certify.distance import distance
from calibrant.certify.jittered import jittered
from calibrant.certify.judged import judged_of
from calibrant.certify.raw_lower import raw_lower_of
from calibrant.certify.rows_needed import rows_to_decide
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Interval
from calibrant.stats.betting import residual_mean_limits
from calibrant.views.population import INDEPENDENT, Population

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
SHIFT_CELLS = 256  # cells whose residuals bet together: the limits widen little, and take milliseconds
UNGROUPED = "no groups were given: add --by age,sex"
HIDDEN = "every group has fewer than {} people"


def of_everyone(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Certify everyone: each end of the range spends all of alpha."""
    alpha = case.judging.alpha
    found = finding("everyone", (), case.everyone, case, (alpha, alpha))
    check = Check(code="error-everyone", status=_status(found.verdict), estimate=found.upper)
    return Answer(checks=(check,), findings=(found,))


def of_groups(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Certify all groups at once: alpha is shared over both ends of every group (theory 1.2)."""
    if not case.whole.spec.groupings:
        raise NotRun(UNGROUPED)
    shown = group_populations(case.whole, case.mask)
    if not shown:
        raise NotComputable(HIDDEN.format(case.mask))
    spend = (case.judging.alpha / (2 * len(shown)),) * 2
    found = tuple(finding(_identifier(name), name, q, case, spend, members) for name, q, members in shown)
    return Answer(checks=(Check(code="error-groups", status=_status(worst(g.verdict for g in found))),), findings=found)


def finding(slug: str, name: Name, q: Population, case: Case, spend: tuple[float, float], members: int = 0) -> Finding:
    """Certify and judge one population; `spend` is for the lower and the upper end. What is told of a group is rounded.

    The verdict is on the ends as told: judged against one limit after another, exact ends would follow from it.
    """
    plan, level = case.judging, 1.0 - case.judging.alpha
    lower = raw_lower_of(q, spend[0], level, case.seed)
    upper = judged_of(q, plan.levels, (0.0, spend[1]), level, case.seed)
    gap = replace(shift(q, sum(spend) if name else spend[0]), method="certify.gap")
    rows, cases, expected = q.n, q.cases, q.cells.expected
    if name:
        told = Told.of(rows, cases, expected)
        rows, cases, expected = told.rows, told.cases, float(told.expected)
        lower, upper, gap = told_estimate(lower, told), told_estimate(upper, told), told_gap(gap, told)
    low, high = lower.interval.low, upper.interval.high
    error = min(max(upper.value, low), high) if low <= high else upper.value
    verdict = plan.verdict(low, high)
    needed = None
    if verdict == "undecided" and plan.limit is not None:
        needed = rows_to_decide(q, error, plan.limit, plan.levels, spend)
        needed = int(two_digits(needed)) if name and needed is not None else needed
    return Finding(
        id=slug,
        variables=name,
        rows=rows,
        cases=cases,
        expected=expected,
        lower=lower,
        upper=upper,
        error=error,
        gap=gap,
        verdict=verdict,
        rows_needed=needed,
        pooled=members,
    )


def _status(verdict: Verdict) -> Status:
    return "measured" if verdict == "none" else verdict


def _identifier(name: Name) -> str:
    text = "-".join(f"{v}-{level}" for v, level in name)
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(repr(name).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{slug}-{digest}" if slug else digest


def shift(q: Population, alpha: float) -> Estimate:
    """Certify the mean residual of the raw score."""
    counts, sums, low, high = coarse(q, np.arange(q.grid) * SHIFT_CELLS // q.grid)
    limits = residual_mean_limits(counts, sums, low, high, alpha)
    return Estimate(
        method="shift",
        value=(q.cases - q.cells.expected) / q.n,
        unit="probability",
        n=q.n,
        interval=Interval(low=limits[0], high=limits[1], level=1.0 - alpha, guarantee="finite-sample"),
        assumes=INDEPENDENT,
        settings={"about": "the raw score"},
    )


def coarse(q: Population, bins: NDArray[np.int64]) -> tuple[Whole, Floats, Floats, Floats]:
    """Sum the cells over bins of consecutive cells: counts, score sums, lower and upper ends."""
    size = int(bins.max()) + 1
    counts, sums = np.zeros((size, 2), dtype=np.int64), np.zeros((size, 2))
    np.add.at(counts, bins, q.cells.totals)
    np.add.at(sums, bins, q.cells.score_sums)
    first = np.searchsorted(bins, np.arange(size))
    last = np.searchsorted(bins, np.arange(size), side="right") - 1
    return counts, sums, q.cells.low[first], q.cells.high[last]


def _asked(code: str, make: Callable[[Case], Estimate]) -> Callable[[Case, Mapping[str, Curve]], Answer]:
    def answer(case: Case, _: Mapping[str, Curve]) -> Answer:
        found = make(case)
        return Answer(checks=(Check(code=code, status="measured", estimate=found),), estimates={code: found})

    return answer


def _distance(case: Case) -> Estimate:
    return distance(case.whole, alpha=case.judging.alpha, side="upper", seed=case.seed)


def _jittered(case: Case) -> Estimate:
    plan = case.judging
    return jittered(case.whole, bandwidth=plan.bandwidth, alpha=plan.alpha, side="upper", seed=case.seed)


DECLARED = (
    Question(code="error-everyone", order=10, make=of_everyone, step="certifying everyone"),
    Question(code="error-groups", order=20, make=of_groups, step="certifying groups"),
    Question(code="shift", order=30, make=_asked("shift", lambda case: shift(case.everyone, case.judging.alpha))),
    Question(code="distance", order=40, make=_asked("distance", _distance)),
    Question(code="jittered", order=50, make=_asked("jittered", _jittered)),
)
