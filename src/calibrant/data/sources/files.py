"""Files of one data set: what a path, glob, list or directory names, and the reader of each."""

from __future__ import annotations

import glob as globbing
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from calibrant.data.sources.columnar import ipc, parquet
from calibrant.data.sources.delimited import delimited
from calibrant.data.sources.remote import Listing, is_uri, shown, uri_files
from calibrant.data.sources.source import FOUND_OUT, Form, Fragments, Source
from calibrant.errors import BadInput

OPENERS = 16  # remote files opened at once, each only to read where its row groups are
CSV_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".tsv", ".tsv.gz", ".txt")
IPC_ENDINGS = (".arrow", ".feather", ".ipc")


def files_of(given: list[str], form: Form = FOUND_OUT) -> Source:
    remote = [is_uri(g) for g in given]
    if any(remote):
        if not all(remote):
            raise BadInput("paths and URIs are mixed: give all of them as URIs (file:///... for a path)")
        return listed(uri_files(given), shown(given[0]))
    return _files([_expand(g) for g in given], given[0], form)


def listed(found: Listing, given: str) -> Source:
    alone = len(found.paths) == 1
    names = ["" if alone else p[len(found.root) :].lstrip("/") for p in found.paths]
    with ThreadPoolExecutor(OPENERS) as pool:
        opened = list(pool.map(lambda p, name: parquet(p, name, found.filesystem), found.paths, names))
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


def _files(expanded: list[tuple[Path, list[Path]]], given: str, form: Form) -> Source:
    paths = [p for _, found in expanded for p in found]
    twice = sorted({p.name for p in paths if paths.count(p) > 1}) if len(set(paths)) < len(paths) else []
    if twice:
        raise BadInput(f"{twice[0]} is named twice: its rows would count twice")
    root = Path(os.path.commonpath([r for r, _ in expanded]))
    alone = len(paths) == 1
    opened = [_one_file(p, "" if alone else p.relative_to(root).as_posix(), form) for p in paths]
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


def _one_file(path: Path, name: str, form: Form) -> Source:
    if path.stat().st_size == 0:
        raise BadInput(f"{path.name} is empty (0 bytes)")
    if path.name.lower().endswith(CSV_ENDINGS):
        return delimited(path, name, form)
    if path.name.lower().endswith(IPC_ENDINGS):
        return ipc(path)
    from pyarrow.fs import LocalFileSystem

    return parquet(str(path), name, LocalFileSystem())
