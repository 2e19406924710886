"""Limits of means of rare events: against Clopper and Pearson's, Fay and Feuer's, and where nothing or all was seen."""

import numpy as np
import pytest
from scipy.stats import beta, binomtest, gamma

import calibrant as cal
from calibrant.stats.measures import Ranking, Weighed, area_interval, bounded_ends, ranking, rate_interval

M = cal.measure


@pytest.mark.parametrize(("events", "rows"), [(0, 10), (1, 10), (3, 40), (10, 10), (9, 300)])
def test_of_zeros_and_ones_they_are_clopper_and_pearsons(events, rows):
    rate = events / rows
    found = bounded_ends(rate, rate * (1 - rate) / rows, rows, 0.05)
    known = binomtest(events, rows).proportion_ci(0.95, "exact")
    assert found == pytest.approx((known.low, known.high), abs=1e-9)


def test_of_rare_weighted_events_they_are_fay_and_feuers():
    rows, weights = 1e7, np.array([0.2, 0.9, 1.0, 0.4])
    total, variance = weights.sum(), (weights**2).sum()
    low, high = bounded_ends(total / rows, variance / rows**2, rows, 0.05)
    above = gamma.ppf(0.975, (total + 1) ** 2 / (variance + 1), scale=(variance + 1) / (total + 1))
    assert high * rows == pytest.approx(above, rel=1e-4)
    assert low * rows == pytest.approx(gamma.ppf(0.025, total**2 / variance, scale=variance / total), rel=1e-4)


def test_a_variance_beyond_a_bounded_variables_leaves_fewer_rows():
    found = bounded_ends(0.1, 0.009, 100, 0.05)  # ten rows' variance
    assert found == pytest.approx((beta.ppf(0.025, 1, 10), beta.ppf(0.975, 2, 9)))


def test_observed_over_expected_of_one_score_is_a_binomial_proportion():
    y = np.zeros(50, dtype=int)
    y[:3] = 1
    known = binomtest(3, 50).proportion_ci(0.95, "exact")
    found = M.observed_expected(cal.predictions(y, np.full(50, 0.1))).interval
    assert (found.low, found.high) == pytest.approx((known.low / 0.1, known.high / 0.1), rel=1e-3)
    gap = M.calibration_intercept(cal.predictions(y, np.full(50, 0.5))).interval
    logits = [np.log(v / (1 - v)) for v in (known.low, known.high)]
    assert (gap.low, gap.high) == pytest.approx(logits, rel=1e-3)


def test_no_case_at_all_has_width():
    data = cal.predictions(np.zeros(30, dtype=int), np.linspace(0.01, 0.2, 30))
    assert M.observed_expected(data).interval.low == 0.0
    assert M.observed_expected(data).interval.high > 0.8
    assert M.brier(data).interval.high > M.brier(data).value + 0.05
    assert M.log_loss(data).interval.high > M.log_loss(data).value + 0.1
    assert M.ece(data).interval.high > 0.02


@pytest.mark.parametrize("name", ["brier", "log_loss"])
def test_a_coin_loses_the_same_either_way(name):
    found = getattr(M, name)(cal.predictions([0, 1, 1], [0.5] * 3))
    assert found.value == pytest.approx({"brier": 0.25, "log_loss": np.log(2)}[name])
    assert found.interval.low <= found.value <= found.interval.high


def test_the_rarer_outcome_is_counted():
    y = np.ones(40, dtype=int)
    y[:2] = 0
    p = np.linspace(0.8, 0.99, 40)
    found = M.observed_expected(cal.predictions(y, p)).interval
    known = binomtest(38, 40).proportion_ci(0.95, "exact")
    assert found.low == pytest.approx(known.low / p.mean(), rel=0.02)
    assert found.high == pytest.approx(known.high / p.mean(), rel=0.02)


def test_weights_as_repeated_rows_have_the_same_ratio():
    y, p = np.array([1, 0, 0, 0, 1, 0]), np.array([0.3, 0.1, 0.2, 0.1, 0.6, 0.2])
    one = np.ones(6)
    ends = [
        rate_interval(
            Weighed(y.astype(float), one * w, one * w * w), 1.0, lambda t: t * p, lambda v, _: v / p.mean(), 0.05
        )
        for w in (1.0, 7.0)
    ]
    assert ends[0] == pytest.approx(ends[1])


def test_area_reaches_as_far_as_either_interval_and_trusts_delong_with_many():
    few, many = Ranking(0.95, 0.01, 10.0, 300.0), Ranking(0.95, 0.003, 3000.0, 90000.0)
    assert area_interval(few, 0.05)[0] < 0.95 - 4 * 0.01
    low, high = area_interval(many, 0.05)
    assert (low, high) == pytest.approx((0.95 - 1.96 * 0.003, 0.95 + 1.96 * 0.003), abs=0.0006)


def test_area_holds_the_truth_where_few_rows_share_a_score_far_above_the_others():
    """A hundredth of 400 rows at 0.5, the rest at 0.0025: a high end by a normal quantile is too low in 6 %."""
    rng, truth, held, asked = np.random.default_rng(0), 0.8319, 0, 0
    p, y = np.array([0.0025, 0.0025, 0.5, 0.5]), np.array([0, 1, 0, 1])
    for _ in range(600):
        top = rng.binomial(400, 0.01)
        high, low = rng.binomial(top, 0.5), rng.binomial(400 - top, 0.0025)
        count = np.array([400.0 - top - low, low, top - high, high])
        if low + high:
            ends = area_interval(ranking(p, y, count, np.ones(4)), 0.05)
            held, asked = held + (ends[0] <= truth <= ends[1]), asked + 1
    assert held / asked > 0.96


def test_loss_intervals_do_not_depend_on_which_outcome_is_called_one():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 8, 300)
    y = (rng.random(300) < p).astype(int)
    for name in ("brier", "log_loss"):
        found, mirrored = (getattr(M, name)(cal.predictions(a, b)).interval for a, b in ((y, p), (1 - y, 1 - p)))
        assert (found.low, found.high) == pytest.approx((mirrored.low, mirrored.high))
