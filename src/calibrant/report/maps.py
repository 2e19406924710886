"""The bias maps on the page: each as a curve or levels, and the place where the model is farthest off."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.along import Along, Point, anchor_of, in_order, named, runs_of
from calibrant.report.charts import Window, window_of
from calibrant.report.figure import digits_of
from calibrant.report.ranking import shown
from calibrant.report.spans import clipped
from calibrant.report.units import EPOCH, axis_of, level
from calibrant.report.wording import cardinal
from calibrant.results import Curve

NUMBERS = ("predicted", "observed", "bias", "bias_low", "bias_high")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a map is farthest off, in words: the stretch or level, and its extreme point.

    Parameters
    ----------
    where, at : str
        The whole stretch, and its extreme point; equal for a level or a single point.
    sign : int
        1 where more happens than the model says.
    least : float
        How far from zero the band of the extreme point stays.
    people : int
        Nearest to the points of the stretch.
    adjusted : float
        p-value of the extreme point, allowing for all points of its map.
    """

    variable: str
    where: str
    at: str
    sign: int
    predicted: float
    observed: float
    bias: float
    low: float
    high: float
    least: float
    people: int
    adjusted: float


@dataclass(frozen=True, slots=True)
class Map:
    """One map, what it shows farthest off if anything, of how many places, and the decimals its numbers need."""

    along: Along
    worst: Place | None
    places: int
    across: Window
    digits: int


def maps(record: AuditRecord) -> tuple[Map, ...]:
    """Return the maps of one variable each, the one that is farthest off first."""
    out = []
    for name, curve in record.family("local_bias").items():
        if curve.columns.get("bias") and len(curve.settings["axes"]) == 1 and "stratum" not in curve.columns:
            out.append(_map(name, curve, record))
    return tuple(sorted(out, key=lambda m: (-m.worst.least if m.worst else 0.0, m.along.variable)))


def worst(record: AuditRecord) -> Place | None:
    """Return the place that is farthest off over all maps, and shown to be off allowing for all maps."""
    made = maps(record)
    places = (m.worst for m in made)
    alpha = float(record.settings["alpha"])
    return next((p for p in places if p is not None and p.adjusted * len(made) <= alpha), None)


def _map(name: str, curve: Curve, record: AuditRecord) -> Map:
    from calibrant.diagnose.bias_map import regions

    along = along_of_map(name, curve, record)
    across = window_of([v * 100 for p in along.points for v in (p.predicted, p.observed)])
    found = regions(curve)
    return Map(along, _place(along, curve, found[0]) if found else None, len(found), across, digits_of(across))


def along_of_map(name: str, curve: Curve, record: AuditRecord) -> Along:
    """Return a bias map as what is drawn along a variable."""
    axis, c, s = curve.settings["axes"][0], curve.columns, curve.settings
    whole = float(s["n"])
    at = {v: i for i, v in enumerate(axis["places"])}
    crowd = _crowd(axis, c)
    line, levels, before = [], [], None
    stretch = -1
    for i, (x, label) in enumerate(zip(c["x"], c["label"], strict=True)):
        says, happened, gap, low, high = (float(c[k][i]) for k in NUMBERS)
        if axis["kind"] == "category" or x is None:
            share = float(c["people"][i]) / whole
            levels.append(Point(_value(axis, x), str(label), says, happened, gap, low, high, share, -1))
            continue
        stretch += before is None or at[x] != before + 1
        before = at[x]
        line.append(Point(_number(axis, x), str(label), says, happened, gap, low, high, crowd[i], stretch))
    numbered = any(p.x is not None for p in levels)
    held = tuple(line)
    shift = record.estimates.get("shift")
    return Along(
        variable=name,
        anchor=anchor_of("map", name),
        line=held,
        levels=tuple(in_order(tuple(levels), numbered)),
        axis=axis_of([float(p.x or 0.0) for p in held], axis["kind"] == "date") if held else None,
        shift=0.0 if shift is None else float(shift.value),
        p_value=float(s["p_value"]),
        draws=int(s["draws"]),
        masked=int(s["masked"]),
        runs=runs_of(held),
        settings={"alpha": s["alpha"]},
    )


def _number(axis: Any, x: Any) -> float:
    """Return a place as a number; a date in days since 1970."""
    return float((date.fromisoformat(x) - EPOCH.date()).days) if axis["kind"] == "date" else float(x)


def _value(axis: Any, x: Any) -> float | None:
    """Return the number that a level is, if every level is written as one."""
    names = [str(v) for v in axis["places"] if v not in (None, "missing")]
    if x is None or x == "missing" or not all(_is_number(v) for v in names):
        return None
    return float(x)


def _is_number(text: str) -> bool:
    try:
        return level(float(text)) == text.replace("-", num.MINUS)
    except (ValueError, OverflowError):
        return False


def _crowd(axis: Any, c: Any) -> list[float]:
    """Return the density of people in the unit of the axis; on a scale of ranks it falls where values lie apart."""
    share = [float(v) for v in c["share"]]
    if axis["scaling"] != "rank" or axis["kind"] == "category":
        return share
    xs = [_number(axis, x) for x in c["x"] if x is not None]
    out = list(share)  # a missing value comes last
    for i, x in enumerate(xs):
        near = [abs(x - xs[j]) for j in (i - 1, i + 1) if 0 <= j < len(xs)]
        out[i] /= max(sum(near) / len(near), 1e-300) if near else 1.0
    return out


def _place(along: Along, curve: Curve, region: Any) -> Place:
    c, span = curve.columns, region["span"][0]
    i = next(k for k, v in enumerate(c["label"]) if v == region["label"] and c["bias"][k] == region["bias"])
    where = at = _level(along, str(region["label"]))
    if span["kind"] != "category" and span["low"] is not None and along.axis is not None:
        write = along.axis.written
        low, high, at = (write(_number(span, v)) for v in (span["low"], span["high"], c["x"][i]))
        where = low if low == high else f"{low} to {high}"
    return Place(
        variable=shown(along.variable),
        where=where,
        at=at,
        sign=int(region["sign"]),
        predicted=float(c["predicted"][i]),
        observed=float(c["observed"][i]),
        bias=float(region["bias"]),
        low=float(region["low"]),
        high=float(region["high"]),
        least=float(region["low"] if region["sign"] > 0 else -region["high"]),
        people=int(region["people"]),
        adjusted=float(region["p_adjusted"]),
    )


def _level(along: Along, label: str) -> str:
    return next((named(p) for p in along.levels if p.label == label), shown(label))


def heading(m: Map) -> str:
    """Return in a few words what a map shows, for the line that opens it."""
    if m.worst is None:
        return "not shown to be off anywhere"
    p, alone = m.worst, m.worst.where in {named(v) for v in m.along.levels}
    more = f"; {cardinal(m.places - 1)} more" if m.places > 1 else ""
    by = f"by {'up to ' if p.where != p.at else ''}{num.nearest(abs(p.bias), m.digits)} points"
    return f"too {'little' if p.sign > 0 else 'much'} {'for' if alone else 'at'} {clipped(p.where, 40)}, {by}{more}"


def numbers_of(place: Place, digits: int) -> str:
    """Return what the model says at a place, what happened, and by how much it is off."""
    low, high = num.signed_range(place.low, place.high, digits)
    says, happened = num.nearest(place.predicted, digits), num.nearest(place.observed, digits)
    side = "too low" if place.sign > 0 else "too high"
    by = f"{side} by {num.nearest(abs(place.bias), digits)} points (band {low} to {high})"
    return f"the model says {says} in 100, {happened} happened: {by}"
