"""Pictures that stretch with the page: shapes in thousandths of the plot, text placed in per cent, so that it never shrinks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from calibrant.report import charts
from calibrant.report.along import Along, Point
from calibrant.report.units import Axis

SIZE = 1000  # units along each side of a plot
SPARK = (100, 24)
SPARK_POINTS = 20
FLOOR = 1.0 + 2.0 * charts.STRIP  # of the axis of gaps, in units of its top, below zero
FOURTHS = (100, 20, 2)  # lengths of an axis that four steps divide well
At = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture: labels as (place, text), shapes as (class, path), and zero and zone as numbers."""

    up: tuple[tuple[str, str], ...]
    across: tuple[tuple[str, str], ...]
    shapes: tuple[tuple[str, str], ...]


def gaps(along: Along, axis: Axis, limit: float | None, top: float) -> Plot:
    """Return the gap as a line in its band, over the zone of the limit and the strip of people; `top` in points."""

    def y(points: float) -> int:
        return round((top - max(-top, min(top, points))) / (1 + FLOOR) / top * SIZE)

    def at(p: Point, value: float) -> At:
        return round(axis.share(float(p.x or 0.0)) * SIZE), y(value * 100)

    shapes = []
    if limit is not None:
        edge = min(limit * 100, top)
        shapes.append(("okzone", f"M0 {y(edge)}h{SIZE}V{y(-edge)}H0z"))
    shapes.append(("hist", _strip(along.line, axis)))
    for run in _runs(along.line):
        shapes.append(("band", area([at(p, p.low) for p in run], [at(p, p.high) for p in run])))
    shapes.append(("zero", f"M0 {y(0)}h{SIZE}"))
    shapes.append(("shift", f"M0 {y(along.shift * 100)}h{SIZE}"))
    for run in _runs(along.line):
        shapes.append(("curve" if len(run) > 1 else "lone", path([at(p, p.gap) for p in run])))
    labels = tuple((_percent(y(v) / SIZE), charts.signed(v)) for v in (top * k / 2 for k in (2, 1, 0, -1, -2)))
    return Plot(labels, _places(axis), tuple(s for s in shapes if s[1]))


def classic(along: Along, axis: Axis, across: charts.Window) -> Plot:
    """Return what the model says, dashed, and what happened, solid."""
    low, high = across

    def at(p: Point, value: float) -> At:
        return round(axis.share(float(p.x or 0.0)) * SIZE), round((high - value * 100) / (high - low) * SIZE)

    shapes = []
    for run in _runs(along.line):
        shapes.append(("says" if len(run) > 1 else "lone", path([at(p, p.predicted) for p in run])))
        shapes.append(("curve" if len(run) > 1 else "lone", path([at(p, p.observed) for p in run])))
    labels = [
        (_percent((high - v) / (high - low)), f"{v:g}%")
        for v in charts.ticks(across, 5 if high - low in FOURTHS else 6)
    ]
    return Plot(tuple(labels), _places(axis)[:: 1 if len(axis.ticks) < 4 else 2], tuple(shapes))


def spark(along: Along, top: float) -> tuple[tuple[str, str], ...]:
    """Return the gap in a few strokes, 100 wide and 24 high; `top` in points."""
    width, height = SPARK

    def y(value: float) -> int:
        return round(height / 2 * (1 - max(-1.0, min(1.0, value * 100 / top))))

    shapes: list[tuple[str, str]] = []
    if along.axis is not None:
        axis = along.axis
        for run in _runs(along.line):
            few = _thinned(run)
            x = [round(axis.share(float(p.x or 0.0)) * width) for p in few]
            low, high, mid = (
                [(i, y(v)) for i, v in zip(x, values, strict=True)]
                for values in ([p.low for p in few], [p.high for p in few], [p.gap for p in few])
            )
            shapes += [("band", area(low, high)), ("curve" if len(few) > 1 else "lone", path(mid))]
    else:
        some = along.levels[:SPARK_POINTS]
        x = [round((i + 0.5) * width / len(some)) for i in range(len(some))]
        shapes.append(("whisker", "".join(f"M{i} {y(p.high)}V{y(p.low)}" for i, p in zip(x, some, strict=True))))
        shapes.append(("lone", "".join(f"M{i} {y(p.gap)}h0" for i, p in zip(x, some, strict=True))))
    return tuple(s for s in shapes if s[1])


def _thinned(run: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return some of the points, both ends among them."""
    every = -(-len(run) // SPARK_POINTS)
    return (*run[:-1:every], run[-1])


def path(at: Sequence[At]) -> str:
    """Return a line through points; a single point as a dot."""
    if not at:
        return ""
    if len(at) == 1:
        return f"M{at[0][0]} {at[0][1]}h0"
    return f"M{at[0][0]} {at[0][1]}l{_steps(at)}"


def area(low: Sequence[At], high: Sequence[At]) -> str:
    """Return what lies between two lines; of a single point nothing wide, a stroke."""
    if len(low) < 2:
        return f"M{low[0][0] - 2} {low[0][1]}h4V{high[0][1]}h-4z" if low else ""
    return f"M{low[0][0]} {low[0][1]}l{_steps([*low, *reversed(high)])}z"


def _steps(at: Sequence[At]) -> str:
    """Return the steps from each point to the next, as short as they can be written."""
    pairs = pairwise(at)
    text = " ".join(f"{b[0] - a[0]} {b[1] - a[1]}" for a, b in pairs)
    return text.replace(" -", "-")


def _strip(line: Sequence[Point], axis: Axis) -> str:
    """Return the people along the axis as steps of square-root height, at the foot of the plot."""
    most = max((p.density for p in line), default=0.0)
    if most <= 0.0 or len(line) < 2:
        return ""
    xs = [axis.share(float(p.x or 0.0)) * SIZE for p in line]
    steps = [b - a for a, b in pairwise(xs)]
    least = min(steps)
    reach = [least / 2, *(d / 2 if d <= 2.5 * least else least / 2 for d in steps), least / 2]
    tall = SIZE * (FLOOR - 1.12) / (1 + FLOOR)
    out, edge = "", -float(SIZE)
    for i, (p, x) in enumerate(zip(line, xs, strict=True)):
        y = round(SIZE - tall * (max(p.density, 0.0) / most) ** 0.5)
        left, right = max(0.0, x - reach[i]), min(float(SIZE), x + reach[i + 1])
        gap = left - edge > 1.0
        out += (f"{'V1000' if out else ''}M{left:.0f} 1000" if gap else "") + f"V{y}H{right:.0f}"
        edge = right
    return f"{out}V1000"


def _runs(line: Sequence[Point]) -> list[tuple[Point, ...]]:
    """Return the unbroken pieces of a line."""
    return [tuple(run) for _, run in groupby(line, key=lambda p: p.stretch)]


def _places(axis: Axis) -> tuple[tuple[str, str], ...]:
    return tuple((_percent(axis.share(t)), axis.labelled(t)) for t in axis.ticks)


def _percent(share: float) -> str:
    return f"{share * 100:.4g}%"
