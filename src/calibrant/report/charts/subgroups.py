"""Charts of subgroups: a forest of the distinct ones with their certified ranges, and the map of two attributes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from textwrap import wrap

import altair as alt

import calibrant.report.charts.parts as parts
from calibrant.report import numbers as num
from calibrant.results import Curve

RULE = 52  # letters of a rule on one line
LEAST = 20  # people without whom a cell is drawn empty: chance moves it by tens of points
PLACES = ("x", "x2", "across", "y", "y2", "up")  # where a cell begins and ends, and its middle
WIDE, TALL = 46, 30  # pixels of a cell


def subgroups(curve: Curve) -> alt.LayerChart:
    """The gaps of distinct subgroups, with the ranges that hold for all boxes at once."""
    c, s, rows = curve.columns, curve.settings, parts.rows_of(curve)
    limit = s["limit"]
    for i, r in enumerate(rows):
        says, happened = (num.nearest(c[k][i]) for k in ("predicted", "observed"))
        left = c["gap_left"][i]
        besides = [
            f"{attribute} {level} ({num.nearest(a, 0)}%, others {num.nearest(b, 0)}%)"
            for attribute, level, a, b in s["besides"][i]
        ]
        r |= {
            "number": i,
            "reported": f"says {says}, happened {happened} in 100",
            "people": f"{num.count(c['rows'][i])} ({num.nearest(c['share'][i])}% of all)",
            "off by at least": f"{num.lower_bound(c['floor'][i])} points" if c["floor"][i] else "not shown",
            "limit": "" if limit is None else "over" if c["over"][i] else "not shown to be over",
            "without those above": ""
            if left is None
            else f"{num.gap(left)} points, {num.count(c['rows_left'][i])} people",
            "found again": f"in {round(s['halves'] * c['stability'][i])} of {s['halves']} random halves",
            "besides": "; ".join(besides),
        }
    lines = [[*wrap(r["rule"], RULE), r["people"]] for r in rows]  # over as many lines as a rule needs
    look = {"labelLimit": 330, "domain": False, "ticks": False, "labelLineHeight": 13}
    axis = alt.Axis(labelExpr=f"{json.dumps(lines)}[datum.value]", **look)
    names = alt.Y("number:O", sort=None, title=None, axis=axis)
    tips = ["rule", "people", *("model says", "happened", "off by", "band", "off by at least")]
    tips += [k for k in ("limit", "without those above", "found again", "besides") if any(r[k] for r in rows)]
    ends = parts.reach(rows)
    gaps = parts.gaps_by_variable(ends, way="x")
    drawn = parts.dots(rows, names, gaps, tips=tips, quiet=parts.QUIET)
    words = parts.data(rows).mark_text(dy=-11, fontSize=10.5, color=parts.INK)
    words = words.encode(y=names, x="gap:Q", text="reported:N")
    marks = [] if limit is None else [_limits(100.0 * limit, ends, gaps)]
    under = [
        f"Bars: certified, for all {num.count(s['subgroups'])} subgroups simultaneously at {parts.level_of(curve)}.",
        "Orange: shown to be off. Grey: not shown.",
        "" if limit is None else f"Dashed: the limit, {num.limit_points(limit)} points to either side.",
    ]
    certified = any(c["floor"])
    title = parts.titled("Subgroups of people that are off" if certified else "The subgroup that seems worst", under)
    return alt.layer(*marks, drawn, words, title=title).properties(width=parts.WIDTH - 180, height=alt.Step(52))


def _limits(limit: float, ends: Sequence[float], gaps: parts.Gaps) -> alt.Chart:
    """The limit to either side, where it is in view."""
    seen = [{"gap": v} for v in (-limit, limit) if ends[0] <= v <= ends[1]]
    return parts.data(seen).mark_rule(color=parts.QUIET, strokeDash=[5, 4]).encode(x=gaps("gap"))


# ---- the map of a pair ----


def subgroup_map(curve: Curve) -> alt.LayerChart:
    """The gap in each combination of cells as colour and number, with the subgroups outlined."""
    c, s = curve.columns, curve.settings
    axes = s["axes"]
    rows = []
    for i, (a, b, n) in enumerate(zip(c["first"], c["second"], c["rows"], strict=True)):
        if n < LEAST:
            continue
        says, happened = (num.nearest(c[k][i]) for k in ("predicted", "observed"))
        rows.append(
            {
                **dict(zip(PLACES, (a, a + 1, a + 0.5, b, b + 1, b + 0.5), strict=True)),
                "first": axes[0]["labels"][a] or "not named",
                "second": axes[1]["labels"][b] or "not named",
                "gap": 100 * c["gap"][i],
                "text": num.gap(c["gap"][i], 0),
                "people": num.count(n),
                "model says": f"{says} in 100",
                "happened": f"{happened} in 100",
                "off by": f"{num.gap(c['gap'][i])} points",
                "error": 100 * (c["predicted"][i] * (1 - c["predicted"][i]) / n) ** 0.5,
            }
        )
    usual = sorted(r["error"] for r in rows)[len(rows) // 2] if rows else 1.0
    frames, inside = _frames(curve)
    of_subgroups = [abs(r["gap"]) for r in rows if (r["x"], r["y"]) in inside]
    most = max(
        3.0 * usual, sorted(of_subgroups)[len(of_subgroups) // 2] if of_subgroups else 0.0, 0.01
    )  # noise looks pale
    x, y = _cells("x", "x", axes[0]), _cells("y", "y", axes[1])
    middle = {"x": _cells("x", "across", axes[0]), "y": _cells("y", "up", axes[1])}
    tips = [alt.Tooltip(f"{k}:N", title=a["name"]) for k, a in zip(("first", "second"), axes, strict=True)]
    tips += parts.tooltips(("people", "model says", "happened", "off by"))
    scale = alt.Scale(
        domain=[-most, 0, most], range=[parts.LOW, parts.PAPER, parts.HIGH], interpolate="rgb", clamp=True
    )
    legend = alt.Legend(title=["points", "+ underpredicts", "\u2212 overpredicts"], labelExpr=parts.SIGN)
    colour = alt.Color("gap:Q", scale=scale, legend=legend)
    base = parts.data(rows)
    pale = alt.condition(f"abs(datum.gap) > {0.6 * most}", alt.value(parts.PAPER), alt.value(parts.INK))
    outline = {"stroke": parts.INK, "strokeWidth": 2, "fillOpacity": 0}
    layers = [
        base.mark_rect().encode(x=x, x2="x2:Q", y=y, y2="y2:Q", color=colour, tooltip=tips),
        base.mark_text(fontSize=10.5).encode(**middle, text="text:N", color=pale, tooltip=tips),
        parts.data(frames).mark_rect(**outline).encode(x=x, x2="x2:Q", y=y, y2="y2:Q", tooltip=["rule:N"]),
    ]
    under = [
        "Numbers: gaps in points, of single cells: chance moves them too, those of few people most.",
        "" if not frames else f"Outlined: {'; '.join(dict.fromkeys(f['rule'] for f in frames))}.",
        f"Blank: fewer than {LEAST} people." if len(rows) < len(axes[0]["labels"]) * len(axes[1]["labels"]) else "",
    ]
    title = parts.titled(f"Where {axes[0]['name']} and {axes[1]['name']} meet", under)
    size = {"width": WIDE * len(axes[0]["labels"]), "height": TALL * len(axes[1]["labels"])}
    return alt.layer(*layers, title=title).properties(**size)


def _frames(curve: Curve) -> tuple[list[parts.Row], set[tuple[int, int]]]:
    """A rectangle for each run of cells of a subgroup along both attributes, and the cells inside."""
    s, frames, inside = curve.settings, [], set()
    rules = s.get("rules", ("the subgroup",) * len(s["subgroups"]))
    for rule, (first, second) in zip(rules, s["subgroups"], strict=True):
        runs = ([(r[k], r[k + 1]) for k in range(0, len(r), 2)] for r in (first, second))
        for (a, b), (i, j) in product(*runs):
            frames.append({"x": a, "x2": b, "y": i, "y2": j, "rule": rule})
            inside |= set(product(range(a, b), range(i, j)))
    return frames, inside


def _cells(way: parts.Way, column: str, axis: parts.Row) -> parts.Place:
    """The axis of an attribute: a label in the middle of each cell, but for levels that are not named."""
    labels, channel = [v or "" for v in axis["labels"]], alt.X if way == "x" else alt.Y
    aslant = {"labelAngle": -40} if way == "x" and max(map(len, labels)) * 6 > WIDE else {"labelAngle": 0}
    words = f"{json.dumps(labels)}[floor(datum.value)]"
    ticks = [i + 0.5 for i in range(len(labels))]
    look = alt.Axis(
        labelExpr=words, values=ticks, grid=False, ticks=False, labelOverlap=False, labelLimit=220, **aslant
    )
    scale = alt.Scale(domain=[0, len(labels)], nice=False)
    return channel(f"{column}:Q", title=axis["name"], axis=look, scale=scale)
