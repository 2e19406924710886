"""Rows streamed from any source into one new file, with columns added."""

from __future__ import annotations

import glob as globbing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.columns import decoded
from calibrant.data.sources import OnRows, Source
from calibrant.errors import BadInput

PARQUET, CSV, IPC = (".parquet", ".pq"), (".csv", ".tsv"), (".arrow", ".feather", ".ipc")
Columns = Mapping[str, "pa.Array | NDArray[np.generic]"]
Added = Callable[[pa.RecordBatch, str, int], Columns]  # batch, part, first row -> columns to add


def checked_target(out: str, files: Iterable[str], source: Source, added: Sequence[str]) -> Path:
    """Return where to write, or say why not: an unknown ending, an input, no such directory, columns that differ."""
    path = Path(out)
    if not path.name.lower().endswith((*PARQUET, *CSV, *IPC)):
        raise BadInput(f"cannot write {out!r}: end its name in .parquet, .csv, .tsv, .arrow or .feather")
    if not path.resolve().parent.is_dir():
        raise BadInput(f"cannot write {out!r}: there is no directory {str(path.parent)!r}")
    if path.is_dir():
        raise BadInput(f"cannot write {out!r}: it is a directory")
    if path.exists() and any(_holds(f, path) for f in files):
        raise BadInput(f"{out!r} is among the files to read: write to another file")
    if source.partial:
        raise BadInput(
            f"only some of the files have column {source.partial[0]!r}: write them apart, or make them alike"
        )
    for name in added:
        if name in source.columns:
            raise BadInput(f"column {name!r} is in the data already: rename it, or leave it out of the file")
    return path


def _holds(given: str, path: Path) -> bool:
    target = path.resolve()
    if Path(given).is_dir():
        return target.is_relative_to(Path(given).resolve())
    return any(Path(p).resolve() == target for p in (globbing.glob(given, recursive=True) or [given]))


def rewrite(
    source: Source,
    path: Path,
    scores: Sequence[str],
    added: Added,
    settle: Callable[[], None],
    progress: OnRows | None = None,
) -> int:
    """Write every row with its columns and those added; the file appears when it is complete. Return the rows written.

    `scores` are columns to read as real numbers where types are guessed. If `added` raises, or `settle`, which is
    called after the last row, nothing is left behind.
    """
    part_of = path.with_name(f".{path.name}.{os.getpid()}.part")
    target, rows = _Target(part_of, path.name.lower()), 0
    try:
        for part in source.parts:
            row = part.first_row
            for batch in part.read(source.columns, scores):
                target.write(batch, added(batch, part.name, row))
                row += batch.num_rows
                rows += batch.num_rows
                if progress is not None:
                    progress(batch.num_rows)
        settle()
        if not rows:
            raise BadInput("no rows to repair: the data is empty")
        target.close()
        os.replace(part_of, path)
    except OSError as e:
        raise BadInput(f"cannot write {str(path)!r}: {e.strerror or e}") from None
    finally:
        with suppress(OSError):  # a full disk: said above
            target.close()
        part_of.unlink(missing_ok=True)
    return rows


class _Target:
    """A file that grows by batches; its columns have the types of the first."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.schema: pa.Schema = None
        self.writer: pa.ipc.RecordBatchFileWriter = None  # or one of pyarrow's for Parquet or CSV

    def write(self, batch: pa.RecordBatch, added: Columns) -> None:
        """Add rows."""
        parquet = self.name.endswith(PARQUET)
        kept = [_kept(c, parquet) for c in batch.columns]
        columns = [*kept, *(pa.array(v) if not isinstance(v, pa.Array) else v for v in added.values())]
        if self.writer is None:
            fields = [pa.field(n, c.type) for n, c in zip((*batch.schema.names, *added), columns, strict=True)]
            self.schema = pa.schema(fields, metadata=batch.schema.metadata)
            self.writer = self._opened()
        try:
            columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, self.schema, strict=True)]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
            raise BadInput(
                f"the files store a column in different types ({str(e).splitlines()[0]}): store it one way"
            ) from None
        self.writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self.schema))

    def _opened(self) -> pa.ipc.RecordBatchFileWriter:
        import pyarrow.parquet as pq
        from pyarrow import csv

        if self.name.endswith(PARQUET):
            texts = [f.name for f in self.schema if not pa.types.is_floating(f.type)]
            return pq.ParquetWriter(self.path, self.schema, use_dictionary=texts, store_schema=False)
        if self.name.endswith(CSV):
            tab = self.name.endswith(".tsv")
            return csv.CSVWriter(self.path, self.schema, write_options=csv.WriteOptions(delimiter="\t" if tab else ","))
        return pa.ipc.new_file(self.path, self.schema)

    def close(self) -> None:
        """Finish the file, once."""
        if self.writer is not None:
            writer, self.writer = self.writer, None
            writer.close()


def _kept(column: pa.Array, parquet: bool) -> pa.Array:
    """Return a column as it is to be written: Parquet stores dictionaries as what they stand for."""
    return column if parquet or not pa.types.is_dictionary(column.type) else decoded(column)
