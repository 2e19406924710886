r"""Clusters that cross: every person answers every question, and rows that share neither are independent.

Persons are dealt to K groups, and so are questions. With a shift s the rows of the k-th group of persons and group ``k
+ s mod K`` of questions are *block* k: no two blocks of one shift share a person or a question, so that they are
independent clusters. Each shift has an e-value of its own by the theorems of clusters, and a mean of e-values is an
e-value, however they depend on one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import NotComputable
from calibrant.kernels.draws import mix
from calibrant.stats.clusters.clusters import Clusters, Tallies

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

GROUPS = 4096  # of each column, at most
DIAGONALS = 16  # looked at, of the K that there are
SALT = np.uint64(0x4C0552D7)  # so that names of blocks are not those of other clusters


@dataclass(frozen=True)
class DiagonalBlocks:
    """The rows of one shift, as clusters that are independent."""

    rows: Ints  # shape (r,): their numbers among all
    clusters: Clusters  # blocks; their sizes are those of the design, known before any outcome

    def within(self, rows: Flags) -> Clusters:
        """Return those of some rows that are of this shift."""
        own = rows[self.rows]
        return replace(self.clusters.within(own), columns=self.clusters.columns)


@dataclass(frozen=True)
class Design:
    """Which person and question each row is of, and how many groups they are dealt to."""

    codes: Ints  # shape (2, n): numbers of clusters of the two columns
    seed: int  # deals clusters to groups

    @cached_property
    def groups(self) -> int:
        """K: as many as the column of fewer clusters has, so that blocks are small but have rows; 4,096 at most."""
        clusters = [int(c.max()) + 1 for c in self.codes]
        return max(min(*clusters, int(np.sqrt(self.codes.shape[1])), GROUPS), 1)

    @cached_property
    def diagonals(self) -> Ints:
        """Those that are looked at, evenly over all."""
        looked = min(self.groups, DIAGONALS)
        return np.arange(looked) * self.groups // looked

    def group(self, column: int) -> Ints:
        """The group of each row's unit: by size and hash, so that groups are about alike."""
        code = self.codes[column]
        size = np.bincount(code)
        order = np.lexsort((mix(np.arange(len(size), dtype=np.uint64) ^ self._salt(column)), -size))
        turn, place = np.divmod(np.arange(len(size)), self.groups)
        group = np.empty(len(size), dtype=np.int64)
        group[order] = np.where(turn % 2, self.groups - 1 - place, place)  # there and back, largest first
        return group[code]

    def diagonal_blocks(self, p: Floats, y: NDArray[np.int8], weight: Floats | None) -> tuple[DiagonalBlocks, ...]:
        """The blocks of each shift that has rows; a block without rows is none."""
        first, second = self.group(0), self.group(1)
        apart, result = (second - first) % self.groups, []
        for s in self.diagonals.tolist():
            rows = np.flatnonzero(apart == s)
            block, cluster = np.unique(first[rows], return_inverse=True)
            if len(block) < 2:
                continue
            names = mix(mix(block.astype(np.uint64) ^ self._salt(2)) + np.uint64(s))
            w = None if weight is None else weight[rows]
            clusters = Clusters.hash_split(cluster.reshape(-1), p[rows], y[rows], w, names)
            result.append(DiagonalBlocks(rows, replace(clusters, designed=True)))
        if not result:
            raise NotComputable("clusters that cross leave no two blocks of rows that share neither: ask by one column")
        return tuple(result)

    def _salt(self, of: int) -> np.uint64:
        return np.uint64(int(mix(np.uint64(3 * self.seed + of) ^ SALT)))


def debiased(parts: Sequence[Tallies]) -> float:
    """The error less what noise adds: of pairs of rows that share neither unit, of every shift."""
    total = float(np.mean([t.clusters.total for t in parts]))
    square = np.mean([t.between for t in parts], axis=0)
    return float(np.sqrt(np.maximum(square, 0.0)).sum()) / max(total, 1e-300)
