"""Rows that can be read only once, held so that they can be read again: in memory, beyond that in a temporary file."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO

import pyarrow as pa

from calibrant.data.sources.source import ROWS, OnRows, Part, Source
from calibrant.errors import BadInput

AT_ONCE = 1 << 30  # bytes held in memory; more is written to a file, compressed


def load_rows(source: Source, columns: Sequence[str], progress: OnRows | None = None) -> Source:
    """Read some columns of a stream and return them as a source that can be read again, its rows numbered as they came.

    Up to 1 GiB is held in memory. A longer stream is written, compressed, to a temporary file in the folder that TMPDIR
    names; it is gone when the source is no longer used, or the process ends.
    """
    room, rows = Room(), 0
    columns = tuple(dict.fromkeys(columns))
    for part in source.parts:
        for batch in part.read(columns, ()):
            room.add(batch)
            rows += batch.num_rows
            if progress is not None:
                progress(batch.num_rows)
    room.close()
    return Source(source.name, columns, (Part("", 0, lambda names, _: room.read(names)),), rows)


class Room:
    """Record batches in memory until they fill it, then all of them in a file."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._file: IO[bytes] | None = None
        self._sink: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._batches.append(batch)
        self._size += batch.nbytes
        if self._size <= AT_ONCE and self._sink is None:
            return
        try:
            if self._sink is None:
                self._file = tempfile.TemporaryFile(prefix="calibrant-")  # noqa: SIM115
                weakref.finalize(self, self._file.close)
                options = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=False)
                self._sink = pa.ipc.new_stream(self._file, batch.schema, options=options)
            for kept in self._batches:
                self._sink.write_batch(kept)
            self._batches.clear()
        except OSError as e:
            raise self._full(e) from None
        except pa.ArrowInvalid:
            raise BadInput("the batches of a stream differ in a column's type: store it one way") from None

    def close(self) -> None:
        """Say that no more comes."""
        try:
            if self._sink is not None and self._file is not None:
                self._sink.close()
                self._file.flush()
        except OSError as e:
            raise self._full(e) from None

    def _full(self, error: OSError) -> BadInput:
        if self._file is not None:
            with suppress(OSError):  # what it still had to write finds no room either
                self._file.close()
        return BadInput(
            f"a stream beyond {AT_ONCE >> 20:,} MB cannot be held in {tempfile.gettempdir()} "
            f"({error.strerror or error}): write it to a Parquet file, or set TMPDIR to a folder with room"
        )

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Give the batches, cut to some columns, from the first; one reader at a time."""
        if self._file is None:
            batches: Iterator[pa.RecordBatch] = iter(self._batches)
        else:
            self._file.seek(0)
            batches = iter(pa.ipc.open_stream(self._file))
        for batch in batches:
            for start in range(0, max(batch.num_rows, 1), ROWS):
                yield batch.slice(start, ROWS).select(list(columns))
