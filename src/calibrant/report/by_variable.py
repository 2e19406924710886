"""A curve or map along the score or a variable, from the record's columns to points and regions; no sentences here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Any

from calibrant.report import numbers as num
from calibrant.report.findings import Side, side
from calibrant.report.places import EPOCH, Axis, Window, axis_of, end_of, level, reach, score_axis, window_of
from calibrant.results import Curve
from calibrant.sanitize import sanitize

MOST_LEVELS = 24  # of a category in its table; the others are in the JSON only
LEAST_WHOLE = 1.0  # percent: a smaller share is "under 1%"
FILLED = 0.86  # of the width of a bin, the bar in the strip of people: neighbours stay apart


@dataclass(frozen=True, slots=True)
class Point:
    """One drawn point or level; probabilities are fractions."""

    x: float | None  # value in the variable's units, days since 1970 for a date
    label: str  # the level; of a point of a curve its value
    predicted: float
    observed: float
    gap: float
    # `low` and `high`: limits of the gap.
    low: float
    high: float
    density: float = 0.0  # people per unit of the variable; of a level its share
    stretch: int = -1  # neighbours of one number are joined by a line; -1 for a level
    # People, rounded to multiples of five, of a set of people, such as a level; 0 of a point of a smooth line.
    rows: int = 0

    @property
    def side(self) -> Side:
        return side(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Bin(Point):
    """A range of the score, from `start` to `end`, and how many people it holds."""

    start: float = 0.0
    end: float = 0.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring points of a curve where the model is shown to be off to one side."""

    side: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bar:
    """People in the strip under a curve: from `low` to `high`, so many per cluster."""

    low: float
    high: float
    density: float


@dataclass(frozen=True, slots=True)
class ByVariable:
    """A curve, or levels, or a curve and the level of missing values."""

    # `variable` and `anchor`: its name, and the id of its part of the page.
    variable: str
    anchor: str
    line: tuple[Point, ...]
    levels: tuple[Point, ...]
    strip: tuple[Bar, ...]  # where the people are
    axis: Axis | None  # None where there is no line
    across: Window  # the part of the axis of probabilities that is shown, in points
    gap: float | None  # the overall gap, drawn for comparison
    p_value: float
    draws: int
    masked: int  # points left out because too few people are near them
    settings: Mapping[str, Any]

    @property
    def points(self) -> tuple[Point, ...]:
        return (*self.line, *self.levels)

    @property
    def runs(self) -> tuple[Stretch, ...]:
        """Where the band of the line excludes zero, from low values to high."""
        out: list[Stretch] = []
        before: tuple[str, int] | None = None
        for p, x in zip(self.line, xs_of(self.line), strict=True):
            here = (p.side, p.stretch)
            if p.side != "unclear":
                out.append(Stretch(p.side, out.pop().low if here == before else x, x))
            before = here
        return tuple(out)

    def top(self, limit: float | None) -> float:
        return reach([(p.gap, p.low, p.high) for p in self.line], limit, self.across)


# ---- along the score ----


def bins_of(curve: Curve) -> tuple[Bin, ...]:
    c = curve.columns
    ends = zip(c["x"], c["x_low"], c["x_high"], c["rows"], strict=True)
    return tuple(
        Bin(float(x), "", *_gap(c, i), 0.0, i, start=float(start), end=float(end), rows=int(rows))
        for i, (x, start, end, rows) in enumerate(ends)
    )


def _gap(c: Mapping[str, Sequence[Any]], i: int) -> tuple[float, float, float, float, float]:
    """What the model says at a point, what happened, the gap and its limits."""
    says, happened, gap, low, high = (float(c[k][i]) for k in ("predicted", "observed", "gap", "low", "high"))
    return says, happened, gap, low, high


def score_view(bins: Sequence[Bin], curve: Curve) -> ByVariable:
    """The smoothed curve along the score over the bins' people; where `curve` has no columns, the bins separately."""
    across = shown_of(bins)
    c, s = curve.columns, curve.settings
    line: tuple[Point, ...] = tuple(bins)
    if c.get("gap"):
        line = tuple(Point(float(x), "", *_gap(c, i), 0.0, int(c["stretch"][i])) for i, x in enumerate(c["x"]))
    return ByVariable(
        variable="score",
        anchor="reliability",
        line=line,
        levels=(),
        strip=tuple(_bar(b, across) for b in bins),
        axis=score_axis(across),
        across=across,
        gap=None,
        p_value=float(s.get("p_value", 1.0)),
        draws=int(s.get("draws", 0)),
        masked=0,
        settings=s,
    )


def _bar(b: Bin, across: Window) -> Bar:
    """The bar of a bin inside the part of the axis that is shown, at least a hundredth of it wide."""
    first, last = across[0] / 100, across[1] / 100
    least = (last - first) / 100
    left, right = max(first, b.start), min(last, b.end)
    half = 0.5 * max(right - left, least)
    middle = min(last - half, max(first + half, (left + right) / 2))
    return Bar(middle - half * FILLED, middle + half * FILLED, b.rows / (2 * half))


