"""Acceptance of the most probable class: by predicted class, by group, from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.errors import BadInput

NAMES = np.array(["cat", "dog", "fox"])


def drawn(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.15] * 3, n)
    y = np.minimum((rng.uniform(size=(n, 1)) > p.cumsum(axis=1)).sum(axis=1), 2)
    return NAMES[y], p, {"site": rng.choice(["n", "s"], n)}


def test_each_predicted_class_has_a_threshold_as_its_rows_alone_have_with_a_share_of_alpha() -> None:
    y, p, x = drawn()
    data = cal.multiclass_predictions(y, p, x, classes=NAMES)
    found = cal.certify.accept(data, risk=0.05, by="class").settings["groups"]
    top = p.argmax(axis=1)
    for k, name in enumerate(NAMES):
        own = cal.predictions(y[top == k] == name, p[top == k, k])
        alone = cal.certify.accept(own, risk=0.05, alpha=0.05 / 3).settings["groups"]["everyone"]
        assert found[f"class = {name}"] == alone
    curve = cal.diagnose.acceptance_curve(data, risk=0.05, by="class", points=5)
    assert set(curve.columns["group"]) == set(found)


def test_without_groups_one_threshold_is_looked_at_in_each_predicted_class() -> None:
    y, p, x = drawn()
    y = np.where((p.argmax(axis=1) == 2) & (np.arange(len(y)) % 5 == 0), "cat", y)  # of foxes a fifth more are wrong
    found = cal.certify.accept(cal.multiclass_predictions(y, p, x, classes=NAMES), risk=0.12)
    assert "class = fox" in found.settings["pool"]["above_risk"]


def test_what_is_refused() -> None:
    y, p, x = drawn(200)
    with pytest.raises(BadInput, match="end='low' is for two classes"):
        cal.certify.accept(cal.multiclass_predictions(y, p, x, classes=NAMES), end="low")
    named = cal.multiclass_predictions(y, p, {"class": x["site"]}, classes=NAMES)
    assert cal.certify.accept(named, risk=0.3, by=()).n == 200
    with pytest.raises(BadInput, match="a covariate has that name"):
        cal.certify.accept(named, by="class")


def test_the_command_takes_the_columns_of_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    y, p, x = drawn()
    file = tmp_path / "kinds.csv"
    pd.DataFrame({**{f"p_{k}": p[:, i] for i, k in enumerate(NAMES)}, "kind": y, **x}).to_csv(file, index=False)
    ask = ["accept", str(file), "--label", "kind", "--score", "p_*"]
    assert main([*ask, "--risk", "0.05", "--by", "class"]) == 0
    assert "class = fox" in capsys.readouterr().out
    assert main([*ask, "--risk", "0.0001", "--by", "class,site"]) == 3


def test_the_predicted_class_is_no_column_that_knows_the_outcome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where one class alone comes true, right and wrong follow from the prediction, which saw no label."""
    _, p, _ = drawn(400)
    frame = pd.DataFrame(p, columns=[f"p_{name}" for name in NAMES]).assign(truth="cat")
    frame.to_csv(tmp_path / "one.csv", index=False)
    words = ["accept", str(tmp_path / "one.csv"), "--label", "truth", "--score", "p_*", "--risk", "0.1"]
    assert main([*words, "--by", "class"]) == 0
    assert "class = cat" in capsys.readouterr().out
