r"""Certificates of the error along a variable: of rows, by the ledger of what bets on its cells win, and of clusters.

Of clusters they are Theorems CL and CU with the variable's cells in place of the score's: `ByVariable` has the sums of
residuals by cluster and cell. Beyond an unknown overall gap m the sums are those of ``r - m``, linear in m; a product
of factors is then log-concave in m for every pattern of signs, so that of all shifts between two limits the worst is
one of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.strata import power_sums
from calibrant.stats.betting import (
    BLOCK_ORDERS,
    FORWARD,
    JITTERED,
    SOFT,
    SWITCH,
    Bet,
    bet,
    block_orders,
    gammas,
    sign_paths,
    sized,
    solve,
    solve_upper,
    steady,
    steady_bet_sizes,
)
from calibrant.stats.cells import summed
from calibrant.stats.clusters.bounds import Above, Below, below_of, best_bet, bets, gap_of, orders_of, runs_of
from calibrant.stats.clusters.bounds import Bet as ClusterBet
from calibrant.stats.clusters.clusters import Clusters, Tallies
from calibrant.stats.evidence import SEARCHED, Evidence, Gap, log_mean_exp
from calibrant.stats.jitter import Jitter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# ---- What bets on residuals win, cell by cell: lower bounds of ``sum ln(1 + t (y - p - m))`` ----
# A *ledger* is what certificates along a variable read. A bound from below of every logarithm keeps an e-value an
# e-value, so a ledger may keep less than the rows, at a price that each class states.

EXACT = 20_000  # rows up to which logarithms are added row by row, some milliseconds a bet
TAIL = 4  # powers kept of more rows


class Ledger(Protocol):
    """Residuals ``r = y - p`` of rows in cells of a variable and in random blocks."""

    @property
    def sums(self) -> Floats:
        """Rows, sums of residuals and of their squares, per block and cell: shape (blocks, cells, 3)."""

    def growth(self, tilt: Floats, gap: float = 0.0, block: int | None = None) -> Floats:
        """At most ``sum ln(1 + tilt (r - gap))`` per cell, of one block or of all.

        `tilt` (cells,): ``|tilt| (1 + |gap|) < 1``.
        """


@dataclass(frozen=True)
class RowLedger:
    """The rows themselves: exact."""

    residual: Floats  # shape (n,)
    cell: NDArray[np.int32]  # shape (n,)
    block: NDArray[np.integer]  # uint8 array of shape (n,)
    cells: int
    blocks: int

    @cached_property
    def sums(self) -> Floats:
        """See `Ledger`."""
        return _powers(self)[..., :3]

    def growth(self, tilt: Floats, gap: float = 0.0, block: int | None = None) -> Floats:
        """See `Ledger`."""
        rows = slice(None) if block is None else self.block == block
        cell = self.cell[rows]
        return summed(cell, np.log1p(tilt[cell] * (self.residual[rows] - gap)), self.cells)


def _powers(rows: RowLedger) -> Floats:
    return power_sums(rows.residual, rows.cell, rows.block, rows.cells, rows.blocks)


@dataclass(frozen=True)
class PowerLedger:
    """Sums of the first four powers; the logarithm's series to the fourth term, less a bound of the rest.

    Of n rows and the bets in use, the rest is at most about ``n^(-3/2)`` times the fifth power of the stake: nothing.
    """

    powers: Floats  # shape (blocks, cells, 5): sums of `r^0` to `r^4`

    @classmethod
    def of(cls, rows: RowLedger) -> PowerLedger:
        """Sum the powers of rows."""
        return cls(_powers(rows))

    @property
    def sums(self) -> Floats:
        """See `Ledger`."""
        return self.powers[..., :3]

    def growth(self, tilt: Floats, gap: float = 0.0, block: int | None = None) -> Floats:
        """See `Ledger`."""
        raw = self.powers.sum(axis=0) if block is None else self.powers[block]
        n, a, b, c, d = (raw[:, k] for k in range(TAIL + 1))
        m = -gap
        first, second = a + n * m, b + 2 * a * m + n * m**2
        third = c + 3 * b * m + 3 * a * m**2 + n * m**3
        fourth = d + 4 * c * m + 6 * b * m**2 + 4 * a * m**3 + n * m**4
        most = np.abs(tilt) * (1.0 + abs(gap))
        rest = 0.25 + most / (5.0 * (1.0 - most))
        return tilt * first - tilt**2 * second / 2 + tilt**3 * third / 3 - tilt**4 * fourth * rest


@dataclass(frozen=True)
class ChordLedger:
    """Counts and score sums by range of the score, as a sketch keeps them.

    ``ln(1 + t (y - p - m))`` is concave in p, so the chord through the ends of a range, at the exact mean score, is a
    lower bound; where sums of squares are kept, the series to the second term less a bound of the rest is another,
    and the larger counts.
    """

    # `counts` and `scores`, shape (blocks, cells, ranges, 2): rows by label, and sums of their scores.
    counts: Ints | Floats
    scores: Floats
    low: Floats  # shape (ranges,)
    high: Floats  # shape (ranges,)
    squares: Floats | None = None  # shape (blocks, cells, ranges, 2): at least the sums of the squared scores

    def turned(self) -> ChordLedger:
        """The ledger of the confidence view: outcome and score turned round in the ranges below one half."""
        below = self.high <= 0.5
        flip = below[None, None, :, None]
        counts = np.where(flip, self.counts[..., ::-1], self.counts)
        scores = np.where(flip, (self.counts - self.scores)[..., ::-1], self.scores)
        squares = self.squares
        if squares is not None:
            squares = np.where(flip, (self.counts - 2 * self.scores + squares)[..., ::-1], squares)
        low, high = np.where(below, 1 - self.high, self.low), np.where(below, 1 - self.low, self.high)
        return ChordLedger(counts, scores, low, high, squares)

    @cached_property
    def sums(self) -> Floats:
        """See `Ledger`; squares are those of each range's mean residual where only sums are kept."""
        n, s = self.counts, self.scores
        square = self.squares if self.squares is not None else s**2 / np.maximum(n, 1)
        label = np.array([0.0, 1.0])
        first, second = n * label - s, n * label - 2 * s * label + square
        return np.stack([v.sum(axis=(2, 3)) for v in (n, first, second)], axis=-1)

    def growth(self, tilt: Floats, gap: float = 0.0, block: int | None = None) -> Floats:
        """See `Ledger`."""
        n, s = (v.sum(axis=0) if block is None else v[block] for v in (self.counts, self.scores))
        q = None if self.squares is None else (self.squares.sum(axis=0) if block is None else self.squares[block])
        t, width = tilt[:, None], np.where(self.high > self.low, self.high - self.low, 1.0)
        out = np.zeros(len(tilt))
        for label in (0, 1):
            rows, total = n[..., label], s[..., label]
            left, right = label - gap - self.low, label - gap - self.high
            share = np.clip((total / np.maximum(rows, 1) - self.low) / width, 0.0, 1.0)
            won = rows * ((1.0 - share) * np.log1p(t * left) + share * np.log1p(t * right))
            if q is not None:
                first = rows * (label - gap) - total
                second = rows * (label - gap) ** 2 - 2 * (label - gap) * total + q[..., label]
                most = np.abs(t) * np.maximum(np.abs(left), np.abs(right))
                won = np.maximum(won, t * first - t**2 * second * (0.5 + most / (3.0 * (1.0 - most))))
            out += won.sum(axis=1)
        return out


