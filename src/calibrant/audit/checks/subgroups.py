"""Unlisted subgroups: every conjunction of two attributes certified against the limit, and searched in two ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calibrant.audit.checks.everyone import status
from calibrant.audit.context import DRAWS, NO_TESTS, AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.judging import verdict_of
from calibrant.audit.record import Status
from calibrant.audit.subgroups import reported_map, reported_subgroups, reported_worst
from calibrant.certify.subgroups import CLEAR_SIZE
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Outcome
from calibrant.views.boxes import MIN_SIZE, ORDER, tables_of
from calibrant.views.rules import Condition

CODE = "subgroups"
FEW = "there are {} people: no subgroup can be shown of which at least {} are in it"
PARTS = ("p_scan", "p_adaptive", "weight", "detected_by")  # the adaptive test has a check of its own


def subgroups(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify the worst subgroup from below and from above, each end with all of alpha; report a few, map the worst."""
    context.needs_covariates()
    context.needs_tests()
    if "boxes" not in context.sketch.parts and not context.sketch.spec.sample:
        raise NotRun(NO_TESTS)
    if context.mask >= context.tested.n:
        raise NotComputable(FEW.format(context.tested.n, context.mask))
    context.announce("certifying unlisted subgroups")
    size = max(MIN_SIZE, context.mask / context.tested.n)
    curves = _distinct(context, size)
    try:
        worst = _worst(context, size, max(curves[CODE].columns["floor"], default=0.0) if curves else 0.0)
    except NotComputable:
        return _tested(context)
    tested, shares = _searched(context), context.judging.shares
    used = (
        *(shares.of_subgroups() if context.judging.limited else ()),
        *(() if tested is None else (shares.of_test(),)),
    )
    return CheckResult(
        status=_status(context, worst),
        estimate=worst,
        outcome=tested,
        estimates={CODE: worst},
        curves=curves,
        shares=used,
    )


def _tested(context: AuditContext) -> CheckResult:
    """The test alone where no range of subgroups is proved, as by clusters; what neither answers is refused."""
    searched = _searched(context)
    if searched is None:
        raise NotComputable("neither ranges nor a test of subgroups by clusters: subgroups need 20 effective clusters")
    shares = (context.judging.shares.of_test(),)
    return CheckResult(status="undecided" if context.judging.limited else "measured", outcome=searched, shares=shares)


def _worst(context: AuditContext, size: float, floor: float) -> Estimate:
    """Certify the worst subgroup: from below at least as far off as the worst of those that are reported."""
    from calibrant.certify.subgroups import subgroups

    plan, clear = context.judging, max(CLEAR_SIZE, size)
    least, most = (
        subgroups(
            context.tested,
            min_size=size,
            clear_size=clear,
            limit=plan.limit,
            alpha=plan.alpha,
            side=side,
            seed=context.seed,
        )
        for side in ("lower", "upper")
    )
    tables = tables_of(context.tested, None, ORDER, context.seed)
    reported = reported_worst(least, most, tables, context, context.people.times(context.sketch, least))
    low = max(reported.interval.low, floor)
    return replace(reported, value=max(reported.value, low), interval=replace(reported.interval, low=low))


def _status(context: AuditContext, worst: Estimate) -> Status:
    """Judge both ends as they are reported: exact ones would follow from one limit after another.

    Where the mask leaves larger subgroups only under the ceiling, those between are not known to be within the limit;
    nor are those of covariates that a screen left out.
    """
    verdict = verdict_of(worst.interval.low, worst.interval.high, context.judging.limit)
    if verdict == "within" and (worst.settings["clear_size"] > CLEAR_SIZE or context.screen is not None):
        return "undecided"
    return status(verdict)


def _distinct(context: AuditContext, size: float) -> dict[str, Curve]:
    """A few distinct subgroups, and the map of one; none where the sketch holds no rows to distinguish them."""
    from calibrant.diagnose.fixed_subgroups import fixed_subgroups

    plan = context.judging
    try:
        result = fixed_subgroups(context.tested, min_size=size, limit=plan.limit, alpha=plan.alpha, seed=context.seed)
    except NotComputable:
        return {}
    reported = reported_subgroups(result, context.tested.n, context.mask, context.searched)
    return {CODE: reported, **_map(context, reported)}


def _searched(context: AuditContext) -> Outcome | None:
    """Both searches as one test, without the people that they found; None where one cannot be made."""
    from calibrant.detect.subgroup_tests import joined, scan_test

    try:
        adaptive = context.adaptive
        scan = scan_test(context.tested, tolerance=context.judging.tolerance, draws=DRAWS, seed=context.seed)
    except (NotComputable, NotRun):
        return None
    both = joined(scan, adaptive, context.judging.alpha)
    impossible = max(int(t.parts.get("impossible", 0)) for t in (scan, adaptive))
    return replace(
        both,
        settings={k: scan.settings[k] for k in ("order", "min_size", "tolerance", "draws", "null", "seed")},
        parts={**{k: both.parts[k] for k in PARTS}, "subgroups": scan.parts["subgroups"], "impossible": impossible},
    )


def _map(context: AuditContext, result: Curve) -> dict[str, Curve]:
    """The map of the two attributes of the first subgroup that has two and is shown to be off.

    None of clusters: a cell of many rows may be of few people, and who is in several cells is in none alone.
    """
    from calibrant.diagnose.subgroups import subgroup_map

    if not context.people.are_rows:
        return {}

    for conditions, floor in zip(result.settings["conditions"], result.columns["floor"], strict=True):
        names = [Condition.from_dict(c).variable for c in conditions]
        if len(names) == 2 and floor > 0.0:
            whole = subgroup_map(context.tested, *names, subgroups=result, seed=context.seed)
            drawn = reported_map(whole, context.mask, context.searched)
            return {} if drawn is None else {"subgroup_map": drawn}
    return {}


DECLARED = (Check(code=CODE, order=105, make=subgroups, cost=Cost(tests=True, covariate=0.07, each=0.0015), gate=True),)
