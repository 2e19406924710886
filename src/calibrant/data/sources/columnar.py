"""Files of columns: Parquet, ORC and Arrow IPC, by row group, stripe and record batch, checked as they are read."""

from __future__ import annotations

import itertools
import os
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.layouts import know_extensions, without_views
from calibrant.data.sources.budget import ROW, afford_of
from calibrant.data.sources.kinds import ARROW, ORC, PARQUET
from calibrant.data.sources.listing import keyed
from calibrant.data.sources.source import ROWS, Fragment, Fragments, Part, Read, Source, rows_at_once
from calibrant.errors import BadInput, first_line

if TYPE_CHECKING:
    import pyarrow.parquet as pq

AGAIN = "it may be damaged or cut short: fetch or write it again"
BROKEN = (OSError, ValueError, LookupError, OverflowError, MemoryError, SystemError, RuntimeError)  # of a reader


LOOKED = 1 << 26  # bytes of a file whose batches are looked through first: larger ones are no bombs
FEW, MANY = 32, 50_000  # rows of ORC read at once, for they may be of 9 MB; and times that some are read, at most
BATCH = 1 << 27  # bytes, about, that are made of rows at once: long texts come fewer at a time


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
    except (*BROKEN, pa.ArrowException) as e:
        raise BadInput(f"{file} cannot be read as {kind} ({first_line(e).rstrip('. ')}); {AGAIN}") from None


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
    batch, rows = batch.select(list(columns)), ROWS
    for name, column in zip(columns, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type) and _codes_stand_for_values(column):
            rows = min(rows, BATCH // _longest(column.dictionary))
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as e:
            why, last = first_line(e), row + batch.num_rows - 1
            text = "text that is not UTF-8" if "UTF8" in why else "values that cannot be"
            raise BadInput(
                f"{file}: column {name!r} holds {text}, in rows {row:,} to {last:,} ({why[:120]}): "
                "correct or write that column again"
            ) from None
    if batch.num_rows <= (rows := max(rows, 1)):
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _longest(values: pa.Array) -> int:
    """The bytes of the longest text among the values of a dictionary; 1 for those that are no text."""
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return 1
    return max(pc.max(pc.binary_length(values)).as_py() or 1, 1)


def _afford_rows(name: str, own: int, rows: int) -> None:
    """Refuse more rows than a file of its size may have: where they are all alike, a file says so in a few bytes."""
    afford_of(name, own, ROW * rows, f"claims {rows:,} rows", "write those that differ, with weights, or in parts")


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


# ---- Parquet, by row group, here or on another machine ----

FEW_ROWS = 1_024  # of neighbouring row groups, which are read as one: opening one takes a millisecond
NO_DICTIONARY = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}  # encodings that cannot be read as dictionaries


def parquet(path: str, name: str, filesystem: pa.fs.FileSystem) -> Source:
    """A file's row groups; neighbours of few rows are one part."""
    file = ParquetRows(path, name, filesystem)
    meta = file.meta()
    runs, rows_of, start = list[list[int]](), list[int](), 0
    for g in range(meta.num_row_groups):
        with readable(file.name, PARQUET):
            rows = meta.row_group(g).num_rows
        if rows < 0:
            raise BadInput(f"{file.name} says that row group {g} has {rows:,} rows; {AGAIN}")
        if runs and rows_of[-1] + rows <= FEW_ROWS:
            runs[-1].append(g)
            rows_of[-1] += rows
        else:
            runs.append([g])
            rows_of.append(rows)
    parts, pieces = list[Part](), list[Fragment]()
    for run, rows in zip(runs, rows_of, strict=True):
        parts.append(Part(name, start, file.reader(run[0], run[-1] + 1)))
        pieces.append((path, name, start, (run[0], run[-1] + 1), rows, ()))
        start += rows
    _afford_rows(file.name, filesystem.get_file_info(path).size or 0, start)
    if meta.num_row_groups > 1:
        file.buffered = meta
    return Source(name, file.names, tuple(parts), start, fragments=Fragments(filesystem, tuple(pieces)))


