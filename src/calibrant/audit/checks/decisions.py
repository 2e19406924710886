"""Acting from a threshold on: what it means for everyone and every group, and the rates that fairness asks for.

Rates are the selection rate, true and false positive rate and precision, called as fairness libraries call them. Each
stands in two layers: an estimate with its ordinary interval, and a certified range. Nobody has rates here of whom
`reported` does not report the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

import numpy as np

from calibrant.audit.context import AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.decisions import COLUMNS, EVERYONE, Line, People, clopper_pearson, everyone, groups, line, reported
from calibrant.audit.rounding import CLEAR, step, stepped
from calibrant.decisions.ladder import ClusterLadder, Ladder
from calibrant.decisions.net_benefit import decision_curve
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.stats.measures import WeighedByClusters, bounded_ends
from calibrant.stats.smoothing import clusters_new
from calibrant.views.sample import keyed

RATES_CODE, DIFFERENCES = "rates", "rate_differences"
SELECTION, TRUE_POSITIVE, FALSE_POSITIVE = "selection_rate", "true_positive_rate", "false_positive_rate"
PRECISION = "precision"
RATES = (SELECTION, TRUE_POSITIVE, FALSE_POSITIVE, PRECISION)
ENDS = 2 * len(RATES)  # certified, of a population at a threshold
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rate:
    """One rate of one population at one threshold: a line of the record."""

    variable: str  # empty for everyone
    group: str
    threshold: float
    rate: str
    # `value`, `low` and `high`: the estimate with its ordinary interval; `guaranteed_*`: certified. None where nobody
    # is counted, and an ordinary interval also where all of them are one cluster.
    value: float | None
    low: float | None
    high: float | None
    guaranteed_low: float | None
    guaranteed_high: float | None


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the groups of one variable are apart in one rate: a line of the record."""

    variable: str
    threshold: float
    rate: str
    groups: int
    # The groups whose estimates are the highest and the lowest, and these.
    highest: str
    lowest: str
    highest_rate: float
    lowest_rate: float
    difference: float
    low: float | None
    high: float | None
    guaranteed_low: float
    guaranteed_high: float
    # The lowest rate over the highest; None where that is 0.
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    guaranteed_ratio_low: float | None
    guaranteed_ratio_high: float | None


def rates(people: People, at: int, alphas: tuple[float, float], context: AuditContext) -> Iterator[Rate]:
    """The four rates of one population at a threshold.

    `alphas`: of each ordinary interval, and of all certified ends of this population together.
    """
    ladder, ordinary, each = people.ladders[at], alphas[0], alphas[1] / ENDS
    variable = ", ".join(dict.fromkeys(column for column, _ in people.name))
    who = (variable, keyed(people.name) if people.name else EVERYONE, ladder.threshold)
    for rate in RATES:
        hits, among = counted(ladder, rate)
        if not among or (context.sums.published and among < CLEAR):
            yield Rate(*who, rate, None, None, None, None, None)
            continue
        value, interval, (low, high) = layers(ladder, rate, (ordinary, each), context.seed)
        if value is None:
            yield Rate(*who, rate, None, None, None, None, None)
            continue
        reported = context.sums.of(among, hits, 0.0)
        least, most = reported.end(low, -1, 0.0), reported.end(high, 1, 0.0)
        value = min(max(reported.near(value), least), most)
        ends: tuple[float | None, float | None] = (None, None)
        if interval is not None:
            ends = (
                min(reported.end(interval[0], -1, 0.0), value),
                max(reported.end(interval[1], 1, 0.0), value),
            )
        yield Rate(*who, rate, value, *ends, least, most)


def counted(ladder: Ladder, rate: str) -> tuple[int, int]:
    """How many rows count for a rate, and among how many."""
    (acted, events), (left, missed) = ladder.acted, ladder.left
    return {
        SELECTION: (acted, acted + left),
        TRUE_POSITIVE: (events, events + missed),
        FALSE_POSITIVE: (acted - events, acted + left - events - missed),
        PRECISION: (events, acted),
    }[rate]


