"""The validation of default probabilities by grade: lines for a terminal, and the sheets of a workbook."""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.apps.grades.sheet import BackTest, Discrimination, GradeValidation, Matrix, Migrations
from calibrant.errors import BadInput
from calibrant.sanitize import sanitize
from calibrant.toolkit.report import cells, clip, pad

if TYPE_CHECKING:
    from xlsxwriter import Workbook

Value = str | int | float | None
NAME = 32  # cells of the name of a grade
BOOK = ".xlsx"
CREATED = dt.datetime(1980, 1, 1, tzinfo=dt.UTC)  # a workbook has a date; the same input gives the same bytes
CITED = "European Central Bank (2019), Instructions for reporting the validation results of internal models"
WIDEST, NARROWEST, MARGIN = 60, 10, 2  # characters of a column
COLOURS = {"green": "#C6E6CC", "amber": "#FFE3A3", "red": "#F4B8B4", "over": "#F4B8B4", "within": "#C6E6CC"}
HEADS = {  # what a column is called, and how its numbers are written
    "segment": ("Segment", ""),
    "rating_grade": ("Rating grade", ""),
    "pd": ("PD", "0.00%"),
    "number_of_customers": ("Number of customers (N)", "#,##0"),
    "number_of_defaults": ("Number of defaults (D)", "#,##0"),
    "default_rate": ("Default rate (D/N)", "0.00%"),
    "exposure": ("Exposure", "#,##0.00"),
    "p_value": ("p-value", "0.0000"),
    "correlated_p_value": ("p-value with correlation", "0.0000"),
    "adjusted_p": ("p-value, all grades together", "0.0000"),
    "light": ("Traffic light", ""),
    "observed_expected": ("Observed / expected", "0.000"),
    "observed_expected_low": ("O/E, low", "0.000"),
    "observed_expected_high": ("O/E, high", "0.000"),
    "verdict": ("Against the relative limit", ""),
    "from": ("Grade at the beginning (i)", ""),
    "to": ("Grade at the end (j)", ""),
    "n_ij": ("Customers (n_ij)", "#,##0"),
    "p_ij": ("Relative frequency (p_ij)", "0.00%"),
    "z_ij": ("z_ij", "0.000"),
    "phi": ("p-value, Phi(z_ij)", "0.0000"),
    "defaulted": ("Defaulted", "#,##0"),
    "left": ("No grade at the end", "#,##0"),
    "quantity": ("Quantity", ""),
    "value": ("Value", "0.0000"),
    "weighted_by": ("Weighted by", ""),
    "grades": ("Grades (K)", "0"),
    "cv_init": ("CV_init", "0.0000"),
    "cv_curr": ("CV_curr", "0.0000"),
    "hi_init": ("HI_init", "0.0000"),
    "hi_curr": ("HI_curr", "0.0000"),
    "note": ("Note", ""),
    "on": ("On", ""),
}


@dataclass(frozen=True)
class Sheet:
    """One table of a workbook."""

    name: str
    heads: tuple[tuple[str, str], ...]  # title and number format of each column
    rows: Sequence[tuple[Value, ...]]


def sheets(result: GradeValidation) -> tuple[Sheet, ...]:
    """The tables of a validation, the notes last; a part that is absent has no table, and a note says why."""
    made = [_lines_of("PD back-testing", result, (*result.back_testing, result.portfolio), ("segment",))]
    if result.segments:
        made.append(_lines_of("Segments", result, result.segments, ()))
    if result.discrimination is not None:
        made.append(_discrimination(result.discrimination))
    if result.migrations is not None:
        made += [_matrix(result.scale, result.migrations), _bandwidths(result.migrations)]
        made.append(_tests(result.scale, result.migrations))
    made.append(_concentration(result))
    return (*made, Sheet("Notes", _heads("on", "note"), list(_notes(result))))


