"""Every picture of the page as SVG: classes and paths only, so that the style sheet gives colours, dark and print.

A picture that stretches with the page holds its shapes in thousandths of its plot and its text placed in percent, so
that text never shrinks and strokes keep their width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, groupby, pairwise
from unicodedata import east_asian_width

from calibrant.report.by_variable import Bar, Bin, ByVariable, Point
from calibrant.report.places import THINNEST, Window, anchor, percent, place, signed, ticks
from calibrant.results import Curve

SIZE = 1000  # units along each side of a plot
SPARK = (100, 24)  # units of a small curve, wide and high
SPARK_POINTS = 20  # a small curve is about 100 pixels wide
STRIP = 0.3  # of the height above and below zero: the strip of people under the gaps
FLOOR = 1.0 + 2.0 * STRIP  # of the axis of gaps, in units of its top, below zero
FOURTHS = (100, 20, 2)  # lengths of an axis that four steps divide well
TALL = 270  # pixels of a plot, as the style sheet has it
ROW = 27  # pixels of a row of a map
LEVEL = 3  # columns of a map up to which their labels need not be turned
LINE = 14  # characters of a label of a map on one line
HISTOGRAM = 0.12  # of the height of a reliability diagram
WORDED = 12  # columns of a map up to which its cells have room for words
DOT_AREAS = (7.0, 90.0)  # square pixels of a dot of nobody, and of the dot of most people
At = tuple[int, int]
Shape = tuple[str, str]  # class and path


class Svg(str):
    """Markup in which all text is escaped: templates print it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def tag(name: str, *inside: str, **attributes: object) -> Svg:
    """An element; ``cls`` is its class, an underscore in a name a hyphen; None leaves an attribute out."""
    inputs = "".join(
        f' {"class" if k == "cls" else k.replace("_", "-")}="{escape(f"{v:.5g}" if isinstance(v, float) else str(v))}"'
        for k, v in attributes.items()
        if v is not None
    )
    return Svg(f"<{name}{inputs}>{''.join(inside)}</{name}>" if inside else f"<{name}{inputs}/>")


# ---- signs and keys ----

ICONS = {
    "within": '<circle cx="8" cy="8" r="7.2" fill="currentColor"/><path d="M4.6 8.3l2.3 2.3 4.5-5" fill="none" '
    'stroke="var(--bg)" stroke-width="1.9" stroke-linecap="round" stroke-linejoin="round"/>',
    "over": '<path d="M8 .4L15.6 8 8 15.6.4 8z" fill="currentColor"/><path d="M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4" '
    'stroke="var(--bg)" stroke-width="1.8" stroke-linecap="round"/>',
    "undecided": '<circle cx="8" cy="8" r="6.3" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    '<path d="M5.2 8h5.6" stroke="currentColor" stroke-width="1.7" stroke-linecap="round"/>',
    "error_shown": '<path d="M8 1.2L15.4 14.4H.6z" fill="currentColor"/>'
    '<path d="M8 5.6v4M8 11.6v1.2" stroke="var(--bg)" stroke-width="1.8" stroke-linecap="round"/>',
    "reference": '<path d="M3.2 3.5h9.6M3.2 8h9.6M3.2 12.5h6" stroke="currentColor" stroke-width="1.3"/>',
    "found": '<path d="M2.5 8h8.2M7.4 4.2L11.4 8l-4 3.8" fill="none" stroke="currentColor" stroke-width="1.8"/>',
    "measured": '<path d="M2.5 5v6M13.5 5v6M2.5 8h11" fill="none" stroke="currentColor" stroke-width="1.6"/>',
    "unfound": '<circle cx="8" cy="8" r="2.6" fill="none" stroke="currentColor" stroke-width="1.5"/>',
    "": '<path d="M3 8h10" stroke="currentColor" stroke-width="1.2" stroke-dasharray="2 2"/>',
}
SWATCHES = {
    "over": '<rect class="u4" width="22" height="12"/>',
    "under": '<rect class="l4" width="22" height="12"/>',
    "blank": '<rect class="blank" width="22" height="12"/>',
    "frame": '<rect class="frame" x="1" y="1" width="20" height="10"/>',
}


