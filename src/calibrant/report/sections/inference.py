"""What probabilities in place of labels would say about the events: sentences, and a short table."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.document import MARKDOWN, PAGE, Details, Node, Paragraph, number_table
from calibrant.report.spans import Span, Text, clipped, say
from calibrant.report.wording.inferred import NAMED, Line, events_of, lines
from calibrant.report.wording.terms import UNPROVEN, capital, cardinal, together

SHORT = 6  # lines of the table
LISTED = 2  # in a sentence
HEAD = ("Among the events", "Probabilities say", "Labels say", "Off by", "Off by, range")


def inference(record: AuditRecord) -> Iterator[Node]:
    result = lines(record)
    if not result:
        return
    first = "The least likely to be chance first. " if len(result) > 1 else ""
    more = len(result) - SHORT
    rest = f" {num.count(more)} more are in the JSON of this audit." if more > 0 else ""
    table = number_table(
        f"{first}Ranges are approximate and simultaneous: they hold {together(record)}.{rest}",
        HEAD,
        [(v.name, v.value(v.inferred), v.value(v.observed), v.off(), v.range()) for v in result[:SHORT]],
    )
    opened = f"Probabilities in place of labels: {heading(record)}"
    yield Details(opened, (Paragraph(answer(record)), table), id="inference", where=PAGE)
    if wrong(record):
        yield Paragraph(short(record), where=MARKDOWN)


def wrong(record: AuditRecord) -> tuple[Line, ...]:
    return tuple(line for line in lines(record) if line.error_shown)


def answer(record: AuditRecord) -> Text:
    """Return what would come out wrong about the events, in a sentence; empty where nothing could be asked."""
    result, events = lines(record), events_of(record)
    if not result:
        return ()
    off = wrong(record)
    if not off:
        start = say("If the probabilities stood in for the labels, no mean and no share among ", *events)
        return say(*start, f" is shown to be biased, {UNPROVEN}.")
    out: list[str | Span] = ["If the probabilities stood in for the labels, ", *events, " would look different: "]
    for i, line in enumerate(off[:LISTED]):
        out += ["; " if i else "", *_reported(line, "them")]
    more = len(off) - LISTED
    rest = (
        f". {capital(cardinal(more))} more of {num.count(len(result))} means and shares {_shown(more)}."
        if more > 0
        else "."
    )
    return say(*out, rest)


def heading(record: AuditRecord) -> str:
    off, of = len(wrong(record)), len(lines(record))
    return f"{num.count(off)} of {num.count(of)} means and shares of the events {_shown(off)}"


def short(record: AuditRecord) -> Text:
    """The first of what would come out wrong, and how many more; empty where nothing is shown to."""
    off = wrong(record)
    if not off:
        return ()
    more = len(off) - 1
    of = num.count(len(lines(record)))
    rest = f"; {cardinal(more)} more of {of} means and shares {_shown(more)}." if more else "."
    return say("Probabilities in place of labels: ", *_reported(off[0], "the events"), rest)


def _shown(count: int) -> str:
    return f"{'is' if count == 1 else 'are'} shown to be biased"


def _reported(line: Line, whom: str) -> Text:
    """Say what it would be and what it is; where both are written alike, how far off it would be."""
    reported, true = line.value(line.inferred), line.value(line.observed)
    of = "" if whom == "them" else f" of {whom}"
    less, more = ("early", "late") if line.kind == "date" else ("low", "high")
    by = f"{line.size(abs(line.bias))} too {less if line.bias < 0.0 else more}"
    equal = reported == true
    if line.kind == "level":
        words = f" would be {by} among {whom}" if equal else f" would be {reported} of {whom} and not {true}"
    else:
        words = f"{of} would average {by if equal else f'{reported} and not {true}'}"
    return say(Span(clipped(line.name, NAMED), "name"), words)
