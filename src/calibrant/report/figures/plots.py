"""Figures on axes of Matplotlib; `Curve.plot` loads this file.

One set of axes holds the panels of all groups over each other, in colours of their own, without what stands over and
under them; names of all groups are under each other. What an axis has no place for stands at its right. Maps get axes
each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import NotComputable
from calibrant.report.figures.kinds import figure
from calibrant.report.figures.marks import DAY, Axis, Figure, Mark, Panel, Row
from calibrant.report.places import BAND, HIGH, INK, LINE, LOW, PAPER
from calibrant.report.spans import clipped
from calibrant.results import Curve
from calibrant.sanitize import sanitize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

Places: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = Sequence[Row]
At: TypeAlias = Sequence[Any]  # places of x and its other end, of y and its other end; None where there are none
LONGEST = 40  # characters of a name
WIDTH, HEIGHT, AROUND, PIXELS = 7.0, 4.2, 1.4, 73  # inches, and the pixels of one
ROOM = 0.12  # of the axis, for what has no place on it
EDGE = 2.0**-15  # of the scores that a logit axis tells apart
DECADES = 2.0  # on a logarithmic axis, within which 2 and 5 are labelled too
TINTS = (  # of groups: none is like the orange of what is shown to be off
    *(f"tab:{name}" for name in ("blue", "green", "purple", "cyan", "olive", "pink", "gray")),
    *("navy", "darkgreen", "black"),
)


def plot(curve: Curve, ax: Axes | None = None) -> Axes:
    """Draw a curve, on axes of its own where none are passed."""
    drawn = figure(curve)
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError('a plot needs Matplotlib: pip install "calibrant[displays]"') from None
    if drawn.together or len(drawn.panels) == 1:
        if ax is None:
            _, ax = plt.subplots(figsize=(WIDTH, _height(drawn)), layout="constrained")
        _over_each_other(ax, drawn)
        return ax
    number = len(drawn.panels)
    if ax is not None:
        raise NotComputable(f"one set of axes cannot hold these {number} pictures: leave out ax=")
    made, each = plt.subplots(1, number, figsize=(0.6 * WIDTH * number, HEIGHT), layout="constrained", squeeze=False)
    made.suptitle(_text(drawn.title, 2 * LONGEST))
    if drawn.left_out:
        made.supxlabel(drawn.left_out, fontsize="medium")
    for own, panel in zip(each[0], drawn.panels, strict=True):
        _over_each_other(own, replace(drawn, title=panel.title, panels=[panel], left_out=""))
    first: Axes = each[0][0]
    return first


def _over_each_other(ax: Axes, drawn: Figure) -> None:
    many, start = len(drawn.panels) > 1, 0
    _scaled(ax.xaxis, drawn.panels[0].x)
    _scaled(ax.yaxis, drawn.panels[0].y)
    for i, panel in enumerate(drawn.panels):
        for mark in panel.marks:
            if mark.kind != "near":
                _mark(ax, panel, mark, start, TINTS[i % len(TINTS)] if many else None)
        start += len(panel.y.names)
    _at_the_side(ax, drawn.panels)
    _dressed(ax, drawn)


def _text(words: object, most: int = LONGEST) -> str:
    """Words of the data as they are shown: Matplotlib would typeset what stands between dollars."""
    return clipped(sanitize(str(words)), most).replace("$", r"\$")


# ---- marks ----


def _places(rows: Sequence[Row], column: str, axis: Axis, start: int = 0) -> Places:
    """Where rows lie on an axis: names at whole numbers, dates at days, percent as fractions of which logits are."""
    if axis.kind == "names":
        return np.array([start + axis.names.index(r[column]) for r in rows], dtype=float)
    at = np.array([r[column] for r in rows], dtype=float)
    if axis.kind == "logit":
        return np.clip(at / 100, EDGE, 1.0 - EDGE)
    return at / (DAY if axis.kind == "date" else 1)


def _mark(ax: Axes, p: Panel, m: Mark, start: int, tint: str | None) -> None:
    """Draw a mark: a line run by run, what is shown to be off in orange, groups in `tint`."""
    tinted = tint is not None and m.colour in (LINE, BAND)
    group = f"{p.title}, {m.name}" if p.legend else p.title
    name = group if tinted and m.kind == "line" else m.name
    look = {"color": tint if tinted else m.colour, "alpha": 0.2 if tinted and m.kind == "band" else m.opacity}
    apart = "stretch" if m.kind in ("line", "band") else "off" if m.off else ""
    rows = [r for r in (p.rows if m.rows is None else m.rows) if not m.only or r[m.only]]
    for run in dict.fromkeys(r.get(apart) for r in rows):
        own = [r for r in rows if r.get(apart) == run]
        at = [_places(own, c, p.x) if c else None for c in (m.x, m.x2)]
        at += [_places(own, c, p.y, start) if c else None for c in (m.y, m.y2)]
        off = {"color": HIGH} if m.off and run else {}
        DRAWN[m.kind](ax, m, own, at, {**look, **off, "label": _text(name) or None})


def _line(ax: Axes, m: Mark, _: Rows, at: At, look: Row) -> None:
    style: Row = {"linestyle": (0, m.dash)} if m.dash else {}
    joined = "steps-post" if m.joined == "step-after" else "default"
    ax.plot(at[0], at[2], linewidth=m.size, drawstyle=joined, **style, **look)


def _band(ax: Axes, _: Mark, __: Rows, at: At, look: Row) -> None:
    ax.fill_between(at[0], at[2], 0.0 if at[3] is None else at[3], linewidth=0, **look)


def _sign(ax: Axes, m: Mark, _: Rows, at: At, look: Row) -> None:
    size = 12.0 if m.kind == "tick" else 0.7 * m.size**0.5
    ax.plot(at[0], at[2], "|" if m.kind == "tick" else "o", markersize=size, **look)


def _range(ax: Axes, m: Mark, _: Rows, at: At, look: Row) -> None:
    draw, places = (ax.hlines, (at[2] + m.aside[1] / 22, *at[:2])) if m.x2 else (ax.vlines, (at[0], *at[2:]))
    draw(*places, linewidth=m.size, **look)


def _ruler(ax: Axes, m: Mark, _: Rows, at: At, look: Row) -> None:
    style: Row = {"linestyle": (0, m.dash)} if m.dash else {}
    for v in at[0] if m.x else at[2]:
        (ax.axvline if m.x else ax.axhline)(v, linewidth=m.size, **style, **look)


def _text_at(ax: Axes, m: Mark, rows: Rows, at: At, _: Row) -> None:
    place: Row = {"xytext": (0.75 * m.aside[0], -0.75 * m.aside[1]), "textcoords": "offset points"}
    for r, x, y in zip(rows, at[0], at[2], strict=True):
        colour = (PAPER if abs(r["gap"]) > 0.6 * m.most else INK) if m.most else m.colour
        ax.annotate(_text(r[m.text]), (x, y), ha=m.align, va="center", fontsize="small", color=colour, **place)


def _cells(ax: Axes, m: Mark, rows: Rows, at: At, look: Row) -> None:
    """Rectangles: of a name half a step to either side, without a column over the whole axis."""
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    if at[2] is None:
        ax.axvspan(at[0][0], at[1][0], linewidth=0, **look)
        return
    sides = [(a - 0.5, a + 0.5) if b is None else (a, b) for a, b in (at[:2], at[2:])]
    boxes = [Rectangle((a, i), b - a, j - i) for a, b, i, j in zip(*sides[0], *sides[1], strict=True)]
    frame, colours = m.kind == "frame", LinearSegmentedColormap.from_list("gaps", [LOW, PAPER, HIGH])
    edge: Row = {"facecolor": "none"} if frame else {"cmap": colours}
    drawn = PatchCollection(boxes, edgecolor=m.colour if frame else PAPER, linewidth=m.size if frame else 0.5, **edge)
    ax.add_collection(drawn)
    if not frame:
        drawn.set(array=[r["gap"] for r in rows], clim=(-m.most, m.most))
        ax.figure.colorbar(drawn, ax=ax, label="points: + underpredicts, \u2212 overpredicts")


DRAWN: dict[str, Callable[[Axes, Mark, Rows, At, Row], object]] = {
    "band": _band,
    "line": _line,
    "dot": _sign,
    "tick": _sign,
    "range": _range,
    "ruler": _ruler,
    "cell": _cells,
    "frame": _cells,
    "text": _text_at,
    "bar": lambda ax, _, __, at, look: ax.barh(at[2], at[0], height=0.55, **look),
}


def _at_the_side(ax: Axes, panels: Sequence[Panel]) -> None:
    """Draw points without a number, such as missing values, at the right of the axis, a place for each of a group."""
    lone = [(p, r, TINTS[i % len(TINTS)]) for i, p in enumerate(panels) if p.side for r in p.side.rows]
    if not lone:
        return
    scale = ax.xaxis.get_transform()
    known = scale.transform(np.concatenate([_places(p.rows, "x", p.x) for p in panels]))
    steps = known.max() + ROOM * (np.ptp(known) or 1.0) * np.arange(1, len(lone) + 1)
    for at, (p, r, tint) in zip(scale.inverted().transform(steps), lone, strict=True):
        colour, name = (tint, f"{p.title}, {r['at']}") if len(panels) > 1 else (INK, r["at"])
        ends = [[r["gap"] - r["low"]], [r["high"] - r["gap"]]]
        ax.errorbar(at, r["gap"], ends, fmt="o", color=colour, markersize=4)
        upright: Row = {"rotation": 90, "va": "center"} if len(lone) > 1 else {}
        ax.annotate(_text(name), (at, r["gap"]), (4, 4), textcoords="offset points", fontsize="small", **upright)


# ---- axes ----


def _height(drawn: Figure) -> float:
    y, panels = drawn.panels[0].y, len(drawn.panels)
    step = y.step if y.kind in ("names", "cells") else 0
    return max(AROUND + step * len(y.names) * panels / PIXELS, 2.4) if step else HEIGHT


def _dressed(ax: Axes, drawn: Figure) -> None:
    """Draw axes, title, and a legend of more than one thing."""
    first, many = drawn.panels[0], len(drawn.panels) > 1
    labels = [f"{p.title}, {v}" if many else v for p in drawn.panels for v in _labels(p.y)]
    _axis(ax.xaxis, first.x, _labels(first.x), any(p.side for p in drawn.panels))
    _axis(ax.yaxis, first.y, labels)
    if drawn.left_out:
        ax.set_xlabel(f"{ax.get_xlabel()}\n{drawn.left_out}")
    ax.set_title(_text(drawn.title, 2 * LONGEST), loc="left", color=INK)
    if first.y.kind == "names":
        ax.set_ylim(len(labels) - 0.5, -0.5)
    handles, called = ax.get_legend_handles_labels()
    kept = {label: handle for handle, label in zip(handles, called, strict=True)}
    if len(kept) > 1:
        outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if first.y.kind == "names" else {}
        ax.legend(kept.values(), kept.keys(), frameon=False, fontsize="small", **outside)
    for spine in ("top", "right"):
        ax.spines[spine].set_color("none")


def _labels(axis: Axis) -> list[str]:
    return ["\n".join(_text(line) for line in axis.labels.get(str(v), (v,))) for v in axis.names]


def _axis(on: XAxis | YAxis, axis: Axis, labels: Sequence[str], room: bool = False) -> None:
    from matplotlib.dates import ConciseDateFormatter

    on.set_label_text(_text(axis.title or "", 2 * LONGEST))
    across = on.axis_name == "x"
    if axis.kind in ("names", "cells"):
        aslant = across and sum(len(v) + 2 for v in labels) > 1.5 * LONGEST
        look: Row = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if aslant else {}
        on.set_ticks(np.arange(len(labels)) + (0.5 if axis.kind == "cells" else 0.0), labels, **look)
        edge = 0.0 if axis.kind == "cells" else 0.5
        ends: Places | None = np.array([-edge, len(labels) - edge])
    else:
        ends = axis.ends if axis.ends is None else _places([{"at": v} for v in axis.ends], "at", axis)
        if axis.kind == "date":
            on.axis_date()
            on.set_major_formatter(ConciseDateFormatter(on.get_major_locator()))
        elif axis.unit or axis.kind != "number":
            whole = 100 if axis.kind == "logit" else 1
            on.set_major_formatter(lambda v, _: _number(whole * v, axis.unit))
            on.set_minor_formatter(lambda *_: "")
        if axis.ticks:
            on.set_ticks(list(axis.ticks))
    if ends is not None and not room:
        (on.axes.set_xlim if across else on.axes.set_ylim)(*ends)


def _scaled(on: XAxis | YAxis, axis: Axis) -> None:
    """Set the scale of an axis, before anything lies on it."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if axis.kind not in ("log", "symlog", "logit"):
        return
    more: Row = {"linthresh": 1.0} if axis.kind == "symlog" else {}
    (on.axes.set_xscale if on.axis_name == "x" else on.axes.set_yscale)(axis.kind, **more)
    low, high = axis.ends or (1.0, 1.0)
    if axis.kind == "log" and (decades := math.log10(high / low)) < DECADES:
        on.set_major_locator(MaxNLocator(6) if decades < 1.0 else LogLocator(subs=(1.0, 2.0, 5.0)))


def _number(v: float, unit: str) -> str:
    sign = "+" if unit == "+" and v > 0 else ""
    return f"{sign}{v:,.6g}{unit.strip('+')}".replace("-", "\u2212")
