"""Public functions are called as a scikit-learn program would: arrays, frames, a classifier; its names of arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.arguments import takes_names
from calibrant.data.calls import answers_of, takes_arrays
from calibrant.errors import BadInput

rng = np.random.default_rng(0)
P = rng.uniform(size=400)
Y = (rng.uniform(size=400) < P).astype(int)
SEX = np.where(rng.uniform(size=400) < 0.5, "f", "m")
W = rng.uniform(1, 2, size=400)
COVARIATES = {"sex": SEX}
DATA = cal.predictions(Y, P, COVARIATES)

call: Any  # what stands in place of the data is no argument that a type checker knows


@takes_arrays
def call(data: object, variable: object = None, *, alpha: float = 0.05, seed: int = 3, by: object = None) -> Any:
    return data, variable, alpha, seed, by


@takes_arrays
def planned(gap: float, data: object = None) -> Any:
    return gap, data


def same(a: cal.Predictions, b: cal.Predictions) -> bool:
    return bool((a.y == b.y).all() and (a.p == b.p).all()) and a.covariates == b.covariates


@pytest.mark.parametrize("column", [list, np.asarray, pd.Series, pl.Series], ids=["list", "numpy", "pandas", "polars"])
def test_labels_and_probabilities_stand_in_place_of_the_data(column: Callable[[Any], Any]) -> None:
    y, p = column(Y), column(P)
    alone = cal.predictions(Y, P)
    for made in (call(y, p), call(y_true=y, y_prob=p), call(y, y_prob=p)):
        assert same(made[0], alone)
        assert made[1:] == (None, 0.05, 3, None)
    data, variable, *_ = call(y, p, COVARIATES, "sex", alpha=0.1)
    assert same(data, DATA)
    assert variable == "sex"
    assert same(call(y, p, pd.DataFrame(COVARIATES))[0], DATA)
    assert same(call(y, p, covariates=COVARIATES)[0], DATA)
    assert same(planned(0.1, y, p)[1], alone)
    assert same(planned(0.1, y_true=y, y_prob=p)[1], alone)
    assert same(planned(gap=0.1, y_true=y, y_prob=p)[1], alone)


def test_what_belongs_to_rows_may_be_named_with_them() -> None:
    data = call(np.where(Y, "yes", "no"), P, weights=W, cluster=np.arange(400) // 2, positive="yes")[0]
    assert (data.y == Y).all()
    assert (data.weights == W).all()
    assert len(set(data.cluster)) == 200
    again = call(np.where(Y, "yes", "no"), P, sample_weight=W, pos_label="yes")[0]
    assert (again.weights == W).all()
    several = call(np.arange(400) % 3, np.full((400, 3), 1 / 3), sample_weight=W)[0]
    assert isinstance(several, cal.MulticlassPredictions)
    assert (several.weights == W).all()
    gone = np.where(np.arange(400) < 100, np.nan, Y)
    assert call(gone, P, missing="drop")[0].n == 300


def test_rows_of_series_are_joined_by_their_labels() -> None:
    y, p = pd.Series(Y, index=np.arange(400) + 7), pd.Series(P, index=np.arange(400) + 7)
    assert same(call(y, p[::-1])[0], cal.predictions(Y, P))


def test_a_classifier_brings_its_probabilities_and_x_its_covariates() -> None:
    X = pd.DataFrame({"z": P, "age": np.arange(400)})
    labels = np.where(Y, "yes", "no")
    model = LogisticRegression(max_iter=1000).fit(X, labels)
    data = call(model, X, labels)[0]
    assert (data.p == model.predict_proba(X)[:, 1]).all()
    assert (data.y == Y).all()
    assert data.covariates.column_names == ["z", "age"]
    plain = LogisticRegression(max_iter=1000).fit(X.to_numpy(), Y)
    assert call(plain, X.to_numpy(), Y)[0].covariates.column_names == ["x0", "x1"]
    assert (answers_of(model, X, labels, "no")[1] == model.predict_proba(X)[:, 0]).all()
    with pytest.raises(BadInput, match="y has the label 'maybe' in row 0"):
        call(model, X, ["maybe", *labels[1:]])


def test_groups_may_be_one_value_for_each_row() -> None:
    data, *_, by = call(cal.predictions(Y, P), by=SEX)
    assert by == "group"
    assert data.covariates.column("group").to_pylist() == SEX.tolist()
    data, *_, by = call(DATA, by=pl.Series("ward", SEX))
    assert by == "ward"
    assert data.covariates.column_names == ["sex", "ward"]
    assert call(DATA, by=["sex", "age"])[-1] == ["sex", "age"]
    assert call(DATA, by=np.array(["sex"]))[-1].tolist() == ["sex"]
    with pytest.raises(BadInput, match="row labels of its own: pass it as the covariate 'ward' of the rows"):
        call(DATA, by=pd.Series(SEX, index=np.arange(400)[::-1] * 2, name="ward"))


def test_data_and_names_pass_as_they_are() -> None:
    for inputs in ((DATA, "age"), ([0.2], "age"), (DATA, ("age", "sex")), (DATA, np.array(["age"])), (1, None)):
        assert call(*inputs)[:2] == inputs
    assert call(data=DATA)[0] is DATA
    assert planned(0.02) == (0.02, None)


def test_names_of_scikit_learn_are_taken_for_ours() -> None:
    assert call(DATA, random_state=5)[3] == 5
    assert call(DATA, random_state=None)[3] == 3
    assert call(DATA, confidence=0.9)[2] == 0.1
    with pytest.raises(BadInput, match="random_state= and seed= are one argument: pass seed= alone"):
        call(DATA, random_state=5, seed=5)
    with pytest.raises(BadInput, match="confidence=90: pass a number from"):
        call(DATA, confidence=90)
    assert cal.measure.ece(Y, P, n_bins=5).settings["bins"] == 5
    assert cal.predictions(np.where(Y, "yes", "no"), P, pos_label="yes").events == Y.sum()


@pytest.mark.parametrize(
    ("refused", "line"),
    [
        (
            lambda: call(DATA, weights=W),
            r"it belongs to the rows, .*predictions\(y_true, y_prob, weights=...\)",
        ),
        (lambda: call(DATA, sample_weight=W), r"so write calibrant.predictions\(y_true, y_prob, weights=...\)"),
        (lambda: call(DATA, groups="sex"), "write by= for people to compare, cluster= for rows that are clusters"),
        (lambda: call(DATA, n_bins=3), "leave it out, there are no bins"),
        (lambda: planned(0.1, random_state=3), "leave it out, nothing is drawn at random"),
        (lambda: call(DATA, aplha=0.1), "did you mean alpha="),
        (lambda: planned(0.1, zzz=1), "write one of gap=, data="),
        (lambda: call(DATA, None, 0.1), r"call\(\) takes 2 positional arguments but 3 were given: name .* alpha=0.1"),
        (lambda: cal.audit({"y": Y, "p": P}, prob="p"), "write score="),
        (lambda: cal.predictions(Y, P, lables=Y), "write one of|did you mean"),
    ],
)
def test_a_name_that_is_not_declared_says_what_to_write(refused: Callable[[], object], line: str) -> None:
    with pytest.raises(TypeError, match=line) as error:
        refused()
    assert "\n" not in str(error.value)


def test_labels_and_probabilities_that_were_swapped_say_so() -> None:
    for swapped in (lambda: cal.predictions(P, Y), lambda: call(P, Y), lambda: cal.repair.Isotonic().fit(Y, P)):
        with pytest.raises(BadInput, match="y_true holds probabilities, and y_prob labels: swap the two"):
            swapped()


def test_results_come_back_in_the_library_of_the_frame() -> None:
    frame = {"y": Y, "p": P, "sex": SEX}
    for library, made in ((pd, pd.DataFrame(frame)), (pl, pl.DataFrame(frame))):
        data = cal.predictions(made["y"], made["p"], made[["sex"]])
        for one in (
            data,
            cal.measure.brier(data),
            cal.measure.brier(made["y"], made["p"]),
            cal.certify.groups(data, by="sex")["sex = f"],
            cal.detect.spiegelhalter_test(data),
            cal.certify.jitter_cost(data),
        ):
            assert isinstance(one.to_frame(), library.DataFrame)
    plain = cal.measure.brier(Y, P)
    assert isinstance(plain.to_frame(), pd.DataFrame)
    assert plain.to_arrow().to_pylist()[0]["low"] == plain.low
    assert list(data.head(2)["sex"]) == SEX[:2].tolist()
    assert data.to_arrow().column_names == ["y_true", "y_prob", "sex"]


def test_a_signature_is_that_of_the_function() -> None:
    assert list(inspect.signature(cal.measure.ece).parameters)[:2] == ["data", "bins"]

    @takes_names
    def own(y_true: object, *, alpha: float = 0.05) -> object:
        return y_true, alpha

    assert own([1]) == ([1], 0.05)
    assert list(inspect.signature(own).parameters) == ["y_true", "alpha"]
