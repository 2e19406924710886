"""People whose outcome is not known: who they are, and what they could change about every range and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from calibrant.audit.context import COPIES, AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.judging import worst
from calibrant.audit.record import CheckRecord
from calibrant.audit.rounding import two_digits
from calibrant.audit.unlabelled import Outward, Shown, counts_reported, shown
from calibrant.certify.missing_labels import BOUNDED, EVERYONE, MissingLabelOptions, Row, lines, table
from calibrant.measure.unlabelled import RANGES, Family, Part, by_score, compared
from calibrant.results import Curve
from calibrant.views.sample import keyed
from calibrant.views.unlabelled import Cells, ClusterCells

CODE, NAME, WHO = "missing-labels", "missing_labels", "without_label"


def unlabelled(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify everyone and every group with the people without a label; of fewer than the mask nothing is reported.

    The check has the worst verdict at the stated odds. It rests on what nobody can check, so that the verdict of the
    audit does not count it.
    """
    if context.sketch.unlabelled < context.mask:
        return CheckResult()
    if context.copies:
        raise NotRun(COPIES)
    plan, everyone = context.judging, Cells.of(context.sketch)
    if isinstance(everyone, ClusterCells) and everyone.clusters[1] < context.mask:  # people are clusters
        return CheckResult()
    groups = list(shown(context))
    options = MissingLabelOptions(plan.judge, plan.limit, plan.missing_odds, plan.steps)
    rows = list(lines(EVERYONE, everyone, options, plan.alpha / 2.0))
    for group in groups:
        rows += _reported(group, options, plan.alpha / 2.0 / len(groups))
    stated = worst(row.verdict for row in rows if row.assumption == BOUNDED)
    check = CheckRecord(code=CODE, status="measured" if stated == "not_checked" else stated)
    return CheckResult(
        checks=(check,), curves={NAME: table(rows, options, plan.alpha, everyone), WHO: _who(context, everyone, groups)}
    )


def _reported(group: Shown, options: MissingLabelOptions, delta: float) -> Iterator[Row]:
    """Yield the lines of a group: counts in multiples of five, ends moved outward."""
    rows, missing = counts_reported(group.cells)
    for row in lines(keyed(group.name), group.cells, options, delta, Outward.of(group.cells, options.judge)):
        yield row._replace(rows=rows, unlabelled=missing)


def _who(context: AuditContext, everyone: Cells, groups: Sequence[Shown]) -> Curve:
    """Return who is without a label: by range of the score and by group: tested exactly, and reported as counts are."""
    ranges = everyone.ranges(RANGES, context.mask)
    families = [by_score(everyone, context.sketch.spec.score, ranges)]
    reported = [
        [
            Part(p.level, *counts_reported(everyone.part(a, b)))
            for p, (a, b) in zip(families[0].parts, ranges, strict=True)
        ]
    ]
    for g, own in groupby(groups, key=lambda group: group.grouping):
        kept = [(", ".join(level for _, level in group.name), group.cells) for group in own]
        variable = ", ".join(context.sketch.spec.groupings[g])
        families.append(Family("group", variable, [Part(level, cells.rows, cells.missing) for level, cells in kept]))
        reported.append([Part(level, *counts_reported(cells)) for level, cells in kept])
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
        step="asking what missing labels could change",
        cost=Cost(flat=0.1, group=0.03),
        crosses=True,
    ),
)
