"""What is certified of every group: ranges of all together, verdicts against the limit, and the worst of all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calibrant.arguments import By
from calibrant.audit import lost
from calibrant.audit.checks.everyone import Layers, between, layered, status
from calibrant.audit.checks.missing_labels import Outward
from calibrant.audit.checks.missing_labels import shown as shown_with_lost
from calibrant.audit.context import AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.judging import Shares, worst
from calibrant.audit.pooling import Name, group_populations, identifier
from calibrant.audit.record import Finding, Verdict, size
from calibrant.audit.rounding import Sums, reported_layer, two_digits
from calibrant.certify.closed import ErrorEvidence, Evidence, Limit, SignedEvidence, bet_sizes_for, rejected
from calibrant.certify.decidable import Grouped, by_fewer
from calibrant.certify.groups import CLEAR_SIZE, gap_about, signed
from calibrant.certify.rows_needed import rows_to_decide
from calibrant.certify.whole import raw_certificate, shown_certificate
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Interval
from calibrant.views.population import Population
from calibrant.views.sample import keyed

UNGROUPED = "no groups were given: add --by COLUMN"
NO_LIMIT = "every probability is 0, and so is a limit relative to them: give --limit in points"
HIDDEN = "every group has fewer than {} {}"


@dataclass(frozen=True)
class Group:
    """One group, certified, and as it is reported."""

    name: Name
    members: int  # of a pool
    people: Population
    reported: Sums
    # `lower`, `upper` and `gap`: with ranges that hold simultaneously, as they are reported.
    lower: Estimate
    upper: Estimate
    gap: Estimate
    # Exact evidence about the error and about the gap, and which of them the limit is about.
    errors: Evidence
    gaps: Evidence
    judge: By
    limit: float | None

    @property
    def evidence(self) -> Evidence:
        """Of what the limit is about."""
        return self.errors if self.judge == "error" else self.gaps

    @property
    def off(self) -> float:
        """The size of what the limit is about, as estimated."""
        return self.certified_ends[1]

    @property
    def certified_ends(self) -> tuple[float, float, float]:
        """What the limit is about: at least, as estimated, and at most."""
        if self.judge == "error":
            return self.lower.interval.low, between(self.lower, self.upper), self.upper.interval.high
        least, most = size(self.gap.interval.low, self.gap.interval.high)
        return least, abs(self.gap.value), most

    def _points(self, of: Callable[..., float], limit: float, by: By) -> Limit:
        """Where evidence is taken in place of a limit, on the side of too many events and on that of too few.

        By the same draws as the ends of the range are reported by. An error has one side.
        """
        if by == "error":
            at = of(limit, rises=self.reported.error_rises)
            return Limit(at, at)
        return Limit(of(limit, rises=True), of(limit, rises=False))

    # The verdict as a function of the limit tells no more than reported ends do. An end from below, as reported, is
    # over the limit if and only if the exact end is at least `RandomRounding.over(limit)`, and the exact end is at
    # least x if and only if the e-value at x reaches the price. So evidence is taken at that point in place of the
    # limit: the e-value "at the limit as reported" is 1 / delta or more exactly where the reported end is over the
    # limit, at whatever delta closed testing asks for. It reads the limit by ``floor(limit / step)`` only, so that
    # verdicts at one limit after another change at multiples of the step, moved by chance, as the reported ends do. And
    # it is moved outward: what is found over the moved limit is over the limit, and the guarantee holds all the more.
    # From above the same with `within`.

    def over(self, limit: float, by: By | None = None) -> float:
        """The log e-value that it is over the limit, as it may be reported; by its error, its gap or what is judged."""
        by = by or self.judge
        return (self.errors if by == "error" else self.gaps).over(self._points(self.reported.over, limit, by))

    def p_value(self, by: By) -> float:
        """The p-value against "there is none", as its range is reported: at the end that the draw makes no error."""
        return self.reported.p_value(min(math.exp(-self.over(0.0, by)), 1.0))

    def within(self, limit: float) -> float:
        """The log e-value that it is within the limit, as it may be reported."""
        return self.evidence.within(self.inside(limit))

    def inside(self, limit: float) -> Limit:
        """Up to where it is within the limit as it may be reported."""
        return self._points(self.reported.within, limit, self.judge)

    def top(self, delta: float) -> float:
        """What it is off by at most, as it is reported, wrong with probability at most `delta`."""
        least, most = self.evidence.ends(delta, delta)
        if self.judge == "error":
            return self.reported.end(most, 1, 0.0, rises=self.reported.error_rises)
        return max(self.reported.end(most, 1), -self.reported.end(least, -1))


def of_groups(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify all groups: ranges that hold simultaneously, who is over the limit and who within, and the worst of all.

    Each is a statement of its own. Ranges share alpha over both ends of every group; verdicts come from closed testing
    (`certify.closed`); no group is off by more than the worst of all, which shares alpha with nobody.
    """
    if not context.sketch.spec.groupings:
        raise NotRun(UNGROUPED)
    shown = group_populations(context.sketch, context.mask)
    if not shown:
        raise NotComputable(HIDDEN.format(context.mask, _people(context)))
    groups = [certified(name, members, q, context, len(shown)) for name, q, members in shown]
    result = judged(groups, context)
    return CheckResult(
        status=status(worst(f.verdict for f in result)),
        findings=result,
        estimates={"worst_group": _worst(groups, context)},
        curves=_fewer(groups, result, context),
        shares=context.judging.shares.of_groups() if context.judging.limited else (),
    )


