"""Files of one data set: what a path, glob, list or directory names, and the reader of each."""

from __future__ import annotations

import glob as globbing
import itertools
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from calibrant.data.sources.columnar.arrow import arrow
from calibrant.data.sources.columnar.orc import orc
from calibrant.data.sources.columnar.parquet import parquet
from calibrant.data.sources.delimited import Texts
from calibrant.data.sources.file_versions import FileVersions, versions_of
from calibrant.data.sources.formats.excel import excel
from calibrant.data.sources.formats.json_lines import json_rows
from calibrant.data.sources.formats.numpy_files import numpy_arrays
from calibrant.data.sources.hive import keys_in, with_keys
from calibrant.data.sources.kinds import (
    ARROW,
    EXCEL,
    JSON,
    NUMPY,
    ORC,
    PARQUET,
    TEXT,
    kind_of,
    one_kind,
    other_format,
)
from calibrant.data.sources.parallel_map import parallel_map
from calibrant.data.sources.query import HOW, QUERY
from calibrant.data.sources.remote import Listing, hidden, is_uri, plain_files, shown, uri_files
from calibrant.data.sources.source import DETECTED, Form, Fragments, Source, shared
from calibrant.errors import BadInput
from calibrant.plugins import FORMATS

OPENERS = 16  # remote files opened at once, each only to read where its row groups are
COLUMNAR = {PARQUET: parquet, ARROW: arrow, ORC: orc}
OTHERS = {JSON: json_rows, EXCEL: excel, NUMPY: numpy_arrays}


def files_of(inputs: list[str], form: Form = DETECTED, wanted: Sequence[str] = ()) -> Source:
    """The files that paths, globs, directories or URIs name."""
    remote = [is_uri(g) for g in inputs]
    if any(remote):
        if not all(remote):
            raise BadInput("paths and URIs are mixed: give all of them as URIs (file:///... for a path)")
        return listed(uri_files(inputs), _title([shown(g) for g in inputs]), form, wanted)
    return listed(_local_files([_expand(g) for g in inputs]), _title(inputs), form, wanted)


def _title(inputs: Sequence[str]) -> str:
    """Return what a data set is called by what names its files: all of them where they are two."""
    more = inputs[1] if len(inputs) == 2 else f"{len(inputs) - 1} more"
    return inputs[0] if len(inputs) == 1 else f"{inputs[0]} and {more}"


def listed(result: Listing, value: str, form: Form = DETECTED, wanted: Sequence[str] = ()) -> Source:
    """The files of one data set as one source; of text only the columns wanted are looked at, or all."""
    # 1. what the files are, before any is opened: one that changes from here on is refused
    kept = versions_of(result.filesystem, result.root, result.paths)
    files = [PurePosixPath(p).name for p in result.paths]
    alone = len(files) == 1
    names = ["" if alone else p[len(result.root) :].lstrip("/") for p in result.paths]
    files = files if len(set(files)) == len(files) else names
    keys = result.keys or keys_in(result.root, result.paths)
    # 2. each file, read under the name that tells its rows from those of others
    sources = _opened(result, files, names, form, wanted)

    def as_text(columns: Collection[str]) -> Source:
        # 3. columns that stand in the names of folders, and a look at each file whenever it is read
        opened = with_keys(sources(columns), keys, {**result.typed, **dict.fromkeys(columns, False)}, files)
        opened = [_guarded(one, kept, i) for i, one in enumerate(opened)]
        return replace(_together(opened, files, value), check=kept.check, as_text=as_text)

    return as_text(())


def _opened(
    result: Listing, files: list[str], names: list[str], form: Form, wanted: Sequence[str]
) -> Callable[[Collection[str]], list[Source]]:
    """Return what gives the files one by one; files of text with some columns as text, whatever is in them."""
    local = result.filesystem.type_name == "local"
    most = 1 if local else OPENERS
    kind = one_kind(parallel_map(lambda p: kind_of(p, result.filesystem), result.paths, most), files)
    if kind in COLUMNAR:
        each = list(zip(result.paths, names, strict=True))
        opened = parallel_map(lambda one: COLUMNAR[kind](*one, result.filesystem), each, most)
        return lambda _: opened
    if not local:
        what = "text" if kind == TEXT else kind
        raise BadInput(f"{files[0]} is {what}: only Parquet, Arrow IPC and ORC are read from afar; copy it here")
    paths = [Path(p) for p in result.paths]
    if kind in OTHERS:
        others = [OTHERS[kind](p, n, form) for p, n in zip(paths, names, strict=True)]
        return lambda _: others
    if kind != TEXT:
        plugged, other = other_format(kind)
        with FORMATS.calling(plugged):
            opened = [other.open(p, n, form) for p, n in zip(paths, names, strict=True)]
        return lambda _: opened
    return Texts(paths, names, form, wanted).sources


