"""Rows that come in units, whose truth is a formula: outcomes of one unit are as alike as a correlation says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

import calibrant as cal


@dataclass(frozen=True)
class Clusters:
    """Outcomes with a Gaussian copula within units: each has its own rate, units are independent.

    Parameters
    ----------
    clusters, size : int
        Sizes vary from 1 to ``2 size - 1`` if `unequal`.
    intraclass_correlation : float
        Correlation of the latent normal numbers of one unit; of the scores too.
    low, high : float
        Between which scores lie.
    gap : float
        By how much the rate is above the score.
    weighted : bool
        Weights with a coefficient of variation of about 0.6, one a unit, told apart from the outcomes.
    shape : float
        Of the weights' gamma law: the coefficient of variation is ``shape^(-1/2)``.
    """

    clusters: int = 200
    size: int = 20
    intraclass_correlation: float = 0.3
    low: float = 0.1
    high: float = 0.6
    gap: float = 0.0
    unequal: bool = False
    weighted: bool = False
    shape: float = 3.0

    def drawn(self, rng: np.random.Generator) -> cal.Predictions:
        """Return one data set; the column ``x`` is alike within units too."""
        sizes = rng.integers(1, 2 * self.size, self.clusters) if self.unequal else np.full(self.clusters, self.size)
        cluster_code = np.repeat(np.arange(self.clusters), sizes)
        score, outcome, x = (self._uniform(cluster_code, rng) for _ in range(3))
        p = np.round(self.low + (self.high - self.low) * score, 3)
        weights = rng.gamma(self.shape, size=self.clusters)[cluster_code] if self.weighted else None
        return cal.predictions(outcome < p + self.gap, p, {"x": x}, cluster=cluster_code, weights=weights)

    def _uniform(self, cluster: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        own, shared = rng.normal(size=len(cluster)), rng.normal(size=self.clusters)[cluster]
        return ndtr(np.sqrt(self.intraclass_correlation) * shared + np.sqrt(1.0 - self.intraclass_correlation) * own)

    @property
    def brier(self) -> float:
        """The Brier score."""
        return self._mean(lambda p, q: q * (1.0 - p) ** 2 + (1.0 - q) * p**2)

    @property
    def log_loss(self) -> float:
        """The logarithmic loss."""
        return self._mean(lambda p, q: -q * np.log(p) - (1.0 - q) * np.log1p(-p))

    @property
    def auroc(self) -> float:
        """The area under the ROC curve, of two rows of different units."""
        p = np.linspace(self.low, self.high, 4001)
        case, other = p + self.gap, 1.0 - p - self.gap
        below = np.cumsum(other) - 0.5 * other
        return float(case @ below / (case.sum() * other.sum()))

    @property
    def observed_expected(self) -> float:
        """Observed over expected."""
        return 1.0 + self.gap / self._mean(lambda p, _: p)

    def _mean(self, value) -> float:
        p = np.linspace(self.low, self.high, 4001)
        return float(np.mean(value(p, p + self.gap)))


def alone(data: cal.Predictions) -> cal.Predictions:
    """Return the same rows as if each were a unit: what a method does that ignores who belongs together."""
    return cal.predictions(data.y, data.p, data.covariates, weights=data.weights)
