"""Records and logs that others wrote or damaged end in one line and status 2, never in an unexpected error."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.schema.record import _refuse_columns
from calibrant.cli.run import main

HALF = "\ud800"


@cache
def record() -> str:
    rng = np.random.default_rng(4)
    p, group = rng.random(1500), rng.integers(0, 3, 1500)
    data = cal.predictions(rng.random(1500) < p, p, pa.table({"g": ["abc"[k] for k in group]}))
    return cal.audit(data, by=["g"], limit=0.1, quick=True).to_json()


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], said: str) -> None:
    """The command ends in 2 and one line."""
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.count("\n") == 1
    assert said in printed.err


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("curves", "bins", "columns", "gap"), [0.1], "differ in length"),
        (("groups", 0, "rows"), HALF, "not an audit record"),
        (("name",), f"a{HALF}", "not an audit record"),
        (("data", f"a{HALF}"), 1, "not an audit record"),
        (("everyone", "gap", "value"), [], "expected"),
        (("curves",), [], "expected"),
        (("curves",), None, "expected"),
        (("curves", "bins", "columns"), None, "expected"),
    ],
)
def test_a_damaged_record_is_refused(
    path: tuple[str | int, ...], value: object, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = json.loads(record())
    place = d
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (tmp_path / "r.json").write_text(json.dumps(d))
    refused(["report", str(tmp_path / "r.json")], capsys, said)


@pytest.mark.parametrize("value", ["high", [], {}])
def test_a_column_of_a_record_holds_one_kind_of_value(
    value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = json.loads(record())
    d["curves"]["inference"]["columns"] = {"bias": [0.1, value]}
    (tmp_path / "r.json").write_text(json.dumps(d))
    refused(["report", str(tmp_path / "r.json")], capsys, "expected `float`")
    with pytest.raises(cal.BadInput, match="column 'x' holds values of several kinds"):
        _refuse_columns({"x": [0.1, value]}, "$")


@pytest.mark.parametrize(
    ("curve", "kept", "of"), [("inference", "variable", 7), ("inference", "bias", 7), ("reliability", "gap", 12)]
)
def test_columns_that_stand_together_are_all_there_or_none(
    curve: str, kept: str, of: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = json.loads(record())
    columns = d["curves"][curve]["columns"]
    some = {"inference": {"variable": ["x"], "bias": [0.1]}, "reliability": columns}[curve]
    for left in ({}, {kept: some[kept]}):
        d["curves"][curve]["columns"] = left
        (tmp_path / "r.json").write_text(json.dumps(d))
        if left:
            refused(["report", str(tmp_path / "r.json")], capsys, f"1 of {of} columns that stand together")
        else:
            assert main(["report", str(tmp_path / "r.json")]) == 0
            capsys.readouterr()


@pytest.mark.parametrize("text", ["NaN", "1e400", "1e200", "-1e200", "9" * 400, "9" * 5000])
def test_a_number_that_no_audit_writes_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = json.loads(record())
    d["curves"]["inference"]["columns"] = {"bias": ["here"]}
    (tmp_path / "r.json").write_text(json.dumps(d).replace('"here"', text))
    refused(["report", str(tmp_path / "r.json")], capsys, "number")


@pytest.mark.parametrize(("text", "said"), [("[" * 17 + "]" * 17, "nested deeper"), ("[" * 99_999, "nested too deep")])
def test_lists_without_end_are_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text(f'{{"schema": "calibrant/4", "curves": {text}}}')
    refused(["report", str(tmp_path / "r.json")], capsys, said)


@pytest.mark.slow
def test_a_name_stands_once_in_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").write_text(record().replace("{", '{"verdict": "within",', 1))
    refused(["report", str(tmp_path / "r.json")], capsys, "'verdict' is there twice")


@pytest.mark.parametrize("name", ["d.jsonl", "d.json"])
@pytest.mark.parametrize("row", [{"y": 1, "p": 0.5, "who": HALF}, {"y": 1, "p": 0.5, f"wh{HALF}": "a"}])
def test_half_a_character_in_rows_is_refused(
    name: str, row: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"y": 0, "p": 0.5, "who": "b"}, row]
    text = json.dumps(rows) if name == "d.json" else "\n".join(map(json.dumps, rows))
    (tmp_path / name).write_text(text)
    refused(["look", str(tmp_path / name), "--label", "y", "--score", "p"], capsys, "half of a character")


@pytest.mark.parametrize(
    ("field", "value"),
    [("doc_id", []), ("doc_id", {}), ("doc", 3), ("filtered_resps", "x"), ("filter", 1), ("metrics", {})],
)
def test_a_damaged_line_of_a_log_is_refused(
    field: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"doc_id": 1, "doc": {"q": "a"}, "filtered_resps": [], "acc": 1.0}
    text = "\n".join(map(json.dumps, (line, line | {"doc_id": 2, field: value})))
    (tmp_path / "samples_t.jsonl").write_text(text)
    refused(["look", str(tmp_path / "samples_t.jsonl")], capsys, "line 2 is not what the tool")


@pytest.mark.parametrize("field", ["doc_id", "doc", "doc itself", "more"])
def test_half_a_character_in_what_is_known_of_an_answer_is_refused(
    field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"doc_id": 1, "doc": {"q": "a"}, "filtered_resps": [], "acc": 1.0, "more": "a"}
    bad = line | {"doc_id": 2} | {field.split()[0]: {"q": HALF} if field == "doc" else HALF}
    (tmp_path / "samples_t.jsonl").write_text("\n".join(map(json.dumps, (line, bad))))
    refused(["look", str(tmp_path / "samples_t.jsonl")], capsys, "half of a character")
