"""A look: what columns are taken for, what is in the way, and the command to run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli.parser import build_parser
from calibrant.cli.run import main
from calibrant.data import employment_path, profile
from calibrant.data.specs import coding
from calibrant.inspect import columns as sample
from calibrant.inspect import roles
from calibrant.inspect.columns import LEAST, sampled
from calibrant.inspect.looked import KINDS, Column, Look
from calibrant.report.looked import WIDTH, html, short, typed, written
from calibrant.report.terminal import cells

ROWS = 400


@pytest.fixture
def messy(tmp_path: Path) -> str:
    """A file as people have them: per cents, ids, codes, dates as text, repeated rows, missing values."""
    rng = np.random.default_rng(5)
    lines = ["visit_id,patient_id,zip,seen,sex,age,region,readmitted,risk,unit,note"]
    for i in range(ROWS):
        risk = "" if i % 40 == 7 else f"{100 * rng.uniform():.2f}"
        readmitted = "" if i == 11 else rng.choice(["yes", "no"], p=[0.2, 0.8])
        seen = f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}"
        zip_code = f"0{2100 + i % 7}"
        region = rng.choice(["north", "NA", "south"])
        lines.append(
            f"V{i:05d},P{i // 4:05d},{zip_code},{seen},{'fm'[i % 2]},{20 + i % 60},{region},{readmitted},{risk},beds,"
        )
    lines += lines[5:25]  # twenty rows that are there twice
    path = tmp_path / "messy visits.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("yes", "no"), [("ja", "nein"), ("Oui", "Non"), ("sí", "no"), ("Tak", "Nie")])
def test_yes_and_no_of_other_languages_are_a_label(tmp_path: Path, yes: str, no: str) -> None:
    lines = [f"{'wm'[i % 2]};{i / ROWS:.4f};{yes if i % 3 else no}".replace(".", ",") for i in range(ROWS)]
    path = tmp_path / "daten.csv"
    path.write_text("\n".join(["Geschlecht;Risiko;Wiederaufnahme", *lines]), encoding="utf-8")
    seen = cal.look(str(path))
    assert (seen.label, seen.score, seen.event, seen.refusals) == ("Wiederaufnahme", "Risiko", yes, ())
    assert f"--label Wiederaufnahme --score Risiko --positive {shlex.quote(yes)} --by Geschlecht" in seen.command


def kinds(seen: Look) -> dict[str, str]:
    return {c.name: c.kind for c in seen.columns}


@pytest.mark.slow
def test_messy_file_is_told_as_it_is(messy: str) -> None:
    seen = cal.look(messy)
    assert kinds(seen) == {
        "visit_id": "id",
        "patient_id": "cluster",
        "zip": "code",
        "seen": "date",
        "sex": "category",
        "age": "number",
        "region": "category",
        "readmitted": "yes/no",
        "risk": "number",
        "unit": "constant",
        "note": "empty",
    }
    assert (seen.label, seen.score, seen.event, seen.scale) == ("readmitted", "risk", "yes", "percent")
    assert seen.rows == seen.rows_read == ROWS + 20
    assert seen.whole
    assert seen.repeats == 20
    zips, region = seen.column("zip"), seen.column("region")
    assert zips is not None
    assert region is not None
    assert {value for value, _ in zips.frequent} == {f"0210{d}" for d in range(7)}, "zeros stay"
    assert seen.dropped == {"label missing": 2, "score missing": 11}
    assert "words-for-missing" in seen.warnings
    assert {"scores-look-like-percent", "missing-label", "missing-score", "likely-id"} <= set(seen.warnings)
    assert seen.refusals == (), "the command takes care of all"


@pytest.mark.slow
def test_the_command_is_ready_to_paste(messy: str) -> None:
    words = shlex.split(cal.look(messy).command)
    assert words[:3] == ["calibrant", "audit", messy]
    a = build_parser().parse_args(words[1:])
    assert (a.label, a.score, a.positive, a.percent, a.missing) == (("readmitted",), ("risk",), "yes", True, "drop")
    assert "sex" in a.by
    assert "patient_id" not in a.by


@pytest.mark.slow
def test_the_command_runs(messy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    command = cal.look(messy).command
    assert main([*shlex.split(command)[1:], "--quick", "--json"]) in (0, 3)
    record = json.loads(capsys.readouterr().out)
    assert record["data"]["columns"]["zip"]["kind"] == "category"
    assert record["data"]["dropped"] == sum(cal.look(messy).dropped.values())


@pytest.mark.slow
def test_all_that_is_in_the_way_is_said_at_once(messy: str) -> None:
    seen = cal.look(messy, label="readmitted", score="risk", by=["sexx", "visit_id", "sex", "sex"], key="nr")
    stated = "\n".join(seen.refusals)
    for part in ("'sexx'", "'nr'", "positive", "percent", "missing"):
        assert part in stated, part
    assert len(seen.refusals) >= 5
    fixed = cal.look(messy, label="readmitted", score="risk", positive="yes", percent=True, missing="drop", by="sex")
    assert fixed.refusals == ()


@pytest.mark.slow
def test_look_refuses_what_the_audit_refuses(messy: str) -> None:
    plan: dict[str, Any] = {"label": "readmitted", "score": "risk", "positive": "yes", "by": "sex"}
    for more in ({}, {"percent": True}, {"percent": True, "missing": "drop"}):
        try:
            cal.audit(messy, **plan, **more, quick=True)
            refused = ""
        except cal.BadInput as e:
            refused = str(e)
        seen = cal.look(messy, **plan, **more)
        assert bool(refused) == bool(seen.refusals), refused
        assert not refused or refused in seen.refusals


@pytest.mark.slow
def test_a_look_never_holds_labels_against_scores() -> None:
    """Labels dealt anew among the rows leave it the same, but for rows that are equal by chance."""
    rng = np.random.default_rng(1)
    y, p = rng.integers(0, 2, 500), rng.uniform(size=500)
    first = cal.look({"y": y, "p": p, "g": ["a", "b"] * 250})
    again = cal.look({"y": rng.permutation(y), "p": p, "g": ["a", "b"] * 250})
    assert first == again


@pytest.mark.slow
def test_bundled_data() -> None:
    seen = cal.look(employment_path())
    assert (seen.label, seen.score, seen.scale, seen.refusals) == (
        "employed",
        "predicted_probability",
        "probability",
        (),
    )
    assert seen.rows == seen.rows_read == 277_677
    assert set(seen.candidates["by"][:3]) == {"sex", "age", "race"}
    assert dict(seen.label_values)[seen.event] == 139_199


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "label", "score"),
    [("bank_out", "actual", "prob_1"), ("cardio_out", "actual", "prob_1"), ("adult_out", "actual", "prob_1")],
)
def test_shared_data(shared: Path, file: str, label: str, score: str) -> None:
    seen = cal.look(shared / f"data/{file}.parquet")
    assert (seen.label, seen.score) == (label, score)
    assert "pred" in seen.candidates["output"]


def test_many_classes_are_audited_together(shared: Path) -> None:
    seen = cal.look(shared / "data/cifar_out.parquet")
    assert (seen.label, seen.score, seen.refusals) == ("", "", ())
    assert "--label y_true --score 'prob_*'" in seen.command


def test_a_label_that_stands_last_is_offered() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({f"trait {i}": rng.integers(0, 2, 200) for i in range(6)} | {"risk": rng.uniform(size=200)})
    found = cal.look(table.append_column("ill", pa.array(rng.integers(0, 2, 200))))
    assert found.candidates["label"][-1] == "ill"
    assert "ill" not in found.candidates["by"]


def test_nothing_to_audit_says_what_is_missing() -> None:
    seen = cal.look({"a": ["x", "y", "z"] * 20, "b": list(range(60))})
    assert any("label" in r for r in seen.refusals)
    assert any("score" in r for r in seen.refusals)
    assert "OUTCOME" in seen.command
    empty = cal.look({"y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())})
    assert any("no rows" in r for r in empty.refusals)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.0, 0.3, 0.9], "probability"),
        ([0.0, 30.0, 99.0], "percent"),
        ([-4.0, 0.5, 6.0], "logit"),
        ([0.0, 1.0, 1.0], "decision"),
        ([0.0, 0.5, 1.00001], "rounding"),
        ([0.0, 5.0, 2000.0], "other"),
    ],
)
def test_scale_of_scores(values: list[float], scale: str) -> None:
    assert cal.look({"y": [0, 1, 1], "p": values}, label="y", score="p").scale == scale


def test_per_cent_with_a_sign(tmp_path: Path) -> None:
    lines = [f"{i % 2},{i % 90}.5 %" for i in range(200)]
    (tmp_path / "signed.csv").write_text("\n".join(["y,risk", *lines]), encoding="utf-8")
    seen = cal.look(tmp_path / "signed.csv")
    assert (seen.score, seen.scale, seen.refusals) == ("risk", "percent", ())
    assert "--percent" in seen.command


def test_shares_that_are_taken_for_per_cent() -> None:
    seen = cal.look({"y": [0, 1] * 30, "p": np.linspace(0, 1, 60)}, label="y", score="p", percent=True)
    assert any("no score is above 1, as if they were probabilities: leave percent=True out" in r for r in seen.refusals)


@pytest.mark.parametrize(
    ("values", "case", "plain"),
    [
        ([("0", 5), ("1", 2)], "1", True),
        ([("false", 5), ("true", 2)], "true", True),
        ([("no", 2), ("yes", 5)], "yes", False),
        ([("alive", 5), ("dead", 2)], "dead", False),
        ([("not readmitted", 5), ("readmitted", 9)], "readmitted", False),
        ([("a", 5), ("b", 2)], "b", False),
    ],
)
def test_the_case(values: list[tuple[str, int]], case: str, plain: bool) -> None:
    assert roles.event_of(values) == (case, plain)


# ---- every source ----


def table() -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table(
        {
            "y": rng.integers(0, 2, 300),
            "p": rng.uniform(size=300),
            "sex": ["f", "m"] * 150,
            "age": list(range(20, 50)) * 10,
        }
    )


@pytest.mark.slow
def test_sources_look_the_same(tmp_path: Path) -> None:
    rows = table()
    pq.write_table(rows, tmp_path / "a.parquet")
    rows.to_pandas().to_csv(tmp_path / "a.csv", index=False)
    looks = [
        cal.look(s) for s in (rows, rows.to_pandas(), tmp_path / "a.parquet", tmp_path / "a.csv", rows.to_pydict())
    ]
    for seen in looks:
        assert (seen.label, seen.score, seen.rows, seen.repeats) == ("y", "p", 300, 0)
        assert [(c.name, c.kind, c.role, c.low, c.high) for c in seen.columns] == [
            (c.name, c.kind, c.role, c.low, c.high) for c in looks[0].columns
        ]
    assert looks[0].command == "calibrant.audit(data, label='y', score='p', by=['sex', 'age'])"


@pytest.mark.slow
def test_predictions_and_sketches() -> None:
    rows = table()
    data = cal.predictions(rows["y"].to_numpy(), rows["p"].to_numpy(), {"sex": rows["sex"].to_pylist()})
    assert (cal.look(data).label, cal.look(data).score) == ("y_true", "y_prob")
    whole = cal.sketch(rows, label="y", score="p", by="sex", variables="age")
    seen = cal.look(whole)
    assert seen.holds == "sketch"
    assert {c.name: c.role for c in seen.columns} == {"y": "label", "p": "score", "sex": "group", "age": "covariate"}
    assert "a sketch of 300 rows" in str(seen).replace("\u202f", " ")


def test_large_files_are_sampled_from_evenly_spread_places(tmp_path: Path) -> None:
    n = 40_000
    pq.write_table(
        pa.table({"y": np.arange(n) % 2, "p": np.linspace(0, 1, n), "late": [None] * (n - 10) + ["x"] * 10}),
        tmp_path / "long.parquet",
        row_group_size=1000,
    )
    from calibrant.data.sources.files import open_source

    rows = sampled(open_source(tmp_path / "long.parquet"), most=3200)
    assert rows.rows == n
    assert 3200 <= rows.table.num_rows < 3300
    p = rows.table["p"].to_numpy()
    assert p.min() < 0.01
    assert p.max() > 0.9
    assert sum(count for *_, count in rows.runs) == rows.table.num_rows


def test_missing_of_all_rows_where_the_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 40_000
    late = [None] * (n - 10) + ["x"] * 10
    rows = pa.table({"y": np.arange(n) % 2, "p": np.linspace(0, 1, n), "late": late})
    pq.write_table(rows, tmp_path / "long.parquet", row_group_size=1000)
    monkeypatch.setattr(sample, "MOST", 5000)
    seen = cal.look(tmp_path / "long.parquet")
    reported = seen.column("late")
    assert reported is not None
    assert not seen.whole
    assert reported.missing_in_all == n - 10
    assert "39,990 (>99.9%)" in written(seen)


@pytest.mark.slow
def test_wide_files_show_what_matters(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {f"v{i:03d}": rng.normal(size=200) for i in range(498)}
    pq.write_table(
        pa.table(columns | {"outcome": [0, 1] * 100, "score": rng.uniform(size=200)}), tmp_path / "w.parquet"
    )
    seen = cal.look(tmp_path / "w.parquet")
    assert (seen.label, seen.score, len(seen.columns)) == ("outcome", "score", 500)
    text = written(seen)
    assert "and 460 more columns" in text
    assert len(text.splitlines()) < 70
    assert LEAST <= 6_000_000 // 500


# ---- how it is told ----


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"label": "risk", "score": "sex", "by": "no"}, None])
def test_every_line_fits_eighty_columns(messy: str, how: dict[str, str] | None) -> None:
    seen = cal.look(employment_path()) if how is None else cal.look(messy, **how)
    command = {line.strip() for line in typed(seen.command)}
    for line in written(seen).splitlines():
        assert cells(line) <= WIDTH or line.strip() in command, line


@pytest.mark.slow
def test_typed_lines_are_the_command(messy: str) -> None:
    seen = cal.look(messy)
    joined = " ".join(line.removesuffix("\\") for line in typed(seen.command))
    assert shlex.split(joined) == shlex.split(seen.command)


def test_names_cannot_steer_a_terminal_or_a_page() -> None:
    evil = "\x1b[31m<script>alert(1)</script>"
    seen = cal.look({"y": [0, 1] * 30, "p": np.linspace(0, 1, 60), evil: [evil, "b"] * 30})
    for text in (str(seen), repr(seen), html(seen), short(seen)):
        assert "\x1b" not in text
    assert "<script>" not in html(seen)


def test_names_with_commas_and_blanks_are_quoted(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"y": [0, 1] * 30, "p": np.linspace(0, 1, 60), "a, b": ["x", "x", "y"] * 20}),
        tmp_path / "-odd name.parquet",
    )
    words = shlex.split(cal.look(tmp_path / "-odd name.parquet").command)
    assert build_parser().parse_args(words[1:]).by == ("a, b",)


def test_options_in_sentences_are_typed_as_lists_take_them() -> None:
    n = 200
    rows = {"y": ["no", "yes"] * (n // 2), "p": [0.1 + 0.004 * i for i in range(n)]}
    seen = cal.look({**rows, "patient,id": [f"u{i // 4:03}x" for i in range(n)]}, missing="keep")
    text = " ".join(str(seen).split())
    assert "without --cluster '\"patient,id\"' ranges assume independent rows" in text


@pytest.mark.slow
def test_it_is_brief_in_python_and_plain_for_machines(messy: str) -> None:
    seen = cal.look(messy)
    assert len(repr(seen).splitlines()) <= 10
    assert "calibrant audit" in repr(seen)
    assert Look.from_dict(json.loads(json.dumps(seen.to_dict()))) == seen
    frame = seen.to_frame()
    assert len(frame) == len(seen.columns)
    assert "<table>" in seen._repr_html_()
    with pytest.raises(AttributeError):
        seen.label = "other"  # type: ignore[misc]


@pytest.mark.slow
def test_command_line(messy: str, capsys: Any) -> None:
    assert main(["look", messy]) == 0
    assert "interpreted as" in capsys.readouterr().out
    assert main(["look", messy, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == "readmitted"
    assert main(["look", messy, "--label", "readmitted", "--score", "risk"]) == 2
    assert "In the way" in capsys.readouterr().out


@pytest.mark.slow
def test_command_line_looks_at_sketches(tmp_path: Path, capsys: Any) -> None:
    whole = cal.sketch(table(), label="y", score="p", by="sex")
    (tmp_path / "a.sketch").write_bytes(whole.to_bytes())
    assert main(["look", str(tmp_path / "a.sketch")]) == 0
    out = capsys.readouterr().out
    assert "a sketch of" in out
    command = cal.look(whole).command
    assert command == "calibrant.audit(data)", "it brings its columns: naming them is refused"
    assert f"calibrant audit {tmp_path / 'a.sketch'} -o" in out.replace(" \\\n    ", " ")
    assert "OUTCOME" not in out
    assert main(["audit", str(tmp_path / "a.sketch"), "--quick", "--json"]) == 0


def test_columns_of_the_same_name_and_strange_types() -> None:
    rows = pa.table({"y": [0, 1] * 30, "p": np.linspace(0, 1, 60), "l": [[1], [2]] * 30, "b": [b"\xff", b"x"] * 30})
    seen = cal.look(rows)
    assert kinds(seen)["l"] == "unusable"
    assert seen.label == "y"
    assert Column(name="a", kind="number") != Column(name="a", kind="id")


@pytest.mark.parametrize("form", ["xlsx", "jsonl", "orc", "npz", "arrow", "hive"])
def test_every_format(form: str, tmp_path: Path) -> None:
    rows, path = table(), tmp_path / f"rows.{form}"
    if form == "xlsx":
        pytest.importorskip("openpyxl")
        pytest.importorskip("python_calamine")
        rows.to_pandas().to_excel(path, index=False)
    elif form == "jsonl":
        rows.to_pandas().to_json(path, orient="records", lines=True)
    elif form == "orc":
        pytest.importorskip("pyarrow.orc").write_table(rows, path)
    elif form == "npz":
        np.savez(
            path, **{c: rows[c].to_numpy() if c != "sex" else np.array(rows[c].to_pylist()) for c in rows.column_names}
        )
    elif form == "arrow":
        pytest.importorskip("pyarrow.feather").write_feather(rows, path)
    else:
        pq.write_to_dataset(rows, path, partition_cols=["sex"])
    seen = cal.look(path)
    assert (seen.label, seen.score, seen.rows, seen.refusals) == ("y", "p", 300, ())
    assert kinds(seen) == {"y": "yes/no", "p": "number", "sex": "category", "age": "number"}


def test_an_audit_with_progress_looks_first_and_opens_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from calibrant.data.engines import reduce

    reported: list[str] = []
    opened: list[object] = []
    real = reduce.open_source
    monkeypatch.setattr(reduce, "open_source", lambda *a, **k: opened.append(a) or real(*a, **k))
    cal.audit(table(), label="y", score="p", quick=True, progress=lambda event_now: reported.append(event_now.step))
    assert reported[0].replace("\u202f", " ").startswith("data: 300 rows, 4 columns")
    assert len(opened) == 1


@pytest.mark.slow
def test_a_stream_is_not_spent_by_the_look() -> None:
    rows = table()
    stream = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    reported: list[str] = []
    record = cal.audit(
        stream, label="y", score="p", by="sex", quick=True, progress=lambda event_now: reported.append(event_now.step)
    )
    assert record.everyone.rows == 300


@pytest.mark.slow
def test_frames_of_a_cluster_show_their_first_rows() -> None:
    frames = pytest.importorskip("dask.dataframe")
    rows = pa.concat_tables([table()] * 40).to_pandas().assign(visit_id=[f"v{i}" for i in range(12_000)])
    seen = cal.look(frames.from_pandas(rows, npartitions=3))
    assert (seen.label, seen.score, seen.rows, seen.whole) == ("y", "p", None, False)
    assert seen.rows_read == LEAST
    assert "key='visit_id'" in seen.command
    assert seen.refusals == ()


def test_an_audit_on_a_terminal_begins_with_a_look(messy: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(["audit", messy, "--label", "readmitted", "--score", "risk", "--by", "sexx", "--quick"]) == 2
    stated = capsys.readouterr().err.replace("\u202f", " ")
    assert stated.startswith("messy visits: 420 rows, 11 columns; every row was read")
    for part in ("In the way", "'sexx'", "--positive", "--percent", "--missing drop"):
        assert part in stated
    assert "Run" not in stated


def test_rows_without_a_label_may_be_kept() -> None:
    y = [0, 1, None, 1] * 30
    log: dict[str, list[object]] = {"y": list(y), "p": [0.2, 0.7, 0.6, 0.4] * 30, "patient": list(range(60)) * 2}
    reported = " ".join(str(cal.look(log, label="y", score="p")).split())
    assert (
        "30 rows (25.0%) would be left out with --missing drop: 30 label missing. First: row 2, counting from 0."
        in reported
    )
    assert "--missing keep, in place of drop, counts the 30 rows without a label apart" in reported
    kept = cal.look(log, label="y", score="p", missing="keep")
    assert kept.refusals == ()
    reported = " ".join(str(kept).split())
    assert "30 rows (25.0%) without a label: counted apart" in reported
    assert "drop" not in reported
    assert "missing='keep'" in kept.command
    assert "30 rows (25.0%) without a label" in " ".join(
        str(cal.look(cal.sketch(log, label="y", score="p", missing="keep"))).split()
    )
    assert "--missing keep" not in str(cal.look(log, label="y", score="p", cluster="patient"))  # refused with units
    log["p"] = [None, *log["p"][1:]]
    assert "--missing keep" not in str(cal.look(log, label="y", score="p"))  # a score is missing: refused too


@pytest.mark.slow
def test_a_category_that_is_called_like_a_unit_is_offered_as_one(tmp_path: Path) -> None:
    n = 600
    log: dict[str, list[object]] = {
        "y": [i % 3 == 0 for i in range(n)],
        "p": [i % 19 / 20 + 0.02 for i in range(n)],
        "patient": [f"P{i // 6}" for i in range(n)],
        "site": ["abc"[i // 6 % 3] for i in range(n)],
        "zone": [f"Z{i // 6}" for i in range(n)],
    }
    found = cal.look(log, label="y", score="p")
    assert found.candidates["cluster"] == ("patient",)
    stated = "Rows share patient: without --cluster patient ranges assume independent rows."
    assert stated in " ".join(str(found).split())
    assert "Rows share" not in str(cal.look(log, label="y", score="p", cluster="patient"))
    # ... and the proposed call names it: it is audited by units, and looks the same
    assert "cluster='patient'" in found.command
    assert "by='site'" in found.command
    assert cal.look(log, label="y", score="p", by="site", cluster="patient").command == found.command
    # ... but not where labels are kept apart, which takes memory, nor where the call would be refused
    assert "cluster" not in cal.look(log, label="y", score="p", missing="keep").command
    assert "cluster" not in cal.look(log, label="y", score="p", key="patient").command
    log["patient"][0] = None
    assert "cluster" not in cal.look(log, label="y", score="p").command


@pytest.mark.slow
def test_two_columns_of_units_are_both_named_and_neither_is_a_group() -> None:
    rng = np.random.default_rng(4)
    person, question = rng.integers(0, 60, 900), rng.integers(0, 30, 900)
    table = {"y": rng.integers(0, 2, 900), "p": rng.uniform(size=900), "person": [f"u{i}" for i in person]}
    seen = cal.look(table | {"question": [f"q{i}" for i in question], "sex": rng.choice(["f", "m"], 900)})
    assert seen.candidates["by"] == ("sex",)
    assert {c.name: c.frequent for c in seen.columns}["person"] == ()  # no person is shown
    assert "u10" not in str(seen)
    assert "Rows share person and question" in str(seen)
    assert "With --cluster person,question both count" in " ".join(str(seen).split())


@pytest.mark.parametrize(
    ("name", "values", "cluster"),
    [
        ("patient", lambda i: i // 5, True),
        ("patient", lambda i: float(i // 5), True),
        ("person", lambda i: f"p{i % 40}", True),
        ("user_id", lambda i: i % 25, True),
        ("person", lambda i: f"p{i % 19}", False),
        ("patient_age", lambda i: 18 + i % 72, False),
        ("age_of_patient", lambda i: 18 + i % 72, False),
        ("age", lambda i: 18 + i % 72, False),
        ("year", lambda i: 1990 + i % 30, False),
        ("month", lambda i: 202_401 + i % 30, False),
        ("month_id", lambda i: 202_401 + i % 30, False),
        ("grade", lambda i: i % 25, False),
        ("grade_id", lambda i: i % 25, False),
        ("calls_per_user", lambda i: i % 30, False),
        ("account", lambda i: i % 90 - 40, False),
        ("site", lambda i: f"s{i % 30}", False),
        ("site", lambda i: f"s{i % 60}", True),
        ("clinic_patient", lambda i: i % 60, True),
    ],
)
def test_units_are_told_by_names_of_units_alone(name: str, values: Any, cluster: bool, tmp_path: Path) -> None:
    n = 600
    lines = [f"{values(i)},{i % 7 // 4},{i % 19 / 20 + 0.02:.2f}" for i in range(n)]
    (tmp_path / "log.csv").write_text("\n".join([f"{name},y,p", *lines]), encoding="utf-8")
    held = {name: [values(i) for i in range(n)], "y": [i % 7 // 4 for i in range(n)]}
    held["p"] = [round(i % 19 / 20 + 0.02, 2) for i in range(n)]
    for seen in (cal.look(tmp_path / "log.csv"), cal.look(held)):
        assert (seen.label, seen.score) == ("y", "p")
        assert seen.candidates["cluster"] == ((name,) if cluster else ())
        assert ("cluster" in seen.command) == cluster
        assert not cluster or f"by {name}" not in seen.command.replace("='", " ")


def test_the_most_frequent_spelling_is_proposed_as_the_case() -> None:
    held = {"y": ["No"] * 90 + ["Yes"] * 60 + ["yes", "maybe"], "p": np.linspace(0.01, 0.99, 152)}
    seen = cal.look(held, label="y", score="p")
    assert (seen.event, "positive='Yes'" in seen.command) == ("Yes", True)
    refused = cal.look(held, label="y", score="p", positive="Yes").refusals
    assert any("holds 'yes' next to 'Yes', which would count as a non-event" in stated for stated in refused)


def test_a_stray_score_is_no_sign_of_per_cent() -> None:
    seen = cal.look({"y": [0, 1] * 75, "p": [*np.linspace(0.01, 0.99, 149), 55.0]}, label="y", score="p")
    assert (seen.scale, "percent" in seen.command) == ("outliers", False)
    assert "the other 149 are within" in seen.refusals[0]


def test_texts_that_an_audit_takes_for_missing_labels_are_missing_and_no_class(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{'ja' if i % 3 else 'NA'},{0.1 + i / 100:.2f}" for i in range(60)]
    path.write_text("\n".join(["y,p", *rows]), encoding="utf-8")
    seen = cal.look(path)
    label = seen.column("y")
    assert label is not None
    assert (label.missing, label.frequent, seen.label_values) == (20, (("ja", 40),), (("ja", 40),))
    assert seen.dropped == {"label missing": 20}
    reported = " ".join(str(seen).split())
    assert "20 rows (33.3%)" in reported
    assert "y is ja in every row. Add rows of the other outcome" in reported
    assert "First: line 2 of a.csv." in reported
    assert "'NA'" not in reported
    assert "levels of their own" not in reported
    assert "one-class" in seen.warnings


def test_two_columns_of_one_name_are_the_cause_and_no_row_is_called_equal(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["y,p,p", *(f"{i % 2},0.{i:03},0.{i:03}" for i in range(60))]), encoding="utf-8")
    seen = cal.look(path)
    assert seen.repeats is None
    assert any(
        r.endswith("column 'p' cannot be read: several columns have this name: rename all but one")
        for r in seen.refusals
    )
    assert "equal an earlier one" not in str(seen)


@pytest.mark.slow
@pytest.mark.parametrize(("header", "which"), [("y,p,x,x", "every column that was read"), ("y,p,x,z", "every column")])
def test_copies_are_told_where_label_and_score_are_read(header: str, which: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{i % 2},0.{i:03},{i},{i}" for i in range(300)]
    path.write_text("\n".join([header, *rows, *rows]), encoding="utf-8")
    seen = cal.look(path)
    assert seen.repeats == 300
    assert "equal-rows" in seen.warnings
    assert f"300 rows (50.0%) equal an earlier one in {which}. Where" in " ".join(str(seen).split())
    assert "repeated-rows" in cal.audit(path, label="y", score="p", quick=True).data["warnings"]


@pytest.mark.parametrize("given", ["\t", "\\t", "tab"])
def test_a_tab_is_typed_in_any_shell(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["y\tp", *(f"{i % 2}\t0.{i + 1}" for i in range(90))]), encoding="utf-8")
    seen = cal.look(path, delimiter=given)
    assert r" --delimiter '\t' " in seen.command
    assert build_parser().parse_args(shlex.split(seen.command)[1:]).delimiter == r"\t"
    words = ["audit", str(path), "--label", "y", "--score", "p", "--quick", "--delimiter", given]
    main([*words, "-o", str(tmp_path / "a.json")])
    assert r"--delimiter '\t'" in capsys.readouterr().out
    assert json.loads((tmp_path / "a.json").read_text())["settings"]["form"] == {"delimiter": "\t"}
    assert cal.read(path, label="y", score="p", delimiter=given).n == 90


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "low", "asked"),
    [
        ("survey_weight", 0.2, True),
        ("weight", 40.0, True),
        ("weights", 0.2, True),
        ("sample_weight", 0.2, True),
        ("pweight", 0.2, True),
        ("SurveyWeight", 0.2, True),
        ("birth_weight", 2.0, False),
        ("weight_kg", 40.0, False),
        ("weight", -3.0, False),
    ],
)
def test_weights_are_asked_after_and_never_proposed(name: str, low: float, asked: bool) -> None:
    n = 300
    held = {"y": [i % 3 // 2 for i in range(n)], "p": [i % 19 / 20 + 0.02 for i in range(n)]}
    held |= {name: [low + i % 7 * 0.37 for i in range(n)], "sex": ["fm"[i % 2] for i in range(n)]}
    seen = cal.look(held)
    assert seen.candidates["weights"] == ((name,) if asked else ())
    text = " ".join(str(seen).split())
    assert (f"Does {name} say how many people a row stands for? Without --weights {name} every" in text) == asked
    assert "weights=" not in seen.command
    assert not asked or (seen.score == "p" and seen.candidates["by"] == ("sex",))
    if asked:
        assert "how many people" not in str(cal.look(held, label="y", score="p", weights=name))


def test_a_column_that_is_not_read_is_told_with_the_reason(tmp_path: Path) -> None:
    rows = [f"{i % 3 // 2},{i % 19 / 20 + 0.02:.2f},a,b,c" for i in range(300)]
    (tmp_path / "log.csv").write_text("\n".join(["y,p,g,g,s", *rows]), encoding="utf-8")
    columns = [pa.array(c) for c in zip(*([float(v) for v in r.split(",")[:2]] for r in rows), strict=True)]
    texts = [pa.array(list("abc") * 100)] * 3
    pq.write_table(pa.Table.from_arrays([*columns, *texts], names=["y", "p", "g", "g", "s"]), tmp_path / "log.parquet")
    for file in ("log.csv", "log.parquet"):
        seen = cal.look(tmp_path / file)
        assert kinds(seen)["g"] == "unusable"
        assert "Not read  g: several columns have this name: rename all but one." in str(seen)


def test_spaces_at_the_ends_of_values_are_shown() -> None:
    held = {"y": [0, 1, 1] * 50, "p": [0.2, 0.4, 0.9] * 50, "s": ["a", "a ", " b"] * 50}
    assert '" b", a, "a "' in str(cal.look(held))
    event = cal.look({"y": ["No", "Yes ", "Yes "] * 50, "p": held["p"]})
    assert 'y = "Yes " is the event' in str(event)


# ---- what is taken for what ----


def yes_no(seed: int, n: int = 300) -> Any:
    return np.random.default_rng(seed).integers(0, 2, n)


def uniform(seed: int, n: int = 300) -> Any:
    return np.random.default_rng(seed).uniform(0.001, 0.999, n)


@pytest.mark.parametrize(
    ("columns", "label", "score"),
    [
        ({"dead": yes_no(0), "cancer": yes_no(1), "cancer_risk": uniform(2)}, "", "cancer_risk"),
        ({"y": yes_no(0), "cancer": yes_no(1), "p_cancer": uniform(2)}, "", "p_cancer"),
        ({"dead": yes_no(0), "relapse": yes_no(1), "risk": uniform(2)}, "", "risk"),
        ({"outcome": yes_no(0), "true_class": yes_no(1), "risk": uniform(2)}, "", "risk"),
        ({"draw": yes_no(0), "win": yes_no(1), "p_win": uniform(2)}, "", "p_win"),
        ({"dead": yes_no(0), "smoker": yes_no(1), "risk": uniform(2)}, "dead", "risk"),
        ({"actual": yes_no(0), "default": yes_no(1), "prob_1": uniform(2)}, "actual", "prob_1"),
        ({"y": yes_no(0), "risk": uniform(2), "prob_1": uniform(3), "prob_0": 1 - uniform(3)}, "y", ""),
        ({"y": yes_no(0), "prob_1": uniform(3), "prob_0": 1 - uniform(3)}, "y", "prob_1"),
        ({"y": yes_no(0), "old_risk": uniform(2), "new_score": 100 * uniform(3)}, "y", ""),
        ({"y": yes_no(0), "risk": uniform(2), "score": yes_no(4) + yes_no(5) * 3}, "y", "risk"),
    ],
)
def test_where_several_fit_none_is_chosen(columns: dict[str, Any], label: str, score: str) -> None:
    seen = cal.look(columns)
    assert (seen.label, seen.score) == (label, score)
    for part, chosen in (("label", label), ("score", score)):
        listed = [r for r in seen.refusals if f"could be the {part}: pass {part}=" in r]
        assert bool(listed) == (not chosen)
        for name in seen.candidates[part] if listed else ():
            assert repr(name) in listed[0]
    assert not {*seen.candidates["label"]} & {*seen.candidates["by"]} or label


CLASSES = np.random.default_rng(4).dirichlet([4, 2, 3], 400)
WON = np.array([np.random.default_rng(i).choice(3, p=q) for i, q in enumerate(CLASSES)])
THREE = {f"p_{name}": CLASSES[:, i].round(4) for i, name in enumerate(("home", "draw", "away"))}


@pytest.mark.parametrize(
    ("columns", "truth", "how"),
    [
        (
            {name: (i == WON) * 1 for i, name in enumerate(("home", "draw", "away"))},
            ("home", "draw", "away"),
            "label=['home', 'draw', 'away'], score='p_*'",
        ),
        ({"gold": np.array(["home", "draw", "away"])[WON]}, ("gold",), "label='gold', score='p_*'"),
        ({"result": np.array(["Home", "Draw", "Away"])[WON]}, ("result",), "label='result', score='p_*'"),
        ({"label": WON}, ("label",), "label='label', score='p_*'"),
        ({}, (), "label='OUTCOME', score='p_*'"),
    ],
)
def test_columns_that_add_up_to_one_are_classes(columns: dict[str, Any], truth: tuple[str, ...], how: str) -> None:
    seen = cal.look(THREE | columns | {"hall": np.array(["a", "b"])[WON % 2]})
    assert (seen.label, seen.score, seen.candidates["classes"]) == ("", "", tuple(THREE))
    assert seen.candidates["truth"] == truth
    assert seen.candidates["by"] == ("hall",)
    assert bool(seen.refusals) != bool(truth)
    assert all("are probabilities of 3 classes" in refusal for refusal in seen.refusals)
    assert how in seen.command
    assert "of 3 classes" in str(seen)


def test_one_class_against_the_others_can_be_audited() -> None:
    rows = THREE | {name: (i == WON) * 1 for i, name in enumerate(("home", "draw", "away"))}
    seen = cal.look(rows, label="home", score="p_home")
    assert (seen.refusals, seen.candidates["by"]) == ((), ())
    assert cal.audit(rows, label="home", score="p_home", quick=True, variables=None).everyone.rows == 400


def test_log_probabilities_percent_and_digits_are_classes_too(tmp_path: Path, capsys: Any) -> None:
    logs = {f"logprobs.{k}": np.log(CLASSES[:, i]) for i, k in enumerate("ABC")} | {"gold": np.array(list("ABC"))[WON]}
    assert "label='gold', score='logprobs.*', logits=True" in cal.look(logs).command
    assert cal.look(logs).refusals == cal.look(logs).candidates["by"] == ()
    (refusal,) = cal.look({name: values for name, values in logs.items() if name != "gold"}).refusals
    assert "log-probabilities of 3 classes" in refusal
    assert "No column says which class came true: name it by label=" in refusal
    percent = {f"{k} (%)": (100 * CLASSES[:, i]).round(1) for i, k in enumerate("ABC")} | {"gold": logs["gold"]}
    assert "score=['A (%)', 'B (%)', 'C (%)'], percent=True" in cal.look(percent).command
    np.savez(tmp_path / "digits.npz", probs=CLASSES, labels=WON)
    assert main(["look", str(tmp_path / "digits.npz")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "--label labels --score 'probs_*'" in out
    assert "--by labels" not in out


GOLD = {"gold": np.array(["home", "draw", "away"])[WON]}


@pytest.mark.parametrize(
    ("columns", "stated", "how", "refused"),
    [
        (GOLD, {"label": "gold", "score": "p_*"}, "label='gold', score='p_*'", ""),
        (GOLD, {"score": ["p_away", "p_home", "p_draw"]}, "score=['p_away', 'p_home', 'p_draw']", ""),
        (GOLD, {"label": "gold"}, "label='gold', score='p_*'", ""),
        ({"y": WON}, {"label": "y", "score": "p_*"}, "label='y', score='p_*'", ""),
        (GOLD, {"label": "gold", "score": "p_*", "logits": True}, "logits=True", ""),
        (GOLD, {"label": "gold", "score": "p_*", "renormalize": True}, "renormalize=True", ""),
        (GOLD, {"label": "gold", "score": "q_*"}, "label='gold', score='p_*'", "is the pattern of no column"),
        (GOLD, {"score": ["p_home", "p_draw"]}, "score='p_*'", "score names two columns, 'p_home', 'p_draw'"),
        (GOLD | {"hall": WON % 2}, {"label": "hall", "score": "q_*"}, "", "is the pattern of no column"),
        (GOLD, {"label": "gold", "score": "p_*", "percent": True}, "percent=True", "so leave percent=True out"),
    ],
)
def test_classes_that_are_named_are_audited_together(columns: Any, stated: Any, how: str, refused: str) -> None:
    seen = cal.look(THREE | columns, **stated)
    assert how in seen.command
    assert "positive" not in seen.command or not how
    assert any(refused in r for r in seen.refusals) == bool(refused)
    if how and not refused:
        assert {c.name: c.role for c in seen.columns} == dict.fromkeys(THREE, "score") | dict.fromkeys(columns, "label")


def test_missing_labels_of_classes_are_proposed_to_be_left_out() -> None:
    rows = THREE | {"gold": np.array(["home", "draw", "NA"])[WON]}
    rows["p_draw"] = np.where(np.arange(400) == 7, np.nan, rows["p_draw"])
    seen = cal.look(rows)
    both = bool(WON[7] == 2)
    gone = {"label missing": int((WON == 2).sum()) - both}
    assert seen.dropped == gone | {f"{'label and ' * both}score missing": 1}
    assert "missing='drop'" in seen.command
    assert not seen.refusals
    (refusal,) = cal.look(rows, score="p_*").refusals
    assert "missing, first in row" in refusal
    assert "drop_missing=True" in refusal
    named = THREE | {"gold": np.array(["home", "draw", "None"])[WON]}
    named["p_None"] = named.pop("p_away")
    assert not cal.look(named).dropped  # a class may be called None


def test_probabilities_of_two_digits_are_to_be_divided_by_their_sum() -> None:
    rows = {name: p.round(2) for name, p in THREE.items()} | GOLD
    assert "renormalize=True" in cal.look(rows).command
    assert not cal.look(rows).refusals
    assert "add up to one" in cal.look(rows, score="p_*").refusals[0]


def test_shares_of_a_whole_beside_a_score_are_no_classes() -> None:
    shares = {f"share_{i}": CLASSES[:, i] for i in range(3)}
    seen = cal.look({"y": WON == 0, "risk": CLASSES[:, 0]} | shares)
    assert (seen.label, seen.score, seen.candidates["classes"], seen.refusals) == ("y", "risk", (), ())
    nearly = {name: values + 0.02 * (i == 0) for i, (name, values) in enumerate(THREE.items())}
    assert cal.look(nearly | {"y": WON == 0}).candidates["classes"] == ()


@pytest.mark.parametrize(
    ("name", "values", "scale"),
    [
        ("score", np.arange(300) % 11, "points"),
        ("score", np.arange(300) % 5 + 1, "points"),
        ("score", np.arange(300) % 10 + 1.0, "points"),
        ("risk", np.arange(300) % 21, "points"),
        ("score", (np.arange(300) % 64), "points"),
        ("score", (np.arange(300) % 101) / 10, "points"),
        ("score", np.resize([0, 0, 1, 1, 1, 2, 3], 300), "points"),
        ("score", np.arange(300) % 101, "percent"),
        ("risk", uniform(1) * 18, "percent"),
        ("risk", uniform(1) * 60, "percent"),
        ("score (%)", np.arange(300) % 21, "percent"),
        ("pct_score", np.arange(300) % 11, "percent"),
        ("Eignung (%)", 2.6 + 88 * uniform(1), "percent"),
    ],
)
def test_points_are_asked_after_and_percent_is_percent_by_range_and_name(name: str, values: Any, scale: str) -> None:
    rows = {"y": yes_no(0), name: values}
    seen = cal.look(rows)
    assert (seen.score, seen.scale) == (name, scale)
    assert ("percent=True" in seen.command) == (scale == "percent")
    if scale == "points":
        (refusal,) = seen.refusals
        assert "if they are percent, pass percent=True; points, ranks and deciles are no probabilities" in refusal
        assert cal.look(rows, percent=True).refusals == ()
        assert (seen.command, "Run" in str(seen), "run:" in repr(seen)) == ("", False, False)
        assert "<pre>" not in seen._repr_html_()
        with pytest.raises(cal.BadInput, match="points and ranks are no probabilities"):
            cal.audit(rows, label="y", score=name)
    else:
        assert seen.refusals == ()


def test_points_are_asked_after_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    lines = [f"{i % 2},{i % 11}" for i in range(300)]
    (tmp_path / "apgar.csv").write_text("y,score\n" + "\n".join(lines))
    assert main(["look", str(tmp_path / "apgar.csv")]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "if they are percent, pass --percent; points, ranks" in out
    assert "calibrant repair" in out
    assert "calibrant audit" not in out


@pytest.mark.slow
def test_grades_beside_a_pd_and_a_default_propose_the_validation_by_grade(tmp_path: Path, capsys: Any) -> None:
    lines = [f"{'ABC'[i % 3]},{(0.01, 0.05, 0.2)[i % 3]},{int(i % 9 == 2)},{'xy'[i % 2]}" for i in range(600)]
    file = tmp_path / "book.csv"
    file.write_text("grade,pd,default_12m,segment\n" + "\n".join(lines))
    seen = cal.look(str(file))
    assert seen.candidates["grade"] == ("grade",)
    command = seen.settings["grades"]
    assert command == f"calibrant grades {shlex.quote(str(file))} --label default_12m --score pd --grade grade"
    assert main(shlex.split(command)[1:]) == 0
    call = cal.look(pd.read_csv(file)).settings["grades"]
    table = eval(call, {"calibrant": cal, "data": pd.read_csv(file)})  # noqa: S307 - what the look says to run
    assert "portfolio" in str(table)
    assert "grades" not in cal.look({"grade": ["a", "b"] * 150, "risk": uniform(0), "dead": yes_no(1)}).settings


def test_the_truth_is_never_proposed_as_a_group_and_refused_as_one() -> None:
    rows = {"y": yes_no(0), "p": uniform(1), "gold": yes_no(2), "target": yes_no(3), "sex": yes_no(4)}
    assert cal.look(rows, label="y", score="p").candidates["by"] == ("sex",)
    refusal = "group column 'y' is the label, which no group may know: leave it out of the groups"
    assert cal.look(rows, label="y", score="p", by="y").refusals == (refusal,)
    with pytest.raises(cal.BadInput, match=refusal):
        cal.audit(rows, label="y", score="p", by="y")


@pytest.mark.slow
def test_three_columns_of_clusters_that_cross_are_in_the_way_as_in_the_audit() -> None:
    rng = np.random.default_rng(0)
    rows = {"y": yes_no(0), "p": uniform(1)} | {name: rng.integers(0, 30, 300) for name in "ghk"}
    seen = cal.look(rows, label="y", score="p", cluster=["g", "h", "k"])
    with pytest.raises(cal.NotComputable) as refused:
        cal.audit(rows, label="y", score="p", cluster=["g", "h", "k"], quick=True)
    assert seen.refusals == (str(refused.value),)
    assert cal.look(rows, label="y", score="p", cluster=["g", "h"]).refusals == ()


@pytest.mark.parametrize("columns", [("bout",), ("season", "away")])
def test_columns_within_whose_values_the_label_never_changes_are_named(
    columns: tuple[str, ...], tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    game = np.repeat(np.arange(120), 20)
    rate = rng.uniform(0.2, 0.8, 120)
    log = {
        "y": (rng.uniform(size=120) < rate)[game] * 1,
        "p": np.clip(rate[game] + rng.normal(0, 0.05, 2400), 0.01, 0.99),
    }
    own = {"bout": [f"b{k}" for k in game], "season": 2000 + game % 12, "away": [f"t{k // 12}" for k in game]}
    seen = cal.look({**log, **{name: own[name] for name in columns}})
    option = "+".join(columns)
    assert seen.one_outcome == (columns,)
    assert f"cluster={option!r}" in seen.command
    assert seen.refusals == ()
    assert "Labels were compared with columns, and with no score." in " ".join(str(seen).split())
    assert "cluster='none'" in cal.look({**log, **{name: own[name] for name in columns}}, cluster="none").command


def test_what_is_made_from_the_outcome_is_no_cluster() -> None:
    rng = np.random.default_rng(4)
    p = rng.uniform(size=2000)
    y = (rng.uniform(size=2000) < p) * 1
    days = np.where(y == 1, rng.integers(1, 60, 2000), rng.integers(100, 160, 2000))
    assert cal.look({"y": y, "p": p, "days": days}, label="y", score="p").one_outcome == ()
    ids = rng.integers(0, 500, 2000)  # of independent rows
    assert cal.look({"y": y, "p": p, "who": ids}, label="y", score="p").one_outcome == ()


@pytest.mark.slow
def test_decisions_by_the_score_are_never_proposed_as_groups() -> None:
    p = uniform(1, 600)
    sex = np.array(["f", "m"])[yes_no(3, 600)]
    rows = {"y": yes_no(2, 600), "risk": p, "flag": np.where(p > 0.3, "act", "wait"), "sex": sex}
    assert cal.look(rows).candidates["by"] == ("sex",)
    assert "by='sex'" in cal.look(rows).command
    several = {"y": rows["y"], "risk_a": p, "risk_b": uniform(4, 600), "flag": rows["flag"], "sex": sex}
    assert cal.look(several).score == ""
    assert cal.look(several).candidates["by"] == ("sex",)
    assert "flag" in dict(cal.sketch(rows, label="y", score="risk", variables="*").spec.left_out)


@pytest.mark.slow
@pytest.mark.parametrize("score", ["risk", "risk_repaired"])
def test_what_marks_rows_of_a_calibrator_is_no_group_and_no_covariate(score: str, tmp_path: Path) -> None:
    p, fitted = uniform(1, 600), yes_no(3, 600)
    rows = {"y": yes_no(2, 600), "risk": p, "sex": np.array(["f", "m"])[yes_no(4, 600)], "risk_repaired": 0.9 * p}
    for held in (rows | {"risk_fitted_on": fitted == 1}, rows | {"risk_fitted_on": fitted}):
        seen = cal.look(held, score=score)
        assert (seen.label, seen.candidates["by"]) == ("y", ("sex",))
        assert "risk_fitted_on" not in (*seen.candidates["output"], *seen.candidates["label"])
        sketch = cal.sketch(held, label="y", score=score, variables="*")
        assert {"risk_fitted_on"}.isdisjoint([*(c.name for c in sketch.spec.codings), *dict(sketch.spec.left_out)])
    assert "x_fitted_on" in [
        c.name for c in cal.sketch(rows | {"x_fitted_on": fitted}, label="y", score="risk", variables="*").spec.codings
    ]


ODD_ROWS = [f"{i % 2},{0.011 + i / 200:.3f},x" for i in range(150)]


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (
            "0,1.7,x",
            "1 value is outside 0 to 1; the other 149 are within: correct it, or leave its row out; if every score",
        ),
        ("maybe,0.5,x", "label column 'y' holds 'maybe' next to 0 and 1"),
        ("0,oops,x", "score column 'risk' holds text, such as 'oops' in line 103 of a.csv; convert it"),
        ("0,NaN,x", "1 row (0.7%) would be left out with --missing drop: 1 score missing."),
    ],
)
def test_one_value_among_many_is_named_with_its_line(spoilt: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [*ODD_ROWS[:50], '1,0.5,"two\nlines"', "", *ODD_ROWS[51:99], spoilt, *ODD_ROWS[100:]]
    path.write_text("\n".join(["y,risk,note", *rows]), encoding="utf-8")
    seen = cal.look(path)
    assert (seen.label, seen.score) == ("y", "risk")
    reported = " ".join(str(seen).split())
    assert said in reported
    assert "line 103 of a.csv" in reported
    if "left out" not in said:
        with pytest.raises(cal.BadInput, match=r"line 103 of a\.csv"):
            cal.audit(path, label="y", score="risk", quick=True)


def test_a_column_that_is_called_score_stands_for_itself_and_one_class_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["y,SCORE,note", *ODD_ROWS]), encoding="utf-8")
    assert "\nRun:\n" in str(cal.look(path))
    path.write_text("\n".join(["y,p,note", *(f"0{row[1:]}" for row in ODD_ROWS)]), encoding="utf-8")
    seen = str(cal.look(path))
    assert "y is 0 in every row. Add rows of the other outcome" in " ".join(seen.split())
    assert "Run, once rows of both outcomes are there:" in seen


def test_of_every_kind_of_column_it_is_known_what_follows() -> None:
    stored = {*get_args(profile.Name), *get_args(coding.Kind)}  # of rows and of sketches
    assert stored - {"label"} < {*KINDS}
    assert {name for name, kind in KINDS.items() if kind.identifies} == {"id", "cluster"}
