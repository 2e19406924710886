"""What acting is worth, certified from both sides: bets on independent clusters, block after block.

A cluster adds ``Z``, with ``-a W <= Z <= b W``, and has size ``W <= M``. If ``E Z / E W >= m``, and the bet ``0 <=
kappa < 1 / (M (b - m))`` on a block is fixed by the blocks before it, ``prod [1 - kappa (Z - m W)]`` has mean at most
one. It rises with m: where it reaches ``1 / delta``, every larger mean is refuted. From below likewise, of ``-Z``. Rows
that add the same are one kind, so that a million of them cost as much as a thousand.

Bands around weighted means, at all of them at once, allowing for skewed sums: studentised resampling of clusters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BetSizes
from calibrant.stats.cells import summed
from calibrant.stats.evidence import limit_of, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCKS = 24  # the k-th ends at ``(k / BLOCKS)^2`` of all: the first, of which least is known, are small
BETS = BetSizes((0.5, 1.0, 2.0), (0.1, 0.8, 0.1), 0.95)  # times what is the best for the noise of the blocks before
# The variance expected before any cluster was seen, times ``(a + b)^2 M^2``; it counts as one cluster
FIRST = 1.0 / 16.0
SMALLEST = 1e-12  # of ``b - m``, so that a bet is finite at the largest mean there can be
STREAM = 0x6A15  # of random numbers, apart from those of other methods at the same seed


@dataclass(frozen=True)
class Gains:
    """What independent clusters add, those of one block that add the same together."""

    # `value`, `size` and `times`, shape (k,): Z and W of each kind of cluster, and how many there are.
    value: Floats
    size: Floats
    times: Floats
    block: Ints  # shape (k,): 1 to `BLOCKS`; 0 of pilot clusters, which are learnt from and not certified
    # `least` and `most`: `-a` and `b`: no cluster adds less, or more, by its size.
    least: float
    most: float
    largest: float  # M

    @classmethod
    def of_counts(cls, value: Sequence[float], count: Sequence[int], seed: int) -> Gains:
        """Deal rows, given how many add each value there is: in a random order, which the seed alone chooses."""
        rng, left, times = np.random.default_rng([seed, STREAM]), np.array(count, dtype=np.int64), []
        for rows in np.diff(_ends(int(left.sum()))):
            times.append(rng.multivariate_hypergeometric(left, rows, method="marginals"))
            left = left - times[-1]
        block, kind = np.nonzero(times)
        values, many = np.array(value, dtype=np.float64), np.array(times, dtype=np.float64)[block, kind]
        return cls(values[kind], np.ones(len(kind)), many, block + 1, float(values.min()), float(values.max()), 1.0)

    @classmethod
    def of_clusters(
        cls, value: Floats, size: Floats, certified: NDArray[np.bool_], span: tuple[float, float, float], seed: int
    ) -> Gains:
        """Deal clusters that certify, in a random order; `span` are ``-a``, ``b`` and M."""
        count = int(np.count_nonzero(certified))
        rank = np.random.default_rng([seed, STREAM]).permutation(count)
        block = np.zeros(len(value), dtype=np.int64)
        block[certified] = np.searchsorted(_ends(count), rank, side="right")
        return cls(value, size, np.ones(len(value)), block, *span)

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Which kinds certify."""
        return self.block > 0

    @cached_property
    def mean(self) -> float:
        """The mean of the clusters that certify."""
        own = self.times * self.certified
        size = float(own @ self.size)
        return float(own @ self.value) / size if size else 0.0

    @cached_property
    def noise(self) -> Floats:
        """Root of the variance to expect of a cluster of each block, by the blocks before it; none before the first."""
        z, w = self.value, self.size
        sums = (summed(self.block, self.times * v, BLOCKS + 1) for v in (np.ones(len(z)), z, w, z * z, z * w, w * w))
        count, won, size, square, cross, weight = (np.append(0.0, np.cumsum(v)[:-1]) for v in sums)
        # (1) The mean before, 0 until a cluster has a size; (2) the squares about it
        mean = np.divide(won, size, out=np.zeros_like(size), where=size > 0.0)
        about = np.maximum(square - 2.0 * mean * cross + mean**2 * weight, 0.0)
        first = FIRST * ((self.most - self.least) * self.largest) ** 2
        return np.sqrt((about + first) / (count + 1.0))

    def limits(self, delta: float) -> tuple[float, float]:
        """Limits that hold the mean, each missing it with probability at most `delta`."""
        if not self.size[self.certified].any():
            return self.least, self.most
        low, high = -self._upper(-1.0, delta), self._upper(1.0, delta)
        return min(low, self.mean), max(high, self.mean)

    def evidence(self, sign: float, mean: float, delta: float) -> float:
        """The log e-value against "the mean of ``sign * Z`` is at least `mean`", with bets for `delta`."""
        own, top = self.certified, (self.most if sign > 0.0 else -self.least)
        times, lost = self.times[own], sign * self.value[own] - mean * self.size[own]
        wished = math.sqrt(-2.0 * math.log(delta) / times.sum()) / self.noise[self.block[own]]
        cap = BETS.largest / (self.largest * max(top - mean, SMALLEST))
        gain = [float(times @ np.log1p(-np.minimum(k * wished, cap) * lost)) for k in BETS.multiples]
        return log_mean_exp(gain, BETS.shares)

    def _upper(self, sign: float, delta: float) -> float:
        """The least mean of ``sign * Z`` that is refuted."""
        top, bottom = (self.most, self.least) if sign > 0.0 else (-self.least, -self.most)
        return limit_of(lambda m: self.evidence(sign, m, delta), delta, top, bottom)


