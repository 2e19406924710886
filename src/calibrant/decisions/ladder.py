"""Scores in steps, cut where a decision cuts them: the rows of each step by outcome, or the clusters' sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sketch import Sketch
from calibrant.stats.cells import SCALE, summed
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.decisions.net_benefit import Gains
from calibrant.stats.decisions.regret import Lots
from calibrant.views.points import Points
from calibrant.views.population import FINE, QUANTISATION, OfClusters, Population, fixed_scores
from calibrant.views.sample import Dealing, everyone

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STEPS = 100  # in which a score of many values is put to its best use
COARSE = 1024  # cells of a group: thresholds that no finer count knows move up to the next of their edges
FEW, WHOLE = "the values that the score takes", "whole percentages of the score"


@dataclass(frozen=True)
class Ladder:
    """What a decision at a threshold reads of some people."""

    threshold: float
    # The score from which on people are acted on: the threshold, or the next score that counts can tell apart.
    acts_from: float
    low: Floats  # shape (steps,): where each step begins
    cut: int  # the first step that is acted on
    counts: Ints  # shape (blocks, steps, 2): rows by outcome; of clusters too, for what is reported
    exact: bool  # the steps are the values that the score takes

    @classmethod
    def of(cls, q: Population, threshold: float, rows: Predictions | None = None, seed: int = 0) -> Ladder:
        """Cut the score of a population; of independent rows at hand at the threshold itself.

        Counts know the values of a score that takes few, and multiples of 0.005; else it is cut at the next of 1,024
        edges, the same for everyone and for groups.
        """
        if isinstance(q, OfClusters):
            return ClusterLadder.of_clusters(q, threshold)
        if q.exact:
            low, cut = q.scores / SCALE, _at(q.scores / SCALE, threshold)
            return cls(threshold, threshold, low, cut, _in_blocks(q), True)
        halves = threshold * FINE
        if abs(halves - round(halves)) < 1e-9:
            return cls._joined(threshold, threshold, np.arange(FINE) / FINE, q.fine)
        if rows is not None:
            return cls._of_rows(rows, threshold, seed)
        edge = np.ceil(threshold * COARSE) / COARSE
        counts = q.raw[..., :2]
        fine = counts.reshape(len(counts), COARSE, -1, 2).sum(axis=2)
        return cls._joined(threshold, float(edge), np.arange(COARSE) / COARSE, fine)

    @classmethod
    def _joined(cls, threshold: float, acts_from: float, low: Floats, counts: Ints) -> Ladder:
        """Join fine steps to whole percentages, cut where it acts."""
        step = np.floor(low * STEPS + 1e-9).astype(np.int64) * 2 + (low >= acts_from - 1e-12)
        starts = np.flatnonzero(np.diff(step, prepend=-1))
        joined = np.add.reduceat(counts, starts, axis=1)
        cut = int(np.searchsorted(low[starts], acts_from - 1e-12))
        return cls(threshold, acts_from, low[starts], cut, joined, False)

    @classmethod
    def _of_rows(cls, rows: Predictions, threshold: float, seed: int) -> Ladder:
        """Cut rows at hand anywhere."""
        low = np.unique(np.append(np.arange(STEPS) / STEPS, threshold))
        dealing = Dealing.of(rows.n, seed)
        cell = _step(low, rows.p)
        at = (dealing.block[: rows.n] * len(low) + cell) * 2 + rows.y
        counts = np.bincount(at, minlength=dealing.blocks * len(low) * 2).reshape(dealing.blocks, len(low), 2)
        return cls(threshold, threshold, low, _at(low, threshold), counts, False)

    @property
    def about(self) -> str:
        """What the best use is of."""
        return FEW if self.exact else WHOLE

    @cached_property
    def lots(self) -> Lots:
        """What rows, or clusters, add in each step."""
        return Lots.of_counts(self.counts, self.low, self.cut, self.threshold)

    def gains(self, over_all: bool, seed: int) -> Gains:
        """What rows, or clusters, add to the net benefit, or to its excess over acting on all; times 1 - t."""
        t, (acted, events), (left, missed) = self.threshold, self.acted, self.left
        if over_all:
            return Gains.of_counts((t, t - 1.0, 0.0), (left - missed, missed, acted), seed)
        return Gains.of_counts((1.0 - t, -t, 0.0), (events, acted - events, left), seed)

    def people(self, low: float, high: float) -> int:
        """How many people, rows or clusters, have a score from one number to below another."""
        at = (self.low >= low - 1e-9) & (self.low < high - 1e-9)
        return int(self.counts[:, at].sum())

    @property
    def acted(self) -> tuple[int, int]:
        """Rows that are acted on, and events among them."""
        return self._counted(slice(self.cut, None))

    @property
    def left(self) -> tuple[int, int]:
        """Rows that are not, and events among them."""
        return self._counted(slice(None, self.cut))

    def _counted(self, steps: slice) -> tuple[int, int]:
        rows = self.counts[:, steps].sum(axis=(0, 1))
        return int(rows.sum()), int(rows[1])


@dataclass(frozen=True)
class ClusterLadder(Ladder):
    """The same of clusters, cut at the threshold itself."""

    clusters: Clusters

    @classmethod
    def of_clusters(cls, q: OfClusters, threshold: float) -> ClusterLadder:
        """Cut the scores of the rows of clusters."""
        clusters = q.clusters
        low = q.scores / SCALE if q.exact else np.unique(np.append(np.arange(STEPS) / STEPS, threshold))
        cell = _cell(clusters, low, q.exact)
        counts = np.bincount(2 * cell + clusters.y, minlength=2 * len(low)).reshape(1, len(low), 2)
        return cls(threshold, threshold, low, _at(low, threshold), counts, q.exact, clusters)

    @cached_property
    def lots(self) -> Lots:
        u, t = self.clusters, self.threshold
        sums = u.sums(_cell(u, self.low, self.exact), len(self.low), u.y.astype(np.float64) - t)
        ones, block = np.ones(u.count), u.block - 1
        return Lots(sums.cluster, sums.cell, sums.value, u.size, ones, block, u.largest, self.low, self.cut, t)

    def gains(self, over_all: bool, seed: int) -> Gains:
        u, t, on = self.clusters, self.threshold, self.acts
        won = np.where(on, 0.0, t - u.y) if over_all else np.where(on, u.y - t, 0.0)
        span = (t - 1.0, t, u.largest) if over_all else (-t, 1.0 - t, u.largest)
        return Gains.of_clusters(summed(u.cluster, u.weight * won, u.count), u.size, u.certified, span, seed)

    def people(self, low: float, high: float) -> int:
        u = self.clusters
        return len(np.unique(u.cluster[(u.p >= low) & (u.p < high)]))

    @cached_property
    def acts(self) -> NDArray[np.bool_]:
        """Which rows are acted on."""
        return _cell(self.clusters, self.low, self.exact) >= self.cut

    def shares(self, hit: NDArray[np.bool_], among: NDArray[np.bool_], seed: int) -> Gains:
        """What clusters add to a rate: their rows that count, among their rows that are there."""
        u = self.clusters
        value, size = (summed(u.cluster, u.weight * some, u.count) for some in (hit & among, among))
        return Gains.of_clusters(value, size, u.certified, (0.0, 1.0, u.largest), seed)


def _at(low: Floats, threshold: float) -> int:
    """The first step at or above a threshold; scores are read to `QUANTISATION`, rounded down."""
    return int(np.searchsorted(low, threshold - QUANTISATION))


def _cell(clusters: Clusters, low: Floats, exact: bool) -> Ints:
    if exact:
        result: Ints = np.searchsorted(low * SCALE, fixed_scores(clusters.p)).astype(np.int64)
        return result
    return _step(low, clusters.p)


def _step(low: Floats, p: Floats) -> Ints:
    return np.maximum(np.searchsorted(low - QUANTISATION, p, side="right") - 1, 0).astype(np.int64)


def _in_blocks(q: Population) -> Ints:
    """The rows of each value by outcome: in blocks, where no two values share a cell."""
    cell = (q.scores * q.grid) >> 30
    return q.by_score[None] if (np.diff(cell) == 0).any() else q.raw[:, cell, :2]


def ladder(data: Points | Predictions | Sketch, threshold: float, seed: int = 0) -> tuple[Ladder, Population | Points]:
    """The ladder of what a public function was given, and what it was read as."""
    if isinstance(data, Points) and data.population is not None:
        return Ladder.of(data.population, threshold), data
    inputs = checked_data(data, Predictions, Sketch)
    q = everyone(inputs, seed)
    return Ladder.of(q, threshold, inputs if isinstance(inputs, Predictions) else None, seed), q
