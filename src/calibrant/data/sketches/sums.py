"""Whole numbers that add up: rows by score, those without a label too, and sums in the cells of attributes.

Scores are counted as they are where they are few, by label, in everyone and in each group. A score of whole percentages
takes 101 values, one of a points table a few dozen. Then nothing need be rounded: what is certified is the raw score.
Beyond `MOST` values nothing is kept, whatever comes after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.columns import Floats
from calibrant.data.specs.attributes import Attribute, Cells, cells_of
from calibrant.data.specs.coding import Rows
from calibrant.data.specs.sketch_file import Integers, Sums, need, nonzero
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.boxes import SUMS, box_sums
from calibrant.kernels.tally import CELL_BITS, GROUP_BITS, MOST, SCORE_BITS, Table, count_numbers, numbers_of

STEPS = float(1 << SCORE_BITS)  # a score is a whole number of these parts of 1
REST = SCORE_BITS - CELL_BITS  # bits of a score within its cell


class Values:
    """Int64 rows by label of each different score ``q = min(floor(p 2^30), 2^30 - 1)``, at most 1,024 of them.

    Whether scores are too many depends on all of them together and not on their order: a union beyond the limit stays
    beyond it.
    """

    def __init__(self, spec: Spec) -> None:
        self._sizes, self._groups = spec.sizes, spec.group_count
        self._bases = np.cumsum([0, *spec.sizes], dtype=np.int64)[:-1]
        self._table: Table | None = Table.empty(self._groups)

    @property
    def many(self) -> bool:
        """The score takes more values than are kept."""
        return self._table is None

    def update(self, rows: Rows) -> None:
        """Add rows."""
        if self._table is None:
            return
        numbers = numbers_of(rows.p, self._table)
        if (numbers < 0).any():
            self._table = None
        else:
            count_numbers(numbers, rows.y, rows.stacked, self._bases, self._table.counts)

    def merge(self, other: Self) -> None:
        """Add the counts of another part of the same spec."""
        if self._table is None or other._table is None:
            self._table = None
            return
        theirs = int(other._table.size[0])
        at = numbers_of(other._table.scores[:theirs] / STEPS, self._table)
        if (at < 0).any():
            self._table = None
        else:
            self._table.counts[:, at] += other._table.counts[:, :theirs]

    # ---- what it holds ----

    @property
    def scores(self) -> Integers:
        """The different scores, increasing; none if they are too many."""
        return np.sort(self._stored())

    def counts(self, groups: Sequence[int] | None = None) -> Integers:
        """Rows by label of each of `scores`, shape (scores, 2): everyone's, or those of groups added up."""
        if self._table is None:
            return np.zeros((0, 2), dtype=np.int64)
        own = [0] if groups is None else [1 + g for g in groups]
        rows: Integers = self._table.counts[own][:, np.argsort(self._stored())].sum(axis=0)
        return rows

    def _stored(self) -> Integers:
        return np.zeros(0, dtype=np.int64) if self._table is None else self._table.scores[: self._table.size[0]]

    # ---- bytes ----

    def arrays(self) -> dict[str, Integers]:
        """The state: scores, and the counts that are not zero behind their places."""
        order = np.argsort(self._stored())
        empty = np.zeros((1, 0, 2), dtype=np.int64)
        where, rows = nonzero(empty if self._table is None else self._table.counts[:, order])
        return {"many": np.array([self.many], dtype=np.int64), "scores": self.scores, "where": where, "rows": rows}

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be this part's state."""
        if shapes.keys() != {"many", "scores", "where", "rows"} or shapes["many"] != (1,):
            return False
        scores, cells = shapes["scores"], shapes["where"]
        if len(scores) != 1 or len(cells) != 1 or shapes["rows"] != cells:
            return False
        return scores[0] <= MOST and cells[0] <= (1 + self._groups) * scores[0] * 2

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the state that `arrays` described."""
        (many,), scores, where = arrays["many"].tolist(), arrays["scores"], arrays["where"]
        sound = many in (0, 1) and (scores >= 0).all() and (scores < 1 << SCORE_BITS).all()
        need(sound and (scores[1:] > scores[:-1]).all(), "the values", "are no scores in order")
        need(not many or not len(scores), "the values", "are too many and there")
        cells = (1 + self._groups) * len(scores) * 2
        need(
            (where[1:] > where[:-1]).all() and (where >= 0).all() and (where < cells).all(), "the values", "lie outside"
        )
        self._table = None if many else Table.empty(self._groups)
        if self._table is not None:
            numbers_of(scores / STEPS, self._table)  # counted from 0, in their order
            self._table.counts[np.unravel_index(where, (1 + self._groups, len(scores), 2))] = arrays["rows"]

    def check(self, at: Integers, cells: Integers, groups: Integers) -> None:
        """Refuse stored counts that no rows can have.

        `at`: the cells that hold rows, of ``2^14``. `cells`, a row for each: everyone's rows by label, and the sums of
        their remainders. `groups`, a row for each: its rows by label.
        """
        where = "the values"
        if self._table is None:
            need(int(cells[:, :2].sum()) > MOST, where, "are more than the rows")
            return
        scores, kept = self.scores, self._table.counts[:, : self._table.size[0]]
        need((kept >= 0).all() and kept[0].any(axis=1).all(), where, "have an impossible count")
        there, first = np.unique(scores >> REST, return_index=True)
        need(np.array_equal(there, at), where, "are in other cells")
        rest = (scores & ((1 << REST) - 1))[:, None]
        own = (
            np.add.reduceat(np.concatenate([kept[0], kept[0] * rest], axis=1), first, axis=0) if len(first) else kept[0]
        )
        need(np.array_equal(own, cells[:, : own.shape[1]]), where, "do not add up to the cells")
        need(np.array_equal(kept[1:].sum(axis=1), groups), where, "do not add up to the groups")
        start = 1
        for size in self._sizes:
            need(np.array_equal(kept[start : start + size].sum(axis=0), kept[0]), where, "differ from the groups'")
            start += size


# ---- rows whose label is missing: how many have which score, in everyone and in each group ----


CELLS = 1 << GROUP_BITS
UNLABELLED_REST = SCORE_BITS - GROUP_BITS  # bits of a score within its cell
UNLABELLED_FIELDS = 2  # rows, and the sum of their remainders


class Apart:
    """Rows without a label that are counted apart: here none are."""

    @property
    def n(self) -> int:
        """Rows without a label."""
        return 0

    def see(self, p: Floats, labels: NDArray[np.int8], stacked: NDArray[np.int32]) -> None:
        """Add those that have a sound score and no label; `stacked` has a row for each grouping of the spec."""

    def count(self, p: Floats, stacked: NDArray[np.int32]) -> None:
        """Add rows that have none."""

    def check(self, most: int) -> None:
        """Refuse stored counts that no rows can have: at most so many in all."""


NOBODY = Apart()


class UnlabelledRows(Apart):
    """Int64 rows without a label, and the sums of their remainders, by ``2^10`` cells of the score."""

    def __init__(self, spec: Spec) -> None:
        self._sizes = spec.sizes
        self._bases = np.cumsum([1, *spec.sizes], dtype=np.int64)[:-1]
        self.stored: Integers = np.zeros((1 + spec.group_count, CELLS, UNLABELLED_FIELDS), dtype=np.int64)

    @property
    def n(self) -> int:
        return int(self.stored[0, :, 0].sum())

    def update(self, rows: Rows) -> None:
        """Pass over rows that have a label."""

    def see(self, p: Floats, labels: NDArray[np.int8], stacked: NDArray[np.int32]) -> None:
        alone = (labels == -1) & (p >= 0.0) & (p <= 1.0)
        if alone.any():
            self.count(p[alone], stacked[:, alone])

    def count(self, p: Floats, stacked: NDArray[np.int32]) -> None:
        q = np.minimum(np.floor(p * STEPS), STEPS - 1.0).astype(np.int64)
        cell, rest = q >> UNLABELLED_REST, q & ((1 << UNLABELLED_REST) - 1)
        fields = np.stack([np.ones_like(rest), rest], axis=1)
        for place in (np.zeros(len(q), dtype=np.int64), *(b + s for b, s in zip(self._bases, stacked, strict=True))):
            np.add.at(self.stored.reshape(-1, UNLABELLED_FIELDS), place * CELLS + cell, fields)

    def merge(self, other: Self) -> None:
        """Add the counts of another part of the same spec."""
        self.stored += other.stored

    # ---- bytes ----

    def arrays(self) -> dict[str, Integers]:
        """The state: the counts that are not zero behind their places."""
        where, rows = nonzero(self.stored)
        return {"where": where, "rows": rows}

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be this part's state."""
        if shapes.keys() != {"where", "rows"} or shapes["where"] != shapes["rows"]:
            return False
        return len(shapes["where"]) == 1 and shapes["where"][0] <= self.stored.size

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the state that `arrays` described."""
        where, name = arrays["where"], "the rows without a label"
        inside = (where >= 0).all() and (where < self.stored.size).all() and (where[1:] > where[:-1]).all()
        need(inside, name, "lie outside")
        self.stored.reshape(-1)[where] = arrays["rows"]

    def check(self, most: int) -> None:
        name = "the rows without a label"
        rows, rest = self.stored[..., 0], self.stored[..., 1]
        need((rows >= 0).all() and (rows <= most).all(), name, "have an impossible count")
        need((rest >= 0).all() and (rest <= rows * ((1 << UNLABELLED_REST) - 1)).all(), name, "have an impossible sum")
        start = 1
        for size in self._sizes:
            same = np.array_equal(self.stored[start : start + size].sum(axis=0), self.stored[0])
            need(same, name, "do not add up to everyone")
            start += size


# ---- sums in the cells of each attribute and of each pair, from which the sums of every box follow ----


NONE = -1  # in place of an attribute that a table does not cut by
MOST_IN_BOXES = 1 << 33  # rows of which sums of 30-bit scores stay within 63 bits
SCORE_STEPS = 1 << SCORE_BITS
SLACK = 1e-9  # of a float64 comparison of sums below 2^63


class Layout:
    """Where the tables of combinations of attributes lie in one array of cells.

    `order`: largest number of attributes combined.
    """

    def __init__(self, attributes: Sequence[Attribute], order: int) -> None:
        self.attributes = tuple(attributes)
        self.sizes: NDArray[np.int64] = np.array([t.size for t in attributes], dtype=np.int64)
        #: the attributes of each table, fewer before more
        self.combined = [c for k in range(1, order + 1) for c in combinations(range(len(attributes)), k)]
        cells = [int(np.prod(self.sizes[list(c)])) for c in self.combined]
        self.ends = np.cumsum([0, *cells], dtype=np.int64)

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return int(self.ends[-1])

    @cached_property
    def tables(self) -> NDArray[np.int64]:
        """The tables as the kernel takes them: three attributes, -1 for none, and the first cell."""
        padded = [(*c, *(NONE,) * (3 - len(c)), first) for c, first in zip(self.combined, self.ends, strict=False)]
        return np.array(padded, dtype=np.int64).reshape(-1, 4)

    def shape(self, table: int) -> tuple[int, ...]:
        """How many cells a table has along each of its attributes."""
        return tuple(int(self.sizes[t]) for t in self.combined[table])

    def of(self, sums: Integers, table: int) -> Integers:
        """One table: a view of shape (cells of its attributes, 4)."""
        own = sums[self.ends[table] : self.ends[table + 1]]
        return own.reshape(*self.shape(table), sums.shape[1])

    def summed(self, cells: Cells, p: NDArray[np.float64], y: NDArray[np.int8], into: Integers) -> None:
        """Add rows, given the cell of each in each attribute, shape (attributes, n)."""
        box_sums(cells, p, y, self.tables, self.sizes, into)


class Boxes(Sums):
    """Int64 sums per cell of each attribute and each pair: rows, events, scores and null variances, in steps of 2^-30.

    The score is read as ``q = min(floor(p 2^30), 2^30 - 1)``, its null variance as ``floor(q (2^30 - q) / 2^30)``.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.layout = Layout(spec.attributes, 2)
        self.sums: Integers = np.zeros((self.layout.cells, SUMS), dtype=np.int64)

    def update(self, rows: Rows) -> None:
        """Add rows."""
        cells = cells_of(self.spec.attributes, rows.p, rows.encoded, self.spec.codings)
        self.layout.summed(cells, rows.p, rows.y, self.sums)
        self.settle()

    def settle(self) -> None:
        """Refuse more rows than the sums can hold."""
        if int(self.layout.of(self.sums, 0)[:, 0].sum()) > MOST_IN_BOXES:
            raise BadInput(
                f"more than {MOST_IN_BOXES:,} rows: sums of their scores leave 64 bits; sketch fewer rows at a time"
            )

    def arrays(self) -> dict[str, Integers]:
        """The sums."""
        return {"sums": self.sums}

    def check(self, n: int, events: int, steps: int) -> None:
        """Refuse stored sums that no rows can have; `n`, `events` and the sum of scores in `steps` are everyone's."""
        where = "the boxes"
        rows, hits, q, v = self.sums.T
        need(n <= MOST_IN_BOXES and (rows >= 0).all() and (rows <= n).all(), where, "have an impossible count")
        need((hits >= 0).all() and (hits <= rows).all(), where, "have more events than rows")
        need((q >= 0).all() and (q <= rows * (SCORE_STEPS - 1)).all(), where, "have an impossible sum of scores")
        # p (1 - p) is concave: its mean is at most that of the mean score
        most = q * (1.0 - q / (np.maximum(rows, 1) * float(SCORE_STEPS)))
        need((v >= 0).all() and (v <= most * (1 + SLACK)).all(), where, "have an impossible variance")
        everyone = self.layout.of(self.sums, 0).sum(axis=0)
        need(everyone[:3].tolist() == [n, events, steps], where, "do not add up to everyone")
        for t, attributes in enumerate(self.layout.combined):
            own = self.layout.of(self.sums, t)
            for axis, attribute in enumerate(attributes if len(attributes) > 1 else ()):
                margin = own.sum(axis=1 - axis)
                need((margin == self.layout.of(self.sums, attribute)).all(), where, "do not agree with one another")
