"""The section about variables: the ranking and one figure a variable, from a record to plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import following, inference, ranking, standing, svg
from calibrant.report import numbers as num
from calibrant.report.along import MOST_LEVELS, Along, Point, levels_top, named, share
from calibrant.report.checks import together
from calibrant.report.figure import EVERY, Table, cells
from calibrant.report.order import MOST_ROWS, limit_of
from calibrant.report.places import digits_of
from calibrant.report.spans import clipped

HEADS = ("Model says, in 100", "Happened, in 100", "Gap, points", "Band, points")


def variables(record: AuditRecord) -> Mapping[str, Any]:
    """Return the ranking and the figures, or why there is none."""
    found = ranking.ranked(record)
    if not found:
        return {"why": standing.absent(record, "variables"), "rows": (), "inference": inference.inference(record)}
    curves = ranking.curves(record)
    top, scale = ranking.axis_top(record), ranking.spark_scale(curves)
    rows = ranking.rows(record, curves, top, scale)
    total = num.count(len(found))
    return {
        "answer": following.answer(record),
        "caption": following.caption(record),
        "rows": rows,
        "short": rows[: ranking.SHORT] if len(rows) > ranking.SHORT else (),
        "all": f"the first {num.count(MOST_ROWS)} of {total}" if len(found) > MOST_ROWS else f"all {total}",
        "top": f"{top:g}",
        "drawn": bool(curves),
        "notes": following.notes(record, scale),
        "inference": inference.inference(record),
        "figures": tuple(figure(record, a) for a in curves.values()),
    }


def figure(record: AuditRecord, along: Along) -> Mapping[str, Any]:
    """Return the pictures, the readouts and the numbers of one variable."""
    limit = limit_of(record)
    digits, wide = digits_of(along.across), levels_top(along)
    name, heading = clipped(ranking.shown(along.variable)), following.heading(along, digits)
    made: dict[str, Any] = {
        "name": name,
        "anchor": along.anchor,
        "heading": heading,
        "finds": following.finding(along, digits),
        "further": following.further(along, digits),
        "reading": following.reading(along),
        "band": f"band holding all of it, {together(record)}",
        "limit": "" if limit is None else num.limit_points(limit),
        "shift": num.gap(along.shift or 0.0, digits),
        "levels": tuple(_level(along, p, wide, digits, limit) for p in along.levels[:MOST_LEVELS]),
        "caption": following.levels_caption(along, MOST_LEVELS, wide, together(record)),
        "heads": following.heads(wide),
        "line": None,
    }
    if along.axis is not None:
        axis = along.axis
        some = along.line[:: max(1, min(EVERY, len(along.line) // 5))]
        low, high = f"{axis.low:.8g}", f"{axis.high:.8g}"
        gaps, of = svg.gaps(along, limit, along.top(limit)), f"What the model says and what happened, along {name}."
        made |= {
            "line": svg.plot(gaps, f"Gap along {name}: {heading}.", low, high),
            "rates": svg.plot(svg.rates(along), of, low, high, "sq"),
            "low": low,
            "high": high,
            "start": f"{_start(along):.6g}",
            "readouts": _readouts(along, digits),
            "table": Table(
                "The curve, at some of its points.",
                (name, *HEADS),
                tuple((axis.written(float(p.x or 0.0)), *cells(p, digits)) for p in some),
            ),
        }
    return made


def _start(along: Along) -> float:
    """Return where the readout starts: at the largest gap of the curve."""
    return float(max(along.line, key=lambda p: abs(p.gap)).x or 0.0)


def _readouts(along: Along, digits: int) -> dict[str, Any]:
    """Return each point of the curve as cells, and the sentence they are told in."""
    who, *forms = following.readout(along.variable)
    written = along.axis.written if along.axis is not None else str
    told = [(written(float(p.x or 0.0)), *cells(p, digits), following.side_number(p)) for p in along.line]
    return {"x": [_short(float(p.x or 0.0)) for p in along.line], "n": who, "f": forms, "v": told}


def _short(x: float) -> float:
    """Return a place as few characters can tell it."""
    near = float(f"{x:.7g}")
    return int(near) if near == int(near) else near


def _level(along: Along, p: Point, top: float, digits: int, limit: float | None) -> Mapping[str, str]:
    """Return one level as a row: its numbers, and its gap on the axis."""
    says, happened, gap, band = cells(p, digits)
    return {
        "name": named(p),
        "share": share(along, p),
        "says": says,
        "happened": happened,
        "gap": gap,
        "band": band,
        "picture": svg.level(p, top, limit),
        "side": p.side,
        "word": following.TOO[p.side],
        "sort": f"{p.gap:.6g}",
        "sort_share": f"{p.density:.3g}",
        "sort_says": f"{p.predicted:.6g}",
        "sort_happened": f"{p.observed:.6g}",
        "sort_low": f"{p.low:.6g}",
    }
