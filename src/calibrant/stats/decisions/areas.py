r"""Areas under two ROC curves on the same rows: differences in blocks of rows, or of clusters, that share nobody.

A pair of an event and another adds ``d = 1{old: the event is above} - 1{new: so}``, ties half; its mean is how much
smaller the new area is. Blocks are dealt at random, and each is a mean, or a sum, over its own pairs: what a block says
is independent of what another does, so that bets on blocks one after another hold at any number of rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.cells import summed
from calibrant.stats.decisions.paired import PairedClusters

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
ALONE = 250.0  # blocks are single pairs up to so many; sides then grow with the root of how often that goes


def side(blocks: float) -> int:
    """Return how many of each side to put into a block where there are `blocks` single ones.

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
    """Return in each block the weight of pairs, of an event and another, in which the event is above; ties half."""
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
