"""Curves and bias maps on the page: what one shows in words, its figure, its readouts and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.by_variable import (
    MOST_LEVELS,
    ByVariable,
    Point,
    by_variable_map,
    in_units,
    levels_top,
    named,
    regions,
    share,
)
from calibrant.report.document import PAGE, Cell, Column, Details, Figure, Panel, Readout, Table, number_table, row
from calibrant.report.findings import limit_of, mask_of, noun, published
from calibrant.report.places import digits_of
from calibrant.report.spans import Span, Text, clipped, lines, literal, say, shown
from calibrant.report.wording.terms import DIRECTIONS, TOO, UNPROVEN, capital, cardinal, joined, together, variable_name
from calibrant.results import Curve

NAMED = 4  # places in a sentence
NOWHERE_OFF = "not shown to be off anywhere"
SIDES = {"low": "underpredicts", "high": "overpredicts"}
RATES = "What the model says, and what happened"
GAP = "Gap: happened minus what the model says"
HEADS = ("Model says, in 100", "Happened, in 100", "Gap, points", "Band, points")


# ---- the figure of one variable ----


def figure(record: AuditRecord, by_variable: ByVariable) -> Details:
    """What the page shows on demand of one variable: its rates, its gap, its levels and what they say."""
    digits = digits_of(by_variable.across)
    name, reported = clipped(shown(by_variable.variable)), heading(by_variable, digits)
    panels: tuple[Panel, ...] = ()
    readout = None
    if by_variable.axis is not None:
        low, high = f"{by_variable.axis.low:.8g}", f"{by_variable.axis.high:.8g}"
        words = f"What the model says and what happened, by {name}."
        rates = svg.plot(svg.rates(by_variable), words, low, high, "sq")
        panels = Panel(RATES, rates, axis=name), _gaps(record, by_variable, name, reported)
        start = float(max(by_variable.line, key=lambda p: abs(p.gap)).x or 0.0)  # where the gap is largest
        form = f"\u2068{clipped(shown(by_variable.variable), 40)}\u2069 {{0}}: the model says {{1}} in 100, "
        form += "{2} happened; gap {3} points (band {4}), {side}."
        words = f"Read the figure by {name}"
        readout = Readout(words, low, high, f"{start:.6g}", form, tuple(DIRECTIONS.values()))
    drawn = Figure(
        panels=panels,
        key=(),
        caption=(*finding(by_variable, digits), *say(f"{further(by_variable, digits)} {reading(by_variable)}")),
        readout=readout,
        table=_levels(record, by_variable, digits) if by_variable.levels else None,
        numbers=(points_table(name, by_variable, digits),) if panels else (),
    )
    return Details(reported, (drawn,), by_variable.anchor, name, 3, where=PAGE)


def _gaps(record: AuditRecord, by_variable: ByVariable, name: str, reported: str, kind: str = "") -> Panel:
    """The picture of the gap along a variable."""
    axis, limit = by_variable.axis, limit_of(record)
    ends = ("", "") if axis is None else (f"{axis.low:.8g}", f"{axis.high:.8g}")
    drawn = svg.gaps(by_variable, limit, by_variable.top(limit), noun(record))
    above = f"points; the band holds all of it, {together(record)}"
    return Panel(GAP, svg.plot(drawn, f"Gap by {name}: {reported}.", *ends, kind), small=above, axis=name)


def cells(p: Point, digits: int, rounded: bool = False) -> tuple[str, str, str, str]:
    """What the model says, what happened, the gap and its range, as the tables write them."""
    low, high = num.signed_range(p.low, p.high, digits)
    rows = p.rows if rounded else 0
    says, happened = (num.reported_rate(rate, rows, digits) for rate in (p.predicted, p.observed))
    return says, happened, num.reported_gap(p.gap, rows, digits), f"{low} to {high}"


def points_table(name: str, by_variable: ByVariable, digits: int) -> Table:
    """The numbers of a curve at all of its points; the readout walks along them."""
    written = by_variable.axis.written if by_variable.axis is not None else str
    rows = []
    for p in by_variable.line:
        x = float(p.x or 0.0)
        text = written(x)
        rows.append((Cell(say(text), "" if _reads(text, x) else f"{x:.8g}"), *cells(p, digits)))
    return number_table("", (name, *HEADS), rows)


def _reads(text: str, x: float) -> bool:
    try:
        return abs(float(text.replace(",", "").replace(num.MINUS, "-")) - x) <= 1e-3 * abs(x)
    except ValueError:
        return False


# ---- the levels of one variable ----


def _levels(record: AuditRecord, by_variable: ByVariable, digits: int) -> Table:
    limit, who, times = limit_of(record), noun(record), together(record)
    top, kept = levels_top(by_variable), by_variable.levels[:MOST_LEVELS]
    columns = (
        Column(say("Level")),
        Column(lines("Share of", who), "r hide"),
        Column(lines("Model says,", "in 100"), "r hide"),
        Column(lines("Happened,", "in 100"), "r hide"),
        Column(lines("Gap and its range,", f"{num.MINUS}{top:g} to +{top:g} points"), "c"),
        Column(lines("Gap (range),", "points"), "r iv"),
        Column(lines("The model", "says"), "vd"),
    )
    rows = []
    for p in kept:
        says, happened, gap, band = cells(p, digits, published(record))
        people = Cell(say(share(by_variable, p)), f"{p.density:.3g}")
        picture = Cell(sort=f"{p.gap:.6g}", picture=svg.level(p, top, limit))
        verdict = Cell(say(TOO[p.side]), style=p.side)
        rows.append(row(say(literal(named(p))), people, says, happened, picture, f"{gap} ({band})", verdict))
    return Table(columns, tuple(rows), _levels_caption(by_variable, top, times), "forest levels")


def _levels_caption(by_variable: ByVariable, top: float, times: str) -> str:
    first = (
        "Without a place on the axis."
        if by_variable.axis
        else (f"The ranges of all levels are simultaneous: they hold {times}.")
    )
    cut = any(max(-p.low, p.high) * 100 > top for p in by_variable.levels[:MOST_LEVELS])
    beyond = " A range that reaches the edge of the picture goes on beyond it." if cut else ""
    more = len(by_variable.levels) - MOST_LEVELS
    rest = f" The {num.count(more)} levels not in this table are in the JSON of this audit." if more > 0 else ""
    return first + beyond + rest


# ---- in words ----


@dataclass(frozen=True, slots=True)
class Off:
    """Where the model is shown to be off: the largest gap there, its side, and the place in words."""

    size: float
    side: str
    where: str
    wide: bool = False

    def by(self, digits: int) -> str:
        return f"by {'up to ' if self.wide else ''}{num.nearest(self.size, digits)} points"


def heading(by_variable: ByVariable, digits: int) -> str:
    """What is found along a variable, in a few words: the title of its figure, and the line that opens it."""
    first = None if unclear(by_variable) else worst_off(by_variable)
    return _headed(first, len(_off(by_variable)), digits)


def _headed(first: Off | None, places: int, digits: int) -> str:
    if first is None:
        return NOWHERE_OFF
    more = f"; {cardinal(places - 1)} more" if places > 1 else ""
    return f"{SIDES[first.side]} for {clipped(first.where, 40)}, {first.by(digits)}{more}"


def worst_off(by_variable: ByVariable) -> Off | None:
    """Where the model is shown to be farthest off along a variable; None where it is not."""
    return max(_off(by_variable), key=lambda o: o.size, default=None)


def unclear(by_variable: ByVariable) -> bool:
    """Whether the test of the whole curve found nothing; bins in place of a curve are not tested."""
    return "alpha" in by_variable.settings and by_variable.p_value > float(str(by_variable.settings["alpha"]))


def _off(by_variable: ByVariable) -> list[Off]:
    """Where the model is shown to be off, along the axis and then by level."""
    out = []
    if by_variable.axis is not None:
        written = by_variable.axis.written
        for run in by_variable.runs:
            size = max(abs(p.gap) for p in by_variable.line if p.x is not None and run.low <= p.x <= run.high)
            low, high = written(run.low), written(run.high)
            out.append(Off(size, run.side, low if low == high else f"{low} to {high}", low != high))
    return out + [Off(abs(p.gap), p.side, named(p)) for p in by_variable.levels if p.side != "unclear"]


def finding(by_variable: ByVariable, digits: int) -> Text:
    """What the figure shows: each stretch where the band excludes zero, with its largest gap."""
    if unclear(by_variable):
        return say("At no value of ", variable_name(by_variable.variable), " is the model shown to be off. ")
    off = _off(by_variable)
    if not off:
        whole = " departs from zero as a whole, but at no single value far enough to be shown off there. "
        return say("The error by ", variable_name(by_variable.variable), whole)
    out: list[str | Span] = ["The model "]
    for side in ("low", "high"):
        reported = [o for o in off if o.side == side]
        if reported:
            first = len(out) == 1
            out += ["" if first else ", and ", TOO[side]]
            out += (
                [" at ", variable_name(by_variable.variable), " "]
                if first and by_variable.axis is not None
                else [" for "]
            )
            each = [f"{clipped(o.where, 40)} ({o.by(digits)})" for o in reported[:NAMED]]
            more = len(reported) - NAMED
            out.append(f"{', '.join(each)} and {cardinal(more)} more" if more > 0 else joined(each))
    everywhere = by_variable.axis is None and len(off) == len(by_variable.levels)
    return say(*out, ". " if everywhere else "; elsewhere it is not shown to be off. ")


def further(by_variable: ByVariable, digits: int) -> str:
    return " ".join(t for t in (_worst(by_variable, digits), _one_side(by_variable), _masked(by_variable)) if t)


def _worst(by_variable: ByVariable, digits: int) -> str:
    s = by_variable.settings
    if s.get("worst_gap") is None or s.get("worst_low") is None:
        return ""
    low, high = float(str(s["worst_low"])), float(str(s["worst_high"]))
    label, at = str(s.get("worst_label")), s.get("worst_at")
    if by_variable.axis is not None and at is not None:
        where = by_variable.axis.written(float(str(at)))
    else:
        levels = (p for p in by_variable.levels if p.label == label or (at is not None and p.x == at))
        where = next(map(named, levels), shown(label))
    gap = num.gap(float(str(s["worst_gap"])), digits)
    start = f"The largest gap is estimated as {gap} points, at {clipped(where, 40)}"
    if low <= 0.0:
        return f"{start}; adjusted for looking everywhere, the largest is at most {num.upper_bound(high)}."
    span = f"{num.lower_bound(low)} to {num.upper_bound(high)}"
    return f"{start}; adjusted for looking everywhere, the largest is {span}."


def _one_side(by_variable: ByVariable) -> str:
    side = {"over": "overpredicts", "under": "underpredicts"}.get(str(by_variable.settings.get("consistent")))
    everywhere = "at every value shown here" if by_variable.axis is not None else "for every level shown here"
    return f"As estimated, the model {side} {everywhere}." if side else ""


def _masked(by_variable: ByVariable) -> str:
    if not by_variable.masked:
        return "Drawn from the 1st to the 99th percentile." if by_variable.axis is not None else ""
    if by_variable.axis is None:
        levels = "One level is" if by_variable.masked == 1 else f"{capital(cardinal(by_variable.masked))} levels are"
        return f"{levels} left out: too small, or too few expected events or non-events."
    n = len(by_variable.points) + by_variable.masked
    return (
        f"Drawn from the 1st to the 99th percentile; {num.count(by_variable.masked)} of {num.count(n)} points are "
        "left out: too few near them, or too few expected events or non-events."
    )


def reading(by_variable: ByVariable) -> str:
    reported = num.p_value(by_variable.p_value, draws=by_variable.draws)
    what = "the whole curve" if by_variable.axis is not None else "all levels simultaneously"
    return f"Test of {what}: {reported}. Gaps include the overall gap."


ON_A_MAP = 9  # of a category on its map: the others are in the JSON
GAPS = "Gap, points"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a map is farthest off: the stretch or level in words, and its extreme point."""

    # `where` and `at`: the whole stretch, and its extreme point; equal for a level or a single point.
    where: str
    at: str
    point: Point
    sign: int  # 1 where more happens than the model says
    least: float  # how far from zero the band of the extreme point stays
    people: int  # nearest to the points of the stretch
    adjusted: float  # p-value of the extreme point, allowing for all points of its map


