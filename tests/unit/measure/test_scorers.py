"""Measures as scikit-learn scorers: the measure's own value, its sign, weights and groups by routing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.measure.scorers import MEASURES


def rows(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([5, 0x5C0])
    X = rng.normal(size=(n, 2))
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_a_scorer_is_the_measure_with_the_sign_of_better(name: str) -> None:
    X, y = rows()
    model = LogisticRegression().fit(X, y)
    value = getattr(cal.measure, name)(cal.predictions(y, model.predict_proba(X)[:, 1])).value
    assert cal.measure.scorer(name)(model, X, y) == pytest.approx(value if MEASURES[name][1] else -value, rel=1e-12)
    assert cal.measure.scorer(MEASURES[name][0])(model, X, y) == cal.measure.scorer(name)(model, X, y)


def test_settings_reach_the_measure() -> None:
    X, y = rows()
    model = LogisticRegression().fit(X, y)
    value = cal.measure.ece(cal.predictions(y, model.predict_proba(X)[:, 1]), bins=3).value
    assert cal.measure.scorer("ece", bins=3)(model, X, y) == -value != cal.measure.scorer("ece")(model, X, y)


def test_a_search_takes_the_better_candidate() -> None:
    X, y = rows()
    grid = {"logisticregression__C": [1e-6, 1.0]}  # so strong a penalty shows everyone the same
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), grid, scoring=cal.measure.scorer("log_loss")
    )
    assert clone(search).fit(X, y).best_params_ == {"logisticregression__C": 1.0}


def test_labels_of_text_name_the_case() -> None:
    X, y = rows()
    stated = np.where(y == 1, "a paid", "b left")  # the case is not the last label
    model = LogisticRegression().fit(X, stated)
    plain = cal.measure.brier(cal.predictions(y, model.predict_proba(X)[:, 0])).value
    assert cal.measure.scorer("brier", pos_label="a paid")(model, X, stated) == pytest.approx(-plain, rel=1e-12)
    with pytest.raises(cal.BadInput):
        cal.measure.scorer("brier")(model, X, stated)


def test_weights_and_groups_are_routed() -> None:
    X, y = rows()
    weight, groups = np.random.default_rng(1).uniform(0.5, 2.0, len(y)), np.arange(len(y)) // 4
    folds = KFold(2)
    with config_context(enable_metadata_routing=True):
        asked = cal.measure.scorer("brier").set_score_request(sample_weight=True, groups=True)
        model = LogisticRegression().set_fit_request(sample_weight=False)
        params = {"sample_weight": weight, "groups": groups}
        found = cross_val_score(model, X, y, scoring=asked, cv=folds, params=params)
    expected = []
    for train, test in folds.split(X):
        p = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        own = cal.predictions(y[test], p, weights=weight[test], cluster=groups[test])
        expected.append(-cal.measure.brier(own).value)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(cal.BadInput, match="measure"):
        cal.measure.scorer("calibration_slope")
