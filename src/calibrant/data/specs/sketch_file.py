"""Bytes: a header with types, then whole numbers. Nothing in them is believed before it is checked.

Everything that is stored or travels between machines is made of the same three things, one after the other: the sizes
of both others, a header in JSON, and 64-bit whole numbers, one array after the other, compressed. A sketch file has a
magic line and a checksum before them.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from calibrant.errors import BadInput

Integers = NDArray[np.int64]
Header = TypeVar("Header")

MAGIC = b"calibrant sketch\n"
FORMAT = 8
CHECKSUM = hashlib.sha256().digest_size
SIZES = struct.Struct("<QQ")  # bytes of the header and of the compressed numbers
BEGIN = len(MAGIC) + CHECKSUM + SIZES.size
STEP = 1 << 22  # bytes decompressed at once: what is refused has cost no more
FREE, RATIO = 1 << 28, 64  # bytes that any file may unpack to, and times its own size beyond: zlib's bombs reach 1,000
MOST_FILE, MOST_HEADER = 1 << 31, 1 << 26  # bytes; a header is mostly levels, cells and names of files
FOREIGN = "not a calibrant sketch: pass a file that `calibrant sketch` wrote"
CHANGED = "the sketch is truncated or was changed after it was written: make it again"


class Damaged(BadInput):
    """What was stored cannot have been written by this version."""

    def __init__(self, where: str, what: str) -> None:
        where, what = (" ".join(text.split()) for text in (where, what))
        super().__init__(f"the sketch is damaged ({where[:100]} {what[:60]}): make it again")


def need(sound: bool | np.bool, where: str, what: str) -> None:
    """Refuse what was stored unless it is sound."""
    if not sound:
        raise Damaged(where, what)


# ---- arrays of sums whose shapes the spec fixes: added up, and stored as they are ----


class Sums:
    """Whole numbers that add up, array by array."""

    def arrays(self) -> dict[str, Integers]:
        """The sums by name: the arrays themselves."""
        raise NotImplementedError

    def settle(self) -> None:
        """Do what follows where sums grew."""

    def merge(self, other: Self) -> None:
        """Add the sums of another part of the same spec."""
        more = other.arrays()
        for name, kept in self.arrays().items():
            kept += more[name]
        self.settle()

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be these sums."""
        return {name: kept.shape for name, kept in self.arrays().items()} == dict(shapes)

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the sums that `arrays` described."""
        for name, kept in self.arrays().items():
            kept[...] = arrays[name]


# ---- from values to bytes ----


def packed(header: object, numbers: Iterable[Integers] = (), level: int = 6) -> bytes:
    """A header (a dataclass of plain values) and arrays as bytes; a lower level is quicker and larger."""
    body = zlib.compress(b"".join(a.astype("<i8").tobytes() for a in numbers), level)
    return with_sizes(msgspec.json.encode(header), body)


def with_sizes(head: bytes, body: bytes) -> bytes:
    """The two behind their sizes."""
    return SIZES.pack(len(head), len(body)) + head + body


def with_checksum(content: bytes) -> bytes:
    """The content of a sketch file as the file is: the checksum finds accidents, it is no signature."""
    head, _ = SIZES.unpack_from(content)
    if head > MOST_HEADER:
        raise BadInput(f"names, levels and cells take {head:,} bytes: name fewer variables, or read fewer files")
    return MAGIC + hashlib.sha256(content).digest() + content


def text_of(name: str) -> str:
    """Text that UTF-8 can hold: a file's name need not be."""
    return name.encode("utf-8", "replace").decode()


# ---- from bytes to values ----


def stored_sketch(path: str | os.PathLike[str]) -> bytes:
    """Read a sketch file; one that is none is refused by its first bytes and its size, however large it is."""
    try:
        with Path(path).open("rb") as file:
            first, status = file.read(BEGIN), os.fstat(file.fileno())
            if _size(first) != status.st_size and stat.S_ISREG(status.st_mode):
                raise BadInput(CHANGED)
            return first + file.read()
    except OSError as e:
        raise BadInput(f"cannot be read: {e.strerror}") from None


def _size(first: bytes) -> int:
    """How many bytes a file that begins so must have."""
    if first[: len(MAGIC)] != MAGIC:
        raise BadInput(FOREIGN)
    if len(first) < BEGIN:
        raise BadInput(CHANGED)
    head, body = SIZES.unpack_from(first, BEGIN - SIZES.size)
    need(head <= MOST_HEADER, "the header", f"has {head:,} bytes")
    need(body <= MOST_FILE, "the file", f"has {body:,} bytes")
    return BEGIN + int(head) + int(body)


