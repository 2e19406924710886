"""The strong calibration test: what it finds, what it refuses, and what its result holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome
from calibrant.search import models as residual_models
from calibrant.search.corners import BOOSTED, CORNERED, FEW, Summed, pool_of
from calibrant.search.detectors import Fits, Settings, detector_inputs, detectors_of
from calibrant.search.models import Quadratic, fit_logistic, hash_split, predicted
from calibrant.search.nulls import SALT, fixed
from calibrant.stats.cusum import Boundary, path, simulated
from calibrant.views.features import TERMS, features_of

QUICK: list[tuple[str, Any]] = [
    ("tree", DecisionTreeRegressor(max_depth=3, min_samples_leaf=10)),
    ("logistic", LogisticRegression()),
]
strong = cal.detect.strong_calibration_test


def planted(n: int = 600, off: float = 0.35, seed: int = 3, **more: Any) -> Any:
    """A model that says too little of those over 70 in ward b."""
    rng = np.random.default_rng([0xD, seed])
    age, ward = rng.uniform(20, 90, n), rng.choice(["a", "b", "c"], n)
    p = rng.uniform(0.1, 0.6, n)
    y = rng.random(n) < np.where((age > 70) & (ward == "b"), p + off, p)
    return cal.predictions(y, p, {"age": age, "ward": ward, "noise": rng.normal(size=n)}, **more)


@pytest.mark.parametrize(
    ("null", "tolerance"),
    [
        ("fixed", 0.05),
        ("split", 0.05),
        ("forward", 0.05),
        ("eprocess", 0.05),
        ("auto", 0.0),
    ],
)
def test_finds_a_planted_group_and_names_its_null(null: Any, tolerance: float) -> None:
    n, models = (800, QUICK[:1]) if null == "auto" else (1200, QUICK)
    found = strong(planted(n, 0.4), tolerance=tolerance, null=null, models=models, draws=39)
    assert found.p_value <= 0.1
    assert found.settings["null"] == ("refit" if null == "auto" else null)
    assert found.settings["requested"] == null
    assert (
        found.parts["chosen"]
        in found.parts["models"]
        == (("tree",) if null == "auto" else ("tree", "logistic", "mean"))
    )
    assert 0 < found.parts["peak_share"] <= 1
    assert len(found.parts["statistics"]) == len(found.parts["p_values"]) == len(found.parts["models"])
    assert Outcome.from_dict(found.to_dict()) == found


def test_the_default_models_find_it_and_say_which_way() -> None:
    data = planted(600)
    up, down = (strong(data, tolerance=0.05, null="fixed", alternative=a, draws=199) for a in ("greater", "less"))
    assert up.p_value <= 0.02 < down.p_value
    assert up.parts["peak_events"] > up.parts["peak_expected"]
    assert up.parts["models"] == ("boosted", "logistic", "corners", "mean")
    assert "above" in up.alternative
    assert strong(data, tolerance=0.05, null="fixed", alternative="greater", draws=199) == up
    assert len([k for k in data.cache if k[0] == "strong detectors"]) == 1  # fitted once for all of these


@pytest.mark.parametrize("detector", ["paper", "authors"])
def test_published_detectors(detector: Any) -> None:
    found = strong(planted(800), tolerance=0.05, detector=detector, models=QUICK, draws=99)
    assert found.settings["detector"] == detector
    assert found.p_value <= 0.1


@pytest.mark.parametrize(
    ("n", "tolerance", "alternative", "clusters", "used"),
    [
        (100, 0.0, "two-sided", False, "refit"),
        (100, 0.05, "greater", False, "refit"),
        (2001, 0.0, "two-sided", False, "split"),
        (2001, 0.05, "less", False, "split"),
        (100, 0.05, "two-sided", False, "fixed"),
        (100, 0.0, "two-sided", True, "split"),
        (100, 0.049, "two-sided", False, "split"),
        (2001, 0.0112, "two-sided", False, "fixed"),
        (400, 0.05, "two-sided", True, "fixed"),
        (396, 0.05, "two-sided", True, "split"),
        (100, 0.2, "less", True, "split"),
    ],
)
def test_auto(n: int, tolerance: float, alternative: Any, clusters: bool, used: str) -> None:
    data = planted(n, cluster=np.arange(n) // 4 if clusters else None)
    found = strong(data, tolerance=tolerance, alternative=alternative, models=[("ridge", Ridge())], draws=19)
    assert found.settings["null"] == used
    assert ("clusters" in found.law) == clusters
    assert "too often" not in found.law


@pytest.mark.parametrize("clusters", [None, np.arange(200) // 2])
@pytest.mark.parametrize(
    ("tolerance", "alternative", "warned"),
    [
        (0.0, "two-sided", True),
        (0.01, "two-sided", True),
        (0.1, "greater", True),
        (0.1, "two-sided", False),
    ],
)
def test_models_held_where_the_level_may_fail_say_so(
    tolerance: float, alternative: Any, warned: bool, clusters: Any
) -> None:
    data = planted(200, cluster=clusters)
    for test in (strong, cal.papers.adaptive_score_test, cal.papers.adaptive_chi_square_test):
        found = test(data, tolerance=tolerance, alternative=alternative, null="fixed", models=QUICK[:1], draws=19)
        assert ("too often" in found.law) == warned
        chosen = test(data, tolerance=tolerance, alternative=alternative, models=QUICK[:1], draws=19)
        assert "too often" not in chosen.law


def test_blocks_count_all_their_rows() -> None:
    data = planted(400, 0.4)
    forward = strong(data, tolerance=0.05, null="forward", models=QUICK, draws=39).parts
    bets = strong(data, tolerance=0.05, null="eprocess", models=QUICK)
    assert (forward["rows_tested"], bets.parts["rows_tested"], bets.settings["draws"]) == (240, 320, 0)
    for parts in (forward, bets.parts):
        assert 0 < parts["peak_rows"] <= parts["rows_beyond"] <= parts["rows_tested"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tolerance": 1.0}, ("tolerance", "1.0")),
        ({"tolerance": -0.1}, ("tolerance",)),
        ({"alternative": "up"}, ("alternative", "'up'", "'greater'")),
        ({"null": "exact"}, ("null", "'exact'")),
        ({"null": "refit", "tolerance": 0.1}, ("refit", "fixed")),
        ({"draws": 5}, ("draws", "19")),
        ({"detector": "mine"}, ("detector", "'mine'")),
        ({"min_size": 2}, ("min_size", "2")),
        ({"folds": 1}, ("folds", "1")),
        ({"seed": -1}, ("seed", "-1")),
        ({"models": [Ridge()]}, ("models", "pair")),
        ({"models": []}, ("models", "at least one")),
        ({"models": [("a", Ridge()), ("a", Ridge())]}, ("models", "once")),
        ({"models": Ridge()}, ("models", "pairs")),
        ({"models": "forest"}, ("models", "'forest'", "pairs")),
        ({"null": np.array(["fixed", "split"])}, ("null", "pass")),
        ({"models": [("a", Ridge)]}, ("models", "pair")),
        ({"models": [("a", LinearSVC())]}, ("models", "'a'", "predict_proba")),
        ({"variables": 5}, ("variables", "5")),
        ({"models": [("a", StandardScaler())]}, ("models", "pair")),
        ({"variables": ["age", "age"]}, ("'age'", "twice")),
        ({"variables": ["agee"]}, ("'agee'", "'age'")),
    ],
)
def test_refuses(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(BadInput) as caught:
        strong(planted(100), **settings)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


class Answers(Ridge):
    """A regressor whose answer is what it is told."""

    def __init__(self, answer: Any = None) -> None:
        super().__init__()
        self.answer = answer

    def predict(self, x: Any) -> Any:
        return self.answer(len(x))


@pytest.mark.parametrize("answer", [lambda n: np.full(n, np.nan), lambda n: np.zeros(3), lambda n: np.zeros((n, 2))])
def test_models_that_answer_nonsense_are_named(answer: Any) -> None:
    with pytest.raises(BadInput, match="models: 'odd' predicts no finite number"):
        strong(planted(100), null="split", models=[("odd", Answers(answer))])


def test_a_column_of_answers_is_taken() -> None:
    flat, column = (
        strong(
            planted(100), null="split", models=[("own", Answers(lambda n, d=d: np.linspace(0.1, 0.2, n).reshape(d)))]
        )
        for d in (-1, (-1, 1))
    )
    assert flat == column


@pytest.mark.filterwarnings("error")
def test_columns_too_far_apart_for_single_precision_are_fitted_in_double() -> None:
    """Plain scikit-learn finds the Hessian singular; its warning is an error here."""
    rng = np.random.default_rng(8)
    z, y = (3000 * rng.normal(size=(500, 1)) + rng.normal(size=(500, 4))).astype(np.float32), rng.integers(0, 2, 500)
    plain, double = (LogisticRegression(C=10, solver="newton-cholesky", max_iter=50, tol=1e-3) for _ in range(2))
    with pytest.raises(LinAlgWarning):
        plain.fit(z, y)
    fit_logistic(plain, z, y, {})
    double.fit(z.astype(float), y)
    assert np.allclose(plain.coef_, double.coef_, rtol=1e-6)


def test_what_is_not_computable() -> None:
    with pytest.raises(BadInput, match="list"):
        strong([0.5])
    with pytest.raises(NotComputable, match="19 rows"):
        strong(planted(19))
    with pytest.raises(NotComputable, match="5 clusters"):
        strong(planted(100, cluster=np.arange(100) // 20))
    with pytest.raises(NotComputable, match="martingale"):
        strong(planted(100, weights=np.ones(100)), null="eprocess", models=QUICK)
    with pytest.raises(NotComputable, match="clusters"):
        strong(planted(100, cluster=np.arange(100) // 4), null="refit", models=QUICK)
    with pytest.raises(NotComputable, match="3 rows"):
        strong(cal.multiclass_predictions([0, 1, 2], np.eye(3)))


def test_an_impossible_outcome_settles_it() -> None:
    p, y = np.full(60, 0.4), np.arange(60) % 2
    p[1] = 0.0
    found = strong(cal.predictions(y, p, {"x": np.arange(60.0)}), null="split", models=QUICK)
    assert found.p_value == 0.0
    assert found.parts["impossible"] == 1
    assert found.law == "exact: outcomes of probability zero under every rate within the tolerance happened: 1"
    assert (
        strong(cal.predictions(y, p, {"x": np.arange(60.0)}), null="split", models=QUICK, alternative="less").p_value
        > 0
    )


@pytest.mark.parametrize("y", [np.zeros(60), np.ones(60)])
def test_one_outcome_only_no_covariates_and_certain_scores(y: Any) -> None:
    found = strong(cal.predictions(y, np.where(y > 0, 0.97, 0.03)), tolerance=0.05, draws=19, null="fixed", folds=2)
    assert found.p_value > 0.1
    certain = strong(cal.predictions(y, y), tolerance=0.0, draws=19, null="fixed", models=QUICK)
    assert certain.p_value == 1.0


def test_weights_count() -> None:
    rng = np.random.default_rng(8)
    n, x = 800, rng.uniform(-1, 1, 800)
    p = np.full(n, 0.3)
    y = rng.random(n) < np.where(x > 0.5, 0.55, 0.3)
    heavy, light = (
        strong(
            cal.predictions(y, p, {"x": x}, weights=np.where(x > 0.5, w, 1.0)),
            tolerance=0.05,
            null="split",
            models=QUICK,
        )
        for w in (5.0, 0.01)
    )
    assert heavy.p_value <= 0.01 < light.p_value
    plain, even = (
        strong(cal.predictions(y, p, {"x": x}, weights=w), tolerance=0.05, null="split", models=QUICK[:1])
        for w in (None, np.full(n, 7.0))
    )
    assert plain.p_value == even.p_value


def test_models_without_weights_are_refused_where_there_are_weights() -> None:
    from sklearn.neighbors import KNeighborsRegressor

    with pytest.raises(BadInput, match="sample_weight"):
        strong(planted(100, weights=np.ones(100)), null="fixed", models=[("near", KNeighborsRegressor())])


def test_smallest_size_restricts_the_search() -> None:
    data = planted(600)
    free, bound = (strong(data, tolerance=0.05, null="fixed", min_size=m, models=QUICK, draws=19) for m in (0.0, 0.3))
    assert free.parts["peak_share"] < 0.3 <= bound.parts["peak_share"] or bound.statistic == 0.0
    assert bound.statistic <= free.statistic


def test_clusters_share_a_fold_and_folds_are_even() -> None:
    cluster = np.random.default_rng(1).integers(0, 40, 300)
    fold = hash_split(300, 5, 0, np.unique(cluster, return_inverse=True)[1])
    assert all(len(set(fold[cluster == c])) == 1 for c in set(cluster))
    assert set(np.bincount(hash_split(103, 5, 0))) == {20, 21}


def test_each_row_is_predicted_from_other_folds() -> None:
    """Changing the outcomes of a fold changes the predictions of every fold but that one."""
    data = planted(200)
    a = detectors_of(detector_inputs(data, Settings(models=QUICK)))
    inside = a.question.fold == 2
    other = cal.predictions(np.where(inside, 1 - data.y, data.y), data.p, data.covariates)
    b = detectors_of(detector_inputs(other, Settings(models=QUICK)))
    same = (a.g == b.g).all(axis=0)
    assert same[inside].all()
    assert not same[~inside].any()
    for m, g in enumerate(a.g):
        np.testing.assert_allclose(a.fits.predict(m, a.question.sample.x, data.p, a.fits.part), g)


# ---- boosted trees, of all rows, from 2,001 on ----


def stepped(n: int = FEW + 1) -> Any:
    """A model that says 30 % of everyone, of those over 0.75 by 40 points too little, and a category that is noise."""
    rng = np.random.default_rng([0xB0, n])
    x = rng.random(n)
    covariates = {"x": x, "ward": rng.choice(list("abcdef"), n), "z": rng.random(n)}
    return cal.predictions(rng.random(n) < np.where(x > 0.75, 0.7, 0.3), np.full(n, 0.3), covariates)


def test_the_default_models_depend_on_the_number_of_rows_alone() -> None:
    assert pool_of("default", None, FEW) is CORNERED
    assert pool_of("default", None, FEW + 1) is BOOSTED
    assert pool_of("paper", None, 100).names == pool_of("paper", None, 10**6).names
    found = strong(stepped(), draws=19, null="split")
    assert found.parts["models"] == ("boosted", "logistic", "both")
    assert found.settings["train"]["boosted"] > 10**6
    few = strong(stepped(FEW), null="split", draws=19)
    assert few.settings["train"]["corners"] == FEW
    assert few.parts["models"] == ("boosted", "logistic", "corners", "mean")


@pytest.mark.slow
def test_many_rows_are_split_between_the_same_models(monkeypatch: pytest.MonkeyPatch) -> None:
    few = strong(stepped())
    assert (few.settings["null"], few.settings["draws"]) == ("refit", 999)
    monkeypatch.setattr("calibrant.search.nulls.MANY", FEW)
    many = strong(stepped())
    assert (many.settings["null"], many.settings["draws"], many.p_value) == ("split", 999, 0.001)
    assert many.parts["models"] == few.parts["models"] == ("steps", "corners", "both")
    assert many.parts["rows_tested"] == (FEW + 1) // 2
    assert strong(stepped(), tolerance=0.001, alternative="greater").parts["models"][0] == "boosted"


@pytest.mark.slow
def test_rare_levels_do_not_hide_an_error_of_many() -> None:
    """A sample of rows knows no size of what holds one in a thousand: sizes are of all rows."""
    rng = np.random.default_rng(7)
    n = 20_000
    x, rare = rng.random(n), rng.choice(30, n, p=np.r_[0.971, np.full(29, 0.001)])
    covariates = {"x": x, "z": rng.random(n), "rare": np.array([f"k{k}" for k in rare])}
    data = cal.predictions(rng.random(n) < np.where(x > 0.9, 0.36, 0.3), np.full(n, 0.3), covariates)
    q = detector_inputs(data, Settings())
    summed = Summed.of(q.sample, np.arange(n))
    held = summed.cuts.member(summed.cuts.codes(q.sample.x.flat)).sum(axis=1)
    np.testing.assert_allclose(summed.overlaps.root, 1.0 / np.sqrt(held + 5.0), rtol=1e-5)
    root = summed.overlaps.root
    most = np.minimum(held, held[:, None]) * root * root[:, None]
    assert (summed.overlaps.scaled <= most * (1.0 + 1e-4)).all()
    assert strong(data).p_value <= 0.05


def test_boosted_trees_predict_the_whole_of_an_error() -> None:
    """Small steps cover 78 % of it, and are divided by that: a tolerance is compared with all of it."""
    q = detector_inputs(stepped(8_000), Settings())
    g = predicted(BOOSTED.fitted(q.sample, np.arange(4_000), 0), q.sample, BOOSTED, np.arange(4_000, 8_000))[0]
    high = q.sample.x.flat[4_000:, 1] > np.quantile(q.sample.x.flat[:, 1], 0.76)
    assert abs(g[high].mean() - 0.4) < 0.05
    assert abs(g[~high].mean()) < 0.05


def test_boosted_trees_are_the_same_on_one_thread_and_two() -> None:
    from threadpoolctl import threadpool_limits

    q, out = detector_inputs(stepped(), Settings()), []
    for threads in (1, 2):
        with threadpool_limits(threads):
            out.append(predicted(BOOSTED.fitted(q.sample, np.arange(q.n), 0), q.sample, BOOSTED, np.arange(q.n)))
    np.testing.assert_array_equal(*out)


def test_a_fit_sees_a_uniform_sample_of_what_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    q = detector_inputs(stepped(), Settings())
    fit = residual_models.Boosted.fit
    monkeypatch.setattr(residual_models, "TRAIN", 300)
    monkeypatch.setattr(residual_models, "VALUES", 500 * len(q.sample.x.flat_of))
    monkeypatch.setattr(residual_models.Boosted, "fit", lambda *a: (seen.append(a[2]), fit(*a))[1])
    BOOSTED.fitted(q.sample, np.arange(100, 1100), 0)
    BOOSTED.fitted(q.sample, np.arange(100, 500), 0)
    assert [len(set(rows)) for rows in seen] == [500, 400]
    assert 100 <= seen[0].min() < 150
    assert 1050 < seen[0].max() < 1100


def test_a_variable_taken_from_other_rows_changes_its_columns_only() -> None:
    x = features_of(planted(100), None)
    order = np.arange(100)[::-1]
    moved = x.altered("ward", x, order)
    for before, after, names in ((x.trees, moved.trees, x.tree_of), (x.flat, moved.flat, x.flat_of)):
        for j, name in enumerate(names):
            np.testing.assert_array_equal(after[:, j], before[order, j] if name == "ward" else before[:, j])


@pytest.mark.parametrize("pool", [CORNERED, BOOSTED, pool_of("paper", None, 400)])
def test_what_reads_a_variable_moves_as_the_whole_model_does(pool: Any) -> None:
    data = planted(400)
    q = detector_inputs(data, Settings())
    rows = np.arange(q.n)
    fits = Fits(pool=pool, fitted=(pool.fitted(q.sample, rows, 0),), part=np.zeros(q.n, dtype=np.int64))
    x, p = q.sample.x, data.p
    for name in x.variables:
        moved = x.altered(name, x, rows[::-1])
        whole, part = (
            fits.predict(len(pool.names) - 1, moved, p, fits.part, of)
            - fits.predict(len(pool.names) - 1, x, p, fits.part, of)
            for of in (None, name)
        )
        np.testing.assert_allclose(part, whole, atol=1e-8)


def test_the_logistic_regression_predicts_by_its_products() -> None:
    q = detector_inputs(planted(300), Settings())
    rows = np.arange(q.n)
    fitted = Quadratic("quadratic", 10.0).fit(q.sample, rows, 0)
    slopes = np.append(fitted.linear, fitted.square[q.sample.x.pairs[:, 0], q.sample.x.pairs[:, 1]])  # type: ignore[attr-defined]
    eta = q.sample.x.quadratic(rows) @ slopes + fitted.intercept  # type: ignore[attr-defined]
    expected = 1.0 / (1.0 + np.exp(-eta)) - q.sample.p
    np.testing.assert_allclose(fitted.predict(q.sample.x, q.sample.p, rows), expected, atol=1e-5)


def test_products_are_limited_and_counted() -> None:
    rng = np.random.default_rng(0)
    wide = {f"x{j}": rng.normal(size=50) for j in range(30)} | {"town": rng.choice(list("abcdef"), 50)}
    x = features_of(cal.predictions(rng.integers(0, 2, 50), rng.random(50), wide), None)
    assert len(x.pairs) == TERMS
    assert x.left_out > 0
    names = np.array(x.flat_of)
    assert (x.pairs[:31, 0] == x.pairs[:31, 1]).all()  # squares first
    assert not [1 for a, b in x.pairs[31:] if names[a] == names[b]]


def test_missing_values_and_odd_columns_are_used() -> None:
    rng = np.random.default_rng(5)
    n = 300
    income = np.where(rng.random(n) < 0.3, np.nan, rng.lognormal(10, 1, n))
    table = pa.table({"income": income, "town": rng.choice([f"t{i}" for i in range(60)], n), "one": np.ones(n)})
    p = np.full(n, 0.3)
    y = rng.random(n) < np.where(np.isnan(income), 0.8, 0.3)
    found = strong(cal.predictions(y, p, table), tolerance=0.05, draws=99, models=QUICK)
    assert found.p_value <= 0.02
    assert found.settings["variables"] == ("income", "town")


def test_models_join_pipelines_and_the_given_order() -> None:
    pipeline = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=500))
    found = strong(planted(300), null="fixed", tolerance=0.05, models=[("pipeline", pipeline)], draws=19)
    assert found.parts["models"] == ("pipeline",)


def test_the_law_is_that_of_the_paths() -> None:
    d = detectors_of(detector_inputs(planted(200), Settings(tolerance=0.05, models=QUICK)))
    null = simulated(d.paths, d.question.edge, d.question.ids, 199, SALT).max(axis=1)
    v = fixed(d, 199)
    assert v.p_value == (1 + (null >= v.statistic - 1e-9 * max(1.0, v.statistic)).sum()) / 200
    assert v.chosen == int(np.argmax(v.statistics))
    assert v.fits is d.fits


def test_rows_on_which_no_outcome_could_tell_are_left_out() -> None:
    p = np.array([0.98, 0.5, 0.02])
    edge = Boundary.of(p, 0.05)
    q = path(np.array([0.5, 0.5, -0.5]), edge)
    assert q.rows.tolist() == [1]


@pytest.mark.slow
def test_a_sketch_is_tested_by_its_sample_of_rows() -> None:
    rng = np.random.default_rng(4)
    age, p = rng.uniform(20, 90, 1500), rng.uniform(0.1, 0.6, 1500)
    y = (rng.random(1500) < np.where(age > 70, p + 0.3, p)).astype(int)
    table = pa.table({"y": y, "p": p, "age": age})
    found = strong(cal.sketch(table, label="y", score="p", variables=["age"], tests=True), tolerance=0.05, models=QUICK)
    assert found.p_value <= 0.01
    assert found.parts["rows_tested"] == 1500
    assert "sketch" in found.settings["reads"]
    sketch = cal.sketch(table, label="y", score="p", variables=["age"], tests=True)
    for test in (cal.papers.adaptive_score_test, cal.papers.adaptive_chi_square_test):
        assert test(sketch, tolerance=0.05, models=QUICK, draws=99).p_value <= 0.05
    assert cal.diagnose.control_chart(sketch, tolerance=0.05, models=QUICK, draws=99).settings["p_value"] == 0.01
    assert cal.diagnose.importance(sketch, tolerance=0.05, models=QUICK, repeats=2).columns["variable"][0] == "age"
    assert "age" in cal.diagnose.subgroups(sketch, tolerance=0.05, models=QUICK, method="searched").columns["rule"][0]
    with pytest.raises(NotComputable, match="tests=True"):
        strong(cal.sketch(table, label="y", score="p"))
