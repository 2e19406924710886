"""Charts of curves: along the score, a variable, the width of a kernel, and maps of the gap, with their bands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, TypeAlias

import altair as alt

import calibrant.report.charts.parts as parts
from calibrant.errors import NotComputable
from calibrant.report import numbers as num
from calibrant.results import Curve

Axis: TypeAlias = Mapping[str, Any]  # of a map, as its settings tell it
OFF, ORANGE = "Where the probabilities are off", "Orange: shown to be off."
SMALL_HEIGHT, WITH = 180, 60  # pixels: a panel of several, and levels at the side of one
EDGE = 2.0**-15  # of the scores that a logit axis tells apart
PUBLISHED = {  # how it was made, how its points are joined, and what it is called
    "kernel": ("the kernel smoother", "linear", "Calibration function"),
    "total-variation": ("the total variation denoiser", "step-after", "Calibration function"),
    "bins": ("bins of equally many rows", "linear", "Reliability diagram"),
}
LONG = 60  # letters in all, from which the names of levels are written aslant


# ---- along the score ----


def reliability(curve: Curve) -> alt.VConcatChart:
    """The gap along the score in its band, over the densities of events and non-events."""
    logit, c = curve.settings.get("axis") == "logit", curve.columns
    reported = "100 / (1 + exp(-datum.value))" if logit else "100 * datum.value"
    label = alt.Axis(labelExpr=f"format({reported}, '.3~g') + '%'")
    x = alt.X("x:Q", title="the model says (logit axis)" if logit else "the model says", axis=label)
    rows = parts.rows_of(curve)
    for row in rows:
        row["x"] = _logit(row["x"]) if logit else row["x"]
    of = {"events": c["density_events"], "non-events": c["density_nonevents"]}
    crowd = [
        {"x": r["x"], "stretch": r["stretch"], "of": name, "density": d}
        for name, values in of.items()
        for r, d in zip(rows, values, strict=True)
    ]
    colour = parts.legend("of", dict(zip(of, (parts.HIGH, parts.QUIET), strict=True)))
    y = alt.Y("density:Q", title="density", axis=alt.Axis(tickCount=2))
    lower = parts.data(crowd).mark_line().encode(x=x, y=y, color=colour, detail="stretch:N")
    upper = parts.panel(rows, x, parts.gaps_by_variable(parts.reach(rows)), (parts.WIDTH, parts.HEIGHT))
    times, of_times = num.confidence(1 - float(curve.settings["alpha"]))
    under = [f"Band: {times} of {of_times} times. Whole curve: {parts.tested(curve)}. {ORANGE}"]
    made = alt.vconcat(upper, lower.properties(width=parts.WIDTH, height=60), title=parts.titled(OFF, under))
    return made.resolve_scale(x="shared")


def _logit(score: float) -> float:
    p = min(max(score, EDGE), 1.0 - EDGE)
    return math.log(p / (1.0 - p))


def calibration_function(curve: Curve) -> alt.LayerChart:
    """The event rate along the score as the published surrogates have it, over the line of a calibrated one."""
    c, how = curve.columns, PUBLISHED[curve.settings["method"]]
    rows = [
        {
            "x": x,
            "rate": rate,
            "the score": f"{num.nearest(x, 1)}%",
            "event rate": f"{num.nearest(rate, 1)} in 100",
            "rows": num.count(n),
        }
        for x, rate, n in zip(c["x"], c["rate"], c["rows"], strict=True)
    ]
    percent, whole = alt.Axis(format=".0%", tickCount=5), alt.Scale(domain=[0, 1])
    x = alt.X("x:Q", title="the score", axis=percent, scale=whole)
    y = alt.Y("rate:Q", title="event rate", axis=percent, scale=whole)
    even = parts.data([{"x": v, "rate": v} for v in (0, 1)]).mark_line(color=parts.QUIET, strokeDash=[4, 4])
    line = parts.data(rows).mark_line(color=parts.LINE, interpolate=how[1], point=curve.settings["method"] == "bins")
    tips = parts.tooltips(("the score", "event rate", "rows"))
    under = [f"As published, by {how[0]}. Dashed: a calibrated score."]
    return alt.layer(even.encode(x=x, y=y), line.encode(x=x, y=y, tooltip=tips)).properties(
        width=parts.HEIGHT, height=parts.HEIGHT, title=parts.titled(how[2], under)
    )


# ---- along a variable: rates, gap and people; levels; pairs ----


def variable(curve: Curve) -> parts.Drawn:
    """A variable curve: a line, levels, or a map of two variables; small multiples where there are groups."""
    kind, s, rows = curve.settings["kind"], curve.settings, parts.rows_of(curve)
    name = " and ".join(s["variable"]) if kind == "pair" else str(s["variable"])
    kept = {"curve": "Band:", "levels": "Lines:", "pair": "Outlined: off zero, at"}[kind]
    under = [
        f"{kept} {parts.level_of(curve)} for all points at once. All points: {parts.tested(curve)}.",
        "" if kind == "pair" else ORANGE,
        f"{s['masked']} points not drawn: too few people." if s["masked"] else "",
    ]
    title = parts.titled(f"By {name}: where the probabilities are off", under)
    if kind == "pair":
        return _pair(rows, *s["variable"]).properties(title=title)
    groups = list(dict.fromkeys(r["group"] for r in rows))
    ends, small, panels = parts.reach(rows), len(groups) > 1, []
    for number, group in enumerate(groups):
        mine = [r for r in rows if r["group"] == group]
        made = _levels(mine, name, ends, small) if kind == "levels" else _line(curve, mine, ends, small, number)
        panels.append((f"{s['by']} = {group}" if s["by"] else "", made))
    return parts.several(panels, 3).properties(title=title).resolve_scale(color="shared")


def _line(curve: Curve, rows: list[parts.Row], ends: Sequence[float], small: bool, number: int) -> parts.Drawn:
    """Return one group's pictures above each other, on the same horizontal axis, with its levels at their side."""
    drawn, alone = [r for r in rows if r["stretch"] >= 0], [r for r in rows if r["stretch"] < 0]
    for r in drawn:
        r["x"] = r["at"] if curve.settings["date"] else r["x"]
    kind = "date" if curve.settings["date"] else "number"
    places = zip(curve.columns["x"], curve.columns["label"], strict=True)
    values = [label if kind == "date" else x for x, label in sorted(v for v in places if v[0] is not None)]
    width, up = parts.SMALL if small else parts.WIDTH, parts.gaps_by_variable(ends, "points" if small else parts.UP)
    name = str(curve.settings["variable"])
    bare, below = (across(kind, values, title) for title in (None, name))
    stack = [parts.panel(drawn, bare, up, (width, 190), number), parts.strip(drawn, below, width)]
    if not small:
        stack.insert(0, _rates(curve, drawn, bare).properties(width=width, height=150))
    made = alt.vconcat(*stack, spacing=6).resolve_scale(x="shared")
    if not alone:
        return made
    names = alt.X("at:N", sort=None, title=None, axis=alt.Axis(labelAngle=0))
    missing = parts.dots(alone, names, parts.gaps_by_variable(ends, "points"), "y").properties(width=WITH, height=190)
    return alt.hconcat(made, missing, spacing=4)


