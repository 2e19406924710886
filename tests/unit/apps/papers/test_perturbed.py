"""The perturbed score: certified rows do not choose its bandwidth, and what is certified is what is emitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.__main__ import main
from calibrant.apps.papers.command import PUBLISHED
from calibrant.errors import BadInput, NotComputable

N = 3000
RNG = np.random.default_rng(7)
P = RNG.beta(1, 2, N)
Y = (RNG.uniform(size=N) < P).astype(int)


def test_a_bandwidth_that_was_fixed_needs_no_pilot() -> None:
    found = cal.papers.perturb(cal.predictions(Y, P), bandwidth=0.01, side="upper")
    assert found.certified.all()
    assert found.certificate == cal.certify.jittered(cal.predictions(Y, P), bandwidth=0.01, side="upper")


def test_what_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 30"):
        cal.papers.perturb(cal.predictions(Y[:100], P[:100]))
    with pytest.raises(NotComputable, match="weights"):
        cal.papers.perturb(cal.predictions(Y, P, weights=np.ones(N)))
    with pytest.raises(BadInput, match="pilot"):
        cal.papers.perturb(cal.predictions(Y, P), pilot=1.0)
    with pytest.raises(BadInput, match="bandwidth"):
        cal.papers.perturb(cal.predictions(Y, P), bandwidth=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command_writes_the_score_that_was_certified(tmp_path: Path, capsys: Any, ending: str) -> None:
    file, out, jitter = tmp_path / f"log.{ending}", tmp_path / f"out.{ending}", tmp_path / "jitter.json"
    table = pa.table({"name": [f"n{i}" for i in range(N)], "p": P, "y": Y})
    if ending == "parquet":
        pq.write_table(table, file)
    else:
        table.to_pandas().to_csv(file, index=False)
    columns = ["--label", "y", "--score", "p"]
    assert main(["papers", "perturb", str(file), *columns, "-o", str(out), "-o", str(jitter), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = cal.papers.perturb(cal.read(str(file), label="y", score="p"))
    assert printed["certificate"]["interval"] == found.certificate.to_dict()["interval"]
    frame = pq.read_table(out).to_pandas() if ending == "parquet" else cal_frame(out)
    assert frame["name"].tolist() == table["name"].to_pylist()
    np.testing.assert_allclose(frame["p_perturbed"], found.scores, atol=1e-12)
    assert frame["p_certified"].tolist() == found.certified.tolist()
    tomorrow = tmp_path / f"tomorrow.{ending}"
    assert main(["apply", str(jitter), str(file), "--score", "p", "-o", str(tomorrow)]) == 0
    again = pq.read_table(tomorrow).to_pandas() if ending == "parquet" else cal_frame(tomorrow)
    np.testing.assert_allclose(again["p_repaired"], found.scores, atol=1e-12)


def cal_frame(path: Path) -> Any:
    import pandas as pd

    return pd.read_csv(path)


def test_the_command_refuses_what_it_cannot_write(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table({"p": P, "y": Y}), file)
    base = ["papers", "perturb", str(file), "--label", "y", "--score", "p"]
    assert main([*base, "-o", str(file)]) == 2
    assert main([*base, "-o", str(tmp_path / "a.csv"), "-o", str(tmp_path / "b.csv")]) == 2
    assert "one file of rows" in capsys.readouterr().err
    assert main([*base, "--missing", "drop"]) == 2
    assert not list(tmp_path.glob("*.csv"))


CLASSES = RNG.dirichlet([0.5] * 3, 1500)
OF_CLASSES = (RNG.uniform(size=(1500, 1)) > CLASSES.cumsum(axis=1)).sum(axis=1)


def test_steps_of_several_classes_are_the_fewest_that_cost_no_more() -> None:
    data = cal.multiclass_predictions(OF_CLASSES, CLASSES)
    found = cal.papers.perturb(data, loss=0.001)
    steps = found.certificate.settings["steps"]
    pilot = CLASSES[~found.certified]

    def cost(m: int) -> float:
        low = np.floor(pilot * m) / m  # the multiple above has the probability by which the mean stays
        up = (pilot - low) * m
        brier = (1.0 - up) * (low - pilot) ** 2 + up * (low + 1.0 / m - pilot) ** 2
        return float(brier.sum(axis=1).mean())

    assert cost(steps) <= 0.001 < cost(steps // 2)
    assert found.calibrator is None
    assert found.certificate.n == found.certified.sum() == 1350
    np.testing.assert_allclose(found.scores.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.scores, cal.certify.jitter_classes(CLASSES, ids=range(1500), steps=steps))


def test_labels_choose_no_steps() -> None:
    one, other = (cal.papers.perturb(cal.multiclass_predictions(y, CLASSES)) for y in (OF_CLASSES, OF_CLASSES[::-1]))
    assert one.certificate.settings["steps"] == other.certificate.settings["steps"]
    assert (one.certified == other.certified).all()


def test_what_is_refused_of_several_classes() -> None:
    data = cal.multiclass_predictions(OF_CLASSES, CLASSES)
    with pytest.raises(BadInput, match="bandwidth= is of two"):
        cal.papers.perturb(data, bandwidth=0.1)
    with pytest.raises(BadInput, match="steps= is of several"):
        cal.papers.perturb(cal.predictions(Y, P), steps=20)
    with pytest.raises(NotComputable, match=r"1,024 steps cost more than 1e-09"):
        cal.papers.perturb(data, loss=1e-9)
    with pytest.raises(BadInput, match="from 2 to 1,024"):
        cal.papers.perturb(data, steps=1)


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_the_command_writes_the_probabilities_that_were_certified(tmp_path: Path, capsys: Any, unit: float) -> None:
    file, out = tmp_path / "log.parquet", tmp_path / "out.parquet"
    names = np.array(["cat", "dog", "fox"])
    of = {f"p_{name}": CLASSES[:, k] * unit for k, name in enumerate(names)}
    pq.write_table(pa.table({"animal": names[OF_CLASSES], **of}), file)
    columns = ["--label", "animal", "--score", "p_*", *(["--percent"] if unit > 1 else [])]
    assert main(["papers", "perturb", str(file), *columns, "--steps", "16", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    found = cal.papers.perturb(cal.multiclass_predictions(OF_CLASSES, CLASSES), steps=16)
    assert printed.startswith("steps 16\nclass-wise error of the perturbed probabilities: ")
    assert f"{out}: p_cat_perturbed, p_dog_perturbed, ... and p_cat_certified" in printed.replace("\n", " ")
    frame = pq.read_table(out).to_pandas()
    emitted = frame[[f"p_{name}_perturbed" for name in names]].to_numpy() / unit
    np.testing.assert_allclose(emitted, found.scores, atol=1e-12)
    assert frame["p_cat_certified"].all()
    assert main(["audit", str(out), *columns[:3], "p_*_perturbed", *columns[4:], "--quick"]) == 0
    assert main(["audit", str(out), *columns, "--quick"]) == 0  # the pattern means the probabilities themselves


def test_no_calibrator_of_several_classes_is_written(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table({"y": OF_CLASSES, **{f"p_{k}": CLASSES[:, k] for k in range(3)}}), file)
    base = ["papers", "perturb", str(file), "--label", "y", "--score", "p_*"]
    assert main([*base, "-o", str(tmp_path / "jitter.json")]) == 2
    assert "no calibrator" in capsys.readouterr().err


def test_every_procedure_is_listed_once_with_its_number(capsys: Any) -> None:
    listed = [name for paper in PUBLISHED for name in paper.methods]
    assert sorted(listed) == sorted(set(cal.papers.__all__) - {"Perturbed"})
    assert main(["papers", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name}\n      {number}\n" in text for paper in PUBLISHED for name, number in paper.methods.items())
    page = (Path(__file__).parents[4] / "docs/concordance.md").read_text(encoding="utf-8")
    assert all(f"papers.{name}`" in page for name in listed)
