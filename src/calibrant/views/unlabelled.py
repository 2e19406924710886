"""People by step of the score, with and without an outcome, as a sketch holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed
from calibrant.data.predictions import Predictions, remembered
from calibrant.data.read import sketch_rows
from calibrant.data.reading import Reading
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.sums import CELLS, STEPS, UNLABELLED_REST
from calibrant.errors import NotComputable
from calibrant.kernels.tally import CELL_BITS, GROUP_BITS
from calibrant.stats.unlabelled import ClusterCounts, ClusterRange, Counts, Ends, Range, of_rows
from calibrant.views.sample import Members, alone, grouped_sketch, sketch_of

NONE_KEPT = (
    'rows without a label were not kept: pass missing="keep" (--missing keep) to predictions, read, sketch or audit'
)


@dataclass(frozen=True)
class Cells:
    """Counts by ``2^10`` cells of the score, of everyone or of some groups."""

    labelled: NDArray[np.int64]  # shape (1024, 2): rows by label
    unlabelled: NDArray[np.int64]  # shape (1024,)
    sums: NDArray[np.int64]  # shape (1024, 2): sums of the scores, out of `2^30`, of the labelled and of the others

    @classmethod
    def of(cls, sketch: Sketch, *groups: int) -> Cells:
        """Read everyone's, or those of a group, or of several, by their numbers; of clusters with their rows."""
        result = cls.counted(sketch, *groups)
        if sketch.kept is None:
            return result
        return ClusterCells(result.labelled, result.unlabelled, result.sums, cluster_rows(sketch).within(groups))

    @classmethod
    def counted(cls, sketch: Sketch, *groups: int) -> Cells:
        """Count them, whatever they weigh."""
        if not groups:
            stored = sketch.cells.sum(axis=0).reshape(CELLS, -1, sketch.cells.shape[-1])
            counts = stored[..., :2].sum(axis=1)
            place = np.arange(stored.shape[1]) << (UNLABELLED_REST - (CELL_BITS - GROUP_BITS))
            rest = (stored[..., :2].sum(axis=-1) * place).sum(axis=1) + stored[..., 2:4].sum(axis=(1, 2))
        else:
            own = sketch.group_cells[list(groups)].sum(axis=(0, 1))
            counts, rest = own[:, :2], own[:, 2:4].sum(axis=1)
        apart = sketch.parts["unlabelled"].stored[[1 + g for g in groups] or [0]].sum(axis=0)
        start = np.arange(CELLS, dtype=np.int64) << UNLABELLED_REST
        sums = np.stack([counts.sum(axis=1) * start + rest, apart[:, 0] * start + apart[:, 1]], axis=1)
        return cls(counts, apart[:, 0], sums)

    @property
    def rows(self) -> int:
        """People with a label."""
        return int(self.labelled.sum())

    @property
    def missing(self) -> int:
        """People without."""
        return int(self.unlabelled.sum())

    @property
    def expected(self) -> tuple[float, float]:
        """Sum of the scores of those with a label, and of those without."""
        first, second = self.sums.sum(axis=0) / STEPS
        return float(first), float(second)

    def ranges(self, count: int, smallest: int = 1) -> list[tuple[int, int]]:
        """Cut the cells into at most so many ranges that hold about as many people each.

        In each are so many people or more, and so many with a label, or none. No label is read.
        """
        every = (self.labelled.sum(axis=1) + self.unlabelled).cumsum()
        cuts = np.searchsorted(every, np.arange(1, count) * every[-1] / count) + 1
        ends = [0, *(int(c) for c in np.unique(cuts) if c < CELLS), CELLS]

        def few(a: int, b: int) -> bool:
            known, people = self.people(a, b)
            return people < smallest or 0 < known < smallest

        while len(ends) > 2:
            bad = next((i for i in range(len(ends) - 1) if few(ends[i], ends[i + 1])), None)
            if bad is None:
                break
            del ends[bad + 1 if bad + 2 < len(ends) else bad]  # it joins the next, and the last the one before
        return list(pairwise(ends))

    def people(self, low: int, high: int) -> tuple[int, int]:
        """Return the people of a range of cells with a label, and all of them."""
        known = int(self.labelled[low:high].sum())
        return known, known + int(self.unlabelled[low:high].sum())

    def part(self, low: int, high: int) -> Cells:
        """Return those of a range of cells."""
        return Cells(self.labelled[low:high], self.unlabelled[low:high], self.sums[low:high])

    def ranged(self, steps: int, odds: float, *, labelled_only: bool = False) -> Ends:
        """Return what certifies the people under an assumption, by step of the score."""
        return Range(self.stepped(steps, labelled_only=labelled_only), odds)

    def stepped(self, steps: int, *, labelled_only: bool = False) -> Counts:
        """Return people by step of the score, of which there are so many to one: the middle of a cell is rounded."""
        step = steps_of(np.arange(CELLS), steps)
        known, events, unknown, sums = (np.zeros(steps + 1, dtype=np.int64) for _ in range(4))
        np.add.at(known, step, self.labelled.sum(axis=1))
        np.add.at(events, step, self.labelled[:, 1])
        np.add.at(sums, step, self.sums[:, 0])
        if not labelled_only:
            np.add.at(unknown, step, self.unlabelled)
            np.add.at(sums, step, self.sums[:, 1])
        there = known + unknown > 0
        score = sums[there] / (known + unknown)[there] / STEPS
        return Counts(known[there], events[there], unknown[there], score)


