"""Maps of variables: known truths, degenerate input, weights, values not seen at the fit, and JSON."""

import datetime
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.repair.regression import Trial, edges_of, log_odds, log_of, losses, newton_step, targets
from calibrant.stats.logistic import regress

RECIPES = {
    "AugmentedLogistic": cal.repair.AugmentedLogistic,
    "AugmentedBeta": cal.repair.AugmentedBeta,
    "VariableTree": cal.repair.VariableTree,
    "LocalBias": cal.repair.LocalBias,
}
everyone = pytest.mark.parametrize("name", RECIPES)
slowly = pytest.mark.parametrize(  # LocalBias takes seconds on so many rows
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "LocalBias" else n for n in RECIPES]
)
named = pytest.mark.parametrize("name", ["AugmentedLogistic", "AugmentedBeta", "VariableTree"])


def rows(n=3_000, seed=1, weights=False, clusters=False):
    """Return rows whose score is right for everyone together, with numbers, levels, dates and missing values."""
    rng = np.random.default_rng([81, seed])
    p = rng.uniform(0.1, 0.9, n)
    age, city = rng.uniform(18, 90, n), rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    truth = expit(logit(p) + (age - 54) / 30 + np.where(city == "c", 1.0, -0.25))
    income = np.where(rng.uniform(size=n) < 0.1, np.nan, rng.lognormal(size=n))
    day = np.datetime64("2020-01-01") + rng.integers(0, 900, n)
    columns = {"age": age, "city": city, "income": income, "day": day, "same": np.ones(n)}
    extra = {
        "weights": rng.uniform(0.5, 2.0, n) if weights else None,
        "cluster": np.arange(n) // 3 if clusters else None,
    }
    data = cal.predictions(rng.uniform(size=n) < truth, p, columns, **{k: v for k, v in extra.items() if v is not None})
    return data, truth


def off(p, truth):
    return float(np.abs(p - truth).mean())


@slowly
def test_recovers_planted_error(name):
    data, truth = rows(8_000)
    fitted_map = RECIPES[name](variables=["age", "city"]).fit(data)
    assert off(fitted_map(data).p, truth) < off(data.p, truth) / 2.5
    new, truth = rows(8_000, seed=2)
    assert off(fitted_map(new).p, truth) < off(new.p, truth) / 2.5


@slowly
def test_json_carries_the_map(name):
    data, _ = rows(weights=True, clusters=True)
    fitted_map = RECIPES[name](variables=["age", "city", "income", "day", "same"]).fit(data)
    again = cal.repair.Calibrator.from_json(fitted_map.to_json())
    assert again == fitted_map
    assert np.array_equal(again(data).p, fitted_map(data).p)
    assert fitted_map.reads == ("age", "city", "income", "day")
    assert fitted_map.settings["constant"] == ("same",)
    assert fitted_map.order == "may change"
    assert len(fitted_map.to_json()) < 200_000


@slowly
def test_the_same_whatever_the_chunks_and_the_order_of_rows(name):
    data, _ = rows()
    fitted_map = RECIPES[name](variables=["age", "city"]).fit(data)
    whole = fitted_map(data).p
    half = np.concatenate(
        [fitted_map.scores(data.p[a:b], columns=data.covariates.slice(a, b - a)) for a, b in ((0, 7), (7, 3_000))]
    )
    assert half == pytest.approx(whole, abs=1e-12)


@slowly
def test_weights_count_as_repeated_rows(name):
    data, _ = rows(1_500)
    times = np.random.default_rng(5).integers(1, 4, data.n)
    at = np.repeat(np.arange(data.n), times)
    repeated = cal.predictions(data.y[at], data.p[at], data.covariates.take(at))
    weighted = replace(data, weights=times.astype(float), cache={})
    settings = {
        "AugmentedLogistic": {"ridge": 0.0},
        "AugmentedBeta": {"ridge": 0.0},
        "VariableTree": {"depth": 2, "shrink": 0.0},
        "LocalBias": {"shrink": 1.0},
    }[name]
    p, q = (RECIPES[name](variables="age", **settings).fit(d)(data).p for d in (weighted, repeated))
    plain = RECIPES[name](variables="age", **settings).fit(data)(data).p
    assert np.abs(p - q).mean() < 0.25 * np.abs(plain - q).mean() + 0.004


@slowly
def test_values_that_were_not_there_at_the_fit(name):
    data, _ = rows()
    fitted_map = RECIPES[name](variables=["age", "city", "day"]).fit(data)
    n = 5
    odd = pa.table(
        {
            "age": pa.array([None, 1e9, -1e9, 54.0, 60.0]),
            "city": pa.array(["z", None, "a", "c", ""]),
            "day": pa.array(
                [None, datetime.date(1800, 1, 1), datetime.date(2500, 1, 1)] + [datetime.date(2021, 5, 5)] * 2
            ),
        }
    )
    out = fitted_map.scores(np.linspace(0, 1, n), columns=odd)
    assert np.isfinite(out).all()
    assert ((out >= 0) & (out <= 1)).all()


