"""LocalBias: nothing where nothing is wrong, the planted error where something is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.repair.calibrators import local_bias as local_fit
from calibrant.repair.calibrators.local_bias import bells, squared


def drawn(truth, p, columns, seed):
    rng = np.random.default_rng([71, seed])
    return cal.predictions(rng.uniform(size=len(p)) < truth, p, columns)


def calibrated(n, seed):
    rng = np.random.default_rng([72, seed])
    x, town = rng.normal(size=n), rng.choice(list("abcd"), n)
    p = expit(x + rng.normal(size=n))
    return drawn(p, p, {"x": x, "town": town}, seed)


def wavy(n, seed):
    """Return rows with an error that turns along x, for high scores the other way round, and their true rates."""
    rng = np.random.default_rng([73, seed])
    x, z = rng.uniform(-3, 3, n), rng.normal(size=n)
    p = rng.uniform(0.1, 0.9, n)
    truth = expit(logit(p) + np.sin(2 * x) * 4 * (0.5 - p))
    return drawn(truth, p, {"x": x, "z": z}, seed), truth


@pytest.mark.slow
def test_calibrated_rows_are_left_alone():
    moved = []
    for seed in range(10):
        data = calibrated(2_000, seed)
        out = cal.repair.LocalBias(landmarks=64).fit(data)(data)
        moved.append(np.abs(out.p - data.p).mean())
    assert np.median(moved) == 0.0
    assert np.mean(moved) < 0.004


def test_identity_keeps_scores_bit_for_bit_and_says_so():
    found = [cal.repair.LocalBias(landmarks=64).fit(calibrated(2_000, seed)) for seed in range(4)]
    none = [m for m in found if m.settings["correction"] == "none"]
    assert none
    p = np.array([0.0, 1e-12, 0.3, 1.0])
    columns = calibrated(4, 0).covariates
    assert np.array_equal(none[0].scores(p, columns=columns), p)
    assert none[0].order == "kept"
    assert none[0].settings["shrink"] is None


@pytest.mark.slow
def test_planted_local_error_is_removed_on_new_rows():
    fit, _ = wavy(16_000, 1)
    new, truth = wavy(8_000, 2)
    repaired = cal.repair.LocalBias().fit(fit)(new)
    assert np.abs(repaired.p - truth).mean() < np.abs(new.p - truth).mean() / 2
    score_map = cal.repair.Isotonic().fit(fit)(new)
    assert np.abs(score_map.p - truth).mean() > np.abs(new.p - truth).mean() / 1.2


@pytest.mark.slow
def test_more_shrinkage_moves_less():
    data, _ = wavy(2_000, 3)
    moved = [np.abs(cal.repair.LocalBias(shrink=s).fit(data)(data).p - data.p).mean() for s in (1.0, 100.0, 1e4)]
    assert moved[0] > moved[1] > moved[2]


def test_overall_error_alone_needs_no_kernel():
    rng = np.random.default_rng(4)
    p, x = rng.uniform(0.05, 0.95, 4_000), rng.normal(size=4_000)
    data = drawn(expit(0.5 * logit(p) + 0.4), p, {"x": x}, 5)
    fitted = cal.repair.LocalBias().fit(data)
    assert fitted.settings["correction"] in ("overall", "local")
    assert fitted.slope == pytest.approx(0.5, abs=0.1)
    assert fitted.intercept == pytest.approx(0.4, abs=0.15)


def test_without_covariates_it_is_a_curve_of_the_score():
    rng = np.random.default_rng(6)
    p = rng.uniform(0.02, 0.98, 6_000)
    truth = np.clip(p + 0.15 * np.sin(6 * np.pi * p), 0, 1)
    data = drawn(truth, p, None, 7)
    fitted = cal.repair.LocalBias().fit(data)
    assert fitted.reads == ()
    assert np.abs(fitted(data).p - truth).mean() < np.abs(p - truth).mean() / 2
    assert cal.repair.Calibrator.from_json(fitted.to_json()) == fitted


def test_too_few_are_refused():
    data = calibrated(30, 0)
    with pytest.raises(cal.NotComputable, match="at least 20 rows of each outcome"):
        cal.repair.LocalBias().fit(data)
    many = replace(calibrated(300, 0), cluster=np.arange(300) % 4, cache={})
    with pytest.raises(cal.NotComputable, match="there are 4"):
        cal.repair.LocalBias().fit(many)


def test_clusters_are_kept_together_so_that_their_noise_is_not_followed():
    """Fifty clusters, each with an effect of its own and an x of its own: rows alone would call x's waves real."""
    rng = np.random.default_rng(8)
    cluster = np.repeat(np.arange(50), 60)
    p, x = rng.uniform(0.2, 0.8, 3_000), rng.normal(size=50)[cluster]
    y = rng.uniform(size=3_000) < expit(logit(p) + rng.normal(size=50)[cluster])
    data = cal.predictions(y, p, {"x": x})
    alone = cal.repair.LocalBias().fit(data)
    together = cal.repair.LocalBias().fit(replace(data, cluster=cluster, cache={}))
    assert alone.settings["correction"] == "local"
    assert np.abs(together(data).p - p).mean() < np.abs(alone(data).p - p).mean() / 2


def test_of_many_rows_a_sample_is_fitted(monkeypatch):
    data, _ = wavy(900, 9)
    monkeypatch.setattr(local_fit, "MOST", 300)
    fitted = cal.repair.LocalBias().fit(data)
    assert fitted.settings["rows_used"] == 300
    assert fitted.fitted_on.rows == 900


def test_bells_are_gaussians_of_numbers_and_levels():
    z, codes = np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[0], [1]], dtype=np.int32)
    assert squared((z, codes), (z, codes)) == pytest.approx(np.array([[0.0, 6.0], [6.0, 0.0]]))
    assert bells((z, codes), (z, codes), 2.0) == pytest.approx(np.array([[1.0, np.exp(-0.75)], [np.exp(-0.75), 1.0]]))
