"""Frames, columns, records and streams in memory, of whatever library: recognised by what they can do, not by name."""

from __future__ import annotations

import itertools
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.arrays import REFUSED, column_of, counts, numpy_of, positions
from calibrant.data.columns import table_of
from calibrant.data.layouts import without_views
from calibrant.data.sources.query import Relation, relation
from calibrant.data.sources.source import ROWS, OnRows, Part, Read, Source, marks_of
from calibrant.errors import BadInput

EVERY = "*"  # among wanted columns: all that can be used
ARROW = ("__arrow_c_stream__", "__arrow_c_array__")
TWICE = "is the name of two columns: rename one"
Named = Iterable[tuple[object, object]]  # columns by name, which need not be text nor unique
Order = Mapping[str, NDArray[np.intp]]


# ---- sources ----


def frame(source: object, wanted: Sequence[str]) -> Source:
    """What is in memory, or can be read there. Of a lazy frame only the wanted columns are computed."""
    if hasattr(source, "to_arrow_reader") and hasattr(source, "project"):
        return relation(cast(Relation, source))
    if isinstance(source, pa.RecordBatchReader):
        return _stream(source.schema.names, iter(source))
    if isinstance(source, Iterator):
        first = next(source, None)
        if first is None:
            raise BadInput("no rows to audit: the iterator gives nothing")
        source = itertools.chain([first], source)
        if not isinstance(first, Mapping):
            return _chunks(first, source)
        source = list(source)
    kept = as_rows(
        source,
        "column",
        f"cannot read a {type(source).__name__}: pass a path, a glob, a pandas, Polars or Arrow table, a DuckDB "
        "relation, a dictionary of columns or a list of records; arrays are calibrant.predictions(y_true, y_prob)",
        wanted,
    )
    for name in wanted:
        if name in kept.unread:
            raise BadInput(f"column {name!r} {kept.unread[name]}")
    return table_source(kept.table, {name: f"it {why}" for name, why in kept.unread.items()})


def table_source(table: pa.Table, unread: Mapping[str, str] | None = None) -> Source:
    """A table as a source whose parts are runs of rows; `unread` are columns it lacks, and why."""

    def reader(start: int, length: int) -> Read:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            rows = table.select(list(columns)).slice(start, length)
            yield from map(without_views, rows.to_batches(max_chunksize=ROWS))

        return read

    step = 4 * ROWS
    parts = [Part("", s, reader(s, step)) for s in range(0, max(table.num_rows, 1), step)]
    names = tuple(table.schema.names)
    return Source("data", names, tuple(parts), table.num_rows, unread=tuple((unread or {}).items()))


