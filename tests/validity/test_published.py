"""Do the published bounds hold? Enumeration of the ingredients, simulation of the whole, saboteurs."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibrant.apps.papers import bounds as published
from calibrant.apps.papers.certificates import published_kernel, published_lipschitz, published_total_variation
from calibrant.kernels.smooth import smooth
from calibrant.results import Estimate

ALPHA = 0.2
CATALAN = 0.915965594177219015


@dataclass(frozen=True)
class Rows:
    y: Any
    p: Any
    weights: None = None
    clusters: None = None


@dataclass(frozen=True)
class Design:
    """Scores, calibration function, and the L1 error as a formula."""

    name: str
    scores: Callable[[np.random.Generator, int], np.ndarray]
    eta: Callable[[np.ndarray], np.ndarray]
    truth: float

    def draw(self, n: int, seed: int) -> Rows:
        rng = np.random.default_rng([seed, 2024])
        p = self.scores(rng, n)
        return Rows((rng.random(n) < self.eta(p)).astype(np.int8), p)


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n)


def middle(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.full(n, 0.5)


H = 2**-6
RAW = [
    Design("square", uniform, lambda p: p**2, 1 / 6),
    Design("reversed", uniform, lambda p: 1 - p, 1 / 2),
    Design("step", uniform, lambda p: (p > 0.5) * 1.0, 1 / 4),
    Design("one score", middle, lambda p: p + 0.4, 0.4),
]
# one score at 1/2, far from both ends: E|s - 1/2| = (4 G / pi) h with Catalan's constant G
JITTERED = [
    Design("calibrated score", middle, lambda p: p, 4 * CATALAN / np.pi * H),
    Design("wrong score", middle, lambda p: p + 0.4, 0.4),
]


def rejected(misses: int, runs: int) -> bool:
    """Exact binomial: so many misses have probability below 1e-6 under the claimed rate."""
    return bool(stats.binom.sf(misses - 1, runs, ALPHA) < 1e-6)


def misses(bound: Callable[..., Estimate], design: Design, n: int, runs: int, end: Callable[[Estimate], float]) -> int:
    found = (bound(design.draw(n, seed), alpha=ALPHA, seed=seed) for seed in range(runs))
    return sum(end(estimate) < design.truth for estimate in found)


def high(estimate: Estimate) -> float:
    return estimate.interval.high


@pytest.mark.parametrize("design", RAW, ids=lambda d: d.name)
def test_total_variation_holds(design):
    assert not rejected(misses(published_total_variation, design, 2000, 100, high), 100)


@pytest.mark.parametrize("design", JITTERED, ids=lambda d: d.name)
@pytest.mark.parametrize("bound", [published_kernel, published_lipschitz])
def test_jittered_holds(bound, design):
    assert not rejected(misses(bound, design, 2000, 100, high), 100)


def test_subsampling_holds():
    def subsampled(data: Rows, **settings: Any) -> Estimate:
        return published_kernel(data, subsample=True, folds=2, **settings)

    assert not rejected(misses(subsampled, JITTERED[1], 12_000, 30, high), 30)


def test_saboteur_without_the_surrogate_error_is_rejected():
    def sabotaged(estimate: Estimate) -> float:
        return estimate.settings["surrogate_gap"] + estimate.settings["concentration"]

    assert rejected(misses(published_total_variation, RAW[1], 2000, 60, sabotaged), 60)


@pytest.mark.parametrize("bound", [published_kernel, published_lipschitz])
def test_saboteur_point_estimate_is_rejected(bound):
    assert rejected(misses(bound, JITTERED[1], 500, 300, lambda estimate: estimate.value), 300)


def coverage(n: int, mean: float, delta: float, linear: float = 1.0) -> float:
    """Probability, over a binomial sample, that the empirical Bernstein bound covers the mean: exact."""
    k = np.arange(n + 1)
    missing = (1.0 - linear) * 3.0 * np.log(3.0 / delta) / n
    terms = [published.empirical_bernstein(n, delta, float(x)) - missing for x in k / n * (1 - k / n)]
    return float(stats.binom.pmf(k, n, mean)[k / n + terms >= mean].sum())


def test_empirical_bernstein_covers_exactly():
    means = [float(mean) for mean in np.linspace(0.005, 0.995, 34)]
    for n, delta in itertools.product((5, 40, 300), (0.05, 0.3)):
        assert min(coverage(n, mean, delta) for mean in means) >= 1 - delta
    assert min(coverage(40, mean, 0.3, linear=0.0) for mean in means) < 0.5  # a saboteur without the linear term


def slanted(slope: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda s: 0.5 + slope * (s - 0.5)


def average_error(
    eta: Callable[[np.ndarray], np.ndarray], scores: np.ndarray, at: np.ndarray, width: float
) -> np.ndarray:
    """Expectation of |eta^ - eta| over every labelling of the training scores."""
    mean, chance = np.zeros(at.size), eta(scores)
    for labels in itertools.product((0.0, 1.0), repeat=scores.size):
        y = np.array(labels)
        fit = smooth(at, scores, y, width, 0.0, 0.0)[0]
        mean += np.prod(np.where(y == 1, chance, 1 - chance)) * np.abs(fit - eta(at))
    return mean


def test_smoothing_error_by_enumeration():
    at = np.linspace(0.0, 1.0, 21)
    scores = np.sort(np.random.default_rng(5).random(9))
    inputs = (at, scores, np.zeros(9))
    for slope in (0.0, 0.9):
        bound = smooth(*inputs, 0.15, slope, 0.0)[1]
        assert np.all(average_error(slanted(slope), scores, at, 0.15) <= bound + 1e-12)
    # a point with one neighbour and even odds meets the bound: no smaller noise constant would do
    noise = smooth(*inputs, 1e-4, 0.0, 0.0)[1]
    assert np.allclose(average_error(slanted(0.0), scores, at, 1e-4), noise)


def test_denoising_error_holds_on_the_training_scores():
    n, delta, worst = 500, 0.2, 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        s = np.sort(rng.random(n))
        y = (rng.random(n) < (s > 0.5)).astype(np.float64)
        fit = published.denoised(s, y, published.denoising_radius(n, delta))[1]
        worst += np.abs(fit - (s > 0.5)).mean() > published.denoising_error(n, delta, 1.0)
    assert not stats.binom.sf(worst - 1, 60, delta) < 1e-6