def ledger_of(rows: RowLedger) -> RowLedger | PowerLedger:
    """Rows as they are, or the sums of their powers if they are many."""
    return rows if len(rows.residual) <= EXACT else PowerLedger.of(rows)


# ---- Certificates of the error along a variable: ``sum_c |E[(Y - p - m) 1_c]|`` over cells c ----
# Theorem U in its linear form, with the raw residuals as the bets: for ``Z = |E[r | c]|`` and ``gamma`` fixed
# beforehand each cell's smaller product ``min_+- prod (1 -+ gamma r_i)`` has mean at most ``(1 - gamma Z)^n``. The
# notch is not used: its proof needs one rate a cell, and residuals of one cell have many. Theorem L with a sign a cell.
# With a jitter of the variable the cells are those of a grid; a row shows at grid point t with probability ``K(t|c)``.

NONE = (0.0,)
GAP = 0.25  # of the evidence from below, what is bet on one sign for all cells; half of the plain score's certificate
ROOM = 2.0  # residuals less an unknown shift lie within two of zero: bets are capped by this, whatever the data say


class Smear:
    """A jitter of the variable on its first `points` cells; a cell of missing values keeps its own.

    `bandwidth`: in ranks, from 0 to 1.
    """

    def __init__(self, points: int, bandwidth: float) -> None:
        self.points, self.kernel = points, Jitter(points, bandwidth)

    def spread(self, cells: Floats) -> Floats:
        """``sum_c K(t|c) v_c``, whatever the sign."""
        v = cells[: self.points]
        inner = self.kernel.spread(np.maximum(v, 0.0)) - self.kernel.spread(np.maximum(-v, 0.0))
        return np.concatenate([inner, cells[self.points :]])

    def spread_square(self, cells: Floats) -> Floats:
        """``sum_c K(t|c)^2 v_c`` of non-negative numbers."""
        return np.concatenate([self.kernel.spread_square(cells[: self.points]), cells[self.points :]])

    def gather(self, f: Floats) -> Floats:
        """``sum_t K(t|c) f(t)``."""
        return np.concatenate([self.kernel.gather(f[: self.points]), f[self.points :]])


