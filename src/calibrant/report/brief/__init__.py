"""The brief: two sentences, three cards, one action, one plot, what it rests on, and a block to sign."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import document as doc
from calibrant.report.brief.action import decision
from calibrant.report.brief.cards import cards as parts
from calibrant.report.brief.forest import forest
from calibrant.report.brief.rests import reading, rests, signing
from calibrant.report.commands import from_python
from calibrant.report.findings import by_gap, limit_of, stated_of
from calibrant.report.spans import clipped, literal, say
from calibrant.report.wording.change import changed
from calibrant.report.wording.clusters import independent
from calibrant.report.wording.decisions import apart_reported, worst_reported
from calibrant.report.wording.headline import headline, page_title
from calibrant.report.wording.in_python import in_python
from calibrant.report.wording.inferred import task_trust
from calibrant.report.wording.missing_labels import left_out
from calibrant.report.wording.terms import bound_of, rows_counted
from calibrant.sanitize import sanitize

__all__ = ["brief", "facts", "nodes", "parts"]
LONG = 60  # characters of the model and of its use, over the brief


def brief(record: AuditRecord) -> doc.Document:
    """The first layer of a report by itself: what a terminal prints, and a notebook shows."""
    section = doc.Section("summary", "The brief", "", tuple(nodes(record)), record.verdict)
    made = doc.Document(sanitize(record.name), page_title(record), tuple(facts(record)), (section,))
    return in_python(made) if from_python(record) else made


def nodes(record: AuditRecord) -> Iterator[doc.Node]:
    yield doc.Opening(headline(record))
    yield doc.Parts(parts(record))
    yield decision(record)
    yield forest(record)
    yield doc.Paragraph(say(reading(record, drawn=True)), "quiet", doc.PAGE)
    yield doc.Paragraph(say(reading(record, drawn=False)), "quiet", doc.MARKDOWN | doc.TERMINAL)
    if acting := worst_reported(record):
        yield doc.Paragraph(acting, "quiet", doc.EVERYWHERE)
    if since := changed(record):
        yield doc.Paragraph(since, "quiet", doc.EVERYWHERE)
    if inferred := task_trust(record):
        yield doc.Paragraph(inferred, "quiet", doc.EVERYWHERE)
    if apart_at := apart_reported(record):
        yield doc.Paragraph(apart_at, "quiet", doc.EVERYWHERE)
    if resting := rests(record):
        text = tuple(span for line in resting for span in (*line, *say(" ")))[:-1]
        yield doc.Paragraph(text, "quiet", doc.EVERYWHERE)
    yield signing(record)


def facts(record: AuditRecord) -> Iterator[doc.Paragraph]:
    """The model and its use, the outcome, rows and clusters, when they were recorded, and whose limit it is."""
    for what in ("model", "intended_use"):
        if reported := stated_of(record, what):
            yield doc.Paragraph(say(literal(clipped(reported, LONG))), where=doc.EVERYWHERE)
    outcome, event = record.settings.get("outcome"), record.data.get("positive")
    event = "" if event is None else f" = {event}"
    outcome = f"{record.data.get('label', '')}{event}" if outcome is None else outcome
    yield doc.Paragraph(say(literal(outcome)), where=doc.EVERYWHERE)
    rows = independent(record).counted or say(rows_counted(record))
    yield doc.Paragraph(rows, where=doc.EVERYWHERE)
    if gone := left_out(record):
        yield doc.Paragraph(gone, where=doc.EVERYWHERE)
    if period := stated_of(record, "period"):
        yield doc.Paragraph(say(literal(clipped(period, LONG))), where=doc.EVERYWHERE)
    bound = say("no limit set")
    if limit_of(record) is not None:
        about = " on the gap" if by_gap(record, "everyone") else ""
        by = stated_of(record, "set_by")
        bound = say(f"limit {bound_of(record)}{about}", *((", set by ", literal(by)) if by else ()))
    yield doc.Paragraph(bound, where=doc.EVERYWHERE)
    if record.settings.get("date") is not None:
        yield doc.Paragraph(say(literal(record.settings["date"])), where=doc.PAGE)
