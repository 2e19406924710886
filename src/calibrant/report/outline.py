"""The outline of the report: the sections that the files of `sections` declare, in order, and the tree they make.

To add a section, write a file there that holds ``DECLARED``; nothing else lists the sections.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import NamedTuple

from calibrant.audit.record import AuditRecord, Check
from calibrant.report import numbers as num
from calibrant.report.document import EVERYWHERE, PAGE, Document, Entry, Node, Paragraph, Section
from calibrant.report.findings import limit_of
from calibrant.report.spans import say
from calibrant.report.wording import page_title
from calibrant.visible import visible

SECTIONS = "calibrant.report.sections"  # the folder whose files declare sections


class Asked(NamedTuple):
    """What a check asks, the numbers it found, what that means, and whether it found error, where that is known."""

    question: str
    numbers: str
    meaning: str
    found: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A section as its file declares it.

    Parameters
    ----------
    id : str
        Of its element on the page, where links lead.
    order : int
        Sections stand in this order; the numbers leave room between them.
    nav, heading : str
        Its words in the contents, and over it.
    nodes : callable
        What it shows of a record.
    verdict : callable
        The verdict that marks it in the contents; empty for none.
    methods, words : callable
        What it adds to "How this was computed" and to "Words used here".
    checks : Mapping of str to callable
        How to read the checks that it shows, by their codes.
    """

    id: str
    order: int
    nav: str
    heading: str
    nodes: Callable[[AuditRecord], Iterable[Node]]
    verdict: Callable[[AuditRecord], str] = lambda _: ""
    methods: Callable[[AuditRecord], Iterable[Entry]] = lambda _: ()
    words: Callable[[AuditRecord], Iterable[Entry]] = lambda _: ()
    checks: Mapping[str, Callable[[Check, AuditRecord], Asked]] = field(default_factory=dict)


@cache
def declared() -> tuple[Declared, ...]:
    """Return the sections that the files of the folder declare, in order."""
    folder = import_module(SECTIONS)
    files = (import_module(f"{SECTIONS}.{m.name}") for m in pkgutil.iter_modules(folder.__path__))
    found: list[Declared] = [d for f in files for d in getattr(f, "DECLARED", ())]
    return tuple(sorted(found, key=lambda d: d.order))


def document(record: AuditRecord) -> Document:
    """Return the report of a record as one tree."""
    return Document(
        name=visible(record.name),
        title=page_title(record),
        facts=tuple(_facts(record)),
        sections=tuple(Section(d.id, d.nav, d.heading, tuple(d.nodes(record)), d.verdict(record)) for d in declared()),
    )


def _facts(record: AuditRecord) -> Iterable[Paragraph]:
    """Return what was judged, and by what."""
    limit, outcome = limit_of(record), record.settings.get("outcome")
    label = record.data.get("label", "") if outcome is None else outcome
    yield Paragraph(say(f"outcome: {visible(label)}"), where=PAGE)
    bound = "no limit" if limit is None else f"limit {num.limit_points(limit)} points"
    yield Paragraph(say(bound), where=EVERYWHERE)
    level = num.percent(1 - float(record.settings["alpha"]))
    yield Paragraph(say(f"{level}% certificates"), where=EVERYWHERE)
    if record.settings.get("date") is not None:
        yield Paragraph(say(visible(record.settings["date"])), where=PAGE)
