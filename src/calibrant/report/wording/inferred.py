"""Means and shares among the events that probabilities would give in place of labels: numbers, sentences, a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.document import MARKDOWN, PAGE, Details, Node, Paragraph, number_table
from calibrant.report.places import EARLIEST, LARGE, LATEST, SMALL, day, number
from calibrant.report.spans import Span, Text, clipped, literal, say, shown
from calibrant.report.wording.terms import UNPROVEN, capital, cardinal, in_json, together
from calibrant.results import Curve

COLUMNS = ("variable", "level", "inferred", "observed", "bias", "low", "high")  # that are read of the record's curve
NAMED_LINES = 3  # of what was to be inferred, on the first screen
NAMED = 40  # characters of a name in a sentence
WIDTH = 6.0  # standard errors that a range is wide, about


@dataclass(frozen=True, slots=True)
class Line:
    """One mean or share; a share, its bias and its ends are fractions."""

    variable: str
    kind: str
    level: str
    inferred: float
    observed: float
    bias: float
    low: float
    high: float

    @property
    def error_shown(self) -> bool:
        return self.low > 0.0 or self.high < 0.0

    @property
    def name(self) -> str:
        return clipped(
            f"{shown(self.variable)} = {shown(self.level)}" if self.kind == "level" else shown(self.variable)
        )

    @property
    def digits(self) -> int:
        """Decimals that mean something: those of about a standard error of the bias; a share has one at least."""
        error = (self.high - self.low) / WIDTH * (100.0 if self.kind == "level" else 1.0)
        digits = min(max(-math.floor(math.log10(error)), 0), 9) if error > 0.0 else 1
        return max(digits, 1) if self.kind == "level" else digits

    @property
    def known(self) -> int:
        """Decimals of the two values that mean something: no more than the record holds."""
        percent = self.kind == "level"
        ends = (Decimal(repr(float(x))).normalize().as_tuple().exponent for x in (self.inferred, self.observed))
        kept = max(0, *(-int(end) for end in ends))
        return min(self.digits, max(kept - 2, 1) if percent else kept)

    def value(self, x: float) -> str:
        """Write a mean or a share; a mean date as the nearest day."""
        if self.kind == "level":
            return f"{num.nearest(x, self.known)}%"
        if self.kind == "date" and EARLIEST < x < LATEST:
            return day(math.floor(x + 0.5))
        return _far(x) if _is_far(x) else number(x, self.known)

    def size(self, x: float) -> str:
        """Write a bias, with its unit where it has one."""
        if self.kind == "level":
            return f"{num.nearest(x, self.digits)} points"
        reported = _far(x) if _is_far(x) else number(x, self.digits)
        return (
            reported if self.kind == "number" else f"{reported} {'day' if reported.strip(num.MINUS) == '1' else 'days'}"
        )

    def off(self) -> str:
        """Write the bias with its sign."""
        if self.kind == "level":
            return f"{num.gap(self.bias, self.digits)} points"
        return f"{'+' if self.bias > 0.0 else ''}{self.size(self.bias)}"

    def range(self) -> str:
        """Write the range of the bias, rounded outward; one that excludes zero is written so that it does."""
        if self.kind == "level":
            return " to ".join(num.signed_range(self.low, self.high, self.digits))
        if _is_far(max(abs(self.low), abs(self.high))):
            return f"{_far(self.low)} to {_far(self.high)}"
        digits = self.digits
        while True:
            a, b = _cut(self.low, digits, ROUND_FLOOR), _cut(self.high, digits, ROUND_CEILING)
            if not self.error_shown or (a and b):
                return f"{_signed(a)} to {_signed(b)}"
            digits += 1


def task_trust(record: AuditRecord) -> Text:
    """Say of the means that were to be inferred how far off they are, with guaranteed ranges; empty if none were."""
    result = lines(record, "task_trust")
    if not result:
        return ()
    out: list[str | Span] = ["Inferred from the probabilities, among ", *events_of(record), ": "]
    for i, line in enumerate(result[:NAMED_LINES]):
        start = "; " if i else ""
        both = f" {line.value(line.inferred)}, by labels {line.value(line.observed)}: off by {line.off()}"
        out += [start, Span(clipped(line.name, NAMED), "name"), f"{both} ({line.range()} guaranteed)"]
    more = len(result) - NAMED_LINES
    rest = f"; {num.count(more)} more are in the record" if more > 0 else ""
    return say(*out, f"{rest}.")


def lines(record: AuditRecord, name: str = "inference") -> tuple[Line, ...]:
    """The means and shares of a record, the least likely by chance first; or those that were to be inferred."""
    return lines_of(record.curve(name))


def lines_of(curve: Curve) -> tuple[Line, ...]:
    """The means and shares of a curve, in its order."""
    dates = curve.settings.get("dates", ())
    out = []
    for name, level, *numbers in zip(*(curve.columns.get(k, ()) for k in COLUMNS), strict=True):
        kind = "level" if level is not None else "date" if name in dates else "number"
        out.append(Line(str(name), kind, str(level), *map(float, numbers)))
    return tuple(out)


def events_of(record: AuditRecord) -> Text:
    outcome = record.settings.get("outcome")
    return say("the events") if outcome is None else say("those who are ", literal(outcome))


def _cut(x: float, digits: int, rounding: str) -> Decimal:
    return num.cut(Decimal(repr(float(x))), digits, rounding)


def _signed(x: Decimal) -> str:
    text = f"{abs(x):,f}" if abs(x) >= 10_000 else f"{abs(x):f}"
    return (num.MINUS if x < 0 else "+" if x else "") + text


def _is_far(x: float) -> bool:
    return x != 0.0 and not SMALL <= abs(x) < LARGE


def _far(x: float) -> str:
    return f"{x:.3g}".replace("-", num.MINUS)


# ---- in the section about variables ----

SHORT = 6  # lines of the table
LISTED = 2  # in a sentence
HEAD = ("Among the events", "Probabilities say", "Labels say", "Off by", "Off by, range")


def inference(record: AuditRecord) -> Iterator[Node]:
    result = lines(record)
    if not result:
        return
    first = "The least likely to be chance first. " if len(result) > 1 else ""
    rest = in_json(len(result) - SHORT)
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
    """What would come out wrong about the events, in a sentence; empty where nothing could be asked."""
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
