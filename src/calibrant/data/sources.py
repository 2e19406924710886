"""Where rows come from: files, globs, frames, relations, clusters; each as parts that can be read apart."""

from __future__ import annotations

import glob as globbing
import itertools
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from calibrant.data.columns import imported
from calibrant.errors import BadInput

# ---- Files that a URI or a dataset names: `s3://`, `gs://`, `abfss://`, `hdfs://`, `file://`, through ----

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)
MAGIC = re.compile(r"[*\[]")


@dataclass(frozen=True)
class Listing:
    """Files of a data set, sorted, and the directory that their names are relative to."""

    filesystem: Any
    root: str
    paths: tuple[str, ...]


def is_uri(text: str) -> bool:
    """Tell a URI from a path."""
    return URI.match(text) is not None


def is_query(source: Any) -> bool:
    """Tell a query from a path."""
    return isinstance(source, str) and QUERY.match(source) is not None and not Path(source.strip()).exists()


def shown(uri: str) -> str:
    """Return a URI without what may be secret: user, password, options."""
    scheme, between, place = uri.partition("?")[0].partition("://")
    bucket, slash, path = place.partition("/")
    return f"{scheme}{between}{bucket.rpartition('@')[2]}{slash}{path}"


def uri_files(uris: list[str]) -> Listing:
    """List what URIs name: files, directories or globs, on one filesystem."""
    listings = [_listing(uri) for uri in uris]
    first = listings[0].filesystem
    if any(q.filesystem != first for q in listings):
        raise BadInput("the URIs lie on different filesystems: audit them apart, or copy them to one")
    paths = [p for q in listings for p in q.paths]
    if len(set(paths)) < len(paths):
        twice = next(p for p in paths if paths.count(p) > 1)
        raise BadInput(f"{posixpath.basename(twice)} is named twice: its rows would count twice")
    return Listing(first, posixpath.commonpath([q.root for q in listings]), tuple(paths))


def dataset_files(dataset: Any) -> Listing:
    """List the files of a `pyarrow.dataset.FileSystemDataset` of Parquet files."""
    if not hasattr(dataset, "files") or dataset.format.default_extname != "parquet":
        raise BadInput("only a dataset of Parquet files can be read: pass its scanner().to_reader() for another")
    paths = sorted(dataset.files)
    if not paths:
        raise BadInput("the dataset has no files: check its path")
    root = posixpath.commonpath([posixpath.dirname(p) for p in paths])
    return Listing(dataset.filesystem, root, tuple(paths))


def _listing(uri: str) -> Listing:
    """List one URI; what follows a question mark goes to the filesystem."""
    import pyarrow as pa
    from pyarrow import fs

    place, question, options = uri.partition("?")
    pattern = MAGIC.search(place) is not None
    fixed = place[: place.rindex("/", 0, MAGIC.search(place).start()) + 1] if pattern else place  # type: ignore[union-attr]
    try:
        filesystem, root = fs.FileSystem.from_uri(fixed + question + options)
        info = filesystem.get_file_info(root)
        if info.type == fs.FileType.File:
            return Listing(filesystem, posixpath.dirname(root), (root,))
        there = filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    except (pa.ArrowInvalid, OSError, NotImplementedError) as e:
        why = (str(e) or type(e).__name__).splitlines()[0]
        for secret in (uri, fixed + question + options, options, place.partition("://")[2].rpartition("@")[0]):
            why = why.replace(secret, shown(uri) if secret == uri else "...") if secret else why
        raise BadInput(f"cannot read {shown(uri)!r}: {why[:160]}") from None
    root = root.rstrip("/")
    wanted = _matcher(place[len(fixed) :]) if pattern else re.compile(r"(.*/)?[^/._][^/]*")
    paths = sorted(f.path for f in there if f.is_file and wanted.fullmatch(f.path[len(root) :].lstrip("/")))
    if not paths:
        raise BadInput(
            f"no file at {shown(uri)!r}: check the address (a glob such as 's3://bucket/log/*.parquet' works too)"
        )
    return Listing(filesystem, root, tuple(paths))


def _matcher(pattern: str) -> re.Pattern[str]:
    """Return a glob's regular expression: `**` for any directories, `*` and `[...]` within one; none that is hidden."""
    out = ""
    for segment in pattern.split("/"):
        if segment == "**":
            out += r"(?:[^/.][^/]*/)*"
            continue
        text = re.sub(r"\*+", "\0", segment)
        pieces = re.split(r"(\0|\[[^\]]+\])", text)
        made = "".join("[^/]*" if q == "\0" else q if q.startswith("[") else re.escape(q) for q in pieces)
        out += ("" if segment.startswith(".") else r"(?!\.)") + made + "/"
    return re.compile(out.removesuffix("/") if not pattern.endswith("**") else out + r"[^/.][^/]*")


# ---- Where rows come from: files, globs, frames, relations, streams; each as parts that can be read apart ----

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
        "or a dictionary of columns; arrays are calibrant.predictions(y_true, y_prob)"
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


