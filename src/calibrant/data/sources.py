"""Where rows come from: files, globs, frames, relations, streams; each as parts that can be read apart."""

from __future__ import annotations

import glob as globbing
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from calibrant.data.columns import imported
from calibrant.data.filesystems import Listing, dataset_files, is_query, is_uri, shown, uri_files
from calibrant.data.fragments import ROWS, Fragment, Fragments, read_group
from calibrant.errors import BadInput

CSV_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".tsv", ".tsv.gz", ".txt")


@dataclass(frozen=True)
class Part:
    """A run of rows that one thread reads.

    Parameters
    ----------
    name : str
        File relative to the data set's root; empty for a single file or a frame.
    first_row : int
        Number of the first row within that file.
    read : callable
        Columns, and those of them to read as real numbers where types are guessed, to batches.
    """

    name: str
    first_row: int
    read: Callable[[Sequence[str], Sequence[str]], Iterator[Any]]


class Cluster(Protocol):
    """Rows that lie elsewhere, and machines that sum them up."""

    def run(self, task: Any) -> tuple[list[bytes], int | None]:
        """Do a `task.Task`; return messages that together cover every part once (see `work`), and how many parts if known."""


@dataclass(frozen=True)
class Source:
    """Columns, and parts that are read here or a cluster that reads them there.

    Parameters
    ----------
    name : str
    columns : tuple of str
    parts : tuple of Part
    rows : int or None
    again : bool
        The rows can be read more than once.
    files : tuple of str
    numbered : bool
        A row has a file and a number, so that it is known without a key.
    cluster : Cluster or None
    fragments : Fragments or None
        The same rows as row groups of Parquet files, if that is what they are.
    partial : tuple of str
        Columns that only some of the files have: they are not read.
    """

    name: str
    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    rows: int | None
    again: bool = True
    files: tuple[str, ...] = ()
    numbered: bool = True
    cluster: Cluster | None = None
    fragments: Fragments | None = None
    partial: tuple[str, ...] = ()


def open_source(source: Any, wanted: Sequence[Any] = (), engine: Any = None) -> Source:
    """Return the source behind a path, a URI, a glob, a list of paths, a directory, a query, or any kind of frame.

    `wanted` are the columns that will be read: a frame with unreadable others is cut down to them. `engine` is a live
    session or client that reads the files, or a DuckDB connection for a query.
    """
    from calibrant.data.clusters import cluster_frame, on_engine, query

    framed = cluster_frame(source, engine)
    if framed is not None:
        return framed
    if is_query(source):
        return _relation(query(str(source), engine))
    if isinstance(source, (str, Path)):
        return on_engine(_files_of([str(source)]), engine)
    if isinstance(source, (list, tuple)) and source and all(isinstance(s, (str, Path)) for s in source):
        return on_engine(_files_of([str(s) for s in source]), engine)
    if type(source).__module__ == "pyarrow._dataset":
        return on_engine(_remote(dataset_files(source), "data"), engine)
    return on_engine(_frame(source, [w for w in wanted if w]), engine)


def _files_of(given: list[str]) -> Source:
    remote = [is_uri(g) for g in given]
    if any(remote):
        if not all(remote):
            raise BadInput("paths and URIs are mixed: give all of them as URIs (file:///... for a path)")
        return _remote(uri_files(given), shown(given[0]))
    return _files([_expand(g) for g in given], given[0])


def _remote(found: Listing, given: str) -> Source:
    alone = len(found.paths) == 1
    names = ["" if alone else p[len(found.root) :].lstrip("/") for p in found.paths]
    with ThreadPoolExecutor(16) as pool:  # each opens a file only to read where its row groups are
        opened = list(pool.map(lambda p, name: _parquet(p, name, found.filesystem), found.paths, names))
    return _together(opened, [PurePosixPath(p).name for p in found.paths], given)


def _expand(pattern: str) -> tuple[Path, list[Path]]:
    """Return a root that does not depend on which files it holds, and the files, sorted."""
    path = Path(pattern)
    if path.is_dir():
        root, found = path, sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))
    elif path.exists():
        root, found = path.parent, [path]
    else:
        fixed = itertools.takewhile(lambda part: not globbing.has_magic(part), path.parts[:-1])
        root, found = Path(*fixed), sorted(Path(p) for p in globbing.glob(pattern, recursive=True) if Path(p).is_file())
    if not found:
        raise BadInput(f"no file at {pattern!r}: check the path (a glob such as 'log/*.parquet' works too)")
    return root.resolve(), [p.resolve() for p in found]


def _files(expanded: list[tuple[Path, list[Path]]], given: str) -> Source:
    paths = [p for _, found in expanded for p in found]
    twice = sorted({p.name for p in paths if paths.count(p) > 1}) if len(set(paths)) < len(paths) else []
    if twice:
        raise BadInput(f"{twice[0]} is named twice: its rows would count twice")
    root = Path(os.path.commonpath([r for r, _ in expanded]))
    alone = len(paths) == 1
    opened = [_one_file(p, "" if alone else p.relative_to(root).as_posix()) for p in paths]
    return _together(opened, [p.name for p in paths], given)