def layers(
    ladder: Ladder, rate: str, alphas: tuple[float, float], seed: int
) -> tuple[float | None, Range | None, tuple[float, float]]:
    """A rate, its ordinary interval at the first alpha, and certified ends that each miss with the second.

    None where every row that counts is of a pilot cluster, which certifies nothing.

    Of independent rows both are Clopper and Pearson's. Where rows share clusters or count more the interval has the
    variance of the clusters' sums (Korn and Graubard), and the ends come from bets on whole clusters.
    """
    if not isinstance(ladder, ClusterLadder):
        hits, among = counted(ladder, rate)
        return hits / among, clopper_pearson(hits, among, alphas[0] / 2.0), clopper_pearson(hits, among, alphas[1])
    u, on = ladder.clusters, ladder.acts
    there = {SELECTION: np.ones(len(on), dtype=bool), TRUE_POSITIVE: u.y == 1, FALSE_POSITIVE: u.y == 0, PRECISION: on}
    hit, rows = u.y == 1 if rate == PRECISION else on, there[rate]
    own = rows & u.certified[u.cluster]
    names, cluster = np.unique(u.cluster[own], return_inverse=True)
    if not len(names):
        return None, None, (0.0, 1.0)
    certified = ladder.shares(hit, rows, seed)
    if len(names) < 2:
        return certified.mean, None, certified.limits(alphas[1])
    mass = u.weight[own]
    q = WeighedByClusters(hit[own].astype(np.float64), mass, mass**2, cluster.reshape(-1).astype(np.intp))
    interval = bounded_ends(q.mean(q.y), q.variance(q.y), q.rows, q.level(alphas[0]))
    return certified.mean, interval, certified.limits(alphas[1])


def spreads(lines: Sequence[Rate]) -> Iterator[Spread]:
    """How far the groups of each variable are apart in each rate at each threshold.

    The largest of several rates is at least the largest of their low ends, and at most the largest of their high ends;
    the smallest likewise. So the ranges of rates that hold together bound the largest difference, and the smallest over
    the largest, whichever groups these are. No further alpha is needed.
    """
    known = [line for line in lines if line.variable and line.value is not None]
    order = {rate: i for i, rate in enumerate(RATES)}
    variables = {name: i for i, name in enumerate(dict.fromkeys(line.variable for line in known))}

    def key(line: Rate) -> tuple[float, int, int]:
        return line.threshold, variables[line.variable], order[line.rate]

    for _, some in groupby(sorted(known, key=key), key):
        own = list(some)
        if len(own) < 2:
            continue
        most, least = max(own, key=lambda r: r.value or 0.0), min(own, key=lambda r: r.value or 0.0)
        top, bottom = float(most.value or 0.0), float(least.value or 0.0)
        guaranteed = apart([(float(r.guaranteed_low or 0.0), float(_or(r.guaranteed_high, 1.0))) for r in own])
        ends: tuple[float | None, float | None, float | None, float | None] = (None, None, None, None)
        if all(r.low is not None for r in own):
            ends = apart([(float(r.low or 0.0), float(_or(r.high, 1.0))) for r in own])
        ratio, ratios, certain = (bottom / top, ends[2:], guaranteed[2:]) if top else (None, (None, None), (None, None))
        yield Spread(
            variable=most.variable,
            threshold=most.threshold,
            rate=most.rate,
            groups=len(own),
            highest=most.group,
            lowest=least.group,
            highest_rate=top,
            lowest_rate=bottom,
            difference=top - bottom,
            low=ends[0],
            high=ends[1],
            guaranteed_low=guaranteed[0],
            guaranteed_high=guaranteed[1],
            ratio=ratio,
            ratio_low=ratios[0],
            ratio_high=ratios[1],
            guaranteed_ratio_low=certain[0],
            guaranteed_ratio_high=certain[1],
        )


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def apart(ranges: Sequence[Range]) -> tuple[float, float, float, float]:
    """Ends of the largest rate less the smallest, and of the smallest over the largest, from ranges of all of them."""
    lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
    difference = max(max(lows) - min(highs), 0.0), max(highs) - min(lows)
    top = max(highs)
    ratio = (min(lows) / top if top else 0.0), (min(min(highs) / max(lows), 1.0) if max(lows) > 0.0 else 1.0)
    return *difference, *ratio


def rate_curves(shown: Sequence[tuple[int, Sequence[People]]], groups: int, context: AuditContext) -> dict[str, Curve]:
    """The rates of those who are reported at each threshold, by its number, everyone first; and their differences.

    Certified ends have an alpha of their own: half is everyone's, half the groups', shared equally by thresholds, by
    groups and by ends. Ordinary intervals of one rate at one threshold hold together over all groups; everyone's alone.
    """
    plan = context.judging
    each = plan.alpha / 2.0 / len(plan.thresholds)
    lines = [
        line
        for at, people in shown
        for one in people
        for line in rates(one, at, (plan.alpha / groups, each / groups) if one.name else (plan.alpha, each), context)
    ]
    settings = {"alpha": plan.alpha, "groups": groups, "assumes": context.everyone.assumes}
    apart_lines = list(spreads(lines))
    made = {RATES_CODE: _rate_curve("audit.rates", Rate, lines, settings)}
    return made | (
        {DIFFERENCES: _rate_curve("audit.rate_differences", Spread, apart_lines, settings)} if apart_lines else {}
    )


