"""Theorems 5.1, 5.2 and 5.4 of arXiv:2209.15154 as designs whose errors are formulas."""

import numpy as np
import pytest

import calibrant as cal

N = 40_000


def rng(*stream):
    return np.random.default_rng([0x5EC7, *stream])


def theorem_1(classes, alpha, n=N):
    """ECE alpha / 4, VECE 0.5 - 1/(2K) - alpha/2: right on average at every score, wrong on either side of V."""
    g = rng(1, classes)
    middle = 0.5 + 0.5 / classes
    score, v = g.uniform(middle - alpha, middle + alpha, n), g.uniform(size=n)
    right = np.where(v < 0.5, 1.0 - alpha / 2, 1 / classes + alpha / 2) + np.where(score > middle, 0.5, -0.5) * alpha
    return cal.predictions(g.uniform(size=n) < right, score, {"v": v}), alpha / 4, 0.5 - 0.5 / classes - alpha / 2


def theorem_2(classes, alpha, n=N):
    """VECE 0, ECE 0.5 - 1/(2K) - alpha/2: low scores too low and high ones too high, whatever V is."""
    g = rng(2, classes)
    low = g.uniform(size=n) < 0.5
    score = np.where(low, g.uniform(1 / classes, 1 / classes + alpha, n), g.uniform(1 - alpha, 1, n))
    data = cal.predictions(g.uniform(size=n) < 0.5 + 0.5 / classes, score, {"v": g.uniform(size=n)})
    return data, 0.5 - 0.5 / classes - alpha / 2, 0.0


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("construction", [theorem_1, theorem_2])
def test_constructions(construction, classes):
    data, by_score, by_variable = construction(classes, 0.1)
    variable_view = cal.measure.vece(data, "v", bins=2, draws=99)
    assert variable_view.interval.low <= by_variable <= variable_view.interval.high
    assert variable_view.value == pytest.approx(by_variable, abs=0.01)
    assert cal.measure.ece(data, bins=40, debiased=True).value == pytest.approx(by_score, abs=0.01)
    certified = cal.certify.variable(data, "v", bins=2)
    if by_variable:  # pilot edges lie near one half: the error in two bins is smaller by what they misplace
        assert certified.interval.low > 0.9 * by_variable
        assert variable_view.settings["p_value"] == 0.01
        assert cal.certify.raw_lower(data).interval.low < 0.03
    assert certified.interval.low <= by_variable <= certified.interval.high + 0.02


def test_the_gap_grows_towards_one_half():
    gaps = [theorem_1(classes, 0.01)[2] for classes in (2, 10, 1000)]
    assert gaps == pytest.approx([0.245, 0.445, 0.4945])
    assert cal.measure.vece(theorem_1(1000, 0.01)[0], "v", bins=2, draws=99).value == pytest.approx(0.4945, abs=0.01)


def test_one_sided_error_is_the_same_along_everything():
    """Condition 5.4: consistently underconfident along score and variable, so ECE = VECE = E[Y] - E[p]."""
    g = rng(4)
    p, v = g.uniform(0.1, 0.6, N), g.uniform(size=N)
    data = cal.predictions(g.uniform(size=N) < p + 0.1 + 0.2 * v, p, {"v": v})
    by_variable, score = cal.measure.vece(data, "v", draws=99), cal.measure.ece(data, bins=10)
    assert by_variable.settings["plug_in"] == pytest.approx(score.settings["plug_in"], abs=1e-12)
    assert by_variable.settings["plug_in"] == pytest.approx(by_variable.settings["gap"], abs=1e-12)
    assert by_variable.value == pytest.approx(0.2, abs=0.01)
    assert by_variable.settings["beyond_gap"] == pytest.approx(0.05, abs=0.01)  # E|0.2 v - 0.1|, in ten bins as well


def test_two_sided_error_is_not():
    """The condition is needed: error that changes sign along V only shows along V only."""
    g = rng(5)
    p, v = g.uniform(0.2, 0.8, N), g.uniform(size=N)
    data = cal.predictions(g.uniform(size=N) < p + np.where(v < 0.5, -0.1, 0.1), p, {"v": v})
    assert cal.measure.vece(data, "v", draws=99).value > 0.09
    assert cal.measure.ece(data, debiased=True).value < 0.01