@everyone
def test_a_missing_column_is_named(name):
    data, _ = rows(200)
    with pytest.raises(cal.BadInput, match="did you mean 'age'"):
        RECIPES[name](variables="aeg").fit(data)
    fitted_map = RECIPES[name](variables=["age", "city"]).fit(data)
    with pytest.raises(cal.BadInput, match="'city' is not in the data"):
        fitted_map.scores(data.p, columns=data.covariates.select(["age"]))


@everyone
def test_one_class_is_refused(name):
    with pytest.raises(cal.NotComputable, match=f"{name} cannot be fitted: every one of the 50 rows has outcome 1"):
        RECIPES[name](variables="v").fit(cal.predictions(np.ones(50), np.full(50, 0.4), {"v": np.arange(50.0)}))


@everyone
@pytest.mark.parametrize(
    "kind", ["five rows", "constant score", "ties", "zeros and ones", "separated", "constant variable"]
)
def test_degenerate_rows(name, kind):
    rng = np.random.default_rng(3)
    n = 5 if kind == "five rows" else 400
    p, v = rng.uniform(size=n), rng.normal(size=n)
    y = rng.uniform(size=n) < 0.5
    y[:2] = True, False
    if kind == "constant score":
        p[:] = 0.3
    elif kind == "ties":
        p, v = np.round(p * 4) / 4, np.round(v)
    elif kind == "zeros and ones":
        p = rng.choice([0.0, 1.0, 0.5], n)
    elif kind == "separated":
        y = v > 0
    elif kind == "constant variable":
        p[:], v[:] = 0.5, 1.0
    data = cal.predictions(y, p, {"v": v})
    if (name, kind) == ("LocalBias", "five rows"):
        with pytest.raises(cal.NotComputable, match="at least 20 rows of each outcome"):
            RECIPES[name](variables="v").fit(data)
        return
    fitted_map = RECIPES[name](variables="v").fit(data)
    out = fitted_map(data).p
    assert np.isfinite(out).all()
    assert ((out >= 0) & (out <= 1)).all()
    assert cal.repair.Calibrator.from_json(fitted_map.to_json()) == fitted_map


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("AugmentedLogistic", "ridge", -1),
        ("AugmentedLogistic", "scale", "probit"),
        ("AugmentedBeta", "quadratic", 1),
        ("AugmentedBeta", "paper", "yes"),
        ("VariableTree", "depth", 9),
        ("VariableTree", "depth", 1.5),
        ("VariableTree", "leaf", 0.5),
        ("VariableTree", "target", "p"),
        ("VariableTree", "shrink", -1.0),
        ("LocalBias", "bandwidth", 0),
        ("LocalBias", "shrink", 0.0),
        ("LocalBias", "landmarks", 1),
        ("LocalBias", "seed", -1),
    ],
)
def test_settings_are_checked(name, setting, value):
    with pytest.raises(cal.BadInput, match=setting):
        RECIPES[name](variables="v", **{setting: value})


@everyone
@pytest.mark.parametrize("variables", [(), [3], 7])
def test_variables_are_names(name, variables):
    with pytest.raises(cal.BadInput, match="variables="):
        RECIPES[name](variables=variables)


@named
def test_without_covariates(name):
    with pytest.raises(cal.BadInput, match="there is no covariate at all"):
        RECIPES[name](variables="v").fit(cal.predictions([0, 1] * 50, np.linspace(0, 1, 100)))


def test_augmented_logistic_is_scikit_learns():
    """Without a ridge, log-odds and one number: the plain logistic regression on Platt's targets."""
    data, _ = rows(2_000)
    got = cal.repair.AugmentedLogistic(variables="age", ridge=0.0).fit(data)
    age = data.covariates.column("age").to_numpy()
    (c,) = got.codings  # what a map tells of numbers is rounded
    assert (c.location, c.scale) == pytest.approx((age.mean(), age.std()), rel=0.02)
    z = (age - c.location) / c.scale
    slopes, intercept = regress(np.column_stack([logit(data.p), z]), targets(data), np.ones(data.n))
    assert got.slopes + got.numbers == pytest.approx(tuple(slopes), abs=1e-5)
    assert got.intercept == pytest.approx(intercept, abs=1e-5)


def test_augmented_beta_keeps_the_order_of_scores_at_a_value():
    rng = np.random.default_rng(8)
    p, v = rng.uniform(size=2_000), rng.normal(size=2_000)
    data = cal.predictions(rng.uniform(size=2_000) < 0.8 - 0.6 * p, p, {"v": v})  # the score ranks backwards
    fitted_map = cal.repair.AugmentedBeta(variables="v").fit(data)
    assert min(fitted_map.slopes) >= 0