@dataclass(frozen=True, slots=True)
class Map:
    """One map, what it shows farthest off if anything, of how many places, and the decimals its numbers need."""

    by_variable: ByVariable
    worst: Place | None
    places: int
    digits: int


def maps(record: AuditRecord) -> tuple[Map, ...]:
    """The maps of one variable each, over all scores together, the one that is farthest off first."""
    gap, made = record.estimates.get("gap"), []
    for name, curve in record.family("local_bias").items():
        if curve.columns.get("gap") and len(curve.settings["axes"]) == 1 and "group" not in curve.columns:
            by_variable = by_variable_map(name, curve, None if gap is None else float(gap.value))
            result = regions(curve)
            worst = _place(by_variable, curve, result[0]) if result else None
            made.append(Map(by_variable, worst, len(result), digits_of(by_variable.across)))
    return tuple(sorted(made, key=lambda m: (-m.worst.least if m.worst else 0.0, m.by_variable.variable)))


def worst(made: tuple[Map, ...], alpha: float) -> Map | None:
    """The map that is farthest off, if it is shown to be allowing for all maps."""
    off = (m for m in made if m.worst is not None and m.worst.adjusted * len(made) <= alpha)
    return next(off, None)


def _place(by_variable: ByVariable, curve: Curve, region: Mapping[str, Any]) -> Place:
    c, span = curve.columns, region["span"][0]
    i = next(k for k, v in enumerate(c["label"]) if v == region["label"] and c["gap"][k] == region["gap"])
    label = str(region["label"])
    where = at = next((named(p) for p in by_variable.levels if p.label == label), shown(label))
    if span["kind"] != "category" and span["low"] is not None and by_variable.axis is not None:
        write = by_variable.axis.written
        low, high, at = (write(in_units(span, v)) for v in (span["low"], span["high"], c["x"][i]))
        where = low if low == high else f"{low} to {high}"
    least, most = float(region["low"]), float(region["high"])
    rates = float(c["predicted"][i]), float(c["observed"][i]), float(region["gap"])
    rows = next((p.rows for p in by_variable.levels if p.label == label), 0)
    point, sign = Point(None, label, *rates, least, most, rows=rows), int(region["sign"])
    adjusted = float(region["p_adjusted"])
    return Place(where, at, point, sign, least if sign > 0 else -most, int(region["people"]), adjusted)


