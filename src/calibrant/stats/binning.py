"""Scores in bins: equal width or equal mass, ties never split, empty bins left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.kernels.bins import bin_sums
from calibrant.stats.resample import noise


def equal_mass_edges(p: Any, mass: Any, bins: int) -> Any:
    """Return inner edges between at most `bins` bins of about equal mass; equal scores share a bin.

    A score whose mass lies at ranks F to F + m goes to bin ``floor(bins (F + m / 2) / total)``.

    Parameters
    ----------
    p : array of shape (n,)
    mass : array of shape (n,) or None
        Weight of each entry; one by default.
    bins : int
    """
    if mass is None:
        s = np.sort(p)
        upto = np.arange(len(s) + 1, dtype=np.float64)
    else:
        order = np.argsort(p, kind="stable")
        s, upto = p[order], np.concatenate([[0.0], np.cumsum(mass[order])])
    targets = upto[-1] * np.arange(1, bins) / bins
    at = np.minimum(np.searchsorted(upto, targets, side="right") - 1, len(s) - 1)
    first, after = np.searchsorted(s, s[at], side="left"), np.searchsorted(s, s[at], side="right")
    here = 0.5 * (upto[first] + upto[after]) >= targets
    edges = np.where(here, s[at], np.where(after < len(s), s[np.minimum(after, len(s) - 1)], np.inf))
    return np.unique(edges[(edges > s[0]) & np.isfinite(edges)])


@dataclass(frozen=True)
class Bins:
    """Sums in each bin that holds rows.

    Parameters
    ----------
    sums : float64 array of shape (bins, 6)
        As `calibrant.kernels.bins_reference.bin_sums` returns.
    asked : int
        Bins asked for; fewer may hold rows.
    """

    sums: Any
    asked: int

    @classmethod
    def of(cls, p: Any, y: Any, count: Any, weight: Any, bins: int, strategy: str) -> Bins:
        """Bin points; `count` and `weight` may be None."""
        if strategy == "equal-width":
            sums = bin_sums(p, y, count, weight, None, bins)
        else:
            mass = weight if count is None else count if weight is None else count * weight
            edges = equal_mass_edges(p, mass, bins)
            sums = bin_sums(p, y, count, weight, edges, len(edges) + 1)
        return cls(sums[sums[:, 0] > 0], bins)

    @property
    def used(self) -> int:
        """Bins that hold rows."""
        return len(self.sums)

    @cached_property
    def share(self) -> Any:
        """Share of the weight in each bin."""
        return self.sums[:, 1] / self.sums[:, 1].sum()

    @cached_property
    def gap(self) -> Any:
        """Weighted mean residual ``y - p`` over the bin's share: adds up to the overall mean residual."""
        return (self.sums[:, 2] - self.sums[:, 3]) / self.sums[:, 1].sum()

    @cached_property
    def effective(self) -> float:
        """Kish's effective number of rows; the number of rows if all weigh the same."""
        return float(self.sums[:, 1].sum() ** 2 / self.sums[:, 5].sum())

    @cached_property
    def kish(self) -> Any:
        """Effective rows in each bin."""
        return self.sums[:, 1] ** 2 / self.sums[:, 5]

    @cached_property
    def noise_rate(self) -> Any:
        """Event rate per bin by which label noise is judged: never 0 or 1, whatever the outcomes.

        Each bin's rate is shrunk towards what the scores, made to agree with the overall rate, lead one to expect;
        the expectation counts as many rows as hold one case and one non-case, and at most as many as the bin. Then
        all rates are raised until cases, and non-cases, are overall as frequent as with two more of each (Agresti
        & Coull 1998).
        """
        rows, cases, scores = self.sums[:, 1] * self.scale, self.sums[:, 2] * self.scale, self.sums[:, 3] * self.scale
        half, n, k = 0.5 * rows / rows.sum(), rows.sum(), cases.sum()
        yes = (k + 0.5) * (scores + half) / (scores.sum() + 0.5)
        no = (n - k + 0.5) * (rows - scores + half) / (n - scores.sum() + 0.5)
        expected = yes / (yes + no)
        prior = np.minimum(1.0 / (expected * (1.0 - expected)), self.kish)
        rate = (self.kish * cases / rows + prior * expected) / (self.kish + prior)
        few = min((k + 2) / (n + 4) * n / float(rows @ rate), 0.5 / float(rate.max()))
        rate = rate * few if few > 1 else rate
        lack = (n - k + 2) / (n + 4) * n / float(rows @ (1 - rate))
        return 1 - (1 - rate) * min(lack, max(0.5 / float((1 - rate).max()), 1.0)) if lack > 1 else rate

    @cached_property
    def scale(self) -> float:
        """Effective rows per unit of weight."""
        return self.effective / float(self.sums[:, 1].sum())

    @cached_property
    def second_moment(self) -> Any:
        """Second moment of ``1_bin (y - p)``, per effective row, with label noise at `noise_rate`."""
        rate, total = self.sums[:, 2] / self.sums[:, 1], self.sums[:, 1].sum()
        change = self.noise_rate * (1 - self.noise_rate) - rate * (1 - rate)
        least = self.share * self.noise_rate * (1 - self.noise_rate) * 0.5
        return np.maximum(self.effective * (self.sums[:, 4] + change * self.sums[:, 5]) / total**2, least)

    def shocks(self, draws: int, rng: np.random.Generator) -> Any:
        """Draw binomial label noise of mean 0 and variance 1 per bin, shape (draws, bins)."""
        rows, rate = np.maximum(np.rint(self.kish), 1.0), self.noise_rate
        counts = rng.binomial(rows.astype(np.int64), rate, (draws, self.used))
        return (counts - rows * rate) / np.sqrt(rows * rate * (1 - rate))

    def gap_noise(self, draws: int, rng: np.random.Generator) -> Any:
        """Simulate the noise of `gap`, shape (draws, bins)."""
        return noise(self.second_moment, self.gap, self.effective, self.shocks(draws, rng))

    def mean_noise(self, draws: int, rng: np.random.Generator) -> Any:
        """Simulate the noise of each bin's own mean residual ``gap / share``, shape (draws, bins)."""
        mean = self.gap / self.share
        least = 0.5 * self.noise_rate * (1 - self.noise_rate)
        spread = np.maximum(self.second_moment / self.share - mean**2, least) / self.share
        return noise(spread, np.zeros(self.used), self.effective, self.shocks(draws, rng))
