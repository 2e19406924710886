"""Sketch files, added up; the same rows do not count twice unless somebody means it."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.sketch_file import stored_sketch
from calibrant.errors import BadInput


def merged(files: Sequence[str], allow_same: bool = False) -> Sketch:
    """Return the sum of sketch files; refuse two that hold the same rows, or some of them, and name both."""
    whole = _read(files[0])
    known = {whole.fingerprint: files[0]}
    for k, file in enumerate(files[1:], 1):
        one = _read(file)
        if not allow_same:
            # the sum is asked first, and each sketch in it only once it is known that there is something to tell
            twin = known.setdefault(one.fingerprint, file)
            if twin != file or file in files[:k]:
                _refuse(twin, file, f"hold the same {one.n:,} rows")
            if why := whole.shares(one):
                each = ((before, _read(before).shares(one)) for before in files[:k])
                _refuse(*next(((before, file, own) for before, own in each if own), ("the others", file, why)))
        try:
            whole.add(one)
        except BadInput as e:
            raise BadInput(f"{file}: {e}") from None
    return whole


def _read(file: str) -> Sketch:
    try:
        return Sketch.from_bytes(stored_sketch(file))
    except BadInput as e:
        raise BadInput(f"{file}: {e}") from None


def _refuse(first: str, second: str, why: str) -> None:
    raise BadInput(
        f"{first} and {second} {why}, which would count twice: leave one out, or pass --allow-same if that is meant"
    )
