"""Standard input as a file: `-` in place of a path."""

from __future__ import annotations

import atexit
import shutil
import sys
from pathlib import Path

from calibrant.data.targets import KEPT, remove
from calibrant.errors import BadInput

STDIN = "-"
READ = "Parquet, CSV, Arrow IPC, ORC, JSON lines, Excel, NumPy, logs of evaluations"  # for help: what can be read
FORMATS = {  # what the format of standard input may be called, and the ending that says so
    "csv": ".csv",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "orc": ".orc",
    "jsonl": ".jsonl",
    "excel": ".xlsx",
    "numpy": ".npz",
}
_taken: list[Path] = []


def spooled(form: str) -> Path:
    """A temporary file with all of standard input, for rows are read more than once. It goes when we do."""
    if _taken:
        return _taken[0]
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise BadInput("standard input (-) is closed: pipe a file into it")
    if sys.stdin.isatty():
        raise BadInput("standard input (-) is a terminal: pipe a file into it")
    import tempfile  # loads random numbers: not for help

    folder = Path(tempfile.mkdtemp(prefix="calibrant-"))
    KEPT.add(folder)
    atexit.register(remove, folder)
    path = folder / f"standard input{FORMATS.get(form, '')}"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
    except OSError as e:
        raise BadInput(f"cannot keep standard input in {str(folder.parent)!r}: {e.strerror}; set TMPDIR") from None
    if not path.stat().st_size:
        raise BadInput("standard input (-) is empty")
    _taken.append(path)
    return path
