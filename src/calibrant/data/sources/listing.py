"""Files that a URI or a dataset names (`s3://`, `gs://`, `abfss://`, `hdfs://`, `file://`), and folders' keys."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa

from calibrant.data.sources.source import Fragments, Key, Read, Source
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
    types = {n: dataset.schema.field(n).type for own in keys for n in own}
    whole = {n: pa.types.is_integer(t.value_type if pa.types.is_dictionary(t) else t) for n, t in types.items()}
    texts = tuple({n: None if v is None else str(v) for n, v in own.items()} for own in keys)
    return Listing(dataset.filesystem, root, tuple(paths), texts, whole)


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


# ---- columns that stand in the names of folders: site=a/year=2020/part.parquet ----


ABSENT = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")  # a number that no leading zero and no length makes a code

Named = dict[str, str | None]  # a file's keys and what they are there


def keys_in(root: str, paths: Sequence[str]) -> list[Named]:
    """The keys of each file: those of folders below the root, and those right above it."""
    above = PurePosixPath(root)
    while "=" in above.name:
        above = above.parent
    return [_keys(PurePosixPath(p).relative_to(above).parent.parts, p) for p in paths]


def _keys(folders: Sequence[str], path: str) -> Named:
    result: Named = {}
    for folder in folders:
        key, equals, value = folder.partition("=")
        if not (key and equals):
            continue
        name, inputs = plain(key), None if value == ABSENT else plain(value)
        if result.get(name, inputs) != inputs:
            raise BadInput(f"{path!r} lies in two folders of {name!r} that differ: {result[name]!r} and {inputs!r}")
        result[name] = inputs
    return result


def plain(text: str) -> str:
    """What a folder's name stands for, in which %20 is a space; unchanged if it stands for nothing."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def with_keys(
    opened: Sequence[Source], named: Sequence[Named], typed: Mapping[str, bool], files: Sequence[str]
) -> list[Source]:
    """Files with their keys as columns: whole numbers where `typed` says so or all of a key's values are."""
    names = list(dict.fromkeys(name for own in named for name in own))
    values = {n: [v for own in named if (v := own.get(n)) is not None] for n in names}
    whole = {n: typed[n] if n in typed else bool(v) and all(map(WHOLE.fullmatch, v)) for n, v in values.items()}
    out = []
    for one, own, file in zip(opened, named, files, strict=True):
        keys = tuple((n, own[n], whole[n]) for n in own)
        parts = tuple(replace(p, read=keyed(p.read, keys, one.columns, file)) for p in one.parts)
        columns = (*one.columns, *(n for n in own if n not in one.columns))
        kept = one.fragments
        if kept is not None:
            kept = Fragments(kept.filesystem, tuple((*piece[:5], keys) for piece in kept.pieces))
        out.append(replace(one, columns=columns, parts=parts, fragments=kept))
    return out


def keyed(read: Read, keys: Sequence[Key], stored: Sequence[str], file: str) -> Read:
    """A reader of a file's columns and of its keys; a key that the file has as a column must say the same."""
    if not keys:
        return read
    values = {key[0]: key for key in keys}

    def read_all(columns: Sequence[str], real: Sequence[str]) -> Iterator[pa.RecordBatch]:
        own = [c for c in columns if c in stored]
        any_one = [c for c in stored if stored.count(c) == 1][:1]  # tells how many rows there are
        for batch in read(own or any_one, [r for r in real if r in own]):
            made = []
            for c in columns:
                if c in own and c in values:
                    _same(batch.column(c), values[c], file)
                made.append(batch.column(c) if c in own else _repeated(values[c], batch.num_rows))
            yield pa.RecordBatch.from_arrays(made, list(columns))

    return read_all


def _repeated(key: Key, rows: int) -> pa.Array:
    """A key's value for so many rows."""
    _, value, whole = key
    if whole:
        return pa.nulls(rows, pa.int64()) if value is None else pa.repeat(pa.scalar(int(value), pa.int64()), rows)
    index = pa.nulls(rows, pa.int32()) if value is None else pa.repeat(pa.scalar(0, pa.int32()), rows)
    return pa.DictionaryArray.from_arrays(index, pa.array([value or ""], pa.string()))


def _same(column: pa.Array, key: Key, file: str) -> None:
    """Refuse a file whose column says another thing than its folder."""
    name, inputs, _ = key
    for value in column.unique().to_pylist():
        if not _means(value, inputs):
            folder = f"{name}={ABSENT if inputs is None else inputs}"
            raise BadInput(
                f"{file} holds {value!r} in column {name!r} and lies in a folder {folder}: "
                "rename the folder's key, or leave the column out of the file"
            )


def _means(value: object, input_value: str | None) -> bool:
    """Whether a value is what a folder's name says."""
    if value is None or input_value is None:
        return value is None and input_value is None
    if isinstance(value, bool):
        return input_value.lower() == str(value).lower()
    if isinstance(value, (int, float)):
        try:
            return value == (int(input_value) if isinstance(value, int) else float(input_value))
        except ValueError:
            return False
    return str(value) == input_value
