"""Files as they were when they were opened: one that changes while it is read would mix two files in one answer."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from calibrant.data.sources.parallel_map import parallel_map
from calibrant.data.sources.source import Part, Read
from calibrant.errors import BadInput

FileVersion = (
    tuple[object, ...] | None
)  # device, inode, size, time; of a file afar size and time; None if it is not there
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
    """Return what files are now, None for one that is not there."""
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
