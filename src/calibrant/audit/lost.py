"""What an audit certifies where some outcomes by a horizon are unknown, by the way that was chosen.

By weights of censoring: the gap of everyone, of groups and of ranges of the score (`certify.horizon`). By no
assumption: the gap or the error, whatever the unknown outcomes are (`certify.missing_labels`). Estimates next to both
are Aalen and Johansen's less the mean score, which take loss as independent of the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import Judge
from calibrant.audit.context import AuditContext, CheckResult
from calibrant.audit.judging import verdict_of
from calibrant.audit.pooling import identifier
from calibrant.audit.record import Finding, Share
from calibrant.audit.record import size as size_of
from calibrant.audit.rounding import Sums
from calibrant.certify.horizon import BAND, Reach, Strata, certified, estimated
from calibrant.certify.missing_labels import ends as ends_of
from calibrant.data.predictions import Predictions, remembered
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve, Estimate, Interval, Layered
from calibrant.stats.measures import normal_quantile
from calibrant.stats.missing import survival
from calibrant.stats.nulls import holm
from calibrant.stats.smoothing import run_starts
from calibrant.views.people import Members
from calibrant.views.unlabelled import ASSUMES, OF_CLUSTERS, Cells, FollowedRows, without_outcomes

Flags = NDArray[np.bool_]
Ends = tuple[float, float]

WEIGHTS, UNKNOWN = "certify.horizon", "certify.missing_labels"
BINS, ENOUGH, CURVE_EVENTS = 10, 100, 50  # ranges of the score, rows of one, and expected events of all of them
PILOTS_EACH, UNLIKE = 20, 0.01  # pilot rows of a level that is compared, and the level of the tests together
NO_ERROR = (
    "judge='error' (--judge error): by weights of censoring the gap alone is certified: leave it out, or assume "
    "nothing by way='unknown' (--way unknown)"
)
TOO_FEW = (
    "being followed to {} may be less likely than 0.05 by the pilot rows of the group, so that weights have no bound: "
    "an earlier horizon may do, or way='unknown' (--way unknown)"
)
DIFFERS = "follow-up differs within the group by outcome or score: the estimate lies outside of the range by weights"
NO_WEIGHTS = "without an assumption about the rows lost there is no estimate: way='weights' (--way weights) has one"


class Observed(NamedTuple):
    """What happened to some rows, as estimated."""

    risk: float
    error: float  # standard error of it
    predicted: float  # their mean score
    rows: int
    reaches: bool  # follow-up of these rows says what happened by the horizon; else `risk` is the middle of what may be


class Population(NamedTuple):
    """Some rows, those of unknown outcome among them, and how numbers about them are reported."""

    at: Flags  # shape (n + m,): which rows they are, those with an outcome first
    observed: Observed
    cells: Cells
    delta: float  # with which their range of the gap is wrong, both ends together
    reported: Sums | None = None  # as they are, if none
    why: str = ""  # nothing is certified of them; empty where something is


@dataclass(frozen=True)
class LostRows:
    """Every row, certified whatever the unknown outcomes are."""

    data: Predictions
    q: FollowedRows
    alpha: float
    way: ClassVar[str] = "unknown"
    method: ClassVar[str] = UNKNOWN  # what certifies

    @classmethod
    def of(cls, context: AuditContext) -> LostRows:
        """Those of an audit by the way that was chosen, made once."""
        data, alpha = context.needs_lost(), context.judging.alpha

        def made() -> LostRows:
            if not data.weighs:
                return LostRows(data, FollowedRows.of(replace(data, cluster=None)), alpha)
            q = FollowedRows.of(data)
            every = np.ones(len(q.p), dtype=np.bool_)
            return WeighedRows(data, q, alpha, estimated(q, Strata.by(data, ()), every, alpha * BAND, context.seed))

        return remembered(data, ("lost rows", alpha, context.seed), made)

    def by_weights(self) -> WeighedRows:
        """The same, where weights of censoring stand for the rows lost; refused where they do not."""
        raise NotComputable(NO_WEIGHTS)

    def apart(self, _at: Flags, _delta: float, _seed: int) -> tuple[LostRows, str]:
        """The same with the law of censoring of some rows alone, at their share of alpha; or why it has no bound."""
        return self, ""

    @property
    def certified(self) -> Flags:
        """Which rows are certified."""
        return np.ones(len(self.q.p), dtype=np.bool_)

    def gap(self, people: Population) -> Ends:
        """Certified ends of the gap of some rows."""
        return ends_of(people.cells.ranged(100, math.inf), "gap", people.delta / 2.0)

    def error(self, people: Population, _gap: Ends, steps: int) -> Ends:
        """Certified ends of the calibration error."""
        return ends_of(people.cells.ranged(steps, math.inf), "error", people.delta / 2.0)

    @property
    def within(self) -> float:
        """The probability that a gap is wrongly found within the limit, at most: that one end of its range is wrong."""
        return self.alpha / 2.0

    def observed(self, at: Flags) -> Observed:
        """What happened to some rows, as estimated: of all of them, or of levels with a law of their own each."""
        q = self.q if at.all() else self.q.some(at)
        of = float(q.p.mean()), len(q.p)
        if not q.reaches:
            return Observed(float(np.where(q.known, q.y, 0.5).mean()), 0.5, *of, reaches=False)
        return Observed(q.risk, q.risk_error, *of, reaches=True)

    def estimated(self, of: Observed, reported: Sums, ends: Ends) -> tuple[float, Interval | None]:
        """The gap as reported, moved inside the certified `ends`, and its ordinary range, of which there is none."""
        return min(max(reported.near(of.risk - of.predicted), ends[0]), ends[1]), None

    def contradicts(self, _of: Observed, _ends: Ends) -> bool:
        """Whether the estimate is outside the certified ends, which refutes what both assume: here nothing."""
        return False

    def ratio(self, _of: Observed) -> Layered | None:
        """Observed over expected, not certified; None where nothing is assumed of the rows lost."""
        return None

    @property
    def assumes(self) -> str:
        """What the ends take for granted."""
        return ASSUMES if self.data.cluster is None else OF_CLUSTERS

    @property
    def law(self) -> Mapping[str, object]:
        """What a record holds of the law of censoring."""
        return {}

    def unlike(self, _context: AuditContext) -> dict[str, float]:
        """The group columns by which rows are lost unlike, each with its p-value: tested by weights alone."""
        return {}


@dataclass(frozen=True)
class WeighedRows(LostRows):
    """Every row, certified by weights of censoring, with what was learned of its law from pilot rows."""

    reach: Reach
    way = "weights"
    method = WEIGHTS

    def by_weights(self) -> WeighedRows:
        return self

    def apart(self, at: Flags, delta: float, seed: int) -> tuple[LostRows, str]:
        try:
            own = estimated(self.q, Strata.by(self.data, ()), at, delta * BAND, seed)
        except NotComputable:
            nobody = np.zeros(len(at), dtype=np.bool_)
            return replace(self, reach=replace(self.reach, rows=nobody)), TOO_FEW.format(f"{self.q.horizon:g}")
        return replace(self, reach=own), ""

    @property
    def certified(self) -> Flags:
        return self.reach.rows  # no pilots

    def gap(self, people: Population) -> Ends:
        if not (people.at & self.reach.rows).any():
            return -1.0, 1.0
        spent = people.delta * (1.0 - BAND)  # the law of censoring has spent its share of alpha already
        return certified(self.q, self.reach, people.at & self.reach.rows, spent)[1:]

    def error(self, _people: Population, gap: Ends, _steps: int) -> Ends:
        return size_of(*gap)[0], 1.0  # no smaller than the gap; nothing more is proved

    @property
    def within(self) -> float:
        return self.alpha * (BAND + (1.0 - BAND) / 2.0)  # a limit of the law of censoring that is wrong moves both ends

    def estimated(self, of: Observed, reported: Sums, _ends: Ends) -> tuple[float, Interval | None]:
        off, reach = of.risk - of.predicted, normal_quantile(self.alpha) * of.error
        if not of.reaches:
            return reported.near(off), None
        low, high = (reported.end(off + s * reach, s) for s in (-1, 1))
        return reported.near(off), Interval(low=low, high=high, level=1.0 - self.alpha, guarantee="asymptotic")

    def contradicts(self, of: Observed, ends: Ends) -> bool:
        return not ends[0] <= of.risk - of.predicted <= ends[1]

    def ratio(self, of: Observed) -> Layered | None:
        """The Aalen-Johansen estimate over the mean score."""
        if not of.risk or of.predicted * of.rows < 1.0:
            return None
        value, reach = of.risk / of.predicted, math.exp(normal_quantile(self.alpha) * of.error / of.risk)
        interval = Interval(low=value / reach, high=value * reach, level=1.0 - self.alpha, guarantee="asymptotic")
        about = {"about": "observed over expected events", "target": "rows"}
        return Layered(
            value=value, interval=interval, guaranteed=None, p_value=1.0, assumes=self.assumes, settings=about
        )

    @property
    def assumes(self) -> str:
        return self.reach.assumes

    @property
    def law(self) -> Mapping[str, object]:
        return {k: self.reach.settings[k] for k in ("pilots", "followed_at_least")}

    def unlike(self, context: AuditContext) -> dict[str, float]:
        """Group columns by which rows are lost unlike, without those whose levels have a law each.

        Log-rank tests of the pilot rows, none of which is certified, by Holm's method together at `UNLIKE`. Limits of
        the law of censoring rest on the same rows: a choice by these tests is not counted. Levels of few pilot rows are
        left out, and so is loss after the horizon.
        """
        spec, within = context.sketch.spec, () if self.data.followed is None else self.data.followed.within
        alone = [(i, names[0]) for i, names in enumerate(spec.groupings) if len(names) == 1 and names[0] not in within]
        if not alone:
            return {}
        member, tested, q, pilots = members(context).group, dict[str, float](), self.q, ~self.reach.rows
        stays = np.where(q.time >= q.horizon, survival.EVENT, q.kind).astype(np.int8)  # followed long enough: not lost
        for i, name in alone:
            level = member[i]
            pilot = pilots & (np.bincount(level[pilots], minlength=level.max() + 1) >= PILOTS_EACH)[level]
            tested[name] = survival.censoring_differs(q.until[pilot], stays[pilot], level[pilot])
        adjusted = dict(zip(tested, holm([*tested.values()]), strict=True))
        return {
            name: tested[name] for name in sorted(tested, key=lambda name: tested[name]) if adjusted[name] <= UNLIKE
        }


def finding(context: AuditContext, rows: LostRows, name: tuple[tuple[str, str], ...], who: Population) -> Finding:
    """What is certified of some rows, judged against the limit."""
    plan = context.judging
    risk, _, predicted, n, reaches = who.observed
    part = "groups" if name else "everyone"
    reported = who.reported or Sums.of(n, risk * n, predicted * n)
    low, high = rows.gap(who)
    if why := who.why or (DIFFERS if name and rows.contradicts(who.observed, (low, high)) else ""):
        low, high = -1.0, 1.0
    gap_ends = reported.end(low, -1), reported.end(high, 1)
    least, most = rows.error(who, (low, high), plan.steps)
    error_ends = reported.end(least, -1, 0.0), reported.end(most, 1, 0.0)
    settings = {"about": "the raw score", "target": "rows", "way": rows.way}
    if not reaches:
        settings["estimate"] = "none"
    range_of = Interval(low=gap_ends[0], high=gap_ends[1], level=round(1.0 - plan.alpha, 12), guarantee="finite-sample")
    value, ordinary = rows.estimated(who.observed, reported, gap_ends)
    size = min(max(abs(value), error_ends[0]), error_ends[1])
    of_error = replace(range_of, low=error_ends[0], high=error_ends[1])
    certified_rows = int((who.at & rows.certified).sum()) or 1
    if name and context.sums is not Sums:  # as counts of groups are published
        certified_rows = max(5 * round(certified_rows / 5), 5)
    made = Estimate(
        method=rows.method, value=size, unit="probability", n=certified_rows, interval=of_error,
        assumes=rows.assumes, settings=settings,
    )  # fmt: skip
    shown_off = gap_ends[0] > 0.0 or gap_ends[1] < 0.0
    judged = size_of(*gap_ends) if plan.by(part) == "gap" else error_ends
    limit = plan.limit_of(predicted)
    return Finding(
        id=identifier(name) if name else "everyone",
        variables=name,
        rows=reported.rows,
        events=reported.events,
        expected=float(reported.expected),
        lower=replace(made, interval=replace(of_error, high=1.0)),
        upper=replace(made, interval=replace(of_error, low=0.0)),
        error=Layered(
            value=size, interval=None, guaranteed=of_error, p_value=plan.alpha if error_ends[0] > 0.0 else 1.0,
            assumes=rows.assumes, settings=settings,
        ),
        gap=Layered(
            value=value, interval=ordinary, guaranteed=range_of, p_value=plan.alpha if shown_off else 1.0,
            assumes=rows.assumes, settings=settings,
        ),
        observed_expected=None if name else rows.ratio(who.observed),
        verdict="undecided" if why and limit is not None else verdict_of(*judged, limit),
        by=plan.by(part),
        limit=limit,
        withheld=why or None,
        rows_needed=None,
    )  # fmt: skip


def of_everyone(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify everyone by the way that was chosen."""
    rows, plan = LostRows.of(context), context.judging
    every = np.ones(len(rows.q.p), dtype=np.bool_)
    whole = Population(every, rows.observed(every), Cells.of(context.sketch), plan.alpha)
    made = finding(context, rows, (), whole)
    return CheckResult(
        status="measured" if made.verdict == "not_checked" else made.verdict,
        estimate=made.upper if made.by == "error" else overall_gap(made),
        findings=(made,),
        shares=shares(context, rows, "everyone"),
    )