def content_of(raw: bytes | bytearray | memoryview) -> memoryview:
    """What a sketch file holds behind its checksum."""
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise BadInput(FOREIGN)
    view = memoryview(bytes(raw))
    whole = _size(bytes(view[:BEGIN])) == len(view)
    content = view[BEGIN - SIZES.size :]
    if not whole or hashlib.sha256(content).digest() != view[len(MAGIC) : BEGIN - SIZES.size]:
        raise BadInput(CHANGED)
    return content


def halves(content: bytes | memoryview) -> tuple[bytes, memoryview]:
    """The header and the rest of what `with_sizes` joined."""
    size, _ = SIZES.unpack_from(content)
    view = memoryview(content)[SIZES.size :]
    return bytes(view[:size]), view[size:]


def unpacked(content: bytes | memoryview, kind: type[Header], version: int | None = None) -> tuple[Header, Numbers]:
    """The header that `packed` wrote, of the type that it must have, and its numbers, to be taken one by one.

    With a `version` the header must hold it as its ``format``.
    """
    head, body = halves(content)
    if version is not None:
        _check_format(head, version)
    return decoded_header(head, kind), Numbers(body, len(content))


def decoded_header(raw: bytes, kind: type[Header]) -> Header:
    """JSON as the type that it must have: every field there, of its type and within its bounds, and no other.

    It must be written as `packed` writes it, byte by byte: to compare values would take many times the memory.
    """
    try:
        result = msgspec.json.decode(raw, type=kind)
        same = msgspec.json.encode(result) == raw
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as e:
        what, _, where = str(e).partition(" - at `$.")
        raise Damaged(where.rstrip("`") or "the header", f"cannot be read: {what}") from None
    need(same, "the header", "is not as it was written")
    return result


class _Format(msgspec.Struct):
    format: int


def _check_format(raw: bytes, version: int) -> None:
    try:
        result = msgspec.json.decode(raw, type=_Format).format
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise Damaged("the header", "has no format") from None
    if result != version:
        by = "a newer calibrant: upgrade this one" if result > version else "an older calibrant: make it again"
        raise BadInput(f"the sketch has format {str(result)[:20]}, this version reads {version}; it is from {by}")


class Numbers:
    """Whole numbers unpacked piece by piece, never more than were asked for.

    `stored`: bytes of all that was stored: what may be asked for depends on it.
    """

    def __init__(self, compressed: memoryview, stored: int) -> None:
        self._unpack, self._compressed, self._at, self._tail = zlib.decompressobj(), compressed, 0, b""
        self._most = FREE + RATIO * stored

    def expect(self, count: int) -> None:
        """Refuse a header that claims more numbers than so few bytes may stand for, before any is unpacked."""
        need(8 * count <= self._most, "the header", f"claims {8 * count:,} bytes")

    def take(self, count: int) -> Integers:
        """The next whole numbers."""
        out = np.empty(8 * count, dtype=np.uint8)
        into, at = out.data, 0
        while at < len(into):
            piece = self._more(min(len(into) - at, STEP))
            need(bool(piece), "the numbers", "are too few")
            into[at : at + len(piece)] = piece
            at += len(piece)
        return out.view("<i8").astype(np.int64, copy=False)

    def take_into(self, flat: Integers, count: int, name: str) -> None:
        """Put the next so many non-zero numbers, behind their places, which increase, into an array of zeros."""
        places, last = [], -1
        for start in range(0, count, STEP // 8):
            where = self.take(min(STEP // 8, count - start))
            increase = where[0] > last and where[-1] < len(flat) and bool((where[1:] > where[:-1]).all())
            need(increase, f"the places of {name}", "do not increase within the array")
            places.append(where)
            last = int(where[-1])
        for where in places:
            values = self.take(len(where))
            need(values.all(), f"the values of {name}", "hold a zero")
            flat[where] = values

    def end(self) -> None:
        """Check that nothing is left."""
        over = self._more(1) or not self._unpack.eof or self._unpack.unused_data or self._at < len(self._compressed)
        need(not over, "the numbers", "are too many")

    def _more(self, most: int) -> bytes:
        """At most `most` bytes, none if there are no more."""
        piece = b""
        while not piece and not self._unpack.eof:
            if not self._tail:
                self._tail = bytes(self._compressed[self._at : self._at + STEP])
                self._at += len(self._tail)
            over = not self._tail
            try:
                piece = self._unpack.decompress(self._tail, most)
            except zlib.error:
                raise Damaged("the numbers", "cannot be unpacked") from None
            self._tail = self._unpack.unconsumed_tail
            if over:
                break
        return piece


def nonzero(array: Integers) -> tuple[Integers, Integers]:
    """The places and values of what is not zero, as `Numbers.take_into` reads them."""
    flat = array.reshape(-1)
    where = np.flatnonzero(flat)
    return where, flat[where]
