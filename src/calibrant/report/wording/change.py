"""What changed since an earlier audit, in sentences: everyone first, then who is worse or better."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.spans import Span, Text, clipped, say
from calibrant.report.wording.headline import group_named
from calibrant.sanitize import sanitize

CHANGE = "change"
STATED = {
    "worse": "worse",
    "better": "better",
    "changed": "changed, neither surely worse nor better",
    "none": "no change shown",
}
NAMED = 2  # groups in a sentence
SHORT = 40  # characters of the name of an audit or a group


def changes(record: AuditRecord) -> list[facts.Line]:
    """Everyone, then the groups: what is shown to have changed first, the largest first."""
    order = ("worse", "better", "changed", "none")
    lines = facts.lines_of(record.curve(CHANGE))
    return lines[:1] + sorted(lines[1:], key=lambda v: (order.index(v["state"]), -abs(v["change"])))


def changed(record: AuditRecord) -> Text:
    """Say by how much the gap of everyone changed, and which groups are worse or better; empty where none was named."""
    lines = changes(record)
    if not lines:
        return ()
    one, digits = lines[0], facts.decimals(record)
    ends = " to ".join(num.signed_range(one["low"], one["high"], digits))
    since = clipped(sanitize(str(record.curve(CHANGE).settings["name"])), SHORT)
    by = f"the gap of everyone changed by {num.gap(one['change'], digits)} points"
    start = f"Since {since}, {by}, guaranteed at {num.percent(one['level'])}% {ends}: "
    out: list[str | Span] = [f"{start}{STATED[one['state']]}."]
    for state in ("worse", "better", "changed"):
        some = [line for line in lines[1:] if line["state"] == state]
        if some:
            names = [_named(record, line) for line in some[:NAMED]]
            more = f" and {num.count(len(some) - NAMED)} more" if len(some) > NAMED else ""
            listed = [part for i, name in enumerate(names) for part in ((", " if i else " "), name)]
            out += [f" {state.capitalize()}:", *listed, f"{more}."]
    if len(lines) > 1 and all(line["state"] == "none" for line in lines[1:]):
        out.append(" No group is shown to have changed.")
    return say(*out)


def group_of(record: AuditRecord, line: facts.Line) -> Finding | None:
    """The group that a line is about; None of everyone."""
    return next((f for f in record.groups if f.id == line["id"]), None)


def _named(record: AuditRecord, line: facts.Line) -> Span:
    group = group_of(record, line)
    return Span(clipped(str(line["group"]) if group is None else group_named(group), SHORT), "name")
