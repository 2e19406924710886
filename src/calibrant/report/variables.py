"""The section about variables: the ranking and one figure a variable, from a record to plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import charts, following, inference, ranking, standing, traces
from calibrant.report import numbers as num
from calibrant.report.along import MOST_LEVELS, Along, Point, named, share
from calibrant.report.checks import together
from calibrant.report.figure import EVERY, Table, digits_of
from calibrant.report.order import MOST_ROWS, limit_of
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
    across = charts.window_of([v * 100 for p in along.points for v in (p.predicted, p.observed)])
    digits = digits_of(across)
    top = charts.reach([_in_points(p) for p in along.line], limit, across) if along.line else 0.0
    wide = _reach(along)
    made: dict[str, Any] = {
        "name": clipped(ranking.shown(along.variable)),
        "anchor": along.anchor,
        "heading": following.heading(along, digits),
        "finds": following.finding(along, digits),
        "further": following.further(along, digits),
        "reading": following.reading(along),
        "band": f"band holding all of it, {together(record)}",
        "limit": "" if limit is None else num.limit_points(limit),
        "shift": num.gap(along.shift, digits),
        "levels": tuple(_level(along, p, wide, digits) for p in along.levels[:MOST_LEVELS]),
        "caption": following.levels_caption(along, MOST_LEVELS, wide, together(record)),
        "heads": following.heads(wide),
        "zone": _zone(limit, wide),
        "line": None,
    }
    if along.axis is not None:
        axis = along.axis
        some = along.line[:: max(1, min(EVERY, len(along.line) // 5))]
        made |= {
            "line": traces.gaps(along, axis, limit, top),
            "classic": traces.classic(along, axis, across),
            "low": f"{axis.low:.8g}",
            "high": f"{axis.high:.8g}",
            "start": f"{_start(along):.6g}",
            "readouts": _readouts(along, digits),
            "table": Table(
                "The curve, at some of its points.",
                (clipped(ranking.shown(along.variable)), *HEADS),
                tuple((axis.written(float(p.x or 0.0)), *_cells(p, digits)) for p in some),
            ),
        }
    return made


def _in_points(p: Point) -> dict[str, float]:
    return {"gap": p.gap * 100, "gap_low": p.low * 100, "gap_high": p.high * 100}


def _reach(along: Along) -> float:
    """Return where the axis of levels ends, in points: every gap is inside, and every range that excludes zero."""
    shown_off = [max(abs(p.low), abs(p.high)) for p in along.levels if p.side != "unclear"]
    need = 100 * max([1.1 * abs(p.gap) for p in along.levels] + shown_off, default=0.0)
    return float(next((s for s in charts.STEPS if s >= max(need, 1.0)), charts.STEPS[-1]))


def _start(along: Along) -> float:
    """Return where the readout starts: at the largest gap of the curve."""
    return float(max(along.line, key=lambda p: abs(p.gap)).x or 0.0)


def _cells(p: Point, digits: int) -> tuple[str, str, str, str]:
    low, high = num.signed_range(p.low, p.high, digits)
    says, happened = num.nearest(p.predicted, digits), num.nearest(p.observed, digits)
    return says, happened, num.gap(p.gap, digits), f"{low} to {high}"


def _readouts(along: Along, digits: int) -> dict[str, Any]:
    """Return each point of the curve as cells, and the sentence they are told in."""
    who, *forms = following.readout(along.variable)
    written = along.axis.written if along.axis is not None else str
    cells = [(written(float(p.x or 0.0)), *_cells(p, digits), following.side_number(p)) for p in along.line]
    return {"x": [_short(float(p.x or 0.0)) for p in along.line], "n": who, "f": forms, "v": cells}


def _short(x: float) -> float:
    """Return a place as few characters can tell it."""
    near = float(f"{x:.7g}")
    return int(near) if near == int(near) else near


def _level(along: Along, p: Point, top: float, digits: int) -> Mapping[str, str]:
    """Return one level as a row: its numbers, and its gap on the axis."""
    says, happened, gap, band = _cells(p, digits)

    def at(v: float) -> str:
        return f"{50 + 50 * max(-1.0, min(1.0, v * 100 / top)):.4g}%"

    return {
        "name": named(p),
        "share": share(along, p),
        "says": says,
        "happened": happened,
        "gap": gap,
        "band": band,
        "low": at(p.low),
        "high": at(p.high),
        "at": at(p.gap),
        "side": p.side,
        "word": following.TOO[p.side],
        "sort": f"{p.gap:.6g}",
        "sort_share": f"{p.density:.3g}",
        "sort_says": f"{p.predicted:.6g}",
        "sort_happened": f"{p.observed:.6g}",
        "sort_low": f"{p.low:.6g}",
    }


def _zone(limit: float | None, top: float) -> tuple[str, str] | None:
    """Return the zone of the limit on the axis of the levels: where it starts and how wide it is."""
    if limit is None:
        return None
    half = 50 * min(limit * 100 / top, 1.0)
    return f"{50 - half:.4g}%", f"{2 * half:.4g}%"
