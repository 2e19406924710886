"""The estimator of scores: scikit-learn's checks with every recipe, what it fits, what it reads, what it refuses."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibrant as cal
from calibrant.repair import (
    BBQ,
    AugmentedBeta,
    AugmentedLogistic,
    Beta,
    CalibratedClassifier,
    Dirichlet,
    Groups,
    Histogram,
    Isotonic,
    Jitter,
    LocalBias,
    Multicalibrator,
    Platt,
    ProportionalMulticalibrator,
    Recalibrator,
    Rounding,
    ScalingBinning,
    Temperature,
    Trees,
    VariableTree,
)
from calibrant.repair.classifier_data import Stated

V = ["x0"]
RECIPES = (
    *(Platt(), Temperature(), Beta(), Rounding(), Jitter(), Dirichlet(), Dirichlet(strength=0.01)),
    *(f(fewest=n) for f in (Isotonic, Histogram, BBQ) for n in (1, 20)),
    *(ScalingBinning(split=False), AugmentedLogistic(variables=V), AugmentedLogistic(variables=V, ridge=0.0)),
    *(AugmentedBeta(variables=V), VariableTree(variables=V), VariableTree(variables=V, depth=1)),
    *(ProportionalMulticalibrator(variables=V), Multicalibrator(variables=V, learner=Groups())),
    Multicalibrator(variables=V, learner=Trees(most=5)),
)

# ---- What a check of scikit-learn asks that cannot hold, and why; docs/calibrated-classifier.md lists the same ----

WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
pytestmark = pytest.mark.filterwarnings("ignore:X holds scores from")  # what of one column may be either
SHARES = "weights are shares: minimum numbers of people and penalties count rows, folds are dealt by rows"
MISSING = "a missing value of a variable is a level, not an error"
FEW = "LocalBias needs at least 20 rows of each outcome"


def by_rows(recipe: Any) -> bool:
    """Tell whether a recipe counts rows: people in a bin, a penalty in rows, folds."""
    if isinstance(recipe, Dirichlet):
        return recipe.strength is None
    if isinstance(recipe, Multicalibrator):
        return isinstance(recipe.learner, Trees)
    if isinstance(recipe, (Isotonic, Histogram)):
        return recipe.fewest > 1
    if isinstance(recipe, AugmentedLogistic):
        return recipe.ridge > 0
    return isinstance(recipe, (BBQ, AugmentedBeta, ScalingBinning, LocalBias))


def expected_to_fail(estimator: Any) -> dict[str, str]:
    """Return the checks that may fail, with reasons."""
    recipe = estimator.recipe if isinstance(estimator, Recalibrator) else estimator.repair
    out = dict.fromkeys(WEIGHTS, SHARES) if by_rows(recipe) else {}
    if isinstance(estimator, Recalibrator) and getattr(recipe, "variables", None) is not None:
        out["check_estimators_nan_inf"] = MISSING
    return out


def passes(estimator: Any, check: Any) -> None:
    """Run one check of scikit-learn."""
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # runs only where SciPy's array API was switched on before it was imported; arrays here are NumPy's
    check(estimator)


@parametrize_with_checks([Recalibrator()])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    passes(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [
        Recalibrator(Isotonic(fewest=1), scale="decision"),
        Recalibrator(Dirichlet(strength=0.01)),
        Recalibrator(ProportionalMulticalibrator(variables=V)),
    ],
    expected_failed_checks=expected_to_fail,
)
def test_scikit_learn_checks_of_three_recipes(estimator: Any, check: Any) -> None:
    passes(estimator, check)


@pytest.mark.nightly
@parametrize_with_checks([Recalibrator(r) for r in RECIPES], expected_failed_checks=expected_to_fail)
def test_scikit_learn_checks_of_every_recipe(estimator: Any, check: Any) -> None:
    passes(estimator, check)


@pytest.mark.nightly
@parametrize_with_checks(
    [CalibratedClassifier(repair=r, cv=2) for r in RECIPES], expected_failed_checks=expected_to_fail
)
def test_a_classifier_with_every_recipe_passes(estimator: Any, check: Any) -> None:
    passes(estimator, check)


def test_few_checks_may_fail() -> None:
    assert {name for r in RECIPES for name in expected_to_fail(Recalibrator(r))} == {
        *WEIGHTS,
        "check_estimators_nan_inf",
    }
    exact = (Platt(), Beta(), Jitter(), Dirichlet(strength=1.0), Isotonic(fewest=1))
    assert not any(expected_to_fail(Recalibrator(r)) for r in exact)


def test_local_bias_says_why_it_fits_no_check() -> None:
    X = np.random.default_rng(0).uniform(size=(30, 2))
    with pytest.raises(cal.NotComputable, match=FEW):
        Recalibrator(LocalBias(variables=V)).fit(X, np.arange(30) % 2)


# ---- What it fits ----


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    p, town = rng.uniform(size=1500), rng.choice(["A", "B"], 1500)
    return p, town, rng.uniform(size=1500) < np.clip(p**1.5 + 0.2 * (town == "B"), 0, 1)


def test_scores_come_in_one_dimension_as_a_column_or_as_two(rows: Any) -> None:
    p, _, y = rows
    fitted = Platt().fit(cal.predictions(y, p))
    for X in (p, p.tolist(), pd.Series(p), p[:, None], np.column_stack([1 - p, p]), pd.DataFrame({"p": p})):
        model = Recalibrator().fit(X, y)
        assert model.calibrator_ == fitted
        np.testing.assert_array_equal(model.predict_proba(X)[:, 1], fitted.scores(p))
        assert model.predict(X).dtype == bool


def test_frames_hold_scores_and_variables(rows: Any) -> None:
    p, town, y = rows
    recipe = AugmentedLogistic(variables="town")
    fitted = recipe.fit(cal.predictions(y, p, {"town": town}))
    frame = pd.DataFrame({"town": town, "p": p})
    turned, polars = frame[["p", "town"]], pl.DataFrame({"town": town, "p": p})
    for X, scores in ((frame, None), (turned, "p"), (turned, 0), (polars, None), (frame.to_numpy(), "x1")):
        own = recipe if scores != "x1" else AugmentedLogistic(variables="x0")
        model = Recalibrator(own, scores=scores).fit(X, y)
        shown = model.predict_proba(X)
        np.testing.assert_allclose(shown[:, 1], fitted(cal.predictions(y, p, {"town": town})).p, rtol=1e-12)
    assert Recalibrator(recipe).fit(frame, y).feature_names_in_.tolist() == ["town", "p"]


def test_weights_and_groups_reach_the_recipe(rows: Any) -> None:
    p, town, y = rows
    weights, groups = np.where(town == "B", 2.0, 0.0), np.arange(len(p)) // 3
    kept = weights > 0
    data = cal.predictions(y[kept], p[kept], weights=weights[kept], cluster=groups[kept])
    model = Recalibrator(Isotonic()).fit(p, y, sample_weight=weights, groups=groups)
    assert model.calibrator_ == Isotonic().fit(data)
    tree = VariableTree(variables="town")
    frame = pd.DataFrame({"town": town, "p": p})
    by_cluster = tree.fit(cal.predictions(y, p, {"town": town}, cluster=groups))
    assert Recalibrator(tree).fit(frame, y, groups=groups).calibrator_ == by_cluster
    assert by_cluster.settings != tree.fit(cal.predictions(y, p, {"town": town})).settings  # groups say something


def test_several_classes_have_a_column_each() -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 800)
    y = np.array(["low", "mid", "top"])[(rng.uniform(size=(800, 1)) > p.cumsum(axis=1)).sum(axis=1)]
    weights = rng.uniform(0.5, 2.0, 800)
    data = cal.multiclass_predictions(y, p, weights=weights, classes=["low", "mid", "top"])
    one = Recalibrator(Dirichlet(strength=0.01)).fit(p, y, sample_weight=weights)
    np.testing.assert_allclose(one.predict_proba(p), Dirichlet(strength=0.01).fit(data).scores(p), atol=1e-8)
    each = Recalibrator(Isotonic()).fit(p, y)
    assert len(each.calibrators_) == 3
    assert not hasattr(each, "calibrator_")
    assert np.abs(each.predict_proba(p).sum(axis=1) - 1.0).max() < 1e-12
    assert set(each.predict(p)) == {"low", "mid", "top"}
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        Recalibrator().fit(p[:, :2], y)
    with pytest.raises(cal.BadInput, match="takes no groups"):
        one.fit(p, y, groups=np.arange(800) // 2)


def test_decision_values_are_read_as_scikit_learns_sigmoid_reads_them(rows: Any) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 3))
    y = rng.uniform(size=600) < 1 / (1 + np.exp(-2 * X[:, 0]))
    ridge = RidgeClassifier().fit(X[:300], y[:300])
    stated = ridge.decision_function(X[300:])[:, None]
    ours = Recalibrator(Platt(scale="logit")).fit(stated, y[300:])
    theirs = CalibratedClassifierCV(FrozenEstimator(ridge), ensemble=False).fit(X[300:], y[300:])
    assert ours.decision_
    np.testing.assert_allclose(ours.predict_proba(stated), theirs.predict_proba(X[300:]), atol=2e-5)


# ---- Pipelines, searches, routing ----


def test_a_pipeline_and_a_search_reach_the_settings_of_a_recipe(rows: Any) -> None:
    p, _, y = rows
    pipe = Pipeline([("halved", FunctionTransformer(lambda X: X / 2)), ("repair", Recalibrator(Isotonic()))])
    grid = {"repair__recipe__fewest": [20, 1500]}  # all rows in one step: everybody is told the same
    search = GridSearchCV(pipe, grid, scoring=cal.measure.scorer("brier"), cv=3).fit(p[:, None], y)
    assert search.best_params_ == {"repair__recipe__fewest": 20}
    assert search.best_estimator_["repair"].calibrator_.settings["fewest"] == 20
    kinds = {"repair__recipe": [Rounding(steps=2), Platt()]}
    assert GridSearchCV(pipe, kinds, scoring="neg_log_loss", cv=3).fit(p[:, None], y).best_params_ == {
        "repair__recipe": Platt()
    }


def test_a_search_changes_no_recipe_of_the_user(rows: Any) -> None:
    p, _, y = rows
    recipe = Isotonic(fewest=30)
    GridSearchCV(Recalibrator(recipe), {"recipe__fewest": [20, 40]}, cv=2).fit(p[:, None], y)
    assert recipe == Isotonic(fewest=30)


def test_metadata_is_routed(rows: Any) -> None:
    p, town, y = rows
    weights, groups = np.where(town == "B", 2.0, 1.0), np.arange(len(p)) // 3
    with config_context(enable_metadata_routing=True):
        asked = Recalibrator(Isotonic()).set_fit_request(sample_weight=True, groups=True)
        model = make_pipeline(asked).fit(p[:, None], y, sample_weight=weights, groups=groups)
        expected = Isotonic().fit(cal.predictions(y, p, weights=weights, cluster=groups))
        assert model[-1].calibrator_ == expected
        scorer = cal.measure.scorer("brier").set_score_request(sample_weight=True, groups=True)
        params = {"sample_weight": weights, "groups": groups}
        found = cross_val_score(make_pipeline(asked), p[:, None], y, scoring=scorer, cv=2, params=params)
        plain = Recalibrator(Isotonic()).set_fit_request(sample_weight=False, groups=False)
        scorer = cal.measure.scorer("brier").set_score_request(sample_weight=False, groups=False)
        other = cross_val_score(make_pipeline(plain), p[:, None], y, scoring=scorer, cv=2, params={})
        assert (found < 0).all()
        assert (found != other).all()


def test_clones_pickles_and_pages(rows: Any) -> None:
    p, _, y = rows
    model = Recalibrator(Jitter(seed=3), scale="probability").fit(p, y)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "calibrators_")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(p), model.predict_proba(p))  # noqa: S301
    np.testing.assert_array_equal(model.predict_proba(p[5:6]), model.predict_proba(p)[5:6])  # alone or among others
    assert "Jitter" in model._repr_html_()


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda p, y: Recalibrator(scale="probability").fit(3 * p[:, None], y), "did you pass logits"),
        (lambda p, y: Recalibrator().fit(p[:, None], y).predict_proba(3 * p[:, None]), "did you pass logits"),
        (lambda p, y: Recalibrator().fit(3 * p, y), "pass decision values as a column"),
        (lambda p, y: Recalibrator(LogisticRegression()).fit(p, y), "pass a recipe"),
        (lambda p, y: Recalibrator(Platt).fit(p, y), "pass a recipe"),
        (lambda p, y: Recalibrator(scale="logit").fit(p, y), "scale"),
        (lambda p, y: Recalibrator(scores=[0, 1]).fit(np.column_stack([p, p]), y), "one holds the score"),
        (lambda p, y: Recalibrator(scores=7).fit(p[:, None], y), "no column 7"),
        (lambda p, y: Recalibrator(variables=[0]).fit(p[:, None], y), "add the column of the score"),
        (lambda p, y: Recalibrator().fit(pd.DataFrame({"t": ["a"] * len(p), "p": p}), y), "scores="),
        (lambda p, y: Recalibrator().fit(p, y, groups=[1, 2]), "one for each"),
        (lambda p, y: Recalibrator().fit(p, y, sample_weight=np.zeros(len(p))), "every sample_weight is zero"),
        (lambda p, y: Recalibrator().fit(p, np.zeros(len(p))), "y has one class"),
    ],
)
def test_what_cannot_be_used_is_refused(rows: Any, fit: Callable[..., Any], message: str) -> None:
    p, _, y = rows
    with pytest.raises(cal.BadInput, match=message):
        fit(p, y)


# ---- What a column of scores is, and outliers in it ----


def test_a_column_that_may_be_either_is_asked_about_and_shapes_decide(rows: Any) -> None:
    p, _, y = rows
    p = p.ravel()
    with pytest.warns(UserWarning, match="read as probabilities.*scale='probability'.*scale='decision'"):
        assert not Recalibrator().fit(p[:, None], y).decision_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Recalibrator().fit(p, y).decision_
        assert not Recalibrator().fit(np.column_stack([1.0 - p, p]), y).decision_
        assert Recalibrator(scale="decision").fit(p[:, None], y).decision_
        assert not Recalibrator(scale="probability").fit(p[:, None], y).decision_
        assert Recalibrator().fit(4.0 * p[:, None] - 2.0, y).decision_


@pytest.mark.parametrize("outlier", [1e6, -1e6])
def test_an_outlier_does_not_spoil_decision_values(outlier: float) -> None:
    rng = np.random.default_rng(4)
    d = 2.0 * rng.normal(size=4000)
    y = rng.uniform(size=4000) < 1.0 / (1.0 + np.exp(-d))
    spoilt = np.where(np.arange(4000) == 7, outlier, d)[:, None]
    for recipe in (Platt(), Platt(scale="logit"), Isotonic()):
        ours = Recalibrator(recipe, scale="decision").fit(spoilt[:2000], y[:2000]).predict_proba(d[2000:, None])
        clean = Recalibrator(recipe, scale="decision").fit(d[:2000, None], y[:2000]).predict_proba(d[2000:, None])
        assert log_loss(y[2000:], ours) < log_loss(y[2000:], clean) + 0.005


def test_the_spread_of_decision_values_counts_weights_and_survives_ties() -> None:
    rng = np.random.default_rng(6)
    d, w = rng.normal(size=500), rng.integers(0, 4, 500)
    ones = np.ones(20_000)
    assert Stated(d, True).spread(w.astype(float)) == Stated(np.repeat(d, w), True).spread(ones[: w.sum()])
    assert Stated(rng.normal(size=20_000), True).spread(ones) == pytest.approx(1.0, abs=0.03)
    assert Stated(np.r_[np.zeros(300), 2.0, 2.0, 1e6], True).spread(ones[:303]) == pytest.approx(2.0 * 1.4826)
    assert Stated(np.ones(9), True).spread(ones[:9]) == Stated(d, False).spread(ones[:500]) == 1.0


def scores_and_labels() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    p = rng.uniform(size=400)
    return p, (rng.uniform(size=400) < p**2).astype(int)


def test_a_word_names_a_recipe() -> None:
    p, y = scores_and_labels()
    for word, recipe in (("isotonic", Isotonic()), ("sigmoid", cal.repair.Platt()), ("dirichlet", Dirichlet())):
        named = Recalibrator(word).fit(p, y)
        assert (named.predict_proba(p) == Recalibrator(recipe).fit(p, y).predict_proba(p)).all()
        assert clone(named).recipe == word
    X = p.reshape(-1, 1)
    ours = CalibratedClassifier(LogisticRegression(), "beta").fit(X, y)
    theirs = CalibratedClassifier(LogisticRegression(), method="beta").fit(X, y)
    assert ours.calibrator_ == theirs.calibrator_
    for refused, line in (
        (Recalibrator("isotonc"), "recipe='isotonc': pass 'bbq', 'beta'"),
        (Recalibrator("augmented-logistic"), r"variables that it reads: AugmentedLogistic\(variables=\[...\]\)"),
        (CalibratedClassifier(method="betta"), "method='betta': pass 'bbq'"),
        (CalibratedClassifier(repair="beta", method="beta"), "method= and repair= are one argument"),
    ):
        with pytest.raises(cal.BadInput, match=line):
            refused.fit(X, y)


def test_repaired_probabilities_are_features_of_a_frame() -> None:
    p, y = scores_and_labels()
    model = Recalibrator("beta").set_output(transform="pandas").fit(p, np.where(y, "ill", "well"))
    made = model.transform(p)
    assert isinstance(made, pd.DataFrame)
    assert made.columns.tolist() == ["probability_well"]
    assert (made["probability_well"] == model.predict_proba(p)[:, 1]).all()


def test_a_fitted_map_takes_plain_probabilities_and_gives_back_what_came() -> None:
    p, y = scores_and_labels()
    fitted = Isotonic().fit(p, y)
    assert fitted == Isotonic().fit(cal.predictions(y, p))
    plain = fitted.scores(p)
    for made in (fitted.predict(p), fitted(p), fitted.transform(p), fitted.predict(np.column_stack([1 - p, p]))):
        assert (made == plain).all()
    assert (fitted.predict_proba(p) == np.column_stack([1 - plain, plain])).all()
    series = pd.Series(p, index=np.arange(len(p)) + 9, name="risk")
    assert fitted.predict(series).equals(pd.Series(plain, index=series.index, name="risk"))
    assert fitted.predict(pl.Series("risk", p)).equals(pl.Series("risk", plain))
    several = np.random.default_rng(8).dirichlet([1, 1, 1], 300)
    of_all = Dirichlet().fit(several, np.arange(300) % 3)
    frame = pd.DataFrame(several, columns=["a", "b", "c"], index=np.arange(300) + 9)
    assert of_all.predict(frame).equals(pd.DataFrame(of_all(several), columns=frame.columns, index=frame.index))
    assert (of_all.predict(pl.DataFrame(several)).to_numpy() == of_all(several)).all()
    for wrong, line in ((0.3, "p=0.3: pass probabilities of one row or more"), ([1.2], "outside 0 to 1")):
        with pytest.raises(cal.BadInput, match=line):
            fitted.predict(wrong)
    by_age = cal.repair.AugmentedLogistic(variables=["age"]).fit(p, y, {"age": np.arange(len(p))})
    with pytest.raises(cal.BadInput, match="age"):
        by_age.predict(p)
    assert (by_age.predict(p, {"age": np.arange(len(p))}) != plain).any()
    repaired = fitted(cal.read(pd.DataFrame({"y": y, "p": p}), label="y", score="p"))
    assert isinstance(repaired.to_frame(), pd.DataFrame)
    assert repaired.library == "pandas"