def icon(status: str, size: int = 14) -> Svg:
    """The sign of a status; an unknown one is a broken line."""
    drawn = ICONS.get(status, ICONS[""])
    return tag("svg", drawn, width=size, height=size, viewBox="0 0 16 16", aria_hidden="true")


def swatch(kind: str) -> Svg:
    """A sample of a stroke or an area, for the key of a figure."""
    return tag("svg", SWATCHES[kind], width=22, height=12, aria_hidden="true")


# ---- bars in rows of a table: certified ranges, levels, shares ----


def track(low: float, high: float, top: float, kind: str, label: str, limit: float | None = None) -> Svg:
    """A certified range, in fractions, on an axis from 0 to `top` points; one too short to be seen is drawn longer."""
    start, stop = sorted((low * 100, high * 100))
    width = max(min(stop, top) - start, THINNEST * top)
    corner = 1.5 if kind == "over" else 4.5  # a square end: the worst stands out without its colour
    at = {"x": place(min(start, top - width), top), "width": place(width, top)}
    line = None if limit is None else place(limit * 100, top)
    over = tag("path", cls=f"ivl {kind}", d="M1 -7l8 7l-8 7z")
    parts = [
        tag("line", cls="row0", x2="100%", y1="50%", y2="50%"),
        tag("svg", tag("rect", cls=f"ivl {kind}", **at, y=-4.5, height=9, rx=corner), y="50%", overflow="visible"),
        tag("svg", over, x="100%", y="50%", overflow="visible") if stop > top else "",
        tag("line", cls="lim", x1=line, x2=line, y2="100%") if line else "",
    ]
    return tag("svg", *parts, cls="t", role="img", aria_label=label)


def level(p: Point, top: float, limit: float | None = None) -> Svg:
    """The gap of a level with its range, on an axis from `top` points below zero to `top` above."""
    low, at, high = (place(v * 100, top, -top) for v in (p.low, p.gap, p.high))
    edge = 0.0 if limit is None else min(limit * 100, top)
    parts = [
        tag("rect", cls="okzone", x=place(-edge, top, -top), width=percent(edge / top), height="100%") if edge else "",
        tag("line", cls="ax", x1="50%", x2="50%", y2="100%"),
        tag("line", cls="whisker", x1=low, x2=high, y1="50%", y2="50%"),
        tag("circle", cls="dot", cx=at, cy="50%", r=3.75),
    ]
    return tag("svg", *parts, cls="t", aria_hidden="true")


def signed_track(low: float, at: float, high: float, top: float, limit: float | None, kind: str) -> Svg:
    """A gap with its certified range, on an axis from `top` points below zero to `top` above, between limits."""
    first, middle = (place(v * 100, top, -top) for v in (low, at))
    width = percent((min(high * 100, top) - max(low * 100, -top)) / (2 * top))
    range_ = tag("rect", cls=f"ivl {kind}", x=first, width=width, y=-4.5, height=9, rx=1.5 if kind == "over" else 4.5)
    edges = () if limit is None else (place(-limit * 100, top, -top), place(limit * 100, top, -top))
    parts = [
        tag("line", cls="row0", x2="100%", y1="50%", y2="50%"),
        tag("line", cls="ax", x1="50%", x2="50%", y2="100%"),
        tag("svg", range_, y="50%", overflow="visible"),
        *(tag("line", cls="lim", x1=x, x2=x, y2="100%") for x in edges),
        tag("circle", cls="est", cx=middle, cy="50%", r=3.25),
    ]
    return tag("svg", *parts, cls="t", aria_hidden="true")


