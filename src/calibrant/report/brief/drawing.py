"""The forest plot as SVG: one line of it, and the words over and under its axis."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from calibrant.report.places import THINNEST, anchor, percent, place, signed
from calibrant.report.svg import Svg, tag

SPOTS = {  # the shape of an estimate: a disc, a diamond, a triangle, an open ring
    "within": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "over": "M0 -7l7 7l-7 7l-7 -7z",
    "error_shown": "M0 -6.5l6.5 11.5h-13z",
    "undecided": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
}
ARROWS = ("M-1 -6l-7 6l7 6z", "0"), ("M1 -6l7 6l-7 6z", "100%")  # beyond the left and the right edge


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis of a forest plot, in points: its ends, which hold zero, and its labels."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, points: float) -> str:
        return place(points, self.high, self.low)


def estimated(  # one line of a forest plot
    scale: Scale,
    value: float | None,
    interval: tuple[float, float] | None,
    guaranteed: tuple[float, float] | None,
    limit: float | None,
    status: str,
) -> Svg:
    """Return an estimate as a shape, its interval as a line and what is guaranteed as a bar; the limit as a band.

    What goes on beyond the axis ends at its edge, and an estimate beyond it is an arrow there.
    """

    def inside(points: float) -> float:
        return max(scale.low, min(scale.high, points))

    parts = []
    if limit is not None:
        left, right = (inside(v * 100) for v in (-limit, limit))
        across = percent((right - left) / (scale.high - scale.low))
        parts.append(tag("rect", cls="okzone", x=scale.at(left), width=across, height="100%"))
    parts.append(tag("line", cls="ax", x1=scale.at(0), x2=scale.at(0), y2="100%"))
    if guaranteed is not None:
        low, high = (inside(v * 100) for v in guaranteed)
        wide = max(high - low, THINNEST * (scale.high - scale.low))
        bar = tag(
            "rect",
            cls=f"sure {status}",
            x=scale.at(min(low, scale.high - wide)),
            width=percent(wide / (scale.high - scale.low)),
            y=-6,
            height=12,
            rx=3,
        )
        parts.append(tag("svg", bar, y="50%", overflow="visible"))
        off = guaranteed[0] * 100 < scale.low, guaranteed[1] * 100 > scale.high
        parts += [
            tag("svg", tag("path", cls=f"sure {status}", d=d), x=x, y="50%", overflow="visible")
            for (d, x), beyond in zip(ARROWS, off, strict=True)
            if beyond
        ]
    if interval is not None:
        low, high = (inside(v * 100) for v in interval)
        parts.append(tag("line", cls=f"span {status}", x1=scale.at(low), x2=scale.at(high), y1="50%", y2="50%"))
    if value is not None:
        points = value * 100
        arrow, _ = ARROWS[points > scale.high]
        d = SPOTS.get(status, SPOTS["within"]) if inside(points) == points else arrow
        shape = tag("path", cls=f"spot {status}", d=d)
        parts.append(tag("svg", shape, x=scale.at(inside(points)), y="50%", overflow="visible"))
    return tag("svg", *parts, cls="t", aria_hidden="true")


def head(scale: Scale, words: str) -> Svg:
    """Return the directions over a forest plot on both sides of zero, and between them the words of the limit."""
    zero = (0 - scale.low) / (scale.high - scale.low)
    near = min(max(zero, 0.3), 0.7)  # words of either direction need room
    parts = [
        tag("text", "← overpredicts", x="0", y=28),
        tag("text", "underpredicts →", x="100%", y=28, text_anchor="end"),
    ]
    if words:
        parts.append(tag("text", escape(words), cls="t-lim", x=percent(near), y=12, text_anchor="middle"))
    return tag("svg", *parts, cls="t", aria_hidden="true")


def foot(scale: Scale) -> Svg:
    parts = []
    for t in scale.ticks:
        side = anchor(t - scale.low, scale.high - scale.low)
        parts.append(tag("line", cls="ax", x1=scale.at(t), x2=scale.at(t), y2=4))
        parts.append(tag("text", signed(t), x=scale.at(t), y=17, text_anchor=side))
    return tag("svg", *parts, cls="t", aria_hidden="true")
