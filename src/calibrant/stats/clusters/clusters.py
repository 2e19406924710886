"""Clusters: what is independent (a person, a household, a weighted row), with its rows, its weight and its place.

Clusters that cross: every person answers every question, and rows that share neither are independent.

Persons are dealt to K groups, and so are questions. With a shift s the rows of the k-th group of persons and group ``k
+ s mod K`` of questions are *block* k: no two blocks of one shift share a person or a question, so that they are
independent clusters. Each shift has an e-value of its own by the theorems of clusters, and a mean of e-values is an
e-value, however they depend on one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import NotComputable
from calibrant.kernels.draws import hash_split, mix
from calibrant.stats.cells import summed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

PILOT = (
    1000  # clusters at most that leave the certificate, to tell what it may not learn from the clusters it certifies
)
SHARE = 10  # and one in ten at most
BLOCKS = 8  # of certified clusters: a witness is learnt on earlier ones
FEWEST = 10  # pilot clusters that have rows of a group, so that they tell how large its units are
OTHERS = np.uint64(0x9D5C0F3A61E8B274)  # any number, so that a block does not tell how small an identity is
ROUNDING = 1e-9  # relative: a cluster that is larger by no more is not larger


@dataclass(frozen=True)
class Clusters:
    r"""Rows of independent clusters, and which clusters certify.

    A cluster's size is ``W_g``, the sum of its rows' weights. Pilot clusters, chosen without looking at anything else
    than their names, leave the certificate; their largest is M. A certified cluster larger than M weighs down to it:
    its rows weigh ``w min(1, M / W_g)``, and the error certified is that of these weights.
    """

    cluster: Ints  # shape (n,): the cluster of each row, 0 to m - 1; every cluster has a row
    p: Floats  # shape (n,)
    y: NDArray[np.int8]  # shape (n,)
    input_weights: Floats  # shape (n,): the rows' weights as they were given: positive
    block: Ints  # shape (m,): the random block of each cluster, from 1 on; 0 for a pilot cluster
    most: float = np.inf  # M is at most this: that of everyone, where these are a group's rows
    # What names the clusters, where several columns did: the coarsest, then those whose clusters lie whole in its own.
    columns: tuple[str, ...] = ()
    # Sizes are part of the design, known before any outcome: M is the size of the largest, or `most` where that is
    # given, and none is made lighter.
    designed: bool = False

    @classmethod
    def hash_split(
        cls, cluster: Ints, p: Floats, y: NDArray[np.int8], weight: Floats, identities: NDArray[np.uint64]
    ) -> Clusters:
        """Choose pilot clusters and deal the others into blocks by the identities of clusters, hashed.

        `cluster`, `p`, `y`, `weight` (n,). `identities` (m,): random numbers that depend on the
        clusters' names alone, each on its own.
        """
        count = len(identities)
        if count < 2:
            raise NotComputable("all rows are one cluster: nothing independent separates its noise from an error")
        block = 1 + hash_split(mix(identities ^ OTHERS), BLOCKS)
        pilot = max(min(PILOT, count // SHARE), 1)
        block[np.argsort(identities, kind="stable")[:pilot]] = 0
        return cls(cluster, p, y, weight, block)

    def within(self, rows: Flags) -> Clusters:
        """Some of the rows, as a group; a cluster with none of them is not a cluster of the group.

        M is that of the pilot clusters that have rows here, and never above everyone's; with fewer than `FEWEST` of
        these it is everyone's.
        """
        own, cluster = np.unique(self.cluster[rows], return_inverse=True)
        most = np.inf if self.designed else self.largest
        part = Clusters(cluster, self.p[rows], self.y[rows], self.input_weights[rows], self.block[own], most)
        return replace(part, designed=self.designed)

    def of_rows(self, rows: NDArray[np.intp]) -> Clusters:
        """The same of rows by their places; of all rows these clusters themselves."""
        here = np.zeros(len(self.p), dtype=bool)
        here[rows] = True
        return self if len(rows) == len(here) else self.within(here)

    def ahead(self, order: Ints) -> Iterator[tuple[Flags, Flags]]:
        """Yield which clusters are in each block of an order, and which come before it."""
        past = self.block == 0
        for block in order:
            here = self.block == block
            yield here, past
            past = past | here

    @cached_property
    def count(self) -> int:
        """Clusters, m, pilot clusters included."""
        return len(self.block)

    @cached_property
    def certified(self) -> Flags:
        """Which clusters certify, shape (m,)."""
        return self.block > 0

    @property
    def pilots(self) -> int:
        """Pilot clusters."""
        return int(np.count_nonzero(~self.certified))

    @cached_property
    def size_at(self) -> Floats:
        """The clusters' sizes as given, shape (m,)."""
        return summed(self.cluster, self.input_weights, self.count)

    @cached_property
    def largest(self) -> float:
        """M, the size that no certified unit exceeds."""
        if self.designed:
            return self.most if np.isfinite(self.most) else float(self.size_at.max(initial=0.0)) or 1.0
        pilots = self.size_at[~self.certified]
        known = len(pilots) >= FEWEST or (len(pilots) > 0 and not np.isfinite(self.most))
        return min(float(pilots.max()), self.most) if known else self.most

    @cached_property
    def size(self) -> Floats:
        """The clusters' sizes, at most M, shape (m,)."""
        return np.minimum(self.size_at, self.largest)

    @property
    def truncated_weights(self) -> int:
        """Certified clusters that weigh less than given."""
        return int(np.count_nonzero(self.certified & (self.size_at > self.largest * (1.0 + ROUNDING))))

    @cached_property
    def weight(self) -> Floats:
        """The rows' weights, shape (n,)."""
        return self.input_weights * (self.size / self.size_at)[self.cluster]

    @cached_property
    def squares(self) -> Floats:
        """Sums of the rows' squared weights, shape (m,)."""
        return summed(self.cluster, self.weight**2, self.count)

    @cached_property
    def total(self) -> float:
        """The size of all certified clusters."""
        return float(self.size[self.certified].sum())

    @cached_property
    def effective(self) -> float:
        """Kish's effective number of certified clusters, ``(sum W)^2 / sum W^2``; 0 of none."""
        square = float((self.size[self.certified] ** 2).sum())
        return self.total**2 / square if square else 0.0

    @property
    def mean(self) -> float:
        """The weighted mean residual of the certified clusters."""
        own = self.certified[self.cluster]
        return float((self.weight * (self.y - self.p))[own].sum() / self.total) if self.total else 0.0

    @property
    def design_effect(self) -> float:
        """How many times the variance of `mean` by clusters is that by rows, taken as independent; 1 of none."""
        own = self.certified[self.cluster]
        off = np.where(own, self.weight * (self.y - self.p - self.mean), 0.0)
        by_rows = float((off**2).sum())
        return float((summed(self.cluster, off, self.count) ** 2).sum()) / by_rows if by_rows else 1.0

    def tallies(self, cell: Ints, cells: int, stated: Floats) -> Tallies:
        """Each cluster's weighted residuals ``sum w (y - stated)`` by cell of its rows."""
        return self.sums(cell, cells, self.y - stated)

    def sums(self, cell: Ints, cells: int, residual: Floats) -> Tallies:
        """Each cluster's sums ``sum w r`` by cell of its rows, of residuals of size 1 at most."""
        where, pair = np.unique(self.cluster * cells + cell, return_inverse=True)
        value = summed(pair.reshape(-1), self.weight * residual, len(where))
        return Tallies(where // cells, where % cells, value, cells, self)


@dataclass(frozen=True)
class Tallies:
    """Sums of residuals, one for each cluster and cell that meet."""

    # `cluster` and `cell`, shape (pairs,): sorted by cluster.
    cluster: Ints
    cell: Ints
    value: Floats  # shape (pairs,)
    cells: int
    clusters: Clusters

    def less(self, mass: Tallies, gap: float) -> Tallies:
        """The sums of residuals less a shift; `mass` has the sums of weights by cluster and cell."""
        return replace(self, value=self.value - gap * mass.value)

    def witnessed(self, f: Floats) -> Floats:
        """``sum_c f_c t_gc``, shape (m,)."""
        return summed(self.cluster, f[self.cell] * self.value, self.clusters.count)

    def joined(self, bins: Ints) -> Tallies:
        """The sums over runs of cells, by the bin of each cell."""
        size = int(bins.max()) + 1
        where, pair = np.unique(self.cluster * size + bins[self.cell], return_inverse=True)
        return Tallies(
            where // size, where % size, summed(pair.reshape(-1), self.value, len(where)), size, self.clusters
        )

    def by_block(self, square: bool = False) -> Floats:
        """Sums by block and cell of the values, or of their squares, shape (blocks + 1, cells)."""
        at = self.clusters.block[self.cluster] * self.cells + self.cell
        return summed(at, self.value**2 if square else self.value, (BLOCKS + 1) * self.cells).reshape(-1, self.cells)

    @property
    def squares(self) -> Floats:
        """By cell ``sum_g t_gc^2`` of the certified clusters: what noise adds to the square of its sum."""
        return np.asarray(self.by_block(square=True)[1:].sum(axis=0))

    @cached_property
    def between(self) -> Floats:
        """By cell ``t_c^2 - sum_g t_gc^2``, over pairs of different clusters: its mean is ``m (m - 1) (E t_gc)^2``."""
        total, square = (self.by_block(v)[1:].sum(axis=0) for v in (False, True))
        return np.asarray(total**2 - square)

    @cached_property
    def debiased(self) -> float:
        """The weighted error less what noise between clusters adds: the roots of `between`, if positive, over sum W."""
        return float(np.sqrt(np.maximum(self.between, 0.0)).sum()) / max(self.clusters.total, 1e-300)


# ---- Clusters that cross: every person answers every question, and rows that share neither are independent ----

GROUPS = 4096  # of each column, at most
DIAGONALS = 16  # looked at, of the K that there are
SALT = np.uint64(0x4C0552D7)  # so that names of blocks are not those of other clusters


@dataclass(frozen=True)
class DiagonalBlocks:
    """The rows of one shift, as clusters that are independent."""

    rows: Ints  # shape (r,): their numbers among all
    clusters: Clusters  # blocks; their sizes are those of the design, known before any outcome

    def within(self, rows: Flags) -> Clusters:
        """The clusters of some rows that are of this shift."""
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

    def diagonal_blocks(self, p: Floats, y: NDArray[np.int8], weight: Floats) -> tuple[DiagonalBlocks, ...]:
        """The blocks of each shift that has rows; a block without rows is none."""
        first, second = self.group(0), self.group(1)
        apart, result = (second - first) % self.groups, []
        for s in self.diagonals.tolist():
            rows = np.flatnonzero(apart == s)
            block, cluster = np.unique(first[rows], return_inverse=True)
            if len(block) < 2:
                continue
            names = mix(mix(block.astype(np.uint64) ^ self._salt(2)) + np.uint64(s))
            clusters = Clusters.hash_split(cluster.reshape(-1), p[rows], y[rows], weight[rows], names)
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
