"""Units and weights from file to rows, sketch and command: named once, checked once, kept wherever rows are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.views.people import people_of

ROWS = {
    "y": [0, 1, 1, 0, 1, 0],
    "p": [0.2, 0.7, 0.9, 0.1, 0.5, 0.3],
    "who": ["a", "a", "b", "c", "c", "c"],
    "w": [1.0, 2.0, 0.5, 1.0, 3.0, 1.0],
}
NAMED: dict[str, Any] = {"label": "y", "score": "p", "cluster": "who", "weights": "w"}
READERS = (cal.read, cal.sketch)


def test_rows_keep_them() -> None:
    rows = cal.read(ROWS, **NAMED)
    assert rows.cluster is not None
    assert rows.weights is not None
    assert rows.cluster.tolist() == ROWS["who"]
    assert rows.weights.tolist() == ROWS["w"]


def test_a_sketch_keeps_them() -> None:
    whole = cal.sketch(ROWS, **NAMED)
    rows = people_of(whole).rows
    assert rows.weights is not None
    assert rows.weights.tolist() == ROWS["w"]
    assert rows.cluster is not None
    assert len(set(rows.cluster.tolist())) == 3
    assert rows.p.tolist() == ROWS["p"]
    assert people_of(whole).holder.whose == ""
    assert people_of(rows).rows is rows
    assert (whole.parts["sample"].clusters, whole.parts["sample"].of_clusters) == (3, 3)
    assert people_of(cal.sketch(ROWS, label="y", score="p")).clusters(0) is None


def test_what_is_certified_of_some_units_says_which() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 600)
    log = {"y": (rng.uniform(size=600) < p).astype(int), "p": p, "who": np.repeat(np.arange(200), 3)}
    whole = cal.sketch(log, label="y", score="p", cluster="who")
    small = cal.Sketch(replace(whole.spec, sample=300))
    small.update(pa.RecordBatch.from_pydict(log))
    assert small.rows() is small.rows()
    assert len(set(small.rows().cluster.tolist())) == 100  # type: ignore[union-attr]
    stated = cal.certify.rounded(small)
    assert re.search(
        r"; the rows of 100 of about \d+ clusters \(who\), chosen without looking at outcomes$", stated.assumes
    )
    assert stated.settings["clusters"] == 100
    assert "the rows of" not in cal.certify.rounded(whole).assumes
    before = whole.rows()
    assert whole.merge(whole.copy(), allow_same=True).rows().n == 2 * before.n


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("column", "values", "reported"),
    [
        ("who", ["a", None, "b", "c", None, "c"], "column 'who': 2 values are missing.*First: row 1"),
        ("who", ["a", "a", "b", "c", "c", ""], "column 'who': 1 value is missing.*First: row 5"),
        ("who", [1.0, 2.0, np.nan, 1.0, 2.0, 2.0], "column 'who': 1 value is missing.*First: row 2"),
        ("w", [1.0, None, 0.5, 1.0, 3.0, 1.0], "column 'w': 1 value is missing.*First: row 1"),
        ("w", [1.0, 2.0, 0.5, 0.0, -3.0, 1.0], r"column 'w': 1 value is negative or infinite.*row 4.*\(-3\)"),
        ("w", [1.0, 2.0, np.inf, 1.0, 3.0, 1.0], r"column 'w': 1 value is negative or infinite.*row 2.*\(inf\)"),
        ("w", ["a"] * 6, "weights column 'w' holds string"),
        ("who", [{"a": 1}] * 6, "cluster column 'who' holds struct"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(reader: Any, column: str, values: list[Any], reported: str) -> None:
    with pytest.raises(cal.BadInput, match=reported):
        reader(ROWS | {column: values}, **NAMED)


@pytest.mark.parametrize(
    ("more", "reported"),
    [
        ({"cluster": "whom"}, "cluster column 'whom' is not in the data; did you mean 'who'"),
        ({"weights": "wt"}, "weights column 'wt' is not in the data"),
        ({"cluster": "y"}, "'y' is named both as the label and as the cluster"),
        ({"weights": "p"}, "'p' is named both as the score and as the weights"),
        ({"weights": "who"}, "'who' is named both as the cluster and as the weights"),
        ({"cluster": [3]}, "cluster=.*pass the name of a column"),
    ],
)
def test_columns_that_cannot_play_the_part(more: dict[str, Any], reported: str) -> None:
    for reader in READERS:
        with pytest.raises(cal.BadInput, match=reported):
            reader(ROWS, **NAMED | more)


def test_what_is_missing_is_dropped_and_counted_on_demand() -> None:
    gaps = ROWS | {"who": ["a", None, "b", "c", "c", "c"], "w": [1.0, 2.0, None, 1.0, 3.0, 1.0]}
    gaps |= {"y": [0, 1, 1, None, 1, 0]}
    rows, whole = (reader(gaps, drop_missing=True, **NAMED) for reader in READERS)
    assert (rows.n, rows.dropped, whole.n, whole.dropped) == (3, 3, 3, 3)
    assert rows.cluster.tolist() == ["a", "c", "c"]
    assert sorted(people_of(whole).rows.p.tolist()) == [0.2, 0.3, 0.5]
    large = np.array([2**60, 2**60 + 1, 0, 0, 0, 0], dtype=object)
    large[2] = None
    found = cal.predictions(ROWS["y"], ROWS["p"], cluster=pa.array(large.tolist()), drop_missing=True)
    assert (found.dropped, len(set(found.cluster.tolist()))) == (1, 3)  # whole numbers stay whole
    with pytest.raises(cal.BadInput, match="cluster is missing in 1 rows, first in row 2"):
        cal.predictions(ROWS["y"], ROWS["p"], cluster=pa.array(large.tolist()))
    with pytest.raises(cal.BadInput, match="no rows are left"):
        cal.predictions([0, 1], [0.1, 0.2], cluster=[None, None], drop_missing=True)


def test_a_unit_may_be_a_group_part_of_the_key_and_a_covariate_if_named() -> None:
    t = {"y": [0, 1] * 100, "p": [0.3, 0.6] * 100, "site": ["a", "b", "c", "d"] * 50, "i": range(200)}
    whole = cal.sketch(t, label="y", score="p", cluster="site", by="site", key=["site", "i"], variables="*")
    assert [c.name for c in whole.spec.codings] == []  # of every column, neither key nor unit is a covariate
    named = cal.sketch(t, label="y", score="p", cluster="site", variables="site")
    assert [c.name for c in named.spec.codings] == ["site"]
    assert whole.spec.group_count == 6
    assert whole.parts["sample"].clusters == 4


def test_predictions_and_sketches_bring_their_own() -> None:
    rows = cal.predictions(ROWS["y"], ROWS["p"], cluster=ROWS["who"])
    with pytest.raises(cal.BadInput, match=r"predictions bring their own.*cluster="):
        cal.sketch(rows, cluster="who")
    with pytest.raises(cal.BadInput, match=r"a sketch brings its own.*weights="):
        cal.audit(cal.sketch(ROWS, label="y", score="p"), weights="w")


def test_the_command_takes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out, other = tmp_path / "log.parquet", tmp_path / "a.sketch", tmp_path / "b.sketch"
    pq.write_table(pa.table(ROWS), file)
    columns = ["--label", "y", "--score", "p", "--cluster", "who", "--weights", "w"]
    assert main(["sketch", str(file), *columns, "--out", str(out)]) == 0
    held = cal.Sketch.from_bytes(out.read_bytes())
    assert held.spec.cluster == "who"
    assert held.spec.weights == "w"
    assert held.to_bytes() == cal.sketch(str(file), **NAMED, variables="*").to_bytes()
    assert main(["sketch", str(file), "--like", str(out), "--out", str(other), "--cluster", "who"]) == 2
    assert "leave --cluster out" in capsys.readouterr().err
    pq.write_table(pa.table(ROWS | {"p": [0.25] * 6}), tmp_path / "more.parquet")
    assert main(["sketch", str(tmp_path / "more.parquet"), "--like", str(out), "--out", str(other)]) == 0
    assert main(["merge", str(out), str(other), "--out", str(tmp_path / "both.sketch")]) == 0
    both = cal.Sketch.from_bytes((tmp_path / "both.sketch").read_bytes())
    assert (both.parts["sample"].clusters, both.n) == (3, 12)  # a unit of both files is one unit
    plain = tmp_path / "plain.sketch"
    assert main(["sketch", str(file), "--label", "y", "--score", "p", "--out", str(plain)]) == 0
    assert main(["merge", str(out), str(plain), "--out", str(tmp_path / "no.sketch")]) == 2
    capsys.readouterr()
    assert main(["look", str(file), *columns, "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert {("who", "cluster"), ("w", "weights")} <= {(c["name"], c["role"]) for c in reported["columns"]}
    assert "--cluster who --weights w" in reported["command"]
    assert main(["look", str(out)]) == 0
    assert main(["plan", "0.1", "--cluster", "who"]) == 2
    assert "--cluster, --weights, --by, --time, --event and --horizon go with --data" in capsys.readouterr().err


def test_a_look_says_what_is_wrong_with_them() -> None:
    seen = cal.look(ROWS | {"who": ["a", None, "b", "c", "c", "c"], "w": [-1.0] * 6}, **NAMED)
    assert any("column 'who': 1 value is missing" in r for r in seen.refusals)
    assert any("column 'w': 6 values are negative or infinite" in r for r in seen.refusals)


def test_repeated_rows_are_those_of_one_unit() -> None:
    """Copies in two units are two people alike; copies within one are copies."""
    t = {"y": [0, 1] * 300, "p": [0.25] * 600, "who": [i // 2 for i in range(600)]}
    assert not cal.sketch(t, label="y", score="p", cluster="who").repeats.copied


@pytest.mark.parametrize("reader", READERS)
def test_a_weight_of_0_leaves_its_row_out_and_is_counted(reader: Any) -> None:
    zero = reader(ROWS | {"w": [1.0, 0.0, 0.5, 0.0, 3.0, 1.0]}, **NAMED)
    others = {name: [v[i] for i in (0, 2, 4, 5)] for name, v in ROWS.items()}
    four = reader(others | {"w": [1.0, 0.5, 3.0, 1.0]}, **NAMED)
    assert (zero.n, zero.dropped, four.n, four.dropped) == (4, 2, 4, 0)
    if isinstance(zero, cal.Sketch):
        assert zero.dropped_for == {"weight above 0": 2}
        again = cal.Sketch.from_bytes(zero.to_bytes())
        assert (again.dropped, again.dropped_for) == (2, {"weight above 0": 2})
    else:
        assert np.array_equal(zero.p, four.p)
        assert np.array_equal(zero.weights, four.weights)
    with pytest.raises(cal.BadInput, match="no rows"):
        reader(ROWS | {"w": [0.0] * 6}, **NAMED)


def test_a_row_of_weight_0_is_no_row_without_a_label() -> None:
    y, p, w = [1, 0, None, None, 1], [0.2, 0.4, 0.6, 0.8, 0.5], [1.0, 0.0, 0.0, 2.0, 1.0]
    kept = cal.predictions(y, p, weights=w, missing="keep")
    assert (kept.n, kept.dropped, len(kept.unlabelled.p)) == (2, 2, 1)  # type: ignore[union-attr]
    assert cal.predictions(y, p, weights=w, drop_missing=True).dropped == 3


def test_an_audit_and_a_look_count_rows_of_weight_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "survey.csv"
    lines = [f"{i % 2},{(i % 97 + 1) / 99:.4f},{(i % 4) / 2}" for i in range(400)]
    file.write_text("y,p,weight\n" + "\n".join(lines))
    asked = [str(file), "--label", "y", "--score", "p", "--weights", "weight"]
    assert main(["audit", *asked, "--quick", "--variables", "none"]) in (0, 1, 3)
    printed = " ".join(capsys.readouterr().out.split())
    assert "100 of 400 rows left out, without weight above 0" in printed
    assert "--weights weight" in printed
    assert "--missing drop" not in printed
    assert main(["look", *asked]) == 0
    seen = " ".join(capsys.readouterr().out.split())
    assert "weight is 0 in 100 rows (25.0%), left out." in seen
    assert "--missing drop" not in seen


def test_a_finer_column_of_clusters_may_be_a_covariate() -> None:
    rows = ROWS | {"home": ["x", "x", "y", "y", "z", "z"], "town": ["t"] * 4 + ["u"] * 2}
    asked = {"label": "y", "score": "p", "cluster": ["home", "town"]}
    assert {c.name for c in cal.sketch(rows, **asked, variables=["home"]).spec.codings} == {"home"}  # type: ignore[arg-type]
    every = cal.sketch(rows, **asked, variables="*").spec  # type: ignore[arg-type]
    assert "home" not in {c.name for c in every.codings}
