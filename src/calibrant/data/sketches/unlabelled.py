"""Rows whose label is missing: how many have which score, in everyone and in each group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.columns import Floats
from calibrant.data.specs.coding import Rows
from calibrant.data.specs.sketch_file import Integers, need, nonzero
from calibrant.data.specs.spec import Spec
from calibrant.kernels.tally import GROUP_BITS, SCORE_BITS

CELLS = 1 << GROUP_BITS
REST = SCORE_BITS - GROUP_BITS  # bits of a score within its cell
FIELDS = 2  # rows, and the sum of their remainders
SCALE = float(1 << SCORE_BITS)


class UnlabelledRows:
    """Int64 rows without a label, and the sums of their remainders, by ``2^10`` cells of the score."""

    def __init__(self, spec: Spec) -> None:
        self._sizes = spec.sizes
        self._bases = np.cumsum([1, *spec.sizes], dtype=np.int64)[:-1]
        self.stored: Integers = np.zeros((1 + spec.group_count, CELLS, FIELDS), dtype=np.int64)

    @property
    def n(self) -> int:
        """Rows without a label."""
        return int(self.stored[0, :, 0].sum())

    def update(self, rows: Rows) -> None:
        """Pass over rows that have a label."""

    def count(self, p: Floats, stacked: NDArray[np.int32]) -> None:
        """Add rows that have none; `stacked` has a row for each grouping of the spec."""
        q = np.minimum(np.floor(p * SCALE), SCALE - 1.0).astype(np.int64)
        cell, rest = q >> REST, q & ((1 << REST) - 1)
        fields = np.stack([np.ones_like(rest), rest], axis=1)
        for place in (np.zeros(len(q), dtype=np.int64), *(b + s for b, s in zip(self._bases, stacked, strict=True))):
            np.add.at(self.stored.reshape(-1, FIELDS), place * CELLS + cell, fields)

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
        """Refuse stored counts that no rows can have: at most so many in all."""
        name = "the rows without a label"
        rows, rest = self.stored[..., 0], self.stored[..., 1]
        need((rows >= 0).all() and (rows <= most).all(), name, "have an impossible count")
        need((rest >= 0).all() and (rest <= rows * ((1 << REST) - 1)).all(), name, "have an impossible sum")
        start = 1
        for size in self._sizes:
            same = np.array_equal(self.stored[start : start + size].sum(axis=0), self.stored[0])
            need(same, name, "do not add up to everyone")
            start += size
