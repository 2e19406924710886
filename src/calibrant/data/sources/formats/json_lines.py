"""JSON: one object a line, read in batches, or one array of objects, read whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from calibrant.data.sources.encoded import as_utf8, encoding_of
from calibrant.data.sources.formats.cells import column, seen, seen_in, type_of, whole
from calibrant.data.sources.source import Form, Part, Source
from calibrant.errors import BadInput

BLOCK = 1 << 22  # bytes read at once
LONGEST = 1 << 28  # bytes of one line
AT_ONCE = 1 << 16  # rows of a batch
DEEPEST = 8  # objects within objects whose fields are columns

Row = dict[str, object]


def json_rows(path: Path, name: str, form: Form) -> Source:
    """Return objects as rows, their fields as columns; the field ``b`` of an object ``a`` is the column ``a.b``.

    Columns and their types are found on all rows first. A list is text, as JSON writes it.
    """
    encoding, _ = encoding_of(path, form.encoding)
    with _lines(path, encoding) as lines:
        first = next(iter(lines), (0, b""))[1].lstrip()
    if first.startswith(b"["):
        return _array(path, name, encoding)
    kinds: dict[str, int] = {}
    rows = 0
    with _lines(path, encoding) as lines:
        for row in _rows(lines, path.name):
            rows += 1
            for field, value in row.items():
                kinds[field] = kinds.get(field, 0) | seen(value)
    types = {field: type_of(found) for field, found in kinds.items()}

    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        held: list[Row] = []
        with _lines(path, encoding) as lines:
            for row in _rows(lines, path.name):
                held.append(row)
                if len(held) == AT_ONCE:
                    yield _batch(held, columns, types)
                    held = []
        if held:
            yield _batch(held, columns, types)

    return Source(name, tuple(types), (Part(name, 0, read),), rows)


def _batch(rows: Sequence[Row], columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    arrays = [column([row.get(c) for row in rows], types[c]) for c in columns]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


def _array(path: Path, name: str, encoding: str) -> Source:
    """Return the objects of one array."""
    with as_utf8(path, encoding) as file:
        parts = list(iter(lambda: file.read(BLOCK), b""))
    found = _decoded(b"".join(parts).removeprefix(b"\xef\xbb\xbf"), path.name)
    if not isinstance(found, list):
        raise BadInput(f"{path.name} holds no array of objects: write one object a line")
    rows = [_row(value, f"{path.name}: element {i:,} of the array") for i, value in enumerate(found, 1)]
    fields = list(dict.fromkeys(f for row in rows for f in row))
    values = {f: [row.get(f) for row in rows] for f in fields}
    return whole(pa.table({f: column(v, type_of(seen_in(v))) for f, v in values.items()}), name)


# ---- lines, and what is in them ----


@contextmanager
def _lines(path: Path, encoding: str) -> Iterator[Iterator[tuple[int, bytes]]]:
    """Open a file as lines that are not empty, each with its number."""
    with as_utf8(path, encoding) as file:

        def lines() -> Iterator[tuple[int, bytes]]:
            held, number, first = b"", 0, True
            while block := file.read(BLOCK):
                block, first = (block.removeprefix(b"\xef\xbb\xbf"), False) if first else (block, False)
                *ended, held = (held + block).split(b"\n")
                for line in ended:
                    number += 1
                    if line.strip():
                        yield number, line
                if len(held) > LONGEST:
                    yield number + 1, held[:1]  # the first line says what the file is; others are refused below
                    raise BadInput(f"{path.name}: line {number + 1:,} has more than 256 MB: write one object a line")
            if held.strip():
                yield number + 1, held

        yield lines()


def _rows(lines: Iterator[tuple[int, bytes]], file: str) -> Iterator[Row]:
    for number, line in lines:
        where = f"{file}: line {number:,}"
        yield _row(_decoded(line, where), where)


def _decoded(raw: bytes, where: str) -> Any:
    """Return JSON as a value; NaN, which JSON has not and Python writes, as such."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise BadInput(f"{where} is not JSON ({str(e).splitlines()[0][:100]}): write one object a line") from None


def _row(value: object, where: str) -> Row:
    if not isinstance(value, dict):
        raise BadInput(f'{where} is no object such as {{"y": 1, "p": 0.2}}: write one object a row')
    row: Row = {}
    _flatten(value, "", row, where)
    return row


def _flatten(value: Mapping[str, object], prefix: str, row: Row, where: str) -> None:
    """Add the fields of an object, those of objects in it under dotted names."""
    for key, inner in value.items():
        name = prefix + key
        if isinstance(inner, dict) and inner and prefix.count(".") < DEEPEST:
            _flatten(inner, f"{name}.", row, where)
        elif name in row:
            raise BadInput(f"{where} has two fields {name!r}, one of them within another: rename one")
        else:
            row[name] = inner