def upper_bound(ledger: Ledger, delta: float, gaps: tuple[float, ...] = NONE, smear: Smear | None = None) -> float:
    """An upper bound that fails with probability at most `delta`, for the worst of the shifts m.

    In between two shifts nothing is larger: ``-ln(1 + t (r - m))`` is convex in m. Bets depend on the number of rows
    only.
    """
    rows = ledger.sums[..., 0].sum(axis=0)
    bets = np.minimum(gammas(int(rows.sum())), FORWARD.largest / _room(gaps))
    phi = [max(_cost(ledger, g, m, smear) for m in gaps) for g in bets]
    return solve_upper(np.array(phi), bets, JITTERED.shares, int(rows.sum()), delta)


def _room(gaps: tuple[float, ...]) -> float:
    return 1.0 if gaps == NONE else ROOM


def _cost(ledger: Ledger, gamma: float, gap: float, smear: Smear | None) -> float:
    cells = ledger.sums.shape[1]
    up, down = (ledger.growth(np.full(cells, sign * gamma), gap) for sign in (1.0, -1.0))
    if smear is not None:
        up, down = smear.spread(up), smear.spread(down)
    return float(-np.minimum(up, down).sum())


def lower_bound(
    ledger: Ledger,
    delta: float,
    seed: int,
    ordered: bool,
    gaps: tuple[float, ...] = NONE,
    smear: Smear | None = None,
) -> float:
    """A lower bound that fails with probability at most `delta`, for the worst of the shifts.

    Evidence from signs learnt on earlier blocks and bet on later ones, in four random orders; from an average over
    signs that learns nothing, where there is no jitter; and from one sign for all cells, where no shift is taken out.
    Neither signs nor stakes may read the shifts, which come from all rows: signs are learnt about the mean of the past.
    """
    room = _room(gaps)
    block_rows = ledger.sums[..., 0].sum(axis=1)
    forward = (
        [] if smear is not None else [_forward(ledger, bet_size, ordered, gaps, room) for bet_size in FORWARD.multiples]
    )
    learnt: list[Bet] = []
    cells, blocks = ledger.sums.shape[1], len(block_rows)

    def grow(block: int, tilt: Floats) -> float:
        tilts = np.broadcast_to(tilt, cells)
        return float(np.min([ledger.growth(tilts, m, block) for m in gaps], axis=0).sum())

    if blocks > 1:

        def learn(past: Ints) -> tuple[Floats, float]:
            return _learn(ledger.sums[past].sum(axis=0), room, smear)

        for order in block_orders(blocks, seed):
            wealth, bet_sizes, own = bet(block_rows, order, delta, learn, grow)
            learnt.append(Bet(wealth, bet_sizes / room, own))  # signals are of size 1 / room at most
    constant: list[Bet] = []
    if gaps == NONE:
        spread = ledger.sums[..., 2].sum(axis=1)
        constant = steady(block_rows, spread, np.arange(blocks), 0.5 * GAP * delta, grow)
    others = [part for part in (learnt, forward) if part]
    kept = GAP if constant and others else float(bool(constant))
    shares = [*((part, (1.0 - kept) / len(others)) for part in others), *([(constant, kept)] if constant else [])]
    weights = [share / len(part) for part, share in shares for _ in part]
    return solve([w for part, _ in shares for w in part], np.array(weights), delta)


def _learn(past: Floats, room: float, smear: Smear | None) -> tuple[Floats, float]:
    """Soft signs of the cells' residuals, about their mean if a shift is allowed for, and mean square winnings."""
    from scipy.special import ndtr

    gap = 0.0 if room == 1.0 else float(past[:, 1].sum()) / max(float(past[:, 0].sum()), 1.0)
    n, first, square = past[:, 0], past[:, 1] - gap * past[:, 0], past[:, 2]
    mean, noise = (first, square) if smear is None else (smear.spread(first), smear.spread_square(square))
    signal = (2.0 * ndtr(mean / np.sqrt(noise + SOFT)) - 1.0) / room
    if smear is not None:
        signal = smear.gather(signal)
    return signal, float((signal**2 * square).sum()) / max(float(n.sum()), 1.0)


