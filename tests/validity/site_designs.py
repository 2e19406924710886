"""Units at sites, whose truth along the site and in every pocket is a formula: designs that hurt certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

import calibrant as cal
from calibrant.stats.subgroups.family import Family

SITES = np.array(list("abcdef"))
USUAL = tuple((np.arange(1, 20) / 20.0).tolist())
RARE = (0.002, 0.005, 0.01, 0.02, 0.04)
MIXED = (1, 2, 5, 10, 20, 50, 100, 200)


@dataclass(frozen=True, kw_only=True)
class Sites:
    """Units with a Gaussian copula within them, each at one of six sites.

    Parameters
    ----------
    clusters : int
    sizes : tuple of int
        Equally likely.
    intraclass_correlation : float
        Correlation of the latent normal numbers of one unit.
    off : float
        The score is too low by this share of ``min(p, 1 - p)`` at three of the sites, too high at the others.
    large : float
        The rate of units above the median size is higher by so much, that of the others lower.
    weights : float
        Coefficient of variation of log-normal weights, one a row; 0 for none.
    scores : tuple of float
    """

    clusters: int
    sizes: tuple[int, ...] = (1,)
    intraclass_correlation: float = 0.0
    off: float = 0.0
    large: float = 0.0
    weights: float = 0.0
    scores: tuple[float, ...] = USUAL

    def rate(self, size: Any, p: Any, site: Any) -> Any:
        """Return the event rates of rows."""
        tilt = np.where(np.asarray(size) > np.median(self.sizes), self.large, -self.large)
        signs = np.where(np.asarray(site) < len(SITES) / 2, 1.0, -1.0)
        return np.clip(p + self.off * np.minimum(p, 1.0 - p) * signs + tilt, 0.0, 1.0)

    def drawn(self, rng: np.random.Generator) -> tuple[cal.Predictions, Any]:
        """Return one data set, and the event rate of every row, whose trait ``x`` is told apart from all."""
        size = rng.choice(self.sizes, self.clusters)
        cluster_code = np.repeat(np.arange(self.clusters), size)
        site = rng.integers(0, len(SITES), self.clusters)[cluster_code]
        p = rng.choice(self.scores, len(cluster_code))
        eta = self.rate(size[cluster_code], p, site)
        latent = np.sqrt(self.intraclass_correlation) * rng.normal(size=self.clusters)[cluster_code]
        latent = latent + np.sqrt(1.0 - self.intraclass_correlation) * rng.normal(size=len(cluster_code))
        spread = np.sqrt(np.log1p(self.weights**2))
        weights = rng.lognormal(0.0, spread, len(cluster_code)) if self.weights else None
        attributes = {"site": SITES[site], "x": rng.integers(0, 4, len(cluster_code)).astype(float)}
        own = cluster_code if max(self.sizes) > 1 else None
        return cal.predictions(ndtr(latent) < eta, p, attributes, weights=weights, cluster=own), eta

    def by_variable(self, largest: float = np.inf) -> float:
        """Return the error along the site where no unit weighs more than `largest`; weights are about no size."""
        size = np.array(self.sizes, dtype=float)
        each = size if self.weights else np.minimum(size, largest)
        p, site = np.array(self.scores), np.arange(len(SITES))
        gaps = (self.rate(size[:, None, None], p[:, None], site) - p[:, None]).mean(axis=1)
        return float(np.abs(each @ gaps).mean() / each.sum())


def inside(family: Family, cells: Any) -> Any:
    """Return which rows lie in each box, shape (boxes, n)."""
    return np.array([family.inside(b, cells) for b in range(family.size)])


def worst(boxes: Any, weight: Any, off: Any) -> Any:
    """Return the largest gap of any box, of residuals of shape (n,): rates less scores."""
    return np.abs((boxes @ (weight * off)) / (boxes @ weight)).max()


HARD = {
    "100 units of 1 to 200, correlation 0.3": Sites(clusters=100, sizes=MIXED, intraclass_correlation=0.3),
    "60 units of 50, correlation 0.5": Sites(clusters=60, sizes=(50,), intraclass_correlation=0.5),
    "200 units of 10, correlation 0.9": Sites(clusters=200, sizes=(10,), intraclass_correlation=0.9),
    "200 units of 1 to 20, rates 8 points higher in large ones": Sites(
        clusters=200, sizes=MIXED[:5], intraclass_correlation=0.1, large=0.04
    ),
    "200 units of 1 to 20, weights of CV 2, correlation 0.3": Sites(
        clusters=200, sizes=MIXED[:5], intraclass_correlation=0.3, weights=2.0
    ),
    "400 units of 10, rare events, correlation 0.3": Sites(
        clusters=400, sizes=(10,), intraclass_correlation=0.3, scores=RARE
    ),
    "2,000 rows, weights of CV 2": Sites(clusters=2000, weights=2.0),
    "200 units of 1 to 200, rates 8 points higher in large ones, correlation 0.9": Sites(
        clusters=200, sizes=MIXED, intraclass_correlation=0.9, large=0.04
    ),
}
OFF = 0.3
