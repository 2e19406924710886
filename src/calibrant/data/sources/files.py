"""Files of one data set: what a path, glob, list or directory names, and the reader of each."""

from __future__ import annotations

import glob as globbing
import itertools
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pyarrow as pa

from calibrant.data.sources.columnar import arrow, orc, parquet
from calibrant.data.sources.delimited import Texts
from calibrant.data.sources.formats import excel, json_rows, numpy_arrays
from calibrant.data.sources.frames import frame
from calibrant.data.sources.kinds import ARROW, EXCEL, JSON, NUMPY, ORC, PARQUET, TEXT, kind_of, one_kind, other_format
from calibrant.data.sources.listing import (
    Listing,
    dataset_files,
    hidden,
    is_uri,
    keys_in,
    plain_files,
    shown,
    uri_files,
    with_keys,
)
from calibrant.data.sources.query import HOW, QUERY, Query, relation
from calibrant.data.sources.source import DETECTED, Form, Fragments, Part, Read, Source, parallel_map, row_of, shared
from calibrant.data.sources.standard_input import STDIN, spooled
from calibrant.errors import BadInput
from calibrant.plugins import FORMATS

# ---- files as they were when they were opened: one that changes meanwhile would mix two files in one answer ----

# Device, inode, size, time; of a file afar size and time; None if it is not there.
FileVersion = tuple[object, ...] | None
UNKNOWN: FileVersion = ("unknown",)  # a store that does not say: what was read is not held against it

CHANGED = "{} changed while it was read: {}; nothing was counted, so run it again when it is complete"
FEW = 32  # remote files that are asked for one by one; more are listed again
ASKERS = 16  # requests at once


@dataclass(frozen=True)
class FileVersions:
    """The files of a data set and what each was."""

    filesystem: pa.fs.FileSystem
    root: str
    paths: tuple[str, ...]
    were: tuple[FileVersion, ...]

    def check(self) -> None:
        """Refuse if a file is not what it was."""
        for path, was, now in zip(
            self.paths, self.were, file_versions(self.filesystem, self.root, self.paths), strict=True
        ):
            self._unchanged(path, was, now)

    def guarded(self, i: int, part: Part) -> Part:
        """A part of a file that is looked at before and after the part is read, or where it cannot be read."""
        read, path, was = part.read, self.paths[i], self.were[i]
        local = self.filesystem.type_name == "local"

        def check() -> None:
            self._unchanged(path, was, file_versions(self.filesystem, self.root, [path])[0])

        def checking(columns: Sequence[str], real: Sequence[str]) -> Iterator[pa.RecordBatch]:
            if local:
                check()
            try:
                yield from read(columns, real)
            except Exception:
                check()
                raise
            if local:
                check()

        guarded: Read = checking
        return replace(part, read=guarded)

    def _unchanged(self, path: str, was: FileVersion, now: FileVersion) -> None:
        if was in (now, None, UNKNOWN) or now == UNKNOWN:
            return
        file = path[len(self.root) :].lstrip("/")
        if now is None:
            raise BadInput(CHANGED.format(file, "it is gone"))
        why = "it was written to" if was and was[:-2] == now[:-2] else "another file took its place"
        raise BadInput(CHANGED.format(file, why))


def versions_of(filesystem: pa.fs.FileSystem, root: str, paths: Sequence[str]) -> FileVersions:
    """The stamps of files as they are now."""
    return FileVersions(filesystem, root, tuple(paths), tuple(file_versions(filesystem, root, paths)))


def file_versions(filesystem: pa.fs.FileSystem, root: str, paths: Sequence[str]) -> list[FileVersion]:
    """What files are now, None for one that is not there."""
    if filesystem.type_name == "local":
        return [_local(p) for p in paths]
    from pyarrow import fs

    if len(paths) <= FEW:
        return parallel_map(lambda p: _remote(filesystem, p), paths, ASKERS)
    try:
        there = {f.path: f for f in filesystem.get_file_info(fs.FileSelector(root, recursive=True))}
    except OSError:
        return [UNKNOWN] * len(paths)
    return [_reported(there.get(p)) for p in paths]


def _local(path: str) -> FileVersion:
    try:
        result = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(result.st_mode):  # a device has no content that could be another
        return UNKNOWN
    return result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns


def _remote(filesystem: pa.fs.FileSystem, path: str) -> FileVersion:
    try:
        return _reported(filesystem.get_file_info(path))
    except OSError:
        return UNKNOWN


def _reported(info: pa.fs.FileInfo | None) -> FileVersion:
    return None if info is None or not info.is_file else (info.size, info.mtime_ns)


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
    """What a data set is called by what names its files: all of them where they are two."""
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
        opened = [replace(o, parts=tuple(kept.guarded(i, p) for p in o.parts)) for i, o in enumerate(opened)]
        return replace(_together(opened, files, value), check=kept.check, as_text=as_text)

    return as_text(())


def _opened(
    result: Listing, files: list[str], names: list[str], form: Form, wanted: Sequence[str]
) -> Callable[[Collection[str]], list[Source]]:
    """What gives the files one by one; files of text with some columns as text, whatever is in them."""
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
        root = Path(*fixed)
        result = sorted(Path(p) for p in globbing.glob(pattern, recursive=True) if Path(p).is_file())
    if not result:
        fix = HOW if QUERY.match(pattern) else "check the path (a glob such as 'log/*.parquet' works too)"
        raise BadInput(f"no file at {pattern!r}: {fix}")
    root, result = root.resolve(), [p.resolve() for p in result]
    for path in (root, *result):
        try:
            str(path).encode()
        except UnicodeEncodeError:  # bytes that Python can only pass on: Arrow opens no such file
            raise BadInput(f"the name of {str(path)!r} is not UTF-8: rename the file, or its folder") from None
    return root, result


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
    places = {q.name: s.place for s in opened for q in s.parts}

    def place(part: str, row: int) -> str:
        return places.get(part, row_of)(part, row)

    return replace(first, kinds=kinds, form=opened[0].form, unread=unread, log=log, place=place)


# ---- the one door for rows: whatever holds them, as a source ----


def open_source(source: object, wanted: Sequence[str] = (), form: Form = DETECTED) -> Source:
    """The source behind a path, a URI, a glob, a list of paths, a directory, a query, or any kind of frame.

    Text is a path, never a query; ``"-"`` is standard input. `wanted` are the columns that will be read: a frame with
    unreadable others is cut down to them, and of text their types alone are detected at once. `form` says how files of
    text are to be taken.
    """
    read = [w for w in wanted if w]
    if isinstance(source, Query):
        return relation(source.relation())
    if isinstance(source, str) and source == STDIN:
        return replace(files_of([str(spooled(form.format))], form, read), files=(STDIN,))
    if isinstance(source, (str, Path)):
        return files_of([str(source)], form, read)
    if isinstance(source, (list, tuple)) and source and all(isinstance(s, (str, Path)) for s in source):
        return files_of([str(s) for s in source], form, read)
    if hasattr(source, "get_fragments"):  # of pyarrow.dataset, which need not be loaded
        return listed(dataset_files(source), "data")
    return frame(source, read)