# ---- in words ----


def map_heading(m: Map) -> str:
    """What a map shows, in a few words: the title of its figure, and the line that opens it."""
    p = m.worst
    first = None if p is None else Off(abs(p.point.gap), "low" if p.sign > 0 else "high", p.where, p.where != p.at)
    return _headed(first, m.places, m.digits)


def farthest(record: AuditRecord, made: tuple[Map, ...]) -> Text:
    result = worst(made, float(record.settings["alpha"]))
    if result is None or result.worst is None:
        of = f"any of {cardinal(len(made))} group variables" if len(made) > 1 else "the group variable"
        return say(f"At no value of {of} is the model shown to be off, {UNPROVEN}.")
    place, point, digits = result.worst, result.worst.point, result.digits
    alone = place.at == place.where
    name = f"{clipped(shown(result.by_variable.variable), 40)}{' = ' if alone else ' '}{clipped(place.where, 48)}"
    start = say("Farthest off by a group variable: ", Span(clipped(name), "name"), ". ")
    people = f"{num.count(place.people)} {noun(record)}" if place.people >= mask_of(record) else ""
    says, happened, *_ = cells(point, digits, published(record))
    low, high = num.signed_range(point.low, point.high, digits)
    side, by = "underpredicted" if place.sign > 0 else "overpredicted", num.nearest(abs(point.gap), digits)
    reported = f"the model says {says} in 100, {happened} happened: {side} by {by} points (band {low} to {high})"
    if alone:
        return say(*start, f"There {reported}.", f" {people}." if people else "")
    among = f"Of these {people}, those" if people else "Those"
    return say(*start, f"{among} at {place.at} are farthest off: {reported}.")


