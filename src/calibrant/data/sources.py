"""Where rows come from: files, globs, frames, relations, streams; each as parts that can be read apart."""

from __future__ import annotations

import glob as globbing
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.errors import BadInput

ROWS = 1 << 18  # a batch fills the cache-sized counters of every block many times over
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


@dataclass(frozen=True)
class Source:
    """Column names and parts; `again` says whether the parts can be read more than once."""

    name: str
    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    rows: int | None
    again: bool = True
    files: tuple[str, ...] = ()


def open_source(source: Any, wanted: Sequence[Any] = ()) -> Source:
    """Return the source behind a path, a glob, a list of paths, a directory, or any kind of frame.

    `wanted` are the columns that will be read: a frame with unreadable others is cut down to them.
    """
    if isinstance(source, (str, Path)):
        return _files([_expand(str(source))], str(source))
    if isinstance(source, (list, tuple)) and source and all(isinstance(s, (str, Path)) for s in source):
        return _files([_expand(str(s)) for s in source], str(source[0]))
    return _frame(source, [w for w in wanted if w])


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
    columns = opened[0].columns
    for path, one in zip(paths, opened, strict=True):
        missing = sorted(set(columns) - set(one.columns))
        if missing:
            raise BadInput(
                f"{path.name} lacks column {missing[0]!r} that {paths[0].name} has: files of one data set share columns"
            )
    rows = [s.rows for s in opened]
    total = None if any(r is None for r in rows) else sum(r for r in rows if r is not None)
    name = (paths[0].name.split(".")[0] if alone else given) or given
    parts = tuple(q for s in opened for q in s.parts)
    return Source(name, columns, parts, total, files=tuple(p.name for p in paths))


def _one_file(path: Path, name: str) -> Source:
    if path.stat().st_size == 0:
        raise BadInput(f"{path.name} is empty (0 bytes)")
    if path.name.lower().endswith(CSV_ENDINGS):
        return _csv(path, name)
    if path.suffix.lower() in (".arrow", ".feather", ".ipc"):
        return _ipc(path)
    return _parquet(path, name)


def _parquet(path: Path, name: str) -> Source:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as e:
        raise BadInput(f"{path.name} is not Parquet, CSV or Arrow IPC ({str(e).splitlines()[0][:80]})") from None
    schema = file.schema_arrow
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    meta = file.metadata

    def reader(group: int) -> Callable[[Sequence[str], Sequence[str]], Iterator[Any]]:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[Any]:
            with pq.ParquetFile(path, read_dictionary=[t for t in texts if t in columns]) as opened:
                yield from opened.iter_batches(ROWS, row_groups=[group], columns=list(columns), use_threads=False)

        return read

    parts, start = [], 0
    for g in range(meta.num_row_groups):
        parts.append(Part(name, start, reader(g)))
        start += meta.row_group(g).num_rows
    return Source(name, tuple(schema.names), tuple(parts), start)


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
        return pa.RecordBatchReader.from_stream(source).read_all()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kept = [w for w in wanted if w in list(source.columns)]
        try:
            return pa.RecordBatchReader.from_stream(source[kept]).read_all()
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