# ---- Which engine a source or a session belongs to, told by the name of its module: nothing is imported to ----

ENGINES = "pass a live SparkSession, a distributed.Client, or a DuckDB connection for a query"
LIVE = {"spark": ("sql", "range", "addTag"), "dask": ("gather", "compute", "cancel")}  # of a session, of a client


def kind_of(thing: Any) -> str:
    """Return "spark", "dask", "duckdb" or "" for what a frame, session, client or connection is of."""
    module = type(thing).__module__.lower()
    known = {"pyspark": "spark", "dask": "dask", "distributed": "dask", "duckdb": "duckdb", "_duckdb": "duckdb"}
    return known.get(module.split(".")[0], "")


def cluster_frame(source: Any, engine: Any) -> Source | None:
    """Return a Spark or Dask DataFrame as a source; None for anything else."""
    kind = kind_of(source)
    if kind not in ("spark", "dask") or not hasattr(source, "columns"):
        return None
    if engine is not None and (kind_of(engine) != kind or not all(hasattr(engine, a) for a in LIVE[kind])):
        raise BadInput(
            f"engine= is a {type(engine).__name__} and the source a {kind.capitalize()} DataFrame: leave it out"
        )
    if kind == "spark":
        from calibrant.data.engines.spark import SparkFrame

        frame = source.to_spark() if type(source).__module__.startswith("pyspark.pandas") else source
        return Source("frame", tuple(frame.columns), (), None, numbered=False, cluster=SparkFrame(frame))
    from calibrant.data.engines.dask import DaskFrame

    columns = tuple(map(str, source.columns))
    return Source("frame", columns, (), None, numbered=False, cluster=DaskFrame(source, engine))


def on_engine(source: Source, engine: Any) -> Source:
    """Return the source, read by the engine's machines if there is an engine."""
    if engine is None:
        return source
    kind = kind_of(engine)
    if not all(hasattr(engine, a) for a in LIVE.get(kind, ("none",))):
        raise BadInput(f"engine is a {type(engine).__name__}: {ENGINES}")
    if source.fragments is None:
        raise BadInput(
            "engine= reads Parquet files only: leave it out to read this here, or pass a frame of the engine"
        )
    from dataclasses import replace

    from calibrant.data.engines.dask import DaskFragments
    from calibrant.data.engines.spark import SparkFragments

    made = SparkFragments if kind == "spark" else DaskFragments
    return replace(source, cluster=made(engine, source.fragments))


def query(text: str, engine: Any) -> Any:
    """Return the relation of a query, on the given DuckDB connection or the default one."""
    if engine is not None and kind_of(engine) != "duckdb":
        raise BadInput("a query is DuckDB's: pass engine= a DuckDB connection, or pass the session's own DataFrame")
    try:
        import duckdb
    except ImportError:
        raise BadInput("a query needs DuckDB: pip install 'calibrant[duckdb]'") from None
    try:
        return (engine or duckdb).sql(text)
    except duckdb.Error as e:
        raise BadInput(f"the query cannot be run: {str(e).splitlines()[0]}") from None


ROWS = 1 << 18  # a batch fills the cache-sized counters of every block many times over

LEAST_SHARES = 64

SHARE = 1 << 24  # rows that one task reads, about

Fragment = tuple[str, str, int, int, int]  # path, part, first row, row group, rows

Share = tuple[Any, list[Fragment]]


@dataclass(frozen=True)
class Fragments:
    """All row groups of a data set.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem
    pieces : tuple of Fragment
    """

    filesystem: Any
    pieces: tuple[Fragment, ...]

    def shares(self) -> list[Share]:
        """Return the row groups, dealt to tasks in runs of about equally many rows."""
        total = sum(p[4] for p in self.pieces)
        size = total / min(len(self.pieces), max(LEAST_SHARES, -(-total // SHARE))) if total else 1.0
        shares: list[list[Fragment]] = []
        before, last = 0, -1
        for piece in self.pieces:
            if (at := int(before // size)) != last:
                shares.append([])
                last = at
            shares[-1].append(piece)
            before += piece[4]
        return [(self.filesystem, share) for share in shares]


def read_fragment(filesystem: Any, piece: Fragment, columns: Sequence[str]) -> Iterator[tuple[str, int, Any]]:
    """Yield a row group's batches with their part and first row."""
    path, name, row, _, _ = piece
    try:
        for batch in read_group(filesystem, piece, columns):
            yield name, row, batch
            row += batch.num_rows
    except FileNotFoundError:
        raise BadInput(f"a worker finds no file {path!r}: give a path that every machine sees, such as s3://") from None


def read_group(filesystem: Any, piece: Fragment, columns: Sequence[str]) -> Iterator[Any]:
    """Yield a row group's batches; texts stay dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, _, _, group, _ = piece
    schema = pq.read_schema(path, filesystem=filesystem)
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    kept = [t for t in texts if t in columns]
    with pq.ParquetFile(path, filesystem=filesystem, read_dictionary=kept) as opened:
        yield from opened.iter_batches(ROWS, row_groups=[group], columns=list(columns), use_threads=False)
