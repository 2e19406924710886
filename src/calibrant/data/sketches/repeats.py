"""Whether rows occur more than once because they were copied, or by chance, in one sketch or in two.

Rows may be equal by chance: a log of rounded scores and few columns repeats itself all day. What is copied differs from
that in two ways, and both are asked for. Its score, compared in full, is hardly shared with any row of other content.
And its labels agree, where those of two people with the same score and columns would differ in ``2 r (1 - r)`` of the
pairs, r being the rate of events among rows of about that score. Whether the scores are right plays no part.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketches.contents import ONES, TAG, WORD, ZEROS, Contents, hash_of
from calibrant.data.specs.sketch_file import Integers
from calibrant.kernels.contents import TAG_BITS

Floats = NDArray[np.float64]

LEAST = 0.001  # share of repeated rows from which on they are worth a warning
OVERLAP = 0.1  # share of the smaller sketch's rows that are in the other from which on the two are not added up
SHARED = 10  # other contents with one score: more than chance leaves of scores that are practically continuous
BIN = 20  # contents whose labels give a rate, at least
BINS = 50
SPEAKING = 3.0  # expected contradictions of labels from which on their absence says something: exp(-3) = 0.05
FINE = 0.005  # share of pairs alike in a column, up to which it is practically continuous: whole years of age are not
RARE = 5.0  # equal rows for each that such a column would leave, were it independent of the score
MANY = 10.0  # contradictions expected then, of which a quarter or fewer is no chance: one in 370 for Poisson counts
SAME_VARIANCE = (
    0.05,
    5.0,
)  # equal rows for each pair that is alike in all columns, by which scores may follow from the columns
SURELY = 20  # different rows that all occur g times, or 2 g, 3 g, ...: chance has it in one of 2^20
CHANCE = 1e-6  # that two files of independent rows are equal


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeats:
    """Rows that occur more than once."""

    rows: int  # rows that are equal to an earlier one: five copies are four repeats
    of: int  # rows in all
    exact: bool  # counted; otherwise estimated from 16,384 hashes of different rows, so say "about"
    by: Literal["row", "key"]  # what is equal: every column that is read, as it is counted, or the key
    # More than chance explains: worth a warning. A repeated key always is.
    copied: bool
    # How often a row's own content is there, on average over rows: 1 where all differ, 5 where each is there five
    # times. So many times the variance of a mean is what it is interpreted as, if equal rows are copies.
    times: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


class Chance(NamedTuple):
    """Share of the pairs of rows that are alike: in every column, were these independent, and in the finest one."""

    every: float
    finest: float


UNKNOWN = Chance(1.0, 1.0)  # of rows whose columns are not compared


@dataclass(frozen=True, kw_only=True)
class _Twins:
    """Contents that occur more than once."""

    lines: Integers  # shape (d, 4): different contents, those that occur once among them
    share: float  # of all contents that these are
    # `pairs` and `differ`, shape (d,): pairs of rows with this content, and the share of them whose labels differ.
    pairs: Floats
    differ: Floats
    of: float  # pairs of rows in all
    pair_share: Chance  # share of them that are alike by chance in columns but score and label


def repeats_of(contents: Contents, pair_share: Chance) -> Repeats:
    """The rows that occur more than once, by key if there is one; `pair_share` as `_Twins` has it."""
    keyed = contents.keyed
    kept = contents.keys if keyed else contents.rows
    counts = kept.lines[:, ZEROS:]
    here, more = int(counts.sum()), int((counts - 1).clip(min=0).sum())
    rows = more if kept.whole else round(contents.n * more / max(here, 1))
    copied = rows > 0 if keyed else rows >= max(LEAST * contents.n, 1) and _copied(contents, pair_share)
    by: Literal["row", "key"] = "key" if keyed else "row"
    each = contents.rows.lines[:, ZEROS:].sum(axis=1).astype(np.float64)  # of contents, a uniform sample
    times = float((each**2).sum() / each.sum()) if len(each) else 1.0
    return Repeats(rows=rows, of=contents.n, exact=kept.whole, by=by, copied=copied, times=times)


def _copied(contents: Contents, pair_share: Chance) -> bool:
    """Whether the rows that repeat others are copies, most of them."""
    lines = contents.rows.lines
    counts = lines[:, ZEROS:]
    if np.count_nonzero(counts) >= SURELY and np.gcd.reduce(counts, axis=None) > 1:
        return True
    n, ones = counts.sum(axis=1).astype(np.float64), counts[:, 1]
    pairs, of = n * (n - 1.0) / 2.0, contents.n * (contents.n - 1.0) / 2.0
    differ = ones * (n - ones) / np.maximum(pairs, 1.0)
    share = contents.rows.share
    return _more_than_chance(_Twins(lines=lines, share=share, pairs=pairs, differ=differ, of=of, pair_share=pair_share))


def _more_than_chance(t: _Twins) -> bool:
    """Whether contents occur more than once because rows were copied."""
    _, same, sizes = np.unique(t.lines[:, TAG], return_inverse=True, return_counts=True)
    same = same.reshape(-1)
    equal = float(t.pairs.sum()) / t.share
    of_score = np.bincount(same, t.lines[:, ZEROS:].sum(axis=1))
    by_chance = t.pair_share.finest * float((of_score**2).sum()) / 2.0 / t.share**2  # equal rows
    rate = _rates(t.lines)
    differing = 2.0 * rate * (1.0 - rate)  # of two people with about that score, whose labels are not the same
    # (0) rounded scores are shared by many, but rows that are equal in a continuous column too are not
    expected = float(differing[t.pairs > 0].sum())
    rare = t.pair_share.finest <= FINE and equal >= RARE * by_chance
    if rare and expected >= MANY and float(t.differ.sum()) <= expected / 4.0:
        return True
    # (1) only contents whose score is not evidently that of many others
    others = sizes[same] - 1
    alone = (t.pairs > 0) & (others < SHARED)
    if not alone.any() or others[alone].mean() / t.share > 1.0:
        return False
    # (2) two people would differ in their labels as often as others of about their score
    expected = float(differing[alone].sum())
    if float(t.differ[alone].sum()) > max(expected / 2.0 - 1.0, 0.0):
        return False
    if expected >= SPEAKING:
        return True
    # (3) where labels say nothing: pairs with one score but different columns are what chance makes of rounded scores,
    # and about as many equal rows as rows with the same columns what it makes of scores that follow from the columns
    at_odds = float((sizes * (sizes - 1.0)).sum()) / 2.0 / t.share**2
    low, high = SAME_VARIANCE
    follows = low * equal <= t.pair_share.every * t.of <= high * equal
    return at_odds < min(0.1 * (1.0 / t.pair_share.every - 1.0), 1.0) * equal and not follows


def _rates(lines: Integers) -> Floats:
    """The rate of events among contents of about the same score, each content once however often it occurs."""
    cell = lines[:, TAG] & ((1 << TAG_BITS) - 1)
    bins = min(max(len(lines) // BIN, 1), BINS)
    order = np.argsort(cell, kind="stable")
    at = np.empty(len(lines), dtype=np.intp)
    at[order] = np.arange(len(lines)) * bins // len(lines)
    own = lines[:, ONES] / lines[:, ZEROS:].sum(axis=1)
    rates: Floats = (np.bincount(at, own, bins) / np.bincount(at, minlength=bins))[at]
    return rates


# ---- two sketches ----


def in_both(a: Contents, b: Contents, names: Iterable[str], pair_share: Chance) -> str:
    """Return what two sketches both hold, in words; empty if nothing, or no more than chance explains.

    `names` are of the files that they were made of; `pair_share` as `_Twins` has it.
    """
    if (a.n, a.total) == (b.n, b.total):
        return f"hold the same {a.n:,} rows"
    by_hash = {hash_of(name): name for name in names}
    known = {digest: file for file, digest in a.files.items()}
    for file, (rows, total) in b.files.items():
        if (rows, total) in known and max(_by_chance(c, rows) for c in (a, b)) * len(known) * len(b.files) < CHANCE:
            return f"both hold the {rows:,} rows of {by_hash.get(file, 'one file')}"
    common = _shared(a, b, pair_share)
    return f"have {'' if a.rows.whole and b.rows.whole else 'about '}{common:,} rows in common" if common else ""


def _shared(a: Contents, b: Contents, pair_share: Chance) -> int:
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
    (m, p), (n, q) = ((one[:, ZEROS:].sum(axis=1), one[:, ONES]) for one in (mine_too, theirs_too))
    pairs, differ = np.zeros((2, len(lines)))
    pairs[i], differ[i] = m * n, (p * (n - q) + q * (m - p)) / (m * n)
    share, of = (limit + 1.0) / 2.0**64, float(a.n) * b.n
    twins = _Twins(lines=lines, share=share, pairs=pairs, differ=differ, of=of, pair_share=pair_share)
    return round(common / share) if _more_than_chance(twins) else 0


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
    """An upper bound of the chance that two files of so many rows, drawn independently, are equal.

    Two rows are equal with probability c, the share of equal pairs. So the rows of two files of m rows are equal, in
    one of their m! orders, with probability m! c^m at most; and the chance falls with m, for it is the one of a
    symmetric random walk to be back where it began after m steps.
    """
    kept = contents.rows
    counts = kept.lines[:, ZEROS:].astype(np.float64)
    pairs = float((counts * (counts - 1.0)).sum()) / kept.share
    equal = min(max(pairs, 1.0) / max(contents.n * (contents.n - 1.0), 1.0), 1.0)
    m = min(max(int(1.0 / equal), 1), rows)  # where m! c^m is least
    return math.exp(min(math.lgamma(m + 1.0) + m * math.log(equal), 0.0))
