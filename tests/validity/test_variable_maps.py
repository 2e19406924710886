"""A calibrated model is left alone, a planted error is not: many data sets."""

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from validity.acceptance import count, refuted


def rows(n, replicate, wave):
    rng = np.random.default_rng([0x7A2, replicate])
    x, town = rng.uniform(-3, 3, n), rng.choice(list("abcd"), n)
    p = rng.uniform(0.05, 0.95, n)
    truth = expit(logit(p) + wave * np.sin(x))
    return cal.predictions(rng.uniform(size=n) < truth, p, {"x": x, "town": town}), truth


def moved(recipe):
    """Tell whether the fit on a calibrated model's rows does anything beyond one curve for everyone."""

    def miss(replicate):
        fitted = recipe.fit(rows(1_000, replicate, 0.0)[0])
        return fitted.settings.get("correction", "none") != "none" or fitted.settings.get("depth", 0) > 0

    return miss


TREE, LOCAL = cal.repair.VariableTree(variables=["x", "town"]), cal.repair.LocalBias(landmarks=48)


@pytest.mark.parametrize("recipe", [TREE, LOCAL], ids=["tree", "local"])
@pytest.mark.parametrize("runs", [12, pytest.param(200, marks=pytest.mark.nightly)])  # 8 of 8 would refute nothing
def test_of_a_calibrated_model_one_fit_in_five_at_most_does_anything(recipe, runs):
    """The measured share is about one in fifty; a choice without its standard error would be refuted (below)."""
    assert not refuted(count(moved(recipe), runs), runs, 0.2)


@pytest.mark.nightly
def test_a_choice_without_cross_fitting_would_be_refuted():
    """Saboteur: a fixed penalty, a fixed depth, always do something."""
    for recipe in (cal.repair.VariableTree(variables="x", depth=2), cal.repair.LocalBias(landmarks=48, shrink=1.0)):
        assert refuted(count(moved(recipe), 30), 30, 0.2)


@pytest.mark.parametrize("runs", [2, pytest.param(30, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("recipe", [TREE, LOCAL], ids=["tree", "local"])
def test_a_planted_error_is_halved_on_new_rows(recipe, runs):
    def miss(replicate):
        fitted = recipe.fit(rows(4_000, replicate, 1.0)[0])
        new, truth = rows(4_000, 10_000 + replicate, 1.0)
        return np.abs(fitted(new).p - truth).mean() > np.abs(new.p - truth).mean() / 2

    assert count(miss, runs) == 0