def _guarded(one: Source, values: FileVersions, i: int) -> Source:
    return replace(one, parts=tuple(values.guarded(i, part) for part in one.parts))


def _expand(pattern: str) -> tuple[Path, list[Path]]:
    """A root that does not depend on which files it holds, and the files, sorted."""
    if not pattern.strip() or "\0" in pattern:
        raise BadInput(f"{pattern!r} names no file: pass a path, a glob or a directory")
    path = Path(pattern)
    if path.is_dir():
        below = {p.relative_to(path).as_posix(): p for p in sorted(path.rglob("*")) if p.is_file()}
        plain_files(below, pattern)
        root, result = path, [p for name, p in below.items() if not hidden(name)]
    elif path.exists():
        if not path.is_file():
            raise BadInput(
                f"{pattern!r} is no file but a pipe or device, which can be read only once: save it as a file"
            )
        root, result = path.parent, [path]
    else:
        fixed = itertools.takewhile(lambda part: not globbing.has_magic(part), path.parts[:-1])
        root, result = (
            Path(*fixed),
            sorted(Path(p) for p in globbing.glob(pattern, recursive=True) if Path(p).is_file()),
        )
    if not result:
        fix = HOW if QUERY.match(pattern) else "check the path (a glob such as 'log/*.parquet' works too)"
        raise BadInput(f"no file at {pattern!r}: {fix}")
    root, result = root.resolve(), [p.resolve() for p in result]
    if unnamed := [p for p in (root, *result) if not _utf8(str(p))]:  # Arrow opens no such file
        raise BadInput(f"the name of {str(unnamed[0])!r} is not UTF-8: rename the file, or its folder")
    return root, result


def _utf8(name: str) -> bool:
    """Whether a name has no bytes that Python can only pass on."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _local_files(expanded: list[tuple[Path, list[Path]]]) -> Listing:
    from pyarrow.fs import LocalFileSystem

    paths = [p for _, result in expanded for p in result]
    twice = sorted({p.name for p in paths if paths.count(p) > 1}) if len(set(paths)) < len(paths) else []
    if twice:
        raise BadInput(f"{twice[0]} is named twice: its rows would count twice")
    root = Path(os.path.commonpath([r for r, _ in expanded]))
    return Listing(LocalFileSystem(), root.as_posix(), tuple(p.as_posix() for p in paths))


def _together(opened: list[Source], files: list[str], value: str) -> Source:
    """The files of one data set as one source."""
    columns, log = shared(opened)
    for file, one in zip(files, opened, strict=True):
        missing = sorted(set(columns) - set(one.columns))
        if missing:
            raise BadInput(
                f"{file} lacks column {missing[0]!r} that {files[0]} has: files of one data set share columns"
            )
    rows = [s.rows for s in opened]
    total = None if any(r is None for r in rows) else sum(r for r in rows if r is not None)
    name = (files[0].split(".")[0] if len(files) == 1 else value) or value
    parts = tuple(q for s in opened for q in s.parts)
    kept = [s.fragments for s in opened if s.fragments is not None]
    pieces = tuple(piece for f in kept for piece in f.pieces)
    fragments = Fragments(kept[0].filesystem, pieces) if len(kept) == len(opened) else None
    partial = tuple(sorted({c for s in opened for c in s.columns} - set(columns)))
    first = Source(name, columns, parts, total, files=tuple(files), fragments=fragments, partial=partial)
    kinds = {c: kind for s in opened for c, kind in s.kinds.items()}
    unread = tuple(dict.fromkeys(u for s in opened for u in s.unread))
    return replace(first, kinds=kinds, form=opened[0].form, unread=unread, log=log)
