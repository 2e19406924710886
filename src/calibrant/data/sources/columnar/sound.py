"""What a file of columns must be for its rows to be counted: readable, of one name a column, each value valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.layouts import know_extensions
from calibrant.data.sources.source import ROWS
from calibrant.errors import BadInput

AGAIN = "it may be damaged or cut short: fetch or write it again"


@contextmanager
def readable(file: str, kind: str) -> Iterator[None]:
    """Turn whatever a library says of a file that it cannot read into one line."""
    try:
        yield
    except BadInput:
        raise
    except UnicodeError:  # of a name: Arrow takes any bytes for one
        raise BadInput(
            f"{file} names a column in bytes that are not UTF-8: rename it, or write the file again"
        ) from None
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        LookupError,
        OverflowError,
        MemoryError,
        SystemError,
        RuntimeError,
    ) as e:
        why = next((q for q in str(e).splitlines() if q.strip()), type(e).__name__)
        raise BadInput(f"{file} cannot be read as {kind} ({why[:160].rstrip('. ')}); {AGAIN}") from None


def names_of(schema: pa.Schema, file: str, kind: str) -> tuple[str, ...]:
    """The names of the columns."""
    know_extensions(schema)
    with readable(file, kind):
        names = tuple(map(str, schema.names))
        for name in names:
            name.encode()  # a lone surrogate could be written nowhere
    return names


def once(file: str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse to read a column whose name another has too."""
    seen = Counter(names)
    for column in columns:
        if seen[column] > 1:
            raise BadInput(f"{file} has {seen[column]} columns {column!r}: rename all but one")


def checked(batch: pa.RecordBatch, columns: Sequence[str], file: str, row: int) -> Iterator[pa.RecordBatch]:
    """Yield the columns of a batch in the order asked for, cut to size, once every value is known to be valid.

    A file may hold offsets, indices and bytes of text that are none; what computes with them would end the process.
    """
    batch = batch.select(list(columns))
    for name, column in zip(columns, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type) and _codes_stand_for_values(column):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as e:
            why, last = str(e).splitlines()[0], row + batch.num_rows - 1
            text = "text that is not UTF-8" if "UTF8" in why else "values that cannot be"
            raise BadInput(
                f"{file}: column {name!r} holds {text}, in rows {row:,} to {last:,} ({why[:120]}): "
                "correct or write that column again"
            ) from None
    if batch.num_rows <= ROWS:
        yield batch
        return
    for start in range(0, batch.num_rows, ROWS):
        yield batch.slice(start, ROWS)


def _codes_stand_for_values(column: pa.DictionaryArray) -> bool:
    """Whether a dictionary and all codes are valid: what full validation looks up one by one."""
    try:
        column.validate()
        column.indices.validate()
        column.dictionary.validate(full=True)
    except pa.ArrowInvalid:
        return False
    reach = pc.min_max(column.indices)
    low, high = reach["min"].as_py(), reach["max"].as_py()
    return low is None or bool(0 <= low <= high < len(column.dictionary))


def narrowest(schema: pa.Schema) -> int | None:
    """The column that takes the fewest bytes to read, if any has a fixed number of them a row."""
    widths: dict[int, int] = {}
    for i, field in enumerate(schema):
        with suppress(ValueError):  # of no fixed width
            if not pa.types.is_dictionary(field.type) and not pa.types.is_nested(field.type):
                widths[i] = field.type.bit_width
    return min(widths, key=lambda i: (widths[i], i)) if widths else None