def caterpillar(
    lines: Sequence[tuple[float, float, float]], strips: Sequence[tuple[float, float]], top: float, label: str
) -> Svg:
    """Draw ranges under each other, (low, at, high), over strips: of a mean and a new one, or between limits."""
    tall, parts = 9 * len(lines) + 8, []
    for strip, cls in zip(strips, ("band", "okzone"), strict=False):
        low, high = (max(-top, min(top, v)) for v in strip)
        wide = percent((high - low) / (2.0 * top))
        parts.append(tag("rect", cls=cls, x=place(low, top, -top), width=wide, height=tall))
    parts.append(tag("line", cls="zero", x1="50%", x2="50%", y2=tall))
    for i, line in enumerate(lines):
        x1, x, x2 = (place(v, top, -top) for v in line)
        parts.append(tag("line", cls="whisker", x1=x1, x2=x2, y1=9 * i + 8, y2=9 * i + 8))
        parts.append(tag("circle", cls="dot", cx=x, cy=9 * i + 8, r=2.5))
    for t in (-top, -top / 2, 0.0, top / 2, top):
        words = f"{t:g}".replace("-", "\N{MINUS SIGN}")
        parts.append(tag("text", words, x=place(t, top, -top), y=tall + 18, text_anchor=anchor(t + top, 2.0 * top)))
    return tag("svg", *parts, cls="t", width="100%", height=tall + 24, role="img", aria_label=label)


# ---- dots that stand for people ----


def dots(placed: Sequence[tuple[str, float, float]], width: int, height: int, label: str) -> Svg:
    """Dots by (class, x, y): filled people expected, squares those beyond, empty the others."""
    parts = []
    for kind, x, y in placed:
        square = {"x": x - 4.3, "y": y - 4.3, "width": 8.6, "height": 8.6}
        round_ = {"cx": x, "cy": y, "r": 4.3}
        parts.append(tag("rect", cls=kind, **square) if kind == "ic2" else tag("circle", cls=kind, **round_))
    size = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}
    return tag("svg", *parts, cls="waffle", **size, role="img", aria_label=label)


# ---- a map of two attributes ----


@dataclass(frozen=True, slots=True)
class Heat:
    """The cells of two attributes, before they are markup."""

    # `across` and `up`: labels of the columns from the left, and of the rows from the foot.
    across: tuple[str, ...]
    up: tuple[str, ...]
    # Column, row, gap as a share of the largest colour, and its words; other cells are blank.
    cells: tuple[tuple[int, int, float, str], ...]
    # Columns from the first to below the second, rows from the third to below the fourth.
    outlines: tuple[tuple[int, int, int, int], ...]


def heat(h: Heat, label: str) -> Svg:
    """A map: colours for gaps, words in the cells where they fit, and outlines."""
    wide, high = len(h.across), len(h.up)
    shades: dict[str, str] = {}
    for i, j, share, _ in h.cells:
        shades[shade(share)] = shades.get(shade(share), "") + f"M{i} {high - 1 - j}h1v1h-1z"
    drawn = [tag("path", cls=kind, d=d) for kind, d in sorted(shades.items())]
    frames = "".join(f"M{a} {high - d}h{b - a}v{d - c}h{a - b}z" for a, b, c, d in h.outlines)
    drawn += [tag("path", cls=kind, d=frames) for kind in ("frame-edge", "frame")] if frames else []
    view = {"width": "100%", "height": "100%", "viewBox": f"0 0 {wide} {high}", "preserveAspectRatio": "none"}
    parts = [tag("rect", cls="blank", width="100%", height="100%"), tag("svg", *drawn, **view)]
    if wide <= WORDED:
        for i, j, _, words in h.cells:
            x, y = percent((i + 0.5) / wide), percent((high - 0.5 - j) / high)
            parts.append(tag("text", escape(words), cls="in", x=x, y=y, dy=4))
    for j, words in enumerate(h.up):
        two, y = _folded(words), percent((high - 0.5 - j) / high)
        for k, text in enumerate(two):
            parts.append(tag("text", escape(text), cls="yl", x=-7, y=y, dy=4 + 12 * k - 6 * (len(two) - 1)))
    flat = wide <= LEVEL
    turn = "translate(0 17)" if flat else f"translate(3 10) rotate({-45 if wide <= WORDED else -90})"
    for i, words in enumerate(h.across):
        side = "middle" if flat else "end"
        two = _folded(words)
        turned = [
            tag("text", escape(text), transform=turn, text_anchor=side, dy=(0 if flat else 4) + 12 * k)
            for k, text in enumerate(two)
        ]
        parts.append(tag("svg", *turned, x=percent((i + 0.5) / wide), y="100%", overflow="visible"))
    kind = "heat level" if flat else "heat near" if max(map(len, h.across)) <= LINE else "heat"
    return tag("svg", *parts, cls=kind, height=ROW * high, role="img", aria_label=label)


