"""How a value of a variable is written, in its own units, and where its axis has labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from calibrant.report import numbers as num

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = -700_000, 2_900_000  # days that the calendar knows
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LARGE, SMALL = 1e15, 1e-6  # beyond these a number is written with a power of ten
LABELS = 6  # on an axis, at most


@dataclass(frozen=True, slots=True)
class Axis:
    """The part of a variable that a picture shows: its ends, its labels, and how a value is written."""

    low: float
    high: float
    ticks: tuple[float, ...]
    written: Callable[[float], str]
    labelled: Callable[[float], str]

    def share(self, x: float) -> float:
        """Return where a value lies, from 0 at the left to 1."""
        return (x - self.low) / (self.high - self.low)


def axis_of(xs: list[float], dates: bool) -> Axis:
    """Return the axis on which these values lie; they are written as exactly as they lie apart."""
    low, high = min(xs), max(xs)
    if high <= low:
        pad = 0.5 if dates or not low else abs(low) * 0.05
        low, high = low - pad, high + pad
    between = (high - low) / max(len(xs) - 1, 1)
    if dates and low > EARLIEST and high < LATEST:
        return _dated(low, high, between)
    step = _nice((high - low) / (LABELS - 1))
    first = math.ceil(low / step - 1e-9)
    ticks = tuple(k * step for k in range(first, math.floor(high / step + 1e-9) + 1))
    return Axis(low, high, ticks, _writer(between, low, high), _writer(step, low, high))


def _nice(step: float) -> float:
    size = 10.0 ** math.floor(math.log10(step))
    return next(k * size for k in (1, 2, 5, 10) if k * size >= step * (1 - 1e-9))


def _writer(step: float, low: float, high: float) -> Callable[[float], str]:
    """Return what writes numbers that lie `step` apart."""
    top = max(abs(low), abs(high))
    if top >= LARGE or top < SMALL:
        return lambda x: f"{x:.3g}".replace("-", num.MINUS)
    places = -math.floor(math.log10(step) + 1e-9)
    return lambda x: number(round(x, places), max(places, 0), top)


def number(x: float, digits: int, top: float = 0.0) -> str:
    """Write a number; thousands are set apart from five digits on, so that a year stays a year."""
    apart = max(abs(x), top) >= 10_000
    text = f"{x:,.{digits}f}" if apart else f"{x:.{digits}f}"
    if not float(text.replace(",", "")):
        text = text.removeprefix("-")
    return text.replace(",", num.THIN).replace("-", num.MINUS)


def level(x: float) -> str:
    """Write a number that is a level of its own."""
    return number(x, 0) if x == int(x) and abs(x) < LARGE else f"{x:.6g}".replace("-", num.MINUS)


def _dated(low: float, high: float, between: float) -> Axis:
    """Return an axis of days since 1970."""
    span = high - low
    if span < 3:
        steps = (high - low) / 3
        ticks = tuple(low + steps * k for k in range(4))
        return Axis(low, high, ticks, _minute, _minute)
    if span <= 120:
        step = next(s for s in (1, 2, 7, 14, 28) if span / s <= LABELS - 1)
        ticks = tuple(float(k) for k in range(math.ceil(low), math.floor(high) + 1, step))
        return Axis(low, high, ticks, day, day)
    months = next(s for s in (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 24000) if span / 30.44 / s <= LABELS)
    ticks = tuple(x for x in _starts(_of(low).year, _of(high).year, months) if low <= x <= high)
    return Axis(low, high, ticks, _month if between >= 20 else day, _year if months % 12 == 0 else _month)


def _starts(first: int, last: int, months: int) -> list[float]:
    """Return the first days of every so many months."""
    years = range(first - first % max(months // 12, 1), last + 1, max(months // 12, 1))
    every = range(1, 13, months) if months < 12 else (1,)
    return [float((date(y, m, 1) - EPOCH.date()).days) for y in years if y > 0 for m in every]


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
