"""Files of text as bytes of UTF-8, however they are compressed and encoded."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, cast

from calibrant.data.sources.budget import Bytes, Unpacking
from calibrant.errors import BadInput, first_line

PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
MARKS = {  # that a file begins with, the longer before those they begin with
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
UTF_8 = ("utf-8", "ascii")
OPENED_BY = {"gzip": "gzip", "bz2": "bz2", "xz": "lzma"}  # modules, of which a Python may lack one
BROKEN: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile)
LIKELY = "cp1252"  # of text in a Western language that is not UTF-8
WAY = f"pass encoding={LIKELY!r} (--encoding {LIKELY}), or the encoding that it has"
OTHER_WAY = "pass encoding= (--encoding), the encoding that it has, such as cp1250, cp1251 or gb18030"
OTHER_SCRIPT = re.compile(rb"[\x80-\xff]{3,}")  # letters of a Western language seldom stand so
PARTLY_UTF_8 = re.compile(rb"[\xc2\xc3][\x80-\xbf]")


class NotUtf8(BadInput):
    """Text is not UTF-8; `encoding` is what it may be, or empty."""

    def __init__(self, message: str, encoding: str) -> None:
        super().__init__(message)
        self.encoding = encoding


def encoding_of(path: Path, requested: str) -> tuple[str, int]:
    """The encoding of a file, and how many bytes of a mark it begins with where that is UTF-8's."""
    if requested:
        try:
            requested = codecs.lookup(requested).name
            "".encode(requested)
        except (LookupError, TypeError):
            raise BadInput(f"encoding {requested!r} is unknown: try utf-8, cp1252, latin-1 or utf-16") from None
    with unpacked(path) as file:
        first = file.read(4)
    mark, reported = next(((m, e) for m, e in MARKS.items() if first.startswith(m)), (b"", ""))
    if requested in ("", "utf-8-sig") or (requested in UTF_8 and reported == "utf-8"):
        requested = reported or "utf-8"
    return requested, len(mark) if requested == "utf-8" == reported else 0


def seekable(path: Path, encoding: str) -> bool:
    """Whether a place in the file is a place in its text."""
    with path.open("rb") as file:
        return encoding in UTF_8 and not _packed(file)


def _packed(file: IO[bytes]) -> str:
    first = file.read(6)
    file.seek(0)
    return next((kind for begins, kind in PACKED.items() if first.startswith(begins)), "")


@contextmanager
def unpacked(path: Path) -> Iterator[Bytes]:
    """Open a file, decompressed; refuse one that ends too soon or is not what it says."""
    with path.open("rb") as raw:
        kind, broken = _packed(raw), BROKEN
        try:
            if kind == "zstd":
                import pyarrow as pa

                with pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd") as file:
                    yield Unpacking(_Whole(file), path)
            elif kind:
                module = _module(kind, path)
                broken = (*BROKEN, getattr(module, "LZMAError", EOFError))
                with module.open(raw) as file:
                    yield Unpacking(cast(Bytes, file), path)
            else:
                yield raw
        except broken as e:
            raise BadInput(
                f"{path.name} is a {kind} file that is damaged or ends too soon ({e}): copy it again"
            ) from None
        except OSError as e:
            if e.errno is None and kind:  # the decompressor's, not the disk's
                why = first_line(e)
                raise BadInput(f"{path.name} is a {kind} file that is damaged ({why}): copy it again") from None
            raise BadInput(f"{path.name} cannot be read: {e.strerror or e}") from None


def _module(kind: str, path: Path) -> ModuleType:
    try:
        return import_module(OPENED_BY[kind])
    except ImportError:
        raise BadInput(
            f"{path.name} is packed with {kind}, which this Python was built without: unpack it first"
        ) from None


class _Whole:
    """Read as many bytes as were asked for, from a file that may give fewer."""

    def __init__(self, file: Bytes) -> None:
        self.file = file

    def read(self, size: int, /) -> bytes:
        parts = []
        while size > 0 and (part := self.file.read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class _Translated:
    """Text of another encoding as UTF-8."""

    def __init__(self, file: Bytes, encoding: str, name: str) -> None:
        self.file, self.encoding, self.name = file, encoding, name
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.buffered, self.lines, self.ended = b"", 1, False

    def read(self, size: int, /) -> bytes:
        while len(self.buffered) < size and not self.ended:
            raw = self.file.read(size)
            self.ended = not raw
            try:
                text = self.decoder.decode(raw, final=self.ended)
                self.buffered += text.encode("utf-8")
            except UnicodeError as e:
                raise BadInput(f"{self.name} is not {self.encoding} (after line {self.lines:,}: {e}); {WAY}") from None
            self.lines += text.count("\n")
        out, self.buffered = self.buffered[:size], self.buffered[size:]
        return out


@contextmanager
def as_utf8(path: Path, encoding: str) -> Iterator[Bytes]:
    """Open the text of a file; that of UTF-8 is not looked at."""
    with unpacked(path) as file:
        yield file if encoding in UTF_8 else _Translated(file, encoding, path.name)


def checked(block: bytes, name: str, lines: int) -> None:
    """Refuse bytes, after so many lines, that are not UTF-8."""
    if block.isascii():
        return
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as e:
        line = lines + block.count(b"\n", 0, e.start) + 1
        likely = _likely(block)
        way = WAY if likely else OTHER_WAY
        raise NotUtf8(f"{name} is not UTF-8: byte 0x{block[e.start]:02X} in line {line:,}; {way}", likely) from None


def _likely(block: bytes) -> str:
    """`LIKELY` where bytes may be so encoded; empty where a byte stands for nothing, or few words would be words."""
    try:
        block.decode(LIKELY)
    except UnicodeDecodeError:
        return ""
    others = sum(map(len, OTHER_SCRIPT.findall(block)))
    high = len(block) - len(block.translate(None, bytes(range(128, 256))))
    return "" if 5 * others > high or PARTLY_UTF_8.search(block) else LIKELY
