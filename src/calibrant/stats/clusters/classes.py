r"""Theorems CU and CL of many classes: one certificate of ``sum_k E|p_k - P(Y = k | p_k)|``, the class-wise error.

The witness is a vector, ``X = sum_k f_k(p_k) (p_k - 1{Y = k})`` with ``|f_k| <= 1``, each f_k a function of its own
class's probability. Its mean is at most the class-wise error, and is the error for the true signs; so one factor of a
row, or of a cluster of rows, serves the whole sum, where a certificate for each class would share the error probability
and add up the ends. A row has ``|X| <= sum_k |p_k - 1{Y = k}| = 2 (1 - p_Y) <= 2``, and the error is at most 2; of
rounded probabilities, which add up to more or less than 1, it is at most `largest`.

Vectors may also be moved at random to a lattice of the simplex (`LatticeClasses`). Of a vector p with partial sums
``P_k`` and one uniform number U the emitted vector has ``s_k = (floor(m P_k + U) - floor(m P_{k-1} + U)) / m``:
multiples of ``1 / m`` that add up to one. Each is one of the two nearest ``p_k``, the upper one with probability
``m p_k - floor(m p_k)``, so that its mean is ``p_k``. U knows no class, so that ``E|s_k - P(Y = k | s_k)|``, added up
over classes, is a sum of means over rows, and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.runtime import columns_of
from calibrant.stats.betting import SOFT
from calibrant.stats.cells import summed
from calibrant.stats.clusters.bounds import GAP, Above, Below, Bet, Pairs, Separable, best_bet, bets, orders_of, steady
from calibrant.stats.clusters.clusters import BLOCKS, Clusters
from calibrant.stats.evidence import SEARCHED

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST = 2.0  # of the error of raw probabilities, and of a row's winnings
EDGES = np.array([0.002, 0.01, 0.03, 0.07, 0.15, 0.3, 0.5, 0.7, 0.9])  # of bins of a probability, whatever the data
BINS = len(EDGES) + 1
SURE = 0.5  # above it a probability is taken for too high, or below it for too low: over- and underconfidence
ABOVE_ONE = (2.5, 2.0, 1.5)  # where a refuted error is looked for, before `SEARCHED`


class BelowClasses(Below):
    """The same of an error of up to 2."""

    stop = LARGEST


def largest(classes: int, steps: int) -> float:
    """The largest error of probabilities rounded to ``1 / steps``, which is what a row can win.

    A row's rounded probabilities add up to at most ``1 + K / (2 steps)``, and to at most 2: one that is not rounded to
    0 at most doubles.
    """
    return 1.0 + min(1.0 + classes / (2.0 * steps), 2.0)


@dataclass(frozen=True)
class Classes:
    """Rows of a classifier over K classes, dealt into independent clusters."""

    clusters: Clusters  # rows by themselves, or clusters of them
    p: Floats  # shape (n, K)
    y: NDArray[np.integer]  # shape (n,): the class of each row
    by_row: bool  # every row is a cluster, and counts as much as any other
    # What `tallied` returned, by its steps: of a thousand classes a pass over all probabilities.
    cells: dict[int, tuple[Ints, Ints, Floats]] = field(default_factory=dict, repr=False, compare=False, kw_only=True)

    @property
    def k(self) -> int:
        """Classes."""
        return self.p.shape[1]

    def columns(self) -> Iterator[tuple[int, Floats]]:
        """Yield the probabilities of each class, by number."""
        yield from enumerate(columns_of(self.p))

    # ---- From above: each class's probability as it is shown ----

    def tallied(self, steps: int) -> tuple[Ints, Ints, Floats]:
        """Clusters, cells and sums ``sum w (shown - 1{y = k})`` where they are not 0, sorted by cluster.

        A cell is a class and a level of its probability, rounded to multiples of ``1 / steps``, halves up.
        """
        if steps not in self.cells:
            self.cells[steps] = self._tallied(steps)
        return self.cells[steps]

    def _tallied(self, steps: int) -> tuple[Ints, Ints, Floats]:
        who, cells, values = [], [], []
        weight, of = self.clusters.weight, self.clusters.cluster
        for k, column in self.columns():
            level = np.floor(column * steps + 0.5).astype(np.int64)
            here = np.flatnonzero((level > 0) | (self.y == k))
            who.append(of[here])
            cells.append(k * (steps + 1) + level[here])
            values.append(weight[here] * (level[here] / steps - (self.y[here] == k)))
        at = np.concatenate(who) * (self.k * (steps + 1)) + np.concatenate(cells)
        where, pair = np.unique(at, return_inverse=True)
        value = summed(pair.reshape(-1), np.concatenate(values), len(where))
        return where // (self.k * (steps + 1)), where % (self.k * (steps + 1)), value

    def above(self, steps: int) -> Above:
        """Evidence that the class-wise error of the probabilities as they are shown is smaller."""
        pairs, kappas = self.pairs(steps)
        most = largest(self.k, steps)
        starts = (most, *(x for x in ABOVE_ONE if x < most), *SEARCHED)
        return Above([[Separable(pairs, kappa)] for kappa in kappas.tolist()], starts)

    def pairs(self, steps: int) -> tuple[Pairs, Floats]:
        """The certified clusters' sums by cell, and bets that no score chooses.

        Rows that are clusters and count alike certify all: their size is known. Those of the same factors are one.
        """
        of, cell, value = self.tallied(steps)
        size, own = self.clusters.size, np.ones(self.clusters.count, bool) if self.by_row else self.clusters.certified
        # 1: bets on what a row can win at most, whatever its probabilities are
        each = largest(self.k, steps) * (1.0 if self.by_row else self.clusters.largest)
        kappas = bets(int(np.count_nonzero(own)), each)
        # 2: clusters that certify, and rows that can win the same
        number, kept = np.cumsum(own) - 1, own[of] & (value != 0.0)
        of, cell, value = number[of[kept]], cell[kept], value[kept]
        reach = summed(of, np.abs(value), int(np.count_nonzero(own)))
        if self.by_row:
            reach, like, count = np.unique(np.rint(reach * steps), return_inverse=True, return_counts=True)
            cells = self.k * (steps + 1)
            at, pair = np.unique(like.reshape(-1)[of] * cells + cell, return_inverse=True)
            value, of, cell = summed(pair.reshape(-1), value, len(at)), at // cells, at % cells
            reach, size, multiplicity = reach / steps, np.ones(len(reach)), count.astype(np.float64)
        else:
            size, multiplicity = size[own], np.ones(1)
        used, cell = np.unique(cell, return_inverse=True)
        return Pairs(of, cell.reshape(-1), value, reach, size, len(used), multiplicity=multiplicity), kappas

    def debiased(self, steps: int) -> float:
        """The error as estimated, less what noise between clusters adds to each cell."""
        of, cell, value = self.tallied(steps)
        own = np.ones(self.clusters.count, bool) if self.by_row else self.clusters.certified
        kept, cells = own[of], self.k * (steps + 1)
        total, square = (summed(cell[kept], v[kept], cells) for v in (value, value**2))
        size = float(self.clusters.size[own].sum())
        return float(np.sqrt(np.maximum(total**2 - square, 0.0)).sum()) / max(size, 1e-300)

    # ---- From below: the raw probabilities ----

    @cached_property
    def bins(self) -> NDArray[np.uint8]:
        """The bin of each probability, shape (K, n)."""
        out = np.empty((self.k, len(self.y)), dtype=np.uint8)
        for k, column in self.columns():
            out[k] = column >= EDGES[0]
            for edge in EDGES[1:]:  # three times as fast as a search
                out[k] += column >= edge
        return out

    def parts(self, k: int, column: Floats) -> Iterator[tuple[NDArray[np.uint8], Floats, NDArray[np.bool_]]]:
        """What signs of a class read of each row, ``p - 1{y = k}``, and where p is high: of each value it may take."""
        yield self.bins[k], column - (self.y == k), column > SURE

    def below(self, delta: float, seed: int) -> BelowClasses:
        """Bet that the class-wise error is larger, with bets that are the best at `delta`.

        `GAP` of the evidence is bet on over- and on underconfidence, whose witness is fixed; the rest in equal parts on
        signs by class and bin, learnt on earlier blocks of clusters, in the last order on signs by bin of all classes.
        """
        clusters, own, orders = self.clusters, self.clusters.certified, orders_of(seed)
        signs = self.signs(orders)
        block = clusters.block[clusters.cluster]
        pilot = np.flatnonzero(block == 0)  # they tell how much each witness wins and loses
        soft = SOFT * float((clusters.weight[pilot] ** 2).mean())  # of their mean row, whatever unit weights have
        gains, sure = np.zeros((len(orders), len(self.y))), np.zeros(len(self.y))
        tried = np.zeros((*signs.shape[:2], len(pilot)))
        for k, column in self.columns():
            for bins, each, high in self.parts(k, column):
                residual = clusters.weight * each
                sure += np.where(high, residual, -residual)
                at = block * BINS + bins
                for gain, f in zip(gains, signs[:, :, k], strict=True):
                    gain += f.reshape(-1)[at] * residual
                tried += signs[:, :, k, bins[pilot]] * residual[pilot]
        wagers = steady(clusters, summed(clusters.cluster, sure, clusters.count), orders[0], delta)
        certified = int(np.count_nonzero(own))
        for order, gain, won in zip(orders, gains, tried, strict=True):
            bet = np.zeros(clusters.count)
            for b in order:
                square = float((summed(clusters.cluster[pilot], won[b], clusters.count) ** 2).sum())
                bet[clusters.block == b] = best_bet(square + soft, clusters.pilots, certified, delta)
            wagers.append(Bet(summed(clusters.cluster, gain, clusters.count)[own], bet[own], (1.0 - GAP) / len(orders)))
        return BelowClasses(wagers, clusters.size[own], clusters.largest, room=LARGEST, reach=LARGEST)

    def signs(self, orders: list[Ints]) -> Floats:
        """Soft signs of ``p - 1{y = k}`` for clusters of each block, shape (orders, blocks + 1, K, bins).

        ``2 Phi(z) - 1`` of what pilot clusters and earlier blocks of the order add up to, over the root of the squares.
        """
        from scipy.special import ndtr

        total, square = self.by_block()
        heavy, rows = (
            np.bincount(self.clusters.block, v, BLOCKS + 1)
            for v in (self.clusters.squares, np.bincount(self.clusters.cluster, minlength=self.clusters.count))
        )
        result = np.zeros((len(orders), BLOCKS + 1, self.k, BINS))
        for i, order in enumerate(orders):
            past = np.concatenate([[0], order[:-1]])
            soft = SOFT * np.cumsum(heavy[past]) / np.maximum(np.cumsum(rows[past]), 1)
            sums, squares = (np.cumsum(v[past], axis=0) for v in (total, square))
            if i == len(orders) - 1:
                sums, squares = (np.broadcast_to(v.sum(axis=1, keepdims=True), v.shape) for v in (sums, squares))
            result[i, order] = 2.0 * ndtr(sums / np.sqrt(squares + soft[:, None, None])) - 1.0
        return result

    def by_block(self) -> tuple[Floats, Floats]:
        """Sums, and sums of squares of clusters' sums, of ``w (p - 1{y = k})``, shape (blocks + 1, K, bins)."""
        clusters = self.clusters
        block = clusters.block[clusters.cluster]
        total, square = np.empty((2, self.k, (BLOCKS + 1) * BINS))
        for k, column in self.columns():
            total[k] = square[k] = 0.0
            for bins, own, _ in self.parts(k, column):
                residual, at = clusters.weight * own, block * BINS + bins
                total[k] += summed(at, residual, total.shape[1])
                if clusters.count < len(self.y):
                    pair, each = np.unique(clusters.cluster * BINS + bins, return_inverse=True)
                    residual = summed(each.reshape(-1), residual, len(pair))
                    at = clusters.block[pair // BINS] * BINS + pair % BINS
                square[k] += summed(at, residual**2, total.shape[1])
        of = (self.k, BLOCKS + 1, BINS)
        return total.reshape(of).swapaxes(0, 1), square.reshape(of).swapaxes(0, 1)


# ---- Vectors moved at random to a lattice of the simplex ----

GRID = 256  # parts of one into which what a row can win is rounded, upwards
STARTS = (LARGEST, 1.5, *SEARCHED)  # where a refuted error is looked for


def emitted(p: Floats, steps: int, uniform: Floats) -> Floats:
    """Vectors of multiples of ``1 / steps`` that add up to one, of a uniform number in [0, 1) for each row."""
    total = p.cumsum(axis=1)
    total *= steps / total[:, -1:]
    total[:, -1] = steps
    whole = np.floor(total + uniform[:, None])
    return np.diff(whole, axis=1, prepend=0.0) / steps


def masses(column: Floats, steps: int) -> Iterator[tuple[Ints, Floats]]:
    """Yield the two multiples that a class's probability is emitted as, and how probable each is."""
    low = np.minimum(np.floor(column * steps).astype(np.int64), steps)
    part = np.clip(column * steps - low, 0.0, 1.0)
    yield low, 1.0 - part
    yield np.minimum(low + 1, steps), part


@dataclass(frozen=True)
class LatticeClasses(Classes):
    """Independent rows of equal weight, whose vectors are emitted in multiples of ``1 / steps``."""

    steps: int = field(kw_only=True)

    @property
    def reach(self) -> Floats:
        """What each row can win: ``sum_k E|s_k - 1{y = k}|``, which is ``2 (1 - p_y)``."""
        own = self.p[np.arange(len(self.y)), self.y]
        return self.p.sum(axis=1) + 1.0 - 2.0 * own

    def by_reach(self) -> tuple[Pairs, Floats, Floats]:
        """Rows that can win about the same, and sums and sums of squares of ``(s - 1{y = k})`` times its probability.

        A larger reach than a row's own leaves Theorem CU's bound valid: it is a chord of the same concave function.
        """
        reach, like, count = np.unique(np.ceil(self.reach * GRID + 1e-6), return_inverse=True, return_counts=True)
        levels, at, values, squares = self.steps + 1, [], [], np.zeros((self.k, self.steps + 1))
        for k, column in self.columns():
            total = np.zeros(len(reach) * levels)
            for level, mass in masses(column, self.steps):
                value = (level / self.steps - (self.y == k)) * mass
                total += np.bincount(like.reshape(-1) * levels + level, value, len(total))
                squares[k] += np.bincount(level, value**2, levels)
            here = np.flatnonzero(total)
            at.append(here // levels * (self.k * levels) + k * levels + here % levels)
            values.append(total[here])
        place = np.concatenate(at)
        order = np.argsort(place, kind="stable")
        place, value = place[order], np.concatenate(values)[order]
        of, cell = place // (self.k * levels), place % (self.k * levels)
        sums = summed(cell, value, self.k * levels)
        used, cell = np.unique(cell, return_inverse=True)
        size = np.ones(len(reach))
        pairs = Pairs(of, cell.reshape(-1), value, reach / GRID, size, len(used), multiplicity=count.astype(np.float64))
        return pairs, sums, squares.reshape(-1)

    def ends_above(self) -> tuple[Above, float]:
        """Evidence that the emitted vectors' class-wise error is smaller; and that error less what noise adds."""
        pairs, sums, squares = self.by_reach()
        kappas = bets(len(self.y), LARGEST + 2.0 / GRID)
        above = Above([[Separable(pairs, kappa)] for kappa in kappas.tolist()], STARTS)
        return above, float(np.sqrt(np.maximum(sums**2 - squares, 0.0)).sum()) / len(self.y)

    def parts(self, k: int, column: Floats) -> Iterator[tuple[NDArray[np.uint8], Floats, NDArray[np.bool_]]]:
        """The two multiples that a row is emitted as, each with its probability: signs read what is emitted."""
        for level, mass in masses(column, self.steps):
            shown = level / self.steps
            bins = np.searchsorted(EDGES, shown, side="right").astype(np.uint8)
            yield bins, mass * (shown - (self.y == k)), shown > SURE
