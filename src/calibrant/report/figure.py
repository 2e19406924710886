"""The reliability figure: pictures, readouts and numbers, from a record to plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import charts, line
from calibrant.report import numbers as num
from calibrant.report.checks import bins_off, together
from calibrant.report.order import limit_of, side
from calibrant.report.wording import DIRECTIONS, curve_finding

EVERY = 5  # of the points of the curve, the one the table shows
Rows = Sequence[Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers under the figure: a heading for each column, and cells as text."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def figure(record: AuditRecord) -> Mapping[str, Any]:
    """Return the pictures, the readouts and the numbers of the reliability figure."""
    ranges, curve = record.curve("bins"), record.curve("reliability")
    limit, across = limit_of(record), charts.window(ranges)
    bins, smooth = charts.points(ranges), curve.columns.get("gap", ())
    digits = digits_of(across)
    points = line.rows(curve) if smooth else bins
    at = "score" if smooth else "predicted"
    cut = line.cut_off(curve, limit, across) if smooth else charts.cut_off(ranges, limit)
    return {
        "line": bool(smooth),
        "classic": charts.classic(ranges),
        "pictures": tuple((kind, frame, _drawn(record, frame, across)) for kind, frame in FRAMES),
        "square": charts.SQUARE,
        "across": tuple(f"{v:g}" for v in across),
        "limit": "" if limit is None else num.limit_points(limit),
        "finds": finding(record),
        "reading": reading(bool(smooth), across, cut),
        "tables": _tables(record, points, bins, digits),
        "readouts": {"x": [round(r[at], 4) for r in points], "t": readouts(record, points, bins, digits)},
        "start": len(points) * 4 // 5,
        "band": _band(record, len(bins)),
    }


FRAMES = (("wide", charts.WIDE), ("narrow", charts.NARROW))


def _drawn(record: AuditRecord, frame: charts.Frame, across: charts.Window) -> str:
    if record.curve("reliability").columns.get("gap"):
        return line.smoothed(record.curve("reliability"), record.curve("bins"), limit_of(record), across, frame)
    return charts.gaps(record.curve("bins"), limit_of(record), frame)


def _band(record: AuditRecord, bins: int) -> str:
    if record.curve("reliability").columns.get("gap"):
        return f"band holding the whole curve, {together(record)}"
    return f"range of each gap; all {bins} hold together, {together(record)}"


def digits_of(across: charts.Window) -> int:
    """Return the decimals of what is read off the figure: more where it shows a small part of the scores."""
    span = across[1] - across[0]
    return 1 if span > 20 else 2 if span > 2 else 3


def finding(record: AuditRecord) -> str:
    """Return what the figure shows, in a sentence."""
    curve = record.curve("reliability")
    if curve.columns.get("gap"):
        digits = digits_of(charts.window(record.curve("bins")))
        return curve_finding(line.stretches(curve), float(curve.settings["p_value"]), record, digits)
    total = len(record.curve("bins").columns["gap"])
    off = bins_off(record)
    if not off:
        return f"In none of {total} ranges of the score is the model shown to be off."
    return f"In {off} of {total} ranges of the score the model is shown to be off."


def reading(smooth: bool, across: charts.Window, cut: bool) -> str:
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


def readouts(record: AuditRecord, points: Rows, bins: Rows, digits: int) -> list[str]:
    """Return each point of the figure as a sentence, with the people of the range of the score it lies in."""
    if not record.curve("reliability").columns.get("gap"):
        return [_readout(b, b["predicted"], "", b, digits) for b in bins]
    return [_readout(r, r["score"], "band ", _bin_at(bins, r["score"]), digits) for r in points]


def _readout(r: Mapping[str, float], at: float, word: str, people: Mapping[str, float], digits: int) -> str:
    low, high = num.signed_range(r["gap_low"] / 100, r["gap_high"] / 100, digits)
    told = f"Where the model says {num.nearest(at / 100, digits)}%, {num.nearest(r['observed'] / 100, digits)} in 100"
    words = f"{num.gap(r['gap'] / 100, digits)} points ({word}{low} to {high}), {DIRECTIONS[_side(r)]}"
    span = f"{people['low']:.3g}% to {people['high']:.3g}%"
    return f"{told} happened: {words}. {num.count(people['rows'])} people from {span}."


def _side(r: Mapping[str, float]) -> Any:
    return side(r["gap_low"], r["gap_high"])


def _bin_at(bins: Rows, score: float) -> Mapping[str, float]:
    return next((b for b in bins if score <= b["high"]), bins[-1])


def _tables(record: AuditRecord, points: Rows, bins: Rows, digits: int) -> tuple[Table, ...]:
    heads = ("Score, %", "Model says, in 100", "Happened, in 100", "Gap, points", "Range of the gap, points", "People")
    ranges = tuple((f"{b['low']:.3g} to {b['high']:.3g}", *_cells(b, digits), num.count(b["rows"])) for b in bins)
    whole = Table(f"Every range of the score; all {len(bins)} ranges of the gap hold together.", heads, ranges)
    if not record.curve("reliability").columns.get("gap"):
        return (whole,)
    some = points[:: max(1, min(EVERY, len(points) // 5))]
    rows = tuple((num.nearest(r["score"] / 100, digits), *_cells(r, digits)) for r in some)
    return Table("The curve, at some of its points.", (*heads[:4], "Band, points"), rows), whole


def _cells(r: Mapping[str, float], digits: int) -> tuple[str, str, str, str]:
    low, high = num.signed_range(r["gap_low"] / 100, r["gap_high"] / 100, digits)
    says, happened = (num.nearest(r[k] / 100, digits) for k in ("predicted", "observed"))
    return says, happened, num.gap(r["gap"] / 100, digits), f"{low} to {high}"
