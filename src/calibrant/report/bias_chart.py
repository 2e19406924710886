"""Interactive charts of a bias map: a curve with its band, small multiples by stratum, or a heat map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from calibrant.errors import NotComputable
from calibrant.report import numbers as num
from calibrant.report.wording import DIRECTIONS
from calibrant.results import Curve

BLUE, PALE, GREY, ORANGE = "#27517a", "#b9cbdd", "#8a8f94", "#b03a06"
WIDTH, HEIGHT, SMALL, SIDE = 560, 240, 265, 46
UP = "happened minus model says, points"
TIPS = ("at", "off by", "band", "finding", "model says", "happened", "effective rows", "people nearest")
SIGN = "(datum.value > 0 ? '+' : '') + format(datum.value, '~g')"
LONG = 60  # letters in all, from which the names of levels are written aslant


def bias(curve: Curve) -> Any:
    """Return a bias map as an interactive Altair chart.

    One variable is a line in its simultaneous band over a strip of where people are; strata are small multiples on
    the same axes; two variables are a heat map, on which cells that are significant over the whole map are outlined.
    """
    axes = curve.settings.get("axes", ())
    if "people" not in curve.columns:
        raise NotComputable("there is no chart of the bias at rows or at scattered points: use to_frame()")
    return _heat(curve, axes) if len(axes) == 2 else _multiples(curve, axes[0])


def _lines(curve: Curve) -> list[dict[str, Any]]:
    """Return the points in points of probability, with what the tooltip says."""
    c, alpha, out = curve.columns, float(curve.settings["alpha"]), []
    tall = max(c["share"])
    for i, label in enumerate(c["label"]):
        low, high, b = c["low"][i], c["high"][i], c["gap"][i]
        a, z = num.signed_range(low, high, 1)
        found = c["p_adjusted"][i] <= alpha
        side = "unclear" if not found else "low" if b > 0 else "high"
        out.append(
            {
                "x": c["x"][i],
                "x2": c["x2"][i] if "x2" in c else None,
                "share": c["share"][i] / tall,
                "stratum": c["stratum"][i] if "stratum" in c else "",
                "off": found,
                "bias": 100 * b,
                "low": 100 * low,
                "high": 100 * high,
                "at": label,
                "off by": f"{num.gap(b)} points",
                "band": f"{a} to {z} points",
                "finding": DIRECTIONS[side],
                "effective rows": num.count(c["rows"][i]),
                "model says": f"{num.nearest(c['predicted'][i])}%",
                "happened": f"{num.nearest(c['observed'][i])} in 100",
                "people nearest": num.count(c["people"][i]),
            }
        )
    return out


def _multiples(curve: Curve, axis: Any) -> Any:
    import altair as alt

    lines = _lines(curve)
    strata = list(dict.fromkeys(line["stratum"] for line in lines))
    reach = _reach(lines)
    width = WIDTH if len(strata) == 1 else SMALL
    panels = []
    for number, s in enumerate(strata):
        mine = [line for line in lines if line["stratum"] == s]
        panel = _panel(alt, mine, axis, reach, width, HEIGHT if len(strata) == 1 else 180, number)
        panels.append(panel.properties(title=alt.TitleParams(s, fontSize=12, anchor="start")) if s else panel)
    whole = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=2)
    return whole.properties(title=_title(alt, curve, [axis]))


def _reach(lines: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Return the ends of the axis of biases: every estimate, and all but the widest tenth of the bands."""
    size = sorted(max(-line["low"], line["high"], 0.0) for line in lines)
    most = size[int(0.9 * (len(size) - 1))]
    most = max(
        1.04 * size[-1] if size[-1] <= 1.6 * most else most, 1.15 * max(abs(line["bias"]) for line in lines), 1.0
    )
    return -most, most


def _panel(
    alt: Any, lines: list[dict[str, Any]], axis: Any, reach: tuple[float, float], width: int, height: int, number: int
) -> Any:
    """Return one curve: numbers along a line, levels and missing values as points."""
    title = UP if height > 200 else "off by, points"
    up = _up(alt, reach, title)
    if axis["kind"] == "category":
        return _levels(alt, lines, str(axis["name"]), up, width, height, axis["places"])
    along = [line for line in lines if line["x"] is not None]
    lost = [line | {"x": "missing"} for line in lines if line["x"] is None]
    made = [_curve(alt, along, axis, up, width, height, number)] if along else []
    if lost:
        made.append(_levels(alt, lost, None, up if not along else _up(alt, reach, None), SIDE, height, ["missing"]))
    return made[0] if len(made) == 1 else alt.hconcat(*made, spacing=8)


