"""The small pictures of the brief: a range before and after, and the gap along a variable with labels at its line."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from calibrant.report import numbers as num
from calibrant.report.by_variable import ByVariable, Point, named
from calibrant.report.places import percent, place
from calibrant.report.svg import SIZE, Svg, area, path, tag

POINTS = 48  # of a line, that a small picture shows
LEVELS = 12  # of a category, in order of their gaps
HEAD, FOOT = 18, 17  # pixels above and below the plot, for labels
TALL = 52  # pixels of the plot
Range = tuple[float, float]


def before_after(now: Range, after: Range, top: float, limit: float | None, status: str, label: str) -> Svg:
    """A range as it is, in grey, and as it is after a repair, in the colour and shape of its verdict."""

    def bar(of: Range, kind: str, tall: float, corner: float) -> Svg:
        low, high = (min(max(v * 100, 0.0), top) for v in of)
        rect = tag(
            "rect", cls=kind, x=place(low, top), width=percent((high - low) / top), y=-tall / 2, height=tall, rx=corner
        )
        return tag("svg", rect, y="50%", overflow="visible")

    beyond = tag("path", cls=f"ivl {status}", d="M1 -7l8 7l-8 7z")
    at = None if limit is None else place(min(limit * 100, top), top)
    parts = [
        tag("line", cls="row0", x2="100%", y1="50%", y2="50%"),
        bar(now, "was", 14, 2),
        bar(after, f"ivl {status}", 8, 1 if status == "over" else 4),
        tag("svg", beyond, x="100%", y="50%", overflow="visible") if after[1] * 100 > top else "",
        tag("line", cls="lim", x1=at, x2=at, y2="100%") if at else "",
    ]
    return tag("svg", *parts, cls="t", role="img", aria_label=label)


def figure(by_variable: ByVariable, label: str) -> Svg:
    """The gap along a variable: a band and a line with its ends and its farthest place, or a dot a level."""
    return (
        _line(by_variable, label) if by_variable.axis is not None and by_variable.line else _levels(by_variable, label)
    )


def flat(label: str) -> Svg:
    """The line of no gap by itself."""
    line = tag("line", cls="zero", x2="100%", y1=HEAD, y2=HEAD)
    return tag("svg", line, cls="follow-fig", height=2 * HEAD, role="img", aria_label=label)


def _line(by_variable: ByVariable, label: str) -> Svg:
    axis, line = by_variable.axis, by_variable.line
    if axis is None:
        return flat(label)
    every = max(1, -(-len(line) // POINTS))
    peak = max(line, key=lambda p: abs(p.gap))
    kept = [p for i, p in enumerate(line) if i % every == 0 or i == len(line) - 1 or p is peak]
    top, low = _ends(kept)
    shapes = [tag("path", cls="zero", d=f"M0 {_y(0.0, top, low)}h{SIZE}")]
    for run in _runs(kept):
        x = [round(axis.share(float(p.x or 0.0)) * SIZE) for p in run]
        band, curve = (
            [(i, _y(v, top, low)) for i, v in zip(x, vs, strict=True)]
            for vs in ([p.low for p in run], [p.gap for p in run])
        )
        over = [(i, _y(p.high, top, low)) for i, p in zip(x, run, strict=True)]
        shapes.append(tag("path", cls="band", d=area(band, over)))
        shapes.append(tag("path", cls="curve" if len(run) > 1 else "lone", d=path(curve)))
    at = axis.share(float(peak.x or 0.0))
    texts = [
        _text(axis.written(axis.low), 0.0, "foot"),
        _text(axis.written(axis.high), 1.0, "foot"),
        _text(f"{signed_gap(peak)} at {axis.written(float(peak.x or 0.0))}", at, "head"),
    ]
    return _picture(shapes, texts, label)


def _levels(by_variable: ByVariable, label: str) -> Svg:
    ranked = sorted(by_variable.levels, key=lambda p: -abs(p.gap))[:LEVELS]
    some = sorted(ranked, key=lambda p: -p.gap)
    if not some:
        return flat(label)
    top, low = _ends(some, dots=True)
    worst, n = ranked[0], len(some)
    shapes = [tag("path", cls="zero", d=f"M0 {_y(0.0, top, low)}h{SIZE}")]
    for i, p in enumerate(some):
        x = round((i + 0.5) / n * SIZE)
        shapes.append(tag("path", cls="whisker", d=f"M{x} {_y(p.high, top, low)}V{_y(p.low, top, low)}"))
        shapes.append(tag("path", cls="lone", d=f"M{x} {_y(p.gap, top, low)}h0"))
    at = (some.index(worst) + 0.5) / n
    return _picture(shapes, [_text(f"{_short(named(worst))} {signed_gap(worst)}", at, "head")], label)


def signed_gap(p: Point) -> str:
    """The gap at a place in points, with its sign."""
    return num.gap(p.gap)


def _short(text: str) -> str:
    return text if len(text) <= 22 else f"{text[:21].rstrip()}…"


def _ends(points: Sequence[Point], dots: bool = False) -> tuple[float, float]:
    """Return both ends of the axis of gaps: zero, the line and its band are inside, a wide band is cut."""
    most = max(abs(p.gap) for p in points) or 0.01
    reach = 1.0 if dots else 1.6
    high = max(0.15 * most, *(min(p.high, reach * most + max(p.gap, 0.0)) for p in points))
    low = min(-0.15 * most, *(max(p.low, -reach * most + min(p.gap, 0.0)) for p in points))
    return high, low


def _y(v: float, top: float, low: float) -> int:
    return round(SIZE * (top - min(max(v, low), top)) / (top - low))


def _runs(line: Sequence[Point]) -> list[list[Point]]:
    out: list[list[Point]] = []
    for p in line:
        if out and out[-1][-1].stretch == p.stretch:
            out[-1].append(p)
        else:
            out.append([p])
    return out


def _text(words: str, at: float, where: str) -> Svg:
    """A label above or under the plot, inside the picture's edges."""
    anchor = "start" if at < 0.3 else "end" if at > 0.7 else "middle"
    return tag(
        "text", escape(words), x=percent(at), y=13 if where == "head" else HEAD + TALL + FOOT - 3, text_anchor=anchor
    )


def _picture(shapes: Sequence[str], texts: Sequence[str], label: str) -> Svg:
    view = {"viewBox": f"0 0 {SIZE} {SIZE}", "preserveAspectRatio": "none"}
    plot = tag("svg", *shapes, y=HEAD, width="100%", height=TALL, overflow="visible", **view)
    return tag("svg", plot, *texts, cls="follow-fig", height=HEAD + TALL + FOOT, role="img", aria_label=label)
