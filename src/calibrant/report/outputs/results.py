"""One result by itself, and the tables of a record: lines for a terminal, JSON, CSV, and a curve as a page."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from html import escape
from pathlib import Path
from typing import TypeAlias

from calibrant.audit.record import AuditRecord
from calibrant.errors import BadInput
from calibrant.report import numbers as num
from calibrant.report.by_variable import anchor_of
from calibrant.report.numbers import WIDE
from calibrant.report.outputs import notebook
from calibrant.report.terminal import WIDTH, aligned, cells, clip, pad, wrap
from calibrant.results import Curve, Estimate, Outcome, plain
from calibrant.sanitize import sanitize

CHECKS = "code", "status", "reason", "p_value", "statistic"
ESTIMATES = "name", "method", "value", "low", "high", "level", "guarantee", "unit", "rows"
FORMULA = "=+-@"  # first characters by which a spreadsheet takes text for a formula, in every width
UNREAD = "'\""  # characters that a spreadsheet passes over before it, as it does blanks and what cannot be seen
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # a terminal obeys them
QUOTE, EMPTY = '"', '""'
LOW_END, HIGH_END = re.compile(r"(^|_)low(_|$)"), re.compile(r"(^|_)high(_|$)|^p_|_p_|_p$")
DIGITS_OF_CSV, EVERY_DIGIT = 4, 17


@dataclass(frozen=True)
class CsvForm:
    """How numbers are written in CSV: their decimal mark and their significant digits, ends of ranges outward."""

    decimal: str = "."
    digits: int = DIGITS_OF_CSV

    @property
    def separator(self) -> str:
        """What stands between cells: a semicolon where a comma is the decimal mark, as spreadsheets have it."""
        return ";" if self.decimal == "," else ","

    def number(self, value: float, side: str = ROUND_HALF_EVEN) -> str:
        """A number with so many digits, and never fewer than its whole part has."""
        exact, text = Decimal(repr(value)), repr(value) if value else "0"
        if self.digits < EVERY_DIGIT and exact.is_finite() and exact:
            places = max(self.digits - 1 - exact.adjusted(), 0)
            cut = exact.quantize(Decimal(1).scaleb(-places), rounding=side, context=WIDE)
            text = f"{cut:f}" if abs(cut) >= SMALLEST or not cut else f"{cut.normalize():e}"
            text = text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
            text = "0" if text == "-0" else text
        return text.replace(".", self.decimal)


CSV, SMALLEST = CsvForm(), Decimal("0.0001")


def tables(record: AuditRecord, form: CsvForm = CSV) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each table: groups, checks, estimates, and every curve that has rows."""
    groups = record.table.columns
    yield "groups.csv", written(tuple(groups), zip(*groups.values(), strict=True), form)
    checks = (
        (c.code, c.status, c.reason, *((None, None) if c.outcome is None else (c.outcome.p_value, c.outcome.statistic)))
        for c in record.checks
    )
    yield "checks.csv", written(CHECKS, checks, form)
    results = (
        (k, e.method, e.value, e.low, e.high, e.interval.level, e.interval.guarantee, e.unit, e.n)
        for k, e in sorted(record.estimates.items())
    )
    yield "estimates.csv", written(ESTIMATES, results, form)
    for name, curve in sorted(record.curves.items()):
        if any(curve.columns.values()):
            kind, _, about = name.partition("/")
            title = anchor_of(kind, about) if about else kind
            yield f"{title}.csv", written(tuple(curve.columns), zip(*curve.columns.values(), strict=True), form)


def written(heads: Sequence[str], rows: Iterable[Sequence[object]], form: CsvForm | None = None) -> str:
    """Lines of CSV. Text is exact, but a spreadsheet runs none of it and a terminal that shows it obeys none."""
    form = CSV if form is None else form
    sides = [_side(head) for head in heads]
    lines = [[_cell(head, form) for head in heads]]
    lines += [[_cell(value, form, side) for value, side in zip(row, sides, strict=True)] for row in rows]
    return "".join(f"{form.separator.join(line) or EMPTY}\n" for line in lines)


def _side(head: str) -> str:
    """How the numbers of a column are rounded: ends of ranges outward, p-values up."""
    return ROUND_FLOOR if LOW_END.search(head) else ROUND_CEILING if HIGH_END.search(head) else ROUND_HALF_EVEN


def _cell(value: object, form: CsvForm, side: str = ROUND_HALF_EVEN) -> str:
    """A value as a cell; text that a spreadsheet would take for a formula has an apostrophe before it."""
    made = plain(value, str)
    text = "" if made is None else form.number(made, side) if isinstance(made, float) else str(made)
    if isinstance(value, str):
        text = CONTROLS.sub(lambda m: sanitize(m[0]), f"'{text}" if _is_formula(text) else text)
    quoted = any(c in text for c in (form.separator, QUOTE, "\r", "\n"))
    return f'"{text.replace(QUOTE, 2 * QUOTE)}"' if quoted else text


def _is_formula(text: str) -> bool:
    read = (c for c in text if not (c.isspace() or c in UNREAD or unicodedata.category(c).startswith("C")))
    return text.startswith(("\t", "\r", "\n")) or unicodedata.normalize("NFKC", next(read, " ")) in FORMULA