def _up(alt: Any, reach: tuple[float, float], title: str | None) -> Callable[[str], Any]:
    """Return what places a column on the axis of biases."""
    axis = alt.Axis(labelExpr=SIGN, tickCount=5)
    return lambda column: alt.Y(f"{column}:Q", title=title, axis=axis, scale=alt.Scale(domain=list(reach), nice=False))


def _across(alt: Any, axis: Any, lines: Sequence[dict[str, Any]], column: str = "x", **look: Any) -> Any:
    """Return the axis of a number, a date or the score, in the user's unit."""
    title = "the model says" if axis["kind"] == "score" else axis["name"]
    if axis["kind"] == "date":
        return alt.X(f"{column}:T", title=title, scale=alt.Scale(nice=False), axis=alt.Axis(**look))
    values = [v for v in axis["places"] if v is not None]
    ends = [min([values[0], *(line[column] for line in lines)]), max([values[-1], *(line[column] for line in lines)])]
    kind = "linear" if axis["scaling"] != "rank" else "log" if ends[0] > 0 else "symlog"
    if axis["kind"] == "score":
        look = {"labelExpr": "format(100 * datum.value, '~g') + '%'", **look}
    scale = alt.Scale(domain=ends, nice=False, type=kind)
    return alt.X(f"{column}:Q", title=title, scale=scale, axis=alt.Axis(**look))


def _curve(
    alt: Any, lines: list[dict[str, Any]], axis: Any, up: Callable[[str], Any], width: int, height: int, number: int
) -> Any:
    """Return a line in its band, orange where it is off, over a strip of where people are."""
    order = {v: i for i, v in enumerate(axis["places"])}
    run = 0
    for i, line in enumerate(lines):
        run += i > 0 and order[line["x"]] != order[lines[i - 1]["x"]] + 1
        line["run"] = run
    x = _across(alt, axis, lines, grid=False)
    base = alt.Chart(alt.InlineData(values=lines)).encode(
        x=_across(alt, axis, lines, labels=False, ticks=False, title=None)
    )
    name = f"near{number}"  # its own in each panel
    near = alt.selection_point(name, nearest=True, on="pointerover", fields=["at"], empty=False, clear="pointerout")
    here = alt.condition(near, alt.value(1.0), alt.value(0.0))
    tips = [alt.Tooltip(f"{k}:N") for k in TIPS]
    marked = base.transform_filter("datum.off").mark_point(filled=True, size=26, color=ORANGE, clip=True, opacity=1)
    upper = alt.layer(
        base.mark_area(color=PALE, opacity=0.6, clip=True).encode(y=up("low"), y2="high:Q", detail="run:N"),
        _zero(alt, up),
        base.mark_line(color=BLUE, clip=True).encode(y=up("bias"), detail="run:N"),
        marked.encode(y=up("bias")),
        base.mark_point(filled=True, size=60, color=BLUE)
        .encode(y=up("bias"), opacity=here, tooltip=tips)
        .add_params(near),
    ).properties(width=width, height=height)
    flat = alt.Y("share:Q", title=None, axis=None, scale=alt.Scale(domain=[0, 1]))
    strip = alt.Chart(alt.InlineData(values=lines)).mark_area(color=GREY, opacity=0.5)
    strip = strip.encode(x=x, y=flat, detail="run:N").properties(
        width=width, height=26, view=alt.ViewConfig(stroke=None)
    )
    return alt.vconcat(upper, strip, spacing=4).resolve_scale(x="shared")


def _zero(alt: Any, up: Callable[[str], Any]) -> Any:
    return alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=GREY).encode(y=up("zero"))


