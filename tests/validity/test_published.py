"""Do the published bounds hold? Simulation of the whole."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibrant.apps.papers import bounds as published
from calibrant.apps.papers.certificates import published_kernel, published_lipschitz, published_total_variation
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


def test_denoising_error_holds_on_the_training_scores():
    n, delta, worst = 500, 0.2, 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        s = np.sort(rng.random(n))
        y = (rng.random(n) < (s > 0.5)).astype(np.float64)
        fit = published.denoised(s, y, published.denoising_radius(n, delta))[1]
        worst += np.abs(fit - (s > 0.5)).mean() > published.denoising_error(n, delta, 1.0)
    assert not stats.binom.sf(worst - 1, 60, delta) < 1e-6
