"""Queries as data: one SELECT that only reads, never a path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.data.targets import checked_targets

duckdb = pytest.importorskip("duckdb")

ATTACKS = [
    "from 'x.parquet'; copy (select 1) to 'out.csv'",
    "select 1; select 2",
    "copy (select 1) to 'out.csv'",
    "with c as (copy (select 1) to 'out.csv') select 1 as y, 0.5 as p",
    "select 1 as y, 0.5 as p from (with c as (copy (select 1) to 'out.csv') select 1 as a)",
    "attach 'out.csv' as a",
    "install httpfs",
    "load httpfs",
    "pragma version",
    "set threads = 1",
    "call pragma_version()",
    "export database 'out.csv'",
    "create table t as select 1 as y",
    "insert into t values (1) returning *",
    "with i as (insert into t values (1) returning *) select * from i",
    "with d as (delete from t returning *) select * from d",
    "select * from enable_logging(storage = 'file', storage_path = 'out.csv')",
    "select * from enable_profiling(save_location = 'out.csv')",
    "select * from query('copy (select 1) to ''out.csv''')",
    "select * from arrow_scan(1, 2, 3)",
    "select * from 'https://localhost:1/x.parquet'",
    "begin",
    "explain analyze select 1",
    "",
    "-- nothing",
    "select",
]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(3)
    p = rng.uniform(size=400)
    sex = np.where(rng.uniform(size=400) < 0.5, "f", "m")
    pq.write_table(pa.table({"y": (rng.uniform(size=400) < p).astype(int), "p": p, "sex": sex}), tmp_path / "x.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", ATTACKS)
def test_a_query_can_only_read(log: Path, text: str) -> None:
    with pytest.raises(cal.BadInput) as reported:
        cal.read(cal.sql(text), label="y", score="p")
    assert "\n" not in str(reported.value)
    assert [p.name for p in log.iterdir()] == ["x.parquet"]


@pytest.mark.parametrize("text", ["from 'x.parquet'", "select 1", *ATTACKS[:4]])
def test_text_is_a_path_and_never_a_query(log: Path, text: str) -> None:
    with pytest.raises(cal.BadInput, match=r"no file at .*(calibrant\.sql|check the path)"):
        cal.read(text, label="y", score="p")
    assert main(["audit", text, "--label", "y", "--score", "p", "--quick"]) == 2
    assert [p.name for p in log.iterdir()] == ["x.parquet"]


@pytest.mark.parametrize("text", ["", "  ", "a\0b"])
def test_a_path_names_something(log: Path, text: str) -> None:
    with pytest.raises(cal.BadInput, match="names no file"):
        cal.read(text, label="y", score="p")
    with pytest.raises(cal.BadInput, match="names no file"):
        cal.read(["x.parquet", text], label="y", score="p")


def test_a_query_reads_as_its_file(log: Path) -> None:
    whole = cal.sketch("x.parquet", label="y", score="p", by="sex")
    asked = cal.sql("select * from 'x.parquet'")
    assert cal.sketch(asked, label="y", score="p", by="sex").fingerprint == whole.fingerprint
    with duckdb.connect() as own:
        own.execute("create view v as from 'x.parquet'")
        viewed = cal.sql("with w as (select * from v) select * from w", connection=own)
        assert cal.sketch(viewed, label="y", score="p", by="sex").fingerprint == whole.fingerprint
        with pytest.raises(cal.BadInput, match=r"type COPY|A CTE needs a SELECT"):
            cal.sql("with c as (copy (select 1) to 'out.csv') select 1", connection=own)
        with pytest.raises(cal.BadInput, match=r"calibrant\.sql"):
            cal.sketch("x.parquet", label="y", score="p", engine=own)


def test_what_fails_on_a_row_is_told_in_one_line(log: Path) -> None:
    late = cal.sql("select 1 as y, case when i > 500000 then error('no') else 0.5 end as p from range(600000) as t(i)")
    with pytest.raises(cal.BadInput, match="cannot be run"):
        cal.read(late, label="y", score="p")


@pytest.mark.slow
def test_the_command_takes_a_query_in_place_of_files(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ["--label", "y", "--score", "p"]
    one = ["--sql", "select * from 'x.parquet' where p > 0.1", *columns]
    assert main(["sketch", *one, "--out", "a.sketch"]) == 0
    assert main(["certify", *one]) == 0
    assert main(["plan", "0.1", *one]) == 0
    assert main(["audit", "x.parquet", *one, "--quick"]) == 2
    assert "not both" in capsys.readouterr().err
    assert main(["audit", *columns, "--quick"]) == 2
    assert "name the data" in capsys.readouterr().err
    assert main(["audit", "--sql", "copy (select 1) to 'out.csv'", *columns]) == 2
    assert main(["audit", *one, "--quick", "-o", "json:x.parquet"]) == 2
    assert "among the files to read" in capsys.readouterr().err
    with pytest.raises(cal.BadInput, match="among the files to read"):
        checked_targets({"--json": "x.parquet"}, [cal.sql("select * from '*.parquet'")])
