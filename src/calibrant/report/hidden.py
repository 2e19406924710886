"""The section about error hidden in traits: the tests, and a map of each group variable, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import control, evidence, following, maps, searched, svg
from calibrant.report import numbers as num
from calibrant.report.along import Along, Point, levels_top, named
from calibrant.report.checks import together
from calibrant.report.figure import EVERY, Table, cells
from calibrant.report.order import MOST_ROWS, check_of, limit_of
from calibrant.report.ranking import floored, shown
from calibrant.report.spans import Span, Text, clipped, say, sentence
from calibrant.report.wording import cardinal

SHORT = 12  # variables in the table of evidence
MOST_LEVELS = 9  # of a category on its map: the others are in the JSON
ROOM = 250  # of the picture, less its margins, in pixels
GAPS = "Gap, points"


@dataclass(frozen=True, slots=True)
class Row:
    """One variable in the table of evidence."""

    name: str
    p: str
    status: str
    word: str
    where: str
    gap: str
    target: str


def hidden(record: AuditRecord) -> Mapping[str, Any]:
    """Return what was found among people with the same score, and where."""
    if evidence.local_test(record) is None and searched.strong_test(record) is None:
        return {"answer": (), "why": reason(record, evidence.LOCAL)}
    made = maps.maps(record)
    lines = rows(record)
    return {
        "answer": answer(record),
        "why": (),
        "untested": untested(record),
        **_search(record),
        "worst": worst(record),
        "rows": lines[:SHORT],
        "more": lines[SHORT:],
        "rest": f"Show {num.count(len(lines) - SHORT)} more",
        "note": evidence.note(record),
        "maps": tuple(figure(record, m, i == 0 and m.worst is not None) for i, m in enumerate(made)),
        "maps_note": maps_note(record, len(made)),
        "band": f"band holding all of a map, {together(record)}",
        "shift": _shift(record),
        "limit": "" if limit_of(record) is None else num.limit_points(limit_of(record) or 0.0),
    }


def _search(record: AuditRecord) -> Mapping[str, Any]:
    """Return the control chart, the rules and the variables that the search needs."""
    if searched.strong_test(record) is None:
        return {"search": False}
    chart = control.control(record)
    return {
        "search": True,
        "chart": chart,
        "no_chart": "" if chart else "No control chart: no model predicts an error for enough people to draw it.",
        "rules": searched.rules(record),
        "rules_heading": searched.rules_heading(record),
        "rules_note": searched.rules_note(record),
        **bars(record),
        "needs_note": searched.needs_note(record),
    }


def bars(record: AuditRecord) -> Mapping[str, Any]:
    """Return what the search loses without each variable, as bars on an axis that holds every range whole."""
    found = searched.needs(record)[: searched.MOST_VARIABLES]
    low = min((v for n in found for v in (0.0, n.low)), default=0.0)
    high = max((v for n in found for v in (n.lost, n.high, 1e-9)), default=1.0)

    drawn = tuple(
        {
            "name": n.name,
            "lost": f"{_percents(n.lost)}%",
            "range": f"{_percents(n.low)} to {_percents(n.high)}%",
            "word": n.word,
            "picture": svg.bar(n.lost, n.low, n.high, (low, high)),
        }
        for n in found
    )
    return {"needs": drawn, "needs_axis": f"{_percents(low)} to {_percents(high)}%"}


def _percents(share: float) -> str:
    text = num.nearest(share, 0)
    return "0" if text == f"{num.MINUS}0" else text


def answer(record: AuditRecord) -> Text:
    """Return the first line of "Is error hiding in a mix of traits?"."""
    local, strong = evidence.local_test(record), searched.strong_test(record)
    if strong is None:
        return evidence.answer(record)
    clause, p = searched.predicts(record), searched.told(record)
    if local is None:
        found = say(f"Yes: {clause} ({p}).")
        return found if record.found(strong) else say(searched.none_found(record))
    if record.found(local):
        unproven = "" if record.found(strong) else f", {evidence.UNPROVEN}"
        return say(*evidence.answer(record), f" {clause[:1].upper()}{clause[1:]}{unproven} ({p}).")
    by_trait = evidence.told(record)
    if record.found(strong):
        rest = f"Among people with the same score, no trait is shown to carry it by itself ({by_trait})."
        return say(f"Yes: {clause} ({p}). {rest}")
    return say(f"None was found, {evidence.UNPROVEN}: not by trait ({by_trait}), and {clause} ({p}).")


def reason(record: AuditRecord, code: str) -> Text:
    """Return in one line why a test was not run, and how to get it."""
    check = check_of(record, code)
    return say(
        sentence(check.reason) if check is not None and check.reason else "Error hidden in traits was not tested."
    )


def untested(record: AuditRecord) -> tuple[Text, ...]:
    """Return which of the two tests was not run, and why."""
    named = ((evidence.LOCAL, "test of each trait"), (searched.STRONG, "search for a mix of traits"))
    ran = {c.code for c in record.checks if c.outcome is not None}
    return tuple(say(f"The {what} was not made. ", *reason(record, code)) for code, what in named if code not in ran)


def worst(record: AuditRecord) -> Text:
    """Return the place that is farthest off over all maps, in words with numbers."""
    made = maps.maps(record)
    if not made:
        return ()
    place = maps.worst(record)
    if place is None:
        of = f"any of {cardinal(len(made))} group variables" if len(made) > 1 else "the group variable"
        return say(f"Nowhere along {of} is the model shown to be off by itself, {evidence.UNPROVEN}.")
    digits = next(m.digits for m in made if m.worst is place or m.worst == place)
    told = maps.numbers_of(place, digits)
    start = say("Farthest off along a group variable: ", _named(place), ". ")
    people = f"{num.count(place.people)} people" if place.people >= int(record.settings.get("mask", 20)) else ""
    if place.at == place.where:
        return say(*start, f"There {told}.", f" {people}." if people else "")
    among = f"Of these {people}, those" if people else "Those"
    return say(*start, f"{among} at {place.at} are farthest off: {told}.")


def _named(place: maps.Place) -> Span:
    """Return such as "age 62 to 71" or "marital: divorced"."""
    between = ": " if place.at == place.where else " "
    return Span(clipped(f"{clipped(place.variable, 40)}{between}{clipped(place.where, 48)}"), "name")


def maps_note(record: AuditRecord, n: int) -> str:
    """Return what the maps show and what their bands hold."""
    one = "The map below is of the group variable." if n == 1 else "One map a group variable, the farthest off first."
    each = (
        f"Each band holds all of its map, {together(record)}"
        if n > 1
        else f"The band holds all of it, {together(record)}"
    )
    more = (
        f"; the place named above is shown to be off allowing for {'both' if n == 2 else f'all {cardinal(n)}'} maps."
        if n > 1
        else "."
    )
    return f"{one} {each}{more if maps.worst(record) is not None else '.'}"


def _shift(record: AuditRecord) -> str:
    shift = record.estimates.get("shift")
    return "" if shift is None else num.gap(shift.value)


def rows(record: AuditRecord) -> tuple[Row, ...]:
    """Return the variables of the local test, the strongest evidence first, with the place of each map."""
    made, check = maps.maps(record), evidence.local_test(record)
    n = evidence.draws_of(check.outcome) if check is not None and check.outcome is not None else None
    by = {m.along.variable: m for m in made}
    return tuple(_row(e, by.get(e.variable), n) for e in evidence.carried(record)[:MOST_ROWS])


def _row(e: evidence.Evidence, drawn: maps.Map | None, n: int | None) -> Row:
    place = None if drawn is None else drawn.worst
    gap = ""
    if place is not None and drawn is not None:
        low, high = num.signed_range(place.low, place.high, drawn.digits)
        gap = f"{num.gap(place.bias, drawn.digits)} ({low} to {high})"
    return Row(
        name=evidence.SCORE_NAME if e.variable == evidence.SCORE else shown(e.variable),
        p=floored(e.adjusted, n),
        status="found" if e.found else "unfound",
        word="carries evidence" if e.found else "not shown",
        where="–" if drawn is None else "nowhere shown" if place is None else clipped(place.where, 60),
        gap=gap,
        target="" if drawn is None else drawn.along.anchor,
    )


def figure(record: AuditRecord, m: maps.Map, opened: bool) -> Mapping[str, Any]:
    """Return the picture of one map: a line in its band, or levels with their ranges."""
    along, limit = m.along, limit_of(record)
    wide, name, heading = levels_top(along), clipped(shown(along.variable)), maps.heading(m)
    made: dict[str, Any] = {
        "name": name,
        "anchor": along.anchor,
        "open": opened,
        "heading": heading,
        "finds": following.finding(along, m.digits) if along.axis is not None else (),
        "reading": _reading(along),
        "levels": tuple(_level(p, wide, m.digits) for p in _farthest(along)),
        "axis": f"{GAPS}, {num.MINUS}{wide:g} to +{wide:g}",
        "left": max(len(along.levels) - MOST_LEVELS, 0),
        "line": None,
    }
    if along.axis is not None:
        axis = along.axis
        some = along.line[:: max(1, min(EVERY, len(along.line) // 5))]
        made |= {
            "line": svg.plot(
                svg.gaps(along, limit, along.top(limit)),
                f"Gap along {name}: {heading}.",
                f"{axis.low:.8g}",
                f"{axis.high:.8g}",
                "flat",
            ),
            "table": Table(
                "The map, at some of its points.",
                (name, "Model says, in 100", "Happened, in 100", GAPS, "Band, points"),
                tuple((axis.written(float(p.x or 0.0)), *cells(p, m.digits)) for p in some),
            ),
        }
    return made


def _farthest(along: Along) -> tuple[Point, ...]:
    """Return the levels that are drawn: those farthest off, in the order of the map."""
    held = sorted(along.levels, key=lambda p: -max(p.low, -p.high, 0.0))[:MOST_LEVELS]
    return tuple(p for p in along.levels if p in held)


def _level(p: Point, top: float, digits: int) -> Mapping[str, str]:
    *_, gap, band = cells(p, digits)
    return {
        "name": named(p),
        "gap": f"{gap} ({band})",
        "picture": svg.level(p, top),
        "side": p.side,
        "word": following.TOO[p.side],
    }


def _reading(along: Along) -> str:
    """Return how the map was tested."""
    if along.p_value == 0.0:
        return "An outcome happened that a score of 0 or 1 called impossible."
    return following.reading(along).partition(". Gaps")[0] + "."
