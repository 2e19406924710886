"""Intervals and tests by units keep their promise where rows depend on one another; the same by rows do not."""

import numpy as np
import pytest

import calibrant as cal
from validity.acceptance import refuted
from validity.cluster_designs import Clusters

M, D = cal.measure, cal.detect
RUNS, CEILING = 150, 0.07
DESIGN = Clusters(clusters=100)
TRUTHS = {
    "brier": DESIGN.brier,
    "auroc": DESIGN.auroc,
    "observed_expected": 1.0,
    "calibration_intercept": 0.0,
    "ece": 0.0,
}
TESTS = {
    "spiegelhalter_test": lambda d: D.spiegelhalter_test(d, draws=199).p_value,
    "score_test": lambda d: D.score_test(d, draws=199).p_value,
    "hosmer_lemeshow_test": lambda d: D.hosmer_lemeshow_test(d, draws=199).p_value,
    "cumulative_test": lambda d: D.cumulative_test(d, draws=199).p_value,
    "kernel_calibration_test": lambda d: D.kernel_calibration_test(d, draws=199).p_value,
    "reliability_curve": lambda d: cal.diagnose.reliability_curve(d, grid=41, draws=199).settings["p_value"],
    "vece": lambda d: M.vece(d, "x", draws=199).settings["p_value"],
}


def misses(name):
    """Count the data sets whose interval does not hold the truth."""
    rng, found = np.random.default_rng(7), 0
    for _ in range(RUNS):
        data = DESIGN.drawn(rng)
        e = getattr(M, name)(data)
        found += not e.low <= TRUTHS[name] <= e.high
    return found


def rejections(name):
    """Count the calibrated data sets that a test rejects at 5 %."""
    rng = np.random.default_rng(8)
    data = (DESIGN.drawn(rng) for _ in range(RUNS))
    return sum(TESTS[name](d) <= 0.05 for d in data)


@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_intervals_by_units_hold_the_truth(name):
    assert not refuted(misses(name), RUNS, CEILING)


@pytest.mark.parametrize("name", sorted(TESTS))
def test_tests_by_units_keep_their_level(name):
    assert not refuted(rejections(name), RUNS, CEILING)