def across(
    kind: str,
    values: Sequence[object],
    title: str | None,
    column: str = "x",
    scale: str = "linear",
    way: parts.Way = "x",
) -> parts.Place:
    """The axis of a number, a date or the score, from the first of these values to the last.

    Without a title it has no labels: the axis under it has them.
    """
    channel, bare = alt.X if way == "x" else alt.Y, {} if title else {"labels": False, "ticks": False}
    ends: dict[str, object] = {"domain": [values[0], values[-1]], "nice": False}
    if kind == "date":
        axis = alt.Axis(format="%b %Y", tickCount=6, labelFlush=False, grid=False, **bare)
        return channel(f"{column}:T", title=title, scale=alt.Scale(type="utc", **ends), axis=axis)
    shown = {"labelExpr": "format(100 * datum.value, '~g') + '%'"} if kind == "score" else {}
    more = {"zero": False} if scale == "linear" else {}
    axis = alt.Axis(grid=False, **shown, **bare)
    return channel(f"{column}:Q", title=title, scale=alt.Scale(type=scale, **ends, **more), axis=axis)


def _rates(curve: Curve, rows: list[parts.Row], x: parts.Place) -> alt.Chart:
    error = curve.settings["view"] == "confidence"
    names = ("error rate", "predicted error") if error else ("happened", "model says")
    values = [
        {"x": r["x"], "stretch": r["stretch"], "of": name, "rate": 100 - r[k] if error else r[k]}
        for name, k in zip(names, ("rate", "says"), strict=True)
        for r in rows
    ]
    legend = alt.Legend(orient="top", symbolType="stroke")
    scale = alt.Scale(domain=list(names), range=[parts.HIGH, parts.LINE])
    colour = alt.Color("of:N", title=None, sort=None, scale=scale, legend=legend)
    dash = alt.StrokeDash("of:N", scale=alt.Scale(domain=list(names), range=[[1, 0], [5, 3]]), legend=None)
    y = alt.Y("rate:Q", title="in 100", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    line = parts.data(values).mark_line(strokeWidth=2)
    return line.encode(x=x, y=y, color=colour, strokeDash=dash, detail=alt.Detail(["stretch:N"]))


def _levels(rows: list[parts.Row], name: str, ends: Sequence[float], small: bool) -> alt.LayerChart:
    for r in rows:
        r["share"] = f"{100 * r['density']:.2g}% of the rows"
    names = alt.Y("at:N", sort=None, title=name, axis=alt.Axis(labelLimit=220))
    made = parts.dots(rows, names, parts.gaps_by_variable(ends, way="x"), tips=(*parts.TIPS, "share"))
    return made.properties(width=parts.SMALL if small else parts.WIDTH, height=alt.Step(22))


def _pair(rows: list[parts.Row], first: str, second: str) -> alt.LayerChart:
    for r in rows:
        r["text"] = num.gap(r["gap"] / 100)
    most, wide = max(abs(r["gap"]) for r in rows), len({r["at"] for r in rows}) > 8
    look = {"labelAngle": -40} if wide else {"labelAngle": 0, "labelOverlap": False}
    x = alt.X("at:N", sort=None, title=first, axis=alt.Axis(labelLimit=110, **look))
    y = alt.Y("group:N", sort=None, title=second, axis=alt.Axis(labelLimit=200))
    tips = parts.tooltips(("group", *parts.TIPS))
    text = parts.data(rows).mark_text(fontSize=12).encode(x=x, y=y, text="text:N", tooltip=tips)
    pale = alt.condition(f"abs(datum.gap) > {0.6 * most}", alt.value(parts.PAPER), alt.value(parts.INK))
    made = alt.layer(parts.heat(rows, {"x": x, "y": y}, most), text.encode(color=pale))
    return made.properties(width=alt.Step(46 if wide else 82), height=alt.Step(30))


# ---- maps of the bias ----


def local_bias(curve: Curve) -> parts.Drawn:
    """A bias map: a line over where people are, or colours along two variables; groups are small multiples."""
    axes, s, c = curve.settings.get("axes", ()), curve.settings, curve.columns
    if "people" not in c:
        raise NotComputable("there is no chart of the bias at rows or at scattered points: use to_frame()")
    rows = parts.rows_of(curve)
    tall = max(c["share"])
    for r, share in zip(rows, c["share"], strict=True):
        r |= {"group": r.get("group", ""), "density": share / tall}
    two = len(axes) == 2
    if two:
        rows = _cells(rows, axes)
    names = " and ".join("the score" if a["kind"] == "score" else str(a["name"]) for a in axes)
    times, of = num.confidence(1 - float(s["alpha"]))
    under = [
        f"{'Outlined' if two else 'Orange'}: off, allowing for every point ({times} of {of} times no false one).",
        f"Whole map: {parts.tested(curve)}.",
        f"Blank: fewer than ten people near, at {num.count(s['masked'])} points." if two and s["masked"] else "",
    ]
    groups = list(dict.fromkeys(r["group"] for r in rows))
    ends, panels = parts.reach(rows), []
    wide = sorted((r["high"] - r["low"]) / 2 for r in rows)
    most = max([wide[len(wide) // 2], *(abs(r["gap"]) for r in rows if r["off"])])  # noise looks pale
    for number, group in enumerate(groups):
        mine = [r for r in rows if r["group"] == group]
        made = (
            _coloured(mine, axes, most, len(groups) > 1)
            if two
            else _along(mine, axes[0], ends, len(groups) > 1, number)
        )
        panels.append((group, made))
    return parts.several(panels, 2).properties(title=parts.titled(f"{OFF}, by {names}", under))


def _along(rows: list[parts.Row], axis: Axis, ends: Sequence[float], small: bool, number: int) -> parts.Drawn:
    size = (parts.SMALL, SMALL_HEIGHT) if small else (parts.WIDTH, parts.HEIGHT)
    up = parts.gaps_by_variable(ends, "points" if small else parts.UP)
    if axis["kind"] == "category":
        return _upright(rows, str(axis["name"]), up, size, axis["places"])
    there, lost = [r for r in rows if r["x"] is not None], [r | {"x": "missing"} for r in rows if r["x"] is None]
    made = []
    if there:
        order, run = {v: i for i, v in enumerate(axis["places"])}, 0
        for i, r in enumerate(there):
            run += i > 0 and order[r["x"]] != order[there[i - 1]["x"]] + 1
            r["stretch"] = run
        bare, below = (_units(axis, there, title) for title in (None, _name(axis)))
        stack = parts.panel(there, bare, up, size, number), parts.strip(there, below, size[0])
        made.append(alt.vconcat(*stack, spacing=4).resolve_scale(x="shared"))
    if lost:
        which = parts.gaps_by_variable(ends, None) if there else up
        made.append(_upright(lost, None, which, (WITH, size[1]), ["missing"]))
    return made[0] if len(made) == 1 else alt.hconcat(*made, spacing=8)


def _upright(
    rows: list[parts.Row], name: str | None, up: parts.Gaps, size: tuple[int, int], order: Sequence[object]
) -> alt.LayerChart:
    shown = [v for v in order if any(r["x"] == v for r in rows)]
    aslant = alt.Axis(labelAngle=-40 if sum(len(str(v)) for v in shown) > LONG else 0)
    made = parts.dots(rows, alt.X("x:N", title=name, sort=shown, axis=aslant), up, "y")
    return made.properties(width=size[0], height=size[1])


def _name(axis: Axis) -> str:
    return "the model says" if axis["kind"] == "score" else str(axis["name"])


def _units(
    axis: Axis,
    rows: Sequence[parts.Row],
    title: str | None,
    column: str = "x",
    ends: str = "",
    way: parts.Way = "x",
) -> parts.Place:
    """The axis of a map in the user's unit, of ranks as a logarithm; a wide cell reaches from `column` to `ends`."""
    values = sorted(r[k] for r in rows for k in (column, ends or column))
    if not ends and axis["kind"] != "date":
        places = [v for v in axis["places"] if v is not None]
        values = sorted([places[0], places[-1], *values])
    scale = "linear" if axis["scaling"] != "rank" else "log" if axis["kind"] != "date" and values[0] > 0 else "symlog"
    return across(axis["kind"], values, title, column, scale, way)


def _cells(rows: list[parts.Row], axes: Sequence[Axis]) -> list[parts.Row]:
    """The points that have a place on both axes, each with the edges of its cell: half-way to its neighbours."""
    pairs = list(zip(axes, ("x", "x2"), strict=True))
    kept = [r for r in rows if all(a["kind"] == "category" or r[k] is not None for a, k in pairs)]
    if not kept:
        raise NotComputable("every point of the map has a missing value: use to_frame()")
    for a, k in pairs:
        if a["kind"] == "category":
            continue
        values = [v for v in a["places"] if v is not None]
        dates = a["kind"] == "date"
        at = [float(date.fromisoformat(v).toordinal()) if dates else float(v) for v in values]
        edges: list[float | str] = [at[0], *((u + v) / 2 for u, v in pairwise(at)), at[-1]]
        if dates:
            edges = [date.fromordinal(int(e)).isoformat() for e in edges]
        order = {v: i for i, v in enumerate(values)}
        for r in kept:
            r[f"{k}a"], r[f"{k}b"] = edges[order[r[k]]], edges[order[r[k]] + 1]
    return kept


def _coloured(rows: list[parts.Row], axes: Sequence[Axis], most: float, small: bool) -> alt.LayerChart:
    place: dict[str, parts.Place | str] = {}
    ways: tuple[parts.Way, parts.Way] = ("x", "y")
    for a, k, way in zip(axes, ("x", "x2"), ways, strict=True):
        if a["kind"] == "category":
            shown = [v for v in a["places"] if any(r[k] == v for r in rows)]
            place[way] = (alt.X if way == "x" else alt.Y)(f"{k}:N", title=a["name"], sort=shown)
            continue
        place[way] = _units(a, rows, _name(a), f"{k}a", f"{k}b", way)
        place[f"{way}2"] = f"{k}b:{'T' if a['kind'] == 'date' else 'Q'}"
    length = parts.SMALL if small else 340
    return parts.heat(rows, place, most).properties(width=length, height=length)


# ---- along the width of a kernel ----


def kernel_tuning(curve: Curve) -> parts.Drawn:
    """Return how often a planted error is missed, a line for each family: by the whole test, by one statistic alone."""
    s = curve.settings
    error = f"{num.nearest(s['planted'], 1)} points off on average"
    where = f", in {s['bands']} bands by {s['by_variable']}" if s["by_variable"] is not None else ""
    under = [f"{num.count(s['n'])} rows, {error}{where}. Bars: 95% ranges from {num.count(s['runs'])} data sets."]
    columns = {"the whole test": ("type_2", "low", "high"), "KLCE alone": ("raw", "raw_low", "raw_high")}
    panels = [(title, _missed(curve, names)) for title, names in columns.items()]
    return parts.several(panels, 2).properties(title=parts.titled("Which kernel finds this error", under))


def _missed(curve: Curve, names: tuple[str, str, str]) -> alt.LayerChart:
    rows = [
        {
            "family": family,
            "width": width,
            "missed": 100 * missed,
            "low": 100 * low,
            "high": 100 * high,
            "misses": f"{num.nearest(missed, 0)} in 100 ({num.nearest(low, 0)} to {num.nearest(high, 0)})",
        }
        for family, width, missed, low, high in zip(
            *(curve.columns[k] for k in ("family", "width", *names)), strict=True
        )
    ]
    ticks = alt.Axis(values=sorted(set(curve.columns["width"])), grid=False)
    scale = alt.Scale(type="log", nice=False, padding=12)
    title, look = "width, in median distances", alt.Legend(orient="top", symbolType="stroke")
    y = alt.Y("missed:Q", title="missed, of 100", scale=alt.Scale(domain=[0, 100]))
    colours = alt.Scale(range=[parts.LINE, parts.HIGH, parts.QUIET])
    base = parts.data(rows).encode(
        x=alt.X("width:Q", title=title, scale=scale, axis=ticks),
        color=alt.Color("family:N", title=None, sort=None, legend=look, scale=colours),
    )
    dots = base.mark_point(filled=True, size=50, opacity=1).encode(
        y=y, tooltip=parts.tooltips(("family", "width", "misses"))
    )
    lines = base.mark_rule(opacity=0.5).encode(y="low:Q", y2="high:Q"), base.mark_line().encode(y=y)
    return alt.layer(*lines, dots).properties(width=parts.SMALL, height=parts.HEIGHT)
