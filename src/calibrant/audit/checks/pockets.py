"""Unlisted subgroups: every conjunction of two attributes certified against the limit, and searched in two ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calibrant.audit.pockets import told_map, told_pockets, told_worst
from calibrant.audit.question import DRAWS, NO_TESTS, Answer, Case, Cost, NotRun, Question
from calibrant.audit.record import Check, Status
from calibrant.certify.pockets import CLEAR_SIZE
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Outcome
from calibrant.views.boxes import MIN_SIZE, ORDER, tables_of
from calibrant.views.rules import Condition

CODE = "pockets"
FEW = "there are {} people: no subgroup can be shown of which at least {} are in it"
PARTS = ("p_scan", "p_adaptive", "weight", "found_by")  # the adaptive test has a check of its own


def pockets(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Certify the worst subgroup from below and from above, each end with all of alpha; report a few, map the worst."""
    case.needs_covariates()
    case.needs_tests()
    if "boxes" not in case.whole.parts and not case.whole.spec.sample:
        raise NotRun(NO_TESTS)
    if case.mask >= case.tested.n:
        raise NotComputable(FEW.format(case.tested.n, case.mask))
    case.announce("certifying unlisted subgroups")
    size = max(MIN_SIZE, case.mask / case.tested.n)
    curves = _distinct(case, size)
    try:
        worst = _worst(case, size, max(curves[CODE].columns["floor"], default=0.0) if curves else 0.0)
    except NotComputable:
        return _tested(case)
    check = Check(code=CODE, status=_status(case, worst), estimate=worst, outcome=_searched(case))
    return Answer(checks=(check,), estimates={CODE: worst}, curves=curves)


def _tested(case: Case) -> Answer:
    """Return the test alone where no range of subgroups is proved, as by clusters; what neither answers is refused."""
    searched = _searched(case)
    if searched is None:
        raise NotComputable("neither ranges nor a test of subgroups by clusters: subgroups need 20 effective clusters")
    status: Status = "measured" if case.judging.limit is None else "undecided"
    return Answer(checks=(Check(code=CODE, status=status, outcome=searched),))


def _worst(case: Case, size: float, floor: float) -> Estimate:
    """Certify the worst subgroup: from below at least as far off as the worst of those that are reported."""
    from calibrant.certify.pockets import pockets

    plan, clear = case.judging, max(CLEAR_SIZE, size)
    least, most = (
        pockets(
            case.tested,
            min_size=size,
            clear_size=clear,
            limit=plan.limit,
            alpha=plan.alpha,
            side=side,
            seed=case.seed,
        )
        for side in ("lower", "upper")
    )
    tables = tables_of(case.tested, None, ORDER, case.seed, by_units=True)
    told = told_worst(least, most, tables, case.mask, _times(case, least))
    low = max(told.interval.low, floor)
    return replace(told, value=max(told.value, low), interval=replace(told.interval, low=low))


def _times(case: Case, found: Estimate) -> float:
    """Return how many times as much there is as was tested: rows, or clusters where they belong together."""
    units = found.settings.get("units")
    if units is None or not case.whole.spec.cluster:
        return case.whole.n / found.n
    return float(case.whole.parts["sample"].of_units) / float(units)


def _status(case: Case, worst: Estimate) -> Status:
    """Judge both ends as they are reported: exact ones would follow from one limit after another.

    Where the mask leaves larger subgroups only under the ceiling, those between are not known to be within the limit;
    nor are those of covariates that a screen left out.
    """
    verdict = case.judging.verdict(worst.interval.low, worst.interval.high)
    if verdict == "met" and (worst.settings["clear_size"] > CLEAR_SIZE or case.screen is not None):
        return "undecided"
    return "measured" if verdict == "none" else verdict


def _distinct(case: Case, size: float) -> dict[str, Curve]:
    """Return a few distinct subgroups, and the map of one; none where the sketch holds no rows to distinguish them."""
    from calibrant.diagnose.pockets import pockets

    plan = case.judging
    try:
        found = pockets(case.tested, min_size=size, limit=plan.limit, alpha=plan.alpha, seed=case.seed)
    except NotComputable:
        return {}
    told = told_pockets(found, case.tested.n, case.mask)
    return {CODE: told, **_map(case, told)}


def _searched(case: Case) -> Outcome | None:
    """Return both searches as one test, without the people that they found; None where one cannot be made."""
    from calibrant.detect.pocket_test import joined
    from calibrant.detect.scan_test import scan_test

    try:
        adaptive = case.adaptive
        scan = scan_test(case.tested, tolerance=case.judging.tolerance, draws=DRAWS, seed=case.seed)
    except (NotComputable, NotRun):
        return None
    both = joined(scan, adaptive, case.judging.alpha)
    impossible = max(int(t.parts.get("impossible", 0)) for t in (scan, adaptive))
    return Outcome(
        method=both.method,
        statistic=both.statistic,
        p_value=both.p_value,
        alternative=both.alternative,
        null=both.null,
        law=both.law,
        settings={k: scan.settings[k] for k in ("order", "min_size", "tolerance", "draws", "null", "seed")},
        parts={
            **{k: both.parts[k] for k in PARTS},
            "boxes": scan.parts["boxes"],
            "impossible": impossible,
        },
    )


def _map(case: Case, found: Curve) -> dict[str, Curve]:
    """Return the map of the two attributes of the first subgroup that has two and is shown to be off.

    None of clusters: a cell of many rows may be of few people, and who is in several cells is in none alone.
    """
    from calibrant.diagnose.pocket_map import pocket_map

    if case.whole.spec.cluster:
        return {}

    for conditions, floor in zip(found.settings["conditions"], found.columns["floor"], strict=True):
        names = [Condition.from_dict(c).variable for c in conditions]
        if len(names) == 2 and floor > 0.0:
            drawn = told_map(pocket_map(case.tested, *names, pockets=found, seed=case.seed), case.mask)
            return {} if drawn is None else {"pocket_map": drawn}
    return {}


DECLARED = (
    Question(code=CODE, order=105, make=pockets, cost=Cost(tests=True, covariate=0.07, each=0.0015), gate=True),
)
