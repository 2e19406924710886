"""The tree of several classes: a planted error is found, what no fit leaves is refused, JSON carries the map."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant.repair import CalibratedClassifier, Calibrator, Dirichlet, VariableTree


def classes(n: int = 3_000, seed: int = 1, k: int = 3) -> tuple[Any, Any]:
    """Return rows whose probabilities are too bold below the age of 40 and too timid above, and the truth."""
    rng = np.random.default_rng([83, seed])
    p, age = rng.dirichlet(np.ones(k), n), rng.uniform(18, 90, n)
    truth = p ** np.where(age < 40, 0.4, 2.0)[:, None]
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.uniform(size=(n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    town = rng.choice(["a", "b"], n)
    return cal.multiclass_predictions(y, p, {"age": age, "town": town}), truth


@pytest.mark.slow
def test_recovers_planted_error() -> None:
    data, _ = classes(4_000)
    new, truth = classes(4_000, seed=2)
    fitted = VariableTree(variables=["age", "town"]).fit(data)
    assert fitted.settings["depth"] > 0
    assert np.abs(fitted(new).p - truth).mean() < np.abs(Dirichlet().fit(data)(new).p - truth).mean() / 4
    assert cal.measure.vece(fitted(new).top_label(), "age").value < 0.02


@pytest.mark.parametrize("settings", [{"depth": 1}, {"depth": 2, "paper": True}])
def test_it_says_its_leaves_and_json_carries_it(settings: dict[str, Any]) -> None:
    data, _ = classes(600)
    fitted = VariableTree(variables="age", **settings).fit(data)
    assert all("age" in leaf for leaf in fitted.leaves)
    assert sum(fitted.settings["leaf_rows"]) == 600
    assert len(fitted.settings["leaf_rows"]) == len(fitted.leaves)
    out = fitted(data)
    assert isinstance(out, cal.MulticlassPredictions)
    assert np.abs(out.p.sum(axis=1) - 1.0).max() < 1e-12
    again = Calibrator.from_json(fitted.to_json())
    assert again == fitted
    assert np.array_equal(again(data).p, out.p)


def test_one_split_finds_the_boundary() -> None:
    data, truth = classes(2_000)
    fitted = VariableTree(variables="age", depth=1, shrink=0.0).fit(data)
    assert fitted.threshold[0] == pytest.approx(40.0, abs=2.0)
    assert np.abs(fitted(data).p - truth).mean() < 0.025


def test_published_leaves_are_dirichlet_maps_of_their_rows() -> None:
    data, _ = classes(600)
    fitted = VariableTree(variables="age", depth=1, paper=True).fit(data)
    age = data.covariates.column("age").to_numpy()
    for side in (age <= fitted.threshold[0], age > fitted.threshold[0]):
        part = cal.multiclass_predictions(data.y[side], data.p[side])
        alone = Dirichlet(penalty="published", strength=0.001).fit(part)
        assert np.array_equal(alone.scores(part.p), fitted(data).p[side])


def test_a_tree_without_splits_is_the_map_of_everyone() -> None:
    data, _ = classes(300)
    for tree, alone in (
        (VariableTree(variables="age", depth=0), Dirichlet()),
        (VariableTree(variables="age", depth=0, paper=True), Dirichlet(penalty="published", strength=0.001)),
    ):
        fitted = tree.fit(data)
        assert fitted.leaves == ("everyone",)
        assert np.array_equal(fitted(data).p, alone.fit(data)(data).p)


def test_few_rows_have_no_tree() -> None:
    data, _ = classes(12)
    assert VariableTree(variables="age").fit(data).leaves == ("everyone",)
    one = cal.multiclass_predictions(np.zeros(30, dtype=int), np.full((30, 3), 1 / 3), {"age": np.arange(30)})
    with pytest.raises(
        cal.NotComputable, match="VariableTree cannot be fitted: every one of the 30 rows has class '0'"
    ):
        VariableTree(variables="age").fit(one)


def test_a_calibrated_model_is_left_without_a_tree() -> None:
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.ones(3), 1_000)
    y = (rng.uniform(size=(1_000, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    data = cal.multiclass_predictions(y, p, {"age": rng.uniform(18, 90, 1_000)})
    assert VariableTree(variables="age").fit(data).settings["depth"] == 0


def test_maps_keep_to_their_kind_of_rows() -> None:
    many, _ = classes(300)
    two = many.one_vs_rest(0)
    tree = VariableTree(variables="age", depth=1)
    with pytest.raises(cal.BadInput, match="this VariableTree repairs several classes"):
        tree.fit(many)(two)
    with pytest.raises(cal.BadInput, match="this VariableTree is of two classes"):
        tree.fit(two)(many)
    with pytest.raises(cal.BadInput, match="'age' is not in the data"):
        tree.fit(many)(cal.multiclass_predictions(many.y, many.p))
    with pytest.raises(cal.BadInput, match="of 3 classes"):
        tree.fit(many)(classes(30, k=4)[0])


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("matrices",), []),
        (("matrices", 0), [[0.0] * 4] * 2),
        (("matrices", 1, 0), [0.0]),
        (("edge",), 0.0),
        (("left", 0), 0),
        (("feature", 0), 7),
        (("places",), [[0.0]]),
    ],
)
def test_what_no_fit_leaves_is_refused(path: tuple[Any, ...], new: Any) -> None:
    d = json.loads(VariableTree(variables="age", depth=1).fit(classes(300)[0]).to_json())
    at = d
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = new
    with pytest.raises(cal.BadInput, match="cannot be used"):
        Calibrator.from_dict(d)


def test_a_classifier_has_all_its_classes_repaired_at_once() -> None:
    X, y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=3)
    age = np.linspace(18, 90, 400)
    model = CalibratedClassifier(GaussianNB(), VariableTree(variables="age", depth=1), cv=3)
    model.fit(X, y, covariates={"age": age})
    shown = model.predict_proba(X, covariates={"age": age})
    assert shown.shape == (400, 3)
    assert np.abs(shown.sum(axis=1) - 1.0).max() < 1e-12
    assert model.calibrator_.several


@pytest.mark.parametrize("paper", [False, True])
def test_weights_are_as_many_rows(paper: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dirichlet, "chosen", lambda *_: 0.01)  # folds are dealt by rows
    rng = np.random.default_rng(6)
    p, age = rng.dirichlet([1, 1, 1], 600), np.repeat([30.0, 60.0], 300)
    y = (rng.uniform(size=(600, 1)) > (p**2 / (p**2).sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    recipe, often = VariableTree(variables="age", depth=1, shrink=0.0, leaf=0.01, paper=paper), 1 + (y == 1)
    weighed = recipe.fit(cal.multiclass_predictions(y, p, {"age": age}, weights=often.astype(float)))
    every = np.repeat(np.arange(600), often)
    repeated = recipe.fit(cal.multiclass_predictions(y[every], p[every], {"age": age[every]}))
    assert len(weighed.leaves) == 2
    table = cal.multiclass_predictions(y, p, {"age": age})
    assert np.abs(weighed(table).p - repeated(table).p).max() < 1e-4
    assert np.abs(weighed(table).p - recipe.fit(table)(table).p).max() > 0.03


def test_files_of_scores_refuse_it(tmp_path: Any) -> None:
    from calibrant.repair.streamed import checked_calibrator

    fitted: Any = VariableTree(variables="age", depth=1).fit(classes(300)[0])
    source: Any = None
    with pytest.raises(cal.BadInput, match="this calibrator is of 3 classes: name a column each"):
        checked_calibrator(fitted, source, "score")
