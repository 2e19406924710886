r"""Theorem CL: the calibration error from below, and the gap from both sides, one factor a cluster.

For a witness ``|f| <= 1`` and a bet kappa, both learnt on earlier clusters, a cluster has ``E[1 + kappa (sum w f (y -
p) - x W) | past] <= 1`` wherever the error is at most x; the factor is positive as long as ``kappa M (1 + x) < 1``,
whatever its rows have to do with each other. So a bet is cut to ``.95 / (M (1 + x))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BLOCK_ORDERS, MOST_LOST, SOFT, sized
from calibrant.stats.clusters.clusters import BLOCKS, Clusters, Tallies
from calibrant.stats.evidence import Evidence, Gap, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BINS = 10  # along the score, edges from pilot clusters
ORDERS = 0x0BE1  # stream of random numbers, apart from those of other methods at the same seed
GAP = 0.5  # of the evidence is bet on a plain shift, as of independent rows
# Bets on a constant witness: multiples of the best for what earlier clusters showed, and shares of the evidence.
MULTIPLES = (0.5, 1.0, 2.0)
SHARES = (0.1, 0.8, 0.1)


@dataclass(frozen=True)
class Bet:
    """One e-value: what a witness wins of each cluster, the bet on it, and its share of the evidence."""

    # Shape (u,), or (k, u): `sum w f (y - p)` of each certified cluster; or of `y - p - m`, for each of k shifts m, of
    # which the worst counts.
    gain: Floats
    bet: Floats  # shape (u,): kappa, or more than a hypothesis allows, which cuts it
    share: float


@dataclass(frozen=True)
class Below(Evidence):
    """Evidence against "the error is at most x": ``sum_j share_j prod_g (1 + kappa_jg (gain_jg - x W_g))``."""

    wagers: Sequence[Bet]
    size: Floats  # shape (u,): `W_g`
    largest: float  # M
    # `room` cuts the bets: no number that outcomes change. `reach` is what no residual exceeds: 1, or more where a
    # shift is taken off that outcomes chose. A bet that could lose too much at a reach above `room` counts nothing.
    room: float = 1.0
    reach: float = 1.0

    def at(self, x: float) -> float:
        """The log e-value, which falls with x; no bet is larger than is safe at x."""
        logs = [self._log(bet, x) for bet in self.wagers]
        return log_mean_exp(logs, np.array([w.share for w in self.wagers]))

    def _log(self, bet: Bet, x: float) -> float:
        kappa = sized(bet.bet * self.largest, x, most=self.room) / self.largest
        lost = float(kappa.max(initial=0.0)) * self.largest * (self.reach + x)
        if self.reach > self.room and lost > MOST_LOST:
            return -np.inf
        return float(np.log1p(kappa * (bet.gain - x * self.size)).sum(axis=-1).min())


@dataclass(frozen=True)
class GapBets:
    """Evidence about the weighted mean residual: ``prod_g (1 + kappa_g (t_g - m W_g))`` has mean one at the true m."""

    # `gain` and `size`, shape (u,): `t_g = sum w (y - p)` and `W_g` of each certified cluster.
    gain: Floats
    size: Floats
    bets: Floats  # shape (j, u): kappa of each of several bets, or more than a hypothesis allows, which cuts it
    largest: float  # M

    def at(self, mean: float, side: float) -> float:
        """The log e-value against "the gap is at most `mean`" (`side` 1), or at least (-1)."""
        away = side * (self.gain - mean * self.size)
        bets = sized(self.bets * self.largest, mean, side) / self.largest
        return log_mean_exp(np.log1p(bets * away).sum(axis=1), np.array(SHARES))


def gap_of(clusters: Clusters, delta: float, gain: Floats | None = None) -> Gap:
    """Bet on the gap of clusters, with bets that are the best at `delta`.

    `gain` has the clusters' sums, shape (m,): of ``w (y - p)`` by default.
    """
    own = clusters.certified
    gain = residuals(clusters) if gain is None else gain
    order = np.arange(1, BLOCKS + 1)
    bets = np.outer(MULTIPLES, _bets(clusters, gain, order, delta)[own])
    return Gap.of(GapBets(gain[own], clusters.size[own], bets, clusters.largest).at)


def below_of(tallies: Tallies, delta: float, seed: int, few: bool, bins: Ints | None = None) -> Below:
    """Bet that the error is larger, with bets that are the best at `delta`.

    `GAP` of the evidence is bet on a plain shift either way, whose witness is constant; the rest in equal parts on
    signs learnt on earlier blocks of clusters, in `BLOCK_ORDERS` random orders of the blocks after the pilot clusters.

    `seed`: orders the blocks. `few`: the cells are the values that the score takes: each has its own sign in the first
    order. `bins`: of cells that share a sign; runs of them by default.
    """
    clusters, own = tallies.clusters, tallies.clusters.certified
    plain = tallies.witnessed(np.ones(tallies.cells))
    orders = orders_of(seed)
    wagers = steady(clusters, plain, orders[0], delta)
    bins = runs_of(tallies) if bins is None else bins
    for i, order in enumerate(orders):
        signs = signs_of(tallies, order, np.arange(tallies.cells) if few and i == 0 else bins)
        gain, bet = learnt(tallies, order, signs, delta)
        wagers.append(Bet(gain[own], bet[own], (1.0 - GAP) / BLOCK_ORDERS))
    return Below(wagers, clusters.size[own], clusters.largest)


def steady(clusters: Clusters, plain: Floats, order: Ints, delta: float) -> list[Bet]:
    """Bet on a plain shift, either way, with `GAP` of the evidence; `plain` has the clusters' sums, shape (m,)."""
    own = clusters.certified
    best = _bets(clusters, plain, order, delta)[own]
    return [
        Bet(sign * plain[own], multiple * best, 0.5 * GAP * share)
        for sign in (1.0, -1.0)
        for multiple, share in zip(MULTIPLES, SHARES, strict=True)
    ]


