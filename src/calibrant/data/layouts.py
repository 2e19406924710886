"""Columns of any Arrow type in one of few plain layouts: truth values, numbers, dates, text, or text by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import ORDERS, UNITS, Unit
from calibrant.errors import BadInput

TOO_LONG = " holds more than 2 GiB of text: leave it out, or store it as codes"
UUID = 16  # bytes of one
DASHES = (8, 12, 16, 20)  # before these of its 32 hexadecimal digits


def whole(column: pa.Array | pa.ChunkedArray, name: str = "") -> pa.Array:
    """A column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    try:
        joined = column.combine_chunks()
    except pa.ArrowInvalid:
        joined = column
    if isinstance(joined, pa.ChunkedArray):
        raise BadInput(_stated(name) + TOO_LONG)
    return joined


def plain(column: pa.Array | pa.ChunkedArray, name: str = "") -> pa.Array:
    """A column as one array of a plain layout; nested ones, times of day and durations stay as they are.

    Text is `string`, checked to be UTF-8; a dictionary is one of distinct texts with int32 codes; other dictionaries,
    runs, views and extension types are spelt out. `name` is for messages.
    """
    column = whole(column, name)
    t = column.type
    if isinstance(t, pa.BaseExtensionType):
        return plain(_storage(column, name), name)
    if pa.types.is_run_end_encoded(t):
        rows = np.arange(column.offset, column.offset + len(column))
        runs = np.searchsorted(column.run_ends.to_numpy(), rows, side="right")
        return plain(column.values, name).take(pa.array(runs))
    if pa.types.is_dictionary(t):
        return _coded(column, name)
    if pa.types.is_fixed_size_binary(t) and t.byte_width == UUID:
        return _uuids(column)
    if is_text(t):
        return _text(column, name)
    if pa.types.is_float16(t):
        return column.cast(pa.float64())
    if pa.types.is_decimal(t) and t.bit_width < 128:  # Arrow can do little with them
        return column.cast(pa.decimal128(t.precision, t.scale))
    return column


