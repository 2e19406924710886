"""Files that must not outlive the process: outputs that are half written, and what standard input held."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

KEPT: set[Path] = set()  # as long as they are needed


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
