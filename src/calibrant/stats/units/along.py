r"""The error along a variable, of clusters: Theorems CL and CU with the variable's cells in place of the score's.

`Along` has the sums of residuals by cluster and cell. Beyond an unknown overall gap m the sums are those of ``r - m``,
linear in m; a product of factors is then log-concave in m for every pattern of signs, so that of all shifts between two
limits the worst is one of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import DEALS, SOFT, log_mean_exp
from calibrant.stats.units.above import Above, bets, least_refuted
from calibrant.stats.units.below import (
    LARGEST,
    SHIFT,
    Below,
    Wager,
    best_bet,
    gap_of,
    learnt,
    orders_of,
    runs_of,
    signs_of,
    steady,
)
from calibrant.stats.units.units import Tallies, Units

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROOM = 1.25  # residuals less a shift of a quarter at most; of a larger shift the largest bets count nothing
FINE = 20  # cells up to which each has its own sign in every order; of more, in order, runs have


@dataclass(frozen=True)
class Along:
    """Sums of residuals of clusters in cells of a variable.

    Parameters
    ----------
    tallies : Tallies
        Sums of ``w r``, with r of size 1 at most.
    mass : Tallies
        Sums of w, by the same clusters and cells.
    ordered : bool
        The cells are in the order of a number or date.
    """

    tallies: Tallies
    mass: Tallies
    ordered: bool

    @classmethod
    def of(cls, units: Units, cell: Ints, cells: int, residual: Floats, ordered: bool) -> Along:
        """Add up rows."""
        return cls(units.sums(cell, cells, residual), units.sums(cell, cells, np.ones(len(residual))), ordered)

    def upper(self, delta: float, shifts: tuple[float, ...]) -> float:
        """Return an upper bound that fails with probability at most `delta`, for the worst of the shifts."""
        return self.above(shifts).limit(delta)

    def above(self, shifts: tuple[float, ...]) -> Beyond:
        """Return the evidence against an error at least so large."""
        units = self.tallies.units
        room = 1.0 if shifts == (0.0,) else ROOM
        kappas = bets(int(np.count_nonzero(units.certified)), room * units.largest)
        most = 1.0 + max(map(abs, shifts))
        sound = kappas * units.largest * most < 1.0
        ends = [Above.of(self.tallies.less(self.mass, m) if m else self.tallies, kappas[sound]) for m in shifts]
        return Beyond(ends, len(kappas))

    def lower(self, delta: float, seed: int, shifts: tuple[float, ...]) -> float:
        """Return a lower bound that fails with probability at most `delta`, for the worst of the shifts."""
        return (self.below(delta, seed) if shifts == (0.0,) else self.below_beyond(delta, seed, shifts)).limit(delta)

    @cached_property
    def _bins(self) -> Ints:
        cells = self.tallies.cells
        return runs_of(self.tallies) if self.ordered and cells > FINE else np.arange(cells)

    def below(self, delta: float, seed: int) -> Below:
        """Bet that the error is larger: on a plain shift, and on signs learnt on earlier blocks."""
        t, units, own = self.tallies, self.tallies.units, self.tallies.units.certified
        orders = orders_of(seed)
        wagers = steady(units, t.witnessed(np.ones(t.cells)), orders[0], delta)
        for order in orders:
            gain, bet = learnt(t, order, signs_of(t, order, self._bins), delta)
            wagers.append(Wager(gain[own], bet[own], (1.0 - SHIFT) / DEALS))
        return Below(wagers, units.size[own], units.largest)

    def below_beyond(self, delta: float, seed: int, shifts: tuple[float, ...]) -> Below:
        """Bet that the error beyond a shift is larger, whichever of the shifts it is.

        Signs and bets are learnt about the mean of earlier clusters; the shifts, which come from all, play no part.
        """
        units, own = self.tallies.units, self.tallies.units.certified
        wagers = []
        for order in orders_of(seed):
            gain, mass, bet = self._learnt(order, delta)
            each = gain[own] - np.array(shifts)[:, None] * mass[own]
            wagers.append(Wager(each, bet[own], 1.0 / DEALS))
        return Below(wagers, units.size[own], units.largest, 1.0 + max(map(abs, shifts)))

    def _learnt(self, order: Ints, delta: float) -> tuple[Floats, Floats, Floats]:
        """Return what each cluster wins by the signs of its block, of residuals and of ones, and the bet on it."""
        units = self.tallies.units
        gain, mass, bet = np.zeros((3, units.count))
        past = units.block == 0
        for block in order:
            here, left = units.block == block, units.certified & ~past
            f, shift = self._signs(past)
            won, held = self.tallies.witnessed(f), self.mass.witnessed(f)
            square = float(((won - shift * held)[past] ** 2).sum())
            best = best_bet(square, int(past.sum()), int(np.count_nonzero(left)), delta)
            gain[here], mass[here], bet[here] = won[here], held[here], min(best, LARGEST / (ROOM * units.largest))
            past = past | here
        return gain, mass, bet

    def _signs(self, past: NDArray[np.bool_]) -> tuple[Floats, float]:
        """Return soft signs of the cells about the mean residual of some clusters, and this mean."""
        from scipy.special import ndtr

        units, bins = self.tallies.units, self._bins
        own = past[self.tallies.unit]
        at, unit = bins[self.tallies.cell[own]], self.tallies.unit[own]
        value, mass = self.tallies.value[own], self.mass.value[own]
        shift = float(value.sum()) / max(float(mass.sum()), 1e-300)
        size = int(bins.max(initial=0)) + 1
        where, pair = np.unique(unit * size + at, return_inverse=True)
        each = np.bincount(pair.reshape(-1), value - shift * mass, len(where))
        residual, square = (np.bincount(where % size, v, size) for v in (each, each**2))
        rows = past[units.unit]
        soft = SOFT * float(units.squares[past].sum()) / max(int(np.count_nonzero(rows)), 1)
        f: Floats = 2.0 * ndtr(residual / np.sqrt(square + max(soft, 1e-300))) - 1.0
        return f[bins], shift

    def limits(self, delta: float) -> tuple[float, float]:
        """Return limits that hold the mean residual with probability at least ``1 - delta``."""
        gap = gap_of(self.tallies.units, delta / 2.0, self.tallies.witnessed(np.ones(self.tallies.cells)))
        return gap.limit(delta / 2.0, 1.0), gap.limit(delta / 2.0, -1.0)

    def debiased(self, beyond_shift: bool) -> float:
        """Return the error as estimated, less what noise between clusters adds."""
        if not beyond_shift:
            return self.tallies.debiased
        total = max(self.tallies.units.total, 1e-300)
        mean = float(self.tallies.by_block()[1:].sum()) / total
        return self.tallies.less(self.mass, mean).debiased


@dataclass(frozen=True)
class Beyond:
    """Evidence against "the error beyond the overall gap is at least x", at the worst of several shifts.

    Parameters
    ----------
    ends : sequence of Above
        One for each shift, with the same bets.
    bets : int
        How many bets share the evidence; those that `ends` lack could lose more than they have, and count nothing.
    """

    ends: Sequence[Above]
    bets: int

    def at(self, x: float) -> float:
        """Return the log e-value: of each bet at its worst shift, then the mean."""
        if not self.ends[0].forms:
            return -np.inf
        logs = [min(each) for each in zip(*(end.by_bet(x) for end in self.ends), strict=True)]
        return log_mean_exp(logs, np.full(len(logs), 1.0 / self.bets))

    def limit(self, delta: float) -> float:
        """Return an error, in [0, 1], at which the e-value reaches ``1 / delta``: every larger one is refuted too."""
        return least_refuted(lambda x: self.at(x) + float(np.log(delta)))
