r"""What acting above a threshold costs where scores are off: limits from both sides, by bets on independent clusters.

A cluster adds ``t_c = sum w (y - t)`` over its rows in each cell c of the score, and has size ``W = sum w <= M``.
Acting on the cells from the cut on, the loss against the best use of these cells is ``r E W`` with

.. math:: r\,E W = \max_f \sum_c f_c E t_c, \quad f_c \in [0, 1] \text{ below the cut}, [-1, 0] \text{ from it on}:

f moves people across the threshold. *From below*: any f in these ranges that earlier clusters chose has ``E[1 + kappa
(sum_c f_c t_c - x W)] <= 1`` wherever ``r <= x``. *From above*: the best f, which nobody knows, has ``E[1 - kappa
(sum_c f_c t_c - x W)] <= 1`` wherever ``r >= x``; over all f that leave each cell or move it, the product is at least
what `Above.at` adds up cell by cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BLOCK_ORDERS, SOFT
from calibrant.stats.cells import summed
from calibrant.stats.evidence import Evidence, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST = 0.45  # times 1 / M, of bets from below: a factor stays positive up to the largest loss there can be
STEEPEST = 0.8  # times 1 / M, of bets from above; each next one is half of it
FIXED = 0.3  # of the evidence from below is bet on other thresholds that no outcome chose
SHIFTS = (-np.inf, -1.0, -0.5, 0.5, 1.0, np.inf)  # these, in logits from the threshold
FIRM = 1.0  # standard errors from which on a cell is moved
ORDERS = 0x0FE6  # stream of random numbers, apart from those of other methods at the same seed


@dataclass(frozen=True)
class Lots:
    """Independent clusters by what they add, those that add the same together."""

    cluster: Ints  # shape (pairs,)
    cell: Ints  # shape (pairs,)
    value: Floats  # shape (pairs,): `t_c` of a cluster in a cell
    # `size` and `times`, shape (u,): W, and how many clusters there are of each kind.
    size: Floats
    times: Floats
    # Shape (u,): random block; a negative one is of pilot clusters, which are learnt from and not certified.
    block: Ints
    most: float  # M
    low: Floats  # shape (cells,): where each cell begins, increasing
    cut: int  # the first cell that is acted on
    threshold: float  # t

    @classmethod
    def of_counts(cls, counts: Ints, low: Floats, cut: int, threshold: float) -> Lots:
        """Take rows as clusters; `counts` are of shape (blocks, cells, 2), by outcome."""
        block, cell, label = np.nonzero(counts)
        times = counts[block, cell, label].astype(np.float64)
        one = np.ones(len(times))
        value = np.asarray(label - threshold, dtype=np.float64)
        return cls(np.arange(len(times)), cell, value, one, times, block, 1.0, low, cut, threshold)

    @property
    def reach(self) -> float:
        """The largest loss there can be, times ``1 - t``."""
        return max(self.threshold, 1.0 - self.threshold)

    @cached_property
    def certified(self) -> NDArray[np.bool_]:
        """Which clusters certify."""
        return self.block >= 0

    @cached_property
    def count(self) -> float:
        """Clusters that certify."""
        return float(self.times[self.certified].sum())

    @cached_property
    def side(self) -> Floats:
        """1 for a cell below the cut, whose people may be acted on after all; -1 for the others."""
        return np.where(np.arange(len(self.low)) < self.cut, 1.0, -1.0)

    def won(self, f: Floats) -> Floats:
        """``sum_c f_c t_c`` of each cluster."""
        return summed(self.cluster, f[self.cell] * self.value, len(self.size))

    def totals(self, blocks: Sequence[int] | Ints, square: bool = False) -> Floats:
        """By cell the sum over clusters of some blocks of what they add, or of its squares."""
        own = np.isin(self.block, blocks)[self.cluster]
        value = self.value**2 if square else self.value
        return summed(self.cell[own], (self.times[self.cluster] * value)[own], len(self.low))

    @property
    def estimate(self) -> float:
        """The loss as it shows in these clusters, less what chance adds to it, times ``1 - t``."""
        own = np.unique(self.block[self.certified])
        total, square = self.totals(own), self.totals(own, square=True)
        off = np.where(self.side * total > 0.0, np.sqrt(np.maximum(total**2 - square, 0.0)), 0.0)
        size = float((self.times * self.size)[self.certified].sum())
        return float(off.sum()) / size if size else 0.0


# ---- from below ----


@dataclass(frozen=True)
class Below(Evidence):
    """Evidence against "the loss is at most x", which falls with x."""

    # Sequence of (won, bet, share): what a use of the cells wins of each cluster, the bets on it, and its share of the
    # evidence.
    wagers: Sequence[tuple[Floats, Floats, float]]
    lots: Lots

    def at(self, x: float) -> float:
        """The log e-value."""
        own, size = self.lots.certified, self.lots.size
        logs = [float((self.lots.times * np.log1p(bet * (won - x * size)))[own].sum()) for won, bet, _ in self.wagers]
        return log_mean_exp(logs, np.array([share for _, _, share in self.wagers]))

    @property
    def stop(self) -> float:  # type: ignore[override]
        """The largest loss that there can be."""
        return self.lots.reach


def below(lots: Lots, delta: float, seed: int) -> Below:
    """Bet that a better use of the cells is worth more: other thresholds, fixed or learnt, and learnt cells."""
    blocks = np.unique(lots.block[lots.certified])
    pilots = np.unique(lots.block[~lots.certified])
    rng = np.random.default_rng([seed, ORDERS])
    orders = [rng.permutation(blocks) for _ in range(BLOCK_ORDERS)]
    learns = len(blocks) + len(pilots) > 1
    fixed = (FIXED if learns else 1.0) / len(SHIFTS)
    wagers = []
    t = lots.threshold
    for gap in SHIFTS:  # other thresholds that no outcome chose
        other = float(1.0 / (1.0 + np.exp(-(np.log(t / (1.0 - t)) + gap)))) if np.isfinite(gap) else np.sign(gap)
        won = lots.won(_moved(lots, int(np.searchsorted(lots.low, other))))
        bets = np.zeros(len(lots.size))
        for past, block in _ahead(pilots, orders[0]):
            bets[lots.block == block] = _bet(lots, won, past, delta)
        wagers.append((won, bets, fixed))
    for order in orders if learns else ():
        for use in (_threshold, _firm):
            won, bets = np.zeros(len(lots.size)), np.zeros(len(lots.size))
            for past, block in _ahead(pilots, order):
                here = lots.block == block
                if len(past):
                    f = use(lots, past)
                    all_won = lots.won(f)
                    won[here], bets[here] = all_won[here], _bet(lots, all_won, past, delta)
            wagers.append((won, bets, (1.0 - FIXED) / (2.0 * BLOCK_ORDERS)))
    return Below(wagers, lots)


def _ahead(pilots: Ints, order: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield each block with the blocks before it."""
    for i, block in enumerate(order):
        yield np.concatenate([pilots, order[:i]]), int(block)


