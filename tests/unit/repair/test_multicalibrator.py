"""Multicalibration by trees and groups: planted bias goes on other rows, what is right stays, bad data is survived."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.repair import Calibrator, Groups, Multicalibrator, ProportionalMulticalibrator, Trees
from calibrant.repair.calibrators import boosting
from calibrant.repair.calibrators.boosting import Problem, straight
from calibrant.repair.catalogue import calibrator_classes

WARDS = ("north", "south", "east")


def rows(n, seed, gap=0.9):
    """Rows whose log-odds are off by `gap` for the old of one ward, and whether each is one of them."""
    g = np.random.default_rng([0x3CA1, seed])
    age, ward, z = g.uniform(20, 80, n), g.choice(WARDS, n), g.normal(size=n)
    logit = 0.8 * z + g.normal(size=n) - 0.3
    p = 1 / (1 + np.exp(-logit))
    hit = (age > 60) & (ward == "south")
    y = g.uniform(size=n) < 1 / (1 + np.exp(-logit - gap * hit))
    return cal.predictions(y, p, {"age": age, "ward": ward, "z": z}), hit


RECIPES = (
    Multicalibrator(),
    Multicalibrator(learner=Groups(depth=2)),
    ProportionalMulticalibrator(depth=2),
)
IDS = ("trees", "groups", "proportional")


@pytest.mark.parametrize("recipe", RECIPES, ids=IDS)
def test_planted_bias_is_removed_on_other_rows(recipe):
    fitted = recipe.fit(rows(12_000, 1)[0])
    held, hit = rows(30_000, 2)
    after = fitted(held)
    off = [abs(float((held.y - d.p)[hit].mean())) for d in (held, after)]
    assert off[0] > 0.13
    assert off[1] < off[0] / 2  # cautious: of 1,300 rows with that bias, noise is part of what they show
    assert abs(float((held.y - after.p)[~hit].mean())) < 0.01
    if isinstance(recipe, Multicalibrator) and isinstance(
        recipe.learner, Trees
    ):  # cells of 100 rows copy noise elsewhere
        assert cal.measure.log_loss(after).value < cal.measure.log_loss(held).value - 0.002
    assert fitted.order == "may change"


@pytest.mark.slow
def test_trees_find_bias_at_one_end_of_the_score_in_a_group():
    g = np.random.default_rng(0x3CA2)
    p, group = g.uniform(0.05, 0.95, 40_000), g.integers(0, 8, 40_000)
    bad = (group == 3) & (p > 0.6)
    y = g.uniform(size=40_000) < p - 0.25 * bad
    data = cal.predictions(y, p, {"group": group.astype(str)})
    parts = [cal.predictions(y[i::2], p[i::2], {"group": group[i::2].astype(str)}) for i in (0, 1)]
    after = Multicalibrator().fit(parts[0])(parts[1])
    assert abs(float((after.y - after.p)[bad[1::2]].mean())) < 0.05 < abs(float((data.y - data.p)[bad].mean()))
    assert abs(float((after.y - after.p)[(group[1::2] == 3) & (p[1::2] < 0.4)].mean())) < 0.05


@pytest.mark.slow
def test_a_constant_score_becomes_a_model_of_its_groups():
    g = np.random.default_rng(0x3CA3)
    x = g.uniform(size=20_000)
    data = cal.predictions(g.uniform(size=20_000) < x, np.full(20_000, 0.5), {"x": x})
    got = Multicalibrator().fit(data).scores(np.full(9, 0.5), columns=pa.table({"x": np.linspace(0.1, 0.9, 9)}))
    assert np.abs(got - np.linspace(0.1, 0.9, 9)).max() < 0.06


def cells(data, fitted, fewest):
    """Yield event rate and mean score of each cell that holds enough rows, by hand."""
    age, ward = data.covariates["age"].to_numpy(), np.array(data.covariates["ward"].to_pylist())
    z = data.covariates["z"].to_numpy()
    groups = [np.ones(data.n, dtype=bool), *(ward == w for w in WARDS)]
    for v, cuts in ((age, fitted.edges[0]), (z, fitted.edges[1])):
        groups += [np.searchsorted(cuts, v, side="right") == k for k in range(len(cuts) + 1)]
    level = np.minimum((data.p * fitted.bins).astype(int), fitted.bins - 1)
    for group in groups:
        for k in range(fitted.bins):
            here = group & (level == k)
            if here.sum() >= fewest:
                yield float(data.y[here].mean()), float(data.p[here].mean())


def test_groups_reach_the_tolerance_in_every_cell_of_the_fit():
    data = rows(8_000, 3)[0]
    fitted = Multicalibrator(learner=Groups(tolerance=0.03, fewest=80)).fit(data)
    assert fitted.settings["reached"]
    before, after = (list(cells(d, fitted, 80)) for d in (data, fitted(data)))
    assert max(abs(e - s) for e, s in before) > 0.05
    assert max(abs(e - s) for e, s in after) <= 0.03 + 1e-9
    assert len(after) > 60


def test_proportional_reaches_its_share_of_the_rate_in_every_cell_of_the_fit():
    data = rows(8_000, 4)[0]
    fitted = ProportionalMulticalibrator(tolerance=0.08, rho=0.15, fewest=80).fit(data)
    assert fitted.settings["reached"]
    before, after = (list(cells(d, fitted, 80)) for d in (data, fitted(data)))
    assert max(abs(e - s) / max(e, 0.15) for e, s in before) > 0.1
    assert max(abs(e - s) / max(e, 0.15) for e, s in after) <= 0.08 + 1e-9


def by_hand(d, p, number, level):
    """Evaluate a map of trees from its JSON, one row, with nothing but arithmetic."""
    start = math.log(p / (1 - p))
    odds = d["intercept"] + d["slope"] * start
    for k, edges in enumerate(d["score_edges"]):
        bins = [
            sum(odds >= e for e in edges),
            *(sum(v >= e for e in c) for v, c in zip(number, d["edges"], strict=True)),
        ]
        bins += level
        for t in range(10 * k, min(10 * k + 10, len(d["value"]))):
            at = 0
            while at < len(d["feature"][t]):
                left = d["left"][t][at] >> bins[d["feature"][t][at]] & 1
                at = 2 * at + 1 if left else 2 * at + 2
            odds += d["value"][t][at - len(d["feature"][t])]
    return 1 / (1 + math.exp(-(start + d["scale"] * (odds - start))))


@pytest.mark.slow
def test_json_alone_is_enough_to_apply_the_trees():
    fitted = Multicalibrator().fit(rows(6_000, 5)[0])
    d = json.loads(fitted.to_json())
    assert len(fitted.to_json()) < 60_000
    held = rows(50, 6)[0]
    levels = next(c for c in fitted.codings if c.name == "ward").levels
    columns = [held.covariates[c].to_pylist() for c in ("age", "z", "ward")]
    expected = [
        by_hand(d, p, (age, z), [levels.index(w)]) for p, age, z, w in zip(held.p.tolist(), *columns, strict=True)
    ]
    np.testing.assert_allclose(fitted(held).p, expected, rtol=1e-12)


@pytest.mark.parametrize("recipe", RECIPES, ids=IDS)
def test_json_round_trip_seeds_and_chunks(recipe):
    data = rows(3_000, 7, gap=1.5)[0]
    fitted = recipe.fit(data)
    assert calibrator_classes()[fitted.kind] is type(fitted)
    again = Calibrator.from_json(fitted.to_json())
    assert again == fitted == recipe.fit(data)
    held = rows(501, 8)[0]
    whole = fitted(held).p
    np.testing.assert_array_equal(whole, again(held).p)
    halves = [
        fitted.scores(held.p[a], columns=held.covariates.slice(a.start, a.stop - a.start))
        for a in (slice(0, 200), slice(200, 501))
    ]
    np.testing.assert_array_equal(whole, np.concatenate(halves))


@pytest.mark.slow
def test_the_seed_decides_the_trees():
    data = rows(20_000, 9)[0]
    one, other = (Multicalibrator(seed=s).fit(data) for s in (0, 1))
    assert one.value != other.value


def test_trees_leave_a_calibrated_score_exactly_as_it_is():
    data = rows(5_000, 10, gap=0.0)[0]
    fitted = Multicalibrator().fit(data)
    assert not fitted.settings["used"]
    assert fitted.order == "kept"
    assert fitted.trees == 0
    np.testing.assert_array_equal(fitted(data).p, data.p)


def test_only_the_level_is_mended_where_only_the_level_is_off():
    g = np.random.default_rng(0x3CA4)
    p = g.uniform(0.05, 0.95, 6_000)
    fitted = Multicalibrator().fit(cal.predictions(g.uniform(size=6_000) < p**2, p, {"x": g.normal(size=6_000)}))
    got = fitted.scores(np.array([0.3, 0.5, 0.8]), columns=pa.table({"x": [0.0, 1.0, -1.0]}))
    np.testing.assert_allclose(got, [0.09, 0.25, 0.64], atol=0.05)


def test_weights_count_as_rows():
    data = rows(4_000, 11)[0]
    heavy = np.where(np.arange(4_000) % 3 == 0, 2.0, 1.0)
    weighted = replace(data, weights=heavy, cache={})
    take = np.repeat(np.arange(4_000), heavy.astype(int))
    repeated = cal.predictions(data.y[take], data.p[take], data.covariates.take(take))
    # cells hold rows of mean weight: 1 of 4,000 rows or of 5,334 is the same share up to rounding, and no cell lies
    # between
    one, other = (
        Multicalibrator(variables=["ward"], learner=Groups(fewest=1, bins=4)).fit(d) for d in (weighted, repeated)
    )
    np.testing.assert_allclose(one(data).p, other(data).p, atol=1e-9)


@pytest.mark.slow
def test_trees_heed_weights_and_clusters():
    data, hit = rows(8_000, 12, gap=1.5)
    light = replace(data, weights=np.where(hit, 1e-4, 1.0), cache={})
    fitted = Multicalibrator().fit(light)
    assert np.abs(fitted(data).p - data.p)[hit].mean() < 0.05
    ids = np.repeat(np.arange(800), 10)
    assert Multicalibrator().fit(replace(data, cluster=ids, cache={})).settings["used"]
    few = replace(data, cluster=np.arange(8_000) % 3, cache={})
    with pytest.raises(cal.NotComputable, match="5 folds and there are 3 clusters"):
        Multicalibrator().fit(few)


@pytest.mark.parametrize("recipe", RECIPES, ids=IDS)
def test_unseen_levels_and_missing_values(recipe):
    data = rows(4_000, 13, gap=1.5)[0]
    age = data.covariates["age"].to_numpy().copy()
    age[::7] = np.nan
    ward = [None if i % 11 == 0 else w for i, w in enumerate(data.covariates["ward"].to_pylist())]
    holes = cal.predictions(data.y, data.p, {"age": pa.array(age, from_pandas=True), "ward": pa.array(ward)})
    fitted = recipe.fit(holes)
    new = pa.table({"age": pa.array([None, 70.0, 1e9, -1e9]), "ward": pa.array(["mars", None, "south", "mars"])})
    got = fitted.scores(np.array([0.5, 0.0, 1.0, 0.3]), columns=new)
    assert np.isfinite(got).all()
    assert ((got >= 0) & (got <= 1)).all()
    assert Calibrator.from_json(fitted.to_json()) == fitted


@pytest.mark.slow
def test_many_levels_share_a_bin():
    g = np.random.default_rng(0x3CA5)
    town = g.integers(0, 300, 20_000)
    p = g.uniform(0.2, 0.8, 20_000)
    y = g.uniform(size=20_000) < p + np.where(town < 3, 0.15, 0.0)
    town = np.where(g.uniform(size=20_000) < 0.3, g.integers(0, 3, 20_000), town)
    y = g.uniform(size=20_000) < p + np.where(town < 3, 0.15, 0.0)
    fitted = Multicalibrator().fit(cal.predictions(y, p, {"town": town.astype(str)}))
    new = pa.table({"town": ["0", "1", "250", "nowhere", None]})
    got = fitted.scores(np.full(5, 0.5), columns=new)
    np.testing.assert_allclose(got, [0.65, 0.65, 0.5, 0.5, 0.5], atol=0.06)


DEGENERATE = {
    "five rows": ([0, 1, 0, 1, 1], [0.1, 0.9, 0.5, 0.5, 0.2], {"x": [1.0, 2.0, 3.0, 4.0, 5.0]}),
    "constant score": ([0, 1] * 40, [0.5] * 80, {"x": list(range(80))}),
    "scores at 0 and 1": ([0, 1] * 40, [0.0, 1.0] * 40, {"x": list(range(80))}),
    "always wrong": ([0, 1] * 40, [1.0, 0.0] * 40, {"x": list(range(80))}),
    "ties": ([0, 1, 1] * 40, [0.3, 0.3, 0.6] * 40, {"x": ["a", "b", "b"] * 40}),
    "one case": ([1, *[0] * 79], [0.01] * 80, {"x": list(range(80))}),
    "constant covariate": ([0, 1] * 40, [0.4, 0.6] * 40, {"x": [1.0] * 80}),
    "no covariates": ([0, 1] * 40, [0.4, 0.6] * 40, None),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("recipe", RECIPES, ids=IDS)
def test_degenerate_rows(recipe, name):
    data = cal.predictions(*DEGENERATE[name])
    fitted = recipe.fit(data)
    got = fitted(data).p
    assert np.isfinite(got).all()
    assert ((got >= 0) & (got <= 1)).all()
    assert Calibrator.from_json(fitted.to_json()) == fitted


def test_refusals():
    data = rows(100, 14)[0]
    for recipe in RECIPES:
        with pytest.raises(cal.NotComputable, match="outcome 0"):
            recipe.fit(cal.predictions(np.zeros(50), np.full(50, 0.2)))
    with pytest.raises(cal.NotComputable, match="each of its 5 folds and there are 4 rows"):
        Multicalibrator().fit(cal.predictions([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]))
    with pytest.raises(cal.BadInput, match="did you mean 'ward'"):
        Multicalibrator(variables=["wards"]).fit(data)
    with pytest.raises(cal.BadInput, match="'wards'"):
        ProportionalMulticalibrator(variables=["wards"]).fit(data)
    bad = (
        lambda: Multicalibrator(learner="trees"),
        lambda: Multicalibrator(seed=-1),
        lambda: Multicalibrator(variables=3),
        lambda: Trees(depth=0),
        lambda: Trees(rate=2.0),
        lambda: Trees(folds=1),
        lambda: Trees(most=True),
        lambda: Trees(ridge=math.nan),
        lambda: Groups(tolerance=0.0),
        lambda: Groups(fewest=0),
        lambda: Groups(depth=3),
        lambda: Groups(bins=0),
        lambda: Groups(cuts=1),
        lambda: ProportionalMulticalibrator(rho=0.0),
        lambda: ProportionalMulticalibrator(tolerance=1.0),
        lambda: ProportionalMulticalibrator(rho=math.nan),
    )
    for make in bad:
        with pytest.raises(cal.BadInput, match="pass"):
            make()


def test_the_straight_line_is_a_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    g = np.random.default_rng(0x3CA6)
    t = g.normal(size=20_000)
    y = (g.uniform(size=20_000) < 1 / (1 + np.exp(-0.4 - 1.7 * t))).astype(np.int8)
    w = g.uniform(0.5, 1.5, 20_000)
    slope, intercept = straight(Problem(None, t, y, w), np.arange(20_000))
    model = LogisticRegression(C=np.inf).fit(t[:, None], y, sample_weight=w)
    assert slope == pytest.approx(model.coef_[0, 0], abs=2e-3)
    assert intercept == pytest.approx(model.intercept_[0], abs=2e-3)


@pytest.mark.parametrize("kind", ["normal", "heavy", "ties", "half alike", "few", "one"])
def test_bins_of_many_scores_are_those_of_the_sorted_ones(kind: str) -> None:
    rng, n = np.random.default_rng(3), boosting.RANKED + 3_001
    values = {
        "normal": rng.normal(size=n),
        "heavy": rng.standard_t(1, size=n),
        "ties": np.round(rng.normal(size=n), 2),
        "half alike": np.where(rng.uniform(size=n) < 0.5, 3.0, rng.normal(size=n)),
        "few": np.round(rng.normal(size=n)),
        "one": np.zeros(n),
    }[kind]
    ordered = np.sort(values)
    edges = boosting.bin_edges(ordered, boosting.BINS)
    assert boosting.score_cuts(values) == boosting.cuts(edges, ordered, boosting.SCORES)
