"""Products of three columns in the strong calibration test: features see no label, draws are shared and all made."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import calibrant as cal
from calibrant.kernels.draws import outcomes
from calibrant.search.corners import CORNERS
from calibrant.search.detectors import Settings, detector_inputs, halves_of
from calibrant.search.nulls import AGAIN, SALT, split, under
from calibrant.search.products import AT_MOST, WEIGHTS, Joint, Products, log_factor, standardised
from calibrant.search.repeats import Repeats
from calibrant.stats.nulls import ranked

strong = cal.detect.strong_calibration_test


def parity(n: int, off: float, seed: int = 1, numbers: int = 2, **more: Any) -> Any:
    """Scores that are too low where an odd number of three attributes is "yes", and as much too high elsewhere."""
    rng = np.random.default_rng([0x3, seed, n])
    b = rng.choice([-1, 1], (n, 4))
    p = rng.uniform(0.25, 0.7, n)
    covariates = {f"b{j}": np.where(v > 0, "yes", "no") for j, v in enumerate(b.T)}
    covariates |= {f"x{j}": rng.normal(size=n) for j in range(numbers)}
    return cal.predictions(rng.random(n) < p + off * b[:, :3].prod(axis=1), p, covariates, **more)


def asked(data: Any, **settings: Any) -> Any:
    return under(detector_inputs(data, Settings(**settings).checked()), "refit")


def chosen(q: Any) -> Products:
    made = Products.chosen(q, np.arange(q.n))
    assert made is not None
    return made


@pytest.mark.slow
def test_finds_what_no_pair_shows_and_names_it() -> None:
    found = strong(parity(1_000, 0.12))
    assert found.p_value <= 0.01 < 0.05 < found.parts["p_models"]
    assert set(found.parts["strongest"]) == {"b0", "b1", "b2"}
    assert found.parts["products"] == found.parts["triples"] == 35  # of seven variables, the score among them
    assert found.parts["p_bayes_factor"] <= 0.01


def test_every_draw_is_made() -> None:
    """A rank among the first few draws is no rank among all."""
    found = strong(parity(200, 0.0), draws=199)
    assert found.p_value > 0.1
    assert found.parts["refits"] == 199


@pytest.mark.parametrize(
    "settings", [{"alternative": "greater"}, {"min_size": 0.1}, {"variables": ["x0"]}, {"tolerance": 0.1}]
)
def test_no_product_says_anything_of_other_questions(settings: dict[str, Any]) -> None:
    assert "p_bayes_factor" not in strong(parity(200, 0.1), **settings).parts


def test_scores_are_those_of_the_products() -> None:
    """By adding up, with weights: the data first, then the draws."""
    rng = np.random.default_rng(4)
    q = asked(parity(150, 0.1, weights=rng.uniform(0.2, 3.0, 150)))
    made, p, w = chosen(q), q.sample.p, q.sample.mass
    got, values = made.scores(q, np.arange(150), 3, AGAIN), made.values(slice(None)).astype(float)
    r = Repeats(q, AGAIN)
    for s, y in enumerate([q.sample.y, *(r.drawn(b) for b in range(3))]):
        z = values @ (w * (y - p)) / np.sqrt(values**2 @ (w**2 * p * (1 - p)))
        counts = got.any(axis=1)
        np.testing.assert_allclose(got[counts, s], z[counts], atol=1e-4)
        assert counts.mean() > 0.9  # all but those that a few rows make up


def test_products_are_those_of_three_variables() -> None:
    q = asked(parity(120, 0.1))
    made, flat, of = chosen(q), q.sample.x.flat, q.sample.x.flat_of
    apart = [t for t in combinations(range(len(of)), 3) if len({of[j] for j in t}) == 3]
    signs = made.which[made.which[:, 0] == 0]
    assert {tuple(of[made.kept[j]] for j in t) for t in signs[:, 1:]} == {tuple(of[j] for j in t) for t in apart}
    assert made.triples == len(apart)
    first = [np.where(flat[:, j] > np.median(flat[:, j]), 1.0, -1.0) for j in made.kept[signs[0, 1:]]]
    want = np.prod([(v - v.mean()) / v.std() for v in first], axis=0)
    np.testing.assert_allclose(made.values(slice(None))[0], want, atol=1e-5)


def test_labels_choose_nothing() -> None:
    """Of more triples than products a part is chosen at random, whatever the labels are."""
    q = asked(parity(60, 0.2, numbers=40))
    one, other = chosen(q), chosen(q.with_outcomes(1.0 - q.sample.y))
    assert len(one.which) == AT_MOST < one.triples
    np.testing.assert_array_equal(one.which, other.which)
    np.testing.assert_array_equal(one.columns, other.columns)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_the_data_are_treated_as_the_draws(weights: bool, few: bool, monkeypatch: Any) -> None:
    """Each draw, searched as if it were the data, has the Bayes factor that it is given as a draw."""
    monkeypatch.setattr("calibrant.search.repeats.SMALL", 4_000 if few else 10)
    drawn = np.random.default_rng(1).uniform(0.5, 2.0, 150) if weights else None
    q = asked(parity(150, 0.2, weights=drawn))

    def factors(of: Any) -> Any:
        r = Repeats(of, AGAIN)
        batch = next(iter(r.simulated(5)))
        return r.factors(chosen_in(r), np.concatenate([r.result().sums, batch.sums]))[0]

    def chosen_in(r: Repeats) -> Products:
        assert r.products is not None
        return r.products

    every = factors(q)
    r = Repeats(q, AGAIN)
    own = [factors(q.with_outcomes(r.drawn(b)))[0] for b in range(5)]
    np.testing.assert_allclose(every[1:], own, atol=1e-4)


def test_halves_share_their_draws() -> None:
    """Of many rows, products see the outcomes that the models' paths are held against."""
    q = replace(asked(parity(300, 0.2)), pool=CORNERS)
    d = halves_of(q)
    v = split(d, 99)
    assert v.joint is not None
    made = Products.chosen(q, d.rows)
    assert made is not None
    factors = log_factor(made.scores(q, d.rows, 99, SALT))
    np.testing.assert_array_equal(v.joint.each[1], ranked(factors)[0])
    r = Repeats(q, SALT)
    for b in (0, 7):
        y = np.where(np.isin(np.arange(q.n), d.rows), r.drawn(b), q.sample.y)
        again = replace(d, question=q.with_outcomes(y))
        alone = split(again, 99)
        assert alone.statistic == pytest.approx(v.peaks[b], rel=1e-6)
        own = made.scores(again.question, d.rows, 0, SALT)
        np.testing.assert_allclose(log_factor(own), factors[b + 1], atol=1e-4)


