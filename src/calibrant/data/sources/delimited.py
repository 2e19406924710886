"""Files of text: CSV and its kin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from calibrant.data.sources.source import Form, Part, Source
from calibrant.errors import BadInput

CSV_BLOCK = 1 << 24  # bytes: types are guessed from the first block


def delimited(path: Path, name: str, form: Form) -> Source:
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=form.delimiter or _delimiter(path))

    def opened(columns: Sequence[str] = (), types: Mapping[str, pa.DataType] | None = None) -> pa.RecordBatchReader:
        options = csv.ConvertOptions(include_columns=list(columns) or None, column_types=types or {})
        return csv.open_csv(path, csv.ReadOptions(block_size=CSV_BLOCK), parse, options)

    def read(columns: Sequence[str], real: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            guessed = opened(columns).schema  # from the first lines, where a column may be empty or whole by chance
            empty = {f.name: pa.string() for f in guessed if pa.types.is_null(f.type)}
            whole = {c: pa.float64() for c in real if pa.types.is_integer(guessed.field(c).type)}
            yield from opened(columns, empty | whole)
        except pa.ArrowInvalid as e:
            raise BadInput(
                f"{path.name}: {str(e).splitlines()[0]}; fix that line or save the file as Parquet"
            ) from None

    try:
        names = tuple(opened().schema.names)
    except (pa.ArrowInvalid, UnicodeDecodeError) as e:
        raise BadInput(f"{path.name} cannot be read as UTF-8 CSV: {str(e).splitlines()[0]}") from None
    return Source(name, names, (Part(name, 0, read),), None)


def _delimiter(path: Path) -> str:
    """Return the tab, semicolon or comma that the first line of an uncompressed file uses most."""
    if ".tsv" in path.name.lower():
        return "\t"
    if path.suffix.lower() not in (".csv", ".txt"):
        return ","
    with path.open("rb") as file:
        first = file.readline(1 << 16)
    return max((",", ";", "\t"), key=lambda d: first.count(d.encode()))
