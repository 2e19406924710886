"""The reliability curve: settings, columns, refusals, the same from rows and sketch, and what its parts compute."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.diagnose.reliability_curve import Drawing, scored
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.nulls import critical, null_events, p_value
from calibrant.stats.smoothing import Runs, density, effective, half_width, runs_of, weights
from calibrant.views.sample import everyone

COLUMNS = {
    "x",
    "predicted",
    "observed",
    "gap",
    "low",
    "high",
    "low_point",
    "high_point",
    "rows",
    "density_events",
    "density_nonevents",
    "stretch",
}


def rows(n: int = 5000, power: float = 1.0, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n)
    return cal.predictions(rng.uniform(size=n) < p**power, p)


@pytest.fixture(scope="module")
def curve() -> Curve:
    return cal.diagnose.reliability_curve(rows(20_000, power=1.5), draws=199)


@pytest.mark.parametrize("method", ["smooth", "isotonic"])
@pytest.mark.parametrize("axis", ["probability", "logit"])
def test_columns_are_whole_finite_and_ordered(method, axis):
    made = cal.diagnose.reliability_curve(rows(), grid=21, axis=axis, method=method, draws=99)
    c = {k: np.array(v) for k, v in made.columns.items()}
    assert set(c) == COLUMNS
    assert {len(v) for v in c.values()} == {len(c["x"])}
    assert all(np.isfinite(v).all() for v in c.values())
    assert (np.diff(c["x"]) > 0).all()
    assert (c["low"] <= c["gap"]).all()
    assert (c["gap"] <= c["high"]).all()
    assert (c["high_point"] - c["low_point"] <= c["high"] - c["low"] + 1e-12).all()
    assert (np.diff(c["stretch"]) >= 0).all()


def test_trimmed_to_the_middle_98_per_cent():
    scores = np.array(cal.diagnose.reliability_curve(rows(), draws=19).columns["x"])
    assert 0.0 < scores[0] < 0.03
    assert 0.97 < scores[-1] < 1.0


def test_finds_a_square_and_says_on_which_side(curve):
    score, gap = np.array(curve.columns["x"]), np.array(curve.columns["gap"])
    assert curve.settings["p_value"] == 1 / 200
    assert np.abs(gap - (score**1.5 - score)).max() < 0.02
    assert max(curve.columns["high"][20:80]) < 0


@pytest.mark.parametrize("options", [{}, {"axis": "logit"}, {"method": "isotonic", "draws": 39}])
def test_same_from_rows_and_sketch_and_twice(options):
    data = rows(3000, power=1.2)
    made = [cal.diagnose.reliability_curve(d, **options) for d in (data, cal.sketch(data), data)]
    assert made[0].to_dict() == made[1].to_dict() == made[2].to_dict()


def test_round_trips_and_pickles(curve):
    assert Curve.from_dict(curve.to_dict()).to_dict() == curve.to_dict()
    assert pickle.loads(pickle.dumps(curve)).to_dict() == curve.to_dict()  # noqa: S301
    assert set(curve.to_arrow().column_names) == COLUMNS


def test_given_scores_are_kept_and_trimmed():
    made = cal.diagnose.reliability_curve(rows(), grid=[0.0, 0.25, 0.5, 1.0], draws=19)
    assert made.columns["x"] == (0.25, 0.5)
    assert made.settings["bandwidth"] > 0


def test_a_hole_in_the_scores_is_left_out_and_starts_a_new_stretch():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(8000) < 0.5, rng.uniform(0.05, 0.2, 8000), rng.uniform(0.8, 0.95, 8000))
    made = cal.diagnose.reliability_curve(cal.predictions(rng.random(8000) < p, p), bandwidth=0.05, draws=19)
    scores = np.array(made.columns["x"])
    assert made.settings["masked"] > 0
    assert not ((scores > 0.3) & (scores < 0.7)).any()
    assert set(made.columns["stretch"]) == {0, 1}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (lambda: rows(60), "at least 50 expected events"),
        (lambda: cal.predictions([0, 1] * 300, [0.4] * 600), "same score"),
        (lambda: cal.predictions([0, 1] * 300, [0.0, 1.0] * 300), "0 or 1"),
        (lambda: cal.predictions([0, 1] * 300, [0.4, 0.6] * 300, cluster=[*range(19)] * 31 + [0] * 11), "19 clusters"),
    ],
)
def test_not_computable(data, reason):
    with pytest.raises(NotComputable, match=reason):
        cal.diagnose.reliability_curve(data())


@pytest.mark.parametrize(
    "options",
    [
        {"grid": 1},
        {"grid": [0.5, 0.2]},
        {"grid": [0.5, 2.0]},
        {"bandwidth": 0},
        {"bandwidth": "wide"},
        {"axis": "log"},
        {"method": "loess"},
        {"alpha": 1.0},
        {"draws": 5},
        {"draws": 1.5},
    ],
)
def test_bad_settings_are_refused(options):
    with pytest.raises(BadInput):
        cal.diagnose.reliability_curve(rows(), **options)


@pytest.mark.slow
def test_a_chart_with_tooltips_in_points():
    drawn = cal.diagnose.reliability_curve(rows(), draws=19).chart().to_dict()
    first = drawn["vconcat"][0]["layer"]
    tips = [t["field"] for layer in first for t in layer.get("encoding", {}).get("tooltip", [])]
    assert {"predicted rate", "observed rate", "off by", "band"} <= set(tips)
    text = str(drawn)
    assert " points" in text
    assert "in 100" in text


def test_a_notebook_shows_a_picture_and_falls_back_to_rows():
    shown = cal.diagnose.reliability_curve(rows(), draws=19)._repr_html_()
    assert shown.count("<svg") > 2
    assert "<svg" not in Curve(method="other", columns={})._repr_html_()
    with pytest.raises(NotComputable):
        Curve(method="diagnose.reliability_curve", columns={}).chart()


# ---- the parts ----

calm = settings(suppress_health_check=[HealthCheck.too_slow])
masses = st.lists(st.integers(1, 50), min_size=2, max_size=40)


@calm
@given(masses, st.floats(0.05, 2.0), st.integers(0, 10**6))
def test_weights_times_rows_add_up_to_one(n, half, seed):
    rng = np.random.default_rng(seed)
    x, counts = np.sort(rng.random(len(n))), np.array(n, dtype=float)
    grid = np.linspace(x[0], x[-1], 7)
    w = weights(x, counts, grid, half)
    inside = (np.abs(x[None, :] - grid[:, None]) < half * 0.99).any(axis=1)
    assert np.allclose((w @ counts)[inside], 1.0)


def test_weights_are_weighted_least_squares():
    rng = np.random.default_rng(3)
    x, n, y = np.sort(rng.random(30)), rng.integers(1, 9, 30).astype(float), rng.normal(size=30)
    for t in (0.1, 0.5, 0.9):
        k = np.clip(1 - ((x - t) / 0.3) ** 2, 0, None)  # polyfit squares its weights
        line = np.polyfit(x, y, 1, w=np.sqrt(n) * k)
        assert np.isclose((weights(x, n, np.array([t]), 0.3) @ (n * y))[0], np.polyval(line, t))


@calm
@given(masses, st.integers(1, 30), st.floats(0, 1))
def test_runs_keep_totals_and_the_smallest_size(n, smallest, width):
    counts = np.array(n)
    x = np.linspace(0, 1, len(n))
    runs = runs_of(x, counts, counts // 2, counts * x, width, smallest)
    assert runs.rows.sum() == counts.sum()
    assert runs.events.sum() == (counts // 2).sum()
    assert np.isclose(runs.score.sum(), (counts * x).sum())
    assert (np.diff(runs.x) > 0).all()
    assert len(runs.x) == 1 or runs.rows.min() >= smallest


def test_effective_rows_and_density():
    counts = np.array([10.0, 30.0])
    plain = np.full((1, 2), 1 / 40)
    assert np.isclose(effective(plain, counts)[0], 40)
    grid = np.linspace(-2, 3, 5001)
    assert np.isclose(density(np.array([0.2, 0.7]), counts, grid, 0.3).sum() * (grid[1] - grid[0]), 1.0, atol=1e-3)
    assert half_width(np.array([0.5, 0.5]), np.array([1.0, 1.0])) == 0.0
    assert Runs(np.zeros(1), np.array([4.0]), np.zeros(1), np.array([1.0])).noise[0] == 0.75


@calm
@given(
    st.lists(st.integers(0, 30), min_size=19, max_size=19), st.integers(0, 30), st.sampled_from([0.05, 0.1, 0.2, 0.5])
)
def test_exceeding_the_critical_value_is_the_small_p_value(simulated, statistic, alpha):
    draws = np.array(simulated, dtype=float)
    assert (statistic > critical(draws, alpha)) == (p_value(float(statistic), draws) <= alpha + 1e-12)


def test_simulated_cases_do_not_depend_on_the_chunk(monkeypatch):
    n, p = np.array([5, 100, 1]), np.array([0.0, 0.3, 1.0])
    whole = np.concatenate(list(null_events(n, p, 50, 7)))
    monkeypatch.setattr("calibrant.stats.nulls.CHUNK", 9)
    assert np.array_equal(np.concatenate(list(null_events(n, p, 50, 7))), whole)
    assert whole[:, 0].max() == 0
    assert whole[:, 2].min() == 1
    assert not np.array_equal(np.concatenate(list(null_events(n, p, 50, 7, stream=1))), whole)


# ---- Units and weights ----


def in_clusters(seed=0, clusters=60, size=10, off=0.0, **more):
    """Return rows that share part of their outcome with others of their unit."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), size)
    p = rng.uniform(0.1, 0.9, len(cluster))
    u = 0.4 * rng.uniform(size=clusters)[cluster] + 0.6 * rng.uniform(size=len(cluster))
    given = {"cluster": cluster, "weights": rng.gamma(0.5, size=len(cluster)) + 0.01}
    return cal.predictions(u < p + off, p, **{k: given[k] for k in more})


