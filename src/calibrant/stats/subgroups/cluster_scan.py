r"""The scan over boxes where rows share clusters or count more: its spread by clusters, and two nulls.

With ``r_i = w_i (y_i - p_i)``, ``t_gb`` the sum of r over the rows of cluster g in box b and ``S_b = sum_g t_gb``, the
score of a box is ``|S_b| / sqrt(V_b + c)``. Clusters: ``V_b = sum_g t_gb^2``, or what rows as alike as those of all
clusters would have where that is larger, and chance gives every cluster a random sign. Weighted rows that are
independent: ``V_b = sum w_i^2 p_i (1 - p_i)``, and chance gives every row another outcome. Both are fixed while chance
works.

Sums of cells are whole numbers, in steps of a 2^30th of what they can add up to, so that neither order nor threads
matter, and ties are ties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import Draws, outcomes, tallies
from calibrant.stats.cells import summed
from calibrant.stats.subgroups.family import Family, Floats, Ints, sums_of
from calibrant.stats.subgroups.scan import (
    ALL,
    DOWN,
    EXTRA,
    UP,
    BoxScan,
    Cells,
    Counts,
    Ids,
    Table,
    placed,
)

SALT = 0x516AB  # of signs and simulated outcomes
STEPS = 1 << 30  # of the sum of all sizes: sums of sums stay within 32 bits
AT_ONCE = 1 << 24  # signs held at once
LEAST_CLUSTERS = 20  # effective clusters of a box: of fewer, signs tell little


@dataclass(frozen=True, kw_only=True)
class ScannedRows:
    """Independent rows that are weighted: chance gives every row another outcome."""

    cells: Cells  # shape (attributes, n): cell of each row in each attribute
    p: Floats  # shape (n,)
    y: NDArray[np.int8]  # shape (n,)
    weight: Floats  # shape (n,): positive
    ids: Ids  # shape (n,), or (m,) of clusters: what keys the random numbers
    null = "simulated"

    @cached_property
    def noise(self) -> Floats:
        """Null variance of each row's weighted outcome."""
        return self.weight**2 * self.p * (1.0 - self.p)

    @cached_property
    def scale(self) -> float:
        """What an ordinary row weighs: ``sum w^2 p (1 - p) / sum w p (1 - p)``, 1 without weights."""
        mass = float((self.weight * self.p * (1.0 - self.p)).sum())
        return float(self.noise.sum()) / mass if mass else float(self.weight.mean())

    def size(self, _gap: float) -> Floats:
        """What each row adds where it counts, with the tolerance or less it taken off."""
        return self.weight

    def seen(self, value: Floats) -> Floats:
        """What the data add, of sizes in steps."""
        return value * self.y

    def middle(self, scan: ClusterScan, side: _Side) -> Floats:
        """What is expected of the boxes' sums."""
        return scan._summed(side.value * (self.p + side.gap))

    def variance(self, _scan: ClusterScan, expected: Floats) -> Sequence[Floats]:
        """The variance of each box: of more events than predicted, and of fewer where that differs."""
        return [expected]

    def rest(self, scan: ClusterScan) -> NDArray[np.bool_]:
        """Which boxes have so many effective clusters: ``M_b^2 / sum_g m_gb^2``, m a cluster's weight there."""
        return np.ones(scan.family.size, dtype=bool)

    def drawn(self, cuts: Sequence[_Cut], side: _Side, first: int, count: int) -> Iterator[Counts]:
        """The sums of the cells of each table, of some draws."""
        for cut in cuts:
            cells, draws = int(np.prod(cut.shape)), Draws(first, count, SALT)
            result = tallies(self.ids, side.rate, side.value, cut.cell[:, None], cells, draws)
            yield np.asarray(result.astype(np.int32).reshape(*cut.shape, -1))


