"""What rows hold, hashed and counted one by one in plain Python."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

ALL = 2**64 - 1


def mix(x: int) -> int:
    """SplitMix64's finaliser, in whole numbers of any size."""
    z = (x + 0x9E3779B97F4A7C15) & ALL
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL
    return z ^ (z >> 31)


def plain(x: float) -> int:
    """Bits of a double: one zero, one NaN."""
    if x == 0.0:
        return 0
    return 0x7FF8 << 48 if x != x else int(struct.unpack("<Q", struct.pack("<d", x))[0])


def tags_of(p: Any) -> list[int]:
    """Hash of the score, its cell in the ten lowest bits."""
    return [(mix(plain(x)) & ~1023) | min(int(x * 1024), 1023) for x in np.asarray(p).tolist()]


def fold(words: list[int], column: Any) -> list[int]:
    """One column more."""
    values = np.asarray(column)
    bits = [plain(v) if values.dtype == np.float64 else v for v in values.tolist()]
    return [mix(w ^ b) for w, b in zip(words, bits, strict=True)]


def total(words: list[int], y: Any) -> int:
    """The sum of all rows, those with label 1 three times."""
    return sum(w * (1 + 2 * label) for w, label in zip(words, np.asarray(y).tolist(), strict=True)) & ALL


def count(words: list[int], tags: list[int], y: Any, limit: int) -> dict[int, list[int]]:
    """Rows of each word up to the limit: its tag, rows with label 0, with label 1."""
    held: dict[int, list[int]] = {}
    for w, t, label in zip(words, tags, np.asarray(y).tolist(), strict=True):
        if w <= limit:
            held.setdefault(max(w, 1), [t, 0, 0])[1 + label] += 1
    return held
