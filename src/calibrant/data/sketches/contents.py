"""What the rows hold, as hashes: repeated rows are counted by them, and the same rows are known in another sketch.

A row's content is its score, its label, the covariates and groups as the spec codes them, its unit, its weight, and its
key. Kept are the smallest hashes of different contents (Bar-Yossef et al., RANDOM 2002), with the rows that have each:
all of them where there are fewer than `KEPT`, otherwise a uniform sample of the contents, the same however the rows
were split, ordered or spread. A file's rows are known by how many they are and the sum of their hashes, in whatever
order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import copy

import numpy as np
from numpy.typing import NDArray

from calibrant.data.columns import Ids
from calibrant.data.specs.coding import Rows, by_kind
from calibrant.data.specs.sketch_file import Integers, need
from calibrant.data.specs.spec import Spec
from calibrant.kernels.contents import FIELDS, count, fold, tags_of, total

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
        """Return this, known by the name of the file that was read alone, so that it can stand next to another."""
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
