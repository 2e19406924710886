"""The section that lists every check: what was asked, what was found, and what that means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calibrant.audit.record import AuditRecord, Check
from calibrant.report import numbers as num
from calibrant.report.document import PAGE, TERMINAL, Cell, Column, Node, Paragraph, Row, Table
from calibrant.report.outline import Asked, Declared, declared
from calibrant.report.spans import Text, code, given, say, sentence, visible
from calibrant.report.wording import FINDINGS, VERDICTS

UNDONE = ("not-applicable", "not-run")  # neither is a pass
NOTE = (
    "“Error found” says that error exists, however small; only the limit says whether it is too much. "
    "“Not applicable” and “not run” are not a pass."
)


def checks(record: AuditRecord) -> Iterator[Node]:
    """Return every check as a row."""
    heads = ("Check", "Finding", "Numbers", "What it means")
    columns = tuple(Column(say(h), "quiet" if h == heads[-1] else "") for h in heads)
    yield Table(columns, tuple(_row(line(c, record)) for c in record.checks))
    yield Paragraph(say(NOTE), "note", PAGE)
    undone = [visible(c.code) for c in record.checks if c.status in UNDONE]
    if undone:
        yield Paragraph(say(f"Not checked, which is not a pass: {', '.join(undone)}."), where=TERMINAL)


@dataclass(frozen=True, slots=True)
class Line:
    """One check; `status` picks the icon: met, undecided, broken, found, unfound, measured or absent."""

    question: Text
    status: str
    found: str
    numbers: str
    meaning: str


def line(check: Check, record: AuditRecord) -> Line:
    """Return what a check asked and found; a code that nothing knows is shown as it is."""
    read = next((d.checks[check.code] for d in declared() if check.code in d.checks), _plainly)
    asked = read(check, record)
    question = say(asked.question) if asked.question else say("Check ", code(check.code))
    status, words = _finding(check, record, asked.found)
    numbers = sentence(check.reason or "no reason given") if check.status in UNDONE else asked.numbers
    return Line(question, status, words, numbers, asked.meaning)


def _plainly(check: Check, _: AuditRecord) -> Asked:
    """Read a check that no section reads: by the words of its own file, if it has some."""
    from calibrant.audit.checks import questions  # loads numerical libraries, which most reports do without

    asks, means = next(((q.asks, q.means) for q in questions() if q.code == check.code), ("", ""))
    return Asked(asks, num.interval(check.estimate), means)


def _finding(check: Check, record: AuditRecord, found: bool | None) -> tuple[str, str]:
    """Return the status that picks an icon, and its words; a measurement is never met or broken."""
    if check.status in ("met", "undecided", "broken"):
        return check.status, VERDICTS[check.status]
    if check.status in UNDONE:
        return "absent", FINDINGS[check.status]
    if found is None and check.outcome is not None:
        found = record.found(check)
    status = "measured" if found is None else "found" if found else "unfound"
    return status, FINDINGS[status]


def _row(c: Line) -> Row:
    numbers = Cell(say(c.numbers), brief=say(given(c.numbers)) if c.status == "absent" else ())
    return Row((Cell(c.question), Cell(say(c.found), icon=c.status), numbers, Cell(say(c.meaning))))


DECLARED = (Declared(id="checks", order=70, nav="Every check", heading="Every check, and what it found", nodes=checks),)
