"""Where rows come from: files, globs, frames, relations; each as parts that can be read apart."""

from __future__ import annotations

import glob as globbing
import itertools
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol, cast

import pyarrow as pa

from calibrant.data.columns import table_of
from calibrant.errors import BadInput

Read = Callable[[Sequence[str], Sequence[str]], Iterator[pa.RecordBatch]]
OnRows = Callable[[int], None]  # told how many more rows were read

ROWS = 1 << 18  # of a batch: it fills the cache-sized counters of every block many times over
CSV_BLOCK = 1 << 24  # bytes: types are guessed from the first block
OPENERS = 16  # remote files opened at once, each only to read where its row groups are
CSV_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".tsv", ".tsv.gz", ".txt")
IPC_ENDINGS = (".arrow", ".feather", ".ipc")
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)
MAGIC = re.compile(r"[*\[]")


# ---- what a source is ----


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
    read: Read


class Cluster(Protocol):
    """Rows that lie elsewhere, and machines that sum them up."""

    def run(self, task: bytes, columns: Sequence[str]) -> tuple[list[bytes], int | None]:
        """Do a task (see `engines.work`) on these columns of every row.

        Return messages that together cover every part once, and how many parts there are, if known.
        """


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


def open_source(source: object, wanted: Sequence[str] = (), connection: Connection | None = None) -> Source:
    """Return the source behind a path, a URI, a glob, a list of paths, a directory, a query, or any kind of frame.

    `wanted` are the columns that will be read: a frame with unreadable others is cut down to them. A DuckDB
    `connection` runs a query; by default DuckDB's own does.
    """
    if isinstance(source, str) and is_query(source):
        return _relation(query(source, connection))
    if isinstance(source, (str, Path)):
        return _files_of([str(source)])
    if isinstance(source, (list, tuple)) and source and all(isinstance(s, (str, Path)) for s in source):
        return _files_of([str(s) for s in source])
    if hasattr(source, "get_fragments"):  # of pyarrow.dataset, which need not be loaded
        return _remote(dataset_files(source), "data")
    return _frame(source, [w for w in wanted if w])


# ---- files ----


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
    with ThreadPoolExecutor(OPENERS) as pool:
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
    if path.name.lower().endswith(IPC_ENDINGS):
        return _ipc(path)
    from pyarrow.fs import LocalFileSystem

    return _parquet(str(path), name, LocalFileSystem())


def _parquet(path: str, name: str, filesystem: pa.fs.FileSystem) -> Source:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            schema, meta = file.schema_arrow, file.metadata
    except (pa.ArrowInvalid, OSError) as e:
        what = "Parquet, CSV or Arrow IPC" if filesystem.type_name == "local" else "Parquet"
        raise BadInput(f"{PurePosixPath(path).name} is not {what} ({str(e).splitlines()[0][:80]})") from None

    def reader(piece: Fragment) -> Read:
        return lambda columns, _: read_group(filesystem, piece, columns)

    parts, pieces, start = [], [], 0
    for g in range(meta.num_row_groups):
        piece = (path, name, start, g, meta.row_group(g).num_rows)
        parts.append(Part(name, start, reader(piece)))
        pieces.append(piece)
        start += piece[4]
    return Source(name, tuple(schema.names), tuple(parts), start, fragments=Fragments(filesystem, tuple(pieces)))


def _csv(path: Path, name: str) -> Source:
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=_delimiter(path))

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


def _ipc(path: Path) -> Source:
    from pyarrow import feather

    try:
        return _table(feather.read_table(path, memory_map=True))
    except (pa.ArrowInvalid, OSError) as e:
        raise BadInput(f"{path.name} cannot be read as Arrow IPC: {str(e).splitlines()[0]}") from None


# ---- row groups of Parquet files, as plain data that another machine can read them by ----

LEAST_SHARES = 64  # so that a cluster of that many cores has work for each
SHARE = 1 << 24  # rows that one task reads, about: seconds of work

Fragment = tuple[str, str, int, int, int]  # path, part, first row, row group, rows
Share = tuple["pa.fs.FileSystem", list[Fragment]]


@dataclass(frozen=True)
class Fragments:
    """All row groups of a data set.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem
    pieces : tuple of Fragment
    """

    filesystem: pa.fs.FileSystem
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


def read_fragment(
    filesystem: pa.fs.FileSystem, piece: Fragment, columns: Sequence[str]
) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield a row group's batches with their part and first row."""
    path, name, row, _, _ = piece
    try:
        for batch in read_group(filesystem, piece, columns):
            yield name, row, batch
            row += batch.num_rows
    except FileNotFoundError:
        raise BadInput(f"a worker finds no file {path!r}: give a path that every machine sees, such as s3://") from None