def shares(context: AuditContext, rows: LostRows, part: str) -> tuple[Share, ...]:
    """What verdicts spend: of the range of a gap both ends may be wrongly over, and one is wrongly within."""
    plan = context.judging
    if not plan.limited:
        return ()
    over = plan.alpha if plan.by(part) == "gap" else plan.alpha / 2.0
    of = "groups" if part == "groups" else "everyone"
    kinds = (("over", over), ("within", rows.within))
    return tuple(Share(wrong=wrong, part=of, by=plan.by(part), alpha=alpha) for wrong, alpha in kinds)  # type: ignore[arg-type]


def overall_gap(one: Finding) -> Estimate:
    """The gap of a finding as an estimate of its own."""
    interval = one.gap.guaranteed or one.upper.interval
    return Estimate(
        method=one.upper.method, value=one.gap.value, unit="probability", n=one.upper.n, interval=interval,
        assumes=one.gap.assumes, settings=one.gap.settings,
    )  # fmt: skip


def gap(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """The gap of everyone, certified."""
    made = overall_gap(context.findings[0])
    return CheckResult(status="measured", estimate=made, estimates={"gap": made})


def members(context: AuditContext) -> Members:
    """Which groups of the sketch every row is in, those of unknown outcome last."""
    every = without_outcomes(context.needs_lost())
    return Members.of_rows(every.covariates, every.n, context.sketch)


# ---- along the score ----


def along_the_score(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """The gap in ranges of the score of about equally many rows, certified together by weights of censoring."""
    rows = LostRows.of(context).by_weights()
    p = rows.q.p
    if min(p.sum(), len(p) - p.sum()) < CURVE_EVENTS:
        raise NotComputable(
            f"a curve needs at least {CURVE_EVENTS} expected events and {CURVE_EVENTS} expected non-events"
        )
    kept = list(_ranges(context, rows))
    names = ("x", "x_low", "x_high", "predicted", "observed", "gap", "low", "high", "rows")
    columns = dict(zip(names, map(tuple, zip(*kept, strict=True)), strict=True))
    settings = {"level": 1.0 - context.judging.alpha, "simultaneous": True, "target": "rows"}
    none = Curve(method="diagnose.reliability_curve", columns={}, settings={"reason": "weights of censoring"})
    bins = Curve(method="reliability", columns=columns, settings=settings)
    return CheckResult(status="measured", curves={"reliability": none, "bins": bins})


def _ranges(context: AuditContext, rows: WeighedRows) -> Iterator[tuple[float, ...]]:
    """Ranges of the score: edges, mean score, what happened as estimated, its gap with certified ends, and rows."""
    p = rows.q.p
    values, place = np.unique(p, return_inverse=True)
    starts = run_starts(np.bincount(place), max(context.mask, min(len(p) // BINS, ENOUGH), len(p) // (2 * BINS)))
    bins = np.searchsorted(starts, place, side="right") - 1
    count = int(bins.max()) + 1
    spend = rows.alpha * (1.0 - BAND) / count
    for i in range(count):
        at = bins == i
        predicted = float(p[at].mean())
        value, low, high = certified(rows.q, rows.reach, at & rows.certified, spend)
        observed = min(max(predicted + value, 0.0), 1.0)
        low, high = max(low, -1.0), min(high, 1.0)
        off = min(max(observed - predicted, low), high)
        own = values[np.unique(place[at])]
        yield predicted, float(own[0]), float(own[-1]), predicted, observed, off, low, high, int(at.sum())


# ---- what is estimated, by weights ----


def measured(name: str, context: AuditContext) -> Estimate:
    """A measure of the score by weights of censoring."""
    from calibrant import measure

    data = LostRows.of(context).by_weights().data
    made: Estimate = getattr(measure, name)(data, alpha=context.judging.alpha)
    return made


def implied_odds(context: AuditContext) -> float | None:
    """How many times the odds of rows lost would be those of rows known, were loss independent of the outcome."""
    rows = LostRows.of(context)
    if not rows.q.reaches:
        return None
    m = int((~rows.q.known).sum())
    events, n = float(np.nansum(rows.q.y)), int(rows.q.known.sum())
    lost = rows.q.risk * (n + m) - events
    if not (0.0 < lost < m and 0.0 < events < n):
        return None
    return (lost / (m - lost)) / (events / (n - events))


def of_lost(context: AuditContext) -> dict[str, object]:
    """What a record holds of rows lost: the law of censoring, and how unlike those known they would be at random."""
    rows, odds = LostRows.of(context), implied_odds(context)
    own = {**rows.law}
    own |= {} if odds is None else {"implied_odds": odds}
    if unlike := rows.unlike(context):
        own |= {"lost_unlike": unlike, "own_law": own_law(context, unlike)}
    return {"horizon": {**context.sketch.log.horizon, **own}}


def own_law(context: AuditContext, unlike: Mapping[str, float]) -> list[str]:
    """Of these columns those whose levels, crossed, have bounded weights each; the most evidently unlike come first.

    A column of numbers is tested by its bins, and its values would be the levels: none is named.
    """
    rows, spec = LostRows.of(context), context.sketch.spec
    levels, chosen = rows.q.level, list[str]()
    every = np.ones(len(rows.q.p), dtype=np.bool_)
    for name in sorted(unlike, key=lambda name: unlike[name]):
        own = Strata.by(rows.data, (name,)).of
        if int(own.max()) >= len(spec.by_name[name].labels):
            continue
        pairs = np.unique(np.stack([levels, own]), axis=1, return_inverse=True)[1].reshape(-1)
        try:
            estimated(rows.q, Strata(pairs, (name,)), every, context.judging.alpha * BAND, context.seed)
        except NotComputable:
            continue
        levels, chosen = pairs, [*chosen, name]
    return chosen


def judged_by_gap(judge: Judge, weighs: bool) -> Judge:
    """What is judged of rows lost: the gap unless somebody asks otherwise, and by weights nothing else."""
    if judge == "error" and weighs:
        raise BadInput(NO_ERROR)
    return "gap" if judge == "auto" else judge
