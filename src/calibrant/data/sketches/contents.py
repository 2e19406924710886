"""What the rows hold, as hashes: repeated rows are counted by them, and the same rows are known in another sketch.

A row's content is its score, its label, the covariates and groups as the spec codes them, its unit, its weight, and its
key. Kept are the smallest hashes of different contents (Bar-Yossef et al., RANDOM 2002), with the rows that have each:
all of them where there are fewer than `KEPT`, otherwise a uniform sample of the contents, the same however the rows
were split, ordered or spread. A file's rows are known by how many they are and the sum of their hashes, in whatever
order.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.columns import Ids
from calibrant.data.reading import Reading
from calibrant.data.sources.source import Source
from calibrant.data.specs.coding import Rows, by_kind
from calibrant.data.specs.sketch_file import Integers, need
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.contents import FIELDS, TAG_BITS, count, fold, tags_of, total

KEPT = 1 << 14  # different contents, and keys
PLACES = 4 * KEPT  # of the table: half full it holds twice as many as are kept
MOST_FILES = 1 << 12  # whose rows are known apart
WORD, TAG, ZEROS, ONES = range(4)  # the columns of a line
MASK = 2**64 - 1
ALL = np.uint64(MASK)
KEY_SALT = np.uint64(0x3D4D51C2D82B14B1)  # any number, so that keys kept are others than rows sampled


class Smallest:
    """Rows counted by their hash, for the smallest hashes; a line each: hash, tag, rows with label 0, with label 1."""

    def __init__(self) -> None:
        self._settled: Integers = np.zeros((0, FIELDS), dtype=np.int64)
        self._table = np.zeros((PLACES + 1, FIELDS), dtype=np.uint64)
        self._limit = ALL

    def add(self, words: Ids, tags: Ids, y: NDArray[np.int8]) -> None:
        """Count rows."""
        start = 0
        while start < len(words):
            rows = slice(start, None)
            start += count(words[rows], tags[rows], y[rows], self._limit, self._table)
            if start < len(words):
                self._settle()

    @property
    def lines(self) -> Integers:
        """The lines, by increasing hash; hashes are read as unsigned."""
        if self._table[-1, 0]:
            self._settle()
        return self._settled

    @property
    def whole(self) -> bool:
        """Nothing was left out."""
        return len(self.lines) < KEPT

    @property
    def limit(self) -> int:
        """The largest hash up to which nothing was left out."""
        return MASK if self.whole else int(self._limit)

    @property
    def share(self) -> float:
        """Share of all different contents that is kept, about."""
        return (self.limit + 1.0) / 2.0**64

    def _settle(self) -> None:
        """Empty the table; what is larger than the smallest need not be looked at any more."""
        kept = self._table[:-1]
        self.merge(kept[kept[:, WORD] != 0].view(np.int64))
        self._table[:] = 0

    def merge(self, lines: Integers) -> None:
        """Add lines of other rows."""
        both = np.concatenate([self._settled, lines]) if len(self._settled) else lines
        both = both[np.argsort(both[:, WORD].view(np.uint64))]  # equal hashes have equal tags, and counts add up
        new = np.ones(len(both), dtype=np.bool_)
        np.not_equal(both[1:, WORD], both[:-1, WORD], out=new[1:])
        out = both
        if not new.all():
            first = np.flatnonzero(new)
            out = both[first]
            out[:, ZEROS:] = np.add.reduceat(both[:, ZEROS:], first, axis=0)
        self.load(out[:KEPT])

    def load(self, lines: Integers) -> None:
        """Take over lines."""
        self._settled = lines
        if len(lines) == KEPT:
            self._limit = lines[-1:, WORD].view(np.uint64)[0]


class Contents:
    """Rows by content, by key, and by file."""

    def __init__(self, spec: Spec) -> None:
        self.keyed, self._levels = bool(spec.key), len(by_kind(spec.codings)[1])
        self.rows, self.keys = Smallest(), Smallest()
        self.n, self.total = 0, 0  # rows, and the sum of their hashes modulo 2^64
        self.files: dict[int, tuple[int, int]] = {}  # the same by the hash of the file's name

    def update(self, rows: Rows) -> None:
        """Add rows."""
        tags = tags_of(rows.p)
        words = tags.copy()
        row_attributes = (column for column in (rows.clusters, rows.weights) if column is not None)
        for column in (
            *rows.encoded.numbers.T,
            *rows.encoded.codes[:, : self._levels].T,
            *rows.groups,
            *row_attributes,
        ):
            fold(words, column)
        if rows.keys is not None:
            fold(words, rows.keys)
            keys = np.full(len(words), KEY_SALT)
            fold(keys, rows.keys)
            self.keys.add(keys, np.zeros_like(tags), np.zeros_like(rows.y))
        self.rows.add(words, tags, rows.y)
        self._know(hash_of(rows.part), len(words), total(words, rows.y))

    def _know(self, file: int, rows: int, own: int) -> None:
        """Note rows of a file, and the sum of their hashes."""
        known = self.files.get(file, (0, 0))
        self.files[file] = known[0] + rows, (known[1] + own) & MASK
        self.n, self.total = self.n + rows, (self.total + own) & MASK
        if len(self.files) > 2 * MOST_FILES:
            self._forget()

    def _forget(self) -> None:
        """Know apart only the files whose names have the smallest hashes."""
        self.files = {file: self.files[file] for file in sorted(self.files)[:MOST_FILES]}

    def merge(self, other: Contents) -> None:
        """Add the rows of another part."""
        self.rows.merge(other.rows.lines)
        self.keys.merge(other.keys.lines)
        both = self.n + other.n, (self.total + other.total) & MASK
        for file, (rows, own) in other.files.items():
            self._know(file, rows, own)
        self.n, self.total = both

    def name(self, file: str) -> None:
        """Let all rows be those of one file; the name is empty where they are of none, or of a file read alone."""
        self.files = {hash_of(file): (self.n, self.total)} if self.n else {}

    def named(self, files: tuple[str, ...]) -> Contents:
        """These contents, known by the name of the file that was read alone, so that it can stand next to another."""
        if len(files) != 1 or self.files.keys() != {hash_of("")}:
            return self
        out = copy(self)
        out.name(files[0])
        return out

    # ---- bytes ----

    def arrays(self) -> dict[str, Integers]:
        """The state."""
        self._forget()
        files = np.array([(file, *self.files[file]) for file in sorted(self.files)], dtype=np.uint64)
        return {
            "rows": self.rows.lines,
            "keys": self.keys.lines,
            "files": files.reshape(-1, 3).view(np.int64),
            "total": np.array([self.n, self.total], dtype=np.uint64).view(np.int64),
        }

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be this part's state."""
        most = {"rows": (KEPT, FIELDS), "keys": (KEPT, FIELDS), "files": (MOST_FILES, 3)}
        others = {name: shape for name, shape in shapes.items() if name != "total"}
        sound = all(len(q) == 2 and q[0] <= most[k][0] and q[1] == most[k][1] for k, q in others.items() if k in most)
        return others.keys() == most.keys() and sound and shapes.get("total") == (2,)

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the state that `arrays` described."""
        self.rows.load(arrays["rows"])
        self.keys.load(arrays["keys"])
        self.files = {file: (rows, own) for file, rows, own in arrays["files"].view(np.uint64).tolist()}
        self.n, self.total = arrays["total"].view(np.uint64).tolist()

    def check(self, n: int, events: int) -> None:
        """Refuse stored contents that so many rows cannot have."""
        need(self.n == n, "the contents", "are of another number of rows")
        for name, kept, ones in (("contents", self.rows, events), ("keys", self.keys, 0)):
            lines, where = kept.lines, f"the {name}"
            words, counts = lines[:, WORD].view(np.uint64), lines[:, ZEROS:]
            need((words[1:] > words[:-1]).all() and (words > 0).all(), where, "are out of order")
            need(((counts >= 0) & (counts <= n)).all() and (counts.any(axis=1)).all(), where, "have impossible counts")
            here = counts.sum(axis=0, dtype=np.float64)
            most = np.array([n - ones, ones])
            complete = kept.whole and (name == "contents" or self.keyed)
            need((here <= most).all() and (not complete or (here == most).all()), where, "do not add up")
            need(name == "contents" or self.keyed or not len(lines), where, "are of no column")
        rows = [rows for rows, _ in self.files.values()]
        own = (min(rows, default=1) > 0) and (sum(rows) == n if len(rows) < MOST_FILES else sum(rows) <= n)
        whole = len(rows) == MOST_FILES or sum(own for _, own in self.files.values()) & MASK == self.total
        need(own and whole, "the files", "do not add up")


def hash_of(file: str) -> int:
    """The number by which a file is known."""
    return int.from_bytes(hashlib.sha256(file.encode("utf-8", "surrogatepass")).digest()[:8], "little")


# ---- whether rows occur more than once because they were copied, or by chance, in one sketch or in two ----
# Rows may be equal by chance: a log of rounded scores and few columns repeats itself all day. What is copied differs
# from that in two ways, and both are asked for. Its score, compared in full, is hardly shared with any row of other
# content. And its labels agree, where those of two people with the same score and columns would differ in 2 r (1 - r)
# of the pairs, r being the rate of events among rows of about that score. Whether the scores are right plays no part.


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
# Equal rows for each pair that is alike in all columns, by which scores may follow from the columns.
SAME_VARIANCE = 0.05, 5.0
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
    """What two sketches both hold, in words; empty if nothing, or no more than chance explains.

    `names` are of the files that they were made of; `pair_share` as `_Twins` has it.
    """
    if (a.n, a.total) == (b.n, b.total):
        return f"hold the same {a.n:,} rows"
    by_hash = {hash_of(name): name for name in names}
    known = {digest: file for file, digest in a.files.items()}
    for file, (rows, own) in b.files.items():
        if (rows, own) in known and max(_by_chance(c, rows) for c in (a, b)) * len(known) * len(b.files) < CHANCE:
            return f"both hold the {rows:,} rows of {by_hash.get(file, 'one file')}"
    common = _shared(a, b, pair_share)
    return f"have {'' if a.rows.whole and b.rows.whole else 'about '}{common:,} rows in common" if common else ""


def _shared(a: Contents, b: Contents, pair_share: Chance) -> int:
    """How many rows two sketches have in common; 0 if it is a small share, or not more than chance."""
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
    """Two files that hold the same rows, and how many; None if there are none, or if it may be chance."""
    known: dict[tuple[int, int], list[int]] = defaultdict(list)
    for file, digest in contents.files.items():
        known[digest].append(file)
    by_hash = {hash_of(name): name for name in names}
    for (rows, _), files in known.items():
        if len(files) > 1 and _by_chance(contents, rows) * len(contents.files) ** 2 < CHANCE:
            first, second = sorted(by_hash.get(file, "a file") for file in files)[:2]
            return first, second, rows
    return None


def each_once(contents: Contents, opened: Source, options: Reading) -> None:
    """Refuse two files of the same rows, unless that is meant."""
    names = {part.name for part in opened.parts}
    twice = None if options.allow_same else same_files(contents, names)
    if twice is not None:
        first, second, rows = twice
        raise BadInput(
            f"{first} and {second} hold the same {rows:,} rows, which would count twice: leave one out, or pass "
            f"{options.caller.turns_on('allow_same')} if that is meant"
        )


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
