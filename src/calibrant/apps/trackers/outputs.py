"""What pipelines read of a record, as outputs: ``-o summary:FILE``, ``-o metrics:FILE`` and ``-o model-card:FILE``."""

from __future__ import annotations

from argparse import ArgumentError, Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from calibrant.arguments import OUTPUT
from calibrant.errors import BadInput
from calibrant.plugins import Output, Parser

if TYPE_CHECKING:
    from calibrant import AuditRecord


class Summary(Output):
    """A short Markdown summary, against an earlier record if there is one."""

    line, metavar = "a short Markdown summary, for a pull request", "OUT.md"

    def options(self, p: Parser) -> None:
        """Add the earlier record, where an audit has not."""
        line = "of -o summary: an earlier record; says what changed"
        with suppress(ArgumentError):
            p.under(OUTPUT, "--against").add_argument("--against", metavar="RECORD.json", help=line)
            p.set_defaults(of_summary=True)

    def reads(self, inputs: Namespace) -> Sequence[str]:
        """What is earlier."""
        return (inputs.against,) if inputs.against else ()

    def check(self, target: str | None, inputs: Namespace) -> None:
        """Refuse an earlier record that cannot be read, or that nothing would read."""
        if inputs.against is not None and not target and hasattr(inputs, "of_summary"):
            raise BadInput("--against goes with -o summary:FILE: the summary says what changed")
        _earlier(inputs)

    def content(self, thing: AuditRecord, target: str, inputs: Namespace) -> str:
        """The summary."""
        from calibrant.apps.trackers.summaries import summary

        return summary(thing, against=_earlier(inputs))


def _earlier(inputs: Namespace) -> AuditRecord | None:
    """The earlier record; None of a sketch or of data, which the audit reads itself."""
    from calibrant import AuditRecord

    kept = inputs.against and (hasattr(inputs, "of_summary") or inputs.against.endswith((".json", ".html")))
    return AuditRecord.load(inputs.against) if kept else None


class Metrics(Output):
    """Flat numbers, as JSON."""

    line, metavar = "flat numbers, for DVC and other trackers", "OUT.json"

    def content(self, thing: AuditRecord, target: str, inputs: Namespace) -> str:
        """The numbers."""
        from calibrant.apps.trackers.summaries import as_json

        return as_json(thing)


class ModelCard(Output):
    """The section of a model card."""

    line, metavar = "the section of a Hugging Face model card", "OUT.md"

    def content(self, thing: AuditRecord, target: str, inputs: Namespace) -> str:
        """The section, in the language of the report."""
        from calibrant.apps.trackers.summaries import model_card

        return model_card(thing, language=inputs.language)


SUMMARY, METRICS, MODEL_CARD = Summary(), Metrics(), ModelCard()
