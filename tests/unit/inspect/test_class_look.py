"""What a look proposes for rows of several classes, whatever their columns hold, and that an audit takes it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import calibrant as cal
from calibrant.cli import main

ROWS = 200
NAMES = np.array([f"sp{i}" for i in range(30)])


def _drawn(k: int, concentration: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    p = rng.dirichlet([concentration] * k, ROWS)
    return p, np.minimum((rng.uniform(size=(ROWS, 1)) > p.cumsum(axis=1)).sum(axis=1), k - 1)


def _columns(prefix: str, values: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    return {f"{prefix}{name}": column for name, column in zip(names, values.T, strict=True)}


def _grades() -> dict[str, object]:
    p, y = _drawn(5)
    return _columns("p_", p, list("12345")) | {"grade": y + 1}


def _words() -> dict[str, object]:
    p, y = _drawn(4)
    names = ["poor", "fair", "good", "excellent"]
    return _columns("p_", p[:, ::-1], names[::-1]) | {"quality": np.array(names)[y]}


def _logits() -> dict[str, object]:
    p, y = _drawn(4)
    return _columns("logit_", np.log(p + 1e-9) + 2.0, list("0123")) | {"label": y}


def _scores() -> dict[str, object]:
    return {name.replace("logit_", "z_"): column for name, column in _logits().items()}


def _separate() -> dict[str, object]:
    p, y = _drawn(4)
    factor = np.random.default_rng(0).uniform(0.6, 1.4, (ROWS, 1))
    return _columns("p_", p * factor, list("0123")) | {"label": y}


def _sparse() -> dict[str, object]:
    p, y = _drawn(30, 0.1)
    return _columns("p_", np.where(p > 0.05, p, np.nan), list(NAMES)) | {"species": NAMES[y]}


def _top() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p, y = _drawn(30, 0.1)
    top = np.argsort(-p, axis=1)[:, :4]
    return np.take_along_axis(p, top, axis=1), NAMES[top], NAMES[y]


def _listed() -> dict[str, object]:
    p, names, truth = _top()
    return _columns("prob_", p, list("1234")) | _columns("class_", names, list("1234")) | {"truth": truth}


@pytest.mark.parametrize(
    ("columns", "proposed"),
    [
        (_grades, "--score 'p_*' --ordered"),
        (_words, "--score 'p_*' --ordered poor,fair,good,excellent"),
        (_logits, "--score 'logit_*' --logits"),
        (_scores, "--score 'z_*' --logits"),
        (_separate, "--score 'p_*' --renormalize"),
        (_sparse, "--score 'p_*' --rest"),
        (_listed, "--score 'prob_*' --listed 'class_*'"),
    ],
)
def test_the_command_that_a_look_proposes_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: object, proposed: str
) -> None:
    file, page = tmp_path / "log.csv", tmp_path / "out.json"
    pa.csv.write_csv(pa.table(columns()), file)
    seen = cal.look(file)
    assert not seen.refusals
    assert seen.command.split(" -o ")[0].endswith(proposed)
    words = shlex.split(seen.command.replace("audit.html", str(page)))[1:]
    assert main([*words, "--quick"]) == 0, capsys.readouterr().err
    assert json.loads(page.read_text())["classes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "proposed"),
    [
        (lambda p, names: [{"class": c, "prob": q} for c, q in zip(names, p, strict=True)], "--score 'probs_*'"),
        (lambda p, names: dict(zip(names, p, strict=True)), "--score 'probs.*' --rest"),
    ],
)
def test_lists_of_pairs_and_objects_of_classes_are_seen(tmp_path: Path, field: object, proposed: str) -> None:
    p, names, truth = _top()
    file, page = tmp_path / "log.jsonl", tmp_path / "out.json"
    lines = [{"truth": y, "probs": field(q.tolist(), c.tolist())} for q, c, y in zip(p, names, truth, strict=True)]
    file.write_text("\n".join(map(json.dumps, lines)))
    seen = cal.look(file)
    assert (seen.refusals, seen.command.split(" -o ")[0].split("truth ")[1]) == ((), proposed)
    words = shlex.split(seen.command.replace("audit.html", str(page)))[1:]
    assert main([*words, "--quick"]) == 0
    assert json.loads(page.read_text())["data"]["rest_mass"] > 0.0


def test_features_that_are_numbered_like_classes_are_none() -> None:
    p, y = _drawn(4)
    seen = cal.look(_columns("x_", np.log(p) + 1.0, list("0123")) | {"label": y})
    assert not seen.candidates["classes"]


def test_a_label_that_is_no_class_is_named_and_few_missing_ones_are_not_kept() -> None:
    p, y = _drawn(3)
    names = np.array(["cat", "dog", "fox"])
    table = _columns("p_", p, list(names)) | {"label": np.where(np.arange(ROWS) == 5, "wolf", names[y])}
    assert "'wolf' in row 5" in cal.look(table).refusals[0]
    table["label"] = [None, *names[y][1:].tolist()]
    text = str(cal.look(table))
    assert "--missing drop" in text or "missing='drop'" in text
    assert "keep" not in text


@pytest.mark.slow
def test_labels_that_are_names_of_columns_are_read_by_name(tmp_path: Path) -> None:
    """Of p_1 to p_4 the label 3 is p_3, also where no row is of the last class; 0 to 3 are numbers."""
    p, y = _drawn(4)
    y = np.minimum(y, 2)
    for shift in (0, 1):
        file = tmp_path / f"{shift}.csv"
        pa.csv.write_csv(pa.table(_columns("p_", p, list("1234")) | {"y": y + shift}), file)
        record = cal.audit(file, label="y", score="p_*", quick=True)
        assert [f.events for f in record.classes] == np.bincount(y, minlength=4).tolist()