def steps_of(cell: NDArray[np.int64], steps: int) -> NDArray[np.int64]:
    """The step of the score of each cell."""
    return np.floor((cell + 0.5) / CELLS * steps + 0.5).astype(np.int64)


@dataclass(frozen=True)
class ClusterRows:
    """Every row, with a label or without, of data whose rows share clusters or count more."""

    cluster: NDArray[np.int64]  # shape (n,)
    cell: NDArray[np.int64]  # shape (n,)
    y: NDArray[np.float64]  # shape (n,): NaN without a label
    p: NDArray[np.float64]  # shape (n,)
    weight: NDArray[np.float64]  # shape (n,)
    group: NDArray[np.int64]  # shape (groupings, n): numbers of the sketch's groups

    def within(self, groups: Sequence[int]) -> ClusterRows:
        """The rows of some groups; of none named all."""
        if not groups:
            return self
        at = np.isin(self.group, list(groups)).any(axis=0)
        return ClusterRows(self.cluster[at], self.cell[at], self.y[at], self.p[at], self.weight[at], self.group[:, at])

    def people(self, of: int, *, labelled: bool) -> NDArray[np.int64]:
        """Return how many clusters have rows with a label, or without, in each of so many groups."""
        at = np.isnan(self.y) != labelled
        pairs = np.unique(self.group[:, at] * (int(self.cluster.max()) + 1) + self.cluster[at])
        result: NDArray[np.int64] = np.bincount(pairs // (int(self.cluster.max()) + 1), minlength=of)
        return result


@dataclass(frozen=True)
class ClusterCells(Cells):
    """Counts of people, and their rows by cluster, which are certified."""

    rows_of: ClusterRows

    def ranged(self, steps: int, odds: float, *, labelled_only: bool = False) -> Ends:
        """Return what certifies the clusters under an assumption; those counted once serve every other."""
        return ClusterRange(self._stepped(steps, labelled_only), odds)

    def people(self, low: int, high: int) -> tuple[int, int]:
        """Return the clusters that have a row with a label in a range of cells, and all that have one."""
        q = self.rows_of
        here = (q.cell >= low) & (q.cell < high)
        known, every = (len(np.unique(q.cluster[at])) for at in (here & ~np.isnan(q.y), here))
        return known, every

    def _stepped(self, steps: int, labelled_only: bool) -> ClusterCounts:
        if (steps, labelled_only) not in self._made:
            q = self.rows_of
            at = ~np.isnan(q.y) if labelled_only else np.ones(len(q.y), dtype=np.bool_)
            step = steps_of(q.cell[at], steps)
            self._made[steps, labelled_only] = of_rows(q.cluster[at], step, q.y[at], q.p[at], q.weight[at])
        return self._made[steps, labelled_only]

    @cached_property
    def _made(self) -> dict[tuple[int, bool], ClusterCounts]:
        return {}

    @property
    def clusters(self) -> tuple[int, int]:
        """Clusters, and those of them that have a row without a label."""
        q = self.rows_of
        return len(np.unique(q.cluster)), len(np.unique(q.cluster[np.isnan(q.y)]))


def cluster_rows(sketch: Sketch) -> ClusterRows:
    """Return every row of data that were kept in memory; made once."""
    data = sketch.kept
    apart = None if data is None else data.unlabelled
    if data is None or apart is None:
        raise NotComputable(NONE_KEPT)

    def made() -> ClusterRows:
        n, m = data.n, len(apart.p)
        cluster: NDArray[np.int64] = np.arange(n + m)
        if data.cluster is not None:
            cluster = np.unique(np.concatenate([data.cluster, apart.cluster]), return_inverse=True)[1].reshape(-1)
        weights = [np.ones(k) if w is None else w for k, w in ((n, data.weights), (m, apart.weights))]
        p = np.concatenate([data.p, apart.p])
        q = np.minimum(np.floor(p * STEPS), STEPS - 1.0).astype(np.int64)
        groups = [Members.of_rows(table, k, sketch).group for table, k in ((data.covariates, n), (apart.covariates, m))]
        return ClusterRows(
            cluster=cluster.astype(np.int64),
            cell=q >> UNLABELLED_REST,
            y=np.concatenate([data.y.astype(np.float64), np.full(m, np.nan)]),
            p=p,
            weight=np.concatenate(weights),
            group=np.concatenate(groups, axis=1),
        )

    return remembered(data, ("unlabelled units", sketch.spec.digest), made)


def kept(data: Predictions | Sketch, seed: int, by: tuple[str, ...] = (), intersections: bool = False) -> Sketch:
    """Return the sketch of data whose rows without a label were kept, or say how to keep them."""
    in_rows = isinstance(data, Predictions) and (alone(data) is not data or data.followed is not None)
    if isinstance(data, Predictions) and data.unlabelled is not None and in_rows:
        return sketch_rows(data, Reading(by=by, allow=by, intersections=intersections, seed=checked_seed(seed)))
    whole = data.checked() if isinstance(data, Sketch) and data.kept is not None else None
    whole = whole or sketch_of(data, seed, by, intersections)
    if "unlabelled" not in whole.parts:
        raise NotComputable(NONE_KEPT)
    return whole


def kept_groups(data: Predictions | Sketch, by: tuple[str, ...], intersections: bool, seed: int) -> Sketch:
    """The same with groups, where some are named."""
    if isinstance(data, Sketch):
        return kept(grouped_sketch(data, by, intersections, seed) if by else data, seed)
    kept(data, seed)
    return kept(data, seed, by, intersections)
