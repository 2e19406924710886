"""From Arrow columns to the numbers a sketch counts; who a row is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import BadInput

if TYPE_CHECKING:
    from calibrant.data.spec import Spec, Variable


ABSENT = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None")  # text that means "no label"

FIXES = {"label": "pass positive= (--positive) to name the case", "score": "convert it to numbers in [0, 1]"}


def require(names: Iterable[str], available: Sequence[str], role: str) -> None:
    """Raise `BadInput` for a column that is not there, with the nearest name."""
    for name in names:
        if name not in available:
            near = difflib.get_close_matches(str(name), [str(a) for a in available], n=1, cutoff=0.5)
            there = f"there are: {', '.join(map(repr, available[:12]))}" if available else f"there is no {role} at all"
            hint = f"did you mean {near[0]!r}?" if near else there
            raise BadInput(f"{role} column {name!r} is not in the data; {hint}")


def imported(frame: Any) -> Any:
    """Return a frame as an Arrow table, without the row labels that pandas hands over as a column when they have no name."""
    import pyarrow as pa

    table = pa.RecordBatchReader.from_stream(frame).read_all()
    return table.drop_columns([c for c in table.column_names if re.fullmatch(r"__index_level_\d+__", c)])


def decoded(column: Any) -> Any:
    """Return an Arrow array in a plain layout: no dictionary, no view, no extension."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return column


def as_float(column: Any, name: str, role: str) -> Any:
    """Return a numeric or boolean column as float64, NaN where null; refuse text that is not numbers."""
    import pyarrow as pa

    column = decoded(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not numeric:
        fix = FIXES.get(role, "store it as numbers")
        example = next((str(v) for v in column if v.is_valid), "")
        raise BadInput(f"{role} column {name!r} holds {column.type} (such as {example!r}), not numbers; {fix}")
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def label_values(column: Any, spec: Spec) -> Any:
    """Return labels as numbers, NaN where missing; int8 where every value fits."""
    import pyarrow as pa

    column = decoded(column)
    if spec.positive is None:
        if pa.types.is_integer(column.type) and not column.null_count:
            values = column.to_numpy(zero_copy_only=False)
            if len(values) and values.min() >= 0 and values.max() <= 1:
                return values.astype(np.int8)
        return as_float(column, spec.label, "label")
    return _is_positive(column, spec).cast(pa.float64()).to_numpy(zero_copy_only=False)


def _is_positive(column: Any, spec: Spec) -> Any:
    """Compare labels with the positive value: numbers as numbers, text as text; absent where missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    positive = str(spec.positive)
    if pa.types.is_boolean(column.type):
        return pc.equal(column.cast(pa.string()), positive.lower())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        try:
            return pc.equal(column.cast(pa.float64()), float(positive))
        except ValueError:
            raise BadInput(f"label column {spec.label!r} holds numbers, and positive={positive!r} is none") from None
    text = column if pa.types.is_string(column.type) else column.cast(pa.string())
    absent = pc.is_in(text, value_set=pa.array(ABSENT))
    return pc.equal(pc.if_else(absent, None, text), positive)


def binary_labels(y: Any) -> Any:
    """Return labels as int8: 0, 1, -1 where missing, 2 for anything else."""
    if y.dtype == np.int8:
        return y
    return np.where(np.isnan(y), -1, np.where(y == 0, 0, np.where(y == 1, 1, 2))).astype(np.int8)


def level_codes(column: Any, variable: Variable) -> Any:
    """Return the level of each value as int32; see `Variable.labels` for their order."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        table = level_codes(column.dictionary, variable)
        indices = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(table, len(variable.labels) - 1).astype(np.int32)[indices]
    column = decoded(column)
    if variable.kind == "number":
        return _number_codes(as_float(column, variable.name, "group"), variable)
    return _category_codes(column, variable)


def _number_codes(values: Any, variable: Variable) -> Any:
    codes = np.searchsorted(np.asarray(variable.edges), values, side="right").astype(np.int32)
    missing = np.isnan(values)
    if missing.any():
        codes[missing] = len(variable.labels) - 1
    return codes


def _category_codes(column: Any, variable: Variable) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if variable.kind in ("month", "year") and not _is_date_or_empty(column.type):
        raise changed(variable.name, "group", "dates", column.type)
    if pa.types.is_null(column.type):
        return np.full(len(column), len(variable.labels) - 1, dtype=np.int32)
    column = dated(column, variable.kind)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_string(column.type):
        column = pc.if_else(pc.equal(column, ""), None, column)
    try:
        values = pa.array(variable.values, pa.string()).cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        number = (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
        )
        if not (number and all(map(_is_number, variable.values))):
            raise changed(variable.name, "group", f"values such as {variable.values[0]!r}", column.type) from None
        column, values = column.cast(pa.string()), pa.array(variable.values, pa.string())
    other, missing = len(variable.values), len(variable.values) + 1
    codes = pc.fill_null(pc.index_in(column, value_set=values), other).to_numpy(zero_copy_only=False)
    if column.null_count:
        codes = np.where(column.is_null().to_numpy(zero_copy_only=False), missing, codes)
    return codes.astype(np.int32, copy=False)


def changed(name: str, role: str, was: str, now: Any) -> BadInput:
    """Return the refusal of a column that is not of the kind that the spec was fixed for."""
    return BadInput(
        f"{role} column {name!r} held {was} when the spec was fixed and holds {now} here: store it as it was, or sketch anew"
    )


def _is_date_or_empty(t: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(t) or pa.types.is_timestamp(t) or pa.types.is_null(t))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def dated(column: Any, kind: str) -> Any:
    """Return dates as text, by month or by year of universal time; other columns unchanged."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind not in ("month", "year") or pa.types.is_string(column.type):
        return column
    return pc.strftime(_one_way(column), format="%Y-%m" if kind == "month" else "%Y").cast(pa.string())


def _one_way(column: Any) -> Any:
    """Return times in microseconds of universal time, as engines that know no other unit or zone have them."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us"), safe=False)
    return column.cast(pa.date32()) if pa.types.is_date(column.type) else column


def row_ids(columns: Sequence[Any], seed: int) -> Any:
    """Hash key columns to one uint64 a row; equal keys give equal identities on every machine."""
    import pyarrow as pa

    from calibrant.kernels.draws import hash_bytes, mix

    out = None
    for column in columns:
        text = _one_way(decoded(column)).cast(pa.large_string()).fill_null("\x00")
        offsets = np.frombuffer(text.buffers()[1], dtype=np.int64)[text.offset : text.offset + len(text) + 1]
        data = text.buffers()[2]
        raw = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        hashed = hash_bytes(offsets, raw, seed) if len(text) else np.zeros(0, np.uint64)
        out = hashed if out is None else mix(out) ^ hashed
    return out
