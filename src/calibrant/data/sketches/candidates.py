"""Rows by columns that nobody named as their cluster: whole clusters of each, to measure whether they are alike.

An identifier is no covariate, and no sample of rows holds many of the visits that one patient of thousands made. So of
each such column whole clusters are held, those with the smallest hashes, as of a cluster that somebody named. The
values themselves are not held, and what is made of them leaves the audit as a few numbers a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.data.columns import Floats
from calibrant.data.sketches.sample import HASH, Sample, hashes_of, labels_of, lines_of, of_clusters, scores_of
from calibrant.data.specs.coding import Rows
from calibrant.data.specs.sketch_file import Integers, need
from calibrant.data.specs.spec import Spec

T = TypeVar("T")

ROWS = 30_000  # of whole clusters, held of each column at most


class Candidates:
    """Rows of whole clusters, of each column of the spec that may be one; never a value of it."""

    def __init__(self, spec: Spec) -> None:
        self.counted = {name: Sample(ROWS, 0, groupings=0) for name in spec.candidates or ()}

    def update(self, rows: Rows) -> None:
        """Add rows; one without a value belongs to nothing."""
        own = hashes_of(rows.ids)
        for kept, values in zip(self.counted.values(), rows.candidates, strict=True):
            hashes = hashes_of(values)
            near = kept.candidates(hashes, values != 0)
            of, row_attributes = of_clusters(own[near], values[near], None)
            kept.add(lines_of(of, rows.p[near], rows.y[near], row_attributes))

    def merge(self, other: Self) -> None:
        """Add the rows of another part of the same spec."""
        for name, kept in self.counted.items():
            kept.merge(other.counted[name])

    def of(self, name: str) -> tuple[NDArray[np.int64], Floats, Floats]:
        """The cluster of each row held, numbered from zero, with its score and label."""
        lines = self.counted[name].lines
        clusters = np.unique(lines[:, HASH], return_inverse=True)[1].reshape(-1).astype(np.int64)
        return clusters, scores_of(lines), labels_of(lines).astype(np.float64)

    def share(self, name: str) -> float:
        """The share of all clusters that is held, about; 1 where all are."""
        return (self.counted[name].limit + 1.0) / 2.0**64

    # ---- bytes ----

    def arrays(self) -> dict[str, Integers]:
        """The state by column."""
        return {f"{j} {k}": v for j, kept in enumerate(self.counted.values()) for k, v in kept.arrays().items()}

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be this part's state."""
        each = [kept.takes(_of(j, shapes)) for j, kept in enumerate(self.counted.values())]
        return all(each) and len(shapes) == sum(len(_of(j, shapes)) for j in range(len(each)))

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the state that `arrays` described."""
        for j, kept in enumerate(self.counted.values()):
            kept.load(_of(j, arrays))

    def check(self, n: int) -> None:
        """Refuse stored rows that cannot be among so many."""
        for name, kept in self.counted.items():
            lines, where = kept.lines, f"the rows by {name!r}"
            hashes, p, y = lines[:, HASH].view(np.uint64), scores_of(lines), labels_of(lines)
            need(len(lines) <= n and (hashes[1:] >= hashes[:-1]).all(), where, "are too many, or out of order")
            sound = ((p >= 0.0) & (p <= 1.0)).all() and ((y == 0) | (y == 1)).all()
            need(sound and (hashes <= np.uint64(kept.limit)).all(), where, "cannot be those of rows")


def _of(j: int, values: Mapping[str, T]) -> dict[str, T]:
    """Return what is held of one column, by its own names."""
    start = f"{j} "
    return {name.removeprefix(start): one for name, one in values.items() if name.startswith(start)}