def read_fragments(
    filesystem: pa.fs.FileSystem, pieces: Iterable[Fragment], columns: Sequence[str]
) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield the batches of row groups with their part and first row."""
    for (path, part), own in itertools.groupby(pieces, key=lambda piece: piece[:2]):
        if filesystem.type_name == "local" and not os.path.exists(path):
            raise BadInput(f"a worker finds no file {path!r}: give a path that every machine sees, such as s3://")
        file = ParquetRows(path, part, filesystem)
        file.buffered = file.meta()
        for _, name, row, groups, _, keys in own:
            for batch in keyed(file.reader(*groups), keys, file.names, file.name)(columns, ()):
                yield name, row, batch
                row += batch.num_rows


class ParquetRows:
    """A Parquet file and what its footer says.

    `path`, `part`: the part's name is shown, if it has one.
    """

    def __init__(self, path: str, part: str, filesystem: pa.fs.FileSystem) -> None:
        import pyarrow.parquet as pq

        self.path, self.filesystem, self.name = path, filesystem, part or PurePosixPath(path).name
        with readable(self.name, PARQUET), pq.ParquetFile(path, filesystem=filesystem) as file:
            schema, self._meta = file.schema_arrow, file.metadata
            leaves = [file.schema.column(i).path for i in range(self._meta.num_columns)]
        self.names = names_of(schema, self.name, PARQUET)
        texts = {f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)}
        self.texts = {leaf: i for i, leaf in enumerate(leaves) if leaf in texts}
        self.buffered: pq.FileMetaData | None = None

    def meta(self) -> pq.FileMetaData:
        """Hand over the footer, which a file of one row group reads again where it is needed."""
        meta, self._meta = self._meta, None
        return meta

    def reader(self, first: int, end: int) -> Read:
        """The reader of row groups from `first` to before `end`; texts stay dictionaries."""

        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            import pyarrow.parquet as pq

            once(self.name, self.names, columns)
            texts = [c for c in columns if c in self.texts]
            with readable(self.name, PARQUET):
                meta = self.buffered or pq.read_metadata(self.path, filesystem=self.filesystem)
                groups = [meta.row_group(g) for g in range(first, end)]
                rows = sum(g.num_rows for g in groups)
                each = max(self._row_bytes(g, columns) for g in groups)
                encodings = {t: {e for g in groups for e in g.column(self.texts[t]).encodings} for t in texts}
                kept = [t for t in texts if NO_DICTIONARY.isdisjoint(encodings[t])]
                with pq.ParquetFile(
                    self.path,
                    filesystem=self.filesystem,
                    metadata=meta,
                    read_dictionary=kept,
                    page_checksum_verification=True,
                ) as opened:
                    row, size, run = 0, min(rows_at_once(len(columns)), BATCH // max(each, 1) or 1), range(first, end)
                    for batch in opened.iter_batches(size, run, columns=list(columns), use_threads=False):
                        for sound in checked(batch, columns, self.name, row):
                            yield encoded(sound, texts) if len(kept) < len(texts) else sound
                        row += batch.num_rows
                if row != rows:
                    shown = f"row group {first} has" if end == first + 1 else f"row groups {first} to {end - 1} have"
                    raise BadInput(f"{self.name}: {shown} {row:,} of {rows:,} rows; {AGAIN}")

        return read

    def _row_bytes(self, group: pq.RowGroupMetaData, columns: Sequence[str]) -> int:
        """The bytes of a row of a row group, about, as they are before they are compressed."""
        there = (group.column(i) for i in range(group.num_columns))
        size: int = sum(int(c.total_uncompressed_size) for c in there if c.path_in_schema.split(".")[0] in columns)
        return size // max(int(group.num_rows), 1)


def encoded(batch: pa.RecordBatch, texts: Sequence[str]) -> pa.RecordBatch:
    """A batch whose texts are dictionaries, as those of other row groups are."""
    columns = [
        c.dictionary_encode() if n in texts and not pa.types.is_dictionary(c.type) else c
        for n, c in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


# ---- ORC, by stripe ----


def orc(path: str, name: str, filesystem: pa.fs.FileSystem) -> Source:
    """A file's stripes."""
    from pyarrow.orc import ORCFile

    shown = name or PurePosixPath(path).name
    with readable(shown, ORC), filesystem.open_input_file(path) as file:
        opened = ORCFile(file)
        names = names_of(opened.schema, shown, ORC)
        _afford_rows(shown, file.size(), opened.nrows)
        column = narrowest(opened.schema)
        cheap = None if column is None else [names[column]]
        texts = {str(f.name) for f in opened.schema if narrowest(pa.schema([f])) is None}  # of no fixed width
        lengths = [opened.read_stripe(i, cheap).num_rows for i in range(opened.nstripes)]
        small = file.size() <= LOOKED  # a text that all rows share takes few bytes, and in a stripe all its rows' bytes
        if sum(lengths) != opened.nrows:
            raise BadInput(f"{shown} has {sum(lengths)} of its {opened.nrows} rows; {AGAIN}")

    def reader(stripe: int) -> Read:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            once(shown, names, columns)
            with readable(shown, ORC), filesystem.open_input_file(path) as file:
                batch = ORCFile(file).read_stripe(stripe, list(columns) or cheap)
                yield from checked(batch, columns, shown, 0)

        return read

    def in_one(columns: Sequence[str], more: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if texts.isdisjoint(columns):
            yield from itertools.chain.from_iterable(reader(k)(columns, more) for k in range(len(lengths)))
            return
        once(shown, names, columns)
        with readable(shown, ORC):
            for batch in _few_rows_at_once(path, filesystem, list(columns), sum(lengths)):
                yield from checked(batch, columns, shown, 0)

    if small:
        return Source(name, names, (Part(name, 0, in_one),), sum(lengths))
    parts, start = list[Part](), 0
    for stripe, length in enumerate(lengths):
        parts.append(Part(name, start, reader(stripe)))
        start += length
    return Source(name, names, tuple(parts), start)


def _few_rows_at_once(
    path: str, filesystem: pa.fs.FileSystem, columns: list[str], every: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an ORC file, few enough read at once for their texts, however long, and enough together."""
    import pyarrow.dataset as ds

    rows = ds.dataset(path, format="orc", filesystem=filesystem).scanner(
        columns=columns, batch_size=max(FEW, every // MANY), use_threads=False, batch_readahead=0, fragment_readahead=0
    )
    kept, size, count = list[pa.RecordBatch](), 0, 0
    for batch in rows.to_batches():
        kept.append(batch)
        size, count = size + batch.nbytes, count + batch.num_rows
        if size >= BATCH or count >= ROWS:
            yield pa.concat_batches(kept)
            kept, size, count = [], 0, 0
    if kept:
        yield pa.concat_batches(kept)


# ---- Arrow IPC: files by record batch, streams from the beginning; none is mapped, for it may be cut meanwhile ----

FILE, FIRST_FEATHER = b"ARROW1", b"FEA1"
ENDS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")  # of a stream: as it is written now, and as it once was
PART = 4 * ROWS  # rows that one thread reads, at least


def arrow(path: str, name: str, filesystem: pa.fs.FileSystem) -> Source:
    """The record batches of a file, in runs that threads read, or of a stream, in one."""
    shown = name or PurePosixPath(path).name
    with readable(shown, ARROW), filesystem.open_input_file(path) as file:
        first = file.read(8)
        if first.startswith(FIRST_FEATHER):
            raise BadInput(f"{shown} is a Feather file of the first version: write it again as Feather 2 or Parquet")
        stream = not first.startswith(FILE)
        file.seek(0)
        schema = (pa.ipc.open_stream if stream else pa.ipc.open_file)(file).schema
        names = names_of(schema, shown, ARROW)
        file.seek(max(file.size() - 8, 0))
        if stream and not file.read(8).endswith(ENDS):  # rows that are missing would be missed by nobody
            raise BadInput(f"{shown} is a stream of Arrow IPC without an end; {AGAIN}")
        claimed, unpacked = claims(file, stream) if file.size() <= LOOKED else (0, 0)
        _afford_rows(shown, file.size(), claimed)
        afford_of(
            shown, file.size(), 2 * unpacked, f"unpacks to a batch of {unpacked:,} bytes", "write smaller batches"
        )

    def reader(batches: range | None) -> Read:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            once(shown, names, columns)
            wanted, row = [names.index(c) for c in columns], 0
            with readable(shown, ARROW), filesystem.open_input_file(path) as file:
                for batch in _batches(file, wanted, batches):
                    yield from map(without_views, checked(batch, columns, shown, row))
                    row += batch.num_rows
                if batches is None and file.tell() != file.size():
                    raise BadInput(f"{shown} goes on after the end of its stream: keep one stream a file")

        return read

    if stream:
        return Source(name, names, (Part(name, 0, reader(None)),), None)
    column = narrowest(schema)  # of each batch one is read, for nothing else tells its rows
    options = pa.ipc.IpcReadOptions(included_fields=[] if column is None else [column])
    with readable(shown, ARROW), filesystem.open_input_file(path) as file:
        opened = pa.ipc.open_file(file, options=options)
        lengths = [opened.get_batch(i).num_rows for i in range(opened.num_record_batches)]
    parts, start, first_batch, rows = list[Part](), 0, 0, 0
    for i, length in enumerate(lengths):
        rows += length
        if rows >= PART or i == len(lengths) - 1:
            parts.append(Part(name, start, reader(range(first_batch, i + 1))))
            start, first_batch, rows = start + rows, i + 1, 0
    return Source(name, names, tuple(parts), start)


def _batches(file: pa.NativeFile, wanted: Sequence[int], batches: range | None) -> Iterator[pa.RecordBatch]:
    """Yield record batches of a file, or all of a stream, of which only some columns are read."""
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=list(wanted))
    if batches is None:
        yield from pa.ipc.open_stream(file, options=options)
        return
    opened: Any = pa.ipc.open_file(file, options=options)
    for i in batches:
        yield opened.get_batch(i)


# ---- What the record batches of an Arrow IPC file claim, before any is unpacked ----

ROW_BATCH, DICTIONARY = 3, 2  # of the union of headers: a record batch, and one of the values of a dictionary
HEADER_TYPE, HEADER = 1, 2  # fields of a message
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3  # fields of a record batch
DATA = 1  # the field of a dictionary batch that is a record batch
FIRST = 8  # bytes before the messages of a file, and of the number that a compressed buffer begins with


def claims(file: pa.NativeFile, stream: bool) -> tuple[int, int]:
    """The rows of all record batches, and the bytes of the largest that is compressed once it is unpacked.

    A file is read as the stream that it holds; one that ends too soon, or says what cannot be, is left to its reader.
    """
    file.seek(0 if stream else FIRST)
    rows = largest = 0
    try:
        for message in pa.ipc.MessageReader.open_stream(file):
            here, size = _claim(message)
            rows, largest = rows + here, max(largest, size)
    except (pa.ArrowInvalid, OSError, struct.error, IndexError):
        pass  # the reader says so in its own words
    finally:
        file.seek(0)
    return rows, largest


def _claim(message: pa.Message) -> tuple[int, int]:
    """The rows of a record batch, none of a dictionary; the bytes of its compressed buffers once unpacked."""
    head = _Table(message.metadata.to_pybytes())
    if (kind := head.byte(HEADER_TYPE)) not in (ROW_BATCH, DICTIONARY):
        return 0, 0
    own = head.table(HEADER)
    batch = own if kind == ROW_BATCH else own.table(DATA)
    rows = batch.whole(LENGTH) if kind == ROW_BATCH else 0
    if not batch.at(COMPRESSION):
        return rows, 0
    body, size = message.body, 0
    for offset, length in batch.pairs(BUFFERS):
        if length >= FIRST:  # it begins with its length, -1 where it is not compressed after all
            size += max(struct.unpack("<q", body[offset : offset + FIRST])[0], 0)
    return rows, size


class _Table:
    """A table of FlatBuffers, in which the metadata of Arrow IPC are written."""

    def __init__(self, raw: bytes, place: int | None = None) -> None:
        self.raw = raw
        self.place = self._int("<I", 0) if place is None else place
        self.fields = self.place - self._int("<i", self.place)

    def _int(self, kind: str, place: int) -> int:
        return int(struct.unpack_from(kind, self.raw, place)[0])

    def at(self, field: int) -> int:
        """The place of a field; 0 where it is not there."""
        slot = 4 + 2 * field
        offset = self._int("<H", self.fields + slot) if slot < self._int("<H", self.fields) else 0
        return self.place + offset if offset else 0

    def byte(self, field: int) -> int:
        """A number of one byte."""
        return self.raw[place] if (place := self.at(field)) else 0

    def whole(self, field: int) -> int:
        """A number of eight bytes."""
        return self._int("<q", place) if (place := self.at(field)) else 0

    def table(self, field: int) -> _Table:
        """A table within this one."""
        place = self.at(field)
        return _Table(self.raw, place + self._int("<I", place))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """A list of pairs of numbers of eight bytes."""
        if not (place := self.at(field)):
            return []
        start = place + self._int("<I", place)
        count = self._int("<I", start)
        return list(struct.iter_unpack("<qq", self.raw[start + 4 : start + 4 + 16 * count]))