def _levels(
    alt: Any,
    lines: list[dict[str, Any]],
    name: str | None,
    up: Callable[[str], Any],
    width: int,
    height: int,
    order: Any,
) -> Any:
    """Return levels as points with bars."""
    shown = [v for v in order if any(line["x"] == v for line in lines)]
    x = alt.X("x:N", title=name, sort=shown, axis=alt.Axis(labelAngle=-40 if sum(map(len, shown)) > LONG else 0))
    base = alt.Chart(alt.InlineData(values=lines)).encode(x=x)
    colour = alt.condition("datum.off", alt.value(ORANGE), alt.value(BLUE))
    tips = [alt.Tooltip(f"{k}:N") for k in TIPS]
    return alt.layer(
        _zero(alt, up),
        base.mark_rule(strokeWidth=6, color=PALE, clip=True).encode(y=up("low"), y2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(y=up("bias"), color=colour, tooltip=tips),
    ).properties(width=width, height=height)


def _heat(curve: Curve, axes: Sequence[Any]) -> Any:
    """Return a heat map for each stratum; a point with a missing value has no place on an axis of numbers."""
    import altair as alt

    lines = [
        line
        for line in _lines(curve)
        if all(a["kind"] == "category" or line[k] is not None for a, k in zip(axes, ("x", "x2"), strict=True))
    ]
    if not lines:
        raise NotComputable("every point of the map has a missing value: use to_frame()")
    for a, k in zip(axes, ("x", "x2"), strict=True):
        if a["kind"] != "category":
            _edged(lines, a, k)
    strata = list(dict.fromkeys(line["stratum"] for line in lines))
    wide = sorted((line["high"] - line["low"]) / 2 for line in lines)
    most = max([wide[len(wide) // 2], *(abs(line["bias"]) for line in lines if line["off"])])  # noise looks pale
    side = 340 if len(strata) == 1 else SMALL
    panels = []
    for s in strata:
        panel = _map(alt, [line for line in lines if line["stratum"] == s], axes, most, side)
        panels.append(panel.properties(title=alt.TitleParams(s, fontSize=12, anchor="start")) if s else panel)
    whole = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=2)
    return whole.properties(title=_title(alt, curve, axes, outlined=True))


def _edged(lines: list[dict[str, Any]], axis: Any, k: str) -> None:
    """Give each point the edges of its cell: half-way to its neighbours."""
    values = [v for v in axis["places"] if v is not None]
    number = [date.fromisoformat(v).toordinal() if axis["kind"] == "date" else float(v) for v in values]
    middle = [(a + b) / 2 for a, b in pairwise(number)]
    edges: list[Any] = [number[0], *middle, number[-1]]
    if axis["kind"] == "date":
        edges = [date.fromordinal(int(e)).isoformat() for e in edges]
    order = {v: i for i, v in enumerate(values)}
    for line in lines:
        i = order[line[k]]
        line[f"{k}a"], line[f"{k}b"] = edges[i], edges[i + 1]


def _map(alt: Any, lines: list[dict[str, Any]], axes: Sequence[Any], most: float, side: int) -> Any:
    scale = alt.Scale(domain=[-most, 0, most], range=[BLUE, "#f4f4f2", ORANGE], interpolate="rgb", clamp=True)
    legend = alt.Legend(title=["happened minus", "model says,", "points"], labelExpr=SIGN)
    place: dict[str, Any] = {}
    for a, k, way in zip(axes, ("x", "x2"), ("x", "y"), strict=True):
        if a["kind"] == "category":
            shown = [v for v in a["places"] if any(line[k] == v for line in lines)]
            place[way] = (alt.X if way == "x" else alt.Y)(f"{k}:N", title=a["name"], sort=shown)
            continue
        first = _across(alt, a, lines, f"{k}a")
        if a["kind"] != "date":
            first.scale.domain = [min(v[f"{k}a"] for v in lines), max(v[f"{k}b"] for v in lines)]
        place[way] = first if way == "x" else alt.Y(**{**first.to_dict(), "shorthand": alt.Undefined})
        place[f"{way}2"] = f"{k}b:{'T' if a['kind'] == 'date' else 'Q'}"
    base = alt.Chart(alt.InlineData(values=lines)).encode(**place)
    tips = [alt.Tooltip(f"{k}:N") for k in TIPS]
    colour = alt.Color("bias:Q", scale=scale, legend=legend)
    outline = base.transform_filter("datum.off").mark_rect(fillOpacity=0, stroke="#1d2126", strokeWidth=1.2)
    return alt.layer(base.mark_rect().encode(color=colour, tooltip=tips), outline).properties(width=side, height=side)


def _title(alt: Any, curve: Curve, axes: Sequence[Any], outlined: bool = False) -> Any:
    s = curve.settings
    p = float(s["p_value"])
    said = "a probability of 0 or 1 was wrong" if s["contradicted"] else num.p_value(p, draws=int(s["draws"]))
    times, of = num.confidence(1 - float(s["alpha"]))
    named = " and ".join("the score" if a["kind"] == "score" else str(a["name"]) for a in axes)
    marks = "Outlined" if outlined else "Orange"
    sub = [f"{marks}: off, allowing for every point of the map ({times} of {of} times no false one)."]
    sub.append(f"Whole map: {said}.")
    if outlined and s["masked"]:
        sub.append(f"Blank: fewer than ten people near, at {num.count(s['masked'])} points.")
    return alt.TitleParams(f"Where the probabilities are off, by {named}", subtitle=sub, anchor="start")
