"""Maps of the score find a truth that is known."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2

import calibrant as cal
from calibrant.repair import BBQ, Beta, Histogram, Isotonic, Platt, ScalingBinning, Temperature
from validity import acceptance

ROWS = 2_000
LEVEL = 0.05


def drawn(truth, replicate, n=ROWS):
    rng = np.random.default_rng([70_107, replicate, n])
    p = rng.beta(0.8, 1.0, n).clip(1e-5, 1 - 1e-5)
    return cal.predictions(rng.uniform(size=n) < truth(p), p)


def outside(columns, at, truth):
    """Tell whether the 95% ellipse around the estimate leaves the truth out."""
    rate = expit(columns @ at)
    bend = (columns * (rate * (1 - rate))[:, None]).T @ columns
    off = at - truth
    return float(off @ bend @ off) > chi2.isf(LEVEL, len(at))


def platt(replicate):
    data = drawn(lambda p: expit(1.4 * logit(p) - 0.5), replicate)
    found = Platt(scale="logit").fit(data)
    return outside(
        np.column_stack([logit(data.p), np.ones(data.n)]), np.array([found.slope, found.intercept]), (1.4, -0.5)
    )


def raw(replicate):
    data = drawn(lambda p: expit(4 * p - 2.5), replicate)
    found = Platt(scale="raw").fit(data)
    return outside(np.column_stack([data.p, np.ones(data.n)]), np.array([found.slope, found.intercept]), (4, -2.5))


def temperature(replicate):
    data = drawn(lambda p: expit(logit(p) / 1.7), replicate)
    found = Temperature().fit(data)
    return outside(logit(data.p)[:, None], np.array([found.slope]), (1 / 1.7,))


def beta(replicate):
    data = drawn(lambda p: expit(1.5 * np.log(p) - 0.8 * np.log1p(-p) + 0.3), replicate)
    found = Beta().fit(data)
    columns = np.column_stack([np.log(data.p), -np.log1p(-data.p), np.ones(data.n)])
    return outside(columns, np.array([found.a, found.b, found.c]), (1.5, 0.8, 0.3))


@pytest.mark.parametrize("miss", [platt, raw, temperature, beta])
def test_ellipses_of_fitted_curves_hold_the_truth(miss):
    acceptance.check(miss, 150, LEVEL)


@pytest.mark.nightly
@pytest.mark.parametrize("miss", [platt, raw, temperature, beta])
def test_ellipses_of_fitted_curves_hold_the_truth_at_length(miss):
    acceptance.check(miss, 1_000, LEVEL)


def error(recipe, truth, n, runs):
    """Return the root mean squared distance of the fitted map from the truth, at scores like the fitted ones."""
    square = 0.0
    for replicate in range(runs):
        data = drawn(truth, replicate, n)
        square += float(((recipe.fit(data)(data).p - truth(data.p)) ** 2).mean()) / runs
    return square**0.5


def wavy(p):
    return p**1.6 * 0.8 + 0.1 + 0.05 * np.sin(6 * p)


@pytest.mark.parametrize(
    ("recipe", "shrinks"),
    [(Isotonic(), 0.35), (Histogram(bins=40), 0.35), (Histogram(bins=40, strategy="uniform"), 0.35), (BBQ(), 0.45)],
)
def test_maps_of_any_shape_come_nearer_with_rows(recipe, shrinks):
    few, many = error(recipe, wavy, 1_000, 8), error(recipe, wavy, 30_000, 2)
    assert many < shrinks * few
    assert many < 0.02


def test_scaling_binning_needs_fewer_rows_for_many_bins_than_histogram():
    def truth(p):
        return expit(1.4 * logit(p) - 0.5)

    assert error(ScalingBinning(bins=100), truth, 3_000, 6) < 0.5 * error(Histogram(bins=100), truth, 3_000, 6)
