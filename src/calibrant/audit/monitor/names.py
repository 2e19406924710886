"""Names of rows whose day has closed: no later row may have one of them, or outcomes of the old row become its label.

A name is kept as a hash of eight bytes, forever, since a file of outcomes may bring those of any age. The hashes of a
day are a file in order, ``entered/FIRST-LAST.names``; of two neighbours of about one size one is made, up to a size
that fits in memory, so that there are few files to search. A file is written whole before the ones it replaces are
removed: whoever is ended in between leaves names twice, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.columns import text_hashes
from calibrant.data.targets import remove, temporary

Hashes = NDArray[np.uint64]

ENTERED, ENDING = "entered", ".names"
SEED = 44  # of the hash: as kept in files, and never to change
MOST = 2**24  # hashes in one file: 128 megabytes


class Part(NamedTuple):
    """A file with the names of some days."""

    first: int
    last: int
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size // 8

    def read(self) -> Hashes:
        return np.fromfile(self.path, dtype="<u8").astype(np.uint64, copy=False)


def hashed(names: pa.ChunkedArray) -> Hashes:
    """The hashes of some names, in their order."""
    chunks = names.cast(pa.large_string()).chunks
    return np.concatenate([np.zeros(0, dtype=np.uint64), *(text_hashes(c, SEED) for c in chunks)])


def keep(folder: Path, day: int, names: pa.ChunkedArray) -> None:
    """Keep the names of a day; those of a day that is kept already stay as they are."""
    (folder / ENTERED).mkdir(exist_ok=True)
    parts = list(_parts(folder))
    if not any(p.first <= day <= p.last for p in parts):
        parts.append(_written(folder, day, day, np.unique(hashed(names))))
    while len(parts) > 1 and parts[-2].size < 2 * parts[-1].size and parts[-2].size + parts[-1].size <= MOST:
        *parts, old, new = parts
        both = np.sort(np.concatenate([old.read(), new.read()]), kind="stable")
        parts.append(_written(folder, old.first, new.last, both))
        remove(old.path)
        remove(new.path)


def entered(folder: Path, names: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which of some names are those of rows whose day has closed, up to chance of a hash: shape (n,)."""
    own = hashed(names)
    there = np.zeros(len(own), dtype=bool)
    for part in _parts(folder):
        kept = part.read()
        there |= kept[np.minimum(np.searchsorted(kept, own), len(kept) - 1)] == own
    return there


def _written(folder: Path, first: int, last: int, hashes: Hashes) -> Part:
    part = Part(first, last, folder / ENTERED / f"{first}-{last}{ENDING}")
    with temporary(part.path) as unfinished:
        hashes.astype("<u8").tofile(unfinished)
    return part


def _parts(folder: Path) -> Iterator[Part]:
    """The files, oldest first, without those that a larger one has replaced."""
    days = {p: p.stem.split("-") for p in (folder / ENTERED).glob(f"[0-9]*-[0-9]*{ENDING}")}
    there = [Part(int(first), int(last), p) for p, (first, last) in days.items()]
    latest = -1
    for part in sorted(there, key=lambda p: (p.first, -p.last)):
        if part.last > latest:
            yield part
            latest = part.last
        else:
            remove(part.path)