def _together(opened: list[Source], files: list[str], given: str) -> Source:
    """Return the files of one data set as one source."""
    columns = opened[0].columns
    for file, one in zip(files, opened, strict=True):
        missing = sorted(set(columns) - set(one.columns))
        if missing:
            raise BadInput(
                f"{file} lacks column {missing[0]!r} that {files[0]} has: files of one data set share columns"
            )
    rows = [s.rows for s in opened]
    total = None if any(r is None for r in rows) else sum(r for r in rows if r is not None)
    name = (files[0].split(".")[0] if len(files) == 1 else given) or given
    parts = tuple(q for s in opened for q in s.parts)
    held = [s.fragments for s in opened if s.fragments is not None]
    pieces = tuple(piece for f in held for piece in f.pieces)
    fragments = Fragments(held[0].filesystem, pieces) if len(held) == len(opened) else None
    partial = tuple(sorted({c for s in opened for c in s.columns} - set(columns)))
    return Source(name, columns, parts, total, files=tuple(files), fragments=fragments, partial=partial)


def _one_file(path: Path, name: str) -> Source:
    if path.stat().st_size == 0:
        raise BadInput(f"{path.name} is empty (0 bytes)")
    if path.name.lower().endswith(CSV_ENDINGS):
        return _csv(path, name)
    if path.suffix.lower() in (".arrow", ".feather", ".ipc"):
        return _ipc(path)
    from pyarrow.fs import LocalFileSystem

    return _parquet(str(path), name, LocalFileSystem())


def _parquet(path: str, name: str, filesystem: Any) -> Source:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            schema, meta = file.schema_arrow, file.metadata
    except (pa.ArrowInvalid, OSError) as e:
        what = "Parquet, CSV or Arrow IPC" if filesystem.type_name == "local" else "Parquet"
        raise BadInput(f"{PurePosixPath(path).name} is not {what} ({str(e).splitlines()[0][:80]})") from None

    def reader(piece: Fragment) -> Callable[[Sequence[str], Sequence[str]], Iterator[Any]]:
        return lambda columns, _: read_group(filesystem, piece, columns)

    parts, pieces, start = [], [], 0
    for g in range(meta.num_row_groups):
        piece = (path, name, start, g, meta.row_group(g).num_rows)
        parts.append(Part(name, start, reader(piece)))
        pieces.append(piece)
        start += piece[4]
    return Source(name, tuple(schema.names), tuple(parts), start, fragments=Fragments(filesystem, tuple(pieces)))


def _csv(path: Path, name: str) -> Source:
    import pyarrow as pa
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=_delimiter(path))

    def opened(columns: Sequence[str] | None = None, types: dict[str, Any] | None = None) -> Any:
        options = csv.ConvertOptions(include_columns=list(columns) if columns else None, column_types=types or {})
        return csv.open_csv(path, csv.ReadOptions(block_size=1 << 24), parse, options)

    def read(columns: Sequence[str], real: Sequence[str]) -> Iterator[Any]:
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


def _ipc(path: Path) -> Source:
    import pyarrow as pa
    from pyarrow import feather

    try:
        return _table(feather.read_table(path, memory_map=True))
    except (pa.ArrowInvalid, OSError) as e:
        raise BadInput(f"{path.name} cannot be read as Arrow IPC: {str(e).splitlines()[0]}") from None


def _table(table: Any) -> Source:
    def reader(start: int, length: int) -> Callable[[Sequence[str], Sequence[str]], Iterator[Any]]:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[Any]:
            yield from table.select(list(columns)).slice(start, length).to_batches(max_chunksize=ROWS)

        return read

    step = 4 * ROWS
    parts = [Part("", s, reader(s, step)) for s in range(0, max(table.num_rows, 1), step)]
    return Source("data", tuple(table.schema.names), tuple(parts), table.num_rows)


def _frame(source: Any, wanted: list[Any]) -> Source:
    import pyarrow as pa

    kind = f"{type(source).__module__}.{type(source).__qualname__}"
    if isinstance(source, pa.Table):
        return _table(source)
    if isinstance(source, pa.RecordBatch):
        return _table(pa.Table.from_batches([source]))
    if isinstance(source, dict):
        try:
            return _table(pa.table(source))
        except (pa.ArrowInvalid, TypeError, AttributeError) as e:
            raise BadInput(f"a dictionary of columns needs arrays of equal length: {str(e).splitlines()[0]}") from None
    if kind.startswith("polars.") and type(source).__name__ == "LazyFrame":
        source = source.collect()
    if "duckdb" in kind.lower() and hasattr(source, "to_arrow_reader"):
        return _relation(source)
    if isinstance(source, pa.RecordBatchReader):
        return _stream(source)
    if hasattr(source, "__arrow_c_stream__"):
        return _table(_imported(source, wanted))
    raise BadInput(
        f"cannot read a {type(source).__name__}: pass a path, a glob, a pandas, Polars or Arrow table, a DuckDB relation, "
        "or a dictionary of columns"
    )


def _imported(source: Any, wanted: list[Any]) -> Any:
    """Return a frame as an Arrow table; if a column cannot be, only the wanted columns."""
    import pyarrow as pa

    try:
        return imported(source)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kept = [w for w in wanted if w in list(source.columns)]
        try:
            return imported(source[kept])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
            raise BadInput(f"a column mixes types ({str(e).splitlines()[0]}): make it text or numbers") from None


def _relation(relation: Any) -> Source:
    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[Any]:
        quoted = ", ".join('"' + c.replace('"', '""') + '"' for c in columns)
        yield from relation.project(quoted).to_arrow_reader(ROWS)

    return Source("query", tuple(relation.columns), (Part("", 0, read),), None)


def _stream(reader: Any) -> Source:
    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[Any]:
        for batch in reader:
            yield batch.select(list(columns))

    return Source("stream", tuple(reader.schema.names), (Part("", 0, read),), None, again=False)
