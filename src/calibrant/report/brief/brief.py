"""The brief: the decision, the verdict in three parts, what to do, what the error varies with, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.brief.action import decision, rows_that_would_decide
from calibrant.report.brief.before_after import changes, helped
from calibrant.report.brief.follows import follows
from calibrant.report.brief.rests import not_checked, rests
from calibrant.report.brief.ruler import reading, ruler
from calibrant.report.document import (
    EVERYWHERE,
    PAGE,
    Document,
    Heading,
    Items,
    Node,
    Opening,
    Paragraph,
    Part,
    Parts,
    Section,
)
from calibrant.report.findings import by_gap, limit_of, only_together, stated_of, suppressed
from calibrant.report.spans import clipped, literal, say
from calibrant.report.wording.clusters import counted
from calibrant.report.wording.decisions import worst_reported
from calibrant.report.wording.headline import headline, page_title
from calibrant.report.wording.missing_labels import known_only, left_out
from calibrant.report.wording.parts import everyone_reported, groups_reported, subgroups_reported, verdict_word
from calibrant.sanitize import sanitize

LONG = 60  # characters of the model and of its use, over the brief


def brief(record: AuditRecord) -> Document:
    """The first layer of a report by itself: what a terminal prints, and a notebook shows."""
    section = Section("summary", "The brief", "", tuple(nodes(record)), record.verdict)
    return Document(sanitize(record.name), page_title(record), tuple(facts(record)), (section,))


def nodes(record: AuditRecord) -> Iterator[Node]:
    """Return what the brief shows, in order."""
    yield Opening(headline(record))
    yield Parts(parts(record))
    yield decision(record)
    yield changes(record) if helped(record) else ruler(record)
    if not helped(record) and (apart := reading(record)):
        yield Paragraph(say(apart), "quiet", EVERYWHERE)
    if rows := rows_that_would_decide(record):
        yield Paragraph(rows, "quiet", EVERYWHERE)
    if acting := worst_reported(record):
        yield Paragraph(acting, "quiet", EVERYWHERE)
    if not suppressed(record) and (result := follows(record)):
        yield Heading("What the error varies with", where=EVERYWHERE)
        yield result
    resting, unchecked = rests(record), not_checked(record)
    if resting or unchecked:
        yield Heading("What this verdict rests on", where=EVERYWHERE)
    if resting:
        yield Items(resting, where=EVERYWHERE)
    if unchecked:
        yield Paragraph(unchecked, "quiet", EVERYWHERE)


def parts(record: AuditRecord) -> tuple[Part, ...]:
    """Return everyone, the named groups and unlisted subgroups: always all three."""
    total, known = len(record.groups), known_only(record)
    named = f"{num.count(total)} named groups" if total > 1 else "The named group" if total else "Named groups"
    if total and only_together(record):
        named = f"{num.count(total)} groups shown" if total > 1 else "The group shown"
    return (
        Part(f"Everyone{known}", *verdict_word(record, "everyone"), everyone_reported(record)),
        Part(f"{named}{known}", *verdict_word(record, "groups"), groups_reported(record)),
        Part(f"Unlisted subgroups{known}", *verdict_word(record, "subgroups"), subgroups_reported(record)),
    )


def facts(record: AuditRecord) -> Iterator[Paragraph]:
    """Return what was judged, the model and its use, by what limit and whose, at what level, and the date if given."""
    limit, outcome = limit_of(record), record.settings.get("outcome")
    yield Paragraph(say(literal(record.data.get("label", "") if outcome is None else outcome)), where=EVERYWHERE)
    for what, word in (("model", "model"), ("intended_use", "use")):
        if reported := stated_of(record, what):
            yield Paragraph(say(f"{word}: ", literal(clipped(reported, LONG))), where=EVERYWHERE)
    bound = say("no limit")
    if limit is not None:
        about = " on the gap" if by_gap(record) else ""
        by = stated_of(record, "set_by")
        bound = say(f"limit {num.limit_points(limit)} points{about}", *((", set by ", literal(by)) if by else ()))
    if gone := left_out(record):
        yield Paragraph(gone, where=EVERYWHERE)
    if of := counted(record):
        yield Paragraph(of, where=EVERYWHERE)
    yield Paragraph(bound, where=EVERYWHERE)
    yield Paragraph(say(f"{num.percent(1 - float(record.settings['alpha']))}% certificates"), where=EVERYWHERE)
    if record.settings.get("date") is not None:
        yield Paragraph(say(literal(record.settings["date"])), where=PAGE)
