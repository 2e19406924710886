"""Bands around weighted means, at all of them at once, allowing for skewed sums: studentised resampling of clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.cells import summed

Floats = NDArray[np.float64]
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
        """Return their standard errors, of ratios, shape (t,)."""
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
        """Return how often each kind of clusters is in each resample, shape (draws, u)."""
        kinds, total = len(self.size), self.times.sum()
        if (self.times != 1.0).any():
            return rng.multinomial(round(total), self.times / total, size=DRAWS).astype(np.float64)
        which = rng.integers(kinds, size=(DRAWS, kinds)) + kinds * np.arange(DRAWS)[:, None]
        return np.bincount(which.ravel(), minlength=DRAWS * kinds).reshape(DRAWS, kinds).astype(np.float64)

    def studentised(self, rng: np.random.Generator) -> Floats:
        """Return how many standard errors of its own each resample's means are off these means, shape (draws, t).

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
    """Return how many standard errors a band reaches below and above the means, to hold at all of them at once.

    Below the largest of three: of as many normal numbers (`normal`, given); of resampled means either way, at ``1 -
    alpha``; of resampled means too high, at ``1 - alpha / 2``. Above likewise. The first two hold where sums are nearly
    normal, or as skewed one way as the other; the third where a few clusters decide.
    """
    off = sums.studentised(rng)
    either = float(np.quantile(np.abs(off).max(axis=1), 1.0 - alpha))
    high, low = (float(np.quantile((s * off).max(axis=1), 1.0 - alpha / 2.0)) for s in (1.0, -1.0))
    return max(normal, either, high), max(normal, either, low)
