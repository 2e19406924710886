"""The validation of default probabilities as a page to sign, by the machinery of reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from calibrant import __version__
from calibrant.apps.grades.sheet import BackTest, GradeValidation
from calibrant.apps.grades.workbook import Sheet, Value, p_value_head, sheets
from calibrant.sanitize import sanitize
from calibrant.toolkit.report import (
    Document,
    Heading,
    Node,
    Paragraph,
    Section,
    clipped,
    literal,
    number_table,
    say,
)
from calibrant.toolkit.report import page as page_of

NOTES, BACK_TESTING, P_VALUE, SMALLEST = "Notes", ("PD back-testing", "Segments"), "0.0000", 1e-4
SIGNED = ("Validator", "Approver")
BLANK = "\u2009".join("_" * 24)
UNCHECKED = (
    "Not checked: whether grades and PDs were made without these defaults, the definition of default, the rating "
    "process and data quality, margins of conservatism, and what is listed as absent."
)


def page(result: GradeValidation) -> str:
    """The validation as one page that loads nothing: a headline, every table, notes, and a block to sign."""
    name, state = sanitize(str(result.settings["name"])), result.portfolio.verdict or "measured"
    kept = [sheet for sheet in sheets(result) if sheet.name not in BACK_TESTING]
    made = [(sheet.name, _table(sheet)) for sheet in kept if sheet.name != NOTES]
    tested = [("PD back-testing", _tested(result, (*result.back_testing, result.portfolio)))]
    tested += [("Segments", _tested(result, result.segments))] if result.segments else []
    notes = tuple(Paragraph(say(f"{sanitize(str(on))}: {sanitize(str(text))}.")) for on, text in kept[-1].rows)
    sections = [Section("summary", "Summary", "Validation of PD by grade", tuple(_summary(result)), state)]
    sections += [Section(f"table-{i}", n, n, (node,), "measured") for i, (n, node) in enumerate((*tested, *made))]
    sections += [Section("notes", NOTES, "How it was computed, and what is absent", notes, "reference")]
    sections += [Section("signed", "Signed by", "Signed by", tuple(_signed(result)), "reference")]
    whole, limit = result.portfolio, result.settings["limit_relative"]
    counts = f"{whole.number_of_customers:,} customers, {whole.number_of_defaults:,} defaults"
    lines = [counts, f"{len(result.scale)} grades"]
    lines += [] if limit is None else [f"limit {100 * float(str(limit)):g} % of expected defaults"]
    facts = tuple(Paragraph(say(literal(clipped(text, 80)))) for text in lines)
    return page_of(Document(name, "Validation of PD by grade", facts, tuple(sections)), result.to_dict(), __version__)


def _summary(result: GradeValidation) -> Iterator[Node]:
    """What is estimated of the portfolio, what the tests say, and who is outside the limit."""
    whole = result.portfolio
    others = (whole, *result.segments)
    if whole.observed_expected is not None:
        verdict = "" if whole.verdict is None else f" Against the limit: {whole.verdict}."
        yield Paragraph(
            say(f"Observed over expected defaults: {_ratio(whole)}.{verdict}"),
            "answer",
        )
    for lit in ("red", "amber"):
        for words, some in (("grades ", _named(result.back_testing, lit)), ("", _named(others, lit))):
            if some:
                yield Paragraph(say(f"{lit.capitalize()}: {words}", literal(clipped(some, 400)), "."))
    over = [b for b in (*result.back_testing, *result.segments) if b.verdict == "over"]
    if over:
        names = "; ".join(_name(b) for b in over)
        yield Paragraph(say("Outside the limit: ", literal(clipped(names, 400)), "."))
    if not _named((*result.back_testing, *others), "red", "amber") and not over:
        limit = ""
        if result.settings["limit_relative"] is not None and whole.verdict != "over":
            limit = ", and none is shown to be outside the limit"
        yield Paragraph(say(f"No grade is amber or red{limit}."))


def _named(lines: Sequence[BackTest], *lights: str) -> str:
    return "; ".join(_name(b) for b in lines if b.light in lights)


def _name(b: BackTest) -> str:
    return sanitize(f"{b.segment}, {b.rating_grade}" if b.segment else b.rating_grade)


def _tested(result: GradeValidation, lines: Sequence[BackTest]) -> Node:
    """Lines of back-testing: what is estimated, its range, the tests, and the state."""
    heads = [
        "Grade",
        "PD",
        "Customers",
        "Defaults",
        "Rate",
        "O/E (range)",
        p_value_head(result),
        "All together",
        "Light",
    ]
    heads += ["Limit"] if result.settings["limit_relative"] is not None else []
    return number_table("O/E: observed over expected defaults.", heads, [_line(b, heads) for b in lines], "cards")


def _ratio(b: BackTest) -> str:
    """Observed over expected defaults with its range, outward."""
    if b.observed_expected is None:
        return "\N{EN DASH}"
    low, high = math.floor(100 * (b.observed_expected_low or 0.0)), math.ceil(100 * (b.observed_expected_high or 0.0))
    return f"{b.observed_expected:.2f} ({low / 100:.2f} to {high / 100:.2f})"


def _line(b: BackTest, heads: Sequence[str]) -> list[str]:
    own = b.p_value if b.correlated_p_value is None else b.correlated_p_value
    cells = [
        f"{b.segment}, {b.rating_grade}" if b.segment else b.rating_grade,
        _cell(b.pd, "0.00%"),
        _cell(b.number_of_customers, ""),
        _cell(b.number_of_defaults, ""),
        _cell(b.default_rate, "0.00%"),
        _ratio(b),
        _cell(own, P_VALUE),
        _cell(b.adjusted_p, P_VALUE),
        b.light or "\N{EN DASH}",
        b.verdict or "\N{EN DASH}",
    ]
    return [sanitize(c) for c in cells[: len(heads)]]


def _table(sheet: Sheet) -> Node:
    """A sheet as a table of the page."""
    heads = tuple(title for title, _ in sheet.heads)
    rows = [[_cell(v, form) for v, (_, form) in zip(row, sheet.heads, strict=True)] for row in sheet.rows]
    return number_table(f"{sheet.name}.", heads, rows, "cards")


def _cell(value: Value, form: str) -> str:
    """A value as a workbook would show it in this number format."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, int):
        return f"{value:,}"
    if form == P_VALUE and 0.0 <= value < SMALLEST:
        return "<0.0001"
    places = len(form.rstrip("%").partition(".")[2])
    number = f"{100 * value if form.endswith('%') else value:,.{places}f}"
    return f"{number}%" if form.endswith("%") else number


def _signed(result: GradeValidation) -> Iterator[Node]:
    s = result.settings
    level = 100 * (1 - float(str(s["alpha"])))
    yield Paragraph(say(UNCHECKED))
    yield Paragraph(
        say(
            f"Ranges of observed over expected hold at {level:g} % for the portfolio, for all grades together, and for "
            f"all lines of each column of segments together. calibrant {__version__}; {s['draws']} draws, seed "
            f"{s['seed']}."
        )
    )
    for who in SIGNED:
        yield Heading(who, 3)
        yield Paragraph(say(f"Name and function {BLANK}"))
        yield Paragraph(say(f"Date and signature {BLANK}"))