# ---- along a variable ----


def by_variable_of(variable: str, curve: Curve) -> ByVariable:
    c, s = curve.columns, curve.settings
    rows = zip(c["x"], c["label"], c["density"], c["stretch"], strict=True)
    results = [
        Point(x, label, *_gap(c, i), crowd, stretch, int(c["rows"][i]) if stretch < 0 else 0)
        for i, (x, label, crowd, stretch) in enumerate(rows)
    ]
    dates = bool(s.get("date"))
    made = _along("curve", variable, results, s, numbered=s.get("kind") == "levels", dates=dates)
    return replace(made, gap=float(s["gap"]), settings=dict(s))


def _along(
    kind: str, variable: str, points: Sequence[Point], s: Mapping[str, Any], *, numbered: bool, dates: bool
) -> ByVariable:
    """A curve of its points: those of a stretch are a line, the others levels."""
    line = tuple(p for p in points if p.stretch >= 0 and p.x is not None)
    return ByVariable(
        variable=variable,
        anchor=anchor_of(kind, variable),
        line=line,
        levels=in_order(tuple(p for p in points if p.stretch < 0 or p.x is None), numbered),
        strip=strip_of(line),
        axis=axis_of(xs_of(line), dates) if line else None,
        across=shown_of(points),
        gap=None,
        p_value=float(s["p_value"]),
        draws=int(s["draws"]),
        masked=int(s["masked"]),
        settings={"alpha": s["alpha"]},
    )


def by_variable_map(variable: str, curve: Curve, gap: float | None) -> ByVariable:
    """A bias map of one variable as a curve or levels; `gap` is the overall gap of everyone."""
    axis, c, s = curve.settings["axes"][0], curve.columns, curve.settings
    places, category = {v: i for i, v in enumerate(axis["places"])}, axis["kind"] == "category"
    crowd = _crowd(axis, c)
    points, before, stretch = [], None, -1
    for i, (x, label) in enumerate(zip(c["x"], c["label"], strict=True)):
        if category or x is None:
            people = float(c["people"][i])
            own = int(people) if people == c["rows"][i] else 0  # levels by themselves, not smoothed over others
            points.append(Point(_value(axis, x), str(label), *_gap(c, i), people / float(s["n"]), -1, own))
            continue
        stretch += before is None or places[x] != before + 1
        before = places[x]
        points.append(Point(in_units(axis, x), str(label), *_gap(c, i), crowd[i], stretch))
    numbered = any(p.stretch < 0 and p.x is not None for p in points)
    return replace(_along("map", variable, points, s, numbered=numbered, dates=axis["kind"] == "date"), gap=gap)


def in_units(axis: Mapping[str, Any], x: Any) -> float:
    """A place on the axis of a map as a number; a date in days since 1970."""
    return float((date.fromisoformat(x) - EPOCH.date()).days) if axis["kind"] == "date" else float(x)


def _value(axis: Mapping[str, Any], x: Any) -> float | None:
    """The number that a level is, if every level is written as one."""
    names = [str(v) for v in axis["places"] if v not in (None, "missing")]
    if x is None or x == "missing" or not all(_is_number(v) for v in names):
        return None
    return float(x)


def _is_number(text: str) -> bool:
    try:
        return level(float(text)) == text.replace("-", num.MINUS)
    except (ValueError, OverflowError):
        return False


def _crowd(axis: Mapping[str, Any], c: Mapping[str, Any]) -> list[float]:
    """The density of people in the unit of the axis; on a scale of ranks it falls where values lie apart."""
    share = [float(v) for v in c["share"]]
    if axis["scaling"] != "rank" or axis["kind"] == "category":
        return share
    xs = [in_units(axis, x) for x in c["x"] if x is not None]
    out = list(share)  # a missing value comes last
    for i, x in enumerate(xs):
        near = [abs(x - xs[j]) for j in (i - 1, i + 1) if 0 <= j < len(xs)]
        out[i] /= max(sum(near) / len(near), 1e-300) if near else 1.0
    return out


# ---- along either ----


def shown_of(points: Sequence[Point]) -> Window:
    return window_of([v for p in points for v in (p.predicted, p.observed)])


def xs_of(line: Sequence[Point]) -> list[float]:
    return [float(p.x) for p in line if p.x is not None]


def strip_of(line: Sequence[Point]) -> tuple[Bar, ...]:
    """The people along a line: each bar reaches half-way to its neighbours, unless they are far."""
    xs = xs_of(line)
    steps = [b - a for a, b in pairwise(xs)]
    if not steps:
        return ()
    least = min(steps)
    reaches = [least / 2, *(d / 2 if d <= 2.5 * least else least / 2 for d in steps), least / 2]
    return tuple(
        Bar(x - reaches[i], x + reaches[i + 1], p.density) for i, (x, p) in enumerate(zip(xs, line, strict=True))
    )