def _heads(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple(HEADS[n] for n in names)


def _lines_of(name: str, result: GradeValidation, lines: Sequence[BackTest], unused: tuple[str, ...]) -> Sheet:
    """A table of lines of back-testing, without columns of what was not asked for."""
    unused += () if result.portfolio.exposure is not None else ("exposure",)
    unused += () if result.settings["rho"] else ("correlated_p_value",)
    unused += () if result.settings["limit_relative"] is not None else ("verdict",)
    names = [n for n in HEADS if n in result.table.columns and n not in unused]
    return Sheet(name, _heads(*names), [tuple(getattr(b, n) for n in names) for b in lines])


def _discrimination(d: Discrimination) -> Sheet:
    rows: list[tuple[Value, ...]] = [
        ("AUC_init", d.auc_init),
        ("AUC_curr", d.auc_curr),
        ("Estimated variance of AUC_curr (s squared)", d.variance_curr),
        ("Test statistic (S)", d.statistic),
        ("p-value", d.p_value),
        ("Number of customers", d.number_of_customers),
        ("Number of defaults", d.number_of_defaults),
    ]
    return Sheet("AUC", _heads("quantity", "value"), rows)


def _matrix(scale: tuple[str, ...], m: Migrations) -> Sheet:
    to = tuple((f"to {g}", "#,##0") for g in scale)
    rows: list[tuple[Value, ...]] = [
        (g, *row, m.defaulted[i], m.left[i]) for i, (g, row) in enumerate(zip(scale, m.counts, strict=True))
    ]
    return Sheet("Migration matrix", (HEADS["from"], *to, HEADS["defaulted"], HEADS["left"]), rows)


def _bandwidths(m: Migrations) -> Sheet:
    rows: list[tuple[Value, ...]] = [
        ("Upper MWB (to worse grades)", m.mwb_upper),
        ("Lower MWB (to better grades)", m.mwb_lower),
    ]
    return Sheet("MWB", _heads("quantity", "value"), rows)


def _tests(scale: tuple[str, ...], m: Migrations) -> Sheet:
    rows: list[tuple[Value, ...]] = [
        (a, b, m.counts[i][j], m.p_ij[i][j], m.z_ij[i][j], m.p_value[i][j])
        for i, a in enumerate(scale)
        for j, b in enumerate(scale)
        if i != j
    ]
    return Sheet("Migration tests", _heads("from", "to", "n_ij", "p_ij", "z_ij", "phi"), rows)


def _concentration(result: GradeValidation) -> Sheet:
    names = "weighted_by", "grades", "cv_init", "cv_curr", "hi_init", "hi_curr", "p_value"
    rows = [tuple(getattr(c, n) for n in names) for c in result.concentration]
    return Sheet("Concentration", _heads(*names), rows)


RANGES = (
    "range by Clopper-Pearson, {:g} %: of the portfolio by itself, of all grades together, of all lines of a column of "
    "segments together; customers independent given their PDs, whatever the correlation"
)


def aggregated(rows: int, customers: int) -> str:
    """How rows became customers."""
    return (
        f"{rows:,} rows of {customers:,} customers: those of one customer count once, as a default if any of them is "
        "one, at their mean PD, with what they owe added up"
    )


def bounded(limit: float) -> str:
    """What the relative limit says."""
    return (
        f"{100 * limit:g} %: over where the range of observed / expected lies outside {1 - limit:g} to {1 + limit:g}, "
        "within where it lies inside, else undecided"
    )


def _notes(result: GradeValidation) -> Iterator[tuple[Value, ...]]:
    """Yield what each sheet holds, the settings, and why a part is absent."""
    s = result.settings
    first, second = (f"{v:g}" for v in result.lights)
    yield "source", f"{CITED}: IRB Pillar I models for credit risk, sections 2.5.3 to 2.5.5"
    yield "rows", f"{s['name']}: one a customer at the beginning of the observation period; grade {s['grade']}"
    if (rows := s["cluster_rows"]) is not None:
        yield "customers", aggregated(int(str(rows)), result.portfolio.number_of_customers)
    yield "observed / expected", RANGES.format(100.0 * (1.0 - float(str(s["alpha"]))))
    if s["limit_relative"] is not None:
        yield "relative limit", bounded(float(str(s["limit_relative"])))
    yield "PD back-testing", "p-value: Jeffreys, Beta(D + 1/2, N - D + 1/2) at the PD; small where the PD underpredicts"
    yield "PD back-testing", "all grades together: simulated, for the finding that this grade's PD underpredicts"
    if s["rho"]:
        yield "PD back-testing", f"with correlation {s['rho']:g}: so many defaults or more in the one-factor model"
    by = "p-value with correlation; of the portfolio, all together" if s["rho"] else "p-value"
    yield "traffic lights", f"by the {by}: green above {first}, red at most {second}, amber between"
    yield "traffic lights", "levels of Tasche (2003); the instructions have no colours"
    yield "AUC", "S = (AUC_init - AUC_curr) / s by DeLong, p-value 1 - Phi(S): small where the AUC has fallen"
    yield "Migration tests", "each cell against its neighbour nearer to the diagonal; small where it holds more"
    yield "Migration tests", "N_i: customers with a grade at both ends and no default"
    yield "Concentration", "p-value: small where it has risen; the initial value is taken as known"
    yield "privacy", "grades are shown whatever their size: for the supervisor, not for publication"
    for what, why in result.absent.items():
        yield f"absent: {what}", why


# ---- a workbook ----


def workbook(result: GradeValidation) -> bytes:
    """The sheets as an Excel workbook: heads frozen, no formula, the same bytes every time."""
    try:
        from xlsxwriter import Workbook
    except ImportError:
        raise BadInput("a workbook needs XlsxWriter: pip install 'calibrant[excel]', or write .json or .csv") from None
    out = io.BytesIO()
    with Workbook(out, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}) as book:
        book.set_properties({"created": CREATED, "title": "Validation of PD by grade"})
        for sheet in sheets(result):
            _write(book, sheet)
    return out.getvalue()


