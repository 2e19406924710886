"""The brief: the decision, the verdict in three parts, what to do, what the error varies with, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord, Finding, Verdict
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.brief.action import changes, decision, helped, rows_that_would_decide
from calibrant.report.brief.follows import follows
from calibrant.report.brief.rests import not_checked, rests
from calibrant.report.findings import (
    RANK as RANK,
)
from calibrant.report.findings import (
    Off,
    by_gap,
    ends,
    limit_of,
    noun,
    only_together,
    ordered,
    stated_of,
    subgroups_over,
    tested_rows,
    withheld,
)
from calibrant.report.spans import clipped, label, literal, say
from calibrant.report.wording.clusters import counted
from calibrant.report.wording.decisions import apart_reported, worst_reported
from calibrant.report.wording.headline import headline, page_title
from calibrant.report.wording.missing_labels import known_only, left_out
from calibrant.report.wording.parts import (
    beyond_worst,
    everyone_reported,
    groups_reported,
    judged,
    subgroups_reported,
    verdict_word,
)
from calibrant.report.wording.terms import VERDICTS, bound_of, jointly_wrong, two_way, verdict_on
from calibrant.sanitize import sanitize

WORST, SUBGROUPS = 4, 2  # groups, and subgroups
NAMED = 44  # characters of a name


def ruler(record: AuditRecord) -> doc.Ruler:
    """Return everyone, the groups with the largest certified error or gap, and subgroups that are off, on one axis."""
    limit, worst = limit_of(record), farthest(record)[:WORST]
    shown = [record.everyone, *worst]
    subgroups = [o for o in subgroups_over(record) if o.rule][:SUBGROUPS]
    top = places.ruler_top([*(ends(record, f) for f in shown), *((o.least, o.most) for o in subgroups)], limit)
    parts = {by_gap(record, f) for f in shown}
    what = "calibration error or gap" if len(parts) > 1 else "gap" if parts == {True} else "calibration error"
    of = f" and of the {len(worst)} groups farthest off" if len(worst) > 1 else " and of the group" if worst else ""
    of += ", and gaps of subgroups" if subgroups else ""
    return doc.Ruler(
        label=f"Certified {what} of everyone{of}",
        marks=(*(_mark(record, f, top) for f in shown), *(_subgroup(record, o, top) for o in subgroups)),
        axis=svg.ruler_axis(top, f"{what}, points (1 point = 1 in 100)"),
        limit="" if limit is None else svg.ruler_limit(limit, top, f"limit {num.limit_points(limit)}"),
        judged=limit is not None,
    )


def farthest(record: AuditRecord) -> list[Finding]:
    """The groups worst first, by what is judged: over the limit, undecided, met, then by their ends."""

    return ordered(record.groups, lambda f: ends(record, f))


def reading(record: AuditRecord) -> str:
    """Return how the ranges shown go with what no group exceeds; empty where none goes beyond it."""
    return beyond_worst(record, farthest(record)[:WORST])


def _mark(record: AuditRecord, f: Finding, top: float) -> doc.Mark:
    low, high = judged(record, f)
    text = f"raw {low}, rounded {high}" if two_way(f) and not by_gap(record, f) else num.between(low, high)
    who = clipped(label(f), NAMED) if f.variables else "Everyone"
    bar = _bar(record, ends(record, f), top, f.verdict, text)
    return doc.Mark(who, "", f"{num.count(f.rows)} {noun(record)}", text, f.verdict, verdict_on(record, f), bar)


def _subgroup(record: AuditRecord, o: Off, top: float) -> doc.Mark:
    limit, tested = limit_of(record), tested_rows(record)
    verdict: Verdict = "not_checked" if limit is None else "over"
    text = num.between(num.lower_bound(o.least, limit), num.upper_bound(o.most, limit))
    rows = f"{num.count(o.rows)} {f'of {num.count(tested)} ' if tested else ''}{noun(record)}"
    bar = _bar(record, (o.least, o.most), top, verdict, text)
    who = clipped(sanitize(o.rule), NAMED)
    return doc.Mark(who, "subgroup, by its gap", rows, text, verdict, VERDICTS[verdict], bar)


def _bar(record: AuditRecord, at: tuple[float, float], top: float, verdict: Verdict, text: str) -> svg.Svg:
    limit = limit_of(record)
    read = f"{text} points" if limit is None else f"{text} points; limit {num.limit_points(limit)}"
    return svg.track(*at, top, verdict, read, limit)


LONG = 60  # characters of the model and of its use, over the brief


def brief(record: AuditRecord) -> doc.Document:
    """The first layer of a report by itself: what a terminal prints, and a notebook shows."""
    section = doc.Section("summary", "The brief", "", tuple(nodes(record)), record.verdict)
    return doc.Document(sanitize(record.name), page_title(record), tuple(facts(record)), (section,))


def nodes(record: AuditRecord) -> Iterator[doc.Node]:
    yield doc.Opening(headline(record))
    yield doc.Parts(parts(record))
    yield decision(record)
    yield changes(record) if helped(record) else ruler(record)
    if not helped(record) and (apart := reading(record)):
        yield doc.Paragraph(say(apart), "quiet", doc.EVERYWHERE)
    if rows := rows_that_would_decide(record):
        yield doc.Paragraph(rows, "quiet", doc.EVERYWHERE)
    if acting := worst_reported(record):
        yield doc.Paragraph(acting, "quiet", doc.EVERYWHERE)
    if apart_at := apart_reported(record):
        yield doc.Paragraph(apart_at, "quiet", doc.EVERYWHERE)
    if not withheld(record) and (result := follows(record)):
        yield doc.Heading("What the error varies with", where=doc.EVERYWHERE)
        yield result
    resting, unchecked = rests(record), not_checked(record)
    if resting or unchecked:
        yield doc.Heading("What this verdict rests on", where=doc.EVERYWHERE)
    if resting:
        yield doc.Items(resting, where=doc.EVERYWHERE)
    if unchecked:
        yield doc.Paragraph(unchecked, "quiet", doc.EVERYWHERE)


def parts(record: AuditRecord) -> tuple[doc.Part, ...]:
    """Return everyone, the named groups and unlisted subgroups: always all three."""
    total, known = len(record.groups), known_only(record)
    named = f"{num.count(total)} named groups" if total > 1 else "The named group" if total else "Named groups"
    if total and only_together(record):
        named = f"{num.count(total)} groups shown" if total > 1 else "The group shown"
    return (
        doc.Part(f"Everyone{known}", *verdict_word(record, "everyone"), everyone_reported(record)),
        doc.Part(f"{named}{known}", *verdict_word(record, "groups"), groups_reported(record)),
        doc.Part(f"Unlisted subgroups{known}", *verdict_word(record, "subgroups"), subgroups_reported(record)),
    )


def facts(record: AuditRecord) -> Iterator[doc.Paragraph]:
    """Return what was judged, the model and its use, by what limit and whose, at what level, and the date if given."""
    limit, outcome = limit_of(record), record.settings.get("outcome")
    yield doc.Paragraph(
        say(literal(record.data.get("label", "") if outcome is None else outcome)), where=doc.EVERYWHERE
    )
    for what, word in (("model", "model"), ("intended_use", "use")):
        if reported := stated_of(record, what):
            yield doc.Paragraph(say(f"{word}: ", literal(clipped(reported, LONG))), where=doc.EVERYWHERE)
    bound = say("no limit")
    if limit is not None:
        about = " on the gap" if by_gap(record, "everyone") else ""
        by = stated_of(record, "set_by")
        bound = say(f"limit {bound_of(record)}{about}", *((", set by ", literal(by)) if by else ()))
    if gone := left_out(record):
        yield doc.Paragraph(gone, where=doc.EVERYWHERE)
    if of := counted(record):
        yield doc.Paragraph(of, where=doc.EVERYWHERE)
    yield doc.Paragraph(bound, where=doc.EVERYWHERE)
    yield doc.Paragraph(say(f"{num.percent(1 - float(record.settings['alpha']))}% certificates"), where=doc.EVERYWHERE)
    if wrong := jointly_wrong(record):
        yield doc.Paragraph(say(wrong), where=doc.EVERYWHERE)
    if record.settings.get("date") is not None:
        yield doc.Paragraph(say(literal(record.settings["date"])), where=doc.PAGE)
