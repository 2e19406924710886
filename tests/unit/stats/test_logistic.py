"""The one Newton solver: its fits are stationary points, and nothing depends on how many outcomes share a design."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from calibrant.stats.logistic import Design, maximise, recalibrate, regress
from calibrant.stats.measures import Weighed


def design(seed: int = 0, n: int = 400) -> Design:
    rng = np.random.default_rng(seed)
    features = np.column_stack([np.ones(n), rng.normal(size=n), rng.gamma(2.0, size=n)])
    return Design(features, rng.choice([0.5, 1.0, 3.0], n), rng.normal(size=n), np.array([0.0, 2.0, 0.5]))


def outcomes(d: Design, count: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return (rng.random((count, len(d.weight))) < expit(d.log_odds(np.array([[-0.4, 0.8, 0.3]])))).astype(float)


def test_the_gradient_is_zero_and_many_outcomes_fit_as_each_alone() -> None:
    d = design()
    y = outcomes(d, 20)
    sums = np.concatenate([d.sums(v) for v in y])
    found = maximise(d, sums)
    assert found.settled.all()
    gradient = (d.weight * (y - expit(d.log_odds(found.coefficients)))) @ d.features - d.penalty * found.coefficients
    assert np.abs(gradient).max() < 1e-9
    for i in range(20):
        alone = maximise(d, sums[i : i + 1], start=np.array([1.0, -1.0, 2.0]))
        assert alone.coefficients[0] == pytest.approx(found.coefficients[i], abs=1e-11)


def test_the_information_is_minus_the_hessian() -> None:
    d = design(2, 60)
    at, y, step = np.array([0.2, -0.3, 0.1]), outcomes(d, 1)[0], 1e-5

    def gradient(b: np.ndarray) -> np.ndarray:
        return (d.weight * (y - expit(d.log_odds(b[None])[0]))) @ d.features

    numeric = np.array([(gradient(at + step * e) - gradient(at - step * e)) / (2 * step) for e in np.eye(3)])
    both = d.information(expit(d.log_odds(np.stack([at, at]))))
    assert both[0] == pytest.approx(-numeric, rel=1e-6)
    assert both == pytest.approx(np.repeat(d.information(expit(d.log_odds(at[None]))), 2, axis=0), rel=1e-12)


def test_an_infinite_penalty_holds_a_coefficient_where_it_starts() -> None:
    d = design()
    held = Design(d.features, d.weight, d.offset, np.array([0.0, np.inf, 0.5]))
    y = outcomes(d, 1)[0]
    found = maximise(held, held.sums(y), start=np.array([0.0, 0.7, 0.0])).coefficients[0]
    rest = Design(d.features[:, [0, 2]], d.weight, d.offset + 0.7 * d.features[:, 1], np.array([0.0, 0.5]))
    assert found[1] == 0.7
    assert found[[0, 2]] == pytest.approx(maximise(rest, rest.sums(y)).coefficients[0], abs=1e-11)


@pytest.mark.parametrize("ridge", [1e-6, 0.1, np.array([3.0, 1e-3])])
def test_regress_is_scikit_learns_regression_on_rows_of_either_label(ridge: float | np.ndarray) -> None:
    rng = np.random.default_rng(3)
    x, weight = rng.normal(size=(300, 2)) * (0.1, 20.0) + (5.0, -3.0), rng.uniform(0.2, 2.0, 300)
    target = np.clip(expit(x[:, 0] * 3 - 15.0 + rng.normal(size=300)), 0.01, 0.99)
    scale = np.sqrt(ridge)
    model = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000, solver="newton-cholesky")
    twice = np.concatenate([x, x]) / scale
    model.fit(twice, np.repeat([1, 0], 300), sample_weight=np.concatenate([weight * target, weight * (1 - target)]))
    slopes, intercept = regress(x, target, weight, ridge=ridge)
    assert slopes == pytest.approx(model.coef_[0] / scale, rel=1e-5)
    assert intercept == pytest.approx(model.intercept_[0], rel=1e-5)


def test_constant_and_repeated_columns_do_no_harm() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=500)
    y = (rng.random(500) < expit(x)).astype(float)
    plain, intercept = regress(x[:, None], y, np.ones(500))
    slopes, other = regress(np.column_stack([x, np.full(500, 3.0), x]), y, np.ones(500))
    assert slopes[1] == 0.0
    assert (slopes[0] + slopes[2], other) == pytest.approx((plain[0], intercept), abs=1e-9)


def test_a_start_on_a_part_of_many_rows_leaves_the_fit_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 2))
    y = (rng.random(4000) < expit(x[:, 0])).astype(float)
    cold = regress(x, y, np.ones(4000))
    monkeypatch.setattr("calibrant.stats.logistic.WARM", 400)
    warm = regress(x, y, np.ones(4000))
    assert warm[0] == pytest.approx(cold[0], abs=1e-11)
    assert warm[1] == pytest.approx(cold[1], abs=1e-11)


def test_outcomes_that_the_scores_separate_do_not_settle_and_gain_almost_all_there_is() -> None:
    x, one = np.linspace(-2.0, 2.0, 21), np.ones(21)
    d = Design(np.column_stack([one, x]), one)
    y = (x > 0.1).astype(float)
    found = maximise(d, d.sums(y))
    assert not found.settled[0]
    assert found.gain[0] == pytest.approx(21 * np.log(2.0), rel=5e-4)
    assert not recalibrate(x, Weighed(y, one, one), True).converged


def test_a_ridge_however_small_is_followed_to_its_optimum_where_scores_separate_the_outcomes() -> None:
    x = np.linspace(-2.0, 2.0, 21)
    slopes, intercept = regress(x[:, None], (x > 0.1).astype(float), np.ones(21), ridge=1e-9)
    left = (x > 0.1) - expit(x * slopes[0] + intercept)
    assert slopes[0] > 80.0
    assert left @ x == pytest.approx(1e-9 * slopes[0], rel=1e-3)