def _ends(count: int) -> Ints:
    """After how many clusters each block ends, from 0 on."""
    return np.round(count * (np.arange(BLOCKS + 1) / BLOCKS) ** 2).astype(np.int64)


# ---- Bands around weighted means, at all of them at once: studentised resampling of clusters ----

DRAWS = 1999  # resamples: quantiles at a level of 0.05 are then off by a few hundredths
FAR = 1e6  # standard errors: no range of a mean is as wide
BUNDLES = 2000  # clusters are put together at random into so many: sums keep their law, and each resample is cheap


@dataclass(frozen=True)
class Sums:
    """What independent clusters add to several weighted means."""

    won: Floats  # shape (u, t)
    size: Floats  # shape (u,)
    times: Floats  # shape (u,): how many clusters there are of each kind
    count: float  # clusters in all

    @property
    def means(self) -> Floats:
        """The means, shape (t,)."""
        result: Floats = self.times @ self.won / (self.times @ self.size)
        return result

    @property
    def errors(self) -> Floats:
        """Their standard errors, of ratios, shape (t,)."""
        square = self.times @ (self.won - np.outer(self.size, self.means)) ** 2
        result: Floats = np.sqrt(square * self._spread) / (self.times @ self.size)
        return result

    @property
    def _spread(self) -> float:
        return self.count / max(self.count - 1.0, 1.0)

    def bundled(self, rng: np.random.Generator) -> Sums:
        """Put clusters together at random, where there are many."""
        if len(self.size) <= BUNDLES:
            return self
        into = rng.permutation(len(self.size)) % BUNDLES
        won = np.stack([summed(into, self.times * v, BUNDLES) for v in self.won.T], axis=1)
        return Sums(won, summed(into, self.times * self.size, BUNDLES), np.ones(BUNDLES), float(BUNDLES))

    def drawn(self, rng: np.random.Generator) -> Floats:
        """How often each kind of clusters is in each resample, shape (draws, u)."""
        kinds, total = len(self.size), self.times.sum()
        if (self.times != 1.0).any():
            return rng.multinomial(round(total), self.times / total, size=DRAWS).astype(np.float64)
        which = rng.integers(kinds, size=(DRAWS, kinds)) + kinds * np.arange(DRAWS)[:, None]
        return np.bincount(which.ravel(), minlength=DRAWS * kinds).reshape(DRAWS, kinds).astype(np.float64)

    def studentised(self, rng: np.random.Generator) -> Floats:
        """How many standard errors of its own each resample's means are off these means, shape (draws, t).

        As many clusters are drawn as there are, with replacement. Where all drawn are alike, they are off by `FAR`.
        """
        some = self.bundled(rng)
        times = some.drawn(rng)
        size = (times @ some.size)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = times @ some.won / size
            square = times @ some.won**2 - 2.0 * means * (times @ (some.won * some.size[:, None]))
            square += means**2 * (times @ some.size**2)[:, None]
            off = (means - some.means) / (np.sqrt(np.maximum(square * some._spread, 0.0)) / size)
        return np.clip(np.where(np.isnan(off), 0.0, off), -FAR, FAR)  # nothing varies: nothing is off


def widths(sums: Sums, normal: float, alpha: float, rng: np.random.Generator) -> tuple[float, float]:
    """How many standard errors a band reaches below and above the means, to hold at all of them at once.

    Below the largest of three: of as many normal numbers (`normal`, given); of resampled means either way, at ``1 -
    alpha``; of resampled means too high, at ``1 - alpha / 2``. Above likewise. The first two hold where sums are nearly
    normal, or as skewed one way as the other; the third where a few clusters decide.
    """
    off = sums.studentised(rng)
    either = float(np.quantile(np.abs(off).max(axis=1), 1.0 - alpha))
    high, low = (float(np.quantile((s * off).max(axis=1), 1.0 - alpha / 2.0)) for s in (1.0, -1.0))
    return max(normal, either, high), max(normal, either, low)
