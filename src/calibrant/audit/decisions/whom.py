"""At which thresholds a decision is reported of whom: nothing of few people, by subtraction neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.audit.context import AuditContext
from calibrant.audit.pooling import Name, shown_groups
from calibrant.decisions.ladder import Ladder
from calibrant.views.population import Population
from calibrant.views.sample import groups_of

EVERYONE: Name = ()


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
        sides = [_people(ladder, 0.0, ladder.acts_from), _people(ladder, ladder.acts_from, 2.0)]
        if before is not None:
            sides.append(_people(ladder, 0.0, ladder.acts_from) - _people(self.ladders[at - 1], 0.0, before))
        return min((n for n in sides if n > 0), default=0)

    def sides(self, at: int) -> tuple[int, int]:
        """Return how many people are acted on, and how many are not."""
        ladder = self.ladders[at]
        return _people(ladder, ladder.acts_from, 2.0), _people(ladder, 0.0, ladder.acts_from)


def _people(ladder: Ladder, low: float, high: float) -> int:
    """Return people whose score is from one number to below another: clusters where rows share clusters."""
    if ladder.clusters is None:
        at = (ladder.low >= low - 1e-9) & (ladder.low < high - 1e-9)
        return int(ladder.counts[:, at].sum())
    u = ladder.clusters
    return len(np.unique(u.cluster[(u.p >= low) & (u.p < high)]))


def everyone(context: AuditContext) -> People:
    """Return everyone."""
    q = context.everyone
    return People(EVERYONE, -1, q, tuple(Ladder.of(q, t) for t in context.judging.thresholds))


def groups(context: AuditContext) -> list[People]:
    """The groups that the audit shows."""
    whole = context.sketch
    if not whole.spec.groupings:
        return []
    shown = shown_groups(whole, context.mask)
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
    """Return those of whom a threshold is reported; of a variable's groups that are not, two at least and not few.

    Groups add up to everyone, who are reported: one group that is left out could be had by subtraction. So the next
    smallest leave with it. Of a table of pairs, whose margins are reported, none is reported where any cannot be.
    """
    left_out: set[int] = set()
    for grouping in {p.grouping for p in people}:
        own = [i for i, p in enumerate(people) if p.grouping == grouping]
        few = [i for i in own if people[i].least(at) < mask]
        if grouping in pairs and few:
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
