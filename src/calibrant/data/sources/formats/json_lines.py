"""JSON: one object a line, read in batches, or one array of objects, read whole."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow as pa

from calibrant.data.sources.encoded import as_utf8, encoding_of
from calibrant.data.sources.formats.cells import column, seen_in, type_of, whole
from calibrant.data.sources.source import Form, Part, Source
from calibrant.errors import BadInput

BLOCK = 1 << 23  # bytes read at once
LONGEST = 1 << 28  # bytes of one line
DEEPEST = 8  # objects within objects whose fields are columns

Row = dict[str, object]
LINES: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def json_rows(path: Path, name: str, form: Form) -> Source:
    """Return objects as rows, their fields as columns; the field ``b`` of an object ``a`` is the column ``a.b``.

    Columns and their types are found on all rows first. A list is text, as JSON writes it.
    """
    encoding, _ = encoding_of(path, form.encoding)
    with as_utf8(path, encoding) as file:
        if _marked(file.read(BLOCK)).lstrip().startswith(b"["):
            return _array(path, name, encoding)
    kinds: dict[str, int] = {}
    count = 0
    for rows in _rows(path, encoding):
        count += len(rows)
        for field in dict.fromkeys(f for row in rows for f in row):
            kinds[field] = kinds.get(field, 0) | seen_in([row.get(field) for row in rows])
    types = {field: type_of(result) for field, result in kinds.items()}

    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for rows in _rows(path, encoding):
            yield _batch(rows, columns, types)

    return Source(name, tuple(types), (Part(name, 0, read),), count)


def _batch(rows: Sequence[Row], columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    arrays = [column([row.get(c) for row in rows], types[c]) for c in columns]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


def _array(path: Path, name: str, encoding: str) -> Source:
    """The objects of one array."""
    with as_utf8(path, encoding) as file:
        parts = list(iter(lambda: file.read(BLOCK), b""))
    result = _decoded(_marked(b"".join(parts)), path.name)
    if not isinstance(result, list):
        raise BadInput(f"{path.name} holds no array of objects: write one object a line")
    rows = [_row(value, f"{path.name}: element {i:,} of the array") for i, value in enumerate(result, 1)]
    fields = list(dict.fromkeys(f for row in rows for f in row))
    values = {f: [row.get(f) for row in rows] for f in fields}
    return whole(pa.table({f: column(v, type_of(seen_in(v))) for f, v in values.items()}), name)


# ---- lines, and what is in them ----


def _rows(path: Path, encoding: str) -> Iterator[list[Row]]:
    """Yield the objects of a file, many at once."""
    with as_utf8(path, encoding) as file:
        kept, number, first = b"", 1, True
        while block := file.read(BLOCK):
            kept, first = kept + (_marked(block) if first else block), False
            end = kept.rfind(b"\n") + 1
            if end and (rows := _objects(kept[:end], number, path.name)):
                yield rows
            number, kept = number + kept.count(b"\n", 0, end), kept[end:]
            if len(kept) > LONGEST:
                raise BadInput(f"{path.name}: line {number:,} has more than 256 MB: write one object a line")
        if rows := _objects(kept, number, path.name):
            yield rows


def _marked(first: bytes) -> bytes:
    """The first bytes without the mark of UTF-8."""
    return first.removeprefix(codecs.BOM_UTF8)


def _objects(block: bytes, number: int, file: str) -> list[Row]:
    """The objects of whole lines, of which the first has this number; empty lines are none."""
    try:
        values = LINES.decode_lines(block)
        if all(type(v) is dict and not any(type(x) is dict for x in v.values()) for v in values):
            return cast(list[Row], values)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # said below, with its line
    lines = ((f"{file}: line {n:,}", line) for n, line in enumerate(block.split(b"\n"), number) if line.strip())
    return [_row(_decoded(line, where), where) for where, line in lines]


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
