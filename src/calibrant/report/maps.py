"""The bias maps on the page: each as a curve or levels, and the place where the model is farthest off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.along import Along, along_map, in_units, named
from calibrant.report.places import digits_of
from calibrant.report.ranking import shown
from calibrant.report.spans import clipped
from calibrant.report.wording import cardinal
from calibrant.results import Curve


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
    digits: int


def maps(record: AuditRecord) -> tuple[Map, ...]:
    """Return the maps of one variable each, the one that is farthest off first."""
    out = []
    for name, curve in record.family("local_bias").items():
        if curve.columns.get("gap") and len(curve.settings["axes"]) == 1 and "stratum" not in curve.columns:
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

    shift, found = record.estimates.get("shift"), regions(curve)
    along = along_map(name, curve, None if shift is None else float(shift.value))
    return Map(along, _place(along, curve, found[0]) if found else None, len(found), digits_of(along.across))


def _place(along: Along, curve: Curve, region: Any) -> Place:
    c, span = curve.columns, region["span"][0]
    i = next(k for k, v in enumerate(c["label"]) if v == region["label"] and c["gap"][k] == region["gap"])
    where = at = _level(along, str(region["label"]))
    if span["kind"] != "category" and span["low"] is not None and along.axis is not None:
        write = along.axis.written
        low, high, at = (write(in_units(span, v)) for v in (span["low"], span["high"], c["x"][i]))
        where = low if low == high else f"{low} to {high}"
    return Place(
        variable=shown(along.variable),
        where=where,
        at=at,
        sign=int(region["sign"]),
        predicted=float(c["predicted"][i]),
        observed=float(c["observed"][i]),
        bias=float(region["gap"]),
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
