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
from calibrant.stats.decisions.paired import PairedUnits

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
ALONE = 250.0  # blocks are single pairs up to so many; sides then grow with the root of how often that goes


def side(blocks: float) -> int:
    """Return how many of each side to put into a block where there are `blocks` single ones.

    Larger blocks have more pairs of the same rows, so that the mean over all varies less; but the fewer the blocks, the
    more a limit pays for the range of a difference.
    """
    return max(math.isqrt(int(blocks / ALONE)), 1)


def row_areas(scores: tuple[Floats, Floats], case: NDArray[np.bool_], rng: np.random.Generator) -> PairedUnits:
    """Deal independent rows: given the outcomes, a block's events and others are drawn from all there are.

    Every row is in one block, and a block is the mean of ``d`` over its pairs; its size is 1.
    """
    few = int(min(np.count_nonzero(case), np.count_nonzero(~case)))
    count = max(few // side(few), 1)
    block = np.empty(len(case), dtype=np.intp)
    for rows in (np.flatnonzero(case), np.flatnonzero(~case)):
        block[rng.permutation(rows)] = np.arange(len(rows)) % count
    ones = np.ones(len(case))
    old, new = (above(p, case, ones, block, count) for p in scores)
    pairs = summed(block, case.astype(np.float64), count) * summed(block, (~case).astype(np.float64), count)
    return PairedUnits((old - new) / pairs, np.ones(count), 1.0, 1.0)


def unit_areas(
    scores: tuple[Floats, Floats],
    case: NDArray[np.bool_],
    weight: Floats,
    unit: Rows,
    most: float,
    rng: np.random.Generator,
) -> PairedUnits:
    """Deal clusters, numbered from 0 on: a block sums ``w w' d`` over pairs of rows of different clusters.

    Its size, the sum of ``w w'``, is with k clusters of at most M at most ``floor(k^2 / 4) M^2``, which clusters that
    are all events, or all others, reach.
    """
    units = int(unit.max()) + 1
    each = min(2 * side(units / 2), units)
    count = max(units // each, 1)
    dealt = np.empty(units, dtype=np.intp)
    dealt[rng.permutation(units)] = np.arange(units) % count
    block, each = dealt[unit], -(-units // count)
    # (1) Every pair of a block, (2) less those within one unit
    old, new = (
        above(p, case, weight, block, count) - summed(dealt, above(p, case, weight, unit, units), count) for p in scores
    )
    cases, others = (np.where(rows, weight, 0.0) for rows in (case, ~case))
    size = summed(block, cases, count) * summed(block, others, count)
    size -= summed(dealt, summed(unit, cases, units) * summed(unit, others, units), count)
    size = np.maximum(size, 0.0)
    value = np.clip(old - new, -size, size)  # what differences of sums leave over by rounding
    return PairedUnits(value, size, 1.0, (each * each // 4) * most * most)


def above(p: Floats, case: NDArray[np.bool_], weight: Floats, block: Rows, count: int) -> Floats:
    """Return in each block the weight of pairs, of an event and another, in which the event is above; ties half."""
    # (1) Rows by block and score, and which of them tie
    order = np.lexsort((p, block))
    at, score = block[order], p[order]
    start = np.append(True, (np.diff(at) > 0) | (np.diff(score) > 0))
    tie = np.cumsum(start) - 1
    # (2) Weights of cases and others by tie, (3) and of others below, in the same block
    cases, others = (summed(tie, np.where(rows, weight, 0.0)[order]) for rows in (case, ~case))
    here = at[start]
    before = np.cumsum(others) - others
    first = before[np.searchsorted(here, np.arange(count))] if len(here) else before
    return summed(here, cases * (before - first[here] + 0.5 * others), count)
