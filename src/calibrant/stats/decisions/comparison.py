"""What a row loses under a score, if the outcome is 0 and if it is 1: the difference is what is compared.

Limits for the mean of paired differences in a population: bets on independent clusters, one after another.

A cluster adds ``Z = sum w d`` over its rows, with ``|d| <= B``, and has size ``W = sum w <= M``. If ``E Z / E W >= m``,
and the bet ``k_u >= 0`` is fixed by the clusters before u alone, ``prod_u [1 - k_u (Z_u - m W_u)]`` has mean at most
one; it is positive as ``k_u M (B - m) < 1``. It rises with m: where it reaches ``1 / delta``, every larger mean is
refuted.

Areas under two ROC curves on the same rows: differences in blocks of rows, or of clusters, that share nobody.

A pair of an event and another adds ``d = 1{old: the event is above} - 1{new: so}``, ties half; its mean is how much
smaller the new area is. Blocks are dealt at random, and each is a mean, or a sum, over its own pairs: what a block says
is independent of what another does, so that bets on blocks one after another hold at any number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BetSizes
from calibrant.stats.cells import summed
from calibrant.stats.evidence import limit_of, log_mean_exp

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
HALF = 0.5  # from this score on a row is called a case


def squared(p: Floats) -> Ends:
    """The squared error."""
    return p**2, (1.0 - p) ** 2


def logarithmic(p: Floats, edge: float) -> Ends:
    """The logarithmic loss, scores kept `edge` from 0 and 1."""
    kept = np.clip(p, edge, 1.0 - edge)
    return -np.log1p(-kept), -np.log(kept)


def wrong(p: Floats) -> Ends:
    """Whether the row is called wrongly."""
    called = (p >= HALF).astype(np.float64)
    return called, 1.0 - called


def benefit_lost(p: Floats, threshold: float) -> Ends:
    """Minus the row's part of the net benefit: acting on an event gains one, on another it costs the odds."""
    acted = (p >= threshold).astype(np.float64)
    return acted * odds(threshold), 0.0 - acted


def odds(threshold: float) -> float:
    """What acting on a non-event costs, in events acted on: such that acting at the threshold gains 0."""
    return threshold / (1.0 - threshold)


# ---- Limits for the mean of paired differences in a population: bets on clusters, one after another ----

BETS = BetSizes((0.5, 1.0, 2.0), (0.1, 0.8, 0.1), 0.95)  # times what is the best for the noise of the clusters before
FIRST = 16.0  # the noise expected before a cluster was seen: a variance of (B M)^2 / 16, which counts as one cluster
SMALLEST = 1e-12  # of ``B - m``, so that a bet is finite at the largest mean there can be


@dataclass(frozen=True)
class PairedClusters:
    """Differences of independent clusters from one population, in an order that nothing of them has chosen."""

    # `value` and `size`, shape (m,): sums of weighted differences, and of weights.
    value: Floats
    size: Floats
    reach: float  # B: no difference is larger, whatever the scores and the outcome
    most: float  # M: no size is larger; fixed without the clusters here

    @property
    def mean(self) -> float:
        """The mean difference seen."""
        return float(self.value.sum() / self.size.sum())

    @cached_property
    def noise(self) -> Floats:
        """Root of the variance to expect of each cluster, by the clusters before it."""
        total, size = np.cumsum(self.value), np.cumsum(self.size)
        # (1) The mean of the clusters before, 0 until one has a size; (2) the squares about it, each by its own past
        known = np.divide(total, size, out=np.zeros_like(total), where=size > 0.0)
        before = np.append(0.0, known[:-1])
        squares = np.cumsum((self.value - before * self.size) ** 2)
        first = (self.reach * self.most) ** 2 / FIRST
        return np.sqrt((first + np.append(0.0, squares[:-1])) / np.arange(1.0, len(squares) + 1.0))

    def limits(self, delta: float) -> tuple[float, float]:
        """Limits that hold the population's mean, each missing it with probability at most ``delta / 2``."""
        low, high = -self._upper(-1.0, 0.5 * delta), self._upper(1.0, 0.5 * delta)
        return min(low, self.mean), max(high, self.mean)

    def evidence(self, sign: float, mean: float, delta: float) -> float:
        """The log e-value against "the mean of ``sign * d`` is at least `mean`", with bets for `delta`."""
        z = sign * self.value
        wished = np.array(BETS.multiples)[:, None] * (math.sqrt(-2.0 * math.log(delta) / len(z)) / self.noise)
        largest = BETS.largest / (self.most * max(self.reach - mean, SMALLEST))
        gain = np.log1p(-np.minimum(wished, largest) * (z - mean * self.size)).sum(axis=1)
        return log_mean_exp(gain, BETS.shares)

    def _upper(self, sign: float, delta: float) -> float:
        """The least mean of ``sign * d`` that is refuted."""
        return limit_of(lambda m: self.evidence(sign, m, delta), delta, self.reach, -self.reach)


