"""Columns of every Arrow type: few values, many, extreme ones, with and without missing, by code and in runs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa

N = 60
AT = np.arange(N)
FEW = AT * 7 % 5

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
DECIMALS = (pa.decimal32(7, 2), pa.decimal64(16, 3), pa.decimal128(38, 0), pa.decimal128(30, 9), pa.decimal256(70, 0))
ZONES = (None, "UTC", "Europe/Berlin", "+05:30", "America/St_Johns")
TIMES = tuple(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ZONES)
CLOCKS = (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
SPANS = tuple(pa.duration(unit) for unit in ("s", "ms", "us", "ns"))
TEXTS = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(3),
)
CODES = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())


def _integers(t: pa.DataType) -> Iterator[tuple[str, pa.Array]]:
    ends = np.iinfo(t.to_pandas_dtype())
    yield "few", pa.array(FEW, t)
    yield "distinct", pa.array(AT, t)
    yield "extreme", pa.array([[ends.min, ends.max, ends.max - 1, 0][v % 4] for v in AT], t)
    yield "extremes", pa.array([ends.max - int(v) for v in AT], t)


def _floats(t: pa.DataType) -> Iterator[tuple[str, pa.Array]]:
    kind = t.to_pandas_dtype()
    top, tiny = float(np.finfo(kind).max), float(np.finfo(kind).smallest_subnormal)
    events = {
        "few": FEW,
        "distinct": np.sqrt(AT),
        "extreme": [[-top, top, 0.0, 1.0][v % 4] for v in AT],
        "extremes": top * (1 - AT / 100),
        "tiny": tiny * AT,
        "tiny few": tiny * FEW,
        "minus zero": [[-0.0, 0.0][v % 2] for v in AT],
        "infinite": [[np.inf, -np.inf, 1.0][v % 3] for v in AT],
        "NaN": [[np.nan, 1.0, 2.0][v % 3] for v in AT],
        "only NaN": np.full(N, np.nan),
        "wide": [[1e300, -1e300, 1e-300][v % 3] * (1 + v) for v in AT] if kind == np.float64 else AT,
        "a hundredth": AT / 100,
    }
    for name, values in events.items():
        yield name, pa.array(np.asarray(values, dtype=np.float64).astype(kind), t)


def _decimals(t: pa.DataType) -> Iterator[tuple[str, pa.Array]]:
    unit = Decimal(1).scaleb(-t.scale)
    top = Decimal("9" * (t.precision - t.scale) + "." + "9" * t.scale)
    yield "few", pa.array([Decimal(int(v)) for v in FEW], t)
    yield "distinct", pa.array([unit * int(v) for v in AT], t)
    yield "extreme", pa.array([[top, top.copy_negate(), Decimal(0)][v % 3] for v in AT], t)


def _whole(low: int, high: int) -> Callable[[pa.DataType], Iterator[tuple[str, pa.Array]]]:
    """Return values of a type that is stored as whole numbers, those between low and high being usual."""

    def made(t: pa.DataType) -> Iterator[tuple[str, pa.Array]]:
        stored = np.int32 if t.bit_width == 32 else np.int64
        step, ends = max((high - low) // N, 1), np.iinfo(stored)
        for name, values in {
            "few": low + FEW * step,
            "distinct": low + AT * step,
            "extreme": [[ends.min + 1, ends.max, 0][v % 3] for v in AT],
        }.items():
            yield name, pa.array(np.asarray(values, dtype=stored)).view(t)

    return made


def _stamps(t: pa.DataType) -> Iterator[tuple[str, pa.Array]]:
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[t.unit]
    yield from _whole(1_600_000_000 * per, 1_700_000_000 * per)(t)


def _texts(t: pa.DataType) -> Iterator[tuple[str, pa.Array]]:
    for name, values in {
        "few": [f"v{v:02d}" for v in FEW],
        "distinct": [f"{v:03d}" for v in AT],
        "extreme": [["é1", "ü", "   "][v % 3] for v in AT],
        "dates": [f"2024-0{1 + v}-01" for v in FEW],
        "long": ["x" * (1_000_000 if v == 3 else 1) for v in AT],
        "empty": [["", "a", "b"][v % 3] for v in AT],
    }.items():
        raw = [
            v.encode()[: t.byte_width].ljust(t.byte_width) if pa.types.is_fixed_size_binary(t) else v for v in values
        ]
        yield name, pa.array(raw, t)
    if not (pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)):
        yield "not UTF-8", pa.array([b"\xff\xfe\x80"] * N, t)


def _strange() -> Iterator[tuple[str, pa.Array]]:
    few = [int(v) for v in FEW]
    yield "null", pa.nulls(N)
    yield "bool", pa.array([v > 2 for v in few])
    yield "bool, only true", pa.array([True] * N)
    yield "list", pa.array([[v] for v in few])
    yield "empty lists", pa.array([[] for _ in few], pa.list_(pa.int8()))
    yield "large_list", pa.array([[v] for v in few], pa.large_list(pa.int64()))
    yield "list_view", pa.array([[v] for v in few], pa.list_view(pa.int64()))
    yield "fixed list", pa.array([[v, v] for v in few], pa.list_(pa.float32(), 2))
    yield "struct", pa.array([{"a": v, "b": str(v)} for v in few])
    yield "map", pa.array([[("k", v)] for v in few], pa.map_(pa.string(), pa.int64()))
    yield "interval", pa.array([(1, v, 0) for v in few], pa.month_day_nano_interval())
    kinds, values = pa.array([v % 2 for v in AT], pa.int8()), [pa.array(AT), pa.array(list(map(str, AT)))]
    yield "sparse union", pa.UnionArray.from_sparse(kinds, values)
    yield "dense union", pa.UnionArray.from_dense(kinds, pa.array(AT, pa.int32()), values)
    names = [uuid.UUID(int=v << 100) for v in few]
    yield "uuid", pa.array([u.bytes for u in names], pa.uuid())
    yield "16 bytes", pa.array([u.bytes for u in names], pa.binary(16))
    yield "json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}' if v else "1" for v in few]))
    yield "bool8", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([v % 2 for v in few], pa.int8()))
    yield "opaque", pa.ExtensionArray.from_storage(pa.opaque(pa.int32(), "a", "b"), pa.array(few, pa.int32()))
    tensors = pa.fixed_shape_tensor(pa.int8(), [2])
    yield "tensor", pa.ExtensionArray.from_storage(tensors, pa.array([[v, v] for v in few], pa.list_(pa.int8(), 2)))
    broken = pa.py_buffer(b"\xff\xfe" * N)
    at = pa.py_buffer(np.arange(0, 2 * N + 1, 2, dtype=np.int32))
    yield "string, not UTF-8", pa.Array.from_buffers(pa.string(), N, [None, at, broken])
    yield (
        "dictionary, damaged",
        pa.DictionaryArray.from_arrays(pa.array(FEW, pa.int8()), pa.array(["a", "b"]), safe=False),
    )
    yield "dictionary, empty", pa.DictionaryArray.from_arrays(pa.nulls(N, pa.int8()), pa.array([], pa.string()))
    twice = pa.array(["a", "a", None, "b", ""])
    yield "dictionary, twice and null", pa.DictionaryArray.from_arrays(pa.array(FEW, pa.int8()), twice)
    yield "dictionary of codes", pa.array([str(v) for v in few]).dictionary_encode().dictionary_encode()


def plain_columns() -> Iterator[tuple[str, pa.Array]]:
    """Yield columns without a dictionary or runs."""
    makers: list[tuple[tuple[pa.DataType, ...], Callable[[pa.DataType], Iterator[tuple[str, pa.Array]]]]] = [
        (INTEGERS, _integers),
        ((pa.float16(), pa.float32(), pa.float64()), _floats),
        (DECIMALS, _decimals),
        ((pa.date32(),), _whole(18_000, 20_000)),
        ((pa.date64(),), _whole(18_000 * 86_400_000, 19_800 * 86_400_000)),
        (TIMES, _stamps),
        (CLOCKS, _whole(0, 80_000)),
        (SPANS, _whole(0, 80_000)),
        (TEXTS, _texts),
    ]
    for types, make in makers:
        for t in types:
            for name, column in make(t):
                yield f"{t} {name}", column
    yield from _strange()


def columns() -> Iterator[tuple[str, pa.Array]]:
    """Yield every column, by name: plain, and those of few values with missing ones, by code and in runs too."""
    hole = pa.array(AT % 4 == 1)
    for j, (name, column) in enumerate(plain_columns()):
        yield name, column
        if not name.endswith((" few", "bool", "json", "uuid", "interval", "struct", "list", "null")):
            continue
        yield f"{name}, some missing", _holed(column, hole)
        yield f"{name}, sliced", pa.concat_arrays([column[:3], column])[3:] if column.type != pa.null() else column
        if not isinstance(column.type, pa.BaseExtensionType) and not pa.types.is_nested(column.type):
            values = column.slice(0, 5)
            code = CODES[j % len(CODES)]
            indices = pa.array([None if v % 9 == 8 else int(v) % 5 for v in AT], code)
            yield f"{name}, by code {code}", pa.DictionaryArray.from_arrays(indices, values)
            ends = np.arange(12, N + 1, 12, dtype=np.int32)
            yield f"{name}, in runs", pa.RunEndEncodedArray.from_arrays(ends, values)


def _holed(column: pa.Array, hole: pa.Array) -> pa.Array:
    """Return a column with some values missing."""
    at = pa.array([None if h else i for i, h in enumerate(hole.to_pylist())], pa.int64())
    try:
        return column.take(at)
    except pa.ArrowNotImplementedError:
        return pa.array(
            [None if h else v for v, h in zip(column.to_pylist(), hole.to_pylist(), strict=True)], column.type
        )
