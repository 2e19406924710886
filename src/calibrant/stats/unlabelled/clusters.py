r"""The same ends where rows share clusters, or count more: one bet for a cluster, not for a row.

Scores, weights, clusters, and whose outcome is known, are taken as they are; clusters are independent. For signs ``f``
of the error in each step a cluster has ``T_g(f)``, the weighted sum of its rows' shares of a bet, whose sum over all
clusters has a mean no less than that of ``f`` times the weighted residuals of all rows, whatever the outcomes that are
not known. With a stake that no outcome changes, ``prod_g [1 - kappa (T_g - x W_g)]`` has a mean of at most one at the
true x: factors are independent, positive, and ``prod (1 - z_g) <= exp(-sum z_g)``. Nothing asks that clusters be alike,
so that none leaves and none is made lighter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.cells import summed
from calibrant.stats.clusters.above import Above, Pairs
from calibrant.stats.evidence import log_mean_exp
from calibrant.stats.unlabelled.ranges import EVEN, Ends, Side, bet_sizes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TURNS = 16  # places at which a pattern of signs turns, of those that are bet on from below
MOST_PRODUCTS = 4_000_000  # clusters times patterns, at most: of more clusters a plain shift alone is bet on


@dataclass(frozen=True)
class ClusterCounts:
    """Rows by cluster and step of the score."""

    # `cluster` and `step`, shape (n,): of every row, with an outcome or without; both from 0, and none is empty.
    cluster: Ints
    step: Ints
    y: Floats  # shape (n,): the outcome; NaN where it is not known
    p: Floats  # shape (n,)
    weight: Floats  # shape (n,)
    cache: dict[tuple[float, float, bool], Sums] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.cluster)

    @cached_property
    def clusters(self) -> int:
        """Clusters."""
        return int(self.cluster.max(initial=-1)) + 1

    @cached_property
    def known(self) -> Floats:
        """Weight of the rows with an outcome, by step."""
        return self._by_step(np.where(np.isnan(self.y), 0.0, self.weight))

    @cached_property
    def unknown(self) -> Floats:
        """Weight of the others."""
        return self._by_step(np.where(np.isnan(self.y), self.weight, 0.0))

    @cached_property
    def score(self) -> Floats:
        """Mean score of all rows, by step."""
        return self._by_step(self.weight * self.p) / self._by_step(self.weight)

    @cached_property
    def size(self) -> Floats:
        """``W_g``, shape (clusters,)."""
        return summed(self.cluster, self.weight, self.clusters)

    def _by_step(self, values: Floats) -> Floats:
        return summed(self.step, values, int(self.step.max(initial=-1)) + 1)

    def sums(self, odds: float, sign: float, worst: bool) -> Sums:
        """The clusters' sums of shares on one sign; made once."""
        if (odds, sign, worst) not in self.cache:
            side = Side.of(self, odds, sign, worst=worst)
            of_row = np.where(self.y == 1.0, side.event[self.step], side.none[self.step])
            share = np.where(np.isnan(self.y), side.rest[self.step], of_row)
            either = np.maximum(np.abs(side.event), np.abs(side.none))[self.step]
            reach = self.weight * np.where(np.isnan(self.y), np.abs(side.rest[self.step]), either)
            self.cache[odds, sign, worst] = Sums(self.weight * share, reach)
        return self.cache[odds, sign, worst]


@dataclass(frozen=True)
class Sums:
    """Shares on one sign of the error."""

    share: Floats  # shape (n,): of each row, times its weight
    reach: Floats  # shape (n,): what no outcome makes the size of a row's share exceed