def _moved(lots: Lots, to: int) -> Floats:
    """What acting from another cell on changes: cells between the two are moved across."""
    at, first, last = np.arange(len(lots.low)), min(to, lots.cut), max(to, lots.cut)
    return np.where((at >= first) & (at < last), lots.side, 0.0)


def _threshold(lots: Lots, past: Ints) -> Floats:
    """The move to the threshold that was best in some blocks."""
    worth = np.append(np.cumsum(lots.totals(past)[::-1])[::-1], 0.0)  # of acting from each cell on
    return _moved(lots, int(np.argmax(worth)) if worth.max() > worth[lots.cut] else lots.cut)


def _firm(lots: Lots, past: Ints) -> Floats:
    """The move of each cell that was on the wrong side in some blocks beyond noise."""
    total, square = lots.totals(past), lots.totals(past, square=True)
    wrong = lots.side * total > FIRM * np.sqrt(square + SOFT * lots.most**2)
    return np.where(wrong, lots.side, 0.0)


def _bet(lots: Lots, won: Floats, past: Ints, delta: float) -> float:
    """The bet on a block from what clusters of the blocks before it won: predictable, so valid.

    With winnings of mean mu and mean square v, ``ahead (kappa mu - kappa^2 v / 2)`` reaches ``ln(1 / delta)`` from the
    least mu at ``kappa = sqrt(2 ln(1 / delta) / (ahead v))``.
    """
    seen = np.isin(lots.block, past)
    square = float((lots.times * won**2)[seen].sum()) + SOFT * lots.most**2
    clusters, ahead = float(lots.times[seen].sum()) + 1.0, float(lots.times[lots.certified & ~seen].sum())
    return float(min(math.sqrt(2.0 * -math.log(delta) * clusters / (ahead * square)), LARGEST / lots.most))


# ---- from above ----


@dataclass(frozen=True)
class Above(Evidence):
    """Evidence against "the loss is at least x", which rises with x."""

    lots: Lots
    bets: Floats  # kappa, in equal parts
    stop = 0.0

    @classmethod
    def of(cls, lots: Lots, delta: float) -> Above:
        """Bet by halves, down to what is the best on the largest noise there can be."""
        halvings = max(math.ceil(math.log2(max(STEEPEST * math.sqrt(lots.count / (-2.0 * math.log(delta))), 1.0))), 0)
        return cls(lots, np.array([STEEPEST / lots.most * 0.5**j for j in range(halvings + 1)]))

    @cached_property
    def _pairs(self) -> tuple[Ints, Floats, Floats, Floats, Floats]:
        """Cell, share of its unit times how many there are, size, and what is lost if the cell is left or is moved."""
        lots, own = self.lots, self.lots.certified[self.lots.cluster]
        reach = summed(lots.cluster, np.abs(lots.value), len(lots.size))
        own &= lots.value != 0.0
        cluster, cell, value = lots.cluster[own], lots.cell[own], lots.value[own]
        share = lots.times[cluster] * np.abs(value) / reach[cluster]
        return cell, share, lots.size[cluster], reach[cluster] * np.sign(value) * lots.side[cell], reach

    def at(self, x: float) -> float:
        """A log e-value that is below that of the best use of the cells, whichever it is.

        ``ln(1 - kappa (sum_c f_c t_c - x W))`` is concave: with ``R = sum_c |t_c|`` it is at least the mean over cells,
        with weights ``|t_c| / R``, of ``ln(1 - kappa (f_c sign(t_c) R - x W))``; then each cell has its own worst.
        """
        cell, share, size, moved, reach = self._pairs
        idle = self.lots.certified & (reach == 0.0)
        logs = []
        for bet in self.bets:
            left = summed(cell, share * np.log1p(bet * x * size), len(self.lots.low))
            across = summed(cell, share * np.log1p(-bet * (moved - x * size)), len(self.lots.low))
            rest = self.lots.times[idle] * np.log1p(bet * x * self.lots.size[idle])
            logs.append(float(np.minimum(left, across).sum() + rest.sum()))
        return log_mean_exp(logs)

    @property
    def start(self) -> float:  # type: ignore[override]
        """The largest loss that there can be."""
        return self.lots.reach
