"""Dates, whatever they are stored as: days since 1970, and groups by month, quarter, year or decade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import CLUSTERS, Unit
from calibrant.data.layouts import changed
from calibrant.errors import BadInput

MOST_PERIODS = 24  # groups of dates, about: more of them, and a coarser unit is used
ENOUGH = 100  # rows of the middle group: fewer, and a coarser unit is used

DAY = 86_400_000_000  # microseconds
SECONDS = -62_135_596_800, 253_402_300_799  # from 1970 to the beginning of year 1, and to the end of year 9999
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.]\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$"
ZONE = r"\d{2}:\d{2}.*(Z|[+-]\d{2}:?\d{2})$"
FIRST = 100  # texts that are looked at before all are


def is_date(t: pa.DataType) -> bool:
    """Whether an Arrow type is a date or a time of a day of the calendar."""
    return bool(pa.types.is_date(t) or pa.types.is_timestamp(t))


def times(column: pa.Array, name: str = "") -> pa.Array:
    """Return dates and times in microseconds of universal time; refuse years other than 1 to 9999."""
    t = column.type
    if pa.types.is_timestamp(t):
        ends = [end * PER_SECOND[t.unit] for end in SECONDS]
    else:
        ends = [end // 86_400 if pa.types.is_date32(t) else end * PER_SECOND["ms"] for end in SECONDS]
    plain = column.cast(pa.int32()) if pa.types.is_date32(t) else column.cast(pa.int64())
    reach = pc.min_max(plain)
    if reach["min"].is_valid and not ends[0] <= reach["min"].as_py() <= reach["max"].as_py() <= ends[1]:
        stated = f"column {name!r}" if name else "a column"
        raise BadInput(f"{stated} holds dates outside the years 1 to 9999: make them missing, or leave the column out")
    return column.cast(pa.timestamp("us"), safe=False)


def dates_in(column: pa.Array, name: str, role: str) -> pa.Array:
    """Return dates, or text that is dates, as times; refuse a column of another kind, named by its role."""
    t = column.type
    if is_date(t):
        return times(column, name)
    result = text_dates(column) if pa.types.is_string(t) else None
    if result is None and not nothing(column):
        raise changed(name, role, "dates", t)
    return pa.nulls(len(column), pa.timestamp("us")) if result is None else result


def as_days(column: pa.Array, name: str = "") -> NDArray[np.float64]:
    """Return dates and times, or text that is dates, as days since 1970, NaN where null."""
    micro = dates_in(column, name, "covariate").cast(pa.int64())
    days: NDArray[np.float64] = micro.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / DAY
    return days


def nothing(column: pa.Array) -> bool:
    """Whether every value is missing, or empty text."""
    if column.null_count == len(column):
        return True
    return pa.types.is_string(column.type) and pc.all(pc.equal(column, "")).as_py() is True


def may_be_dates(column: pa.Array) -> bool:
    """Whether text, by code or spelt out, is dates wherever there is any."""
    text = column.dictionary if pa.types.is_dictionary(column.type) else column
    return nothing(text) or text_dates(text) is not None


def text_dates(text: pa.Array) -> pa.Array | None:
    """Return text as times, null where missing or empty; None unless each is a date such as ``"2024-05-31"``.

    A time of day may follow, and a zone if all have one.
    """
    for some in (text[:FIRST], text):
        there = pc.fill_null(pc.not_equal(some, ""), False)
        if not pc.all(pc.or_(pc.invert(there), pc.match_substring_regex(some, ISO)), skip_nulls=True).as_py():
            return None
    zoned = pc.sum(pc.match_substring_regex(text, ZONE)).as_py() or 0
    rows = int(pc.sum(there).as_py() or 0)
    if not rows or zoned not in (0, rows):
        return None
    text = pc.replace_substring_regex(pc.if_else(there, text, None), r"([.]\d{6})\d+", r"\1")
    try:
        return text.cast(pa.timestamp("us", "UTC" if zoned else None)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None


# ---- groups of dates ----


def periods(column: pa.Array, unit: Unit, name: str = "") -> pa.Array:
    """The month, quarter, year or decade of universal time that dates, or text that is dates, lie in."""
    days = dates_in(column, name, "group").cast(pa.date32(), safe=False).dictionary_encode()
    months = pc.strftime(days.dictionary, format="%Y-%m").cast(pa.string())
    return pa.array([period_of(m, unit) for m in months.to_pylist()], pa.string()).take(days.indices)


def period_of(month: str, unit: Unit) -> str:
    """The period that a month such as ``"2024-05"`` lies in: ``"2024-Q2"``, ``"2024"``, ``"2020s"``."""
    year, number = month.split("-")
    whole = {"month": month, "quarter": f"{year}-Q{(int(number) + 2) // 3}", "year": year, "decade": f"{year[:-1]}0s"}
    return whole[unit]


def unit_of(months: Mapping[str, int]) -> tuple[Unit, dict[str, int]]:
    """Choose the unit for rows counted by month, and count them by it; labels play no part.

    The finest that gives at most 24 groups, the middle one of at least 100 rows; one that makes a single group of
    several is not used.
    """
    chosen: tuple[Unit, dict[str, int]] | None = None
    for unit in CLUSTERS:
        counts: Counter[str] = Counter()
        for month, rows in months.items():
            counts[period_of(month, unit)] += rows
        if chosen is not None and len(counts) < 2 and len(chosen[1]) <= MOST_PERIODS:
            break
        chosen = unit, dict(counts)
        if len(counts) <= MOST_PERIODS and np.median(list(counts.values()) or [0]) >= ENOUGH:
            break
    return chosen or ("month", {})
