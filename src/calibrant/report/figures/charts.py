"""Figures as interactive charts of Altair, with tooltips in the reader's units; `Curve.chart` loads this file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from textwrap import wrap
from typing import TypeAlias

import altair as alt

from calibrant.report.figures.kinds import figure
from calibrant.report.figures.marks import Axis, Mark, Panel, Row
from calibrant.report.places import GRID, HIGH, INK, LOW, PAPER, QUIET
from calibrant.results import Curve

Drawn: TypeAlias = alt.TopLevelMixin  # any chart: one, layers, or several side by side
Axes: TypeAlias = type[alt.X] | type[alt.Y]
NUMBER = "replace(format(datum.value, abs(datum.value) < 1000 ? '.3~g' : ','), '-', '\u2212')"
SIGN = f"(datum.value > 0 ? '+' : '') + {NUMBER}"
UNITS = {"": NUMBER, "+": SIGN, "%": f"{NUMBER} + '%'"}
LOGIT = "format(100 / (1 + exp(-datum.value)), '.3~g') + '%'"
EDGE = 2.0**-15  # of the scores that a logit axis tells apart
LETTER, NAMES, LABELS, LEAST = 6, 150, 50, 420  # pixels: a letter, names and numbers at the side, and a picture
LONG = 60  # letters in all, from which names are written aslant
MARKS: dict[str, Row] = {  # what Altair calls each, and how it looks
    "band": {"type": "area"},
    "line": {"type": "line"},
    "dot": {"type": "point", "filled": True},
    "near": {"type": "point", "filled": True, "size": 60},
    "range": {"type": "rule"},
    "ruler": {"type": "rule"},
    "bar": {"type": "bar", "height": 13},
    "tick": {"type": "tick", "size": 8, "thickness": 1.25},
    "cell": {"type": "rect"},
    "frame": {"type": "rect", "fillOpacity": 0},
    "text": {"type": "text", "fontSize": 10.5, "clip": False},
}


def chart(curve: Curve) -> Drawn:
    """A curve as an interactive Altair chart; `NotComputable` where nothing can be drawn."""
    drawn = figure(curve)
    panels = [_panels(p, f"near{i}") for i, p in enumerate(drawn.panels)]
    made = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=drawn.columns)
    p = drawn.panels[0]
    wide = (p.x.step * len(p.x.names) or p.size[0]) + (NAMES if p.y.names else LABELS)  # about, in pixels
    letters = max(wide * min(len(drawn.panels), drawn.columns), LEAST) // LETTER
    under = [v for line in (*drawn.under, drawn.left_out) for v in wrap(line, letters, break_on_hyphens=False)]
    title = alt.TitleParams(drawn.title, subtitle=under)
    text = {"labelColor": INK, "titleColor": INK}
    return (
        made.properties(title=title)
        .configure(background=PAPER, font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(gridColor=GRID, domainColor=QUIET, tickColor=QUIET, titleFontWeight="normal", **text)
        .configure_legend(titleFontWeight="normal", **text)
        .configure_title(anchor="start", color=INK, subtitleColor=QUIET)
    )


def _panels(p: Panel, near: str) -> Drawn:
    """A panel with those over, under and at the side of it; the axis of the lowest has the labels."""
    column = [*p.over, p, *p.under]
    drawn = [_panel(replace(q, x=replace(q.x, title=None)), near) for q in column[:-1]] + [_panel(column[-1], near)]
    if len(drawn) == 1:
        made = drawn[0]
    else:  # a legend stands over the panel that it is of: one colour may mean another thing in the next
        made = alt.vconcat(*drawn, spacing=6).resolve_scale(x="shared", color="independent", strokeDash="independent")
        made = made.resolve_legend(color="independent", strokeDash="independent")
    made = made if p.side is None else alt.hconcat(made, _panel(p.side, near), spacing=4)
    return made.properties(title=alt.TitleParams(p.title, fontSize=12)) if p.title else made


def _panel(p: Panel, near: str) -> alt.LayerChart:
    width, height = (
        alt.Step(a.step) if a.kind == "names" and a.step else a.step * len(a.names) or length
        for a, length in zip((p.x, p.y), p.size, strict=True)
    )
    named = {m.name: m for m in p.marks if m.name and m.kind != "dot"} if p.legend else {}
    return alt.layer(*(_mark(p, m, named, near) for m in p.marks)).properties(width=width, height=height)


def _mark(p: Panel, m: Mark, named: dict[str, Mark], near: str) -> alt.Chart:
    rows = p.rows if m.rows is None else m.rows
    if p.x.kind == "logit" and m.x:
        odds = [min(max(r[m.x] / 100, EDGE), 1.0 - EDGE) for r in rows]
        rows = [r | {m.x: math.log(v / (1.0 - v))} for r, v in zip(rows, odds, strict=True)]
    base = alt.Chart(alt.InlineData(values=list(rows)))
    base = base.transform_filter(f"datum.{m.only}") if m.only else base
    base = base.transform_calculate(series=json.dumps(m.name)) if m.name in named else base
    encoded = _placed(p, m) | _coloured(m, named)
    if m.tips:
        encoded["tooltip"] = [alt.Tooltip(f"{k}:N") for k in m.tips]
    if m.kind in ("band", "line") and rows and "stretch" in rows[0]:
        encoded["detail"] = "stretch:N"
    if m.kind == "near":
        here = {"on": "pointerover", "fields": ["at"], "empty": False, "clear": "pointerout"}
        nearest = alt.selection_point(near, nearest=True, **here)
        base = base.add_params(nearest)
        encoded["opacity"] = alt.condition(nearest, alt.value(1.0), alt.value(0.0))
    return base.properties(mark=alt.MarkDef(**_look(m))).encode(**encoded)


def _look(m: Mark) -> Row:
    """How a mark looks, with its colour where no column decides it."""
    look: Row = {"clip": True, "opacity": m.opacity}
    if m.colour != "heat":
        look["stroke" if m.kind == "frame" else "color"] = m.colour
    if m.kind in ("line", "range", "ruler", "frame"):
        look |= {"strokeWidth": m.size} | ({"strokeDash": list(m.dash)} if m.dash else {})
    look |= {"size": m.size} if m.kind == "dot" else {"interpolate": m.joined} if m.kind == "line" else {}
    look |= {"align": m.align, "dx": m.aside[0], "dy": m.aside[1]} if m.kind == "text" else {}
    return look | ({"yOffset": m.aside[1]} if m.kind == "range" and m.aside[1] else {}) | MARKS[m.kind]


def _placed(p: Panel, m: Mark) -> Row:
    """The channels of places; a second end has no axis of its own."""
    out: Row = {"text": f"{m.text}:N"} if m.text else {}
    for way, axis, column, end in (("x", p.x, m.x, m.x2), ("y", p.y, m.y, m.y2)):
        out |= {way: _channel(alt.X if way == "x" else alt.Y, axis, column)} if column else {}
        out |= {f"{way}2": f"{end}:{'T' if axis.kind == 'date' else 'Q'}"} if end else {}
    return out


def _channel(channel: Axes, axis: Axis, column: str) -> alt.X | alt.Y:
    """A column on an axis; a horizontal one without a title has no labels either: the one under it has them."""
    if axis.kind in ("names", "cells"):
        return _names(channel, axis, column)
    look: Row = {"labelExpr": LOGIT if axis.kind == "logit" else UNITS.get(axis.unit, NUMBER)}
    if axis.unit == "none" or (channel is alt.X and axis.title is None):
        look = {"labels": False, "ticks": False}
    if axis.kind == "date":
        look |= {"format": "%b %Y", "tickCount": 6, "labelFlush": False}
        look.pop("labelExpr", None)
    else:
        look |= {"values": list(axis.ticks)} if axis.ticks else {"tickCount": axis.count if channel is alt.Y else 8}
    look |= {"grid": False, "domain": channel is alt.X} if axis.unit == "none" or axis.kind != "number" else {}
    scale: Row = {} if axis.ends is None else {"domain": list(axis.ends), "nice": False}
    scale |= {"type": "utc" if axis.kind == "date" else axis.kind} if axis.kind in ("date", "log", "symlog") else {}
    scale |= {"zero": False} if axis.kind in ("number", "logit") and axis.unit != "none" else {}
    kind = "T" if axis.kind == "date" else "Q"
    return channel(f"{column}:{kind}", title=axis.title, scale=alt.Scale(**scale), axis=alt.Axis(**look))


def _names(channel: Axes, axis: Axis, column: str) -> alt.X | alt.Y:
    """Names on an axis, or a label in the middle of each cell, but for levels that are not named."""
    letters = [len(str(v)) for v in axis.names]
    aslant = sum(letters) > LONG if axis.kind == "names" else max(letters) * 6 > axis.step
    look: Row = {"labelAngle": -40 if channel is alt.X and aslant else 0, "labelLimit": 220, "grid": False}
    if axis.kind == "cells":
        look |= {"labelExpr": f"{json.dumps(list(axis.names))}[floor(datum.value)]", "ticks": False}
        look |= {"values": [i + 0.5 for i in range(len(axis.names))], "labelOverlap": False}
        scale = alt.Scale(domain=[0, len(axis.names)], nice=False)
        return channel(f"{column}:Q", title=axis.title, axis=alt.Axis(**look), scale=scale)
    if axis.labels:
        look |= {"labelExpr": f"{json.dumps(axis.labels)}[datum.value]", "labelLineHeight": 13, "labelLimit": 330}
    look |= {"domain": False, "ticks": False} if axis.title is None and channel is alt.Y else {}
    return channel(f"{column}:N", sort=list(axis.names), title=axis.title, axis=alt.Axis(**look))


def _coloured(m: Mark, named: dict[str, Mark]) -> Row:
    """The channel of colour: by the name in the legend, by the gap, or orange where it is shown to be off."""
    if m.name in named:
        lines, names = all(v.kind != "bar" for v in named.values()), list(named)
        legend = alt.Legend(orient="top", **({"symbolType": "stroke", "symbolSize": 200} if lines else {}))
        scale = alt.Scale(domain=names, range=[v.colour for v in named.values()])
        dash = alt.Scale(domain=names, range=[list(v.dash or (1, 0)) for v in named.values()])
        dashed = {"strokeDash": alt.StrokeDash("series:N", sort=None, scale=dash, title=None, legend=legend)}
        colour = {"color": alt.Color("series:N", sort=None, scale=scale, title=None, legend=legend)}
        return colour | (dashed if any(v.dash for v in named.values()) else {})
    if m.colour == "heat":
        scale = alt.Scale(domain=[-m.most, 0, m.most], range=[LOW, PAPER, HIGH], interpolate="rgb", clamp=True)
        title = ["points", "+ underpredicts", "\u2212 overpredicts"]
        return {"color": alt.Color("gap:Q", scale=scale, legend=alt.Legend(title=title, labelExpr=SIGN))}
    if not m.off and not (m.kind == "text" and m.most):
        return {}
    when, then, other = ("datum.off", HIGH, m.colour) if m.off else (f"abs(datum.gap) > {0.6 * m.most}", PAPER, INK)
    return {"color": alt.condition(when, alt.value(then), alt.value(other))}
