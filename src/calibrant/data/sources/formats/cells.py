"""Columns of single values, each of a type of its own, as Excel and JSON have them: one type for all, nothing altered.

A column is a number, a date or true and false only if all values that are there are. Every other is text: text stays
as it is, codes among it, and what is not text is written out.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from calibrant.data.columns import ABSENT, EXACT, number_text
from calibrant.data.sources.frames import table_source
from calibrant.data.sources.source import Source

TRUTH, WHOLE, BIG, LARGE, REAL, DATE, TIME, TEXT, NONE = (1 << i for i in range(9))  # NONE: text such as "NA"
SIMPLE: dict[type, int] = {bool: TRUTH, float: REAL, datetime.datetime: TIME, datetime.date: DATE}
LAST = 2**63  # whole numbers from here on, and below its negative, fit no column of numbers


def seen_in(values: Sequence[object]) -> int:
    """Return what the values of a column can be, as bits; missing ones are nothing."""
    result = 0
    for t in set(map(type, values)) - {type(None)}:
        result |= SIMPLE.get(t) or _of_type(t, values)
    return result


def _of_type(t: type, values: Sequence[object]) -> int:
    """Return what values of one type can be."""
    own = [v for v in values if type(v) is t]
    if t is int:
        low, high = min(own), max(own)  # type: ignore[type-var]
        return WHOLE if -EXACT <= low <= high <= EXACT else BIG if -LAST <= low <= high < LAST else LARGE  # type: ignore[operator]
    if t is str:
        return TEXT if any(v not in ABSENT for v in own) else NONE if any(own) else 0
    return TEXT


def type_of(result: int) -> pa.DataType:
    """The type of a column whose values can be these."""
    kinds = result & ~NONE
    if kinds == 0:
        return pa.string() if result else pa.null()
    if kinds == TRUTH:
        return pa.bool_()
    if not kinds & ~(WHOLE | BIG):
        return pa.int64()
    if not kinds & ~(WHOLE | REAL):
        return pa.float64()
    if not kinds & ~(DATE | TIME):
        return pa.date32() if kinds == DATE else pa.timestamp("us")
    return pa.string()


def column(values: Sequence[object], t: pa.DataType) -> pa.Array:
    """Return values as a column of the type that `type_of` gave."""
    kinds = set(map(type, values)) - {type(None)}
    if pa.types.is_string(t):
        return pa.array(values if kinds <= {str} else [_written(v) for v in values], t)
    plain = [None if isinstance(v, str) else v for v in values] if str in kinds else values  # empty, or such as "NA"
    if pa.types.is_timestamp(t):
        plain = [_midnight(v) if type(v) is datetime.date else v for v in plain]
    return pa.array(plain, t, from_pandas=True)


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime(day.year, day.month, day.day)


def _written(value: object) -> str | None:
    """A value as text, as its file has it as nearly as can be."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else _dumped(value)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def whole(table: pa.Table, name: str, unread: dict[str, str] | None = None) -> Source:
    """A file that was read whole as a source; `unread` are columns that it lacks, and why."""
    source = table_source(table, unread)
    return replace(source, name=name, parts=tuple(replace(part, name=name) for part in source.parts))
