"""The first section: the brief, and where the page has no room at its side the contents of the others."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report.brief import nodes
from calibrant.report.document import Contents, Link, Node
from calibrant.report.outline import Declared, mark, shown
from calibrant.report.wording.parts import page_status


def summary(record: AuditRecord) -> Iterator[Node]:
    """The brief, then the contents."""
    yield from nodes(record)
    yield Contents(tuple(Link(d.id, d.nav, mark(d, record)) for d in shown(record)))


DECLARED = (Declared(id="summary", order=10, nav="The brief", heading="", nodes=summary, verdict=page_status),)
