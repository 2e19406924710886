"""People whose outcome is not known: who they are, and what they could change about every range and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from calibrant.audit.checks.everyone import status
from calibrant.audit.context import AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.judging import worst
from calibrant.audit.pooling import Name, group_name
from calibrant.audit.rounding import Sums, two_digits
from calibrant.certify.closed import Judge
from calibrant.certify.missing_labels import BOUNDED, EVERYONE, Exact, MissingLabelOptions, lines, table
from calibrant.measure.unlabelled import RANGES, Family, Part, by_score, compared
from calibrant.results import Curve
from calibrant.views.sample import keyed
from calibrant.views.unlabelled import Cells, kind_of


class Shown(NamedTuple):
    """A group of which missing labels are reported: its name, its grouping, and its people."""

    name: Name
    grouping: int
    cells: Cells
    members: list[int]  # numbers of the sketch's groups
    pooled: int = 0


@dataclass(frozen=True)
class Outward(Exact):
    """Reports ends of few people moved outward, as ends of groups are reported."""

    # Those with a label: every end depends on their outcomes. Where nobody has one, those without.
    people: Sums
    judge: Judge

    @classmethod
    def of(cls, cells: Cells, judge: Judge, sums: type[Sums]) -> Outward:
        """Describe some people."""
        (known, unknown), events = cells.expected, int(cells.labelled[:, 1].sum())
        return cls(sums.of(cells.rows, events, known) if cells.rows else sums.of(cells.missing, 0, unknown), judge)

    def end(self, value: float, side: int) -> float:
        """Move an end outward by up to two steps."""
        return self.people.end(value, side, 0.0 if self.judge == "error" else -1.0, rises=self._rises)

    def over(self, limit: float) -> float:
        """What an end from below must reach to be over the limit."""
        return self.people.over(limit, rises=self._rises)

    def within(self, limit: float) -> float:
        """What an end from above may reach and be within the limit."""
        return self.people.within(limit, rises=self._rises)

    @property
    def _rises(self) -> bool:
        return self.judge == "gap" or self.people.error_rises


def counts_reported(cells: Cells, sums: type[Sums]) -> tuple[int, int]:
    """People with a label and without as they are reported; none if there are none."""
    (known, unknown), events = cells.expected, int(cells.labelled[:, 1].sum())
    rows = sums.of(cells.rows, events, known).rows if cells.rows else 0
    return rows, sums.of(cells.missing, 0, unknown).rows if cells.missing else 0


def shown(context: AuditContext) -> Iterator[Shown]:
    """Yield the groups that the audit shows, and those in which nobody has a label and that are large enough.

    A level in which nobody has a label, of fewer people than the mask, is counted with the pool of its variable, or
    with its smallest group: it adds no label. Where a table of pairs has such a cell, none of its cells is reported:
    the margins would tell it.
    """
    whole, mask, first = context.sketch, context.mask, 0
    rows, apart = context.people.in_groups(whole), kind_of(whole).in_groups(whole)
    for g, (names, size) in enumerate(zip(whole.spec.groupings, whole.spec.sizes, strict=True)):
        here = range(first, first + size)
        own = [(name, members, pooled) for name, members, pooled in context.shown_groups if members[0] in here]
        bare = [i for i in here if not rows[i] and apart[i]]
        few = [i for i in bare if apart[i] < mask]
        first += size
        if few and (len(names) > 1 or not own):
            continue
        labels = dict(zip(here, whole.spec.group_names(g), strict=True))
        people = {labels[i]: int(rows[i]) for i in here}
        taker = _taker(own, [int(rows[members].sum()) for _, members, _ in own]) if few else -1
        for j, (name, members, pooled) in enumerate(own):
            if j == taker:
                members = [*members, *few]
                name = group_name([labels[i] for i in members], people, mask)
            yield Shown(name, g, Cells.of(whole, *members), members, pooled)
        for i in bare:
            if i not in few:
                yield Shown(labels[i], g, Cells.of(whole, i), [i])


def _taker(own: Sequence[tuple[Name, list[int], int]], rows: Sequence[int]) -> int:
    """Which of the groups shown takes in levels of few people: the pool, or the smallest."""
    pools = [j for j, (_, _, pooled) in enumerate(own) if pooled]
    return pools[0] if pools else min(range(len(own)), key=lambda j: (rows[j], j))


CODE, NAME, WHO = "missing-labels", "missing_labels", "without_label"


def unlabelled(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify everyone and every group with the people without a label; of fewer than the mask nothing is reported.

    The check has the worst verdict at the stated odds. It rests on what nobody can check, so that the verdict of the
    audit does not count it.
    """
    if context.unlabelled < context.mask:
        return CheckResult()
    if context.withheld_for:
        raise NotRun(context.withheld_for)
    plan, everyone = context.judging, Cells.of(context.sketch)
    groups = list(shown(context))
    options, of_groups = (
        MissingLabelOptions(plan.by(part), plan.limit, plan.missing_odds, plan.steps) for part in ("everyone", "groups")
    )
    rows = list(lines(EVERYONE, everyone, options, plan.alpha / 2.0))
    for group in groups:
        known, unknown = counts_reported(group.cells, context.sums)
        by, delta = Outward.of(group.cells, of_groups.judge, context.sums), plan.alpha / 2.0 / len(groups)
        own = lines(keyed(group.name), group.cells, of_groups, delta, by)
        rows += [row._replace(rows=known, unlabelled=unknown) for row in own]
    made = table(rows, options, plan.alpha, everyone)
    stated = worst(row.verdict for row in rows if row.assumption == BOUNDED)
    return CheckResult(
        status=status(stated),
        curves={
            NAME: replace(made, settings={**made.settings, "judge": plan.judge}),
            WHO: _who(context, everyone, groups),
        },
    )


def _who(context: AuditContext, everyone: Cells, groups: Sequence[Shown]) -> Curve:
    """Who is without a label: by range of the score and by group: tested exactly, and reported as counts are.

    Ranges of the score are cut next to those of the curve and to thresholds: exact counts would tell of few between.
    """
    ranges = everyone.ranges(RANGES, context.mask)
    families = [by_score(everyone, context.sketch.spec.score, ranges)]
    reported = [
        [
            Part(p.level, *counts_reported(everyone.part(a, b), context.searched))
            for p, (a, b) in zip(families[0].parts, ranges, strict=True)
        ]
    ]
    for g, own in groupby(groups, key=lambda group: group.grouping):
        kept = [(", ".join(level for _, level in group.name), group.cells) for group in own]
        variable = ", ".join(context.sketch.spec.groupings[g])
        families.append(Family("group", variable, [Part(level, cells.rows, cells.missing) for level, cells in kept]))
        reported.append([Part(level, *counts_reported(cells, context.sums)) for level, cells in kept])
    result = compared(families, everyone, reported)
    short = {
        k: tuple(None if p is None else two_digits(float(p)) for p in result.columns[k])
        for k in ("p_value", "p_adjusted")
    }
    return replace(result, columns={**result.columns, **short})


DECLARED = (
    Check(
        code=CODE,
        order=27,
        make=unlabelled,
        optional=True,
        step="asking what missing labels could change",
        cost=Cost(flat=0.1, group=0.03),
        crosses=True,
    ),
)
