"""Everyone and the groups that are farthest off, on one axis: what the brief shows where no repair was judged."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.document import Mark, Ruler
from calibrant.report.findings import RANK, by_gap, ends, limit_of, noun
from calibrant.report.spans import clipped, value_label, variable_label
from calibrant.report.wording.answers import crossed
from calibrant.report.wording.parts import judged
from calibrant.report.wording.terms import VERDICTS

WORST = 4  # groups
LONG = 44  # characters of a name


def ruler(record: AuditRecord) -> Ruler:
    """Return everyone and the groups with the largest certified error or gap on one axis."""
    limit, worst = limit_of(record), farthest(record)[:WORST]
    shown = [record.everyone, *worst]
    top = places.ruler_top_of([ends(record, f) for f in shown], limit)
    what = "gap" if by_gap(record) else "average error"
    of = f" and of the {len(worst)} groups farthest off" if len(worst) > 1 else " and of the group" if worst else ""
    return Ruler(
        label=f"Certified {what} of everyone{of}",
        marks=tuple(_mark(record, f, top) for f in shown),
        axis=svg.ruler_axis(top, f"{what}, points (1 point = 1 in 100)"),
        limit="" if limit is None else svg.ruler_limit(limit, top, f"limit {num.limit_points(limit)}"),
        judged=limit is not None,
    )


def farthest(record: AuditRecord) -> list[Finding]:
    """Return the groups worst first, by what is judged: over the limit, undecided, met, then by their ends."""

    def key(f: Finding) -> tuple[float, float, float, str]:
        low, high = ends(record, f)
        first, second = (high, low) if f.verdict == "met" else (low, high)
        return RANK.get(f.verdict, 3), -first, -second, f.id

    return sorted(record.groups, key=key)


def _mark(record: AuditRecord, f: Finding, top: float) -> Mark:
    limit, (low, high) = limit_of(record), judged(record, f)
    apart = crossed(f) and not by_gap(record)
    text = f"raw {low}, shown {high}" if apart else f"{low} to {high}"
    label = f"{text} points" if limit is None else f"{text} points; limit {num.limit_points(limit)}"
    return Mark(
        value=clipped(value_label(f), LONG) if f.variables else "Everyone",
        variable=clipped(variable_label(f), LONG),
        rows=f"{num.count(f.rows)} {noun(record)}",
        range=text,
        verdict=f.verdict,
        word=VERDICTS[f.verdict],
        bar=svg.track(places.track(*ends(record, f), top, f.verdict, label, limit)),
    )
