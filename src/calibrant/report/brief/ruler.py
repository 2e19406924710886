"""Everyone, and the groups and subgroups farthest off, on one axis: what the brief shows where no repair was judged."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord, Finding, Verdict
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.document import Mark, Ruler
from calibrant.report.findings import RANK, Off, by_gap, ends, limit_of, noun, subgroups_over, tested_rows
from calibrant.report.spans import clipped, label
from calibrant.report.wording.answers import two_way
from calibrant.report.wording.parts import beyond_worst, judged
from calibrant.report.wording.terms import VERDICTS
from calibrant.sanitize import sanitize

WORST, SUBGROUPS = 4, 2  # groups, and subgroups
LONG = 44  # characters of a name


def ruler(record: AuditRecord) -> Ruler:
    """Return everyone, the groups with the largest certified error or gap, and subgroups that are off, on one axis."""
    limit, worst = limit_of(record), farthest(record)[:WORST]
    shown = [record.everyone, *worst]
    subgroups = [o for o in subgroups_over(record) if o.rule][:SUBGROUPS]
    top = places.ruler_top_of([*(ends(record, f) for f in shown), *((o.least, o.most) for o in subgroups)], limit)
    what = "gap" if by_gap(record) else "calibration error"
    of = f" and of the {len(worst)} groups farthest off" if len(worst) > 1 else " and of the group" if worst else ""
    of += ", and gaps of subgroups" if subgroups else ""
    return Ruler(
        label=f"Certified {what} of everyone{of}",
        marks=(*(_mark(record, f, top) for f in shown), *(_subgroup(record, o, top) for o in subgroups)),
        axis=svg.ruler_axis(top, f"{what}, points (1 point = 1 in 100)"),
        limit="" if limit is None else svg.ruler_limit(limit, top, f"limit {num.limit_points(limit)}"),
        judged=limit is not None,
    )


def farthest(record: AuditRecord) -> list[Finding]:
    """The groups worst first, by what is judged: over the limit, undecided, met, then by their ends."""

    def key(f: Finding) -> tuple[float, float, float, str]:
        low, high = ends(record, f)
        first, second = (high, low) if f.verdict == "within" else (low, high)
        return RANK.get(f.verdict, 3), -first, -second, f.id

    return sorted(record.groups, key=key)


def reading(record: AuditRecord) -> str:
    """Return how the ranges shown go with what no group exceeds; empty where none goes beyond it."""
    return beyond_worst(record, farthest(record)[:WORST])


def _mark(record: AuditRecord, f: Finding, top: float) -> Mark:
    limit, (low, high) = limit_of(record), judged(record, f)
    apart = two_way(f) and not by_gap(record)
    text = f"raw {low}, rounded {high}" if apart else num.between(low, high)
    read = f"{text} points" if limit is None else f"{text} points; limit {num.limit_points(limit)}"
    return Mark(
        value=clipped(label(f), LONG) if f.variables else "Everyone",
        variable="",
        rows=f"{num.count(f.rows)} {noun(record)}",
        range=text,
        verdict=f.verdict,
        word=VERDICTS[f.verdict],
        bar=svg.track(places.track(*ends(record, f), top, f.verdict, read, limit)),
    )


def _subgroup(record: AuditRecord, o: Off, top: float) -> Mark:
    limit, tested = limit_of(record), tested_rows(record)
    verdict: Verdict = "not_checked" if limit is None else "over"
    text = num.between(num.lower_bound(o.least, limit), num.upper_bound(o.most, limit))
    read = f"{text} points" if limit is None else f"{text} points; limit {num.limit_points(limit)}"
    return Mark(
        value=clipped(sanitize(o.rule), LONG),
        variable="subgroup, by its gap",
        rows=f"{num.count(o.rows)} {f'of {num.count(tested)} ' if tested else ''}{noun(record)}",
        range=text,
        verdict=verdict,
        word=VERDICTS[verdict],
        bar=svg.track(places.track(o.least, o.most, top, verdict, read, limit)),
    )