def _rate_curve(
    method: str, kind: type[Rate | Spread], lines: Sequence[Rate | Spread], settings: dict[str, object]
) -> Curve:
    columns = {f.name: tuple(getattr(line, f.name) for line in lines) for f in fields(kind)}
    return Curve(method=method, columns=columns, settings=settings)


# ---- the check ----

CODE, CURVE = "decisions", "decision_curve"
FEW = "fewer than {} {} are on one side of every threshold"
DRAWN = ("threshold", "net_benefit", "low", "high", "treat_all", "over_all", "over_all_low", "over_all_high")


def decisions(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Tell of each threshold who is acted on, what happened to them, what that is worth and what error costs.

    Half of alpha is everyone's, shared by thresholds; half the groups', shared by these too: all ranges of the section
    hold simultaneously. It is another alpha than that of the other certificates.
    """
    plan = context.judging
    if not plan.thresholds:
        return CheckResult()
    context.needs_outcomes()
    context.needs_no_crossing()
    if context.withheld_for:
        raise NotRun(context.withheld_for)
    context.announce("asking what decisions mean")
    whole, all_groups = everyone(context), groups(context)
    pairs = {i for i, names in enumerate(context.sketch.spec.groupings) if len(names) > 1}
    each = plan.alpha / 2.0 / len(plan.thresholds)
    lines: list[Line] = []
    at_each: list[tuple[int, list[People]]] = []
    for at in range(len(plan.thresholds)):
        if whole.least(at) < context.mask:
            continue
        lines.append(line(whole, at, each, context))
        shown = reported(all_groups, at, context.mask, pairs)
        lines += [line(p, at, each / len(all_groups), context) for p in shown]
        at_each.append((at, [whole, *shown]))
    if not lines:
        raise NotComputable(FEW.format(context.mask, plan.about.noun or "rows"))
    columns = {name: tuple(getattr(result, name) for result in lines) for name in COLUMNS}
    settings = {
        "alpha": plan.alpha,
        "thresholds": plan.thresholds,
        "costs": plan.costs,
        "groups": len(all_groups),
        "assumes": context.everyone.assumes,
    }
    curves = {CODE: Curve(method="audit.decisions", columns=columns, settings=settings), **_curve(context)}
    return CheckResult(status="measured", curves=curves | rate_curves(at_each, len(all_groups), context))


def _curve(context: AuditContext) -> dict[str, Curve]:
    """The decision curve of everyone in steps of a few people, without counts; none of too few rows."""
    try:
        result = decision_curve(context.read, alpha=context.judging.alpha, seed=context.seed)
    except NotComputable:
        return {}
    kept = _kept(context, result)
    if not kept:
        return {}
    cluster = step(context.everyone.n)  # in every record: at so many thresholds exact ones would count events
    sides = {"low": -1, "high": 1, "over_all_low": -1, "over_all_high": 1}
    columns = {
        k: tuple(
            v if k == "threshold" else stepped(v, cluster, sides.get(k, 0))
            for v in (result.columns[k][i] for i in kept)
        )
        for k in DRAWN
    }
    reported_settings = {k: result.settings[k] for k in ("alpha", "level", "least_rows")}
    reported_settings["guarantee"] = result.columns["guarantee"][0]
    return {CURVE: Curve(method=result.method, columns=columns, settings=reported_settings)}


def _kept(context: AuditContext, curve: Curve) -> list[int]:
    """The thresholds below, above and between which people are enough, or none."""
    rows, q = np.array(curve.columns["rows"]), context.everyone
    between = (-np.diff(rows, prepend=q.n, append=0)).tolist()
    new: Callable[[int, int], int] = lambda i, _: between[i]  # noqa: E731
    if q.clusters is not None:
        at = np.searchsorted(np.array(curve.columns["threshold"]) - 1e-9, q.clusters.p, side="right")
        new = clusters_new(at, q.clusters.cluster, len(between))
    kept, first, people = list[int](), 0, 0
    for i in range(len(rows)):
        people += new(i, first)
        if people == 0 or people >= context.mask:
            kept.append(i)
            first, people = i + 1, 0

    def above(i: int) -> int:
        return sum(new(j, i + 1) for j in range(i + 1, len(between)))

    while kept and 0 < above(kept[-1]) < context.mask:
        kept.pop()
    return kept


DECLARED = (Check(code=CODE, order=28, make=decisions, optional=True, cost=Cost(flat=0.1, group=0.02), crosses=True),)
