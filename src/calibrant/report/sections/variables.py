"""The section about variables: which of them the error follows, as a ranking, and a figure of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant.audit.record import AuditRecord, Check
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.along import Along, along_of
from calibrant.report.document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    WHOLE,
    Cell,
    Column,
    Details,
    Entry,
    Node,
    Paragraph,
    Row,
    Table,
)
from calibrant.report.findings import MOST_ROWS
from calibrant.report.outline import Asked, Declared
from calibrant.report.sections.curves import figure
from calibrant.report.sections.inference import inference, wrong
from calibrant.report.spans import Span, Text, code, given, lines, say, shown
from calibrant.report.wording import UNPROVEN, cardinal, unmade, variable_name, variable_names
from calibrant.visible import visible

SHORT = 9  # variables in the short table


def variables(record: AuditRecord) -> Iterator[Node]:
    """Return the ranking and the figures, or why there is none."""
    found, drawn = ranked(record), curves(record)
    if not found:
        why = unmade(record, "variables", "No variables were ranked in this audit.")
        yield Paragraph(why, "quiet", WHOLE if wrong(record) else PAGE)
        yield from inference(record)
        return
    yield Paragraph(answer(record), "answer")
    yield Paragraph(say("Variables the error follows: ", *answer(record)), where=TERMINAL)
    whole = table(record, drawn)
    many = len(whole.rows) > SHORT
    short = replace(whole, rows=whole.rows[:SHORT], style=f"{whole.style} short" if many else whole.style, where=PAGE)
    yield short if many else whole
    for text in notes(record, spark_scale(drawn)):
        yield Paragraph(say(text), "note", PAGE)
    if many:
        total = num.count(len(found))
        which = f"the first {num.count(MOST_ROWS)} of {total}" if len(found) > MOST_ROWS else f"all {total}"
        long = replace(whole, caption="All variables.", style=f"{whole.style} long")
        yield Details(f"Show {which} variables", (long,), id="variables-all")
    yield Paragraph(say(shift_note(record)), where=MARKDOWN)
    yield from inference(record)
    for i, along in enumerate(drawn.values()):
        yield figure(record, along, opened=i == 0)


# ---- the ranking, as the record holds it ----


@dataclass(frozen=True, slots=True)
class Ranked:
    """One variable of the ranking; errors are fractions.

    Parameters
    ----------
    beyond : float
        Estimated average gap along the variable beyond the overall shift.
    low, high : float or None
        Certified, for `beyond`; None where no proof covers the data.
    whole : float
        Estimated average gap along the variable, the shift included.
    whole_low, whole_high : float or None
        Certified, for `whole`.
    adjusted : float
        p-value of `beyond`, adjusted for all variables of the ranking.
    found : bool
        Whether error beyond the overall shift is shown.
    worst : str
        Values that add most; empty where too few people have them to be shown.
    gap : float
        What happened minus what the model says there, less the overall shift.
    """

    variable: str
    kind: str
    beyond: float
    low: float | None
    high: float | None
    whole: float
    whole_low: float | None
    whole_high: float | None
    adjusted: float
    found: bool
    worst: str
    gap: float


def ranked(record: AuditRecord) -> tuple[Ranked, ...]:
    """Return the variables of a record, the one the error follows most first; pairs of variables are left out."""
    c = record.curve("ranking").columns
    lines = (dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True))
    alpha, mask = float(record.settings["alpha"]), int(record.settings.get("mask", 20))
    return tuple(_ranked(line, alpha, mask) for line in lines if line["kind"] != "pair")


def _ranked(line: Mapping[str, Any], alpha: float, mask: int) -> Ranked:
    seen = line["worst_rows"] is not None and int(line["worst_rows"]) >= mask
    return Ranked(
        variable=str(line["variable"]),
        kind=str(line["kind"]),
        beyond=float(line["beyond_shift"]),
        low=line["beyond_low"],
        high=line["beyond_high"],
        whole=float(line["vece"]),
        whole_low=line["low"],
        whole_high=line["high"],
        adjusted=float(line["p_adjusted"]),
        found=float(line["p_adjusted"]) <= alpha,
        worst=str(line["worst"]) if seen else "",
        gap=float(line["worst_beyond_shift"]) if seen else 0.0,
    )


def draws(record: AuditRecord) -> int | None:
    """Return how many simulated outcomes of everyone the p-values rest on; None where they rest on the normal law."""
    s = record.curve("ranking").settings
    return int(s["draws"]) if "draws" in s and str(s.get("null", "")).startswith("exact") else None


def certified(record: AuditRecord) -> bool:
    """Tell whether any variable has a certified range."""
    return any(r.high is not None for r in ranked(record))


def curves(record: AuditRecord) -> dict[str, Along]:
    """Return what is drawn of each variable, in the order of the ranking."""
    order = {r.variable: i for i, r in enumerate(ranked(record))}
    held = {v: c for v, c in record.family("variable_curve").items() if c.columns.get("gap")}
    return {v: along_of(v, held[v]) for v in sorted(held, key=lambda v: (order.get(v, len(order)), v))}


# ---- the table ----


def table(record: AuditRecord, drawn: Mapping[str, Along]) -> Table:
    """Return the ranking as a table; the page draws the ranges, and of each variable a small curve."""
    found = ranked(record)
    top = places.end_of(1.05 * max(max(r.beyond, r.high or 0.0) * 100 for r in found))
    scale, n = spark_scale(drawn), draws(record)
    beyond = f"Beyond the overall shift, 0 to {top:g}\N{NO-BREAK SPACE}points"
    columns = (
        Column(say("Variable"), sorts=True),
        Column(say("Gap along it"), "sp", where=PAGE if drawn else frozenset()),
        Column(say(beyond), "c", True, "Beyond the overall shift, points"),
        Column(say("Points"), "r iv", True, "Range, points"),
        Column(say("Adds most at"), "at", True, where=PAGE),
        Column(lines("With the shift,", "points"), "r hide", True),
        Column(say("Adjusted p"), "r vd", True),
    )
    rows = tuple(_row(r, drawn.get(r.variable), top, scale, n) for r in found[:MOST_ROWS])
    return Table(columns, rows, caption(record), "forest follow sort")


def _row(r: Ranked, along: Along | None, top: float, scale: float, n: int | None) -> Row:
    name, range_, p = shown(r.variable), certified_or(r.beyond, r.low, r.high), floored(r.adjusted, n)
    worst = place(r) if r.found else ""
    at = say(given(worst), " ", Span(f"({num.gap(r.gap)})", "small")) if worst else say("–")
    return Row(
        (
            Cell(say(Span(name, "given", "" if along is None else f"#{along.anchor}")), name),
            Cell(picture="" if along is None else svg.spark(along, scale)),
            Cell(say(num.nearest(r.beyond)), f"{r.beyond:.6g}", svg.track(_track(r, top, range_))),
            Cell(say(range_), f"{r.beyond if r.low is None else r.low:.6g}", brief=say("–") if r.high is None else ()),
            Cell(at, f"{r.gap:.6g}", style="" if worst else "none"),
            Cell(
                say(certified_or(r.whole, r.whole_low, r.whole_high)), f"{r.whole:.6g}", brief=say(num.nearest(r.whole))
            ),
            Cell(say(p), f"{r.adjusted:.6g}", brief=say(p.removesuffix("*"))),
        )
    )


def _track(r: Ranked, top: float, range_: str) -> places.Track:
    """Return the certified range with the estimate; the estimate alone where no proof covers the data."""
    at, kind, label = places.place(r.beyond * 100, top), "along" if r.found else "unfound", f"{range_} points"
    if r.low is None or r.high is None:
        return places.Track("", "", "", False, kind, label, at)
    label = f"{label}, estimated {num.nearest(r.beyond)}"
    return replace(places.track(r.low, r.high, top, kind, label), at=at)


def certified_or(estimate: float, low: float | None, high: float | None) -> str:
    """Return a certified range in points, or the estimate where there is none."""
    if low is None or high is None:
        return f"about {num.nearest(estimate)}"
    return f"{num.lower_bound(low)} to {num.upper_bound(high)}"


def place(r: Ranked) -> str:
    """Return the values that add most, as they are read; a number of four digits is not set apart, it may be a year."""
    text = visible(r.worst)
    if r.kind == "number":
        text = re.sub(r"(?<![\d\u202f.])(\d)\u202f(\d{3})(?![\d\u202f])", r"\1\2", text)
    return text if text.strip() or not r.worst else "(blank)"


def floored(p: float, n: int | None) -> str:
    """Write a p-value for a table: with a star at the floor of the simulation."""
    told = num.p_value(p, draws=n)
    return told if "," not in told else f"{told.partition(',')[0]}*"


def spark_scale(drawn: Mapping[str, Along]) -> float:
    """Return where the small curves end, in points: the largest gap that is shown fits in all of them."""
    shown_off = [abs(p.gap) * 100 for a in drawn.values() for p in a.points if p.side != "unclear"]
    return places.end_of(max(1.1 * max(shown_off, default=0.0), 1.0), places.NICE)


# ---- in words ----


def answer(record: AuditRecord) -> Text:
    """Return the first line of "Which variables does the error follow?"."""
    found = ranked(record)
    yes, no = ([r.variable for r in found if r.found is kind] for kind in (True, False))
    if not yes:
        which = say("Not shown for ", variable_name(no[0]))
        if len(no) > 1:
            which = say(f"None of the {cardinal(len(no))} is shown")
        return say(*which, f": no error beyond the overall shift was found, {UNPROVEN}.")
    rest = say(", then ", *variable_names(yes[1:])) if len(yes) > 1 else ()
    verb = "is" if len(no) == 1 else "are"
    unshown = (
        say(" ", *variable_names(no), f" {verb} not shown to add anything beyond the overall shift.") if no else ()
    )
    return say(variable_name(yes[0]), " first", *rest, ".", *unshown)


def caption(record: AuditRecord) -> str:
    """Return the caption of the ranking."""
    first = "Ranked by the average gap along the variable once the overall shift is taken out, as estimated (dots)."
    bars = ""
    if certified(record):
        level = num.percent(1 - float(record.settings["alpha"]))
        bars = f" Bars: certified ranges, all true together at {level}%; where they overlap the order is open."
    return f"{first}{bars} Filled: shown to be there. Hollow: not shown."


def notes(record: AuditRecord, scale: float) -> Iterator[str]:
    """Return what is to be known about the numbers of the ranking."""
    found, n, drawn = ranked(record), draws(record), record.family("variable_curve")
    looked = f"p-values are adjusted for looking at {cardinal(len(found))} variables." if len(found) > 1 else ""
    starred = n and any(r.adjusted <= 1 / (n + 1) for r in found)
    star = f"* The smallest value that {num.count(n)} simulations can show." if n and starred else ""
    if looked or star:
        yield f"{looked} {star}".strip()
    text = "With the shift: the same without taking it out. In brackets: the gap there, less the overall shift."
    if drawn:
        text += f" Small curves reach from {num.MINUS}{scale:g} to +{scale:g} points; the grey line is no gap."
    if drawn and any(r.variable not in drawn for r in found):
        text += " A variable without one is farther down the ranking, or has a level of too few people to show."
    yield text


def shift_note(record: AuditRecord) -> str:
    """Return what the numbers of the ranking mean, where there is no picture."""
    level = num.percent(1 - float(record.settings["alpha"]))
    ranges = f" Ranges are certified, all together at {level}%." if certified(record) else ""
    return f"Average gap along each variable once the overall shift is taken out; p-values are adjusted.{ranges}"


# ---- what the section adds to others ----


RANKING = (
    "Each variable is cut into ranges of about equally many people, or its levels; in each, what happened is compared "
    "with what the model says, less the overall shift, and the sizes are averaged. What chance alone adds is taken off "
    "the estimate. p-values come from {null}; they are adjusted so that, if the model is calibrated, "
    "any finding at all has a chance of at most {alpha} in 100. "
)
NULLS = {
    True: "{draws} sets of outcomes simulated for every person at the score given",
    False: "the normal law of sums over many people, which is approximate",
}
RANGES = "Certified ranges hold together at this number of people. "
ALONG = (
    "Each curve averages the gap over the nearest {span}% of the people, near ones more, by a local curve of degree "
    "{degree}. Its band, from {draws} sets of simulated outcomes, takes in zero everywhere in at least {times} of "
    "{of} audits of a calibrated model; where the model is off it holds the smoothed gap about as often, "
    "approximately. Function "
)
WORDS = (
    Entry(
        "Average gap along a variable",
        say(
            "In each range or level of the variable, the size of the gap; averaged over all people. Errors that cancel "
            "within a range do not count."
        ),
    ),
    Entry(
        "Beyond the overall shift",
        say(
            "What would be left if everyone’s probability were moved by the overall shift. Without that, a model that "
            "is too low for everyone has the same error along every variable."
        ),
    ),
    Entry(
        "Adjusted p",
        say(
            "How often simulations of a model that is right show at least this much, allowing for having looked at all "
            "the variables."
        ),
    ),
)


def methods(record: AuditRecord) -> Iterator[Entry]:
    """Return how the variables were ranked, and how the curves along them were made."""
    if ranked(record):
        order, n = record.curve("ranking"), draws(record)
        null = NULLS[n is not None].format(draws=num.count(n or 0))
        alpha = num.percent(float(order.settings.get("alpha", record.settings["alpha"])))
        ranges = RANGES if certified(record) else ""
        words = say(RANKING.format(null=null, alpha=alpha), ranges, "Function ", code(order.method), ".")
        yield Entry("Variables", words)
    for curve in list(record.family("variable_curve").values())[:1]:
        s = curve.settings
        times, of = num.confidence(1 - float(s["alpha"]))
        span, drawn = num.percent(float(s["span"])), num.count(s["draws"])
        words = say(ALONG.format(span=span, degree=s["degree"], draws=drawn, times=times, of=of))
        yield Entry("Curves", say(*words, code(curve.method), "."))


def _check(_: Check, record: AuditRecord) -> Asked:
    """Return how many variables the error is shown to follow; the smallest p-value decides whether any."""
    found = ranked(record)
    numbers = ""
    if found:
        least = num.p_value(min(r.adjusted for r in found), draws=draws(record))
        numbers = f"{sum(r.found for r in found)} of {num.count(len(found))} variables; smallest adjusted {least}"
    meaning = "does error follow a variable, beyond the overall shift?"
    return Asked("Error by variable", numbers, meaning, any(r.found for r in found))


DECLARED = (
    Declared(
        id="variables",
        order=40,
        nav="Following what?",
        heading="Which variables does the error follow?",
        nodes=variables,
        methods=methods,
        words=lambda record: WORDS if ranked(record) else (),
        checks={"variables": _check},
    ),
)
