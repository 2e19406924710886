"""What is certified of every group: ranges of all together, verdicts against the limit, and the worst of all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant.audit.checks.certified import between, size, status
from calibrant.audit.context import AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.inputs import two_way
from calibrant.audit.judging import worst
from calibrant.audit.pooling import Name, group_populations
from calibrant.audit.record import Finding, Verdict
from calibrant.audit.rounding import Sums, two_digits
from calibrant.certify.closed import Evidence, Judge, Limit, bet_sizes_for, evidence_of, verdicts
from calibrant.certify.groups import CLEAR_SIZE, gap_about, signed
from calibrant.certify.rows_needed import rows_to_decide
from calibrant.certify.whole import raw_certificate, shown_certificate
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Interval
from calibrant.views.population import Population

UNGROUPED = "no groups were given: add --by COLUMN"
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
    evidence: Evidence  # of what the limit is about; exact
    judge: Judge

    @property
    def error(self) -> float:
        """The error as estimated."""
        return between(self.lower, self.upper)

    @property
    def off(self) -> float:
        """The size of what the limit is about, as estimated."""
        return self.certified_ends[1]

    @property
    def certified_ends(self) -> tuple[float, float, float]:
        """What the limit is about: at least, as estimated, and at most."""
        if self.judge == "error":
            return self.lower.interval.low, self.error, self.upper.interval.high
        least, most = size(self.gap)
        return least, abs(self.gap.value), most

    @property
    def _draws(self) -> tuple[str, str]:
        """What the ends of its range are reported by: the same draws for its verdict, and as the worst of all."""
        if self.judge == "error":
            return f"{self.lower.method} low", f"{self.upper.method} high"
        return f"{self.gap.method} low", f"{self.gap.method} high"

    # The verdict as a function of the limit tells no more than reported ends do. An end from below, as reported, is
    # over the limit if and only if the exact end is at least `RandomRounding.over(limit)`, and the exact end is at
    # least x if and only if the e-value at x reaches the price. So evidence is taken at that point in place of the
    # limit: the e-value "at the limit as reported" is 1 / delta or more exactly where the reported end is over the
    # limit, at whatever delta closed testing asks for. It reads the limit by ``floor(limit / step)`` only, so that
    # verdicts at one limit after another change at multiples of the step, moved by chance, as the reported ends do. And
    # it is moved outward: what is found over the moved limit is over the limit, and the guarantee holds all the more.
    # From above the same with `within`.

    def over(self, limit: float) -> float:
        """The log e-value that it is over the limit, as it may be reported."""
        low, high = self._draws
        return self.evidence.over(Limit(self.reported.over(limit, low), self.reported.over(limit, high)))

    def within(self, limit: float) -> float:
        """The log e-value that it is within the limit, as it may be reported."""
        low, high = self._draws
        return self.evidence.within(Limit(self.reported.within(limit, high), self.reported.within(limit, low)))

    def top(self, delta: float) -> float:
        """Return what it is off by at most, as it is reported, wrong with probability at most `delta`."""
        low, high = self._draws
        least, most = self.evidence.ends(delta, delta)
        if self.judge == "error":
            return self.reported.end(most, 1, high, 0.0)
        return max(self.reported.end(most, 1, high), -self.reported.end(least, -1, low))


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
    plan = context.judging
    groups = [_certified(name, members, q, context, len(shown)) for name, q, members in shown]
    says: Sequence[Verdict] = ["not_checked"] * len(groups)
    if (limit := plan.limit) is not None:
        over, within = [g.over(limit) for g in groups], [g.within(limit) for g in groups]
        says = verdicts(over, within, plan.judge, plan.alpha, any(g.evidence.p_values for g in groups))
    plainly = sum(plan.limit is not None and g.off > plan.limit for g in groups)
    result = tuple(
        _finding(g, verdict, context, (plainly, len(groups))) for g, verdict in zip(groups, says, strict=True)
    )
    return CheckResult(status=status(worst(says)), findings=result, estimates={"worst_group": _worst(groups, context)})


def _people(context: AuditContext) -> str:
    """Return what a group must have enough of to be shown: see `people_of`."""
    if both := two_way(context.sketch):
        return "clusters of {} or of {}".format(*both)
    return "clusters" if context.sketch.spec.cluster else context.judging.about.noun or "rows"


def _certified(name: Name, members: int, q: Population, context: AuditContext, count: int) -> Group:
    """Certify one of so many groups."""
    plan, level = context.judging, 1.0 - context.judging.alpha
    each, bet_sizes = plan.alpha / (2.0 * count), bet_sizes_for(plan.alpha / 2.0, count)
    reported = context.sums.of(q.n, q.events, q.expected)
    lower = raw_certificate(q, bet_sizes).run((each, 0.0), level, context.seed)
    upper = shown_certificate(q, q.judged(plan.steps)).run((0.0, each), level, context.seed)
    return Group(
        name=name,
        members=members,
        people=q,
        reported=reported,
        lower=reported.estimate(lower),
        upper=reported.estimate(upper),
        gap=reported.gap(signed(q, (each, each), level, bet_sizes, plan.target or q.target)),
        evidence=evidence_of(q, plan.judge, plan.steps, bet_sizes, context.seed, plan.target or q.target),
        judge=plan.judge,
    )


def _finding(g: Group, verdict: Verdict, context: AuditContext, counts: tuple[int, int]) -> Finding:
    """Return what the record reports about a group; `counts` of groups estimated over the limit, and of all."""
    plan, need = context.judging, None
    if verdict == "undecided" and plan.limit is not None:
        # In the end groups over the limit are never found within, and those within never over: only they share.
        over, every = counts
        spend = plan.alpha / 2.0 / (every - over + 1), plan.alpha / 2.0 / (over + 1)
        need = rows_to_decide(g.people, g.certified_ends, plan.limit, plan.steps, spend, plan.judge)
    rows, clusters = context.needed(None if need is None else lambda n: two_digits(need.rows(n)))
    return Finding(
        id=_identifier(g.name),
        variables=g.name,
        rows=g.reported.rows,
        events=g.reported.events,
        expected=float(g.reported.expected),
        lower=g.lower,
        upper=g.upper,
        error=g.error,
        gap=g.gap,
        verdict=verdict,
        rows_needed=rows,
        clusters_needed=clusters,
        rows_at_least=need is not None and need.at_least,
        pooled=g.members,
    )


def _worst(groups: Sequence[Group], context: AuditContext) -> Estimate:
    """Return what no group is off by more than: the largest end as reported of any, at alpha / 2 each.

    The truly worst group is one group, and its own end covers it. The largest is at most a limit if and only if all
    evidence from above reaches the price alone; then each group whose error is judged is "within", except one whose raw
    score is "over" though its display is within. Of gaps of rows Holm's procedure asks for more: some groups may be
    undecided. As `worst_group` from above at alpha / 2; of groups as they are shown, a pool being one.
    """
    plan = context.judging
    target = plan.target or groups[0].people.target
    tops = [g.top(plan.alpha / 2.0) for g in groups]
    high = max(tops)
    large = [top for g, top in zip(groups, tops, strict=True) if g.people.n >= CLEAR_SIZE * context.sketch.n]
    shown, pooled = context.everyone.judged(plan.steps), sum(g.members for g in groups)
    which = f"{len(groups)} groups shown, {pooled} small ones only pooled" if pooled else f"{len(groups)} groups"
    return Estimate(
        method="certify.worst_group",
        value=min(max(g.off for g in groups), high),
        unit="probability",
        n=context.sketch.n,
        interval=Interval(low=0.0, high=high, level=1.0 - plan.alpha / 2.0, guarantee="finite-sample"),
        assumes=groups[0].people.assumed(target) if plan.judge == "gap" else groups[0].people.assumes,
        settings={
            "about": f"the worst of {which}, of {gap_about(target) if plan.judge == 'gap' else shown.about}",
            "judge": plan.judge,
            "groups": len(groups),
            "pooled": pooled,
            "group_high": _identifier(groups[tops.index(high)].name),
            "clear_size": CLEAR_SIZE,
            "clear_high": max(large, default=None),
            "delta": (0.0, plan.alpha / 2.0),
        },
    )


def _identifier(name: Name) -> str:
    text = "-".join(f"{v}-{level}" for v, level in name)
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(repr(name).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{slug}-{digest}" if slug else digest


DECLARED = (
    Check(
        code="error-groups", order=20, make=of_groups, step="certifying groups", cost=Cost(group=0.008), crosses=True
    ),
)
