"""Curves of each class against the rest: those of two classes, divided by their sum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant.cli import main
from calibrant.repair.judge.classes import judged_classes

R = cal.repair
PAIRS = {
    "PlattOneVsRest": (R.PlattOneVsRest(), R.Platt(scale="logit")),
    "BetaOneVsRest": (R.BetaOneVsRest(parameters="ab"), R.Beta(parameters="ab")),
    "IsotonicOneVsRest": (R.IsotonicOneVsRest(fewest=5), R.Isotonic(fewest=5)),
}


def rows(n: int = 800, power: float = 2.0, seed: int = 0, **attached: Any) -> Any:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.8, 0.8, 0.8], n)
    truth = p**power / (p**power).sum(axis=1, keepdims=True)
    y = np.minimum((rng.uniform(size=(n, 1)) > truth.cumsum(axis=1)).sum(axis=1), 2)
    return cal.multiclass_predictions(y, p, **attached)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("weighted", [False, True])
def test_each_class_has_the_curve_of_two_classes(name: str, weighted: bool) -> None:
    several, one = PAIRS[name]
    data = rows(**({"weights": np.random.default_rng(1).uniform(1, 3, 800)} if weighted else {}))
    fitted = several.fit(data)
    alone = np.column_stack([one.fit(data.one_vs_rest(k)).scores(data.p[:, k]) for k in range(3)])
    np.testing.assert_allclose(fitted.scores(data.p), alone / alone.sum(axis=1, keepdims=True), atol=1e-12)
    assert R.Calibrator.from_json(fitted.to_json()) == fitted
    assert cal.measure.log_loss(fitted(data)).value < cal.measure.log_loss(data).value


def test_isotonic_is_that_of_scikit_learn() -> None:
    data = rows()
    each = [
        IsotonicRegression(out_of_bounds="clip").fit(data.p[:, k], data.y == k).predict(data.p[:, k]) for k in (0, 1, 2)
    ]
    golden = np.column_stack(each)
    shown = R.IsotonicOneVsRest(fewest=1).fit(data).scores(data.p)
    there = golden.sum(axis=1) > 0
    np.testing.assert_allclose(shown[there], (golden / golden.sum(axis=1, keepdims=True))[there], atol=1e-9)


def test_a_row_that_every_curve_shows_zero_keeps_its_probabilities() -> None:
    fitted = R.IsotonicOneVsRest(fewest=1).fit(rows())
    d = fitted.to_dict()
    d["knots"], d["shown"] = [[0.5, 0.9]] * 3, [[0.0, 1.0]] * 3
    one = R.Calibrator.from_dict(d)
    np.testing.assert_array_equal(one.scores([[0.4, 0.3, 0.3], [0.9, 0.1, 0.0]]), [[0.4, 0.3, 0.3], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("name", PAIRS)
def test_a_class_that_never_comes_true_stays_as_it_is(name: str) -> None:
    data = rows()
    never = cal.multiclass_predictions(np.array(list("ab"))[np.minimum(data.y, 1)], data.p, classes=list("abc"))
    fitted = PAIRS[name][0].fit(never)
    assert fitted.settings["as_it_is"] == ("c",)
    np.testing.assert_allclose(fitted.shown_of(data.p)[:, 2], data.p[:, 2], atol=1e-9)


@pytest.mark.parametrize("change", [{"knots": [[0.1], [0.2]]}, {"shown": [[2.0]] * 3, "knots": [[0.1]] * 3}])
def test_what_no_fit_leaves_is_refused(change: dict[str, Any]) -> None:
    d = R.IsotonicOneVsRest().fit(rows()).to_dict()
    with pytest.raises(cal.BadInput, match="cannot be used"):
        R.Calibrator.from_dict(d | change)
    with pytest.raises(cal.BadInput, match="cannot be used"):
        R.Calibrator.from_dict(R.PlattOneVsRest().fit(rows()).to_dict() | {"curves": [[1.0, 1.0, 0.0]]})


def test_the_command_judges_them_and_a_tree_of_columns_on_other_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = rows(1000)
    site, file = np.random.default_rng(2).choice(["n", "s"], 1000), tmp_path / "kinds.csv"
    columns = {f"p_{k}": data.p[:, i] for i, k in enumerate("abc")}
    pd.DataFrame({**columns, "kind": np.array(list("abc"))[data.y], "site": site}).to_csv(file, index=False)
    ask = ["repair", str(file), "--label", "kind", "--score", "p_*"]
    methods = "isotonic-one-vs-rest,platt-one-vs-rest,beta-one-vs-rest,variable-tree"
    assert main([*ask, "--by", "site", "--method", methods, "-o", str(tmp_path / "one.json")]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("IsotonicOneVsRest", "BetaOneVsRest", "VariableTree"))
    one = R.Calibrator.from_json((tmp_path / "one.json").read_text())
    assert one.classes == 3
    with pytest.raises(cal.BadInput, match="reads covariates"):
        judged_classes(data, ["VariableTree"], steps=100, alpha=0.05, seed=0)
