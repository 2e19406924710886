"""Selection rate, true and false positive rate and precision at a threshold: of everyone, of groups, and how far apart.

They are called as fairness libraries call them. Each stands in two layers: an estimate with its ordinary interval, and
a certified range. Nobody is reported here of whom `decisions` does not report the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

import numpy as np

from calibrant.audit.context import AuditContext
from calibrant.audit.decisions import EVERYONE, People, clopper_pearson
from calibrant.audit.rounding import CLEAR
from calibrant.decisions.ladder import Ladder
from calibrant.results import Curve
from calibrant.stats.measures import WeighedByClusters, bounded_ends
from calibrant.views.sample import keyed

CODE, DIFFERENCES = "rates", "rate_differences"
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
    if ladder.clusters is None:
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


def curves(shown: Sequence[tuple[int, Sequence[People]]], groups: int, context: AuditContext) -> dict[str, Curve]:
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
    made = {CODE: _curve("audit.rates", Rate, lines, settings)}
    return made | (
        {DIFFERENCES: _curve("audit.rate_differences", Spread, apart_lines, settings)} if apart_lines else {}
    )


def _curve(
    method: str, kind: type[Rate | Spread], lines: Sequence[Rate | Spread], settings: dict[str, object]
) -> Curve:
    columns = {f.name: tuple(getattr(line, f.name) for line in lines) for f in fields(kind)}
    return Curve(method=method, columns=columns, settings=settings)
