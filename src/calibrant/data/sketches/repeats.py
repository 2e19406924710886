"""Whether rows occur more than once because they were copied, or by chance, in one sketch or in two.

Rows may be equal by chance: a log of rounded scores and few columns repeats itself all day. What is copied differs from
that in two ways, and both are asked for. Its score, compared in full, is hardly shared with any row of other content.
And its labels agree, where those of two people with the same score and columns would differ in ``2 r (1 - r)`` of the
pairs, r being the rate of cases among rows of about that score. Whether the scores are right plays no part.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketches.contents import ONES, TAG, WORD, ZEROS, Contents, Smallest, hash_of
from calibrant.data.specs.sketch_file import Integers
from calibrant.kernels.contents import TAG_BITS

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

LEAST = 0.001  # share of repeated rows from which on they are worth a warning
OVERLAP = 0.1  # share of the smaller sketch's rows that are in the other from which on the two are not added up
SHARED = 10  # other contents with one score: more than chance leaves of scores that are practically continuous
BIN = 20  # contents whose labels give a rate, at least
BINS = 50
SPEAKING = 3.0  # expected contradictions of labels from which on their absence says something: exp(-3) = 0.05
TELLING = 2  # columns beside the score that must agree where labels say nothing
SURELY = 20  # different rows that all occur g times, or 2 g, 3 g, ...: chance has it in one of 2^20
CHANCE = 1e-6  # that two files of independent rows are equal


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeats:
    """Rows that occur more than once.

    Parameters
    ----------
    rows : int
        Rows that are equal to an earlier one: five copies are four repeats.
    of : int
        Rows in all.
    exact : bool
        Counted; otherwise estimated from 16,384 hashes of different rows, so say "about".
    by : {"row", "key"}
        What is equal: every column that is read, as it is counted, or the key.
    copied : bool
        More than chance explains: worth a warning. A repeated key always is.
    """

    rows: int
    of: int
    exact: bool
    by: Literal["row", "key"]
    copied: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def repeats_of(contents: Contents) -> Repeats:
    """Return the rows that occur more than once, by key if there is one."""
    keyed = contents.keyed
    held = contents.keys if keyed else contents.rows
    counts = held.lines[:, ZEROS:]
    here, more = int(counts.sum()), int((counts - 1).clip(min=0).sum())
    exact = held.whole
    rows = more if exact else round(contents.n * more / max(here, 1))
    copied = rows > 0 if keyed else rows >= LEAST * contents.n and _copied(held, contents.columns)
    return Repeats(rows=rows, of=contents.n, exact=exact, by="key" if keyed else "row", copied=copied)


def _copied(held: Smallest, columns: int) -> bool:
    """Tell whether the rows of one table that repeat others are copies, most of them."""
    lines = held.lines
    counts = lines[:, ZEROS:]
    if np.count_nonzero(counts) >= SURELY and np.gcd.reduce(counts, axis=None) > 1:
        return True
    n, ones = counts.sum(axis=1), counts[:, 1]
    twins = n > 1
    differ = 2.0 * ones * (n - ones) / np.maximum(n * (n - 1), 1)
    return bool(twins.any()) and _more_than_chance(lines, held.share, twins, differ, columns)


def _more_than_chance(lines: Integers, share: float, twins: Flags, differ: Floats, columns: int) -> bool:
    """Tell whether contents that occur more than once do so because rows were copied.

    Parameters
    ----------
    lines : int64 array of shape (d, 4)
        Different contents, each once.
    share : float
        Of all contents that these are.
    twins : bool array of shape (d,)
        Which of them to judge.
    differ : float64 array of shape (d,)
        Share of their pairs of rows whose labels differ.
    columns : int
        Read beside the score.
    """
    # (1) only contents whose score is not evidently that of many others
    _, same, sizes = np.unique(lines[:, TAG], return_inverse=True, return_counts=True)
    others = sizes[same.reshape(-1)] - 1
    alone = twins & (others < SHARED)
    if not alone.any() or others[alone].mean() / share > 1.0:
        return False
    # (2) two people would differ in their labels as often as others of about their score
    rate = _rates(lines)
    expected = float((2.0 * rate * (1.0 - rate))[alone].sum())
    if expected < SPEAKING and columns < TELLING:
        return False
    return float(differ[alone].sum()) <= max(expected / 2.0 - 1.0, 0.0)


def _rates(lines: Integers) -> Floats:
    """Return the rate of cases among contents of about the same score, each content once however often it occurs."""
    cell = lines[:, TAG] & ((1 << TAG_BITS) - 1)
    bins = min(max(len(lines) // BIN, 1), BINS)
    order = np.argsort(cell, kind="stable")
    at = np.empty(len(lines), dtype=np.intp)
    at[order] = np.arange(len(lines)) * bins // len(lines)
    own = lines[:, ONES] / lines[:, ZEROS:].sum(axis=1)
    rates: Floats = (np.bincount(at, own, bins) / np.bincount(at, minlength=bins))[at]
    return rates


# ---- two sketches ----


def in_both(a: Contents, b: Contents, names: Iterable[str]) -> str:
    """Return what two sketches both hold, in words; empty if nothing, or no more than chance explains.

    `names` are of the files that they were made of.
    """
    if (a.n, a.total) == (b.n, b.total):
        return f"hold the same {a.n:,} rows"
    by_hash = {hash_of(name): name for name in names}
    known = {digest: file for file, digest in a.files.items()}
    for file, (rows, total) in b.files.items():
        if (rows, total) in known and max(_by_chance(c, rows) for c in (a, b)) * len(known) * len(b.files) < CHANCE:
            return f"both hold the {rows:,} rows of {by_hash.get(file, 'one file')}"
    common = _shared(a, b)
    return f"have {'' if a.rows.whole and b.rows.whole else 'about '}{common:,} rows in common" if common else ""


def _shared(a: Contents, b: Contents) -> int:
    """Return how many rows two sketches have in common; 0 if it is a small share, or not more than chance."""
    limit = min(a.rows.limit, b.rows.limit)
    mine, theirs = (c.rows.lines[c.rows.lines[:, WORD].view(np.uint64) <= np.uint64(limit)] for c in (a, b))
    own, other = (q[:, WORD].view(np.uint64) for q in (mine, theirs))
    _, i, j = np.intersect1d(own, other, assume_unique=True, return_indices=True)
    mine_too, theirs_too = mine[i], theirs[j]
    common = int(np.minimum(mine_too[:, ZEROS:], theirs_too[:, ZEROS:]).sum())
    least = min(int(q[:, ZEROS:].sum()) for q in (mine, theirs))
    if common < max(OVERLAP * least, 1):
        return 0
    alone = np.isin(other, own, invert=True)
    lines = np.concatenate([mine, theirs[alone]])
    twins, differ = np.zeros(len(lines), dtype=np.bool_), np.zeros(len(lines))
    p, q = (one[:, ONES] / one[:, ZEROS:].sum(axis=1) for one in (mine_too, theirs_too))
    twins[i], differ[i] = True, p * (1.0 - q) + q * (1.0 - p)
    share = (limit + 1.0) / 2.0**64
    return round(common / share) if _more_than_chance(lines, share, twins, differ, a.columns) else 0


# ---- files ----


def same_files(contents: Contents, names: Iterable[str]) -> tuple[str, str, int] | None:
    """Return two files that hold the same rows, and how many; None if there are none, or if it may be chance."""
    known: dict[tuple[int, int], list[int]] = defaultdict(list)
    for file, digest in contents.files.items():
        known[digest].append(file)
    by_hash = {hash_of(name): name for name in names}
    for (rows, _), files in known.items():
        if len(files) > 1 and _by_chance(contents, rows) * len(contents.files) ** 2 < CHANCE:
            first, second = sorted(by_hash.get(file, "a file") for file in files)[:2]
            return first, second, rows
    return None


def _by_chance(contents: Contents, rows: int) -> float:
    """Return an upper bound of the chance that two files of so many rows, drawn independently, are equal.

    Two rows are equal with probability c, the share of equal pairs. So the rows of two files of m rows are equal, in
    one of their m! orders, with probability m! c^m at most; and the chance falls with m, for it is the one of a
    symmetric random walk to be back where it began after m steps.
    """
    held = contents.rows
    counts = held.lines[:, ZEROS:].astype(np.float64)
    pairs = float((counts * (counts - 1.0)).sum()) / held.share
    equal = min(max(pairs, 1.0) / max(contents.n * (contents.n - 1.0), 1.0), 1.0)
    m = min(max(int(1.0 / equal), 1), rows)  # where m! c^m is least
    return math.exp(min(math.lgamma(m + 1.0) + m * math.log(equal), 0.0))
