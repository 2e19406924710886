"""Arrow columns in plain layouts: frames of any kind as tables, numbers, dates, texts and labels as arrays."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.errors import BadInput
from calibrant.kernels.draws import hash_bytes, mix

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]

ABSENT = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None")  # text that means "no label"
DAY = 86_400_000_000  # microseconds
FIXES = {"label": "pass positive= (--positive) to name the case", "score": "convert it to numbers in [0, 1]"}


def require(names: Iterable[str], available: Sequence[str], role: str) -> None:
    """Raise `BadInput` for a column that is not there, with the nearest name."""
    for name in names:
        if name not in available:
            near = difflib.get_close_matches(str(name), [str(a) for a in available], n=1, cutoff=0.5)
            there = f"there are: {', '.join(map(repr, available[:12]))}" if available else f"there is no {role} at all"
            hint = f"did you mean {near[0]!r}?" if near else there
            raise BadInput(f"{role} column {name!r} is not in the data; {hint}")


def changed(name: str, role: str, was: str, now: pa.DataType) -> BadInput:
    """Return the refusal of a column that is not of the kind that the spec was fixed for."""
    return BadInput(
        f"{role} column {name!r} held {was} when the spec was fixed and holds {now} here: "
        "store it as it was, or sketch anew"
    )


# ---- tables ----


def table_of(frame: object) -> pa.Table:
    """Return what speaks the Arrow stream protocol as a table: pandas, Polars, Arrow and anything like them.

    Row labels that pandas hands over as a column, because they have no name, are left out.
    """
    table = pa.RecordBatchReader.from_stream(frame).read_all()
    return table.drop_columns([c for c in table.column_names if re.fullmatch(r"__index_level_\d+__", c)])


def decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array in a plain layout: no dictionary, no view, no extension."""
    column = whole(column)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return column


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


# ---- kinds of columns ----


def is_number(t: pa.DataType) -> bool:
    """Tell whether an Arrow type is a number."""
    return bool(pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t))


def is_date(t: pa.DataType) -> bool:
    """Tell whether an Arrow type is a date or a time of a day of the calendar."""
    return bool(pa.types.is_date(t) or pa.types.is_timestamp(t))


def as_float(column: pa.Array | pa.ChunkedArray, name: str, role: str) -> Floats:
    """Return a numeric or boolean column as float64, NaN where null; refuse text that is not numbers."""
    column = decoded(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not is_number(column.type):
        fix = FIXES.get(role, "store it as numbers")
        example = next((str(v) for v in column if v.is_valid), "")
        raise BadInput(f"{role} column {name!r} holds {column.type} (such as {example!r}), not numbers; {fix}")
    values: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


def as_text(column: pa.Array) -> pa.Array:
    """Return a decoded column as text, null where missing or empty."""
    text = column if pa.types.is_string(column.type) else column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), None, text)


def as_days(column: pa.Array) -> Floats:
    """Return dates and times as days since 1970, NaN where null."""
    micro = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    days: Floats = micro.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / DAY
    return days


def dated(column: pa.Array, kind: str) -> pa.Array:
    """Return dates as text, by month or by year of universal time; other columns unchanged."""
    if kind not in ("month", "year") or pa.types.is_string(column.type):
        return column
    return pc.strftime(one_way(column), format="%Y-%m" if kind == "month" else "%Y").cast(pa.string())


def one_way(column: pa.Array) -> pa.Array:
    """Return times in microseconds of universal time, as engines that know no other unit or zone have them."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us"), safe=False)
    return column.cast(pa.date32()) if pa.types.is_date(column.type) else column


# ---- labels ----


def label_values(column: pa.Array | pa.ChunkedArray, name: str, positive: str | None) -> NDArray[np.int8] | Floats:
    """Return labels as numbers, NaN where missing (null, NaN, text such as "NA"); int8 where every value fits.

    With `positive` the value that it names is 1 and every other is 0: numbers as numbers, text as text.
    """
    column = decoded(column)
    if positive is None:
        if pa.types.is_integer(column.type) and not column.null_count:
            values = column.to_numpy(zero_copy_only=False)
            if len(values) and values.min() >= 0 and values.max() <= 1:
                small: NDArray[np.int8] = values.astype(np.int8)
                return small
        return as_float(column, name, "label")
    try:
        hit = _hits(column, name, positive)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadInput(
            f"label column {name!r} holds {column.type}: store it as text, numbers, or true and false"
        ) from None
    found: Floats = hit.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def _hits(column: pa.Array, name: str, positive: str) -> pa.Array:
    """Tell which labels are the positive one, null where missing."""
    t = column.type
    if pa.types.is_boolean(t):
        return pc.equal(column.cast(pa.string()), positive.lower())
    if not is_number(t):
        text = column if pa.types.is_string(t) else column.cast(pa.string())
        return pc.equal(pc.if_else(pc.is_in(text, value_set=pa.array(ABSENT)), None, text), positive)
    try:
        value = Decimal(positive)
    except InvalidOperation:
        raise BadInput(f"label column {name!r} holds numbers, and positive={positive!r} is none") from None
    if not pa.types.is_integer(t):
        numbers = column.cast(pa.float64(), safe=False)
        return pc.equal(pc.if_else(pc.is_nan(numbers), None, numbers), float(value))
    try:  # whole numbers as such: above 2^53 several of them are one real number
        exact = pa.scalar(int(value), t)
    except (OverflowError, ValueError):  # beyond what the column can hold, or not finite
        exact = None
    if exact is None or exact.as_py() != value:
        return pc.if_else(pc.is_valid(column), False, None)
    return pc.equal(column, exact)


def binary_labels(y: NDArray[np.int8] | Floats) -> NDArray[np.int8]:
    """Return labels as int8: 0, 1, -1 where missing, 2 for anything else."""
    if y.dtype == np.int8:
        return y.astype(np.int8, copy=False)
    return np.where(np.isnan(y), -1, np.where(y == 0, 0, np.where(y == 1, 1, 2))).astype(np.int8)


# ---- hashes ----


def text_hashes(text: pa.Array, seed: int) -> Ids:
    """Hash texts (large strings without nulls) to one uint64 each, the same on every machine."""
    if not len(text):
        return np.zeros(0, dtype=np.uint64)
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    data = text.buffers()[2]
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return hash_bytes(offsets, raw, seed)


def row_ids(columns: Sequence[pa.Array], seed: int) -> Ids:
    """Hash key columns to one uint64 a row; equal keys give equal identities on every machine."""
    first, *others = (text_hashes(one_way(decoded(c)).cast(pa.large_string()).fill_null("\x00"), seed) for c in columns)
    for hashed in others:
        first = mix(first) ^ hashed
    return first
