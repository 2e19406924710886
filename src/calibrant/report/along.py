"""The curve along one variable, from the record's columns to points in its own units; no sentences here."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from calibrant.report.line import Stretch, stretches
from calibrant.report.order import Side, side
from calibrant.report.spans import visible
from calibrant.report.units import Axis, axis_of, level
from calibrant.results import Curve

MOST_LEVELS = 24  # of a category in its table; the others are in the JSON only
LEAST_WHOLE = 1.0  # per cent: a smaller share is "under 1%"


@dataclass(frozen=True, slots=True)
class Point:
    """One drawn point or level; probabilities are fractions.

    Parameters
    ----------
    x : float or None
        Value in the variable's units, days since 1970 for a date.
    label : str
        The level; of a point of a curve its value.
    density : float
        People per unit of the variable; of a level its share.
    """

    x: float | None
    label: str
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    density: float
    stretch: int

    @property
    def side(self) -> Side:
        """What the simultaneous band shows here."""
        return side(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Along:
    """A curve, or levels, or a curve and the level of missing values."""

    variable: str
    anchor: str
    line: tuple[Point, ...]
    levels: tuple[Point, ...]
    axis: Axis | None
    shift: float
    p_value: float
    draws: int
    masked: int
    runs: tuple[Stretch, ...]
    settings: dict[str, object]

    @property
    def points(self) -> tuple[Point, ...]:
        """Every point and level."""
        return (*self.line, *self.levels)


def along_of(variable: str, curve: Curve) -> Along:
    """Return what the record holds along a variable."""
    c, s = curve.columns, curve.settings
    numbered = s.get("kind") == "levels"
    keys = ("x", "label", "predicted", "observed", "gap", "gap_low", "gap_high", "density", "stretch")
    found = [Point(*row) for row in zip(*(c[k] for k in keys), strict=True)]
    line = tuple(p for p in found if p.stretch >= 0 and p.x is not None)
    levels = tuple(p for p in found if p.stretch < 0 or p.x is None)
    xs = [float(p.x) for p in line if p.x is not None]
    return Along(
        variable=variable,
        anchor=anchor_of("curve", variable),
        line=line,
        levels=tuple(in_order(levels, numbered)),
        axis=axis_of(xs, bool(s.get("date"))) if xs else None,
        shift=float(s["shift"]),
        p_value=float(s["p_value"]),
        draws=int(s["draws"]),
        masked=int(s["masked"]),
        runs=runs_of(line),
        settings=dict(s),
    )


def anchor_of(kind: str, variable: str) -> str:
    """Return the id of what is shown of a variable: readable letters and a short hash."""
    words = re.sub(r"[^a-z0-9]+", "-", variable.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(variable.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return "-".join(w for w in (kind, words, digest) if w)


def runs_of(line: tuple[Point, ...]) -> tuple[Stretch, ...]:
    """Return where the band of a line excludes zero."""
    columns = {
        "x": tuple(p.x for p in line),
        "gap_low": tuple(p.low for p in line),
        "gap_high": tuple(p.high for p in line),
        "stretch": tuple(p.stretch for p in line),
    }
    return tuple(stretches(Curve(method="diagnose.variable_curve", columns=columns), "x"))


def in_order(levels: tuple[Point, ...], numbered: bool) -> list[Point]:
    """Return levels in order of their numbers; those of a category with the ones shown to be off first."""
    if numbered and any(p.x is not None for p in levels):
        return sorted(levels, key=lambda p: (p.x is None, p.x or 0.0))
    return sorted(levels, key=lambda p: (-max(p.low, -p.high, 0.0), -p.density))


def named(point: Point) -> str:
    """Return the name of a level."""
    text = level(float(point.x)) if point.x is not None else visible(point.label)
    return text if text.strip() else "(blank)"


def share(along: Along, point: Point) -> str:
    """Return the share of people of a level in whole per cent; "–" where it would tell how many are left out.

    With levels left out for being small, the share of the smallest level shown would tell theirs.
    """
    if along.masked and point is min(along.levels, key=lambda p: p.density):
        return "–"
    percent = point.density * 100
    return "under 1%" if percent < LEAST_WHOLE else f"{percent:.0f}%"
