"""What a decision at a threshold does to people: of whom it is reported, and the certified line of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from calibrant.audit.context import AuditContext
from calibrant.audit.pooling import Name
from calibrant.audit.rounding import Sums
from calibrant.decisions.ladder import ClusterLadder, Ladder
from calibrant.decisions.net_benefit import ends as regret_ends
from calibrant.views.population import Population
from calibrant.views.sample import groups_of, keyed

EVERYONE = "everyone"
CERTIFIED_ENDS = 6  # of a line: both of two rates and of the regret; net benefit has a half of alpha of its own


@dataclass(frozen=True)
class People:
    """A population with its ladder at each threshold."""

    name: Name  # empty for everyone
    grouping: int  # -1 for everyone
    population: Population
    ladders: tuple[Ladder, ...]

    def least(self, at: int) -> int:
        """The fewest people on a side of a threshold, or between it and the one before; none are not few."""
        ladder = self.ladders[at]
        before = self.ladders[at - 1].acts_from if at else None
        sides = [ladder.people(0.0, ladder.acts_from), ladder.people(ladder.acts_from, 2.0)]
        if before is not None:
            sides.append(ladder.people(0.0, ladder.acts_from) - self.ladders[at - 1].people(0.0, before))
        return min((n for n in sides if n > 0), default=0)

    def sides(self, at: int) -> tuple[int, int]:
        """How many people are acted on, and how many are not."""
        ladder = self.ladders[at]
        return ladder.people(ladder.acts_from, 2.0), ladder.people(0.0, ladder.acts_from)


def everyone(context: AuditContext) -> People:
    """Everyone, with a ladder for each threshold."""
    q = context.everyone
    return People((), -1, q, tuple(Ladder.of(q, t) for t in context.judging.thresholds))


def groups(context: AuditContext) -> list[People]:
    """The groups that the audit shows."""
    whole = context.sketch
    if not whole.spec.groupings:
        return []
    shown = context.shown_groups
    result = groups_of(whole, whole, [members for _, members, _ in shown], whole.spec.seed)
    ends = np.cumsum(whole.spec.sizes)
    return [
        People(
            name,
            int(np.searchsorted(ends, members[0], side="right")),
            q,
            tuple(Ladder.of(q, t) for t in context.judging.thresholds),
        )
        for (name, members, _), q in zip(shown, result, strict=True)
    ]


def reported(people: Sequence[People], at: int, mask: int, pairs: set[int]) -> list[People]:
    """Those of whom a threshold is reported; of a variable's groups that are not, two at least and not few.

    Groups add up to everyone, who are reported: one group that is left out could be had by subtraction. So the next
    smallest leave with it. Of a table of pairs, whose margins are reported, none is reported where any cannot be, or
    where cells are pooled: a pool has people enough, and each of its cells may not have them on both sides.
    """
    left_out: set[int] = set()
    alone = {p.name for p in people if p.grouping not in pairs}
    for grouping in {p.grouping for p in people}:
        own = [i for i, p in enumerate(people) if p.grouping == grouping]
        few = [i for i in own if people[i].least(at) < mask]
        if grouping in pairs and (few or not all({(pair,) for pair in people[i].name} <= alone for i in own)):
            left_out |= set(own)
            continue
        order = few + sorted((i for i in own if i not in few), key=lambda i: people[i].least(at))
        out = len(few)
        while few and out < len(order) and not _enough([people[i].sides(at) for i in order[:out]], mask):
            out += 1
        left_out |= set(order[:out])
    return [p for i, p in enumerate(people) if i not in left_out]


def _enough(sides: Sequence[tuple[int, int]], mask: int) -> bool:
    """Whether those left out are two at least, and on neither side few together."""
    totals = [sum(s[k] for s in sides) for k in (0, 1)]
    return len(sides) > 1 and all(n == 0 or n >= mask for n in totals)


@dataclass(frozen=True, slots=True)
class Line:
    """What the record reports."""

    group: str
    threshold: float
    acts_from: float
    # `rows`, `acted`, `events_acted`, `left` and `events_left`: people; acted on and events among them; not acted on
    # and events among them.
    rows: int
    acted: int
    events_acted: int
    left: int
    events_left: int
    # `wrong`, `wrong_low` and `wrong_high`: `P(Y = 0 | acted on)`, certified; None where nobody is.
    wrong: float | None
    wrong_low: float | None
    wrong_high: float | None
    # `missed`, `missed_low` and `missed_high`: `P(Y = 1 | not acted on)`, certified; None where everyone is acted on.
    missed: float | None
    missed_low: float | None
    missed_high: float | None
    net_benefit: float
    net_benefit_low: float
    net_benefit_high: float
    # `over_all`, `over_all_low` and `over_all_high`: the same less that of acting on everyone.
    over_all: float
    over_all_low: float
    over_all_high: float
    # `regret`, `regret_low` and `regret_high`: ends of these three are certified too.
    regret: float
    regret_low: float
    regret_high: float


COLUMNS = tuple(f.name for f in fields(Line))


def line(people: People, at: int, alpha: float, context: AuditContext) -> Line:
    """Certify one population at one threshold; half of `alpha`, its own, is the net benefit's."""
    ladder, seed, sums = people.ladders[at], context.seed, context.sums
    each = alpha / 2.0 / CERTIFIED_ENDS
    (acted, events), (left, missed) = ladder.acted, ladder.left
    high, low = sums.of(acted, events, 0.0), sums.of(left, missed, 0.0)
    every = sums.of(acted + left, events + missed, 0.0)
    t, odds = ladder.threshold, ladder.threshold / (1.0 - ladder.threshold)
    rate = _rate(ladder, True, (acted - events, acted), high, (each, seed))
    other = _rate(ladder, False, (missed, left), low, (each, seed))
    lots, worth = ladder.lots, 1.0 - t
    ends = regret_ends(lots, (each, each), seed)
    lost = (lots.estimate, ends[0], ends[1])
    regret = tuple(v / worth for v in lost)
    gain, more = (_mean(ladder, over_all, alpha / 4.0, seed) for over_all in (False, True))
    top = max(1.0, odds)
    return Line(
        keyed(people.name) if people.name else EVERYONE,
        t,
        ladder.acts_from,
        every.rows,
        high.rows if acted else 0,
        high.events if acted else 0,
        low.rows if left else 0,
        low.events if left else 0,
        *rate,
        *other,
        *_outward(every, gain, (-top, top)),
        *_outward(every, more, (-top, top), rises=False),
        *_outward(every, (regret[0], regret[1], regret[2]), (0.0, top)),
    )


