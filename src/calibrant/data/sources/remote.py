"""Files that a URI or a dataset names: `s3://`, `gs://`, `abfss://`, `hdfs://`, `file://`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from calibrant.errors import BadInput

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
MAGIC = re.compile(r"[*\[]")
TABLES = {  # whose files are not their rows, and what they are known by
    "Delta Lake": re.compile(r"^_delta_log/"),
    "Iceberg": re.compile(r"^metadata/[^/]*\.metadata\.json$"),
    "Hudi": re.compile(r"^\.hoodie/"),
}
COLUMNAR = ("parquet", "arrow", "ipc", "feather", "orc")  # formats of datasets


@dataclass(frozen=True)
class Listing:
    """Files of a data set, sorted, and the directory that their names are relative to."""

    filesystem: pa.fs.FileSystem
    root: str
    paths: tuple[str, ...]
    # Columns that are not in the files and their value for each; by default the names of folders tell.
    keys: tuple[dict[str, str | None], ...] = ()
    # Keys whose values are known to be whole numbers, or to be none.
    typed: Mapping[str, bool] = field(default_factory=dict)


def is_uri(text: str) -> bool:
    """Tell a URI from a path."""
    return URI.match(text) is not None


def shown(uri: str) -> str:
    """A URI without what may be secret: user, password, options."""
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
    """List the files of a `pyarrow.dataset.FileSystemDataset` of Parquet, Arrow IPC or ORC, and its partitions."""
    import pyarrow.dataset as ds

    if not hasattr(dataset, "files") or dataset.format.default_extname not in COLUMNAR:
        raise BadInput("only a dataset of Parquet files can be read: pass its scanner().to_reader() for another")
    if getattr(dataset, "_scan_options", {}):  # what `filter` leaves there
        raise BadInput("a filter of the dataset would be ignored: pass dataset.scanner().to_reader()")
    fragments = sorted(dataset.get_fragments(), key=lambda f: f.path)
    if not fragments:
        raise BadInput("the dataset has no files: check its path")
    paths = [f.path for f in fragments]
    root = posixpath.commonpath([posixpath.dirname(p) for p in paths])
    keys = [ds.get_partition_keys(f.partition_expression) for f in fragments]
    whole = {n: pa.types.is_integer(_value(dataset.schema.field(n).type)) for own in keys for n in own}
    texts = tuple({n: None if v is None else str(v) for n, v in own.items()} for own in keys)
    return Listing(dataset.filesystem, root, tuple(paths), texts, whole)


def _value(t: pa.DataType) -> pa.DataType:
    return t.value_type if pa.types.is_dictionary(t) else t


def hidden(name: str) -> bool:
    """Whether a file below a directory is none of its data, as Spark and Arrow see it."""
    return any(p.startswith(".") or (p.startswith("_") and "=" not in p) for p in name.split("/"))


def plain_files(names: Iterable[str], value: str) -> None:
    """Refuse a directory of a table format: its files also hold rows that were deleted or written again."""
    for name in names:
        for kind, sign in TABLES.items():
            if sign.search(name):
                raise BadInput(
                    f"{value!r} is a table of {kind}, whose files also hold rows that were deleted: "
                    "read it with Spark, Polars or DuckDB and pass the frame"
                )


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
    names = {f.path[len(root) :].lstrip("/"): f.path for f in there if f.is_file}
    if pattern is None:
        plain_files(names, shown(uri))
        paths = sorted(path for name, path in names.items() if not hidden(name))
    else:
        wanted = _matcher(place[len(fixed) :])
        paths = sorted(path for name, path in names.items() if wanted.fullmatch(name))
    if not paths:
        raise BadInput(
            f"no file at {shown(uri)!r}: check the address (a glob such as 's3://bucket/log/*.parquet' works too)"
        )
    return Listing(filesystem, root, tuple(paths))


def _matcher(pattern: str) -> re.Pattern[str]:
    """A glob's regular expression: `**` for any directories, `*` and `[...]` within one; none that is hidden."""
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