def _write(book: Workbook, sheet: Sheet) -> None:
    """Write one sheet: bold heads over the table, frozen; columns as wide as what is in them."""
    page = book.add_worksheet(sheet.name)
    head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
    formats = {f: book.add_format({"num_format": f}) for _, f in sheet.heads if f}
    lights = {name: book.add_format({"bg_color": colour}) for name, colour in COLOURS.items()}
    whole, text = book.add_format({"num_format": "#,##0"}), book.add_format({"text_wrap": True, "valign": "top"})
    for j, (title, form) in enumerate(sheet.heads):
        page.write_string(0, j, sanitize(title), head)
        page.set_column(j, j, _width([title, *(row[j] for row in sheet.rows)]))
        for i, row in enumerate(sheet.rows, 1):
            value = row[j]
            if isinstance(value, str):
                page.write_string(i, j, sanitize(value), lights.get(value, text))
            elif value is not None:
                page.write_number(i, j, value, whole if isinstance(value, int) else formats.get(form))
    page.freeze_panes(1, 1)
    page.set_landscape()
    page.fit_to_pages(1, 0)
    page.repeat_rows(0)


def _width(values: Sequence[Value]) -> int:
    kept = [len(v) if isinstance(v, str) else 12 for v in values if v is not None]
    first = len(str(values[0])) if values else 0
    return min(max(NARROWEST, min(first, 16), max(kept[1:], default=0)) + MARGIN, WIDEST)


# ---- a terminal ----


def p_value_head(result: GradeValidation) -> str:
    """What the p-values of a table are: of defaults with a correlation, where one was given."""
    rho = result.settings["rho"]
    return f"p-value at correlation {rho:g}" if rho else "p-value"


def lines(result: GradeValidation) -> str:
    """The grades with their lights, then a line each for discrimination, migrations and concentration."""
    heads = (
        "grade",
        "PD",
        "customers",
        "defaults",
        "rate",
        "O/E",
        "its range",
        p_value_head(result),
        "together",
        "light",
    )
    rho, limited = bool(result.settings["rho"]), result.settings["limit_relative"] is not None
    table: list[tuple[str, ...]] = [(*heads, "limit") if limited else heads]
    for b in (*result.back_testing, result.portfolio, *result.segments):
        table.append(_row(b, rho) if not limited else (*_row(b, rho), b.verdict or "-"))
    wide = [max(cells(r[i]) for r in table) for i in range(len(table[0]))]
    out = []
    for who, *others in table:
        numbers, words = others[:8], others[8:]
        right = (" " * (w - cells(v)) + v for v, w in zip(numbers, wide[1:9], strict=True))
        left = (pad(v, w) for v, w in zip(words, wide[9:], strict=True))
        out.append("  ".join((pad(who, wide[0]), *right, *left)).rstrip())
    return "\n".join([*out, "", *_reported(result)])


def _row(b: BackTest, correlated: bool) -> tuple[str, ...]:
    own = b.correlated_p_value if correlated else b.p_value
    low = math.floor(100.0 * (b.observed_expected_low or 0.0)) / 100.0
    high = math.ceil(100.0 * (b.observed_expected_high or 0.0)) / 100.0
    return (
        clip(sanitize(f"{b.segment}, {b.rating_grade}" if b.segment else b.rating_grade), NAME),
        _percent(b.pd),
        f"{b.number_of_customers:,}",
        f"{b.number_of_defaults:,}",
        _percent(b.default_rate),
        *(["-", "-"] if b.observed_expected is None else [f"{b.observed_expected:.2f}", f"{low:.2f} to {high:.2f}"]),
        _short(own),
        _short(b.adjusted_p),
        b.light or "-",
    )


def _reported(result: GradeValidation) -> Iterator[str]:
    if (rows := result.settings["cluster_rows"]) is not None:
        yield f"Customers: {aggregated(int(str(rows)), result.portfolio.number_of_customers)}"
    if (d := result.discrimination) is not None:
        reported = (
            "" if d.statistic is None else f"; initial {d.auc_init:.4f}, S {d.statistic:.3f}, p {_short(d.p_value)}"
        )
        yield f"AUC {d.auc_curr:.4f} (variance {d.variance_curr:.3g}){reported}"
    if (m := result.migrations) is not None:
        yield f"MWB to worse grades {_short(m.mwb_upper)}, to better {_short(m.mwb_lower)}; {_least(m.p_value, result)}"
    for c in result.concentration:
        reported = "" if c.hi_init is None else f"; initial {c.hi_init:.4f}, p {_short(c.p_value)}"
        yield f"Herfindahl index by {c.weighted_by} {c.hi_curr:.4f} (CV {c.cv_curr:.4f}){reported}"
    for what, why in result.absent.items():
        yield f"Absent, {what}: {why}"


def _least(p: Matrix, result: GradeValidation) -> str:
    """The cell whose excess over its nearer neighbour is the most surprising."""
    at = [(v, i, j) for i, row in enumerate(p) for j, v in enumerate(row) if v is not None]
    if not at:
        return "no cell to test"
    least, i, j = min(at)
    a, b = (clip(sanitize(result.scale[k]), NAME) for k in (i, j))
    return f"smallest p {_short(least)}, from {a} to {b}, of {len(at)} cells"


def _percent(x: float | None) -> str:
    return "-" if x is None else f"{100 * x:.2f}%"


def _short(x: float | None) -> str:
    return "-" if x is None else f"{x:.4f}" if x >= 0.0001 else "<0.0001"