Result: TypeAlias = Estimate | Outcome | Curve | Mapping[str, Estimate]  # a measure of each group by its name
DIGITS = ".4g"
ROWS = 24  # of a table on a screen
FEW = 6  # values of a list in a line
NAME = 24  # cells of a name before its value, at most
UNITS = {"probability": " (a probability: 0.01 is one point)", "": ""}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title></head><body>
{inside}
</body></html>
"""


# ---- files ----


def checked(out: str, curve: bool) -> str:
    """The name of a file that a result can be written to; only a curve has a page."""
    ending = Path(out).suffix.lower()
    if ending == ".html" and not curve:
        raise BadInput(f"cannot write {out!r}: only curves have a page; end its name in .json or .csv")
    if ending not in FORMATS:
        raise BadInput(f"cannot write {out!r}: end its name in {', '.join(FORMATS)}")
    return out


def content(result: Result, out: str, form: CsvForm = CSV) -> bytes:
    """A result in the format of a file's ending."""
    ending = Path(out).suffix.lower()
    return (_csv(result, form) if ending == ".csv" else FORMATS[ending](result)).encode()


def as_json(result: Result) -> str:
    return json.dumps(plain(result), sort_keys=True, indent=1) + "\n"


def _csv(result: Result, form: CsvForm = CSV) -> str:
    columns = _columns(result)
    return written(tuple(columns), list(zip(*columns.values(), strict=True)), form)


def _columns(result: Result) -> Mapping[str, tuple[object, ...]]:
    if isinstance(result, Curve):
        return result.columns
    if isinstance(result, Outcome):
        reported = ("method", "p_value", "statistic", "null", "alternative", "law")
        return {k: (getattr(result, k),) for k in reported}
    by = {"": result} if isinstance(result, Estimate) else result
    groups = {} if isinstance(result, Estimate) else {"group": tuple(by)}
    return groups | {
        "method": tuple(e.method for e in by.values()),
        "value": tuple(e.value for e in by.values()),
        "low": tuple(e.low for e in by.values()),
        "high": tuple(e.high for e in by.values()),
        "level": tuple(e.interval.level for e in by.values()),
        "guarantee": tuple(e.interval.guarantee for e in by.values()),
        "unit": tuple(e.unit for e in by.values()),
        "rows": tuple(e.n for e in by.values()),
    }


def _page(result: Result) -> str:
    if not isinstance(result, Curve):
        raise TypeError("only curves have a page")
    return PAGE.format(title=escape(result.method), inside=notebook.curve(result))


FORMATS: Mapping[str, Callable[[Result], str]] = {".json": as_json, ".csv": _csv, ".html": _page}


# ---- lines ----


def lines(result: Result) -> str:
    match result:
        case Estimate():
            reported = _estimate(result)
        case Outcome():
            reported = _outcome(result)
        case Curve():
            reported = _curve(result)
        case _:
            reported = _groups(result)
    return "\n".join(reported)


def _estimate(e: Estimate) -> Iterator[str]:
    yield f"{e.method}: {format(e, DIGITS)}{UNITS.get(e.unit, f' {e.unit}')}"
    yield f"{100 * e.interval.level:g}% interval, {e.interval.guarantee}; {num.count(e.n)} rows"
    yield from wrap(f"assumes {e.assumes}") if e.assumes else ()
    yield from _facts("settings", e.settings)


def _groups(results: Mapping[str, Estimate]) -> Iterator[str]:
    first = next(iter(results.values()))
    yield (
        f"{first.method} of {num.count(len(results))} groups, each separately{UNITS.get(first.unit, f' {first.unit}')}"
    )
    yield f"{100 * first.interval.level:g}% intervals, {first.interval.guarantee}"
    yield from _table(_columns(results), ("group", "value", "low", "high", "rows"))


def _outcome(o: Outcome) -> Iterator[str]:
    yield f"{o.method}: {format(o, DIGITS)}, statistic {o.statistic:{DIGITS}}"
    for what, text in (("null", o.null), ("alternative", o.alternative), ("law", o.law)):
        yield from wrap(f"{what}: {sanitize(text)}")
    yield from _facts("found", o.parts)
    yield from _facts("settings", o.settings)


def _curve(c: Curve) -> Iterator[str]:
    yield f"{c.method}: {num.count(len(next(iter(c.columns.values()), ())))} rows"
    yield from _table(c.columns, tuple(k for k in c.columns if not k.startswith("null_")))
    yield from _facts("settings", c.settings)


def _table(columns: Mapping[str, tuple[object, ...]], heads: tuple[str, ...]) -> Iterator[str]:
    of = {k: [_written(v) for v in columns[k][:ROWS]] for k in heads}
    texts = [i for i, k in enumerate(heads) if any(isinstance(v, str) for v in columns[k][:ROWS])]
    yield from (f"  {line}" for line in aligned([heads, *zip(*of.values(), strict=True)], texts))
    more = max(map(len, columns.values()), default=0) - ROWS
    if more > 0:
        yield f"  {num.count(more)} more: -o FILE.csv has all"


def _facts(head: str, of: Mapping[str, object]) -> Iterator[str]:
    shown = {k: text for k, v in sorted(of.items()) if (text := _value(v))}
    width = min(max(map(cells, shown), default=0), NAME)
    yield from [f"{head}:"] if shown else []
    for name, text in shown.items():
        yield from wrap(text, f"  {pad(sanitize(name), width)}  ")


def _value(value: object) -> str:
    if isinstance(value, (Mapping, Curve, Estimate, Outcome)):
        return ""
    if not isinstance(value, (list, tuple)):
        return _written(value)
    if any(isinstance(v, (Mapping, list, tuple)) for v in value):
        return ""
    more = len(value) - FEW
    return ", ".join(map(_written, value[:FEW])) + (f" and {num.count(more)} more" if more > 0 else "")


def _written(value: object) -> str:
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, float):
        return f"{value:{DIGITS}}"
    return clip(sanitize(str(value)), WIDTH)
