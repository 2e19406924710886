"""Sketches as bytes: a header, the non-zero counts, and a checksum; nothing in a file is believed before it is checked."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.data.parts import Part, load_state, state_of
from calibrant.data.sound_spec import check_spec
from calibrant.data.sound_sums import check_sums
from calibrant.data.spec import Spec
from calibrant.data.stored import Damaged, rebuilt, value
from calibrant.errors import BadInput

if TYPE_CHECKING:
    from calibrant.data.sketch import Sketch

MAGIC = b"calibrant sketch\n"
FORMAT = 2
ARRAYS = ("cells", "levels", "group_cells", "group_levels")
SIZES = struct.Struct("<QQ")  # of the header and of the compressed body
BEGIN = len(MAGIC) + 32 + SIZES.size
STEP = 1 << 22  # bytes decompressed at once
FREE, RATIO = 1 << 28, 256  # bytes that any file may unpack to, and times its own size beyond them
HEADER = {
    "format": int,
    "spec": Any,
    "lengths": tuple[int, int, int, int],
    "rows_read": int,
    "name": str,
    "files": tuple[str, ...],
    "drop_missing": bool,
    "parts": Any,
}
FOREIGN = "not a calibrant sketch: pass a file that `calibrant sketch` wrote"
CHANGED = "the sketch is truncated or was changed after it was written: make it again"


def sketch_bytes(sketch: Sketch, level: int = 6) -> bytes:
    """Return the sketch as bytes; a lower level is quicker and larger."""
    body, lengths = [], []
    for name in ARRAYS:
        where, values = sketch._sparse(name)
        lengths.append(len(where))
        body += [where.tobytes(), values.tobytes()]
    shapes, more = state_of(sketch.parts)
    header = json.dumps(
        {
            "format": FORMAT,
            "spec": sketch.spec.to_dict(),
            "lengths": lengths,
            "rows_read": sketch.rows_read,
            "name": _plain(sketch.name),
            "files": [_plain(f) for f in sketch.files],
            "drop_missing": sketch.drop_missing,
            "parts": shapes,
        },
        sort_keys=True,
    ).encode()
    small = zlib.compress(b"".join([*body, more]), level)
    content = SIZES.pack(len(header), len(small)) + header + small
    return MAGIC + hashlib.sha256(content).digest() + content


def _plain(text: str) -> str:
    """Return text that UTF-8 can hold: a file's name need not be."""
    return text.encode("utf-8", "replace").decode()


def stored_sketch(path: Any) -> bytes:
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
    """Return how many bytes a file that begins so must have."""
    if first[: len(MAGIC)] != MAGIC:
        raise BadInput(FOREIGN)
    if len(first) < BEGIN:
        raise BadInput(CHANGED)
    return BEGIN + int(sum(SIZES.unpack_from(first, BEGIN - SIZES.size)))


def sketch_of_bytes(raw: bytes, make: type[Sketch]) -> Sketch:
    """Rebuild what `sketch_bytes` wrote; anything else is refused, before it can cost memory or time."""
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise BadInput(FOREIGN)
    view = memoryview(bytes(raw))
    content = view[len(MAGIC) + 32 :]
    sound = _size(bytes(view[:BEGIN])) == len(view)
    if not sound or hashlib.sha256(content).digest() != view[len(MAGIC) : len(MAGIC) + 32]:
        raise BadInput(CHANGED)
    head, _ = SIZES.unpack_from(content)
    header = _header(bytes(content[SIZES.size : SIZES.size + head]))
    spec = rebuilt(Spec, header["spec"], "spec")
    check_spec(spec)
    sketch = make(spec, header["drop_missing"])
    sketch.rows_read, sketch.name, sketch.files = header["rows_read"], header["name"], header["files"]
    body = _Body(content[SIZES.size + head :], _expected(sketch, header), len(view))
    for name, length in zip(ARRAYS, header["lengths"], strict=True):
        _fill(sketch._arrays[name].reshape(-1), body, length, name)
    load_state(sketch.parts, header["parts"], body.take)
    body.end()
    check_sums(sketch)
    return sketch


