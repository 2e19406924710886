"""What a picture of a curve is made of: panels of marks over rows, on axes in the reader's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Literal, TypeAlias

from calibrant.report import numbers as num
from calibrant.report.findings import side
from calibrant.report.places import BAND, HIGH, LINE, QUIET, digits_of, window_of
from calibrant.report.wording.terms import DIRECTIONS
from calibrant.results import Curve

Row: TypeAlias = dict[str, Any]  # a line of a table: text, numbers, truth values or None
Size: TypeAlias = tuple[int, int]
Kind: TypeAlias = Literal["number", "log", "symlog", "logit", "date", "names", "cells"]
Sign: TypeAlias = Literal["band", "line", "dot", "range", "bar", "cell", "frame", "ruler", "text", "tick", "near"]
WIDTH, HEIGHT, SMALL, STRIP = 560, 240, 260, 34  # pixels: a panel, one of several, and the people under it
DAY = 86_400_000  # milliseconds, of which dates are made, from the first of 1970
GAP, SAYS = "observed minus predicted, points", "predicted probability"
ORANGE = "Orange: shown to be off."
POINTS = ("gap", "low", "high", "predicted", "observed")  # columns of fractions, which are drawn in points
TIPS = ("at", "predicted rate", "observed rate", "off by", "band", "finding", "effective rows")


@dataclass(frozen=True)
class Axis:
    """An axis: of numbers, dates, names under each other, or cells that whole numbers begin."""

    title: str | None = None
    kind: Kind = "number"
    unit: str = ""  # behind each number; "+" writes the sign of those above zero, "none" no number
    ends: Sequence[float] | None = None  # all that marks have, without it
    names: Sequence[object] = ()  # in their order; of cells, the name of each
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)  # lines that stand for a name
    ticks: Sequence[float] = ()
    count: int = 5  # of numbers on a vertical one, about
    step: int = 0  # pixels of a name


@dataclass(frozen=True)
class Mark:
    """One kind of sign for each row: the columns of its places, and how it looks."""

    kind: Sign
    x: str = "x"  # "" for a ruler or a cell along the whole axis
    y: str = "y"
    x2: str = ""
    y2: str = ""
    colour: str = LINE  # "heat": by the gap
    size: float = 2.0  # a line's width, a dot's area
    opacity: float = 1.0
    dash: tuple[int, ...] = ()
    name: str = ""  # in a legend
    rows: Sequence[Row] | None = None  # those of the panel, without it
    only: str = ""  # a column that is true where it is drawn
    off: bool = False  # orange where the column `off` is true
    tips: Sequence[str] = ()  # columns that are read where it is pointed at; "near" is the nearest row
    text: str = ""  # the column of what is written
    aside: Size = (0, 0)  # pixels to the right and down
    align: str = "center"
    joined: str = "linear"
    most: float = 0.0  # points of the strongest colour, which text on it must stand out from


@dataclass(frozen=True)
class Panel:
    """Marks on two axes, with what stands over, under and at the side of them on the same axes."""

    rows: Sequence[Row]
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    size: Size = (WIDTH, HEIGHT)
    title: str = ""
    legend: bool = False  # whether a chart has one of its own
    over: tuple[Panel, ...] = ()
    under: tuple[Panel, ...] = ()
    side: Panel | None = None


@dataclass(frozen=True)
class Figure:
    """Panels of one kind, under a title that is the finding and lines on what they show."""

    title: str
    under: Sequence[str]
    panels: Sequence[Panel]
    columns: int = 2
    together: bool = True  # panels may lie over each other on one set of axes
    left_out: str = ""  # a line on what is not drawn, which a picture without the lines of `under` has too


# ---- rows ----


class Words(Formatter):
    """Templates with numbers as reports write them: "{gap:g2}" is a gap with two decimals."""

    def format_field(self, value: object, spec: str) -> str:
        how, digits = WRITTEN.get(spec[:1]), [int(d) for d in spec[1:] if d.isdigit()]
        return str(format(value, spec) if how is None else how(value, *digits))


WRITTEN: Row = {"n": num.count, "p": num.nearest, "g": num.gap, "d": num.decimals, "u": num.upper_bound}


def rows(curve: Curve, words: Mapping[str, str], points: Sequence[str] = POINTS) -> list[Row]:
    """The rows of a curve, columns of fractions in points, with what their tooltips say."""
    out = []
    for values in zip(*curve.columns.values(), strict=True):
        own = dict(zip(curve.columns, values, strict=True))
        stated = {k: Words().vformat(v, (), own) for k, v in words.items()}
        out.append({k: 100 * v if k in points and v is not None else v for k, v in own.items()} | stated)
    return out


def gaps(curve: Curve) -> list[Row]:
    """The points of a curve of gaps, with which are shown to be off."""
    c = curve.columns
    d = digits_of(window_of([v for k in ("predicted", "observed") for v in c[k]]))
    at = "{label}" if "label" in c else f"{{{'x' if 'x' in c else 'predicted'}:p{d}}}%"
    words = {"at": at, "predicted rate": f"{{predicted:p{d}}} in 100", "observed rate": f"{{observed:p{d}}} in 100"}
    out = rows(curve, words | {"off by": f"{{gap:g{d}}} points", "effective rows": "{rows:n}"})
    for r, low, high in zip(out, c["low"], c["high"], strict=True):
        which = side(low, high)
        r |= {"band": f"{' to '.join(num.signed_range(low, high, d))} points", "off": which != "unclear"}
        r["finding"] = DIRECTIONS[which]
    return out


def by_group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {g: [r for r in rows if r["group"] == g] for g in dict.fromkeys(r["group"] for r in rows)}


def reach(rows: Sequence[Row], zero: float | None = 0.0) -> list[float]:
    """The ends of an axis: zero, all gaps, and all ranges but a few that are far wider."""
    wide = [r for r in rows if r["low"] is not None]
    usual = 2.5 * sorted(r["high"] - r["low"] for r in wide)[len(wide) * 3 // 4] if wide else 0.0
    kept = [r[k] for r in wide if r["high"] - r["low"] <= usual for k in ("low", "high")]
    kept += [v for v in (zero, *(r["gap"] for r in rows)) if v is not None]
    edge = 0.05 * (max(kept) - min(kept) or 1.0)
    return [min(kept) - edge, max(kept) + edge]


def ends(values: Sequence[float]) -> tuple[float, float] | None:
    """The ends of an axis that holds these; None of a single place, which is no stretch."""
    low, high = min(values), max(values)
    return (low, high) if low < high else None


# ---- marks ----


def ruler(
    at: float | Sequence[float],
    way: str = "y",
    colour: str = QUIET,
    size: float = 1.0,
    dash: tuple[int, ...] = (),
    name: str = "",
) -> Mark:
    """A line across the whole picture, at 0 of the vertical axis `y` say."""
    rows, (x, y) = at if isinstance(at, Sequence) else [at], ("", "ruler") if way == "y" else ("ruler", "")
    return Mark("ruler", x, y, colour=colour, size=size, dash=dash, name=name, rows=[{"ruler": v} for v in rows])


def limits(curve: Curve, y: Axis, way: str) -> list[Mark]:
    """The limit to either side of no gap, where it is in view."""
    limit, (low, high) = curve.settings.get("limit"), y.ends or (0.0, 0.0)
    seen = [] if limit is None else [v for v in (-100.0 * limit, 100.0 * limit) if low <= v <= high]
    return [ruler(seen, way, dash=(5, 4), name="limit")] if seen else []


def line(curve: Curve, rows: Sequence[Row], x: Axis, y: Axis, size: Size) -> Panel:
    """A line of gaps in its band, orange where it is shown to be off; the point nearest to a pointer is reported."""
    band = Mark("band", y="low", y2="high", colour=BAND, opacity=0.75, name=f"{level_of(curve)} band")
    off = Mark("dot", y="gap", colour=HIGH, size=26, only="off", name="shown to be off")
    rulers = [ruler(0.0), *limits(curve, y, "y")]
    marks = [band, *rulers, Mark("line", y="gap", name="gap"), off, Mark("near", y="gap", tips=TIPS)]
    return Panel(rows, x, y, marks, size)


def dots(curve: Curve, way: str, gaps: Axis, tips: Sequence[str] = TIPS, quiet: str = LINE) -> list[Mark]:
    """A dot with its range for each name `at`, orange where it is shown to be off; gaps lie along `way`."""
    level, other = level_of(curve), "y" if way == "x" else "x"
    look: Row = {other: "at", "colour": quiet, "off": True, "tips": tips}
    ends: Row = {way: "low", f"{way}2": "high", "name": f"{level} range"}
    signs = [Mark("range", **ends, **look), Mark("dot", **look | {way: "gap", "size": 60})]
    return [ruler(0.0, way), *limits(curve, gaps, way), *signs]


# ---- words ----


def level_of(curve: Curve) -> str:
    """The level of the ranges, such as "95%"."""
    s = curve.settings
    level = s.get("level", None if "alpha" not in s else 1.0 - float(s["alpha"]))
    return "" if level is None else f"{num.percent(float(level))}%"


def counted(points: int) -> str:
    return f"{num.count(points)} {'point' if points == 1 else 'points'}"


def tested(curve: Curve) -> str:
    s = curve.settings
    if s.get("contradicted") or not s["p_value"]:
        return "a probability of 0 or 1 was wrong"
    return num.p_value(float(s["p_value"]), draws=int(s["draws"]))