@dataclass(frozen=True, kw_only=True)
class ScannedClusters(ScannedRows):
    """Rows in clusters, weighted or not: chance gives every cluster a random sign."""

    cluster: Ints  # shape (n,): 0 to m - 1
    null = "signs"

    @cached_property
    def intraclass_correlation(self) -> float:
        """How alike residuals of one cluster are, standardised: 0 to 1, the same whatever a cluster's sign."""
        spread, off = np.sqrt(self.noise), self.weight * (self.y - self.p)
        pairs = float((summed(self.cluster, spread) ** 2).sum() - self.noise.sum())
        result = float((summed(self.cluster, off) ** 2).sum() - (off**2).sum())
        return min(max(result / pairs, 0.0), 1.0) if pairs > 0.0 else 0.0

    def size(self, gap: float) -> Floats:
        return self.weight * (self.y - self.p - gap)

    def seen(self, value: Floats) -> Floats:
        return value

    def middle(self, scan: ClusterScan, _side: _Side) -> Floats:
        return np.zeros(scan.family.size)

    def variance(self, scan: ClusterScan, expected: Floats) -> Sequence[Floats]:
        # (1) What rows as alike as those of all clusters are would have: exchangeable within clusters
        rho = self.intraclass_correlation
        together = rho * scan._squares(self.cluster, np.sqrt(self.noise)) if rho else 0.0
        expected = (1.0 - rho) * expected + together
        # (2) The sum of squares over clusters, or that where it is larger
        gaps = (scan.tolerance, -scan.tolerance)[: 2 if scan.tolerance else 1]
        return [np.maximum(scan._squares(self.cluster, self.size(gap)), expected) for gap in gaps]

    def rest(self, scan: ClusterScan) -> NDArray[np.bool_]:
        squares = scan._squares(self.cluster, self.weight)
        return np.asarray(scan.mass**2 >= LEAST_CLUSTERS * squares * (1.0 - 1e-9))

    def drawn(self, cuts: Sequence[_Cut], side: _Side, first: int, count: int) -> Iterator[Counts]:
        signs = 2 * outcomes(self.ids, np.full(len(self.ids), 0.5), first, count, SALT).astype(np.int32) - 1
        return (cut.signed(self.cluster, side.value, signs) for cut in cuts)


