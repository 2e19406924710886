r"""Limits for the mean of paired differences in a population: bets on independent clusters, one after another.

A cluster adds ``Z = sum w d`` over its rows, with ``|d| <= B``, and has size ``W = sum w <= M``. If ``E Z / E W >= m``,
and the bet ``k_u >= 0`` is fixed by the clusters before u alone, ``prod_u [1 - k_u (Z_u - m W_u)]`` has mean at most
one; it is positive as ``k_u M (B - m) < 1``. It rises with m: where it reaches ``1 / delta``, every larger mean is
refuted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BetSizes
from calibrant.stats.evidence import limit_of, log_mean_exp

Floats = NDArray[np.float64]
BETS = BetSizes((0.5, 1.0, 2.0), (0.1, 0.8, 0.1), 0.95)  # times what is the best for the noise of the clusters before
FIRST = 16.0  # the noise expected before a cluster was seen: a variance of (B M)^2 / 16, which counts as one cluster
SMALLEST = 1e-12  # of ``B - m``, so that a bet is finite at the largest mean there can be


@dataclass(frozen=True)
class PairedClusters:
    """Differences of independent clusters from one population, in an order that nothing of them has chosen."""

    # `value` and `size`, shape (m,): sums of weighted differences, and of weights.
    value: Floats
    size: Floats
    reach: float  # B: no difference is larger, whatever the scores and the outcome
    most: float  # M: no size is larger; fixed without the clusters here

    @property
    def mean(self) -> float:
        """The mean difference seen."""
        return float(self.value.sum() / self.size.sum())

    @cached_property
    def noise(self) -> Floats:
        """Root of the variance to expect of each cluster, by the clusters before it."""
        total, size = np.cumsum(self.value), np.cumsum(self.size)
        # (1) The mean of the clusters before, 0 until one has a size; (2) the squares about it, each by its own past
        known = np.divide(total, size, out=np.zeros_like(total), where=size > 0.0)
        before = np.append(0.0, known[:-1])
        squares = np.cumsum((self.value - before * self.size) ** 2)
        first = (self.reach * self.most) ** 2 / FIRST
        return np.sqrt((first + np.append(0.0, squares[:-1])) / np.arange(1.0, len(squares) + 1.0))

    def limits(self, delta: float) -> tuple[float, float]:
        """Return limits that hold the population's mean, each missing it with probability at most ``delta / 2``."""
        low, high = -self._upper(-1.0, 0.5 * delta), self._upper(1.0, 0.5 * delta)
        return min(low, self.mean), max(high, self.mean)

    def evidence(self, sign: float, mean: float, delta: float) -> float:
        """The log e-value against "the mean of ``sign * d`` is at least `mean`", with bets for `delta`."""
        z = sign * self.value
        wished = np.array(BETS.multiples)[:, None] * (math.sqrt(-2.0 * math.log(delta) / len(z)) / self.noise)
        largest = BETS.largest / (self.most * max(self.reach - mean, SMALLEST))
        gain = np.log1p(-np.minimum(wished, largest) * (z - mean * self.size)).sum(axis=1)
        return log_mean_exp(gain, BETS.shares)

    def _upper(self, sign: float, delta: float) -> float:
        """The least mean of ``sign * d`` that is refuted."""
        return limit_of(lambda m: self.evidence(sign, m, delta), delta, self.reach, -self.reach)
