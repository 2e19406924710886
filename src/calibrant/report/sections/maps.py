"""The bias maps on the page: each as a curve or levels, and the place where the model is farthest off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.by_variable import ByVariable, Point, by_variable_map, in_units, levels_top, named
from calibrant.report.document import PAGE, Cell, Column, Details, Figure, Panel, Row, Table
from calibrant.report.findings import limit_of, noun
from calibrant.report.places import digits_of
from calibrant.report.regions import regions
from calibrant.report.sections.curves import GAP, NOWHERE_OFF, SIDES, cells, finding, points_table, reading
from calibrant.report.spans import Span, Text, clipped, literal, say, shown
from calibrant.report.wording import TOO, UNPROVEN, cardinal, together
from calibrant.results import Curve

MOST_LEVELS = 9  # of a category on its map: the others are in the JSON
GAPS = "Gap, points"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a map is farthest off, in words: the stretch or level, and its extreme point."""

    variable: str
    # `where` and `at`: the whole stretch, and its extreme point; equal for a level or a single point.
    where: str
    at: str
    sign: int  # 1 where more happens than the model says
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    least: float  # how far from zero the band of the extreme point stays
    people: int  # nearest to the points of the stretch
    rows: int
    adjusted: float  # p-value of the extreme point, allowing for all points of its map


@dataclass(frozen=True, slots=True)
class Map:
    """One map, what it shows farthest off if anything, of how many places, and the decimals its numbers need."""

    by_variable: ByVariable
    worst: Place | None
    places: int
    digits: int


def maps(record: AuditRecord) -> tuple[Map, ...]:
    """The maps of one variable each, the one that is farthest off first."""
    kept = record.family("local_bias").items()
    drawn = (_map(name, c, record) for name, c in kept if c.columns.get("gap") and _alone(c))
    return tuple(sorted(drawn, key=lambda m: (-m.worst.least if m.worst else 0.0, m.by_variable.variable)))


def _alone(curve: Curve) -> bool:
    """Whether a map is of one variable, over all scores together."""
    return len(curve.settings["axes"]) == 1 and "group" not in curve.columns


def _map(name: str, curve: Curve, record: AuditRecord) -> Map:
    gap, result = record.estimates.get("gap"), regions(curve)
    by_variable = by_variable_map(name, curve, None if gap is None else float(gap.value))
    return Map(
        by_variable,
        _place(by_variable, curve, result[0]) if result else None,
        len(result),
        digits_of(by_variable.across),
    )


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
    return Place(
        variable=shown(by_variable.variable),
        where=where,
        at=at,
        sign=int(region["sign"]),
        predicted=float(c["predicted"][i]),
        observed=float(c["observed"][i]),
        gap=float(region["gap"]),
        low=float(region["low"]),
        high=float(region["high"]),
        least=float(region["low"] if region["sign"] > 0 else -region["high"]),
        people=int(region["people"]),
        rows=next((p.rows for p in by_variable.levels if p.label == label), 0),
        adjusted=float(region["p_adjusted"]),
    )


# ---- in words ----


def heading(m: Map) -> str:
    """Return in a few words what a map shows: the title of its figure, and the line that opens it."""
    if m.worst is None:
        return NOWHERE_OFF
    p = m.worst
    more = f"; {cardinal(m.places - 1)} more" if m.places > 1 else ""
    by = f"by {'up to ' if p.where != p.at else ''}{num.nearest(abs(p.gap), m.digits)} points"
    return f"{SIDES['low' if p.sign > 0 else 'high']} for {clipped(p.where, 40)}, {by}{more}"


def farthest(record: AuditRecord, made: tuple[Map, ...]) -> Text:
    """The place that is farthest off over all maps, in words with numbers."""
    result = worst(made, float(record.settings["alpha"]))
    if result is None or result.worst is None:
        of = f"any of {cardinal(len(made))} group variables" if len(made) > 1 else "the group variable"
        return say(f"At no value of {of} is the model shown to be off, {UNPROVEN}.")
    place, alone = result.worst, result.worst.at == result.worst.where
    name = f"{clipped(place.variable, 40)}{' = ' if alone else ' '}{clipped(place.where, 48)}"
    start = say("Farthest off by a group variable: ", Span(clipped(name), "name"), ". ")
    people = f"{num.count(place.people)} {noun(record)}" if place.people >= int(record.settings.get("mask", 20)) else ""
    says, happened = (num.reported_rate(v, place.rows, result.digits) for v in (place.predicted, place.observed))
    low, high = num.signed_range(place.low, place.high, result.digits)
    side, by = "underpredicted" if place.sign > 0 else "overpredicted", num.nearest(abs(place.gap), result.digits)
    reported = f"the model says {says} in 100, {happened} happened: {side} by {by} points (band {low} to {high})"
    if alone:
        return say(*start, f"There {reported}.", f" {people}." if people else "")
    among = f"Of these {people}, those" if people else "Those"
    return say(*start, f"{among} at {place.at} are farthest off: {reported}.")


# ---- as a picture ----


def figure(record: AuditRecord, m: Map) -> Details:
    """The picture of one map: a line in its band, or levels with their ranges."""
    by_variable, limit = m.by_variable, limit_of(record)
    name, reported = clipped(shown(by_variable.variable)), heading(m)
    tested = f"{reading(by_variable).partition('. Gaps')[0]}."
    if by_variable.p_value == 0.0:
        tested = "An outcome happened that a score of 0 or 1 called impossible."
    left = max(len(by_variable.levels) - MOST_LEVELS, 0)
    more = f"{left} more levels are in the JSON of this audit. " if left else ""
    drawn = Figure((), (), say(f"{more}{tested}"), table=_levels(m) if by_variable.levels else None)
    if by_variable.axis is not None:
        low, high = f"{by_variable.axis.low:.8g}", f"{by_variable.axis.high:.8g}"
        picture = svg.gaps(by_variable, limit, by_variable.top(limit), noun(record))
        gaps = svg.plot(picture, f"Gap by {name}: {reported}.", low, high, "flat")
        above = f"points; the band holds all of it, {together(record)}"
        drawn = replace(
            drawn,
            panels=(Panel(GAP, gaps, small=above, axis=name),),
            caption=(*finding(by_variable, m.digits), *drawn.caption),
            numbers=(points_table(name, by_variable, m.digits),),
        )
    return Details(reported, (drawn,), by_variable.anchor, name, 3, where=PAGE)


def _levels(m: Map) -> Table:
    """The levels farthest off, in the order of the map."""
    top = levels_top(m.by_variable)
    kept = sorted(m.by_variable.levels, key=lambda p: -max(p.low, -p.high, 0.0))[:MOST_LEVELS]
    columns = (
        Column(say("Level")),
        Column(say(f"{GAPS}, {num.MINUS}{top:g} to +{top:g}"), "c"),
        Column(say(f"{GAPS} (range)"), "r iv"),
        Column(say("The model says"), "vd"),
    )
    rows = tuple(_level(p, top, m.digits) for p in m.by_variable.levels if p in kept)
    return Table(columns, rows, style="forest levels")


def _level(p: Point, top: float, digits: int) -> Row:
    *_, gap, band = cells(p, digits)
    return Row(
        (
            Cell(say(literal(named(p)))),
            Cell(picture=svg.level(p, top)),
            Cell(say(f"{gap} ({band})")),
            Cell(say(TOO[p.side]), style=p.side),
        )
    )
