"""People whose outcome is not known: who they are, and what they could change about every range and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from calibrant.audit.judging import worst
from calibrant.audit.question import COPIES, Answer, Case, Cost, NotRun, Question
from calibrant.audit.record import Check
from calibrant.audit.rounding import two_digits
from calibrant.audit.unlabelled import Outward, Shown, counts_told, shown
from calibrant.certify.missing_labels import BOUNDED, EVERYONE, Asked, Row, lines, table
from calibrant.measure.unlabelled import RANGES, Family, Part, by_score, compared
from calibrant.results import Curve
from calibrant.views.grouped import keyed
from calibrant.views.unlabelled import Cells, UnitCells

CODE, NAME, WHO = "missing-labels", "missing_labels", "without_label"


def unlabelled(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Certify everyone and every group with the people without a label; of fewer than the mask nothing is reported.

    The check has the worst verdict at the stated odds. It rests on what nobody can check, so that the verdict of the
    audit does not count it.
    """
    if case.whole.unlabelled < case.mask:
        return Answer()
    if case.copies:
        raise NotRun(COPIES)
    plan, everyone = case.judging, Cells.of(case.whole)
    if isinstance(everyone, UnitCells) and everyone.units[1] < case.mask:  # people are units
        return Answer()
    groups = list(shown(case))
    asked = Asked(plan.judge, plan.limit, plan.missing_odds, plan.levels)
    rows = list(lines(EVERYONE, everyone, asked, plan.alpha / 2.0))
    for group in groups:
        rows += _told(group, asked, plan.alpha / 2.0 / len(groups))
    stated = worst(row.verdict for row in rows if row.assumption == BOUNDED)
    check = Check(code=CODE, status="measured" if stated == "none" else stated)
    return Answer(
        checks=(check,), curves={NAME: table(rows, asked, plan.alpha, everyone), WHO: _who(case, everyone, groups)}
    )


def _told(group: Shown, asked: Asked, delta: float) -> Iterator[Row]:
    """Yield the lines of a group: counts in multiples of five, ends moved outward."""
    rows, missing = counts_told(group.cells)
    for row in lines(keyed(group.name), group.cells, asked, delta, Outward.of(group.cells, asked.judge)):
        yield row._replace(rows=rows, unlabelled=missing)


def _who(case: Case, everyone: Cells, groups: Sequence[Shown]) -> Curve:
    """Return who is without a label: by range of the score and by group: tested exactly, and told as counts are."""
    ranges = everyone.ranges(RANGES, case.mask)
    families = [by_score(everyone, case.whole.spec.score, ranges)]
    told = [
        [Part(p.level, *counts_told(everyone.part(a, b))) for p, (a, b) in zip(families[0].parts, ranges, strict=True)]
    ]
    for g, own in groupby(groups, key=lambda group: group.grouping):
        held = [(", ".join(level for _, level in group.name), group.cells) for group in own]
        variable = ", ".join(case.whole.spec.groupings[g])
        families.append(Family("group", variable, [Part(level, cells.rows, cells.missing) for level, cells in held]))
        told.append([Part(level, *counts_told(cells)) for level, cells in held])
    found = compared(families, everyone, told)
    short = {
        k: tuple(None if p is None else two_digits(float(p)) for p in found.columns[k])
        for k in ("p_value", "p_adjusted")
    }
    return replace(found, columns={**found.columns, **short})


DECLARED = (
    Question(
        code=CODE,
        order=27,
        make=unlabelled,
        step="asking what missing labels could change",
        cost=Cost(flat=0.1, group=0.03),
        crosses=True,
    ),
)