# ---- Areas under two ROC curves on the same rows: differences in blocks that share nobody ----

Rows = NDArray[np.intp]
ALONE = 250.0  # blocks are single pairs up to so many; sides then grow with the root of how often that goes


def side(blocks: float) -> int:
    """How many of each side to put into a block where there are `blocks` single ones.

    Larger blocks have more pairs of the same rows, so that the mean over all varies less; but the fewer the blocks, the
    more a limit pays for the range of a difference.
    """
    return max(math.isqrt(int(blocks / ALONE)), 1)


def row_areas(scores: tuple[Floats, Floats], event: NDArray[np.bool_], rng: np.random.Generator) -> PairedClusters:
    """Deal independent rows: given the outcomes, a block's events and others are drawn from all there are.

    Every row is in one block, and a block is the mean of ``d`` over its pairs; its size is 1.
    """
    few = int(min(np.count_nonzero(event), np.count_nonzero(~event)))
    count = max(few // side(few), 1)
    block = np.empty(len(event), dtype=np.intp)
    for rows in (np.flatnonzero(event), np.flatnonzero(~event)):
        block[rng.permutation(rows)] = np.arange(len(rows)) % count
    ones = np.ones(len(event))
    old, new = (above(p, event, ones, block, count) for p in scores)
    pairs = summed(block, event.astype(np.float64), count) * summed(block, (~event).astype(np.float64), count)
    return PairedClusters((old - new) / pairs, np.ones(count), 1.0, 1.0)


def cluster_areas(
    scores: tuple[Floats, Floats],
    event: NDArray[np.bool_],
    weight: Floats,
    cluster: Rows,
    most: float,
    rng: np.random.Generator,
) -> PairedClusters:
    """Deal clusters, numbered from 0 on: a block sums ``w w' d`` over pairs of rows of different clusters.

    Its size, the sum of ``w w'``, is with k clusters of at most M at most ``floor(k^2 / 4) M^2``, which clusters that
    are all events, or all others, reach.
    """
    clusters = int(cluster.max()) + 1
    each = min(2 * side(clusters / 2), clusters)
    count = max(clusters // each, 1)
    block_of = np.empty(clusters, dtype=np.intp)
    block_of[rng.permutation(clusters)] = np.arange(clusters) % count
    block, each = block_of[cluster], -(-clusters // count)
    # (1) Every pair of a block, (2) less those within one cluster
    old, new = (
        above(p, event, weight, block, count) - summed(block_of, above(p, event, weight, cluster, clusters), count)
        for p in scores
    )
    events, others = (np.where(rows, weight, 0.0) for rows in (event, ~event))
    size = summed(block, events, count) * summed(block, others, count)
    size -= summed(block_of, summed(cluster, events, clusters) * summed(cluster, others, clusters), count)
    size = np.maximum(size, 0.0)
    value = np.clip(old - new, -size, size)  # what differences of sums leave over by rounding
    return PairedClusters(value, size, 1.0, (each * each // 4) * most * most)


def above(p: Floats, event: NDArray[np.bool_], weight: Floats, block: Rows, count: int) -> Floats:
    """In each block the weight of pairs, of an event and another, in which the event is above; ties half."""
    # (1) Rows by block and score, and which of them tie
    order = np.lexsort((p, block))
    at, score = block[order], p[order]
    start = np.append(True, (np.diff(at) > 0) | (np.diff(score) > 0))
    tie = np.cumsum(start) - 1
    # (2) Weights of events and others by tie, (3) and of others below, in the same block
    events, others = (summed(tie, np.where(rows, weight, 0.0)[order]) for rows in (event, ~event))
    here = at[start]
    before = np.cumsum(others) - others
    first = before[np.searchsorted(here, np.arange(count))] if len(here) else before
    return summed(here, events * (before - first[here] + 0.5 * others), count)
