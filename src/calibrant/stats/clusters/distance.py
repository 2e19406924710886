r"""The distance from calibration, of clusters: Theorem CU with what showing moves, Theorem CL with a Lipschitz witness.

Of a score shown in steps, ``d <= CE_shown + E|p - shown|``, and both are means of the same clusters: with their ``t_g``
and ``D_g = sum w |p - shown|`` every factor of ``prod_g [1 - kappa (f*' t_g + D_g - x W_g)]`` has mean one at ``x =
CE_shown + E|p - shown|``, and rises in x. So at the distance itself its mean is at most one, for every display, and the
mean over displays is an e-value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BLOCK_ORDERS
from calibrant.stats.bounds import KNOTS, STEPS, lipschitz_witnesses
from calibrant.stats.cells import summed
from calibrant.stats.clusters.bounds import GAP, Above, Below, Bet, Pairs, bets, learnt, orders_of, steady
from calibrant.stats.clusters.clusters import Clusters, Tallies
from calibrant.stats.evidence import SEARCHED, Evidence, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROOM = 1.0 + 2.0**-29  # of a score as it is: a residual, and how far it is rounded to be read
SHARED = len(STEPS) + 1  # displays that share the evidence, whatever scores are seen: the last is the score as it is
RELAXED = 3  # displays, the best by forms that cost little, whose signs are bounded at greater cost


@dataclass(frozen=True)
class Routes(Evidence):
    """Evidence against "the distance is at least x": the mean over displays, and over the bets on each."""

    names: Sequence[str]
    # One a display. Each has an equal share of the evidence; a display that is not made counts nothing.
    above: Sequence[Above]
    shared: int = SHARED  # shares that there are
    start, stop = SEARCHED, 0.0

    @classmethod
    def mean(cls, parts: Sequence[Routes]) -> Routes:
        """The mean of the evidence of several shifts of clusters that cross; of one it is itself."""
        names = [name for part in parts for name in part.names]
        return cls(names, [one for part in parts for one in part.above], sum(part.shared for part in parts))

    def at(self, x: float) -> float:
        """The log e-value."""
        return log_mean_exp([one.at(x) for one in self.above], np.full(len(self.above), 1.0 / self.shared))

    def route(self, high: float) -> str:
        """The display that says most at a limit; none says anything at 1."""
        return self.names[int(np.argmax([one.at(high) for one in self.above]))] if high < 1.0 else "none"


def distance_above(clusters: Clusters, scores: Floats) -> Routes:
    """Bet that the distance is smaller, by every display.

    `scores` (values,): the values that the score takes, increasing, if they are few: none of a score of many values.
    """
    count, names, above = int(np.count_nonzero(clusters.certified)), [], []
    for steps in STEPS:
        level = np.floor(clusters.p * steps + 0.5).astype(np.int64)
        kappas = bets(count, (1.0 + 0.5 / steps) * clusters.largest)
        names.append(f"rounded to {steps} steps")
        above.append(Above.plain(_shown(clusters, level, np.arange(steps + 1) / steps), kappas))
    if len(scores):
        cell = np.maximum(np.searchsorted(scores, clusters.p, side="right") - 1, 0)
        names.append("as it is")
        above.append(Above.plain(_shown(clusters, cell, scores), bets(count, ROOM * clusters.largest)))
    usual = [one.usual for one in above]
    for i in np.argsort(usual, kind="stable")[:RELAXED]:
        above[i] = above[i].relaxed(usual[i])
    return Routes(names, above, SHARED)


def _shown(clusters: Clusters, cell: Ints, values: Floats) -> Pairs:
    """The certified clusters' sums, of rows with the value of their cell, and how far rows are moved."""
    display = values[cell]
    moved = summed(clusters.cluster, clusters.weight * np.abs(clusters.p - display), clusters.count)
    return Pairs.of(clusters.tallies(cell, len(values), display), moved)


def distance_below(clusters: Clusters, delta: float, seed: int) -> Below:
    r"""Bet that the distance is larger: ``d >= E[w(p)(Y - p)]`` whenever ``sup|w| + Lip(w) <= 1``.

    `GAP` of the evidence is bet on a plain shift either way, whose witness is constant; the rest on witnesses that
    are linear between knots and solve a linear programme on earlier blocks of clusters, in random orders of the blocks.
    What a witness wins of a cluster is a sum over knots, exactly.
    """
    own, tallies = clusters.certified, hats(clusters)
    orders = orders_of(seed)
    wagers = steady(clusters, tallies.witnessed(np.ones(tallies.cells)), orders[0], delta)
    for order in orders:
        gain, bet = learnt(tallies, order, _witnesses(tallies, order), delta)
        wagers.append(Bet(gain[own], bet[own], (1.0 - GAP) / BLOCK_ORDERS))
    return Below(wagers, clusters.size[own], clusters.largest)


def hats(clusters: Clusters) -> Tallies:
    """Sums ``sum w h_k(p) (y - p)`` by cluster and knot, with h_k the hat function of the knot."""
    at = clusters.p * KNOTS
    left = np.minimum(at.astype(np.int64), KNOTS - 1)
    share, size = at - left, KNOTS + 1
    residual = clusters.weight * (clusters.y - clusters.p)
    place = clusters.cluster * size + left
    where, pair = np.unique(np.concatenate([place, place + 1]), return_inverse=True)
    value = summed(pair.reshape(-1), np.concatenate([residual * (1.0 - share), residual * share]), len(where))
    return Tallies(where // size, where % size, value, size, clusters)


def _witnesses(tallies: Tallies, order: Ints) -> Floats:
    """The witness learnt on the pilot clusters and the first blocks of an order, shape (blocks, knots).

    A knot whose sum is less than its noise, by clusters, counts as nothing.
    """
    past = np.concatenate([[0], order[:-1]])
    gain, square = (np.cumsum(tallies.by_block(v)[past], axis=0) for v in (False, True))
    return lipschitz_witnesses(np.sign(gain) * np.maximum(np.abs(gain) - np.sqrt(square), 0.0))
