"""What every chart is made of: one palette, rows with tooltips, panels, dots, bars and maps of colours."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal, TypeAlias

import altair as alt

from calibrant.report import numbers as num
from calibrant.report.findings import side
from calibrant.report.places import BAND as BAND
from calibrant.report.places import GRID as GRID
from calibrant.report.places import HIGH as HIGH
from calibrant.report.places import INK as INK
from calibrant.report.places import LINE as LINE
from calibrant.report.places import LOW as LOW
from calibrant.report.places import PAPER as PAPER
from calibrant.report.places import QUIET as QUIET
from calibrant.report.places import digits_of, window_of
from calibrant.report.wording.terms import DIRECTIONS
from calibrant.results import Curve

WIDTH, HEIGHT, SMALL, STRIP = 560, 240, 260, 34  # pixels: a panel, one of several, and the people under it
RULE = 52  # letters of a rule on one line
UP = "happened minus model says, points"
SIGN = "(datum.value > 0 ? '+' : '') + replace(format(datum.value, '.3~g'), '-', '\u2212')"
TIPS = ("at", "model says", "happened", "off by", "band", "finding", "effective rows")

Row: TypeAlias = dict[str, Any]  # a line of a table that Vega reads: text, numbers, truth values or None
Way: TypeAlias = Literal["x", "y"]
Place: TypeAlias = alt.X | alt.Y  # a column on an axis
Drawn: TypeAlias = alt.TopLevelMixin  # any chart: one, layers, or several side by side
Gaps: TypeAlias = Callable[[str], Place]  # from a column to its place on the axis of gaps


def data(rows: Sequence[Row]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows)))


def tooltips(names: Sequence[str] = TIPS) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{k}:N") for k in names]


def rows_of(curve: Curve) -> list[Row]:
    """The points of a curve in points of probability, with what their tooltips say."""
    c, out = curve.columns, []
    digits = digits_of(window_of([v for k in ("predicted", "observed") for v in c[k]]))
    for i, (gap, low, high) in enumerate(zip(c["gap"], c["low"], c["high"], strict=True)):
        first, last = num.signed_range(low, high, digits)
        says, happened = (num.nearest(c[k][i], digits) for k in ("predicted", "observed"))
        out.append(
            {
                **{k: c[k][i] for k in ("x", "x2", "group", "stretch", "density", "rule") if k in c},
                "gap": 100 * gap,
                "low": 100 * low,
                "high": 100 * high,
                "says": 100 * c["predicted"][i],
                "rate": 100 * c["observed"][i],
                "off": side(low, high) != "unclear",
                "at": c["label"][i] if "label" in c else f"{num.nearest(c.get('x', c['predicted'])[i], digits)}%",
                "model says": f"{says} in 100",
                "happened": f"{happened} in 100",
                "off by": f"{num.gap(gap, digits)} points",
                "band": f"{first} to {last} points",
                "finding": DIRECTIONS[side(low, high)],
                "effective rows": num.count(c["rows"][i]),
            }
        )
    return out


def reach(rows: Sequence[Row]) -> list[float]:
    """The ends of the axis of gaps: zero, all gaps, and all bands but a few that are far wider."""
    usual = 2.5 * sorted(r["high"] - r["low"] for r in rows)[len(rows) * 3 // 4]
    kept = [r for r in rows if r["high"] - r["low"] <= usual]
    low = min([0.0, *(r["low"] for r in kept), *(1.1 * r["gap"] for r in rows)])
    high = max([0.0, *(r["high"] for r in kept), *(1.1 * r["gap"] for r in rows)])
    edge = 0.05 * max(high - low, 1.0)
    return [low - edge, high + edge]


def gaps_by_variable(ends: Sequence[float], title: str | None = UP, way: Way = "y") -> Gaps:
    """Return what places a column on the axis of gaps."""
    axis, scale = alt.Axis(labelExpr=SIGN, tickCount=5), alt.Scale(domain=list(ends), nice=False)
    channel = alt.Y if way == "y" else alt.X
    return lambda column: channel(f"{column}:Q", title=title, axis=axis, scale=scale)


def zero(place: Place | str, way: Way) -> alt.Chart:
    return data([{"zero": 0}]).mark_rule(color=QUIET).encode(**{way: place})


def panel(rows: list[Row], x: Place, up: Gaps, size: tuple[int, int], number: int = 0) -> alt.LayerChart:
    """A line in its band, orange where it is shown to be off; the point nearest to its pointer is reported."""
    near = alt.selection_point(
        f"near{number}", nearest=True, on="pointerover", fields=["at"], empty=False, clear="pointerout"
    )
    here, base = alt.condition(near, alt.value(1.0), alt.value(0.0)), data(rows).encode(x=x)
    off = base.transform_filter("datum.off").mark_point(filled=True, size=26, color=HIGH, clip=True, opacity=1)
    pointer = base.mark_point(filled=True, size=60, color=LINE)
    return alt.layer(
        base.mark_area(color=BAND, opacity=0.75, clip=True).encode(y=up("low"), y2="high:Q", detail="stretch:N"),
        zero(up("zero"), "y"),
        base.mark_line(color=LINE, strokeWidth=2, clip=True).encode(y=up("gap"), detail="stretch:N"),
        off.encode(y=up("gap")),
        pointer.encode(y=up("gap"), opacity=here, tooltip=tooltips()).add_params(near),
    ).properties(width=size[0], height=size[1])


def strip(rows: list[Row], x: Place, width: int, crowd: str = "density") -> alt.Chart:
    y = alt.Y(f"{crowd}:Q", title="people", axis=alt.Axis(labels=False, ticks=False, grid=False, domain=False))
    drawn = data(rows).mark_area(color=QUIET, opacity=0.45).encode(x=x, y=y, detail="stretch:N")
    return drawn.properties(width=width, height=STRIP)


def dots(
    rows: list[Row], names: Place, gaps: Gaps, way: Way = "x", tips: Sequence[str] = TIPS, quiet: str = LINE
) -> alt.LayerChart:
    """A dot with its range for each level, orange where it is shown to be off; gaps lie along `way`."""
    base = data(rows).encode(**{"y" if way == "x" else "x": names}, tooltip=tooltips(tips))
    colour = alt.condition("datum.off", alt.value(HIGH), alt.value(quiet))
    return alt.layer(
        zero(gaps("zero"), way),
        base.mark_rule(strokeWidth=2, clip=True).encode(**{way: gaps("low"), f"{way}2": "high:Q"}, color=colour),
        base.mark_point(filled=True, size=60, opacity=1, clip=True).encode(**{way: gaps("gap")}, color=colour),
    )


def bars(rows: list[Row], x: Place, tips: Sequence[str], colour: alt.Color | Row) -> alt.LayerChart:
    """A bar with its range for each variable; one without a range is a bare bar."""
    y = alt.Y("variable:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, domain=False, ticks=False))
    kept = data([r for r in rows if r["low"] is not None]).encode(y=y)
    return alt.layer(
        data(rows).mark_bar(height=13).encode(y=y, x=x, color=colour, tooltip=tooltips(tips)),
        kept.mark_rule(color=INK, strokeWidth=1.25).encode(x="low:Q", x2="high:Q", tooltip=tooltips(tips)),
        *(kept.mark_tick(color=INK, size=8, thickness=1.25).encode(x=f"{k}:Q") for k in ("low", "high")),
        zero("zero:Q", "x"),
    ).properties(width=WIDTH, height=alt.Step(24))


def heat(rows: list[Row], place: Mapping[str, Place | str], most: float) -> alt.LayerChart:
    """Return gaps as colours, outlined where shown to be off; the strongest colour is `most` points."""
    base = data(rows).encode(**place)
    return alt.layer(
        base.mark_rect().encode(color=heat_colour(most), tooltip=tooltips()),
        base.transform_filter("datum.off").mark_rect(fillOpacity=0, stroke=INK, strokeWidth=1.2),
    )


def forest(
    curve: Curve, rows: list[Row], tips: Sequence[str], title: alt.TitleParams, limit: float | None = None
) -> alt.LayerChart:
    """Rules under each other, each on as many lines as it needs over its people, with its gap, range and rates.

    The limit is dashed to either side, where it is in view.
    """
    c, ends = curve.columns, reach(rows)
    gaps = gaps_by_variable(ends, way="x")
    for i, r in enumerate(rows):
        says, happened = (num.nearest(c[k][i]) for k in ("predicted", "observed"))
        people = f"{num.count(c['rows'][i])} ({num.nearest(c['share'][i])}% of all)"
        r |= {"number": i, "reported": f"says {says}, happened {happened} in 100", "people": people}
    lines = [[*wrap(r["rule"], RULE), r["people"]] for r in rows]
    look = {"labelLimit": 330, "domain": False, "ticks": False, "labelLineHeight": 13}
    axis = alt.Axis(labelExpr=f"{json.dumps(lines)}[datum.value]", **look)
    names = alt.Y("number:O", sort=None, title=None, axis=axis)
    words = data(rows).mark_text(dy=-11, fontSize=10.5, color=INK).encode(y=names, x="gap:Q", text="reported:N")
    marks = []
    if limit is not None:
        seen = [{"gap": v} for v in (-100.0 * limit, 100.0 * limit) if ends[0] <= v <= ends[1]]
        marks.append(data(seen).mark_rule(color=QUIET, strokeDash=[5, 4]).encode(x=gaps("gap")))
    drawn = alt.layer(*marks, dots(rows, names, gaps, tips=tips, quiet=QUIET), words, title=title)
    return drawn.properties(width=WIDTH - 180, height=alt.Step(52))


def legend(column: str, colours: Mapping[str, str], **look: str) -> alt.Color:
    """The colour of each name in a column; `look` is of the legend."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{column}:N", title=None, scale=scale, **({"legend": alt.Legend(**look)} if look else {}))