def decoded(column: pa.Array | pa.ChunkedArray, name: str = "") -> pa.Array:
    """A column in a plain layout without a dictionary."""
    column = plain(column, name)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def without_views(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with text as Arrow lays it out: of text in views, as Polars has it, Arrow can choose no rows."""
    schema = pa.schema([field.with_type(_without_views(field.type)) for field in rows.schema], rows.schema.metadata)
    return rows if schema.equals(rows.schema) else rows.cast(schema)


def _without_views(t: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(t):
        return pa.large_string()
    if pa.types.is_binary_view(t):
        return pa.large_binary()
    if pa.types.is_dictionary(t):
        return pa.dictionary(t.index_type, _without_views(t.value_type), t.ordered)
    if pa.types.is_struct(t):
        return pa.struct([field.with_type(_without_views(field.type)) for field in t])
    if pa.types.is_list(t):
        return pa.list_(t.value_field.with_type(_without_views(t.value_type)))
    if pa.types.is_large_list(t):
        return pa.large_list(t.value_field.with_type(_without_views(t.value_type)))
    if pa.types.is_fixed_size_list(t):
        return pa.list_(t.value_field.with_type(_without_views(t.value_type)), t.list_size)
    return t


def know_extensions(schema: pa.Schema) -> None:
    """Have pandas tell Arrow of its own types, if a file holds any: else a period is read as its number."""
    named = [(f.metadata or {}).get(b"ARROW:extension:name", b"") for f in schema]
    if any(name.startswith(b"pandas.") for name in named):
        with suppress(ImportError):
            import_module("pandas.core.arrays.arrow.extension_types")


def is_text(t: pa.DataType) -> bool:
    """Whether an Arrow type is text, or bytes that may be text."""
    kinds: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(kind(t) for kind in kinds)


def _stated(name: str) -> str:
    return f"column {name!r}" if name else "a column"


def _text(column: pa.Array, name: str) -> pa.Array:
    """Text, or bytes, as `string`; casting bytes checks that they are UTF-8."""
    try:
        if pa.types.is_string(column.type):
            return column.cast(pa.binary()).cast(pa.string())
        if pa.types.is_large_string(column.type):
            column = column.cast(pa.large_binary())
        elif pa.types.is_string_view(column.type):
            column = column.cast(pa.binary_view())
        return column.cast(pa.string())
    except pa.ArrowInvalid as e:
        if "overflow" in str(e) or "too large" in str(e):
            raise BadInput(_stated(name) + TOO_LONG) from None
        raise BadInput(
            f"{_stated(name)} holds bytes that are not text in UTF-8: store it as text, or leave it out"
        ) from None


def _coded(column: pa.DictionaryArray, name: str) -> pa.Array:
    """Texts of a dictionary by code, each once and none null; other dictionaries spelt out."""
    values = decoded(column.dictionary, name)
    indices = column.indices
    if indices.null_count == len(indices):
        return pa.nulls(len(column), values.type)
    reach = pc.min_max(indices)
    if not 0 <= reach["min"].as_py() <= reach["max"].as_py() < len(values):
        raise BadInput(f"{_stated(name)} is damaged: a code of its dictionary stands for no value")
    if pa.types.is_string(values.type) and not values.null_count and len(values.unique()) == len(values):
        return pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), values, safe=False)  # looked at just now
    indices = indices.cast(pa.int64())
    if not pa.types.is_string(values.type):
        return values.take(indices)
    once = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(once.indices.take(indices), once.dictionary)


def _storage(column: pa.ExtensionArray, name: str) -> pa.Array:
    """What an extension type stands for: truth values, times, intervals as text, or what it is stored as."""
    t, stored = column.type, column.storage
    match t.extension_name:
        case "arrow.bool8":
            return stored.cast(pa.bool_())
        case "arrow.uuid":
            return _uuids(stored)
        case "pandas.interval":
            ends = [plain(stored.field(side), name).cast(pa.string()) for side in ("left", "right")]
            first = "[" if t.closed in ("left", "both") else "("
            last = "]" if t.closed in ("right", "both") else ")"
            text = pc.binary_join_element_wise(pc.binary_join_element_wise(first, ends[0], ""), ends[1], ", ")
            text = pc.binary_join_element_wise(text, last, "")
            return pc.if_else(stored.is_valid(), text, None)
        case "pandas.period":
            return pa.array(column.to_pandas().dt.start_time, from_pandas=True)
    return stored


def _uuids(column: pa.FixedSizeBinaryArray) -> pa.Array:
    """UUIDs as they are written: 8-4-4-4-12 hexadecimal digits."""
    raw = np.frombuffer(b"".join(v or bytes(UUID) for v in column.to_pylist()), dtype=np.uint8).reshape(-1, UUID)
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    pairs = digits[np.stack([raw >> 4, raw & 15], axis=2)].reshape(-1, 2 * UUID)
    written = np.insert(pairs, DASHES, ord("-"), axis=1)
    width, data = written.shape[1], pa.py_buffer(np.ascontiguousarray(written))
    text = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(raw), [None, data]).cast(pa.string())
    return pc.if_else(column.is_valid(), text, None)


def changed(name: str, role: str, was: str, now: pa.DataType) -> BadInput:
    """The refusal of a column that is not of the kind that the spec was fixed for."""
    return BadInput(
        f"{role} column {name!r} held {was} when the spec was fixed and holds {now} here: "
        "store it as it was, or sketch again"
    )


# ---- dates, whatever they are stored as: days since 1970, and groups by month, quarter, year or decade ----


MOST_PERIODS = 24  # groups of dates, about: more of them, and a coarser unit is used
ENOUGH = 100  # rows of the middle group: fewer, and a coarser unit is used

DAY = 86_400_000_000  # microseconds
SECONDS = -62_135_596_800, 253_402_300_799  # from 1970 to the beginning of year 1, and to the end of year 9999
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.]\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$"
ZONE = r"\d{2}:\d{2}.*(Z|[+-]\d{2}:?\d{2})$"
MONTHS = (  # in English, short or whole
    *("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?"),
    *("sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"),
)
MONTH = f"(?:{'|'.join(MONTHS)})[.]?"
CLOCK = r"(?:T|,? )\d{1,2}:\d{2}(?::\d{2}(?:[.]\d{1,9})?)?(?: ?[ap]m)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?"
SHAPED = (  # what may be a date: as the calendar of some country has it, or with the name of a month
    r"(?i)^(?:\d{4}(?:-\d{1,2}-|/\d{1,2}/|[.]\d{1,2}[.])\d{1,2}"
    r"|\d{1,2}(?:-\d{1,2}-\d{4}|(?:/\d{1,2}/|[.]\d{1,2}[.])(?:\d{4}|\d{2}))"
    rf"|\d{{1,2}}(?:-{MONTH}-| {MONTH},? )(?:\d{{4}}|\d{{2}})|{MONTH} \d{{1,2}},? \d{{4}})(?:{CLOCK})?$"
)
NAMED = (
    (rf"(?i)^(\d{{1,2}})[ -]({MONTH}),?[ -](\d{{4}}|\d{{2}})", r"\3-\2-\1"),
    (rf"(?i)^({MONTH}) (\d{{1,2}}),? (\d{{4}})", r"\3-\1-\2"),
    *((rf"(?i)^(\d+)-{month}[.]?-", rf"\1-{i:02}-") for i, month in enumerate(MONTHS, 1)),
)
HALVES = (  # of the day, where it is not of 24 hours
    (r"(?i)^(.{10}[ T])12(:[\d:.]+) ?am", r"\100\2"),
    *((rf"(?i)^(.{{10}}[ T]){h:02}(:[\d:.]+) ?pm", rf"\1{h + 12}\2") for h in range(1, 12)),
    (r"(?i)^(.{10}[ T]\d{2}:[\d:.]+) ?[ap]m", r"\1"),
)
FIRST = 100  # texts that are looked at before all are


def is_date(t: pa.DataType) -> bool:
    """Whether an Arrow type is a date or a time of a day of the calendar."""
    return bool(pa.types.is_date(t) or pa.types.is_timestamp(t))


def times(column: pa.Array, name: str = "") -> pa.Array:
    """Dates and times in microseconds of universal time; refuse years other than 1 to 9999."""
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
    """Dates, or text that is dates, as times; refuse a column of another kind, named by its role."""
    t = column.type
    if is_date(t):
        return times(column, name)
    result = text_dates(column) if pa.types.is_string(t) else None
    if result is None and not nothing(column):
        raise changed(name, role, "dates", t)
    return pa.nulls(len(column), pa.timestamp("us")) if result is None else result


def has_zone(column: pa.Array) -> bool:
    """Whether dates, or text that is dates, name a zone of time."""
    if is_text(column.type):
        text = column.dictionary if pa.types.is_dictionary(column.type) else column
        return bool(pc.any(pc.match_substring_regex(text, ZONE)).as_py())
    return bool(pa.types.is_timestamp(column.type) and column.type.tz)


def as_days(column: pa.Array, name: str = "") -> NDArray[np.float64]:
    """Dates and times, or text that is dates, as days since 1970, NaN where null."""
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


def text_dates(text: pa.Array, order: str = "") -> pa.Array | None:
    """Text as times, null where missing or empty; None unless each is a date such as ``"2024-05-31"``.

    A time of day may follow, and a zone if all have one. Of ``"31.5.2024"`` the day is first; months may be named in
    English. What is written as ``"5/6/2024"`` needs an `order`.
    """
    for some in (text[:FIRST], text):
        there = pc.fill_null(pc.not_equal(some, ""), False)
        if not _each(some, there, ISO):
            return _other_dates(text, order) if _each(some, there, SHAPED) else None
    zoned = pc.sum(pc.match_substring_regex(text, ZONE)).as_py() or 0
    rows = int(pc.sum(there).as_py() or 0)
    if not rows or zoned not in (0, rows):
        return None
    text = pc.replace_substring_regex(pc.if_else(there, text, None), r"([.]\d{6})\d+", r"\1")
    try:
        return text.cast(pa.timestamp("us", "UTC" if zoned else None)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None


def _each(text: pa.Array, there: pa.Array, pattern: str) -> bool:
    """Whether a pattern fits every text that is there."""
    fits = pc.or_(pc.invert(there), pc.match_substring_regex(text, pattern))
    return pc.all(fits, skip_nulls=True).as_py() is not False


def _other_dates(text: pa.Array, order: str) -> pa.Array | None:
    """Text that may be dates in another form than ISO's as times, or None: see `text_dates`."""
    coded = text.dictionary_encode()
    there = pc.fill_null(pc.not_equal(coded.dictionary, ""), False)
    if not _each(coded.dictionary, there, SHAPED):
        return None
    written = as_iso(coded.dictionary, order)
    result = text_dates(written) if _each(written, there, ISO) else None
    return None if result is None else result.take(coded.indices)


def readings(text: pa.Array) -> frozenset[str]:
    """In which orders of day and month text is dates, with ``""`` if none is needed; and "local" or "zoned", "shaped".

    What fits several texts fits them together, so of a column in parts the sets are intersected.
    """
    text = pc.unique(text).drop_null()
    there = pc.not_equal(text, "")
    if not pc.any(there).as_py():
        return frozenset(("", *ORDERS, "local", "zoned", "shaped"))
    if not _each(text, there, SHAPED):
        return frozenset()
    read = {order for order in ("", *ORDERS) if text_dates(text, order) is not None}
    zoned = pc.any(pc.match_substring_regex(as_iso(text), ZONE)).as_py()
    return frozenset({*read, "zoned" if zoned else "local", "shaped"})


def as_iso(text: pa.Array, order: str = "") -> pa.Array:
    """Text that may be dates as ISO 8601 writes them, or as it is where it can be read in no one way.

    Years of two digits from 30 to 69 may lie in either century.
    """
    letters = pc.any(pc.match_substring_regex(text, "(?i)[a-z]{2}")).as_py() is True
    turned = {"": r"\1/\2/\3", ORDERS[0]: r"\3-\2-\1", ORDERS[1]: r"\3-\1-\2"}[order]
    for pattern, replacement in (
        (r"^(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d{2})($|[ T,])", rf"{turned}\4"),
        (r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})", r"\1-\2-\3"),
        (r"^(\d{1,2})[.](\d{1,2})[.](\d{4}|\d{2})", r"\3-\2-\1"),
        *(NAMED if letters else ()),
        (r"^([012]\d-\d{1,2}-\d{1,2}(?:$|[ T,]))", r"20\1"),
        (r"^([789]\d-\d{1,2}-\d{1,2}(?:$|[ T,]))", r"19\1"),
        (r"^(\d{4})-(\d)-", r"\1-0\2-"),
        (r"^(\d{4}-\d{2})-(\d)($|[ T,])", r"\1-0\2\3"),
        (r"^(.{10}), ", r"\1 "),
        (r"^(.{10}[ T])(\d):", r"\10\2:"),
        *(HALVES if letters else ()),
        (r"(:[\d.]+) ?(?:Z|UTC|GMT)$", r"\1Z"),
        (r"(:[\d.]+) ?([+-]\d{2})$", r"\1\2:00"),
        (r"(:[\d.]+) ([+-]\d{2}:?\d{2})$", r"\1\2"),
    ):
        text = pc.replace_substring_regex(text, pattern, replacement)
    return text


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
    for unit in UNITS:
        counts: Counter[str] = Counter()
        for month, rows in months.items():
            counts[period_of(month, unit)] += rows
        if chosen is not None and len(counts) < 2 and len(chosen[1]) <= MOST_PERIODS:
            break
        chosen = unit, dict(counts)
        if len(counts) <= MOST_PERIODS and np.median(list(counts.values()) or [0]) >= ENOUGH:
            break
    return chosen or ("month", {})