# ---- clusters: a random sign each ----


def in_clusters(n: int, off: float, seed: int = 1) -> Any:
    """Clusters of one to five rows, weighted."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    return parity(n, off, seed, cluster=rng.permutation(n)[cluster], weights=rng.uniform(0.5, 2.0, n))


def test_clusters_show_what_no_pair_shows() -> None:
    result = strong(in_clusters(1_500, 0.15), draws=199)
    assert result.p_value <= 0.02 < 0.05 < result.parts["p_models"]
    assert set(result.parts["strongest"]) == {"b0", "b1", "b2"}
    own = strong(in_clusters(300, 0.15), draws=99, models=[("ridge", Ridge())])
    assert "p_bayes_factor" not in own.parts  # of one's own models no part is products


def test_scores_of_clusters_are_sums_over_the_root_of_their_squares() -> None:
    """By adding up, with the signs that the models' paths are held against."""
    q = detector_inputs(in_clusters(800, 0.1), Settings().checked())
    rows = np.flatnonzero(q.fold % 2 == 0)
    made = Products.chosen(q, rows)
    assert made is not None
    got, values = made.scores(q, rows, 5, SALT), made.values(slice(None)).astype(float)
    codes, ids = q.clusters_of(rows)
    residual = (values * (q.sample.mass_of(rows) * (q.sample.y[rows] - q.sample.p[rows]))) @ np.eye(len(ids))[codes]
    bits = outcomes(ids, np.full(len(ids), 0.5), 0, 5, SALT)
    effective = (residual**2).sum(axis=1) ** 2 / (residual**4).sum(axis=1)
    for s, sign in enumerate([np.ones(len(ids)), *(2.0 * bits.T - 1.0)]):
        want = residual @ sign / np.sqrt((residual**2).sum(axis=1))
        np.testing.assert_allclose(got[:, s], np.where(effective >= 20.0, want, 0.0), atol=1e-4)
    assert (effective >= 20.0).mean() > 0.3


def test_clusters_are_treated_as_their_draws() -> None:
    """A sign for each cluster, taken for the data, gives what that draw is given: models and products alike."""
    data = in_clusters(400, 0.1)
    d = halves_of(detector_inputs(data, Settings().checked()))
    q, v = d.question, split(d, 99)
    made = Products.chosen(q, d.rows)
    assert made is not None
    assert v.joint is not None
    factors = log_factor(made.scores(q, d.rows, 99, SALT))
    np.testing.assert_array_equal(v.joint.each[1], ranked(factors)[0])
    codes, ids = q.clusters_of(d.rows)
    bits = outcomes(ids, np.full(len(ids), 0.5), 0, 99, SALT)
    for b in (0, 7):
        turned_over = (2.0 * bits[:, b] - 1.0)[codes]
        own = [(path.scores(q.sample.y[d.rows]) * turned_over[path.rows], path.scale) for path in d.paths]
        peak = max(float((np.cumsum(score) * scale)[scale > 0].max(initial=0.0)) for score, scale in own)
        assert peak == pytest.approx(v.peaks[b], abs=1e-4)