def _forward(ledger: Ledger, bet_size: float, ordered: bool, gaps: tuple[float, ...], room: float) -> Bet:
    """Average, over signs in {-1, 0, 1} of the cells, of the wealth over all rows.

    Along a number or date the signs follow a Markov chain that seldom changes; levels have independent signs.
    """
    cells, n = ledger.sums.shape[1], float(ledger.sums[..., 0].sum())
    kappa = min(bet_size / np.sqrt(max(n, 1.0)), FORWARD.largest / room)
    log_wealth = np.zeros((cells, 3))
    for column, sign in ((0, -1.0), (2, 1.0)):
        tilt = np.full(cells, sign * kappa)
        log_wealth[:, column] = np.min([ledger.growth(tilt, m) for m in gaps], axis=0)
    return Bet(sign_paths(log_wealth, SWITCH if ordered else 2.0 / 3.0), np.array([kappa]), np.array([n]))


def gap_limits(ledger: Ledger, delta: float) -> tuple[float, float]:
    """Limits that hold the overall mean residual with probability at least ``1 - delta``."""
    return gap_evidence(ledger, delta / 2.0).limits(delta)


def gap_evidence(ledger: Ledger, delta: float) -> Gap:
    """Bet on the overall mean residual, with stakes that are the best at `delta`.

    That on a block is the best for the squares of earlier blocks' residuals, cut at each hypothesis m to what is safe
    there and at ``-m``, as a ledger's series takes it.
    """
    rows, cells = ledger.sums[..., 0].sum(axis=1), ledger.sums.shape[1]
    best = steady_bet_sizes(rows.astype(np.int64), ledger.sums[..., 2].sum(axis=1), delta, np.inf)

    def log_e(m: float, sign: float) -> float:
        bet_sizes = sign * sized(best, abs(m))
        return log_mean_exp(
            [sum(ledger.growth(np.full(cells, k), m, b).sum() for b, k in enumerate(each)) for each in bet_sizes]
        )

    return Gap.of(log_e)


def debiased_error(ledger: Ledger, beyond_gap: bool = False, smear: Smear | None = None) -> float:
    """The plain error without the noise of its cells: ``sum sqrt(max(0, R^2 - V)) / n``."""
    n, first, square = (ledger.sums.sum(axis=0)[:, k] for k in range(3))
    total = n.sum()
    if beyond_gap:
        m = first.sum() / total
        first, square = first - m * n, square - 2 * m * first + m**2 * n
    if smear is not None:
        first, square = smear.spread(first), smear.spread_square(square)
    else:
        square = square - first**2 / np.maximum(n, 1.0)
    return float(np.sqrt(np.maximum(first**2 - square, 0.0)).sum() / total)


# ---- The same of clusters: Theorems CL and CU ----

CLUSTER_ROOM = 1.25  # residuals less a shift of a quarter at most; of a larger shift the largest bets count nothing
FINE = 20  # cells up to which each has its own sign in every order; of more, in order, runs have


