"""Sums in the cells of each attribute and of each pair of attributes, from which the sums of every box follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.specs.attributes import Attribute, Cells, cells_of
from calibrant.data.specs.coding import Rows
from calibrant.data.specs.sketch_file import Integers, need
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.boxes import SUMS, box_sums
from calibrant.kernels.tally import SCORE_BITS

NONE = -1  # in place of an attribute that a table does not cut by
MOST = 1 << 33  # rows of which sums of 30-bit scores stay within 63 bits
STEPS = 1 << SCORE_BITS
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
        """Return how many cells a table has along each of its attributes."""
        return tuple(int(self.sizes[t]) for t in self.combined[table])

    def of(self, sums: Integers, table: int) -> Integers:
        """Return one table: a view of shape (cells of its attributes, 4)."""
        own = sums[self.ends[table] : self.ends[table + 1]]
        return own.reshape(*self.shape(table), sums.shape[1])

    def summed(self, cells: Cells, p: NDArray[np.float64], y: NDArray[np.int8], into: Integers) -> None:
        """Add rows, given the cell of each in each attribute, shape (attributes, n)."""
        box_sums(cells, p, y, self.tables, self.sizes, into)


class Boxes:
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
        self._guard()

    def merge(self, other: Self) -> None:
        """Add the sums of another part of the same spec."""
        self.sums += other.sums
        self._guard()

    def _guard(self) -> None:
        if int(self.layout.of(self.sums, 0)[:, 0].sum()) > MOST:
            raise BadInput(f"more than {MOST:,} rows: sums of their scores leave 64 bits; sketch fewer rows at a time")

    def arrays(self) -> dict[str, Integers]:
        """The sums."""
        return {"sums": self.sums}

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be this part's state."""
        return dict(shapes) == {"sums": self.sums.shape}

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the sums that `arrays` described."""
        self.sums = np.array(arrays["sums"])

    def check(self, n: int, events: int, steps: int) -> None:
        """Refuse stored sums that no rows can have; `n`, `events` and the sum of scores in `steps` are everyone's."""
        where = "the boxes"
        rows, hits, q, v = self.sums.T
        need(n <= MOST and (rows >= 0).all() and (rows <= n).all(), where, "have an impossible count")
        need((hits >= 0).all() and (hits <= rows).all(), where, "have more events than rows")
        need((q >= 0).all() and (q <= rows * (STEPS - 1)).all(), where, "have an impossible sum of scores")
        # p (1 - p) is concave: its mean is at most that of the mean score
        most = q * (1.0 - q / (np.maximum(rows, 1) * float(STEPS)))
        need((v >= 0).all() and (v <= most * (1 + SLACK)).all(), where, "have an impossible variance")
        everyone = self.layout.of(self.sums, 0).sum(axis=0)
        need(everyone[:3].tolist() == [n, events, steps], where, "do not add up to everyone")
        for t, attributes in enumerate(self.layout.combined):
            own = self.layout.of(self.sums, t)
            for axis, attribute in enumerate(attributes if len(attributes) > 1 else ()):
                margin = own.sum(axis=1 - axis)
                need((margin == self.layout.of(self.sums, attribute)).all(), where, "do not agree with one another")
