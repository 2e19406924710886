"""Arrow IPC: files by record batch, streams from the beginning. No file is mapped: it may be cut while it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from calibrant.data.sources.columnar.sound import AGAIN, checked, names_of, narrowest, once, readable
from calibrant.data.sources.source import ROWS, Part, Read, Source
from calibrant.errors import BadInput

KIND = "Arrow IPC"
FILE, FIRST_FEATHER = b"ARROW1", b"FEA1"
ENDS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")  # of a stream: as it is written now, and as it once was
PART = 4 * ROWS  # rows that one thread reads, at least


def arrow(path: str, name: str, filesystem: pa.fs.FileSystem) -> Source:
    """The record batches of a file, in runs that threads read, or of a stream, in one."""
    shown = name or PurePosixPath(path).name
    with readable(shown, KIND), filesystem.open_input_file(path) as file:
        first = file.read(8)
        if first.startswith(FIRST_FEATHER):
            raise BadInput(f"{shown} is a Feather file of the first version: write it again as Feather 2 or Parquet")
        stream = not first.startswith(FILE)
        schema = (pa.ipc.open_stream if stream else pa.ipc.open_file)(_start(file)).schema
        names = names_of(schema, shown, KIND)
        if stream:
            _ended(file, shown)

    def reader(batches: range | None) -> Read:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            once(shown, names, columns)
            wanted, row = [names.index(c) for c in columns], 0
            with readable(shown, KIND), filesystem.open_input_file(path) as file:
                for batch in _batches(file, wanted, batches):
                    yield from checked(batch, columns, shown, row)
                    row += batch.num_rows
                if batches is None and file.tell() != file.size():
                    raise BadInput(f"{shown} goes on after the end of its stream: keep one stream a file")

        return read

    if stream:
        return Source(name, names, (Part(name, 0, reader(None)),), None)
    with readable(shown, KIND), filesystem.open_input_file(path) as file:
        lengths = _lengths(file, narrowest(schema))
    parts, start, first_batch, rows = list[Part](), 0, 0, 0
    for i, length in enumerate(lengths):
        rows += length
        if rows >= PART or i == len(lengths) - 1:
            parts.append(Part(name, start, reader(range(first_batch, i + 1))))
            start, first_batch, rows = start + rows, i + 1, 0
    return Source(name, names, tuple(parts), start)


def _start(file: pa.NativeFile) -> pa.NativeFile:
    file.seek(0)
    return file


def _batches(file: pa.NativeFile, wanted: Sequence[int], batches: range | None) -> Iterator[pa.RecordBatch]:
    """Yield record batches of a file, or all of a stream, of which only some columns are read."""
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=list(wanted))
    if batches is None:
        yield from pa.ipc.open_stream(file, options=options)
        return
    opened: Any = pa.ipc.open_file(file, options=options)
    for i in batches:
        yield opened.get_batch(i)


def _lengths(file: pa.NativeFile, column: int | None) -> list[int]:
    """The rows of each record batch; one column of each is read, for nothing else tells them."""
    options = pa.ipc.IpcReadOptions(included_fields=[] if column is None else [column])
    opened = pa.ipc.open_file(file, options=options)
    return [opened.get_batch(i).num_rows for i in range(opened.num_record_batches)]


def _ended(file: pa.NativeFile, shown: str) -> None:
    """Refuse a stream without its end mark: rows that are missing would be missed by nobody."""
    file.seek(max(file.size() - 8, 0))
    if not file.read(8).endswith(ENDS):
        raise BadInput(f"{shown} is a stream of Arrow IPC without an end; {AGAIN}")
