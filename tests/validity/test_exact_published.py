"""Ingredients of the published bounds, exactly."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from calibrant.apps.papers import bounds as published
from calibrant.kernels.smooth import smooth


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


@pytest.mark.slow
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


def test_the_kernel_bound_counts_all_of_the_smoothing_error(monkeypatch):
    monkeypatch.setattr(published, "smooth", lambda at, *_: (np.full(at.size, 0.5), np.full(at.size, 0.07), False))
    monkeypatch.setattr(published, "_ceiling", lambda *_: 1.0)
    s = np.random.default_rng(3).random(200)
    folds = published.Folds(2, False, np.random.default_rng(4))
    found = published.kernel_bound(s, (s > 0.5).astype(np.int8), 2**-6, 0.2, folds)
    assert abs(found.parts["smoothing_error"] - 0.07) < 1e-12


def test_the_total_variation_bound_counts_each_of_its_terms():
    s = np.sort(np.random.default_rng(3).random(4000))
    found = published.total_variation_bound(s, (s > 0.5).astype(np.int8), 1.0, 0.2, 2, np.random.default_rng(4))
    terms = ("surrogate_gap", "denoising_error", "population_transfer", "concentration")
    assert set(terms) == set(found.parts) - {"surrogate_variation"}
    assert min(found.parts[name] for name in terms) > 0.0
    assert abs(found.high - sum(found.parts[name] for name in terms)) < 1e-12
