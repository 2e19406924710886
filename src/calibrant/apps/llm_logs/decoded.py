"""The JSON of logs, checked against the fields that are read; what else is in it is passed over."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa

from calibrant.errors import BadInput
from calibrant.toolkit.data import as_utf8, encoding_of

HEADER, START = "header.json", "_journal/start.json"  # in the archive of an Inspect log
BLOCK = 1 << 23  # bytes read at once
ZSTANDARD = 93  # method of compression that this Python's zipfile may not know
MOST = 1 << 31  # bytes that one member of an archive may unpack to
HEAD = 30  # bytes before the name of a member; the lengths of name and extra are the last four
BROKEN = (OSError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, struct.error, RuntimeError)
T = TypeVar("T")


def decoded(raw: bytes, kind: type[T], where: str) -> T:
    """Return JSON as a value of some type; NaN, which JSON has not and Python writes, among it."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # NaN, or said below
    try:
        return msgspec.convert(json.loads(raw), kind)
    except msgspec.ValidationError as e:
        raise BadInput(f"{where} is not what the tool that it seems to be from writes ({str(e)[:120]})") from None
    except (ValueError, RecursionError) as e:
        raise BadInput(
            f"{where} is damaged ({str(e).splitlines()[0][:100]}): copy it again from where it was made"
        ) from None


def text_of(path: Path, encoding: str = "") -> bytes:
    """A whole file of text, unpacked, in UTF-8 without a mark."""
    result, _ = encoding_of(path, encoding)
    with as_utf8(path, result) as file:
        return b"".join(iter(lambda: file.read(BLOCK), b"")).removeprefix(b"\xef\xbb\xbf")


def lines_of(path: Path, kind: type[T], encoding: str = "") -> Iterator[tuple[str, T]]:
    """Yield the values of a file of JSON lines, or of one array, each with where it stands."""
    text = text_of(path, encoding)
    if text.lstrip()[:1] == b"[":
        for i, value in enumerate(decoded(text, list[kind], path.name), 1):  # type: ignore[valid-type]
            yield f"{path.name}: element {i:,}", value
        return
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.strip():
            where = f"{path.name}: line {number:,}"
            yield where, decoded(line, kind, where)


def members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return what an archive holds, by name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {one.filename: one for one in archive.infolist()}
    except BROKEN as e:
        raise BadInput(f"{path.name} is damaged ({str(e)[:100]}): copy it again from where it was made") from None


def member(path: Path, one: zipfile.ZipInfo) -> bytes:
    """Return one member of an archive: stored, deflated, or compressed with Zstandard."""
    try:
        if one.file_size > MOST:
            raise BadInput(
                f"{path.name}: {one.filename[:60]!r} would unpack to {one.file_size:,} bytes, which is too much"
            )
        if one.compress_type != ZSTANDARD:
            with zipfile.ZipFile(path) as archive:
                return archive.read(one)
        with path.open("rb") as file:
            file.seek(one.header_offset)
            name, extra = struct.unpack("<HH", file.read(HEAD)[-4:])
            file.seek(name + extra, 1)
            packed = file.read(one.compress_size)
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            raw = bytes(stream.read(one.file_size + 1))
        if len(raw) != one.file_size or zlib.crc32(raw) != one.CRC:
            raise ValueError("its check sum is wrong")
        return raw
    except (*BROKEN, pa.ArrowInvalid, NotImplementedError) as e:
        what = (
            f"{path.name}: {one.filename[:60]!r} is damaged ({str(e).splitlines()[0][:100] if str(e) else 'truncated'})"
        )
        raise BadInput(f"{what}: copy it again from where it was made") from None