def _header(raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw.decode("utf-8"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise Damaged("the header", "is no JSON") from None
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise Damaged("the header", "has no format")
    if header["format"] != FORMAT:
        by = "a newer calibrant: upgrade this one" if header["format"] > FORMAT else "an older calibrant: make it again"
        raise BadInput(
            f"the sketch has format {str(header['format'])[:20]}, this version reads {FORMAT}; it is from {by}"
        )
    if header.keys() != HEADER.keys():
        raise Damaged("the header", "has other fields")
    return {k: header[k] if kind is Any else value(kind, header[k], f"header.{k}") for k, kind in HEADER.items()}


def _expected(sketch: Sketch, header: Mapping[str, Any]) -> int:
    """Return the bytes that the body must unpack to, from sizes that fit the spec."""
    for name, length in zip(ARRAYS, header["lengths"], strict=True):
        if not 0 <= length <= sketch._arrays[name].size:
            raise Damaged(f"the length of {name}", f"is {length}")
    return 16 * int(sum(header["lengths"])) + 8 * sum(_sizes(sketch.parts, header["parts"]))


def _sizes(parts: Mapping[str, Part], shapes: Any) -> Iterator[int]:
    if not isinstance(shapes, dict) or shapes.keys() != parts.keys():
        raise Damaged("the parts", "are not those of the spec")
    for name, part in parts.items():
        if not isinstance(shapes[name], dict):
            raise Damaged(f"part {name!r}", "is none")
        given = {k: value(tuple[int, ...], v, f"the shape of {k!r}") for k, v in shapes[name].items()}
        if not part.takes(given):
            raise Damaged(f"part {name!r}", "has shapes that are not those of the spec")
        yield from map(math.prod, given.values())


class _Body:
    """Whole numbers unpacked piece by piece, never more than expected."""

    def __init__(self, small: Any, expected: int, stored: int) -> None:
        if expected > FREE + RATIO * stored:
            raise Damaged("the header", f"claims {expected:,} bytes")
        self._unpack, self._small, self._at, self._tail = zlib.decompressobj(), small, 0, b""

    def take(self, size: int) -> Any:
        """Return the next whole numbers."""
        out = np.empty(8 * size, dtype=np.uint8)
        into, at = out.data, 0
        while at < len(into):
            piece = self._more(min(len(into) - at, STEP))
            if not piece:
                raise Damaged("the body", "is too short")
            into[at : at + len(piece)] = piece
            at += len(piece)
        return out.view("<i8")

    def _more(self, most: int) -> bytes:
        """Return up to `most` bytes, none if there are no more."""
        piece = b""
        while not piece and not self._unpack.eof:
            if not self._tail:
                self._tail = bytes(self._small[self._at : self._at + STEP])
                self._at += len(self._tail)
            over = not self._tail
            try:
                piece = self._unpack.decompress(self._tail, most)
            except zlib.error:
                raise Damaged("the body", "cannot be unpacked") from None
            self._tail = self._unpack.unconsumed_tail
            if over:
                break
        return piece

    def end(self) -> None:
        """Check that nothing is left."""
        if self._more(1) or not self._unpack.eof or self._unpack.unused_data or self._at < len(self._small):
            raise Damaged("the body", "is too long")


def _fill(flat: Any, body: _Body, length: int, name: str) -> None:
    """Put non-zero counts in their places, which increase."""
    places, last = [], -1
    for start in range(0, length, STEP // 8):
        where = body.take(min(STEP // 8, length - start))
        if where[0] <= last or where[-1] >= len(flat) or not (where[1:] > where[:-1]).all():
            raise Damaged(f"the places of {name}", "do not increase within the array")
        places.append(where)
        last = int(where[-1])
    for where in places:
        values = body.take(len(where))
        if not values.all():
            raise Damaged(f"the values of {name}", "hold a zero")
        flat[where] = values
