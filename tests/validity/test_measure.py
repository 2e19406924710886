"""Intervals of the measures hold the truth as often as docs/measures.md says.

They are asymptotic, so each is held to its measured rate and not to the nominal 5 % of misses: `RATES` is the ceiling
stated in the docstrings, for at least 300 rows.
"""

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.strata import equal_mass_edges
from validity.acceptance import count, refuted

M = cal.measure
RUNS, ROWS = 200, 500
CEILING = 0.07
GRID = (np.arange(200_000) + 0.5) / 200_000
DESIGNS = {
    "identity": lambda p: p,
    "square": lambda p: p**2,
    "one bin": lambda p: np.where((p > 0.4) & (p < 0.5), p + 0.15, p),
    "gap": lambda p: np.clip(p + 0.01, 0, 1),
}


def drawn(rate, seed):
    rng = np.random.default_rng([seed, 11])
    p = rng.uniform(0.0005, 0.9995, ROWS)
    return cal.predictions(rng.random(ROWS) < rate(p), p)


def in_bins(data, rate, norm):
    """Population value in the sample's bins, for uniform scores."""
    where = np.searchsorted(equal_mass_edges(data.p, None, 15), GRID, side="right")
    gap, share = np.bincount(where, rate(GRID) - GRID) / len(GRID), np.bincount(where) / len(GRID)
    return np.abs(gap).sum() if norm == 1 else np.abs(gap / share).max()


def events_over(rate):
    return rate(GRID).mean() / 0.5


def score(rate):
    return (rate(GRID) * (1 - GRID) ** 2 + (1 - rate(GRID)) * GRID**2).mean()


def area(rate):
    e = rate(GRID)
    below = np.cumsum(1 - e) - 0.5 * (1 - e)
    return (e * below).sum() / e.sum() / (1 - e).sum()


TARGETS = {
    "ece": (M.ece, lambda data, rate: in_bins(data, rate, 1)),
    "max_calibration_error": (M.max_calibration_error, lambda data, rate: in_bins(data, rate, np.inf)),
    "brier": (M.brier, lambda _, rate: score(rate)),
    "auroc": (M.auroc, lambda _, rate: area(rate)),
    "observed_expected": (M.observed_expected, lambda _, rate: events_over(rate)),
}


def misses(measure, target, rate, **settings):
    def miss(seed):
        data = drawn(rate, seed)
        found, truth = measure(data, **settings).interval, target(data, rate)
        return not found.low - 1e-4 <= truth <= found.high + 1e-4

    return count(miss, RUNS)


@pytest.mark.parametrize("design", list(DESIGNS))
@pytest.mark.parametrize("name", list(TARGETS))
def test_interval_holds_the_truth(name, design):
    found = misses(*TARGETS[name], DESIGNS[design])
    assert not refuted(found, RUNS, CEILING), f"{found} misses in {RUNS}"


@pytest.mark.parametrize("name", ["calibration_intercept", "calibration_slope"])
def test_recalibration_of_a_calibrated_model(name):
    truth = 1.0 if name == "calibration_slope" else 0.0
    found = misses(getattr(M, name), lambda *_: truth, DESIGNS["identity"])
    assert not refuted(found, RUNS, CEILING), f"{found} misses in {RUNS}"


def test_smooth_ece_of_a_calibrated_model():
    found = misses(M.smooth_ece, lambda *_: 0.0, DESIGNS["identity"])
    assert not refuted(found, RUNS, CEILING), f"{found} misses in {RUNS}"
