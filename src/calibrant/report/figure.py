"""The reliability figure: pictures, readouts and numbers, from a record to plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.along import Bin, Point, along_score, bins_of
from calibrant.report.checks import bins_off, together
from calibrant.report.order import limit_of
from calibrant.report.places import Window, digits_of
from calibrant.report.wording import DIRECTIONS, curve_finding

EVERY = 5  # of the points of the curve, the one the table shows
SAYS = svg.Mark("100%", "100%", 36, "end", "", "the model says")
HAPPENED = svg.Mark("0", "0", -10, "start", "", "happened")
ABOVE = (
    svg.Mark("0", "0", -10, "start", "wide", "points; above zero: happened more often than the model says"),
    svg.Mark("0", "0", -10, "start", "narrow", "points (above 0: happened more often)"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers under the figure: a heading for each column, and cells as text."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def figure(record: AuditRecord) -> Mapping[str, Any]:
    """Return the pictures, the readouts and the numbers of the reliability figure."""
    limit, bins = limit_of(record), bins_of(record.curve("bins"))
    smooth = bool(record.curve("reliability").columns.get("gap"))
    along = along_score(bins, record.curve("reliability"))
    low, high = (f"{v:g}" for v in along.across)
    top, digits = along.top(limit), digits_of(along.across)
    finds = finding(record)
    cross = replace(svg.cross(bins, along.across), marks=(HAPPENED, SAYS))
    gaps = replace(svg.gaps(along, limit, top), marks=(*ABOVE, SAYS), ruled=True)
    of_cross = "What happened against what the model says, one dot a range of the score."
    of_gaps = f"Gap between what happened and what the model says, along the score. {finds}"
    return {
        "line": smooth,
        "cross": svg.plot(cross, of_cross, low, high, "cross"),
        "gaps": svg.plot(gaps, of_gaps, low, high, "score"),
        "across": (low, high),
        "limit": "" if limit is None else num.limit_points(limit),
        "finds": finds,
        "reading": reading(smooth, along.across, any(max(-p.low, p.high) * 100 > top for p in along.line)),
        "tables": _tables(along.line if smooth else (), bins, digits),
        "readouts": {
            "x": [round(100 * float(p.x or 0.0), 4) for p in along.line],
            "t": [_readout(p, "band " if smooth else "", _bin_at(bins, p), digits) for p in along.line],
        },
        "start": len(along.line) * 4 // 5,
        "band": (
            f"band holding the whole curve, {together(record)}"
            if smooth
            else f"range of each gap; all {len(bins)} hold together, {together(record)}"
        ),
    }


def finding(record: AuditRecord) -> str:
    """Return what the figure shows, in a sentence."""
    bins, curve = bins_of(record.curve("bins")), record.curve("reliability")
    if curve.columns.get("gap"):
        along = along_score(bins, curve)
        return curve_finding(along.runs, along.p_value, record, digits_of(along.across))
    off = bins_off(record)
    if not off:
        return f"In none of {len(bins)} ranges of the score is the model shown to be off."
    return f"In {off} of {len(bins)} ranges of the score the model is shown to be off."


def reading(smooth: bool, across: Window, cut: bool) -> str:
    """Return how to read the figure, with an example from its own axis."""
    at, gap = across[0] + 0.7 * (across[1] - across[0]), 0.02 * (across[1] - across[0])
    of = 100 if gap >= 1 else 1_000 if gap >= 0.1 else 10_000
    happened = num.count(round((at + gap) * of / 100))
    each = "the band" if smooth else "a range"
    words = (
        f"Reading the figure: at {at:g}%, a gap of +{gap:g} means that it happened to {happened} of {num.count(of)} "
        f"such people. Where {each} lies wholly on one side of zero, the model is shown to be off there."
    )
    more = f" {each.capitalize()} that reaches the edge of the figure goes on beyond it." if cut else ""
    return words + more.replace("The band that", "A band that")


def _readout(p: Point, word: str, people: Bin, digits: int) -> str:
    """Return a point of the figure as a sentence, with the people of the range of the score it lies in."""
    _, happened, gap, band = cells(p, digits)
    at = num.nearest(float(p.x or 0.0), digits)
    told = f"Where the model says {at}%, {happened} in 100 happened: {gap} points ({word}{band}), {DIRECTIONS[p.side]}"
    return f"{told}. {num.count(people.rows)} people from {_percent(people.start)} to {_percent(people.end)}."


def _percent(score: float) -> str:
    return f"{score * 100:.3g}%"


def _bin_at(bins: Sequence[Bin], p: Point) -> Bin:
    if isinstance(p, Bin):
        return p
    return next((b for b in bins if float(p.x or 0.0) <= b.end), bins[-1])


def _tables(line: Sequence[Point], bins: Sequence[Bin], digits: int) -> tuple[Table, ...]:
    heads = ("Score, %", "Model says, in 100", "Happened, in 100", "Gap, points", "Range of the gap, points", "People")
    ranges = tuple((f"{b.start * 100:.3g} to {b.end * 100:.3g}", *cells(b, digits), num.count(b.rows)) for b in bins)
    whole = Table(f"Every range of the score; all {len(bins)} ranges of the gap hold together.", heads, ranges)
    if not line:
        return (whole,)
    some = line[:: max(1, min(EVERY, len(line) // 5))]
    rows = tuple((num.nearest(float(p.x or 0.0), digits), *cells(p, digits)) for p in some)
    return Table("The curve, at some of its points.", (*heads[:4], "Band, points"), rows), whole


def cells(p: Point, digits: int) -> tuple[str, str, str, str]:
    """Return what the model says, what happened, the gap and its range, as the tables write them."""
    low, high = num.signed_range(p.low, p.high, digits)
    says, happened = num.nearest(p.predicted, digits), num.nearest(p.observed, digits)
    return says, happened, num.gap(p.gap, digits), f"{low} to {high}"
