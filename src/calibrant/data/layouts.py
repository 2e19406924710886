"""Columns of any Arrow type in one of few plain layouts: truth values, numbers, dates, text, or text by code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    """Return text, or bytes, as `string`; casting bytes checks that they are UTF-8."""
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
    """Return texts of a dictionary by code, each once and none null; other dictionaries spelt out."""
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
    """Return what an extension type stands for: truth values, times, intervals as text, or what it is stored as."""
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
    """Return UUIDs as they are written: 8-4-4-4-12 hexadecimal digits."""
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
