"""The outline of the report: the sections that the files of `sections` declare, in order, and the tree they make.

To add a section, write a file there that holds ``DECLARED``; nothing else lists the sections.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import NamedTuple

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report.brief import facts, nodes
from calibrant.report.commands import from_python
from calibrant.report.document import Contents, Document, Entry, Link, Node, Section
from calibrant.report.findings import stands
from calibrant.report.wording.headline import page_title
from calibrant.report.wording.in_python import in_python
from calibrant.report.wording.parts import page_status
from calibrant.sanitize import sanitize

SECTIONS = "calibrant.report.sections"  # the folder whose files declare sections


class OutlineCheck(NamedTuple):
    """What a check asks, the numbers it found, what that means, and whether it found error, where that is known."""

    question: str
    numbers: str
    meaning: str
    error_shown: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A section as its file declares it."""

    id: str  # of its element on the page, where links lead
    order: int  # sections stand in this order; the numbers leave room between them
    # `nav` and `heading`: its words in the contents, and over it.
    nav: str
    heading: str
    nodes: Callable[[AuditRecord], Iterable[Node]]  # what it shows of a record
    # The verdict that marks it in the contents; empty where its checks do.
    verdict: Callable[[AuditRecord], str] = lambda _: ""
    # `methods` and `words`: what it adds to "How this was computed" and to "Words used here".
    methods: Callable[[AuditRecord], Iterable[Entry]] = lambda _: ()
    words: Callable[[AuditRecord], Iterable[Entry]] = lambda _: ()
    # How to read the checks that it shows, by their codes.
    checks: Mapping[str, Callable[[CheckRecord, AuditRecord], OutlineCheck]] = field(default_factory=dict)
    # What is in it, in a few words, where the page opens it on demand; empty for what is always seen.
    closed: Callable[[AuditRecord], str] = lambda _: ""
    there: Callable[[AuditRecord], bool] = lambda _: True  # whether a record has it at all


@cache
def declared() -> tuple[Declared, ...]:
    folder = import_module(SECTIONS)
    files = (import_module(f"{SECTIONS}.{m.name}") for m in pkgutil.iter_modules(folder.__path__))
    results: list[Declared] = [d for f in files for d in getattr(f, "DECLARED", ())]
    return tuple(sorted((SUMMARY, *results), key=lambda d: d.order))


def shown(record: AuditRecord) -> tuple[Declared, ...]:
    return tuple(d for d in declared() if d.there(record))


def document(record: AuditRecord) -> Document:
    made = Document(
        name=sanitize(record.name),
        title=page_title(record),
        facts=tuple(facts(record)),
        sections=tuple(
            Section(d.id, d.nav, d.heading, tuple(d.nodes(record)), mark(d, record), d.closed(record))
            for d in shown(record)
        ),
    )
    return in_python(made) if from_python(record) else made


UNDONE = ("not-applicable", "not-run")
REFERENCE = "reference"  # the mark of what is there to be looked up


def mark(of: Declared, record: AuditRecord) -> str:
    """The status that marks a section in the contents: every section has one.

    Its own verdict, or what its checks found: "found", "measured", or "absent" where none of them was made. What has
    no checks is there for reference.
    """
    own = of.verdict(record)
    if own:
        return "measured" if own == "not_checked" else own
    made = [c for c in record.checks if c.code in of.checks]
    done = [c for c in made if c.status not in UNDONE]
    if any(stands(record, c) or of.checks[c.code](c, record).error_shown for c in done):
        return "found"
    return "measured" if done else "absent" if of.checks else REFERENCE


def summary(record: AuditRecord) -> Iterator[Node]:
    """The first section: the brief, and where the page has no room at its side the contents of the others."""
    yield from nodes(record)
    yield Contents(tuple(Link(d.id, d.nav, mark(d, record)) for d in shown(record)))


SUMMARY = Declared(id="summary", order=10, nav="The brief", heading="", nodes=summary, verdict=page_status)