# ---- as a picture ----


def map_figure(record: AuditRecord, m: Map) -> Details:
    by_variable, reported = m.by_variable, map_heading(m)
    name, tested = clipped(shown(by_variable.variable)), f"{reading(by_variable).partition('. Gaps')[0]}."
    if by_variable.p_value == 0.0:
        tested = "An outcome happened that a score of 0 or 1 called impossible."
    left = max(len(by_variable.levels) - ON_A_MAP, 0)
    more = f"{left} more levels are in the JSON of this audit. " if left else ""
    drawn = Figure(
        (), (), say(f"{more}{tested}"), table=_map_levels(m, published(record)) if by_variable.levels else None
    )
    if by_variable.axis is not None:
        drawn = replace(
            drawn,
            panels=(_gaps(record, by_variable, name, reported, "flat"),),
            caption=(*finding(by_variable, m.digits), *drawn.caption),
            numbers=(points_table(name, by_variable, m.digits),),
        )
    return Details(reported, (drawn,), by_variable.anchor, name, 3, where=PAGE)


def _map_levels(m: Map, rounded: bool) -> Table:
    top = levels_top(m.by_variable)
    kept = sorted(m.by_variable.levels, key=lambda p: -max(p.low, -p.high, 0.0))[:ON_A_MAP]
    columns = (
        Column(say("Level")),
        Column(say(f"{GAPS}, {num.MINUS}{top:g} to +{top:g}"), "c"),
        Column(say(f"{GAPS} (range)"), "r iv"),
        Column(say("The model says"), "vd"),
    )
    rows = []
    for p in m.by_variable.levels:
        if p in kept:
            *_, gap, band = cells(p, m.digits, rounded)
            verdict = Cell(say(TOO[p.side]), style=p.side)
            rows.append(row(say(literal(named(p))), Cell(picture=svg.level(p, top)), f"{gap} ({band})", verdict))
    return Table(columns, tuple(rows), style="forest levels")
