"""What is estimated of one population, with ordinary intervals; it is shown next to what is certified, and decides
nothing.

Gap, observed over expected, and calibration error: the same intervals as of `measure.observed_expected` and
`measure.ece`. They are cluster-robust where rows share clusters, and hold where events are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.results import Interval
from calibrant.stats.measures import Weighed, WeighedByClusters, rate_interval
from calibrant.stats.nulls import ClusterSums, total_interval
from calibrant.stats.strata import SCORES, WEIGHT, Bins
from calibrant.views.population import Population

Floats = NDArray[np.float64]
DRAWS = 200  # simulated outcomes behind the interval of an error
STREAM = 0x0E57  # of random numbers, so that no other method has the same


@dataclass(frozen=True)
class Estimated:
    """Scores and outcomes of one population, as ordinary intervals read them."""

    population: Population
    p: Floats  # shape (m,)
    weighed: Weighed

    @classmethod
    def of(cls, q: Population) -> Estimated | None:
        """Read rows, or certified clusters; None where two columns of clusters cross, or one cluster is all there is.

        Rows are read by cell of the score, with its exact sums; scores of a cell differ by less than a thousandth.
        """
        if q.two_way:
            return None
        if (u := q.clusters) is None:
            cells = q.counted.nonempty
            rows = cells.totals.T.reshape(-1)
            y = np.repeat([0.0, 1.0], cells.size)
            here = rows > 0
            mass = rows[here].astype(np.float64)
            return cls(q, cells.score_sums.T.reshape(-1)[here] / mass, Weighed(y[here], mass, mass))
        own = u.certified[u.cluster]
        names, cluster = np.unique(u.cluster[own], return_inverse=True)
        if len(names) < 2:
            return None
        mass = u.weight[own]
        y = u.y[own].astype(np.float64)
        return cls(q, u.p[own], WeighedByClusters(y, mass, mass**2, cluster.reshape(-1).astype(np.intp)))

    @property
    def expected(self) -> float:
        """The mean score."""
        return self.weighed.mean(self.p)

    def gap(self, alpha: float) -> Interval:
        """The interval of the mean outcome less the mean score."""
        expected = self.expected
        start = self.weighed.mean(self.weighed.y) - expected
        low, high = rate_interval(
            self.weighed, start, lambda t: self.p + t, lambda rate, _: rate - expected, self.weighed.level(alpha)
        )
        return _ordinary(max(low, -1.0), min(high, 1.0), alpha)

    def observed_expected(self, alpha: float) -> Interval | None:
        """The interval of the events over those that scores expect; None where these are fewer than one."""
        expected = self.expected
        if self.weighed.rows * expected < 1.0 - 1e-9:
            return None
        start = self.weighed.mean(self.weighed.y) / expected
        low, high = rate_interval(
            self.weighed, start, lambda t: t * self.p, lambda rate, _: rate / expected, self.weighed.level(alpha)
        )
        return _ordinary(low, high, alpha)

    def error(self, steps: int, alpha: float, seed: int) -> Interval:
        """The interval of the calibration error of the judged score; it covers the size of the gap too."""
        bins, level = self._by_value(steps), self.weighed.level(alpha)
        draws = bins.gap_noise(DRAWS, np.random.default_rng([seed, STREAM]))
        sizes = total_interval(bins.gap, draws, lambda gap: np.abs(gap).sum(axis=-1), level)
        # No error is smaller than the size of its score's own gap, which moves by as much as rounding moves the mean.
        gap, by = self.gap(alpha), self.expected - float(bins.sums[:, SCORES].sum() / bins.sums[:, WEIGHT].sum())
        low, high = gap.low + by, gap.high + by
        return _ordinary(max(sizes.low, low, -high), min(max(sizes.high, -low, high), 1.0), alpha)

    def _by_value(self, steps: int) -> Bins:
        """The rows by value of the judged score."""
        shown = self.population.judged(steps)
        u, value = self.population.clusters, shown.cells.low
        if u is None:
            rows = shown.cells.totals.sum(axis=1).astype(np.float64)
            events = shown.cells.totals[:, 1].astype(np.float64)
            square = events * (1.0 - value) ** 2 + (rows - events) * value**2
            sums = np.stack([rows, rows, events, rows * value, square, rows], axis=1)
            return Bins(sums[rows > 0], len(value))
        own = u.certified[u.cluster]
        at, w, y = shown.cell_of(u.p[own]), self.weighed.mass, self.weighed.y
        residual = y - value[at]
        parts = (np.ones(len(at)), w, w * y, w * value[at], w**2 * residual**2, w**2)
        sums = np.stack([np.bincount(at, v, len(value)) for v in parts], axis=1)
        here = sums[:, 0] > 0
        cell = (np.cumsum(here) - 1)[at].astype(np.intp)
        cluster = np.unique(u.cluster[own], return_inverse=True)[1].reshape(-1)
        clusters = ClusterSums.of(cell, cluster, int(here.sum()), w * residual, w)
        return Bins(sums[here], len(value), clusters=clusters)


def _ordinary(low: float, high: float, alpha: float) -> Interval:
    return Interval(low=float(low), high=float(high), level=1.0 - alpha, guarantee="asymptotic")