def test_ridge_is_a_prior_on_levels_and_leaves_the_score_alone():
    from scipy.optimize import minimize

    data, _ = rows(400)
    got = cal.repair.AugmentedLogistic(variables="city", ridge=5.0).fit(data)
    t, y, city = logit(data.p), targets(data), np.array(data.covariates.column("city").to_pylist())
    z = np.column_stack([city == "a", city == "b", city == "c"]).astype(float)

    def loss(b):
        return losses(y, b[0] + b[1] * t + z @ b[2:]).sum() + 2.5 * (b[2:] ** 2).sum()

    best = minimize(loss, np.zeros(5), tol=1e-10).x
    assert got(data).p == pytest.approx(expit(best[0] + best[1] * t + z @ best[2:]), abs=1e-4)


def test_leaves_are_told_in_words():
    data, _ = rows(4_000)
    fitted_map = cal.repair.VariableTree(variables=["age", "city"], depth=2).fit(data)
    assert len(fitted_map.leaves) == fitted_map.feature.count(-1) == 4
    assert any("age <= 5" in leaf for leaf in fitted_map.leaves)
    assert any("city is c" in leaf for leaf in fitted_map.leaves)
    assert sum(fitted_map.settings["leaf_rows"]) == 4_000
    assert sum(fitted_map.settings["leaf_events"]) == data.events
    once = cal.repair.VariableTree(variables="day", depth=1, target="outcome").fit(data)
    assert once.leaves[0].startswith("day <= 202")


def test_one_class_leaves():
    """Children have no cases: drawn to the parent's curve by default; the parent's own as published."""
    rng = np.random.default_rng(4)
    age, p = rng.uniform(0, 60, 4_000), rng.uniform(0.05, 0.6, 4_000)
    data = cal.predictions((rng.uniform(size=4_000) < p) & (age > 15), p, {"age": age})
    ours = cal.repair.VariableTree(variables="age", depth=1).fit(data)
    theirs = cal.repair.VariableTree(variables="age", depth=1, paper=True).fit(data)
    assert ours.settings["one_class_leaves"] == theirs.settings["one_class_leaves"] == 1
    child = age < 14.5  # cuts are told in steps of a fiftieth of a standard deviation
    assert ours(data).p[child].max() < 0.05
    assert theirs.slopes[1] == theirs.slopes[0]
    assert theirs(data).p[child].mean() > 0.15


def test_tree_depth_zero_is_one_curve():
    data, _ = rows()
    fitted_map = cal.repair.VariableTree(variables="age", depth=0).fit(data)
    assert fitted_map.leaves == ("everyone",)
    assert fitted_map.order == "kept"
    assert fitted_map(data).p == pytest.approx(cal.repair.Beta().fit(data)(data).p, abs=2e-3)


def test_levels_with_like_errors_share_a_leaf():
    """Eight towns, four too high and four too low, in no order of their names: one split parts them."""
    rng = np.random.default_rng(6)
    town, p = rng.integers(0, 8, 8_000), rng.uniform(0.3, 0.7, 8_000)
    low = np.isin(town, [0, 3, 5, 6])
    data = cal.predictions(
        rng.uniform(size=8_000) < p + np.where(low, -0.15, 0.15), p, {"town": np.array(list("abcdefgh"))[town]}
    )
    fitted_map = cal.repair.VariableTree(variables="town", depth=1).fit(data)
    assert sorted(fitted_map.leaves[0].removeprefix("town is ").split(" or ")) in (
        ["a", "d", "f", "g"],
        ["a", "d", "f", "g", "missing", "other"],
    )


def test_edges_follow_the_scores():
    rng = np.random.default_rng(0)
    assert edges_of(rng.uniform(size=500)) == (1e-6, 1e-6)
    tiny = 10.0 ** -rng.uniform(0, 40, 500)
    assert 1e-41 < edges_of(tiny)[0] < 1e-38
    p = np.array([0.0, 1e-300, 1e-9, 0.5, 1.0])
    one, zero = log_of(p), log_of(1 - p)
    assert np.isfinite(one).all()
    assert np.isfinite(zero).all()
    assert (np.diff(one) >= 0).all()
    assert one[3] == pytest.approx(np.log(0.5))
    assert log_odds(np.array([0.5]), (1e-6, 1e-6)) == pytest.approx([0.0])
    assert edges_of(np.zeros(3)) == (1e-6, 1e-6)


def test_penalised_fit_solves_its_equations():
    rng = np.random.default_rng(2)
    x, weight = np.column_stack([np.ones(300), rng.normal(size=(300, 3))]), rng.uniform(0.5, 2, 300)
    base = rng.normal(size=300)
    y = (rng.uniform(size=300) < expit(base + x[:, 1])).astype(float)
    t = Trial(y, weight, base, x, 1, 1, None, None)
    penalty = t.penalty(3.0, 0.5)
    assert penalty.tolist() == [1e-9, 3.0, 3.0, 6.0]
    beta = t.fitted(penalty)
    assert x.T @ (weight * (y - expit(base + x @ beta))) == pytest.approx(penalty * beta, abs=1e-4)
    without = t.fitted(t.penalty(3.0, 0.0))
    assert without[3] == 0.0
    assert float(weight @ losses(y, base + x @ beta)) < float(weight @ losses(y, base))
    assert newton_step(np.eye(2) * 2, np.ones(2), np.array([0.0, np.inf])) == pytest.approx([0.5, 0.0])
