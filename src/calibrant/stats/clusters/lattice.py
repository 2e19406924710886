r"""Theorems CU and CL of vectors that were moved at random to a lattice of the simplex: their class-wise error.

Of a vector p with partial sums ``P_k`` and one uniform number U the emitted vector has
``s_k = (floor(m P_k + U) - floor(m P_{k-1} + U)) / m``: multiples of ``1 / m`` that add up to one. Each is one of the
two nearest ``p_k``, the upper one with probability ``m p_k - floor(m p_k)``, so that its mean is ``p_k``. U knows no
class, so that ``E|s_k - P(Y = k | s_k)|``, added up over classes, is a sum of means over rows, and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.cells import summed
from calibrant.stats.clusters.above import Above, Pairs, Separable, bets
from calibrant.stats.clusters.classes import EDGES, LARGEST, SURE, Classes
from calibrant.stats.evidence import SEARCHED

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