def residuals(clusters: Clusters) -> Floats:
    """Each cluster's sum of ``w (y - p)``, shape (m,)."""
    return clusters.tallies(np.zeros(len(clusters.p), dtype=np.int64), 1, clusters.p).witnessed(np.ones(1))


def orders_of(seed: int) -> list[Ints]:
    """Return random orders of the blocks of certified clusters."""
    rng = np.random.default_rng([seed, ORDERS])
    return [1 + rng.permutation(BLOCKS) for _ in range(BLOCK_ORDERS)]


def best_bet(square: float, clusters: int, certified: int, delta: float) -> float:
    """The bet that is the best on all certified clusters, of the sum of squares that earlier clusters won.

    With winnings of mean mu and mean square v a cluster, ``n (kappa mu - kappa^2 v / 2)`` of n clusters reaches ``ln(1
    / delta)`` from the least mu at this kappa. What is won of every block adds up, so that n counts those bet on too.
    """
    return float(np.sqrt(2.0 * -np.log(delta) * max(clusters, 1) / (max(certified, 1) * max(square, 1e-300))))


def _bets(clusters: Clusters, gain: Floats, order: Ints, delta: float) -> Floats:
    """The best bet for each cluster on a constant witness, from squares of ``t - r W`` of earlier clusters, shape (m,).

    r is the mean residual of these clusters; a cluster of independent rows at one half comes on top, as heavy as
    earlier ones are on average: of no cluster is anything known before it is bet on, its rows' weights neither.
    """
    bets, certified = np.zeros(clusters.count), int(np.count_nonzero(clusters.certified))
    for here, past in clusters.ahead(order):
        g, size = gain[past], clusters.size[past]
        mean = g.sum() / max(size.sum(), 1e-300)
        soft = float(clusters.squares[past].mean()) if len(g) else clusters.largest**2
        square = float(((g - mean * size) ** 2).sum()) + SOFT * soft
        bets[here] = best_bet(square, len(g) + 1, certified, delta)
    return bets


def runs_of(tallies: Tallies) -> Ints:
    """The bin of each cell: runs of cells of about equally many pairs of pilot clusters."""
    pilot = tallies.cell[~tallies.clusters.certified[tallies.cluster]]
    rows = np.bincount(pilot, minlength=tallies.cells)
    before = np.cumsum(rows) - rows
    raw = np.floor(BINS * (before + 0.5 * rows) / max(rows.sum(), 1)).astype(np.int64)
    return np.minimum(np.maximum.accumulate(raw), BINS - 1)


def signs_of(tallies: Tallies, order: Ints, bins: Ints) -> Floats:
    """Return soft signs of cells learnt on the pilot clusters and the first blocks of an order, shape (blocks, cells).

    ``2 Phi(z) - 1`` of the residual over the root of the clusters' sum of squares, so that rows of one cluster are one.
    """
    from scipy.special import ndtr

    joined = tallies.joined(bins)
    past = np.concatenate([[0], order[:-1]])
    residual, square = (np.cumsum(joined.by_block(v)[past], axis=0) for v in (False, True))
    clusters = tallies.clusters
    heavy, rows = (
        np.cumsum(np.bincount(clusters.block, v, BLOCKS + 1)[past])
        for v in (clusters.squares, np.bincount(clusters.cluster))
    )
    soft = SOFT * np.divide(heavy, rows, out=np.ones(len(past)), where=rows > 0)  # of the mean row of earlier clusters
    signs: Floats = 2.0 * ndtr(residual / np.sqrt(square + soft[:, None])) - 1.0
    return signs[:, bins]


def learnt(tallies: Tallies, order: Ints, signs: Floats, delta: float) -> tuple[Floats, Floats]:
    """Return what each cluster wins by the signs of its block, and the bet on it, shape (m,) each."""
    clusters = tallies.clusters
    gain, bet = np.zeros((2, clusters.count))
    certified = int(np.count_nonzero(clusters.certified))
    for (here, past), f in zip(clusters.ahead(order), signs, strict=True):
        won = tallies.witnessed(f)
        gain[here] = won[here]
        bet[here] = best_bet(float((won[past] ** 2).sum()), int(past.sum()), certified, delta)
    return gain, bet
