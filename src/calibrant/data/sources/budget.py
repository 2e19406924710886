"""What a file may take, by its own size: every reader asks before it unpacks or makes anything of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from calibrant.errors import BadInput

FREE, RATIO = 1 << 30, 50  # bytes that any file may take, and times its own size beyond
VALUE, STREAMED = 40, 16  # bytes that a value of JSON takes, about, and in time where values are not kept
ROW = 4  # bytes a row of a file of columns counts, however little is stored of it: rows take time
CELL = 64  # bytes of a cell of a sheet, about
SHEET = 1 << 19  # bytes of a sheet, about, whatever is in it: each is read, as no other tells which holds the table
COLUMN = 1 << 13  # bytes of a column, about, whatever is in it
MARKS = b",", b"{", b"[", b"\n"  # of JSON: one of them at least stands next to every value
NAME = 1_000  # characters of a name that is made of the names of objects in objects: it is made for every field
UNPACK = "unpack it first, and pass what is in it if that is what you expect"
AS_TABLE = "save its table as Parquet or CSV"


class Bytes(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Read so many bytes, fewer at the end only."""


def allowed(path: Path) -> int:
    """How many bytes may be made of a file."""
    return FREE + RATIO * path.stat().st_size


def afford(path: Path, size: int, what: str, fix: str = UNPACK) -> None:
    """Refuse to make so many bytes of a file; `what` says what would take them."""
    if size > FREE:
        afford_of(path.name, path.stat().st_size, size, what, fix)


def afford_of(name: str, own: int, size: int, what: str, fix: str = UNPACK) -> None:
    """Refuse to make so many bytes of a file by its name and its own size, be it on another machine."""
    if size > (limit := FREE + RATIO * own):
        raise BadInput(
            f"{name} ({own:,} bytes) {what}: that takes {size:,} bytes of memory, and a file of its size may take "
            f"{limit:,}; {fix}"
        )


def json_size(text: bytes) -> int:
    """The bytes that JSON takes once it is read, about; no less."""
    return 2 * len(text) + VALUE * sum(map(text.count, MARKS))


def afford_json(path: Path, text: bytes) -> None:
    """Refuse JSON that a file unpacks to, and whose values take too much."""
    afford(path, json_size(text), f"unpacks to JSON of {len(text):,} bytes")


def streamed_size(text: bytes) -> int:
    """What JSON takes that is read and not kept: its values take time."""
    return STREAMED * sum(map(text.count, MARKS))


def afford_columns(path: Path, columns: int, rows: int, what: str, times: int = 1) -> None:
    """Refuse more columns, or cells, than can be read; each may take so many times as much."""
    size = times * columns * (COLUMN + rows * 2)
    afford(path, size, f"has {columns:,} {what} in {rows:,} rows", "write those that matter alone")


def afford_name(name: str, where: str) -> str:
    """The name of a field in objects, unless it is so long that the names of all fields may take far more than they."""
    if len(name) > NAME:
        raise BadInput(
            f"{where} has a field within others whose names make {len(name):,} characters ({name[:40]!r}...): "
            f"give it names of {NAME:,} at most"
        )
    return name


class Unpacking:
    """A file that is decompressed as it is read, as far as it may be."""

    def __init__(self, file: Bytes, path: Path) -> None:
        self.file, self.name, self.most, self.taken = file, path, allowed(path), 0

    def read(self, size: int, /) -> bytes:
        """Read so many bytes; refuse what goes on beyond the limit."""
        part = self.file.read(size)
        self.taken += len(part)
        if self.taken > self.most:
            raise BadInput(
                f"{self.name.name} ({self.name.stat().st_size:,} bytes) unpacks to more than {self.most:,} bytes: "
                f"{UNPACK}"
            )
        return part


def read_whole(file: Bytes, path: Path, block: int) -> bytes:
    """All of a text that is read at once, which takes twice its bytes."""
    parts, size = list[bytes](), 0
    while part := file.read(block):
        parts.append(part)
        size += len(part)
        afford(path, 2 * size, f"unpacks to {size:,} bytes and more, read at once")
    return b"".join(parts)
