"""Where things lie in a picture: axes with their labels, how far they reach, and places along them; numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from calibrant.report import numbers as num

Window = tuple[float, float]
# The light palette of the page: what is shown, its range, quiet lines, text, grid, and off to either side.
LINE, BAND, QUIET, INK, GRID, PAPER = "#27517a", "#b9cbdd", "#576068", "#1e2428", "#e6e4df", "#ffffff"
HIGH, LOW = "#b03a06", "#0a6a86"

# Ends of an axis, in points, from small to large: each is divided well by the labels it gets, halves of STEPS and
# fifths or sixths of NICE; a longer list would follow the data more closely and give odder labels.
STEPS = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 100)
NICE = (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 80, 100)
FOREST_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
WHOLE: Window = (0.0, 100.0)
WINDOWS = (1, 2, 5, 10, 20, 50)  # parts of the axis of probabilities, in points, that are shown alone
LEAST = 4  # points the axis of gaps reaches at least, where the axis of probabilities is whole: smaller ones look alike
LABELS = 6  # on an axis, at most: six of "2015-03-01" fit on a phone
THINNEST = 0.008  # of an axis: a shorter bar would not be seen

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = -700_000, 2_900_000  # days that the calendar knows
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LARGE, SMALL = 1e15, 1e-6  # beyond these a number is written with a power of ten


def percent(share: float) -> str:
    """A place, from 0 at the left or top to 1, as SVG takes it."""
    return f"{share * 100:.4g}%"


def place(x: float, high: float, low: float = 0.0) -> str:
    """Where a value lies on an axis from `low` to `high`; one beyond its end lies at the end."""
    return percent(min(1.0, max(0.0, (x - low) / (high - low))))


def end_of(need: float, ends: Sequence[float] = STEPS) -> float:
    """The first of the ends that an axis may have that is at least what it needs."""
    return float(next((e for e in ends if e >= need), ends[-1]))


# ---- the axes of probabilities and of gaps, in points ----


def window_of(seen: Iterable[float]) -> Window:
    """The part of the axis of probabilities, in points, that holds all of these, which are fractions."""
    points = [v * 100 for v in seen]
    for w in WINDOWS if points else ():
        if max(points) <= w:
            return 0.0, float(w)
        if min(points) >= 100 - w:
            return 100.0 - w, 100.0
    return WHOLE


def digits_of(across: Window) -> int:
    """The decimals of what is read off a figure: more where it shows a small part of the probabilities."""
    span = across[1] - across[0]
    return 1 if span > 20 else 2 if span > 2 else 3


def ticks(across: Window, labels: int) -> list[float]:
    low, high = across
    return [round(low + (high - low) * i / (labels - 1), 6) for i in range(labels)]


def reach(gaps: Sequence[tuple[float, float, float]], limit: float | None, across: Window = WHOLE) -> float:
    """Where the axis of gaps ends, in points: every (gap, low, high), fractions, and all but a few ranges fit.

    The limit is too if it is near. At least 4 points, or the same share of a part of the axis of probabilities.
    """
    ends = sorted(100 * max(abs(low), abs(high)) for _, low, high in gaps)
    most = ends[max(0, -(-len(ends) * 9 // 10) - 1)]  # the widest tenth may go on beyond the edge ...
    most = ends[-1] if ends[-1] <= 1.6 * most else most  # ... unless it is little wider than the others
    need = max(most, 110 * max(abs(gap) for gap, _, _ in gaps), LEAST * (across[1] - across[0]) / 100)
    zone = 120 * (limit or 0.0)
    need = max(need, zone) if zone <= 2 * need or across == WHOLE else need
    return end_of(need)


def signed(points: float) -> str:
    return f"{points:+g}".replace("-", num.MINUS) if points else "0"


# ---- the axis of a variable, in its own units ----


@dataclass(frozen=True, slots=True)
class Axis:
    """The part of a variable that a picture shows: its ends, its labels, and how a value is written."""

    low: float
    high: float
    ticks: tuple[float, ...]
    written: Callable[[float], str]
    labelled: Callable[[float], str]

    def share(self, x: float) -> float:
        return (x - self.low) / (self.high - self.low)


def axis_of(xs: Sequence[float], dates: bool = False) -> Axis:
    """The axis on which these values lie; they are written as exactly as they lie apart."""
    low, high = min(xs), max(xs)
    if high <= low:
        pad = 0.5 if dates or not low else abs(low) * 0.05
        low, high = low - pad, high + pad
    between = (high - low) / max(len(xs) - 1, 1)
    if dates and low > EARLIEST and high < LATEST:
        return _dated(low, high, between)
    step = (high - low) / (LABELS - 1)
    size = 10.0 ** math.floor(math.log10(step))
    step = next(k * size for k in (1, 2, 5, 10) if k * size >= step * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    at = tuple(k * step for k in range(first, math.floor(high / step + 1e-9) + 1))
    return Axis(low, high, at, _writer(between, low, high), _writer(step, low, high))


def score_axis(across: Window) -> Axis:
    """The axis of the score; values are fractions, labels percent."""
    low, high = across
    at = tuple(v / 100 for v in ticks(across, LABELS))
    return Axis(low / 100, high / 100, at, lambda x: f"{round(100 * x, 1):g}%", lambda x: f"{round(100 * x, 6):g}%")


def _writer(step: float, low: float, high: float) -> Callable[[float], str]:
    top = max(abs(low), abs(high))
    if top >= LARGE or top < SMALL:
        return lambda x: f"{x:.3g}".replace("-", num.MINUS)
    decimals = -math.floor(math.log10(step) + 1e-9)
    return lambda x: number(round(x, decimals), max(decimals, 0), top)


def number(x: float, digits: int, top: float = 0.0) -> str:
    """Write a number; thousands are set apart from five digits on, so that a year stays a year."""
    apart = max(abs(x), top) >= 10_000
    text = f"{x:,.{digits}f}" if apart else f"{x:.{digits}f}"
    if not float(text.replace(",", "")):
        text = text.removeprefix("-")
    return text.replace("-", num.MINUS)


def level(x: float) -> str:
    """Write a number that is a level of its own."""
    return number(x, 0) if x == int(x) and abs(x) < LARGE else f"{x:.6g}".replace("-", num.MINUS)


def _dated(low: float, high: float, between: float) -> Axis:
    span = high - low
    if span < 3:
        at = tuple(low + span / 3 * k for k in range(4))
        return Axis(low, high, at, _minute, _minute)
    if span <= 120:
        step = next(s for s in (1, 2, 7, 14, 28) if span / s <= LABELS - 1)
        at = tuple(float(k) for k in range(math.ceil(low), math.floor(high) + 1, step))
        return Axis(low, high, at, day, day)
    months = next(s for s in (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 24000) if span / 30.44 / s <= LABELS)
    years = range(_of(low).year - _of(low).year % max(months // 12, 1), _of(high).year + 1, max(months // 12, 1))
    every = range(1, 13, months) if months < 12 else (1,)
    starts = (float((date(y, m, 1) - EPOCH.date()).days) for y in years if y > 0 for m in every)
    at = tuple(x for x in starts if low <= x <= high)
    return Axis(low, high, at, _month if between >= 20 else day, _year if months % 12 == 0 else _month)


def _of(x: float) -> datetime:
    return EPOCH + timedelta(days=x)


def _minute(x: float) -> str:
    return f"{_of(x):%Y-%m-%d %H:%M}"


def day(x: float) -> str:
    """Write days since 1970 as a date."""
    return _of(x).date().isoformat()


def _month(x: float) -> str:
    at = _of(x)
    return f"{MONTHS[at.month - 1]} {at.year}"


def _year(x: float) -> str:
    return str(_of(x).year)


# ---- ranges under each other on one axis, in points ----


def ruler_top(ranges: Sequence[tuple[float, float]], limit: float | None) -> float:
    """Where the axis of a ruler ends, in points: most ranges fit, and every lower end and the limit show."""
    highs = sorted(max(low, high) * 100 for low, high in ranges)
    lows = [low * 100 for low, _ in ranges]
    most = highs[max(0, -(-len(highs) * 4 // 5) - 1)]  # the widest fifth may go on beyond the edge
    least = max(1.15 * max(lows), 160 * (limit or 0.0))
    cap = max(20.0, 2000 * (limit or 0.0), 2 * least)
    return float(next((t for t in NICE if t >= max(min(most, cap), least)), 100))


def forest_ends(
    spans: Sequence[tuple[float, float]], values: Sequence[float], limit: float | None
) -> tuple[float, float, float]:
    """Both ends of an axis of signed gaps, in points, and the step of its labels.

    All estimates, most of their spans and the limit fit. The widest tenth may go on beyond the edge, unless it is
    little wider than the others.
    """
    sizes = sorted(100 * max(abs(low), abs(high)) for low, high in spans)
    most = sizes[max(0, -(-len(sizes) * 9 // 10) - 1)]
    most = sizes[-1] if sizes[-1] <= 1.6 * most else most
    most = max(most, *(105 * abs(v) for v in values))
    least = max(120 * (limit or 0.0), 0.01)
    low = max(least, min(most, -100 * min(low for low, _ in spans)))
    high = max(least, min(most, 100 * max(high for _, high in spans)))
    step = next(s for s in FOREST_STEPS if (low + high) / s <= LABELS - 0.5)
    return -step * math.ceil(low / step - 1e-9), step * math.ceil(high / step - 1e-9), step


def anchor(points: float, top: float) -> str:
    """On which side of a place its words stand, so that they stay inside a ruler."""
    return "start" if points <= 0.0 else "end" if points >= top else "middle"