@dataclass(frozen=True)
class ClusterBets:
    """Evidence of one kind of line."""

    counts: ClusterCounts
    odds: float  # at least 1

    @cached_property
    def _above(self) -> Above:
        """A lower bound, over all patterns of signs, of the products that refute a smaller error.

        ``T_g(f) = sum_c f_c (A_gc - B_gc) / 2 + (A_gc + B_gc) / 2``, of the sums A on one sign and B on the other: the
        second part has no sign of its own, and is taken off the price as what is certified along with an error.
        """
        c, (more, less) = self.counts, self._sides(worst=True)
        where, pair = np.unique(c.cluster * (int(c.step.max()) + 1) + c.step, return_inverse=True)
        a, b = (summed(pair.reshape(-1), side.share, len(where)) for side in (more, less))
        cluster, cell = np.divmod(where, int(c.step.max()) + 1)
        value = 0.5 * (a - b)
        moved = summed(cluster, 0.5 * (a + b), c.clusters)
        pairs = Pairs(
            cluster, cell, value, summed(cluster, np.abs(value), c.clusters), c.size, int(c.step.max()) + 1, moved
        )
        return Above.plain(pairs, bet_sizes(c.clusters, 1.0 / self._largest(worst=True)))

    def _sides(self, *, worst: bool) -> tuple[Sums, Sums]:
        return self.counts.sums(self.odds, 1.0, worst), self.counts.sums(self.odds, -1.0, worst)

    def _largest(self, *, worst: bool) -> float:
        """Return what no cluster's sum exceeds, whatever the signs and the outcomes."""
        more, less = self._sides(worst=worst)
        return float(summed(self.counts.cluster, np.maximum(more.reach, less.reach), self.counts.clusters).max())

    def refute_less(self, x: float) -> float:
        """Return log evidence against "the error is x" from smaller errors: grows with x."""
        return self._above.at(x)

    def refute_more(self, x: float) -> float:
        """Return log evidence against "the error is at most x": falls with x.

        Half is on a plain shift, half on signs that turn once along the score. A stake that could lose everything at
        this x counts nothing.
        """
        largest, size = self._largest(worst=False), self.counts.size
        kappa = bet_sizes(self.counts.clusters, 1.0 / largest)
        share, kappa = 1.0 / len(kappa), kappa[kappa * (x * float(size.max()) + largest) < 1.0]
        if not len(kappa):
            return -np.inf
        logs = np.array([[float(np.log1p(k * (t - x * size)).sum()) for t in self._patterns] for k in kappa.tolist()])
        plain = np.logaddexp(logs[:, 0], logs[:, 1]) - np.log(2.0)
        turned = logs[:, 2:]
        if turned.shape[1]:
            top = turned.max(axis=1)
            rest = top + np.log(np.exp(turned - top[:, None]).mean(axis=1))
            plain = np.logaddexp(plain + np.log(EVEN), rest + np.log(1.0 - EVEN))
        return log_mean_exp(plain, np.full(len(kappa), share))

    @cached_property
    def _patterns(self) -> list[Floats]:
        """The clusters' sums for both plain shifts, then for signs that turn once: patterns that no outcome chose."""
        c, sides = self.counts, self._sides(worst=False)
        whole = [summed(c.cluster, side.share, c.clusters) for side in sides]
        steps = int(c.step.max()) + 1
        before = np.cumsum(c.known + c.unknown)
        turns = np.unique(np.searchsorted(before, np.arange(1, TURNS + 1) * before[-1] / (TURNS + 1))) + 1
        turns = turns[turns < steps]
        if 2 * len(turns) * c.clusters > MOST_PRODUCTS:
            return whole
        out = list(whole)
        for turn in turns.tolist():
            low = c.step < turn
            for first, second in (sides, sides[::-1]):
                out.append(summed(c.cluster, np.where(low, first.share, second.share), c.clusters))
        return out

    def refute_mean(self, sign: float, x: float) -> float:
        """Return log evidence against "the mean of sign times residual is x", from smaller ones: grows with x."""
        side, c = self._sides(worst=True)[0 if sign > 0.0 else 1], self.counts
        gain, reach = (summed(c.cluster, v, c.clusters) for v in (side.share, side.reach))
        kappa = bet_sizes(c.clusters, 1.0 / float((reach + c.size).max()))
        logs = [float(np.log1p(-k * (gain - x * c.size)).sum()) for k in kappa.tolist()]
        return log_mean_exp(logs)


@dataclass(frozen=True)
class ClusterRange(Ends):
    """Ends of rows in clusters, which are independent."""

    counts: ClusterCounts
    odds: float  # at least 1: gamma

    @property
    def some_unknown(self) -> bool:
        """Whether an outcome is not known."""
        return bool(self.counts.unknown.any())

    def evidence(self, odds: float) -> ClusterBets:
        """The bets on lines at these odds."""
        return ClusterBets(self.counts, odds)


def of_rows(cluster: Ints, step: Ints, y: Floats, p: Floats, weight: Floats) -> ClusterCounts:
    """Return rows of any clusters and steps, numbered without gaps; of weights only the ratios count."""
    clusters, steps = (np.unique(v, return_inverse=True)[1].reshape(-1).astype(np.int64) for v in (cluster, step))
    return ClusterCounts(clusters, steps, y, p, weight / weight.mean() if len(weight) else weight)
