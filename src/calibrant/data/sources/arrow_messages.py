"""What the record batches of an Arrow IPC file claim: rows, and bytes that they unpack to, before any is unpacked."""

from __future__ import annotations

import struct

import pyarrow as pa

BATCH, DICTIONARY = 3, 2  # of the union of headers: a record batch, and one of the values of a dictionary
HEADER_TYPE, HEADER = 1, 2  # fields of a message
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3  # fields of a record batch
DATA = 1  # the field of a dictionary batch that is a record batch
FIRST = 8  # bytes before the messages of a file, and of the number that a compressed buffer begins with


def claims(file: pa.NativeFile, stream: bool) -> tuple[int, int]:
    """The rows of all record batches, and the bytes of the largest that is compressed once it is unpacked.

    A file is read as the stream that it holds; one that ends too soon, or says what cannot be, is left to its reader.
    """
    file.seek(0 if stream else FIRST)
    rows = largest = 0
    try:
        for message in pa.ipc.MessageReader.open_stream(file):
            here, size = _claim(message)
            rows, largest = rows + here, max(largest, size)
    except (pa.ArrowInvalid, OSError, struct.error, IndexError):
        pass  # the reader says so in its own words
    finally:
        file.seek(0)
    return rows, largest


def _claim(message: pa.Message) -> tuple[int, int]:
    """The rows of a record batch, none of a dictionary; the bytes of its compressed buffers once unpacked."""
    head = _Table(message.metadata.to_pybytes())
    if (kind := head.byte(HEADER_TYPE)) not in (BATCH, DICTIONARY):
        return 0, 0
    own = head.table(HEADER)
    batch = own if kind == BATCH else own.table(DATA)
    rows = batch.whole(LENGTH) if kind == BATCH else 0
    if not batch.at(COMPRESSION):
        return rows, 0
    body, size = message.body, 0
    for offset, length in batch.pairs(BUFFERS):
        if length >= FIRST:  # it begins with its length, -1 where it is not compressed after all
            size += max(struct.unpack("<q", body[offset : offset + FIRST])[0], 0)
    return rows, size


class _Table:
    """A table of FlatBuffers, in which the metadata of Arrow IPC are written."""

    def __init__(self, raw: bytes, place: int | None = None) -> None:
        self.raw = raw
        self.place = self._int("<I", 0) if place is None else place
        self.fields = self.place - self._int("<i", self.place)

    def _int(self, kind: str, place: int) -> int:
        return int(struct.unpack_from(kind, self.raw, place)[0])

    def at(self, field: int) -> int:
        """The place of a field; 0 where it is not there."""
        slot = 4 + 2 * field
        offset = self._int("<H", self.fields + slot) if slot < self._int("<H", self.fields) else 0
        return self.place + offset if offset else 0

    def byte(self, field: int) -> int:
        """A number of one byte."""
        return self.raw[place] if (place := self.at(field)) else 0

    def whole(self, field: int) -> int:
        """A number of eight bytes."""
        return self._int("<q", place) if (place := self.at(field)) else 0

    def table(self, field: int) -> _Table:
        """A table within this one."""
        place = self.at(field)
        return _Table(self.raw, place + self._int("<I", place))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """A list of pairs of numbers of eight bytes."""
        if not (place := self.at(field)):
            return []
        start = place + self._int("<I", place)
        count = self._int("<I", start)
        return list(struct.iter_unpack("<qq", self.raw[start + 4 : start + 4 + 16 * count]))