# ---- the rank of the smaller p-value ----


def joint_of(peaks: Any, factors: Any) -> Joint:
    return Joint.of(peaks, factors)


def turned(peaks: Any, factors: Any, first: int) -> float:
    """The p-value with one of the sets as the data."""
    order = np.r_[first, np.delete(np.arange(len(peaks)), first)]
    return joint_of(peaks[order], factors[order]).p_value


@pytest.mark.parametrize("ties", [False, True])
def test_the_rank_of_the_smaller_p_value_is_exact(ties: bool) -> None:
    """Whichever of exchangeable sets the data are: of N sets at most k have a p-value of at most k / N."""
    for seed in range(20):
        peaks, factors = np.random.default_rng(seed).normal(size=(2, 39))
        if ties:
            peaks, factors = np.round(peaks), np.round(factors)
        p = np.array([turned(peaks, factors, s) for s in range(39)])
        for k in range(1, 40):
            assert (p <= k / 39 + 1e-12).sum() <= k
        assert ties or len(np.unique(p)) > 30  # and no more careful than it must be


def test_the_models_line_is_where_they_reach_alpha() -> None:
    for seed in range(200):
        joint = joint_of(*np.random.default_rng(seed).normal(size=(2, 99)))
        for alpha in (0.01, 0.05, 0.2, 0.5):
            at = joint.models_alpha(alpha) * (1.0 + 1e-9)
            models, mean = joint.each[:, 0]
            assert (joint.p_value <= alpha) == (models <= at or mean <= at * WEIGHTS[1] / WEIGHTS[0])


@pytest.mark.parametrize("seed", range(3))
def test_the_charts_line_is_of_the_joint_test(seed: int) -> None:
    """A peak that the models alone would find is under the line where the two together do not."""
    data = parity(200, 0.0, seed)
    found = strong(data, seed=seed)
    p, models = found.p_value, found.parts["p_models"]
    for alpha in (p - 0.002, p + 0.002, 0.5 * (p + models)):
        if 0.0 < alpha <= 0.5:
            s = cal.diagnose.control_chart(data, seed=seed, alpha=alpha).settings
            crosses = s["line"] is not None and s["peak_score"] > s["line"]
            assert s["p_models"] == models
            assert not crosses or p <= alpha
            assert crosses or p > alpha or found.parts["p_bayes_factor"] / WEIGHTS[1] < models / WEIGHTS[0]


def test_bayes_factors_are_those_of_normal_effects() -> None:
    """Against none, of prior variance 20: a ratio of two normal densities, averaged over features."""
    from scipy.stats import norm

    z = np.random.default_rng(3).normal(0, 2, (7, 5)).astype(np.float32)
    ratio = norm.pdf(z, scale=21**0.5) / norm.pdf(z)
    np.testing.assert_allclose(log_factor(z), np.log(ratio.mean(axis=0)), rtol=1e-5)
    np.testing.assert_allclose(log_factor(np.vstack([z, np.zeros((3, 5))])), log_factor(z))  # those that do not count


def test_few_events_do_not_count() -> None:
    """The null variance of a feature in events: that of its rows, or of as many equal ones as its weights amount to."""
    sums = np.ones((3, 2), dtype=np.float32)
    squares, fourths = np.array([4.0, 3.9, 40.0]), np.array([4.0, 3.9, 500.0])
    np.testing.assert_allclose(standardised(sums, squares, fourths)[:, 0], [0.5, 0.0, 0.0])


def test_columns_of_one_value_and_rare_levels_do_no_harm() -> None:
    n, rng = 300, np.random.default_rng(8)
    covariates = {"x": rng.normal(size=n), "r": np.arange(n) < 12, "k": rng.choice(list("abc"), n)}
    data = cal.predictions(rng.random(n) < 0.3, np.full(n, 0.3), covariates)
    found = strong(data, draws=99)
    assert found.parts["triples"] == 2  # x, r and two levels of k; the score has one value
    assert np.isfinite(found.parts["p_bayes_factor"])
    rare = strong(cal.predictions(np.arange(n) == 7, np.full(n, 0.005), covariates), draws=99)
    assert (rare.parts["products"], rare.parts["triples"]) == (0, 2)  # 1.5 events are expected: none is tested