def _outward(
    reported: Sums, results: tuple[float, float, float], span: tuple[float, float], *, rises: bool = True
) -> tuple[float, float, float]:
    """A number rounded, between ends moved outward."""
    value, low, high = results
    least, most = (reported.end(v, side, *span, rises=rises) for v, side in ((low, -1), (high, 1)))
    return min(max(reported.near(value, rises=rises), least), most), least, most


Rate = tuple[float | None, float | None, float | None]


def _rate(ladder: Ladder, acted: bool, counts: tuple[int, int], reported: Sums, spend: tuple[float, int]) -> Rate:
    """A rate of errors on one side of the threshold with its certified range; nothing where nobody is there."""
    (wrong, rows), (each, seed) = counts, spend
    if not rows:
        return None, None, None
    if isinstance(ladder, ClusterLadder):
        there = ladder.acts == acted
        result = ladder.shares(ladder.clusters.y == (0 if acted else 1), there, seed)
        rate, (low, high) = result.mean, result.limits(each)
    else:
        low, high = clopper_pearson(wrong, rows, each)
        rate = wrong / rows
    value, least, most = _outward(reported, (rate, low, high), (0.0, 1.0), rises=not acted)  # wrong of non-events
    return value, least, most


def clopper_pearson(hits: int, n: int, each: float) -> tuple[float, float]:
    """Both ends of the exact interval, each missing with probability `each` at most."""
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1.0, each))
    high = 1.0 if hits == n else float(betaincinv(hits + 1.0, n - hits, 1.0 - each))
    return low, high


def _mean(ladder: Ladder, over_all: bool, alpha: float, seed: int) -> tuple[float, float, float]:
    """The net benefit, or what it is more than of acting on everyone, with its certified range."""
    gains, worth = ladder.gains(over_all, seed), 1.0 - ladder.threshold
    low, high = gains.limits(alpha / 2.0)
    return gains.mean / worth, low / worth, high / worth