@dataclass(frozen=True)
class ByVariable:
    """Sums of residuals of clusters in cells of a variable."""

    tallies: Tallies  # sums of `w r`, with r of size 1 at most
    mass: Tallies  # sums of w, by the same clusters and cells
    ordered: bool  # the cells are in the order of a number or date

    @classmethod
    def of(cls, clusters: Clusters, cell: Ints, cells: int, residual: Floats, ordered: bool) -> ByVariable:
        """Add up rows."""
        return cls(clusters.sums(cell, cells, residual), clusters.sums(cell, cells, np.ones(len(residual))), ordered)

    def upper(self, delta: float, gaps: tuple[float, ...]) -> float:
        """An upper bound that fails with probability at most `delta`, for the worst of the shifts."""
        return self.above(gaps).limit(delta)

    def above(self, gaps: tuple[float, ...]) -> Beyond:
        """The evidence against an error at least so large."""
        clusters = self.tallies.clusters
        room = 1.0 if gaps == (0.0,) else CLUSTER_ROOM
        kappas = bets(int(np.count_nonzero(clusters.certified)), room * clusters.largest)
        most = 1.0 + max(map(abs, gaps))
        sound = kappas * clusters.largest * most < 1.0
        ends = [Above.of(self.tallies.less(self.mass, m) if m else self.tallies, kappas[sound]) for m in gaps]
        return Beyond(ends, len(kappas))

    def lower(self, delta: float, seed: int, gaps: tuple[float, ...]) -> float:
        """A lower bound that fails with probability at most `delta`, for the worst of the shifts."""
        return (self.below(delta, seed) if gaps == (0.0,) else self.below_beyond(delta, seed, gaps)).limit(delta)

    @cached_property
    def _bins(self) -> Ints:
        cells = self.tallies.cells
        return runs_of(self.tallies) if self.ordered and cells > FINE else np.arange(cells)

    def below(self, delta: float, seed: int) -> Below:
        """ClusterBet that the error is larger: on a plain shift, and on signs learnt on earlier blocks."""
        return below_of(self.tallies, delta, seed, few=False, bins=self._bins)

    def below_beyond(self, delta: float, seed: int, gaps: tuple[float, ...]) -> Below:
        """ClusterBet that the error beyond a shift is larger, whichever of the shifts it is.

        Signs and bets are learnt about the mean of earlier clusters; the shifts, which come from all, play no part.
        """
        clusters, own = self.tallies.clusters, self.tallies.clusters.certified
        wagers = []
        for order in orders_of(seed):
            gain, mass, bet = self._learnt(order, delta)
            each = gain[own] - np.array(gaps)[:, None] * mass[own]
            wagers.append(ClusterBet(each, bet[own], 1.0 / BLOCK_ORDERS))
        return Below(wagers, clusters.size[own], clusters.largest, CLUSTER_ROOM, 1.0 + max(map(abs, gaps)))

    def _learnt(self, order: Ints, delta: float) -> tuple[Floats, Floats, Floats]:
        """What each cluster wins by the signs of its block, of residuals and of ones, and the bet on it."""
        clusters = self.tallies.clusters
        gain, mass, bet = np.zeros((3, clusters.count))
        certified = int(np.count_nonzero(clusters.certified))
        for here, past in clusters.ahead(order):
            f, gap = self._signs(past)
            won, kept = self.tallies.witnessed(f), self.mass.witnessed(f)
            square = float(((won - gap * kept)[past] ** 2).sum())
            gain[here], mass[here] = won[here], kept[here]
            bet[here] = best_bet(square, int(past.sum()), certified, delta)
        return gain, mass, bet

    def _signs(self, past: NDArray[np.bool_]) -> tuple[Floats, float]:
        """Soft signs of the cells about the mean residual of some clusters, and this mean."""
        from scipy.special import ndtr

        clusters, bins = self.tallies.clusters, self._bins
        own = past[self.tallies.cluster]
        at, cluster = bins[self.tallies.cell[own]], self.tallies.cluster[own]
        value, mass = self.tallies.value[own], self.mass.value[own]
        gap = float(value.sum()) / max(float(mass.sum()), 1e-300)
        size = int(bins.max(initial=0)) + 1
        where, pair = np.unique(cluster * size + at, return_inverse=True)
        each = np.bincount(pair.reshape(-1), value - gap * mass, len(where))
        residual, square = (np.bincount(where % size, v, size) for v in (each, each**2))
        rows = past[clusters.cluster]
        soft = SOFT * float(clusters.squares[past].sum()) / max(int(np.count_nonzero(rows)), 1)
        f: Floats = 2.0 * ndtr(residual / np.sqrt(square + max(soft, 1e-300))) - 1.0
        return f[bins], gap

    def limits(self, delta: float) -> tuple[float, float]:
        """Limits that hold the mean residual with probability at least ``1 - delta``."""
        gain = self.tallies.witnessed(np.ones(self.tallies.cells))
        return gap_of(self.tallies.clusters, delta / 2.0, gain).limits(delta)

    def debiased(self, beyond_gap: bool) -> float:
        """The error as estimated, less what noise between clusters adds."""
        if not beyond_gap:
            return self.tallies.debiased
        total = max(self.tallies.clusters.total, 1e-300)
        mean = float(self.tallies.by_block()[1:].sum()) / total
        return self.tallies.less(self.mass, mean).debiased


@dataclass(frozen=True)
class Beyond(Evidence):
    """Evidence against "the error beyond the overall gap is at least x", at the worst of several shifts."""

    ends: Sequence[Above]  # one for each shift, with the same bets
    # How many bets share the evidence; those that `ends` lack could lose more than they have, and count nothing.
    bets: int
    start, stop = SEARCHED, 0.0

    def at(self, x: float) -> float:
        """The log e-value: of each bet at its worst shift, then the mean."""
        if not self.ends[0].forms:
            return -np.inf
        logs = [min(each) for each in zip(*(end.by_bet(x) for end in self.ends), strict=True)]
        return log_mean_exp(logs, np.full(len(logs), 1.0 / self.bets))