def _stream(names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Source:
    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield without_views(batch.select(list(columns)))

    return Source("stream", tuple(names), (Part("", 0, read),), None, again=False)


def _chunks(first: object, rest: Iterator[object]) -> Source:
    """Frames or batches that come one after the other as a stream."""
    names = _chunk(first).schema.names

    def batches() -> Iterator[pa.RecordBatch]:
        for number, chunk in enumerate(rest):
            result = _chunk(chunk)
            if sorted(result.schema.names) != sorted(names):
                strange = sorted(set(names) ^ set(result.schema.names))[0]
                raise BadInput(f"frame {number} of the iterator differs from the first in column {strange!r}")
            yield from result.to_batches(max_chunksize=ROWS)

    return _stream(names, batches())


def _chunk(chunk: object) -> pa.Table:
    strange = f"an iterator gives a {type(chunk).__name__}: let it give record batches, frames or records"
    kept = as_rows(chunk, "column", strange)
    if kept.unread:
        name, why = next(iter(kept.unread.items()))
        raise BadInput(f"column {name!r} {why}")
    return kept.table


# ---- tables ----


@dataclass(frozen=True)
class InMemoryTable:
    """Columns that became a table, and why others did not."""

    table: pa.Table  # each name once
    unread: Mapping[str, str] = field(default_factory=dict)  # reasons by name, to be read after it


def as_rows(
    source: object, noun: str, refusal: str, wanted: Sequence[str] = (), order: Order | None = None
) -> InMemoryTable:
    """What holds columns as a table; what does not is refused so.

    `noun`: what refusals call a column. `wanted`: all that a lazy frame need compute; empty, or with ``"*"`` among
    them, for every column. `order`: of the rows of a dictionary's columns; by default the row labels of pandas decide.
    """
    if callable(getattr(source, "to_dataframe", None)) and hasattr(source, "coords") and hasattr(source, "dims"):
        return _gridded(source, noun)
    if isinstance(source, Mapping):
        return _columns(source.items(), noun, order)
    if (fields := getattr(getattr(source, "dtype", None), "names", None)) is not None:
        return _columns([(name, cast(Any, source)[name]) for name in fields], noun)
    if isinstance(source, (list, tuple)):
        return _listed(source, noun, refusal)
    if callable(named := getattr(source, "to_frame", None)) and getattr(source, "name", None) is not None:
        return as_rows(named(), noun, refusal)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return _like_pandas(source, noun)
    return _spoken(source, wanted, refusal)


def _spoken(source: object, wanted: Sequence[str], refusal: str) -> InMemoryTable:
    """What speaks a protocol of frames, or is lazy, as a table."""
    result = _computed(source, wanted)
    if any(hasattr(result, a) for a in ARROW):
        try:
            return _unique(table_of(result) if hasattr(result, ARROW[0]) else pa.table(pa.record_batch(result)))
        except REFUSED as e:
            raise BadInput(f"a {type(source).__name__} cannot be read ({_line(e)}): pass a frame or columns") from None
    if hasattr(result, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        try:
            return _unique(from_dataframe(result))
        except (*REFUSED, RuntimeError) as e:
            raise BadInput(f"a {type(source).__name__} cannot be read ({_line(e)}): pass its columns") from None
    raise BadInput(refusal)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:100]


def lazy_columns(source: object) -> list[str]:
    """The columns of a lazy frame, which is computed in part; none of any other source."""
    import narwhals as nw

    try:
        known = nw.from_native(source, pass_through=True)
        return known.collect_schema().names() if isinstance(known, nw.LazyFrame) else []
    except Exception:  # of whatever library: whoever computes the frame says what is wrong
        return []


def _computed(source: object, wanted: Sequence[str]) -> object:
    """The wanted columns of a lazy frame, computed, and frames of libraries that narwhals knows as Arrow's."""
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return source
    import narwhals as nw

    try:
        known = nw.from_native(source, pass_through=True)
        if isinstance(known, nw.LazyFrame):
            names = known.collect_schema().names()
            if wanted and EVERY not in wanted and all(w in names for w in wanted):
                every = dict.fromkeys((*wanted, *marks_of(names)))  # rows that a calibrator was fitted on are left out
                places = [names.index(w) for w in every]  # a name such as ^x$ would be a pattern
                known = known.select(nw.nth(places))
            return known.collect("pyarrow").to_arrow()
        return known.to_arrow() if isinstance(known, nw.DataFrame) and not hasattr(source, ARROW[0]) else source
    except Exception as e:  # of whatever library, when it computes
        raise BadInput(f"a {type(source).__name__} cannot be computed ({_line(e)})") from None


def _unique(table: pa.Table) -> InMemoryTable:
    """A table without the columns whose name is not theirs alone."""
    names = table.schema.names
    if len(set(names)) == len(names):
        return InMemoryTable(table)
    times = Counter(names)
    alone = [i for i, name in enumerate(names) if times[name] == 1]
    return InMemoryTable(table.select(alone), {name: TWICE for name in names if times[name] > 1})


def _columns(
    inputs: Named, noun: str, order: Order | None = None, unread: Mapping[str, str] | None = None
) -> InMemoryTable:
    """Columns of any kind as a table. Names that are not text are taken as it."""
    named = [(str(name), name, values) for name, values in inputs]
    at = positions({f"{noun} {name!r}": v for name, _, v in named}) if order is None else order
    made, why, times = {}, dict(unread or {}), Counter(name for name, _, _ in named)
    for name, _, values in named:
        stated = f"{noun} {name!r}"
        if times[name] > 1:
            why[name] = TWICE
            continue
        try:
            name.encode()
            column = column_of(values, stated)
        except UnicodeEncodeError:
            why[ascii(name)[1:-1]] = "has a name that is not text in UTF-8: rename it"
        except BadInput as e:
            why[name] = str(e).removeprefix(f"{stated} ")
        else:
            made[name] = column.take(at[stated]) if stated in at else column
    if len({len(v) for v in made.values()}) > 1:
        lengths = ", ".join(f"{k} {len(v)}" for k, v in itertools.islice(made.items(), 8))
        raise BadInput(f"{noun}s have different lengths ({lengths}): pass columns of equal length")
    return InMemoryTable(pa.table(made), why)


def _listed(source: Sequence[object], noun: str, refusal: str) -> InMemoryTable:
    """A list of records (each a dictionary) or of batches and frames as one table."""
    if source and all(isinstance(record, Mapping) for record in source):
        records = cast(Sequence[Mapping[object, object]], source)
        names = dict.fromkeys(name for record in records for name in record)
        return _columns([(name, [record.get(name) for record in records]) for name in names], noun)
    frames = all(any(hasattr(part, a) for a in (*ARROW, "iloc")) and hasattr(part, "shape") for part in source)
    if not (source and frames):
        raise BadInput(refusal)
    kept = [as_rows(part, noun, refusal) for part in source]
    try:
        table = pa.concat_tables([h.table for h in kept], promote_options="permissive")
    except REFUSED as e:
        raise BadInput(f"the frames store a column in different types ({_line(e)}): store it one way") from None
    return InMemoryTable(table, {name: why for h in kept for name, why in h.unread.items()})


def _like_pandas(source: Any, noun: str) -> InMemoryTable:
    """A frame of pandas, or one like it: at once if Arrow can take it so, else column by column."""
    names = list(source.columns)
    if hasattr(source, ARROW[0]) and len(set(names)) == len(names) and all(isinstance(n, str) for n in names):
        try:
            return InMemoryTable(table_of(source))
        except REFUSED:  # a column that pandas may hold and Arrow does not
            pass
    index = source.index
    labels = [] if counts(index) else [(n, index.get_level_values(n)) for n in index.names if n is not None]
    return _columns([*((n, source.iloc[:, j]) for j, n in enumerate(names)), *labels], noun, {})


def _gridded(source: Any, noun: str) -> InMemoryTable:
    """Variables of xarray as columns: a row for each point of the grid that the largest of them spans."""
    variables = dict(source.data_vars) if hasattr(source, "data_vars") else {source.name or "values": source}
    if not variables:
        return InMemoryTable(pa.table({}))
    grid = max(variables.values(), key=lambda v: len(v.dims))
    spans = ", ".join(map(str, grid.dims))
    columns, unread = [], {}
    for name, values in variables.items():
        if set(values.dims) == set(grid.dims):
            columns.append((name, numpy_of(values.transpose(*grid.dims), name).reshape(-1)))
        else:  # spread over the grid its rows would count more than once
            unread[str(name)] = f"has other dimensions than ({spans}): use xarray.broadcast, or make it a coordinate"
    for name, values in source.coords.items():
        if set(values.dims) <= set(grid.dims):
            spread = values.broadcast_like(grid).transpose(*grid.dims)
            columns.append((name, numpy_of(spread, name).reshape(-1)))
    return _columns(columns, noun, {}, unread)


# ---- rows that can be read only once, held to be read again: in memory, beyond that in a temporary file ----


AT_ONCE = 1 << 30  # bytes held in memory; more is written to a file, compressed


def load_rows(source: Source, columns: Sequence[str], progress: OnRows | None = None) -> Source:
    """Read some columns of a stream and return them as a source that can be read again, its rows numbered as they came.

    Up to 1 GiB is held in memory. A longer stream is written, compressed, to a temporary file in the folder that TMPDIR
    names; it is gone when the source is no longer used, or the process ends.
    """
    room, rows = Room(), 0
    columns = tuple(dict.fromkeys(columns))
    for batch in source.read(columns):
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