def heat_colour(most: float) -> alt.Color:
    """The colour of a gap; the strongest is `most` points."""
    scale = alt.Scale(domain=[-most, 0, most], range=[LOW, PAPER, HIGH], interpolate="rgb", clamp=True)
    title = ["points", "+ underpredicts", "\u2212 overpredicts"]
    return alt.Color("gap:Q", scale=scale, legend=alt.Legend(title=title, labelExpr=SIGN))


def titled(text: str, lines: Sequence[str]) -> alt.TitleParams:
    return alt.TitleParams(text, subtitle=[line for line in lines if line])


def several(panels: Sequence[tuple[str, Drawn]], columns: int) -> Drawn:
    named = [p.properties(title=alt.TitleParams(name, fontSize=12)) if name else p for name, p in panels]
    return named[0] if len(named) == 1 else alt.concat(*named, columns=columns)


def level_of(curve: Curve) -> str:
    return f"{num.percent(1 - float(curve.settings['alpha']))}%"


def tested(curve: Curve) -> str:
    s = curve.settings
    if s.get("contradicted"):
        return "a probability of 0 or 1 was wrong"
    return num.p_value(float(s["p_value"]), draws=int(s["draws"]))


def dressed(chart: Drawn) -> Drawn:
    text = {"labelColor": INK, "titleColor": INK}
    return (
        chart.configure(background=PAPER, font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(gridColor=GRID, domainColor=QUIET, tickColor=QUIET, titleFontWeight="normal", **text)
        .configure_legend(titleFontWeight="normal", **text)
        .configure_title(anchor="start", color=INK, subtitleColor=QUIET)
    )
