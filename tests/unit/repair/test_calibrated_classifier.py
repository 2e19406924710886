"""The scikit-learn meta-estimator: its checks, what it fits, and what it refuses."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.repair import AugmentedLogistic, Beta, CalibratedClassifier, Calibrator, Dirichlet, Jitter, Platt


@parametrize_with_checks([CalibratedClassifier()])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # runs only where SciPy's array API was switched on before it was imported; arrays here are NumPy's
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([CalibratedClassifier(RidgeClassifier(), Platt(scale="raw"), cv=3, ensemble=True)])
def test_scikit_learn_checks_of_an_ensemble(estimator: Any, check: Any) -> None:
    test_scikit_learn_checks(estimator, check)


@pytest.fixture(scope="module")
def two() -> tuple[Any, Any]:
    return make_classification(1500, 6, n_informative=4, flip_y=0.2, random_state=3)


@pytest.fixture(scope="module")
def three() -> tuple[Any, Any]:
    X, y = make_classification(1500, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=4)
    return X, np.array(["low", "mid", "top"])[y]


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 80, 4000), "town": rng.choice(["A", "B"], 4000), "x": rng.normal(size=4000)}
    )
    odds = frame["x"] + 2.0 * (frame["town"] == "B") - 1.0
    return frame, np.where(rng.uniform(size=4000) < 1 / (1 + np.exp(-odds)), "yes", "no")


@dataclass(frozen=True)
class Recorder:
    """A recipe that shows what it was given."""

    seen: Any

    def fit(self, data: Any) -> Calibrator:
        self.seen.append(data)
        return Platt().fit(data)

    def __deepcopy__(self, memo: Any) -> Recorder:
        return self


def test_one_map_is_fitted_to_scores_out_of_fold(two: tuple[Any, Any]) -> None:
    X, y = two
    model = CalibratedClassifier(GaussianNB(), cv=4).fit(X, y)
    out = cross_val_predict(GaussianNB(), X, y, cv=StratifiedKFold(4), method="predict_proba")
    fitted = Platt().fit(cal.predictions(y, out))
    assert model.calibrator_ == fitted
    assert model.folds_ == 4
    alone = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], fitted.scores(alone[:, 1]), rtol=1e-12)


def test_ensemble_agrees_with_scikit_learn(two: tuple[Any, Any]) -> None:
    X, y = two
    ours = CalibratedClassifier(LinearSVC(), Platt(scale="logit"), cv=3, ensemble=True).fit(X, y)
    theirs = CalibratedClassifierCV(LinearSVC(), method="sigmoid", cv=3, ensemble=True).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-5)
    assert len(ours.repaired_) == 3
    assert not hasattr(ours, "calibrator_")
    assert not hasattr(ours, "estimator_")


def test_one_map_agrees_with_scikit_learn(two: tuple[Any, Any]) -> None:
    X, y = two
    ours = CalibratedClassifier(LinearSVC(), Platt(scale="logit"), cv=3).fit(X, y)
    theirs = CalibratedClassifierCV(LinearSVC(), method="sigmoid", cv=3, ensemble=False).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-5)


def test_one_vs_rest_agrees_with_scikit_learn(three: tuple[Any, Any]) -> None:
    X, y = three
    ours = CalibratedClassifier(LinearSVC(), Platt(scale="logit"), cv=3).fit(X, y)
    theirs = CalibratedClassifierCV(LinearSVC(), method="sigmoid", cv=3, ensemble=False).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert ours.classes_.tolist() == ["low", "mid", "top"]
    assert len(ours.repaired_[0].calibrators) == 3
    assert set(ours.predict(X)) == {"low", "mid", "top"}
    assert ours.score(X, y) > 0.45


@pytest.mark.parametrize("how", ["frozen", "word"])
def test_a_fitted_classifier_is_left_as_it_is(two: tuple[Any, Any], how: str) -> None:
    X, y = two
    forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X[:500], y[:500])
    before = pickle.dumps(forest)
    model = (
        CalibratedClassifier(FrozenEstimator(forest)) if how == "frozen" else CalibratedClassifier(forest, cv="prefit")
    )
    model.fit(X[500:], y[500:])
    assert pickle.dumps(forest) == before
    fitted = Platt().fit(cal.predictions(y[500:], forest.predict_proba(X[500:])))
    assert (model.calibrator_, model.folds_) == (fitted, 0)


def test_a_fitted_classifier_may_know_more_classes(three: tuple[Any, Any]) -> None:
    X, y = three
    nb = GaussianNB().fit(X, y)
    with pytest.raises(BadInput, match=r"class 'new'"):
        CalibratedClassifier(nb, cv="prefit").fit(X, np.where(y == "mid", "new", y))
    with pytest.raises(NotComputable, match="every one of"):
        CalibratedClassifier(nb, cv="prefit").fit(X[y != "mid"], y[y != "mid"])


@pytest.mark.parametrize("frame", ["pandas", "polars", "array"])
def test_variables_are_taken_from_the_features(people: tuple[pd.DataFrame, Any], frame: str) -> None:
    X, y = people
    X = X.assign(town=(X["town"] == "B").astype(float))
    own = {"pandas": X, "polars": pl.from_pandas(X), "array": X.to_numpy()}[frame]
    variables = ["town"] if frame != "array" else ["x1"]
    seen: list[Any] = []
    model = CalibratedClassifier(LogisticRegression(), Recorder(seen), variables=variables, cv=2).fit(own, y)
    assert seen[0].covariates.schema.names == variables
    np.testing.assert_array_equal(seen[0].covariates.column(0).to_numpy(), X["town"])
    assert model.predict_proba(own).shape == (4000, 2)
    if frame == "array":
        assert model.n_features_in_ == 3
    else:
        assert model.feature_names_in_.tolist() == ["age", "town", "x"]


def test_a_variable_that_the_classifier_ignores_repairs_it(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    base = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    plain = CalibratedClassifier(base).fit(X[:2000], y[:2000])
    model = CalibratedClassifier(base, AugmentedLogistic(variables=["town"])).fit(X[:2000], y[:2000])
    test, town = y[2000:] == "yes", (X["town"] == "B")[2000:]

    def gap(m: Any) -> float:
        e = test - m.predict_proba(X[2000:])[:, 1]
        return abs(float(e[town].mean()))

    assert gap(plain) > 0.1
    assert gap(model) < 0.04
    assert Calibrator.from_json(model.calibrator_.to_json()) == model.calibrator_


def test_variables_beside_the_features(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    seen: list[Any] = []
    model = CalibratedClassifier(GaussianNB(), Recorder(seen), cv=2, ensemble=True)
    model.fit(X[["x"]], y, covariates=X[["town"]])
    assert [s.covariates.schema.names for s in seen] == [["town"], ["town"]]
    assert model.predict(X[["x"]], covariates=X[["town"]]).shape == y.shape
    assert 0 < model.score(X[["x"]], y, covariates=X[["town"]]) < 1
    with pytest.raises(BadInput, match="pass those of these rows"):
        model.predict(X[["x"]])
    with pytest.raises(BadInput, match="not given to fit"):
        CalibratedClassifier().fit(X[["x"]], y).predict(X[["x"]], covariates=X)
    with pytest.raises(BadInput, match="no column 'height'"):
        CalibratedClassifier(variables=["height"]).fit(X[["x"]], y, covariates=X)


def test_the_recipe_may_name_the_variables(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    base = make_pipeline(make_column_transformer(("passthrough", ["x"])), GaussianNB())
    model = CalibratedClassifier(base, AugmentedLogistic(variables=["town"]), cv=2).fit(X, y)
    assert model.calibrator_.reads == ("town",)


def test_missing_and_unseen_values_of_variables(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    base = make_pipeline(make_column_transformer(("passthrough", ["x"])), GaussianNB())
    model = CalibratedClassifier(base, AugmentedLogistic(variables=["town", "age"]), cv=2).fit(X, y)
    odd = X[:3].assign(town=["C", None, "B"], age=[np.nan, 30.0, 40.0])
    p = model.predict_proba(odd)
    assert np.isfinite(p).all()


def test_weights(two: tuple[Any, Any]) -> None:
    X, y = two
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    cv = PredefinedSplit(np.arange(len(y)) % 3)
    seen: list[Any] = []
    CalibratedClassifier(GaussianNB(), Recorder(seen), cv=cv).fit(X, y, sample_weight=weights)
    assert seen[0].n == (weights > 0).sum()
    np.testing.assert_array_equal(seen[0].weights, weights[weights > 0])
    with pytest.raises(BadInput, match="takes no sample_weight"):
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=weights)
    for wrong, words in [(-np.ones(len(y)), "not negative"), (np.ones(3), "shape"), (np.zeros(len(y)), "zero")]:
        with pytest.raises(BadInput, match=words):
            CalibratedClassifier(GaussianNB()).fit(X, y, sample_weight=wrong)


def test_groups_stay_together(two: tuple[Any, Any]) -> None:
    X, y = two
    groups = np.arange(len(y)) // 10
    by_hand = CalibratedClassifier(GaussianNB(), cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    model = CalibratedClassifier(GaussianNB(), cv=GroupKFold(3))
    assert clone(model).fit(X, y, groups=groups).calibrator_ == by_hand.calibrator_
    with config_context(enable_metadata_routing=True):
        assert clone(model).fit(X, y, groups=groups).calibrator_ == by_hand.calibrator_


def test_metadata_is_routed_through_a_pipeline_and_a_search(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    w = np.random.default_rng(1).uniform(0.5, 2, len(y))
    seen: list[Any] = []
    with config_context(enable_metadata_routing=True):
        base = LogisticRegression().set_fit_request(sample_weight=True)
        inner = CalibratedClassifier(base, Recorder(seen), cv=2)
        inner.set_fit_request(covariates=True, sample_weight=True).set_score_request(
            covariates=True, sample_weight=True
        )
        pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), inner.set_predict_request(covariates=True)
        )
        search = GridSearchCV(pipe, {"calibratedclassifier__estimator__C": [0.1, 1.0]}, cv=2)
        search.fit(X[["x"]], y, covariates=X[["town"]], sample_weight=w)
        assert search.best_estimator_.predict(X[["x"]], covariates=X[["town"]]).shape == y.shape
    assert seen[-1].covariates.schema.names == ["town"]
    np.testing.assert_array_equal(seen[-1].weights, w)


def test_grid_search_over_repairs(two: tuple[Any, Any]) -> None:
    X, y = two
    grid = {"repair": [Platt(), Platt(scale="raw")], "estimator__var_smoothing": [1e-9, 1e-2]}
    search = GridSearchCV(CalibratedClassifier(GaussianNB(), cv=2), grid, scoring="neg_log_loss", cv=2).fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.predict_proba(X).shape == (1500, 2)


def test_inside_a_pipeline_and_around_one(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    around = CalibratedClassifier(make_pipeline(encode, LogisticRegression(max_iter=1000)), cv=2).fit(X, y)
    inside = make_pipeline(encode, CalibratedClassifier(LogisticRegression(max_iter=1000), cv=2)).fit(X, y)
    np.testing.assert_allclose(around.predict_proba(X), inside.predict_proba(X), atol=1e-3)


def test_pickle_and_joblib_and_clone(two: tuple[Any, Any]) -> None:
    X, y = two
    model = CalibratedClassifier(GaussianNB(), Platt(scale="raw"), cv=3, n_jobs=1).fit(X, y)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(file)):  # noqa: S301
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.calibrator_ == model.calibrator_
    assert clone(model).get_params()["repair"] == Platt(scale="raw")
    assert not hasattr(clone(model), "repaired_")


def test_several_at_once_give_the_same(two: tuple[Any, Any]) -> None:
    X, y = two
    with joblib.parallel_config("threading"):
        one, two_ = (CalibratedClassifier(GaussianNB(), n_jobs=j).fit(X, y) for j in (1, 2))
    assert one.calibrator_ == two_.calibrator_


def test_a_kernel_matrix_is_cut_both_ways(two: tuple[Any, Any]) -> None:
    X, y = two[0][:200], two[1][:200]
    ours = CalibratedClassifier(SVC(kernel="precomputed"), cv=3).fit(X @ X.T, y)
    theirs = CalibratedClassifier(SVC(kernel="linear"), cv=3).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X @ X.T), theirs.predict_proba(X), atol=1e-4)


class Loud(LinearSVC):
    """The same classifier, a million times as sure of itself."""

    def decision_function(self, X: Any) -> Any:
        return 1e6 * super().decision_function(X)


@pytest.mark.parametrize("repair", [Platt(), Dirichlet(strength=1e-3)])
def test_the_unit_of_decision_values_does_not_matter(three: tuple[Any, Any], repair: Any) -> None:
    X, y = three
    plain, loud = (CalibratedClassifier(c, repair, cv=3).fit(X, y) for c in (LinearSVC(), Loud()))
    np.testing.assert_allclose(plain.predict_proba(X), loud.predict_proba(X), atol=1e-9)


def test_dirichlet_repairs_all_classes_at_once(three: tuple[Any, Any]) -> None:
    X, y = three
    model = CalibratedClassifier(GaussianNB(), Dirichlet(strength=1e-3), cv=3).fit(X, y)
    out = cross_val_predict(GaussianNB(), X, y, cv=StratifiedKFold(3), method="predict_proba")
    fitted = Dirichlet(strength=1e-3).fit(cal.multiclass_predictions(np.searchsorted(model.classes_, y), out))
    alone = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), fitted.scores(alone), atol=1e-6)


def test_dirichlet_takes_weights_and_two_classes(three: tuple[Any, Any]) -> None:
    X, y = three
    recipe, often = Dirichlet(strength=1e-3), 1 + (y == "mid")
    given = FrozenEstimator(GaussianNB().fit(X[:500], y[:500]))
    weighed = CalibratedClassifier(given, recipe).fit(X, y, sample_weight=often)
    repeated = CalibratedClassifier(given, recipe).fit(np.repeat(X, often, axis=0), np.repeat(y, often))
    np.testing.assert_allclose(weighed.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    assert (
        np.abs(weighed.predict_proba(X) - CalibratedClassifier(given, recipe).fit(X, y).predict_proba(X)).max() > 0.01
    )
    two = CalibratedClassifier(GaussianNB(), Dirichlet(strength=0.0), cv=3).fit(X, y == "mid")
    beta = CalibratedClassifier(GaussianNB(), Beta(), cv=3).fit(X, y == "mid")  # the same family, a and b at least 0
    np.testing.assert_allclose(two.predict_proba(X), beta.predict_proba(X), atol=1e-3)
    assert Calibrator.from_json(two.calibrator_.to_json()) == two.calibrator_


@pytest.mark.parametrize("frame", ["array", "pandas", "polars", "sparse"])
def test_jitter_depends_on_the_row_and_not_on_its_place(people: tuple[pd.DataFrame, Any], frame: str) -> None:
    X, y = people
    X = X if frame in ("pandas", "polars") else X[["age", "x"]].to_numpy()
    own = {"polars": pl.from_pandas, "sparse": csr_array}.get(frame, lambda v: v)
    base = DummyClassifier()
    model = CalibratedClassifier(base, Jitter(bandwidth=2**-5), cv=2).fit(own(X), y)
    shown = model.predict_proba(own(X))[:, 1]
    np.testing.assert_array_equal(model.predict_proba(own(X[::-1]))[::-1, 1], shown)
    np.testing.assert_array_equal(model.predict_proba(own(X[7:8]))[:, 1], shown[7:8])
    assert len(np.unique(shown)) > 1000
    assert 0.03 < shown.std() < 0.06


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"repair": Platt}, "pass a recipe"),
        ({"repair": LogisticRegression()}, "pass a recipe"),
        ({"variables": ["height"]}, "no column 'height'; it has x0, x1"),
        ({"variables": [9]}, "no column 9"),
        ({"variables": ["x1", 1]}, "twice"),
        ({"cv": 1}, "two folds"),
        ({"cv": PredefinedSplit([0, 1, -1] * 500)}, "left out exactly once"),
        ({"estimator": StandardScaler()}, "predict_proba"),
    ],
)
def test_refusals(two: tuple[Any, Any], settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        CalibratedClassifier(**settings).fit(*two)


def test_folds_that_lack_a_class_are_refused(three: tuple[Any, Any]) -> None:
    X, y = three
    order = np.argsort(y)
    with pytest.raises(BadInput, match="choose folds"):
        CalibratedClassifier(GaussianNB(), cv=PredefinedSplit(np.repeat([0, 1, 2], 500))).fit(X[order], y[order])
    with pytest.raises(BadInput, match="one class"):
        CalibratedClassifier().fit(X, np.full(len(y), "a"))


@pytest.mark.slow
def test_importing_repair_stays_light() -> None:
    code = (
        "import sys, calibrant.repair as r\n"
        "assert not {'sklearn', 'scipy.stats', 'torch', 'pandas'} & set(sys.modules)\n"
        "assert 'CalibratedClassifier' in r.__all__\n"
        "r.CalibratedClassifier; assert 'sklearn' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
