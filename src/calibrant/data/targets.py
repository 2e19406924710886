"""Files that are written: where they may be, whole or not at all; and what must not outlive the process.

Loads the standard library only: whoever writes a page needs no more.
"""

from __future__ import annotations

import glob as globbing
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from calibrant.errors import BadInput

DEVICES = (Path("/dev"), Path("/dev/fd"))  # standard output is there, even where it goes to a file
QUOTED = re.compile(r"""(['"])(.+?)\1""")  # what a query may name as a file
KEPT: set[Path] = set()  # half-written outputs, and what standard input held, as long as they are needed


class Quoting(Protocol):
    """A query, which may name files in quotes."""

    @property
    def text(self) -> str:
        """What it says."""


# ---- where files may be written ----


def checked_targets(outs: Mapping[str, str | None], files: Iterable[str | Quoting]) -> dict[str, Path]:
    """Where each option writes, those that are given; refuse a target before any work is done for it.

    A target is none of the files to read (paths, globs, directories, file URIs, or what a query has in quotes), nor
    that of another option; its folder is there, and both may be written.
    """
    read = list(files)
    results: dict[str, Path] = {}
    for option, out in outs.items():
        if out is None:
            continue
        path = _writable(out)
        if not _special(path):
            if path.exists() and any(_holds(f, path) for f in read):
                raise BadInput(f"{out!r} is among the files to read: write to another file")
            for other, taken in results.items():
                if os.path.normcase(taken.resolve()) == os.path.normcase(path.resolve()):
                    raise BadInput(f"{other} and {option} would write one file, {out!r}: give each its own")
        results[option] = path
    return results


def _writable(out: str) -> Path:
    """A path that can be written; refuse others, with the reason."""
    if not out:
        raise BadInput("cannot write '': name a file")
    path = checked_path(out)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise BadInput(f"cannot write {out!r}: there is no directory {str(path.parent)!r}")
    if path.is_dir():
        raise BadInput(f"cannot write {out!r}: it is a directory")
    if path.exists() and not os.access(path, os.W_OK):
        raise BadInput(f"cannot write {out!r}: the file may not be written")
    if not _special(path) and not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"cannot write {out!r}: its directory may not be written")
    return path


def checked_path(name: str) -> Path:
    """The path of a name that a file can have."""
    try:
        if b"\0" not in os.fsencode(name):
            return Path(name)
    except UnicodeEncodeError:
        pass
    raise BadInput(f"{name!r} is the name of no file: leave characters out that no name may have")


def _special(path: Path) -> bool:
    """Tell a device or a pipe, such as /dev/stdout, which is written to and never replaced."""
    return path.exists() and (not path.is_file() or path.absolute().parent in DEVICES)


def _holds(inputs: str | Quoting, path: Path) -> bool:
    """Whether a file that is there is among those that were given."""
    if not isinstance(inputs, str):
        return any(_holds(quoted, path) for _, quoted in QUOTED.findall(inputs.text))
    if inputs.startswith("file:"):
        from urllib.parse import urlsplit
        from urllib.request import url2pathname  # loads the protocols of the web

        inputs = url2pathname(urlsplit(inputs).path)
    if Path(inputs).is_dir():
        inside = path.resolve().is_relative_to(Path(inputs).resolve())
        return inside or any(p.is_file() and p.samefile(path) for p in Path(inputs).rglob("*"))
    result = [inputs] if Path(inputs).exists() else globbing.glob(inputs, recursive=True)
    return any(Path(p).exists() and Path(p).samefile(path) for p in result)


# ---- files that appear when they are complete ----


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """Give a name in the same folder to write under: it becomes `path` if all goes well, and is removed if not."""
    target, special = path.resolve(), _special(path)  # two may write one file at once, on two machines: each its own
    short = os.fsencode(target.name)[:200].decode(errors="ignore")  # most disks take names of 255 bytes
    part = path if special else target.with_name(f".{short}.{os.urandom(6).hex()}.part")
    if not special:
        KEPT.add(part)
    try:
        yield part
        if not special:
            if target.exists():
                shutil.copymode(target, part)
            with part.open("rb+") as file:
                os.fsync(file.fileno())  # or a machine that loses power may keep the new name and not what it names
            os.replace(part, target)
    except OSError as e:
        raise BadInput(f"cannot write {str(path)!r}: {e.strerror or e}") from None
    finally:
        if not special:
            remove(part)


def written(target: str, content: bytes) -> None:
    """Write a file in whole or not at all."""
    with temporary(Path(target)) as part:
        part.write_bytes(content)


# ---- what must not outlive the process ----


def remove(path: Path) -> None:
    """Remove a file or a folder that is kept no longer."""
    with suppress(OSError):  # it is gone, has its name by now, or its folder is gone
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    KEPT.discard(path)


def remove_all() -> None:
    """Remove them all: the process ends."""
    for path in tuple(KEPT):
        remove(path)
