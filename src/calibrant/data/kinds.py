"""What a column is interpreted as, from its values: an identifier, a date, a code, a category, a number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.columns import WORDS
from calibrant.data.dates import is_date, text_dates, times
from calibrant.data.layouts import decoded
from calibrant.data.specs.cluster_names import names_code

Name = Literal["label", "id", "date", "code", "category", "number", "constant", "unusable"]

EXAMPLES = 5
CLIPPED = 40  # characters of a value that are shown
FEW = 12  # so many distinct values say nothing about the rest
TOP = 4096  # distinct texts of a category, at most
MOSTLY, ALMOST = 0.5, 0.95  # share of distinct texts, of distinct whole numbers, from which on they are identifiers
EVEN = 0.1  # distance of the distribution from the uniform one; 20,000 of a normal law are .25 off, of a log-normal .8
NAMED = r"(?i)(^|[_\W])(id|ids|key|uuid|guid|mrn|nr|no|number|index|row\w*|unnamed\W.*)$"  # of identifiers
EXACT = 2**53  # whole numbers up to here are exact as doubles

UUID = r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"
DIGITS = r"^[0-9]+$"


@dataclass(frozen=True)
class Kind:
    """What a column is interpreted as."""

    # A label may be one: its values are 0 and 1, true and false, yes and no. What is unusable is nested, or of a type
    # that is no covariate.
    kind: Name
    why: str  # in a few words, such as "all values differ"
    # `missing` and `distinct`: rows without a value; different values.
    missing: int = 0
    distinct: int = 0
    examples: tuple[str, ...] = ()  # a few values, the first ones that differ
    # `low` and `high`: the ends of numbers, dates and texts; empty if there are none.
    low: str = ""
    high: str = ""


def kind_of_column(column: pa.ChunkedArray, name: str) -> Kind:
    """Return what a column is interpreted as, from its values (all, or a sample of rows) and never from a label.

    Raises
    ------
    BadInput
        Its text is not UTF-8, its dates are out of range, or its dictionary is damaged.
    """
    values = decoded(column, name)
    t = values.type
    if is_date(t):
        return _date(times(values, name))
    if pa.types.is_null(t):
        return Kind("constant", "it is empty", missing=len(values))
    if pa.types.is_boolean(t):
        values = values.cast(pa.string())
    elif pa.types.is_string(t):
        values = pc.if_else(pc.equal(values, ""), None, values)
        if (dates := text_dates(values)) is not None:
            return _date(dates)
    elif pa.types.is_floating(t):
        values = pc.if_else(pc.is_nan(values), None, pc.add(values, 0.0))
    elif not (pa.types.is_integer(t) or pa.types.is_decimal(t)):
        return Kind("unusable", f"it holds {str(t)[:CLIPPED]}", missing=values.null_count)
    there = values.drop_null()
    result = there.unique()
    kind, why = _kind(there, result, name)
    return Kind(kind, why, values.null_count, len(result), _shown(result), *_ends(there))


def _date(values: pa.Array) -> Kind:
    there = values.drop_null()
    result = there.unique()
    stated = "dates" if pc.all(pc.equal(pc.floor_temporal(there, unit="day"), there)).as_py() else "dates and times"
    kind: Name = "date" if len(result) > 1 else "constant"
    why = f"its values are {stated}" if len(result) > 1 else _one(len(result))
    return Kind(kind, why, values.null_count, len(result), _shown(result), *_ends(there))


def _kind(there: pa.Array, result: pa.Array, name: str) -> tuple[Name, str]:
    n, distinct = len(there), len(result)
    if distinct < 2:
        return "constant", _one(distinct)
    if distinct == 2 and {str(v).lower().removesuffix(".0") for v in result.to_pylist()} in WORDS:
        return "label", f"its values are {_shown(result)[0]} and {_shown(result)[1]}"
    return _text_kind(result, n) if pa.types.is_string(there.type) else _number_kind(there, distinct, name)


def _one(distinct: int) -> str:
    return "it takes one value only" if distinct else "it is empty"


def _text_kind(result: pa.Array, n: int) -> tuple[Name, str]:
    distinct = len(result)
    if distinct > FEW and pc.all(pc.match_substring_regex(result, UUID)).as_py():
        return "id", "its values are UUIDs"
    if distinct > TOP or (distinct > FEW and distinct > MOSTLY * n):
        return "id", "most of its values occur once"
    if pc.all(pc.match_substring_regex(result, DIGITS)).as_py():
        zeros = pc.any(pc.match_substring_regex(result, "^0[0-9]")).as_py()
        return "code", "its values are digits with leading zeros" if zeros else "its values are digits stored as text"
    return "category", f"{distinct:,} texts"


def _number_kind(there: pa.Array, distinct: int, name: str) -> tuple[Name, str]:
    values = there.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    whole, low, high = bool((values == np.floor(values)).all()), float(values.min()), float(values.max())
    large = whole and max(-low, high) > EXACT and not pa.types.is_floating(there.type)
    if whole and np.isfinite([low, high]).all() and distinct > FEW and distinct >= ALMOST * len(values):
        if high - low < 2 * len(values) and (np.diff(values) > 0).all():
            return "id", "it counts the rows"
        if large or (low >= 0 and (re.search(NAMED, name) or _evenly_spread(values))):
            return "id", "its values are whole numbers that almost all differ"
    if large:
        return "code", "its values are whole numbers of more than 15 digits"
    if whole and low >= 0 and names_code(name):
        return "code", "its name says so"
    return "number", "its values are whole numbers" if whole else "its values are numbers"


def _evenly_spread(values: NDArray[np.float64]) -> bool:
    """Whether values lie evenly between their ends, as assigned numbers do; amounts and sizes do not."""
    ranked = np.sort(values)
    share = (ranked - ranked[0]) / (ranked[-1] - ranked[0])
    return bool(np.abs(share - (np.arange(len(ranked)) + 0.5) / len(ranked)).max() <= EVEN + 1.0 / np.sqrt(len(ranked)))


def _shown(values: pa.Array) -> tuple[str, ...]:
    return tuple(_written(v) for v in values[:EXAMPLES].to_pylist())


def _written(value: object) -> str:
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    text = text.removesuffix(" 00:00:00")
    return text if len(text) <= CLIPPED else f"{text[: CLIPPED - 1]}…"


def _ends(there: pa.Array) -> tuple[str, str]:
    if not len(there):
        return "", ""
    reach = pc.min_max(there)
    return _written(reach["min"].as_py()), _written(reach["max"].as_py())
