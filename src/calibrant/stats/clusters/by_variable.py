r"""The error along a variable, of clusters: Theorems CL and CU with the variable's cells in place of the score's.

`ByVariable` has the sums of residuals by cluster and cell. Beyond an unknown overall gap m the sums are those of ``r -
m``, linear in m; a product of factors is then log-concave in m for every pattern of signs, so that of all shifts
between two limits the worst is one of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BLOCK_ORDERS, SOFT
from calibrant.stats.clusters.above import Above, bets
from calibrant.stats.clusters.below import Below, Bet, below_of, best_bet, gap_of, orders_of, runs_of
from calibrant.stats.clusters.clusters import Clusters, Tallies
from calibrant.stats.evidence import SEARCHED, Evidence, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROOM = 1.25  # residuals less a shift of a quarter at most; of a larger shift the largest bets count nothing
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
        room = 1.0 if gaps == (0.0,) else ROOM
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
        """Bet that the error is larger: on a plain shift, and on signs learnt on earlier blocks."""
        return below_of(self.tallies, delta, seed, few=False, bins=self._bins)

    def below_beyond(self, delta: float, seed: int, gaps: tuple[float, ...]) -> Below:
        """Bet that the error beyond a shift is larger, whichever of the shifts it is.

        Signs and bets are learnt about the mean of earlier clusters; the shifts, which come from all, play no part.
        """
        clusters, own = self.tallies.clusters, self.tallies.clusters.certified
        wagers = []
        for order in orders_of(seed):
            gain, mass, bet = self._learnt(order, delta)
            each = gain[own] - np.array(gaps)[:, None] * mass[own]
            wagers.append(Bet(each, bet[own], 1.0 / BLOCK_ORDERS))
        return Below(wagers, clusters.size[own], clusters.largest, ROOM, 1.0 + max(map(abs, gaps)))

    def _learnt(self, order: Ints, delta: float) -> tuple[Floats, Floats, Floats]:
        """Return what each cluster wins by the signs of its block, of residuals and of ones, and the bet on it."""
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
        """Return soft signs of the cells about the mean residual of some clusters, and this mean."""
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
        """Return limits that hold the mean residual with probability at least ``1 - delta``."""
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