def of_groups_lost(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify all groups together where some outcomes by a horizon are unknown, by the way that was chosen."""
    if not context.sketch.spec.groupings:
        raise NotRun(UNGROUPED)
    groups = list(shown_with_lost(context))
    if not groups:
        raise NotComputable(HIDDEN.format(context.mask, _people(context)))
    rows, plan = lost.LostRows.of(context), context.judging
    member, each = lost.members(context), plan.alpha / len(groups)
    results = []
    for one in groups:
        at = member.rows(one.members)
        observed = rows.observed(at)
        events, expected = observed.risk * observed.rows, float(rows.q.p[at].sum())
        reported = context.sums.of(observed.rows, events, expected)
        if rows.way == "unknown":
            reported = replace(Outward.of(one.cells, plan.by("groups"), context.sums).people, exact=reported.exact)
        own, why = rows.apart(at, each, context.seed)
        who = lost.Population(at, observed, one.cells, each, reported, why)
        results.append(replace(lost.finding(context, own, one.name, who), pooled=one.pooled))
    return CheckResult(
        status=status(worst(f.verdict for f in results)),
        findings=tuple(results),
        shares=lost.shares(context, rows, "groups"),
    )


def judged(groups: Sequence[Group], context: AuditContext) -> tuple[Finding, ...]:
    """What the record reports about each of these groups, which share alpha."""
    says = decided(groups, context.judging.shares)
    counts = sum(g.limit is not None and g.off > g.limit for g in groups), len(groups)
    return tuple(_finding(g, verdict, context, counts) for g, verdict in zip(groups, says, strict=True))


def _fewer(groups: Sequence[Group], findings: Sequence[Finding], context: AuditContext) -> dict[str, Curve]:
    """What fewer groups would decide at these rows, where most of them are undecided; by their gaps alone."""
    plan, undecided = context.judging, sum(f.verdict == "undecided" for f in findings)
    names = {name for g in groups for name, _ in g.name}
    if undecided <= len(groups) / 2 or len(names) < 2 or plan.by("groups") != "gap" or context.withheld:
        return {}
    parts = [
        Grouped(tuple(name for name, _ in g.name), g.people, g.inside(g.limit)) for g in groups if g.limit is not None
    ]
    bet_sizes = bet_sizes_for(plan.shares.groups_ranges[0] / 2.0, len(groups))
    columns = by_fewer(parts, plan.shares.groups_within, bet_sizes, plan.target or parts[0].people.target, context.seed)
    return {"fewer_groups": Curve(method="certify.by_fewer", columns=columns, settings={"groups": len(groups)})}


def decided(groups: Sequence[Group], shares: Shares) -> list[Verdict]:
    """The verdict on each group, as `Shares` share alpha: over by its gap or by its error, else within, or undecided.

    Each of the three is closed by itself, over all groups. A relative limit of scores that are all 0 is 0, and nothing
    is shown to be within it: such a group is over or not checked. Where a group is found over and within, which may be
    about different scores, "over" wins.
    """
    if any(g.limit is None for g in groups):
        return ["not_checked"] * len(groups)
    limits = [g.limit or 0.0 for g in groups]
    over = np.zeros(len(groups), dtype=bool)
    kinds: tuple[tuple[By, float], ...] = (("gap", shares.groups_over_gap), ("error", shares.groups_over_error))
    for by, share in kinds:
        if share:
            log_e = [g.over(x, by) for g, x in zip(groups, limits, strict=True)]
            over |= rejected(log_e, share, by == "gap" and any(g.gaps.p_values for g in groups))
    above = [i for i, x in enumerate(limits) if x > 0.0]  # chosen by scores
    log_e = [groups[i].within(limits[i]) for i in above]
    closed = rejected(log_e, shares.groups_within, any(g.evidence.p_values for g in groups)) if above else ()
    within = dict(zip(above, closed, strict=True))
    other: tuple[Verdict, Verdict] = ("undecided", "within")
    return ["over" if o else other[bool(within[i])] if i in within else "not_checked" for i, o in enumerate(over)]


def _people(context: AuditContext) -> str:
    """What a group must have enough of to be shown."""
    return context.people.called or context.judging.about.noun or "rows"


def certified(name: Name, members: int, q: Population, context: AuditContext, count: int) -> Group:
    """Certify one of so many groups."""
    plan = context.judging
    # A range decides what closed testing decides, under the same share: so both have the ends of a share for "over".
    # What is not judged has ranges of half of alpha an end.
    shares, target = plan.shares, plan.target or q.target
    over_gap, over_error = shares.groups_ranges
    each, least, most = over_gap / (2.0 * count), over_error / count, plan.alpha / (2.0 * count)
    errors, gaps = bet_sizes_for(over_error, count), bet_sizes_for(over_gap / 2.0, count)
    reported, evidence = context.sums.of(q.n, q.events, q.expected), SignedEvidence.of(q, gaps, target)
    level = {key: round(1.0 - spent * count, 12) for key, spent in (("gap", 2 * each), ("low", least), ("high", most))}
    lower = raw_certificate(q, errors).run((least, 0.0), level["low"], context.seed)
    upper = shown_certificate(q, q.judged(plan.steps)).run((0.0, most), level["high"], context.seed)
    return Group(
        name=name,
        members=members,
        people=q,
        reported=reported,
        lower=reported.estimate(lower),
        upper=reported.estimate(upper),
        gap=reported.gap(signed(q, (each, each), level["gap"], gaps, target, evidence)),
        errors=ErrorEvidence.of(q, plan.steps, errors, context.seed),
        gaps=evidence,
        judge=plan.by("groups"),
        limit=plan.limit_of(q.predicted),
    )


def _finding(g: Group, verdict: Verdict, context: AuditContext, counts: tuple[int, int]) -> Finding:
    """What the record reports about a group; `counts` of groups estimated over the limit, and of all."""
    plan, need = context.judging, None
    if verdict == "undecided" and g.limit is not None:
        # In the end groups over the limit are never found within, and those within never over: only they share.
        over, every = counts
        share = plan.shares.groups_over_error if g.judge == "error" else plan.shares.groups_over_gap
        spend = share / (every - over + 1), plan.shares.groups_within / (over + 1)
        need = rows_to_decide(g.people, g.certified_ends, g.limit, plan.steps, spend, g.judge)
    rows, clusters = context.needed(None if need is None else lambda n: two_digits(need.rows(n)))
    p = g.p_value("error"), g.p_value("gap")
    return Finding(
        id=identifier(g.name),
        variables=g.name,
        rows=g.reported.rows,
        events=g.reported.events,
        expected=float(g.reported.expected),
        lower=g.lower,
        upper=g.upper,
        **_as_reported(layered(context, g.people, (g.lower, g.upper, g.gap), p), g),
        verdict=verdict,
        by=g.judge,
        limit=g.limit if plan.limit_relative is None else g.reported.relative(g.limit),
        rows_needed=rows,
        clusters_needed=clusters,
        rows_at_least=need is not None and need.at_least,
        pooled=g.members,
        withheld=NO_LIMIT if verdict == "not_checked" and g.limit is not None else None,
    )


def _as_reported(layers: Layers, g: Group) -> Layers:
    """The numbers of a group as they are reported: ends moved outward, of the ratio in steps of expected events."""
    ratio = layers["observed_expected"]
    if ratio is not None and g.reported.expected:
        ratio = replace(ratio, value=g.reported.events / g.reported.expected)
        ratio = reported_layer(ratio, replace(g.reported, share_of=g.people.expected), 0.0, math.inf)
    return Layers(
        error=reported_layer(layers["error"], g.reported, 0.0, rises=g.reported.error_rises),
        gap=reported_layer(layers["gap"], g.reported),
        observed_expected=ratio if g.reported.expected else None,
    )


def _worst(groups: Sequence[Group], context: AuditContext) -> Estimate:
    """What no group is off by more than: the largest end as reported of any, at alpha / 2 each.

    The truly worst group is one group, and its own end covers it. The largest is at most a limit if and only if all
    evidence from above reaches the price alone; then each group whose error is judged is "within", except one whose raw
    score is "over" though its display is within. Of gaps of rows Holm's procedure asks for more: some groups may be
    undecided. As `worst_group` from above at alpha / 2; of groups as they are shown, a pool being one.
    """
    plan = context.judging
    target, gap = plan.target or groups[0].people.target, plan.by("groups") == "gap"
    tops = [g.top(plan.alpha / 2.0) for g in groups]
    high = max(tops)
    large = [top for g, top in zip(groups, tops, strict=True) if g.people.n >= CLEAR_SIZE * context.sketch.n]
    shown, pooled = context.everyone.judged(plan.steps), sum(g.members for g in groups)
    many = "1 group" if len(groups) == 1 else f"{len(groups):,} groups"
    which = f"{many} shown, {pooled} small ones only pooled" if pooled else many
    return Estimate(
        method="certify.worst_group",
        value=min(max(g.off for g in groups), high),
        unit="probability",
        n=context.sketch.n,
        interval=Interval(low=0.0, high=high, level=1.0 - plan.alpha / 2.0, guarantee="finite-sample"),
        assumes=groups[0].people.assumed(target) if gap else groups[0].people.assumes,
        settings={
            "about": f"the worst of {which}, of {gap_about(target) if gap else shown.about}",
            "judge": plan.by("groups"),
            "groups": len(groups),
            "pooled": pooled,
            "group_high": identifier(groups[tops.index(high)].name),
            "clear_size": CLEAR_SIZE,
            "clear_high": max(large, default=None),
            "delta": (0.0, plan.alpha / 2.0),
        },
    )


CHANGE = "change"


def change(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """By how much the gap of everyone, and of each group of both audits, changed since an earlier one.

    A change is now less before, each end by the ends that both audits certified: wrong with at most the sum of their
    error probabilities (union bound), whether or not rows are shared. "worse" and "better": the gap is certified to be
    farther from 0 than before, or nearer; "changed": neither, but it moved.
    """
    before = context.before
    if before is None:
        return CheckResult()
    if context.withheld_for:
        raise NotRun(context.withheld_for)
    then = {f.variables: f for f in (before.everyone, *before.groups) if not f.pooled and f.gap.guaranteed is not None}
    now = [f for f in context.findings if not f.pooled and f.gap.guaranteed is not None]
    pairs = [(then[f.variables], f) for f in now if f.variables in then]
    lines = [_change(a, b) for a, b in pairs if a.gap.settings.get("target") == b.gap.settings.get("target")]
    if before.everyone.withheld is not None:
        raise NotComputable(NOT_BEFORE)
    if FAMILY in before.curves:
        raise NotComputable(OF_SEVERAL)
    by, once = (log.get("horizon") for log in (dict(context.sketch.log.horizon), before.data.get("horizon") or {}))
    if by != once:
        raise NotComputable(OTHER_HORIZON.format(once or "no horizon", by or "none"))
    if not lines:
        raise NotComputable(NO_GAP)
    columns = {name: tuple(line[i] for line in lines) for i, name in enumerate(Change._fields)}
    named = {f.variables for f in now}
    settings = {
        "name": before.name,
        "fingerprint": before.data.get("fingerprint"),
        "guarantee": "finite-sample",
        # everyone's change and those of all groups together: each family spends its own
        "level_of_all": max(1.0 - sum({line.group == EVERYONE: 1.0 - line.level for line in lines}.values()), 0.0),
        "only_now": sum(f.variables not in then for f in context.findings if not f.pooled),
        "only_before": sum(variables not in named for variables in then),
    }
    return CheckResult(status="measured", curves={CHANGE: Curve(method=METHOD, columns=columns, settings=settings)})


METHOD, EVERYONE = "audit.change", "everyone"
NOT_BEFORE = "the earlier audit certifies nothing: its rows are copies, or depend on one another"
NO_GAP = "the two audits certify no gap of the same people, by the same target"
FAMILY = "horizons"  # the curve of an audit by several
OF_SEVERAL = "the earlier audit is by several horizons, and holds the gaps of one: audit each horizon by itself"
OTHER_HORIZON = "the earlier audit is by {}, this one by {}"


class Change(NamedTuple):
    """Everyone or a group, in two audits; gaps and ends in probability units."""

    id: str  # of the finding now
    group: str
    rows_before: int
    rows: int
    before: float
    now: float
    change: float
    interval_low: float | None
    interval_high: float | None
    low: float
    high: float
    level: float
    state: str


def _change(then: Finding, now: Finding) -> Change:
    (old, a), (new, b) = ((f.gap.guaranteed, f.gap.interval) for f in (then, now))
    if old is None or new is None:
        raise ValueError("no gap of it is certified")
    change = now.gap.value - then.gap.value
    half = None if a is None or b is None else 0.5 * math.hypot(a.high - a.low, b.high - b.low)
    low, high = new.low - old.high, new.high - old.low
    (least, most), (once_least, once_most) = size(new.low, new.high), size(old.low, old.high)
    state = "worse" if least > once_most else "better" if most < once_least else "changed" if low * high > 0 else "none"
    return Change(
        id=now.id,
        group=keyed(now.variables) if now.variables else EVERYONE,
        rows_before=then.rows,
        rows=now.rows,
        before=then.gap.value,
        now=now.gap.value,
        change=change,
        interval_low=None if half is None else change - half,
        interval_high=None if half is None else change + half,
        low=low,
        high=high,
        level=max(old.level + new.level - 1.0, 0.0),
        state=state,
    )


DECLARED = (
    Check(
        code="error-groups",
        order=20,
        make=of_groups,
        make_of_lost=of_groups_lost,
        step="certifying groups",
        cost=Cost(group=0.008),
        crosses=True,
    ),
    Check(
        code=CHANGE,
        order=125,
        make=change,
        optional=True,
        crosses=True,
        asks="What changed",
        means="how the gaps of everyone and the groups changed since an earlier audit",
    ),
)