def test_rows_of_one_weight_each_their_own_unit_are_as_ever():
    data = in_clusters()
    intraclass_correlation = cal.predictions(data.y, data.p, cluster=np.arange(data.n), weights=np.full(data.n, 3.0))
    assert cal.diagnose.reliability_curve(intraclass_correlation, draws=39) == cal.diagnose.reliability_curve(
        data, draws=39
    )


def test_whole_numbered_weights_draw_the_curve_of_repeated_rows():
    data, times = in_clusters(), np.arange(600) % 3 + 1
    again = cal.predictions(np.repeat(data.y, times), np.repeat(data.p, times))
    grid = [0.3, 0.5, 0.7]
    weighted = cal.predictions(data.y, data.p, weights=times.astype(float))
    one, other = (
        cal.diagnose.reliability_curve(d, grid=grid, bandwidth=0.2, draws=19).columns for d in (weighted, again)
    )
    assert np.allclose(one["gap"], other["gap"], atol=2e-3)  # runs begin elsewhere where rows repeat
    assert max(one["rows"]) < max(other["rows"])


def test_the_standard_error_of_units_is_that_of_their_sums():
    """By hand: the root of the sum over units of what each adds to the smoothed residual, squared."""
    data = in_clusters(cluster=1, weights=1)
    made = cal.diagnose.reliability_curve(data, grid=[0.5], bandwidth=0.4, draws=99)
    lone = scored(everyone(data), Drawing(grid=[0.5], bandwidth=0.4))
    w = weights(lone.runs.x, lone.runs.rows, lone.grid, 0.4)[0]
    each = w[lone.rows.run] * data.weights * (data.y - data.p)
    by_cluster = np.sqrt((np.bincount(data.cluster, each) ** 2).sum())
    assert made.columns["gap"][0] == pytest.approx(each.sum(), abs=1e-12)
    assert made.settings["statistic"] == pytest.approx(abs(each.sum()) / by_cluster, rel=1e-9)
    assert (made.settings["clusters"], made.settings["null"][:12]) == (60, "random signs")


def test_units_make_the_band_wider_and_weights_move_it():
    def width(seed, **more):
        c = cal.diagnose.reliability_curve(in_clusters(seed, **more), grid=[0.5], draws=199).columns
        return c["high"][0] - c["low"][0]

    wider = [width(seed, cluster=1) / width(seed) for seed in range(5)]
    assert np.mean(wider) > 1.15
    assert cal.diagnose.reliability_curve(in_clusters(off=0.2, cluster=1, weights=1)).settings["p_value"] < 0.02


def test_units_have_no_isotonic_curve():
    with pytest.raises(NotComputable, match="smooth"):
        cal.diagnose.reliability_curve(in_clusters(cluster=1), method="isotonic")
    assert cal.diagnose.reliability_curve(in_clusters(weights=1), method="isotonic", draws=39).settings["p_value"] > 0.0