def read_group(filesystem: pa.fs.FileSystem, piece: Fragment, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield a row group's batches; texts stay dictionaries."""
    import pyarrow.parquet as pq

    path, _, _, group, _ = piece
    schema = pq.read_schema(path, filesystem=filesystem)
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    kept = [t for t in texts if t in columns]
    with pq.ParquetFile(path, filesystem=filesystem, read_dictionary=kept) as opened:
        yield from opened.iter_batches(ROWS, row_groups=[group], columns=list(columns), use_threads=False)


# ---- files that a URI or a dataset names: `s3://`, `gs://`, `abfss://`, `hdfs://`, `file://` ----


@dataclass(frozen=True)
class Listing:
    """Files of a data set, sorted, and the directory that their names are relative to."""

    filesystem: pa.fs.FileSystem
    root: str
    paths: tuple[str, ...]


def is_uri(text: str) -> bool:
    """Tell a URI from a path."""
    return URI.match(text) is not None


def is_query(text: str) -> bool:
    """Tell a query from a path."""
    return QUERY.match(text) is not None and not Path(text.strip()).exists()


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


def dataset_files(dataset: pa.dataset.Dataset) -> Listing:
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
    from pyarrow import fs

    place, question, options = uri.partition("?")
    pattern = MAGIC.search(place)
    fixed = place if pattern is None else place[: place.rindex("/", 0, pattern.start()) + 1]
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


# ---- frames and streams ----


def _frame(source: object, wanted: Sequence[str]) -> Source:
    """Return what is in memory, or can be read there: by the Arrow stream protocol, whatever library it is of."""
    if isinstance(source, Mapping):
        try:
            return _table(pa.table(dict(source)))
        except (pa.ArrowInvalid, TypeError, AttributeError) as e:
            raise BadInput(f"a dictionary of columns needs arrays of equal length: {str(e).splitlines()[0]}") from None
    if hasattr(source, "to_arrow_reader") and hasattr(source, "project"):
        return _relation(cast(Relation, source))
    if isinstance(source, pa.RecordBatchReader):
        return _stream(source)
    collect = getattr(source, "collect", None)
    if callable(collect) and not hasattr(source, "__arrow_c_stream__"):  # a lazy frame
        source = collect()
    if not hasattr(source, "__arrow_c_stream__"):
        raise BadInput(
            f"cannot read a {type(source).__name__}: pass a path, a glob, a pandas, Polars or Arrow table, a DuckDB "
            "relation, or a dictionary of columns; arrays are calibrant.predictions(y_true, y_prob)"
        )
    try:
        return _table(table_of(source))
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # a column that pandas may hold and Arrow does not
        kept = [w for w in wanted if w in list(getattr(source, "columns", ()))]
        try:
            return _table(table_of(source[kept]))  # type: ignore[index]
        except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
            raise BadInput(f"a column mixes types ({str(e).splitlines()[0]}): make it text or numbers") from None


def _table(table: pa.Table) -> Source:
    def reader(start: int, length: int) -> Read:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            yield from table.select(list(columns)).slice(start, length).to_batches(max_chunksize=ROWS)

        return read

    step = 4 * ROWS
    parts = [Part("", s, reader(s, step)) for s in range(0, max(table.num_rows, 1), step)]
    return Source("data", tuple(table.schema.names), tuple(parts), table.num_rows)


class Relation(Protocol):
    """A query of DuckDB that has not run yet, and need not fit in memory."""

    columns: Sequence[str]

    def project(self, columns: str) -> Relation:
        """Return the relation of some columns."""

    def to_arrow_reader(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Run the query."""


def _relation(relation: Relation) -> Source:
    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        quoted = ", ".join('"' + c.replace('"', '""') + '"' for c in columns)
        yield from relation.project(quoted).to_arrow_reader(ROWS)

    return Source("query", tuple(relation.columns), (Part("", 0, read),), None)


class Connection(Protocol):
    """A connection of DuckDB."""

    def sql(self, text: str) -> Relation:
        """Return the relation of a query."""


def query(text: str, connection: Connection | None = None) -> Relation:
    """Return the relation of a query, on a DuckDB connection or the default one."""
    try:
        import duckdb
    except ImportError:
        raise BadInput("a query needs DuckDB: pip install 'calibrant[duckdb]'") from None
    try:
        found: Relation = (connection or duckdb).sql(text)
    except duckdb.Error as e:
        raise BadInput(f"the query cannot be run: {str(e).splitlines()[0]}") from None
    return found


def _stream(reader: pa.RecordBatchReader) -> Source:
    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch.select(list(columns))

    return Source("stream", tuple(reader.schema.names), (Part("", 0, read),), None, again=False)
