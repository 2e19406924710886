"""Options that say what to read: lists of names, units, what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import Sketch
from calibrant.cli import main
from calibrant.cli.parser import build_parser, names

COLUMNS = ["--label", "y", "--score", "p"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    rng = np.random.default_rng(11)
    p = rng.uniform(size=300)
    levels = {name: rng.choice(["a", "b"], size=300) for name in ("sex", "a,b", "first name", 'in "quotes"')}
    table = pa.table({"y": (rng.uniform(size=300) < p).astype(int), "p": p, **levels})
    pq.write_table(table, tmp_path / "log.parquet")
    monkeypatch.chdir(tmp_path)
    return table


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,b", ["a", "b"]),
        ('"a,b",c', ["a,b", "c"]),
        (' first name , "in ""quotes""" ', ["first name", 'in "quotes"']),
        ('" a",', [" a"]),
        ('a"b,,c', ['a"b', "c"]),
        ("", []),
    ],
)
def test_names_are_split_as_csv_is(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_a_list_given_twice_adds_up(log: pa.Table) -> None:
    given = ["--by", "sex", "--by", '"a,b",first name', "--by", '"in ""quotes"""', "--variables", "none"]
    assert main(["sketch", "log.parquet", *COLUMNS, *given, "--out", "log.sketch"]) == 0
    made = Sketch.from_bytes(Path("log.sketch").read_bytes())
    assert [v.name for v in made.spec.variables] == ["sex", "a,b", "first name", 'in "quotes"']
    a = build_parser().parse_args(
        ["audit", "x", "--key", "a", "--key", "b,c", "--variables", "d", "--variables", "e", "--fail-on", "f"]
    )
    assert (a.key, a.variables, a.fail_on) == (["a", "b", "c"], ["d", "e"], ["f"])
    a = build_parser().parse_args(["repair", "x", "--method", "platt", "--method", "isotonic,beta"])
    assert a.method == ["platt", "isotonic", "beta"]


def test_an_open_quote_is_told(log: pa.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "log.parquet", *COLUMNS, "--by", '"a,b']) == 2
    assert "close the quotes" in capsys.readouterr().err
