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

from calibrant.errors import BadInput, first_line
from calibrant.toolkit.data import afford, afford_json, json_text

HEADER, START = "header.json", "_journal/start.json"  # in the archive of an Inspect log
ZSTANDARD = 93  # method of compression that this Python's zipfile may not know
HEAD = 30  # bytes before the name of a member; the lengths of name and extra are the last four
BROKEN = (OSError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, struct.error, RuntimeError)
T = TypeVar("T")


def decoded(raw: bytes, kind: type[T], where: str) -> T:
    """Decode JSON as a value of some type; NaN, which JSON has not and Python writes, among it."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass  # NaN, or said below
    try:
        return of_kind(json.loads(raw), kind, where)
    except BadInput:
        raise
    except (ValueError, RecursionError) as e:
        raise BadInput(f"{where} is damaged ({first_line(e, 100)}): copy it again from where it was made") from None


def of_kind(value: object, kind: type[T], where: str) -> T:
    """Plain data as a value of some type."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as e:
        raise BadInput(f"{where} is not what the tool that it seems to be from writes ({str(e)[:120]})") from None
    except UnicodeEncodeError:  # of a text where none should be
        raise BadInput(f"{where} holds half of a character, such as \\ud800, where a value is read") from None


def lines_of(path: Path, kind: type[T], encoding: str = "") -> Iterator[tuple[str, T]]:
    """Yield the values of a file of JSON lines, or of one array, each with where it stands."""
    text = json_text(path, encoding)
    if text.lstrip()[:1] == b"[":
        for i, value in enumerate(decoded(text, list[kind], path.name), 1):  # type: ignore[valid-type]
            yield f"{path.name}: element {i:,}", value
        return
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.strip():
            where = f"{path.name}: line {number:,}"
            yield where, decoded(line, kind, where)


def members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """What an archive holds, by name."""
    try:
        with zipfile.ZipFile(path) as archive:
            kept = {one.filename: one for one in archive.infolist()}
    except BROKEN as e:
        raise BadInput(f"{path.name} is damaged ({str(e)[:100]}): copy it again from where it was made") from None
    size = sum(one.file_size for one in kept.values())
    afford(path, size, f"would unpack to {size:,} bytes")
    return kept


def member(path: Path, one: zipfile.ZipInfo) -> bytes:
    """One member of an archive: stored, deflated, or compressed with Zstandard."""
    try:
        with path.open("rb") as file:
            file.seek(one.header_offset)
            name, extra = struct.unpack("<HH", file.read(HEAD)[-4:])
            file.seek(name + extra, 1)
            packed = file.read(one.compress_size)
        raw = _unpacked(packed, one)
        if len(raw) != one.file_size or zlib.crc32(raw) != one.CRC:
            raise ValueError("its check sum is wrong")
    except (*BROKEN, pa.ArrowInvalid, NotImplementedError) as e:
        what = f"{path.name}: {one.filename[:60]!r} is damaged ({first_line(e, 100)})"
        raise BadInput(f"{what}: copy it again from where it was made") from None
    afford_json(path, raw)
    return raw


def _unpacked(packed: bytes, one: zipfile.ZipInfo) -> bytes:
    """The bytes of a member, one more than it says at most."""
    if one.compress_type == zipfile.ZIP_STORED:
        return packed
    if one.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, one.file_size + 1)
    if one.compress_type != ZSTANDARD:
        raise NotImplementedError(f"it is packed by method {one.compress_type}")
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        return bytes(stream.read(one.file_size + 1))
