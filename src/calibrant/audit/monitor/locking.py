"""One writer at a time in a monitor's folder; the lock of a process that ends, however it ends, is gone with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from calibrant.errors import BadInput

LOCK = "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Refuse two writers."""
    if not folder.is_dir():
        raise BadInput(f"there is no directory {str(folder)!r}: start one with calibrant watch start")
    with (folder / LOCK).open("ab") as file:
        if not _lock(file):
            raise BadInput(f"another process is writing to {str(folder)!r}: wait until it is done")
        yield


def _lock(file: BinaryIO) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        take = partial(msvcrt.locking, file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        take = partial(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        take()
    except OSError:
        return False
    return True