def _folded(words: str) -> list[str]:
    """A label on one line, or a long one on two, parted at the space nearest its middle; each fits its place."""
    spaces = [i for i, c in enumerate(words) if c == " "]
    if len(words) <= LINE or not spaces:
        return [_cut(words)]
    at = min(spaces, key=lambda i: abs(i - len(words) / 2))
    return [_cut(words[:at]), _cut(words[at + 1 :])]


def _cut(words: str) -> str:
    """Words that fit next to a map: a wide letter takes the room of two narrow ones."""
    room = [2.0 if c in "mwMW@%⟨⟩" or east_asian_width(c) in "WF" else 1.0 for c in words]
    if sum(room) <= LINE + 3:
        return words
    return f"{words[: sum(total <= LINE + 2 for total in accumulate(room))].rstrip()}…"


def shade(share: float) -> str:
    """The class of a colour, from l4 over z to u4; what is under an eighth of the largest has none."""
    step = min(4, math.ceil(4 * abs(share) - 0.5))
    return f"{'u' if share > 0 else 'l'}{step}" if step else "z"


# ---- plots that stretch with the page ----


@dataclass(frozen=True, slots=True)
class Mark:
    """Words in or next to a plot: their place and pixels down from it, the side they stand on, class, and text."""

    x: str
    y: str
    dy: int
    anchor: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture, before it is markup."""

    # `up` and `across`, tuple of (place, text): labels of the axes.
    up: tuple[tuple[str, str], ...]
    across: tuple[tuple[str, str], ...]
    shapes: tuple[Shape, ...]  # tuple of (class, path): in thousandths of the plot
    # Tuple of (x, y, radius): dots whose size means something: places in percent, radius in pixels.
    rings: tuple[tuple[str, str, float], ...] = ()
    marks: tuple[Mark, ...] = ()
    ruled: bool = False  # whether the axes have ticks, and the one across a line


def plot(p: Plot, label: str, low: object, high: object, kind: str = "") -> Svg:
    """A plot; the slider of its figure runs from `low` to `high` along it."""
    parts: list[str] = []
    for at, text in p.up:
        parts.append(tag("line", cls="row0", x2="100%", y1=at, y2=at))
        parts += [tag("line", cls="ax", x1=-4, y1=at, y2=at)] if p.ruled else []
        parts.append(tag("text", escape(text), cls="yl", x=-7, y=at, dy=4))
    shapes = [tag("path", cls=name, d=d) for name, d in p.shapes]
    view = {"width": "100%", "height": "100%", "viewBox": f"0 0 {SIZE} {SIZE}", "preserveAspectRatio": "none"}
    parts.append(tag("svg", *shapes, **view))
    if p.ruled:
        feet = [tag("line", cls="ax", x1=at, x2=at, y2=4) for at, _ in p.across]
        parts.append(tag("svg", tag("line", cls="ax", x2="100%"), *feet, y="100%", overflow="visible"))
    parts += [tag("circle", cls="ring", cx=x, cy=y, r=r) for x, y, r in p.rings]
    parts += [tag("text", escape(text), cls="xl", x=at, y="100%", dy=17) for at, text in p.across]
    for m in p.marks:
        parts.append(tag("text", escape(m.text), cls=m.kind, x=m.x, y=m.y, dy=m.dy, text_anchor=m.anchor))
    parts.append(tag("line", cls="cursor", y2="100%"))
    attributes = {"role": "img", "aria_label": label, "data_lo": low, "data_hi": high}
    return tag("svg", *parts, cls=f"plot {kind}".strip(), **attributes)


def gaps(by_variable: ByVariable, limit: float | None, top: float, noun: str = "rows") -> Plot:
    """The gap as a line in its band up to `top` points, over the zone of the limit and the strip of people; with words.

    A point with no neighbour is a dot with its range; of levels nothing is drawn.
    """
    axis = by_variable.axis
    if axis is None:
        return Plot((), (), ())

    def y(points: float) -> int:
        return round((top - max(-top, min(top, points))) / (1 + FLOOR) / top * SIZE)

    def at(p: Point, value: float) -> At:
        return round(axis.share(float(p.x or 0.0)) * SIZE), y(value * 100)

    shapes = []
    if limit is not None:
        edge = min(limit * 100, top)
        shapes.append(("okzone", f"M0 {y(edge)}h{SIZE}V{y(-edge)}H0z"))
    shares = [Bar(axis.share(b.low), axis.share(b.high), b.density) for b in by_variable.strip]
    tall = SIZE * (FLOOR - 1.12) / (1 + FLOOR)  # a gap as high as an eighth of the top stays clear above them
    shapes.append(("hist", _strip(shares, tall)))
    runs = runs_of(by_variable.line)
    for run in runs:
        low, high = [at(p, p.low) for p in run], [at(p, p.high) for p in run]
        lone = len(run) == 1
        shapes.append(("whisker", f"M{low[0][0]} {low[0][1]}V{high[0][1]}") if lone else ("band", area(low, high)))
    shapes.append(("zero", f"M0 {y(0)}h{SIZE}"))
    if by_variable.gap is not None:
        shapes.append(("overall", f"M0 {y(by_variable.gap * 100)}h{SIZE}"))
    shapes += [("curve" if len(run) > 1 else "lone", path([at(p, p.gap) for p in run])) for run in runs]
    labels = tuple((percent(y(v) / SIZE), signed(v)) for v in (top * k / 2 for k in (2, 1, 0, -1, -2)))
    across = tuple((percent(axis.share(t)), axis.labelled(t)) for t in axis.ticks)
    marks = [Mark("100%", "100%", -5, "end", "mark small", noun)] if by_variable.strip else []
    at_right = True  # where words at a line stand clear of the curve
    if by_variable.gap is not None and abs(by_variable.gap) * 100 < top:
        at_right, place_ = _clear(by_variable.line, by_variable.gap), percent(y(by_variable.gap * 100) / SIZE)
        marks.append(_words(at_right, place_, -5, f"everyone {signed(round(by_variable.gap * 100, 1))}"))
    if limit is not None and limit * 100 < top:
        free = not at_right if by_variable.gap is not None else _clear(by_variable.line, -limit)
        marks.append(_words(free, percent(y(-limit * 100) / SIZE), 14, f"limit ±{limit * 100:g}, on average"))
    return Plot(labels, across, tuple(s for s in shapes if s[1]), marks=tuple(marks))


def _words(right: bool, y: str, dy: int, text: str) -> Mark:
    return Mark("100%" if right else "0", y, dy, "end" if right else "start", "mark small", text)


def _clear(line: Sequence[Point], value: float) -> bool:
    """Whether a curve is farther from a value at its right end than at its left."""
    few = max(1, len(line) // 4)
    left, right = (min(abs(p.gap - value) for p in part) for part in (line[:few], line[-few:]))
    return right >= left


def rates(by_variable: ByVariable) -> Plot:
    """Draw what the model says, dashed, and what happened, solid."""
    axis, (low, high) = by_variable.axis, by_variable.across
    if axis is None:
        return Plot((), (), ())

    def at(p: Point, value: float) -> At:
        return round(axis.share(float(p.x or 0.0)) * SIZE), round((high - value * 100) / (high - low) * SIZE)

    shapes = []
    for run in runs_of(by_variable.line):
        shapes.append(("says" if len(run) > 1 else "lone", path([at(p, p.predicted) for p in run])))
        shapes.append(("curve" if len(run) > 1 else "lone", path([at(p, p.observed) for p in run])))
    labels = ticks(by_variable.across, 5 if high - low in FOURTHS else 6)
    up = tuple((percent((high - v) / (high - low)), f"{v:g}%") for v in labels)
    every = 1 if len(axis.ticks) < 4 else 2  # the picture is narrow
    across = tuple((percent(axis.share(t)), axis.labelled(t)) for t in axis.ticks)[::every]
    return Plot(up, across, tuple(shapes), marks=_two(by_variable.line, at))


def _two(line: Sequence[Point], at: Callable[[Point, float], At]) -> tuple[Mark, ...]:
    """The names of the two lines of rates, above the upper and below the lower, where both are level."""
    inner = line[len(line) // 4 : len(line) - len(line) // 4]
    if len(inner) < 4:
        return ()
    tilt = [abs(a.observed - b.observed) for a, b in zip(inner, inner[3:], strict=False)]
    p = inner[tilt.index(min(tilt)) + 1]
    x, stated = at(p, p.predicted)
    _, happened = at(p, p.observed)
    over = happened <= stated  # of the picture, whose foot is its largest number

    def words(y: int, above: bool, text: str) -> Mark:
        return Mark(percent(x / SIZE), percent(y / SIZE), -8 if above else 17, "middle", "mark small", text)

    return words(happened, over, "happened"), words(stated, not over, "the model says")


def cross(bins: Sequence[Bin], across: Window, stated: Sequence[str] = ()) -> Plot:
    """A reliability diagram: a dot at the mean of each bin, its area is people, over the diagonal and a histogram.

    `stated` are lines written under the diagonal, the last at the foot.
    """
    low, high = across
    most, (least, largest) = max(b.rows for b in bins), DOT_AREAS
    rings = []
    for b in bins:
        radius = math.sqrt((least + (largest - least) * b.rows / most) / math.pi)
        x, y = (b.predicted * 100 - low) / (high - low), (high - b.observed * 100) / (high - low)
        rings.append((percent(x), percent(y), round(radius, 2)))
    labels = [(v, f"{v:g}%") for v in ticks(across, 5)]
    up = tuple((percent((high - v) / (high - low)), text) for v, text in reversed(labels))
    right = tuple((percent((v - low) / (high - low)), text) for v, text in labels)
    bars = [Bar(b.start * 100, b.end * 100, b.rows / max(b.end - b.start, 1e-9)) for b in bins]
    bars = [Bar((b.low - low) / (high - low), (b.high - low) / (high - low), b.density) for b in bars]
    shapes = (("hist", _strip(bars, SIZE * HISTOGRAM)), ("ax", f"M0 0V{SIZE}"), ("says", f"M0 {SIZE}L{SIZE} 0"))
    foot = percent(1.0 - HISTOGRAM)
    marks = tuple(Mark("99%", foot, -15 * i - 3, "end", "mark small", text) for i, text in enumerate(reversed(stated)))
    return Plot(up, right, shapes, tuple(rings), marks, ruled=True)


def control(curve: Curve, beyond: str, peak: str) -> Plot | None:
    """The control chart: evidence over people, paths of simulated repeats, its line and its peak, with words at both.

    None where the curve is empty.
    """
    columns, settings = curve.columns, curve.settings
    if not columns.get("x"):
        return None
    share, score = columns["x"], columns["evidence"]
    nulls = [columns[k] for k in columns if k.startswith("null_")]
    line = None if settings.get("line") is None else float(settings["line"])
    seen = [0.0, *score, *(v for n in nulls for v in n), *([line] if line is not None else [])]
    room = max(max(seen) - min(seen), 1e-9)
    low, high = min(seen) - 0.04 * room, max(seen) + 0.1 * room  # the words of the peak stand over it

    def at(x: float, y: float) -> At:
        return round(x * SIZE), round((high - y) / (high - low) * SIZE)

    def through(ys: Sequence[float]) -> str:
        return path([at(x, y) for x, y in zip(share, ys, strict=True)])

    shapes = [("sim", through(n)) for n in nulls]
    shapes.append(("zero", f"M0 {at(0, 0)[1]}h{SIZE}"))
    if line is not None:
        shapes.append(("limit", f"M0 {at(0, line)[1]}h{SIZE}"))
    shapes.append(("curve", through(score)))
    marks, top = (
        [],
        (float(settings["peak_share"]), float(settings["peak_score"])) if settings.get("peak_rows") else None,
    )
    near = 0.09 * (high - low)  # a line of words
    if line is not None and (top is None or abs(top[1] - line) > 1.3 * near):  # else over the peak's words
        over = any(line - 0.2 * near < y < line + near for x, y in zip(share, score, strict=True) if x > 0.5)
        marks.append(Mark("100%", percent(at(0, line)[1] / SIZE), 15 if over else -6, "end", "mark t-lim", beyond))
    if top is not None:
        x, y = at(*top)
        shapes.append(("peak", f"M{x} {y}h0"))
        side = "start" if top[0] < 0.25 else "end" if top[0] > 0.75 else "middle"
        under = 0.0 if line is None else (line - top[1]) / (high - low) * TALL
        dy = -9 - round(under) if 0.0 < under < 24.0 else -9  # above a line that would run through the words
        marks.append(Mark(percent(x / SIZE), percent(y / SIZE), dy, side, "mark t-ink", peak))
    step = next((v for v in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0) if (high - low) / v <= 6), (high - low) / 5)
    up = tuple(
        (percent(at(0, k * step)[1] / SIZE), signed(k * step))
        for k in range(math.ceil(low / step), math.floor(high / step) + 1)
    )
    return Plot(up, tuple((f"{v}%", f"{v}%") for v in (0, 25, 50, 75, 100)), tuple(shapes), marks=tuple(marks))


def spark(by_variable: ByVariable, top: float) -> Svg:
    """The gap in a few strokes; it reaches from `top` points below zero to `top` above."""
    width, height = SPARK

    def y(value: float) -> int:
        return round(height / 2 * (1 - max(-1.0, min(1.0, value * 100 / top))))

    shapes: list[Shape] = [("zero", f"M0 {height // 2}h{width}")]
    if by_variable.axis is not None:
        axis = by_variable.axis
        for run in runs_of(by_variable.line):
            every = -(-len(run) // SPARK_POINTS)
            few = (*run[:-1:every], run[-1])
            x = [round(axis.share(float(p.x or 0.0)) * width) for p in few]
            low, high, mid = (
                [(i, y(v)) for i, v in zip(x, values, strict=True)]
                for values in ([p.low for p in few], [p.high for p in few], [p.gap for p in few])
            )
            shapes += [("band", area(low, high)), ("curve" if len(few) > 1 else "lone", path(mid))]
    else:
        some = by_variable.levels[:SPARK_POINTS]
        x = [round((i + 0.5) * width / len(some)) for i in range(len(some))]
        shapes.append(("whisker", "".join(f"M{i} {y(p.high)}V{y(p.low)}" for i, p in zip(x, some, strict=True))))
        shapes.append(("lone", "".join(f"M{i} {y(p.gap)}h0" for i, p in zip(x, some, strict=True))))
    drawn = [tag("path", cls=kind, d=d) for kind, d in shapes if d]
    view = {"viewBox": f"0 0 {width} {height}", "preserveAspectRatio": "none"}
    return tag("svg", *drawn, cls="spark", **view, aria_hidden="true")


# ---- strokes ----


def path(at: Sequence[At]) -> str:
    """A line through points; a single point as a dot."""
    if not at:
        return ""
    return f"M{at[0][0]} {at[0][1]}h0" if len(at) == 1 else f"M{at[0][0]} {at[0][1]}l{_steps(at)}"


def area(low: Sequence[At], high: Sequence[At]) -> str:
    """The path of what lies between two lines; of a single point, which has no width, a stroke."""
    if len(low) < 2:
        return f"M{low[0][0] - 2} {low[0][1]}h4V{high[0][1]}h-4z" if low else ""
    return f"M{low[0][0]} {low[0][1]}l{_steps([*low, *reversed(high)])}z"


def _steps(at: Sequence[At]) -> str:
    """The steps from each point to the next, as short as they can be written."""
    text = " ".join(f"{b[0] - a[0]} {b[1] - a[1]}" for a, b in pairwise(at))
    return text.replace(" -", "-")


def _strip(bars: Sequence[Bar], tall: float) -> str:
    """The people along the axis as steps of square-root height, at most `tall`, at the foot of the plot."""
    most = max((b.density for b in bars), default=0.0)
    if most <= 0.0:
        return ""
    out, edge = "", -float(SIZE)
    for b in bars:
        y = round(SIZE - tall * (max(b.density, 0.0) / most) ** 0.5)
        left, right = max(0.0, b.low * SIZE), min(float(SIZE), b.high * SIZE)
        apart = left - edge > 1.0
        out += (f"{f'V{SIZE}' if out else ''}M{left:.0f} {SIZE}" if apart else "") + f"V{y}H{right:.0f}"
        edge = right
    return f"{out}V{SIZE}"


def runs_of(line: Sequence[Point]) -> list[tuple[Point, ...]]:
    """The unbroken pieces of a line."""
    return [tuple(run) for _, run in groupby(line, key=lambda p: p.stretch)]
