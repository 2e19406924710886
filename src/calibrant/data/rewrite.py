"""Rows streamed into a file with columns added, or some of the rows as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.layouts import decoded
from calibrant.data.sources.source import Form, OnRows, Source
from calibrant.data.targets import temporary
from calibrant.errors import BadInput, first_line

PARQUET, CSV, IPC = (".parquet", ".pq"), (".csv", ".tsv"), (".arrow", ".feather", ".ipc")
Columns = Mapping[str, "pa.Array | NDArray[np.generic]"]
Added = Callable[[pa.RecordBatch, str, int], Columns]  # batch, part, first row -> columns to add
# Batch to write, the same to look at, part, first row -> batch to write and columns to add.
Each = Callable[[pa.RecordBatch, pa.RecordBatch, str, int], tuple[pa.RecordBatch, Columns]]


def checked_rows(path: Path, source: Source, added: Sequence[str]) -> None:
    """Refuse rows that cannot be written: an unknown ending, files of different columns, or columns there already."""
    if not path.name.lower().endswith((*PARQUET, *CSV, *IPC)):
        raise BadInput(f"cannot write {str(path)!r}: end its name in .parquet, .csv, .tsv, .arrow or .feather")
    if source.partial:
        raise BadInput(
            f"only some of the files have column {source.partial[0]!r}: write them apart, or give all the same columns"
        )
    for name in added:
        if name in source.columns:
            raise BadInput(f"column {name!r} is in the data already: rename it, or leave it out of the file")


def rewrite(
    source: Source,
    path: Path,
    reads: Sequence[str],
    added: Added,
    settle: Callable[[], None],
    progress: OnRows | None = None,
) -> int:
    """Write every row with its columns and those added; the file appears when it is complete. Return the rows written.

    `reads` are the columns that `added` looks at, the score first; none if it counts rows only. Text becomes text again
    character for character, but for quotes that nothing needs. If `added` raises, or `settle`, which is called after
    the last row, nothing is left behind.
    """

    def each(kept: pa.RecordBatch, read: pa.RecordBatch, part: str, row: int) -> tuple[pa.RecordBatch, Columns]:
        return kept, added(read, part, row)

    def done(rows: int) -> None:
        settle()
        if not rows:
            raise BadInput("no rows to write: the data is empty")

    return _streamed(source, path, reads, each, done, progress)


def extract(
    source: Source,
    path: Path,
    reads: Sequence[str],
    chosen: Callable[[pa.RecordBatch], NDArray[np.bool_]],
    progress: OnRows | None = None,
) -> int:
    """Write the rows that `chosen` selects, with all their columns; if there are none, nothing is left behind."""

    def each(kept: pa.RecordBatch, read: pa.RecordBatch, _part: str, _row: int) -> tuple[pa.RecordBatch, Columns]:
        return kept.filter(pa.array(chosen(read))), {}

    def done(rows: int) -> None:
        if not rows:
            raise BadInput("no row of the data is of it: nothing is written")

    return _streamed(source, path, reads, each, done, progress)


def _streamed(
    source: Source, path: Path, reads: Sequence[str], each: Each, done: Callable[[int], None], progress: OnRows | None
) -> int:
    """Write what becomes of each batch; return the rows written."""
    rows = 0
    with temporary(path) as hidden:
        target = _Target(hidden, path.name.lower(), source.form)
        try:
            with source.one_pass():
                for kept, read, part, row in _batches(source, target.delimited, reads):
                    batch, added = each(kept, read, part, row)
                    if batch.num_rows or not rows:  # the first has the types of the columns
                        target.write(batch, added)
                    rows += batch.num_rows
                    if progress is not None:
                        progress(kept.num_rows)
            done(rows)
            target.close()
        finally:
            with suppress(OSError):  # a full disk: `temporary` reports it
                target.close()
    return rows


def _batches(
    source: Source, delimited: bool, reads: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch, str, int]]:
    """Yield rows to write, the same rows to look at, their part and the number of the first."""
    texts = source.as_text(source.columns) if delimited and source.kinds and source.as_text else source
    typed = texts is source
    for part, same in zip(source.parts, texts.parts, strict=True):
        row, each = part.first_row, same.read(source.columns, reads[:1] if typed else ())
        same_rows = part.read(list(dict.fromkeys(reads)), reads[:1]) if reads and not typed else None
        for kept, read in ((b, b) for b in each) if same_rows is None else zip(each, same_rows, strict=True):
            yield kept, read, part.name, row
            row += kept.num_rows


class _Target:
    """A file that grows by batches; its columns have the types of the first."""

    def __init__(self, path: Path, name: str, form: Form) -> None:
        self.path, self.name, self.form = path, name, form
        self.delimited = name.endswith(CSV)
        self.schema: pa.Schema = None
        self.writer: pa.ipc.RecordBatchFileWriter = None  # or one for Parquet or delimited text

    def write(self, batch: pa.RecordBatch, added: Columns) -> None:
        """Add rows."""
        parquet = self.name.endswith(PARQUET)  # stores dictionaries as what they stand for
        kept = [c if parquet or not pa.types.is_dictionary(c.type) else decoded(c) for c in batch.columns]
        columns = [*kept, *(pa.array(v) if not isinstance(v, pa.Array) else v for v in added.values())]
        if self.writer is None:
            fields = [pa.field(n, c.type) for n, c in zip((*batch.schema.names, *added), columns, strict=True)]
            self.schema = pa.schema(fields, metadata=batch.schema.metadata)
            self.writer = self._opened()
        try:
            columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, self.schema, strict=True)]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
            raise BadInput(f"the files store a column in different types ({first_line(e)}): store it one way") from None
        self.writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self.schema))

    def _opened(self) -> pa.ipc.RecordBatchFileWriter:
        import pyarrow.parquet as pq

        if self.name.endswith(PARQUET):
            texts = [f.name for f in self.schema if not pa.types.is_floating(f.type)]
            return pq.ParquetWriter(
                self.path, self.schema, use_dictionary=texts, store_schema=False, write_page_checksum=True
            )
        if self.delimited:
            usual = "\t" if self.name.endswith(".tsv") else ";" if self.form.delimiter == ";" else ","
            return _Lines(self.path, self.schema, usual, self.form.decimal == ",")
        return pa.ipc.new_file(self.path, self.schema)

    def close(self) -> None:
        """Finish the file, once."""
        if self.writer is not None:
            writer, self.writer = self.writer, None
            writer.close()


class _Lines:
    """A file of delimited text, in UTF-8. Values are quoted where they must be."""

    def __init__(self, path: Path, schema: pa.Schema, delimiter: str, comma: bool) -> None:
        self.file, self.delimiter, self.comma = path.open("wb"), delimiter, comma
        self.special = np.isin(np.arange(256), list(f'{delimiter}"\r\n'.encode()))
        self.write_batch([pa.array([name]) for name in schema.names])

    def write_batch(self, batch: pa.RecordBatch | Sequence[pa.Array]) -> None:
        """Add rows."""
        *others, last = (self._texts(column) for column in batch)
        self.file.write(_content(_joined(self.delimiter, *others, _joined("", last, "\n"))))

    def _texts(self, column: pa.Array) -> pa.Array:
        text = column.cast(pa.large_string())
        if self.comma and pa.types.is_floating(column.type):
            text = pc.replace_substring(text, ".", ",")
        if not self.special[np.frombuffer(_content(text), dtype=np.uint8)].any():
            return text
        must = pc.match_substring_regex(text, f'[{self.delimiter}"\r\n]')
        inside = pc.replace_substring(text, '"', '""')
        return pc.if_else(must, _joined("", '"', inside, '"'), text)

    def close(self) -> None:
        """Finish the file."""
        self.file.close()


def _joined(between: str, *texts: pa.Array | str) -> pa.Array:
    """Texts, row by row, as one; nothing where one is missing."""
    large = [pa.scalar(t, pa.large_string()) if isinstance(t, str) else t for t in (*texts, between)]
    return pc.binary_join_element_wise(*large, null_handling="replace")


def _content(text: pa.Array) -> memoryview:
    """The characters of large strings, one after the other."""
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    return memoryview(data if data is not None else b"")[ends[0] : ends[-1]]