@dataclass(frozen=True, kw_only=True)
class _Side:
    """What one side of the tolerance adds up."""

    gap: float  # taken off the residuals of events: the tolerance, or less it
    rate: Floats  # shape (n,): of the outcomes simulated where rows are independent
    steps: float  # steps a cluster of weight
    value: Floats  # shape (n,): whole numbers: residuals of rows in clusters, weights of independent ones

    @classmethod
    def of(cls, rows: ScannedRows, gap: float) -> _Side:
        size = rows.size(gap)
        total = float(np.abs(size).sum())
        steps = STEPS / total if total else 1.0
        return cls(gap=gap, rate=np.clip(rows.p + gap, 0.0, 1.0), steps=steps, value=np.rint(size * steps))


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """One table's rows: the cell of each, and those of its boxes."""

    attributes: tuple[int, ...]
    shape: tuple[int, int, int]
    sets: tuple[Ints, Ints, Ints]  # each of shape (k, 4)
    boxes: slice  # of the family
    place: tuple[Ints, Ints, Ints]  # the set of each box in each attribute
    cell: Ints  # shape (n,)

    def table(self, limits: Floats, scale: Floats) -> Table:
        """What peaks are read from, given what the boxes' sums must exceed."""
        mean, scale = placed(self.sets, self.place, limits, scale)
        return Table(attributes=self.attributes, shape=self.shape, sets=self.sets, mean=mean, scale=scale)

    def sums(self, value: Floats) -> Floats:
        """The sums of a value of each row over the boxes."""
        table = summed(self.cell, value, int(np.prod(self.shape))).reshape(*self.shape, 1)
        return np.asarray(sums_of(table, self.sets)[*self.place, 0], dtype=np.float64)  # type: ignore[arg-type]

    def signed(self, cluster: Ints, value: Floats, signs: Counts) -> Counts:
        """The sums of whole numbers by cell with the signs of clusters, shape (clusters, draws)."""
        from scipy.sparse import coo_array

        shape = (int(np.prod(self.shape)), len(signs))
        t = coo_array((value.astype(np.int32), (self.cell, cluster)), shape=shape).tocsr()
        return np.asarray((t @ signs).reshape(*self.shape, -1))

    def squares(self, cluster: Ints, value: Floats) -> Floats:
        r"""``sum_g t_gb^2`` of the boxes, t being each cluster's sum in the box.

        It is the sum of ``sum_g t_gc t_gd`` over the pairs of cells c, d of the box: for each set of the third
        attribute one matrix, summed over the pairs of cells of each set of the first and of the second.
        """
        from scipy.sparse import coo_array

        a, b, c = self.shape
        first, second = (_pairs(self.sets[k], self.shape[k]) for k in (0, 1))
        out = np.zeros(len(self.place[0]))
        own = self.cell % c
        for m in np.unique(self.place[2]).tolist():
            s, e, s2, e2 = self.sets[2][m].tolist()
            inside = ((own >= s) & (own < e)) | ((own >= s2) & (own < e2))
            t = coo_array(
                (value[inside], (self.cell[inside] // c, cluster[inside])), shape=(a * b, int(cluster.max()) + 1)
            )
            t = t.tocsr()
            product = (t @ t.T).toarray().reshape(a, b, a, b).transpose(0, 2, 1, 3).reshape(a * a, b * b)
            boxes = self.place[2] == m
            out[boxes] = (first @ product @ second.T)[self.place[0][boxes], self.place[1][boxes]]
        return np.maximum(out, 0.0)


def _pairs(sets: Ints, cells: int) -> Floats:
    """1 for each pair of cells that both lie in a set, shape (sets, cells^2)."""
    cell = np.arange(cells)
    first, last, second, end = (own[:, None] for own in sets.T)
    inside = ((first <= cell) & (cell < last)) | ((second <= cell) & (cell < end))
    return np.asarray((inside[:, :, None] & inside[:, None, :]).reshape(len(sets), cells**2), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class ClusterScan(BoxScan):
    """What is searched where rows share clusters or count more; the family's rows are counted one each."""

    rows: ScannedRows

    # ---- The data ----

    @cached_property
    def mass(self) -> Floats:
        """The weight of each box."""
        return self._summed(self.rows.weight)

    @cached_property
    def spread(self) -> Floats:
        """The root of ``V + c`` of each box, shape (2, boxes): of more events than predicted, and of fewer."""
        variance = self.rows.variance(self, self._summed(self.rows.noise))
        out = [np.sqrt(v + EXTRA * self.rows.scale**2) for v in variance]
        return np.stack([out[0], out[-1]])

    @cached_property
    def scores(self) -> Floats:
        return self.margins + self.needed

    @cached_property
    def margins(self) -> Floats:
        out = np.empty((2, self.family.size))
        for s, side in enumerate(self._both):
            scale, limits = self._scale(s), self._limits(s)
            result = self._summed(self.rows.seen(side.value))
            out[s] = scale * (result - limits[UP]) if s == UP else scale * (limits[DOWN] - result)
        return out

    @property
    def sums(self) -> tuple[Floats, Floats, Floats]:
        r = self.rows
        return self.mass, self._summed(r.weight * r.y), self._summed(r.weight * r.p)

    # ---- Chance ----

    def simulated(self, draws: int) -> Floats:
        """The largest margin in each of so many draws: of signs of clusters, or of outcomes of rows.

        The result has shape (draws,).
        """
        edges = self.sides if self.tolerance else self.sides[:1]
        best = np.full((2, draws), -np.inf)
        for edge in edges:
            looked = [edge] if self.tolerance else [UP, DOWN]
            limits, scale = self._limits(edge), self._scale(edge)
            tables = [cut.table(limits[:, cut.boxes], scale[cut.boxes]) for cut in self._cuts]
            step = max(1, AT_ONCE // len(self.rows.ids))
            for first in range(0, draws, step):
                some = slice(first, min(first + step, draws))
                events = self.rows.drawn(self._cuts, self._both[edge], first, some.stop - first)
                for table, own in zip(tables, events, strict=True):
                    peaks = table.peaks(own)
                    best[looked, some] = np.maximum(best[looked, some], peaks[looked])
        return best[list(self.sides)].max(axis=0)

    # ---- Tables ----

    @cached_property
    def _both(self) -> tuple[_Side, _Side]:
        return _Side.of(self.rows, self.tolerance), _Side.of(self.rows, -self.tolerance)

    @cached_property
    def _cuts(self) -> list[_Cut]:
        f = self.family
        first = np.searchsorted(f.table, np.arange(len(f.combined) + 1))
        return [self._cut(t, slice(int(first[t]), int(first[t + 1]))) for t in range(len(f.combined))]

    def _cut(self, table: int, boxes: slice) -> _Cut:
        f = self.family
        attributes, size = f.combined[table], f.shapes[table]
        sets: Sequence[Ints] = [f.sets[own] for own in attributes] + [ALL] * (3 - len(attributes))
        cell = np.zeros(len(self.rows.p), dtype=np.int64)
        for own, cells in zip(attributes, size, strict=True):
            cell = cell * cells + self.rows.cells[own]
        place, shape = np.maximum(f.place[boxes], 0).T, [*size, 1, 1]
        return _Cut(
            attributes=attributes,
            shape=(shape[0], shape[1], shape[2]),
            sets=(sets[0], sets[1], sets[2]),
            boxes=boxes,
            place=(place[0], place[1], place[2]),
            cell=cell,
        )

    def _squares(self, cluster: Ints, value: Floats) -> Floats:
        return np.concatenate([cut.squares(cluster, value) for cut in self._cuts])

    def _summed(self, value: Floats) -> Floats:
        return np.concatenate([cut.sums(value) for cut in self._cuts])

    def _scale(self, side: int) -> Floats:
        return 1.0 / (self.spread[side] * self._both[side].steps)

    def _limits(self, side: int) -> Floats:
        """What the boxes' sums must exceed, and stay under, for a margin above zero: (2, boxes)."""
        own = self._both[side]
        reach = self.needed * self.spread[side] * own.steps
        middle = self.rows.middle(self, own)
        return np.stack([middle + reach, middle - reach])


def rests_on_clusters(family: Family, rows: ScannedRows) -> NDArray[np.bool_]:
    """Which boxes have so many effective clusters: ``M_b^2 / sum_g m_gb^2``, m a cluster's weight there."""
    return rows.rest(ClusterScan(family=family, rows=rows, tolerance=0.0, sides=(UP, DOWN)))
