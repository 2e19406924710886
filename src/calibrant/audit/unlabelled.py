"""What an audit reports of people without a label: of whom, so that no few are identified, and how exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from calibrant.audit.context import AuditContext
from calibrant.audit.pooling import Name, group_name, people_of, shown_groups
from calibrant.audit.rounding import RandomRounding
from calibrant.certify.closed import Judge
from calibrant.certify.missing_labels import Exact
from calibrant.views.unlabelled import Cells, cluster_rows


class Shown(NamedTuple):
    """A group of which missing labels are reported: its name, its grouping, and its people."""

    name: Name
    grouping: int
    cells: Cells


@dataclass(frozen=True)
class Outward(Exact):
    """Tells ends of few people moved outward, as ends of groups are reported."""

    # Those with a label: every end depends on their outcomes. Where nobody has one, those without.
    people: RandomRounding
    judge: Judge

    @classmethod
    def of(cls, cells: Cells, judge: Judge) -> Outward:
        """Describe some people."""
        (known, unknown), events = cells.expected, int(cells.labelled[:, 1].sum())
        return cls(
            RandomRounding.of(cells.rows, events, known)
            if cells.rows
            else RandomRounding.of(cells.missing, 0, unknown),
            judge,
        )

    def end(self, value: float, side: int) -> float:
        """Move an end outward by up to two steps."""
        return self.people.end(value, side, f"missing {side}", 0.0 if self.judge == "error" else -1.0)

    def over(self, limit: float) -> float:
        """Return what an end from below must be."""
        return self.people.over(limit, "missing -1")

    def within(self, limit: float) -> float:
        """Return what an end from above may be."""
        return self.people.within(limit, "missing 1")


def counts_reported(cells: Cells) -> tuple[int, int]:
    """Return people with a label and without, in multiples of five; none if there are none."""
    (known, unknown), events = cells.expected, int(cells.labelled[:, 1].sum())
    rows = RandomRounding.of(cells.rows, events, known).rows if cells.rows else 0
    return rows, RandomRounding.of(cells.missing, 0, unknown).rows if cells.missing else 0


def shown(context: AuditContext) -> Iterator[Shown]:
    """Yield the groups that the audit shows, and those in which nobody has a label and that are large enough.

    A level in which nobody has a label, of fewer people than the mask, is counted with the pool of its variable, or
    with its smallest group: it adds no label. Where a table of pairs has such a cell, none of its cells is reported:
    the margins would tell it.
    """
    whole, mask, first = context.sketch, context.mask, 0
    rows, apart = people_of(whole), whole.parts["unlabelled"].stored[1:, :, 0].sum(axis=1)
    if whole.kept is not None and len(rows):  # people are clusters
        apart = cluster_rows(whole).people(len(rows), labelled=False)
    kept = shown_groups(whole, mask)
    for g, (names, size) in enumerate(zip(whole.spec.groupings, whole.spec.sizes, strict=True)):
        here = range(first, first + size)
        own = [(name, members, pooled) for name, members, pooled in kept if members[0] in here]
        bare = [i for i in here if not rows[i] and apart[i]]
        few = [i for i in bare if apart[i] < mask]
        first += size
        if few and (len(names) > 1 or not own):
            continue
        labels = dict(zip(here, whole.spec.group_names(g), strict=True))
        people = {labels[i]: int(rows[i]) for i in here}
        taker = _taker(own, [int(rows[members].sum()) for _, members, _ in own]) if few else -1
        for j, (name, members, _) in enumerate(own):
            if j == taker:
                members = [*members, *few]
                name = group_name([labels[i] for i in members], people, mask)
            yield Shown(name, g, Cells.of(whole, *members))
        for i in bare:
            if i not in few:
                yield Shown(labels[i], g, Cells.of(whole, i))


def _taker(own: Sequence[tuple[Name, list[int], int]], rows: Sequence[int]) -> int:
    """Return which of the groups shown takes in levels of few people: the pool, or the smallest."""
    pools = [j for j, (_, _, pooled) in enumerate(own) if pooled]
    return pools[0] if pools else min(range(len(own)), key=lambda j: (rows[j], j))