def in_order(levels: tuple[Point, ...], numbered: bool) -> tuple[Point, ...]:
    """Sort levels by their numbers; those of a category with the ones shown to be off first."""
    if numbered and any(p.x is not None for p in levels):
        return tuple(sorted(levels, key=lambda p: (p.x is None, p.x or 0.0)))
    return tuple(sorted(levels, key=lambda p: (-max(p.low, -p.high, 0.0), -p.density)))


def levels_top(by_variable: ByVariable) -> float:
    """Where the axis of levels ends, in points: every gap is inside, and every range that excludes zero."""
    shown_off = [max(abs(p.low), abs(p.high)) for p in by_variable.levels if p.side != "unclear"]
    need = 100 * max([1.1 * abs(p.gap) for p in by_variable.levels] + shown_off, default=0.0)
    return end_of(max(need, 1.0))


def anchor_of(kind: str, variable: str) -> str:
    """The id of what is shown of a variable: readable letters and a short hash."""
    words = re.sub(r"[^a-z0-9]+", "-", variable.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(variable.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return "-".join(w for w in (kind, words, digest) if w)


def named(point: Point) -> str:
    text = level(float(point.x)) if point.x is not None else sanitize(point.label)
    return text if text.strip() else "(blank)"


def share(by_variable: ByVariable, point: Point) -> str:
    """The share of people of a level in whole percent; "–" where it would say how many are left out.

    With levels left out for being small, the share of the smallest level shown would tell theirs.
    """
    if by_variable.masked and point is min(by_variable.levels, key=lambda p: p.density):
        return "–"
    percent = point.density * 100
    return "under 1%" if percent < LEAST_WHOLE else f"{percent:.0f}%"


At = tuple[int, ...]  # numbers of its places along the axes


def regions(curve: Curve) -> list[dict[str, Any]]:
    """The significant regions of a map on a grid, worst first: the one whose band stays farthest from zero.

    A region is a set of neighbouring points with ``p_adjusted <= alpha`` and a bias of one ``sign`` (1: more happens
    than the model says). Points are neighbours along a number, a date or the score; levels, missing values
    and scattered points stand alone. Edges reach about a bandwidth beyond where the model is off. A ``span`` states for
    each axis its ``name``, ``kind`` and ends in the user's unit, None for missing; ``people`` are the rows nearest
    to its points, ``rows`` the effective ones of its extreme point, whose simultaneous band is ``low`` to ``high``.
    """
    c = curve.columns
    axes = [a for a in curve.settings["axes"] if "places" in a]
    places = ("x", "x2")[: len(axes)]
    at = [{v: i for i, v in enumerate(a["places"])} for a in axes]
    group = c.get("group", (None,) * len(c["gap"]))
    results: dict[Any, dict[At, int]] = {}
    for i, p in enumerate(c["p_adjusted"]):
        if p <= curve.settings["alpha"] and c["gap"][i]:
            point = tuple(at[j][c[n][i]] for j, n in enumerate(places)) if axes else (i,)
            results.setdefault((group[i], 1 if c["gap"][i] > 0 else -1), {})[point] = i
    reported = [_reported(curve, g, sign, run) for (g, sign), points in results.items() for run in _runs(points, axes)]
    return sorted(reported, key=lambda r: (-_least(r), -abs(r["gap"]), str(r["group"]), r["label"]))


def _least(region: dict[str, Any]) -> float:
    """How far from zero the band of the extreme point stays."""
    return float(region["low"] if region["sign"] > 0 else -region["high"])


def _runs(points: dict[At, int], axes: Sequence[dict[str, Any]]) -> list[list[int]]:
    left, out = dict(points), []
    while left:
        front, run = [next(iter(left))], []
        while front:
            p = front.pop()
            if p not in left:
                continue
            run.append(left.pop(p))
            for j, a in enumerate(axes):
                if a["kind"] == "category" or a["places"][p[j]] is None:
                    continue
                for k in (p[j] - 1, p[j] + 1):
                    if 0 <= k < len(a["places"]) and a["places"][k] is not None:
                        front.append((*p[:j], k, *p[j + 1 :]))
        out.append(sorted(run))
    return out


def _reported(curve: Curve, group: str | None, sign: int, run: list[int]) -> dict[str, Any]:
    c = curve.columns
    worst = max(run, key=lambda i: (sign * (c["low"][i] if sign > 0 else c["high"][i]), -i))
    span = []
    for a, column in zip(curve.settings["axes"], ("x", "x2"), strict=False):
        if "places" in a:
            place: Callable[[Any], int] = list(a["places"]).index
            values = sorted((c[column][i] for i in run), key=place)
            span.append({"name": a["name"], "kind": a["kind"], "low": values[0], "high": values[-1]})
    return {
        "sign": sign,
        "group": group,
        "span": span,
        "people": sum(c["people"][i] for i in run) if "people" in c else 0,
        "points": len(run),
        **{k: c[k][worst] for k in ("label", "gap", "low", "high", "p_adjusted", "rows")},
    }
