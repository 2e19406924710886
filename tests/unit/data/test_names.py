"""Columns whose names a library reads as a path, a pattern, an option or a value are columns like any other."""

from __future__ import annotations

import contextlib
import csv
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.data.engines.reduce import source_of
from calibrant.data.reading import Reading
from calibrant.data.sources.files import open_source
from calibrant.data.sources.source import Source
from calibrant.errors import BadInput, NotComputable
from calibrant.repair.formulas.dialects import DIALECTS

HOSTILE = (
    *(".pred_1", "..", "a.b", "a", "[x]", "[0]", "$p", "*", "a/b", '"q"', "a'b", "a\tb", "a\nb", "🙂", "-p", "--label"),
    *("None", "nan", "x" * 200, "^x$", "^.*$", "index", "__index_level_0__", "rowid", "count", "select", "a,b", "a+b"),
    *("a=b", "a;b", "a|b", "{x}", "%s", "\\", "`q`", "@x", "#x", "<b>", "__proto__", "constructor", "=1+1", " lead"),
    *("label", "score", "missing", "everyone", "%(x)s", "é", "e\u0301", "column 3"),
)
N = 40


@cache
def table() -> pa.Table:
    """A label, a score, a column of each name with numbers of its own, and one that differs from the label by case."""
    y, p = pa.array([0, 1] * (N // 2)), pa.array([round(0.01 + 0.02 * i, 2) for i in range(N)])
    every = {name: pa.array([float(1000 * k + i) for i in range(N)]) for k, name in enumerate(HOSTILE)}
    return pa.table({"y": y, "p": p, **every, "Y": pa.array([0.25 * i for i in range(N)])})


def as_csv(path: str) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table().column_names)
        writer.writerows(zip(*table().to_pydict().values(), strict=True))


def as_arrow(path: str) -> None:
    with pa.ipc.new_file(path, table().schema) as file:
        file.write_table(table())


def as_excel(path: str) -> None:
    book = pytest.importorskip("xlsxwriter").Workbook(path)
    sheet = book.add_worksheet()
    for j, (name, values) in enumerate(table().to_pydict().items()):
        sheet.write_string(0, j, name)
        sheet.write_column(1, j, values)
    book.close()


FILES: dict[str, Callable[[str], object]] = {
    "csv": as_csv,
    "parquet": lambda path: pq.write_table(table(), path),
    "arrow": as_arrow,
    "feather": lambda path: feather.write_feather(table(), path),
    "orc": lambda path: orc.write_table(table(), path),
    "jsonl": lambda path: Path(path).write_text("\n".join(map(json.dumps, table().to_pylist()))),
    "xlsx": as_excel,
}


def frames(library: str) -> Any:
    if library == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        kept = table().drop_columns(["Y", "e\u0301"])  # which it calls Y_1
        return duckdb.connect().from_arrow(kept)
    if library == "arrow":
        return table()
    if library == "pandas":
        return pytest.importorskip("pandas").DataFrame(table().to_pydict())
    frame = pytest.importorskip("polars").from_arrow(table())
    return frame if library == "polars" else frame.lazy()


def same(opened: Source, names: list[str]) -> None:
    """Each name alone, and then all of them in another order, give the values of that column."""
    for wanted in (*([name] for name in names), names[::-1]):
        batches = [b for part in opened.parts for b in part.read(wanted, ())]
        assert all(b.schema.names == wanted for b in batches)
        for i, name in enumerate(wanted):
            values = [v for b in batches for v in b.column(i).to_pylist()]
            assert values == table().column(name).to_pylist(), name


@pytest.mark.parametrize("form", FILES)
def test_every_format(form: str, tmp_path: Path) -> None:
    path = str(tmp_path / f"log.{form}")
    FILES[form](path)
    same(open_source(path), table().column_names)
    seen = cal.look(path, label="y", score="p", variables=None)
    assert [c.name for c in seen.columns] == table().column_names
    assert seen.repeats == 0


@pytest.mark.parametrize("library", ["arrow", "pandas", "polars", "lazy", "duckdb"])
def test_every_frame(library: str) -> None:
    frame = frames(library)
    opened = source_of(frame, Reading())
    same(opened, list(opened.columns))
    assert {*HOSTILE} - {*opened.columns} <= {"e\u0301"}
    for name in (".pred_1", "^x$", "$p", "__index_level_0__"):  # alone of a lazy frame
        held = cal.sketch(frames(library), label="y", score="p", variables=[name])
        assert [c.name for c in held.spec.codings] == [name]


def test_rows_that_repeat_are_counted_whatever_columns_are_called() -> None:
    """Arrow groups by references to columns, in which .pred is a path."""
    few = table().select(["y", ".pred_1", "a.b", "[0]", "..", "$p"])
    assert cal.look(pa.concat_tables([few, few.slice(0, 7)]), label="y").repeats == 7


ROLES = ("label", "score", "by", "variables", "cluster", "weights")


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(0, len(HOSTILE), 9))
def test_an_audit_and_what_it_writes(turn: int, tmp_path: Path, capsys: Any) -> None:
    """Six parts at once under hostile names; a list of names is typed in double quotes."""
    names = dict(zip(ROLES, (HOSTILE[(turn + 7 * k) % len(HOSTILE)] for k in range(6)), strict=True))
    n = 120
    rng = np.random.default_rng(turn)
    p = rng.uniform(0.1, 0.9, n).round(3)
    held = {"label": (rng.random(n) < p).astype(int), "score": p, "by": rng.choice(["u", "v"], n)}
    held |= {"variables": rng.normal(size=n), "cluster": np.arange(n) // 2, "weights": rng.integers(1, 4, n)}
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    pq.write_table(pa.table({names[role]: values for role, values in held.items()}), path)
    listed = {role: '"' + names[role].replace('"', '""') + '"' for role in ("by", "variables", "cluster")}
    typed = [f"--{role}={name}" for role, name in (names | listed).items()]
    more = [f"--out={form}:{tmp_path / form}" for form in ("junit", "metrics", "model-card", "summary")]
    assert main(["audit", str(path), *typed, "--quick", f"--out={out}/", *more]) == 0
    capsys.readouterr()
    (record,) = out.glob("*.json")
    assert names["by"] in json.loads(record.read_text(encoding="utf-8"))["data"]["variables"]
    assert main(["report", str(record), f"--out={tmp_path / 'again.html'}"]) == 0


@pytest.mark.slow
def test_names_that_a_list_or_a_setting_would_cut(tmp_path: Path, capsys: Any) -> None:
    path = str(tmp_path / "log.csv")
    as_csv(path)
    both = ["--label=y", "--score=p", "--variables=none", "--json", "--quick"]
    assert main(["audit", path, *both, '--by="a,b",a+b', "--bins", "a,b=26010", "--bins", "a+b=27010"]) == 0
    assert {"a,b", "a+b"} <= {*json.loads(capsys.readouterr().out)["data"]["variables"]}
    assert main(["audit", path, *both, "--by=a=b", "--bins", "a=b=28010"]) == 0
    capsys.readouterr()
    assert main(["audit", path, *both, "--by=b"]) == 2
    assert "did you mean 'a,b'? In a list that is typed put it in quotes" in capsys.readouterr().err


# ---- calibrators elsewhere ----


@cache
def fitted() -> tuple[cal.repair.Calibrator, pa.Table, list[float]]:
    """A calibrator that reads a column of every name, the rows, and what it says of them."""
    rng = np.random.default_rng(3)
    n = 3000
    p = rng.uniform(0.1, 0.9, n)
    columns = {name: rng.normal(size=n).round(2) for name in HOSTILE}
    eta = np.log(p / (1 - p)) + sum((0.4 - 0.02 * k) * v for k, v in enumerate(columns.values()))
    data = cal.predictions(rng.random(n) < 1 / (1 + np.exp(-eta)), p, pa.table(columns))
    one = cal.repair.AugmentedLogistic(variables=HOSTILE).fit(data)
    rows = pa.table({"p": p[:20], **{name: v[:20] for name, v in columns.items()}})
    assert {*one.reads} == {*HOSTILE}
    return one, rows, [float(v) for v in one.scores(p[:20], columns=rows)]


def test_sql_of_a_calibrator() -> None:
    one, rows, wanted = fitted()
    con = pytest.importorskip("duckdb").connect()
    con.register("scores", rows)
    found = con.execute(one.to_sql("duckdb", score="p", table="scores", keep=[])).fetchall()
    assert np.abs(np.array(found)[:, 0] - wanted).max() < 1e-12
    with contextlib.closing(sqlite3.connect(":memory:")) as lite:
        named = ", ".join(map(DIALECTS["sqlite"].name, rows.column_names))
        lite.execute(f"CREATE TABLE scores ({named})")
        marks = ", ".join("?" * rows.num_columns)
        lite.executemany(f"INSERT INTO scores VALUES ({marks})", [[*row.values()] for row in rows.to_pylist()])  # noqa: S608
        found = lite.execute(one.to_sql("sqlite", score="p", table="scores", keep=[])).fetchall()
    assert np.abs(np.array(found)[:, 0] - wanted).max() < 1e-12


def in_node(script: str, calls: str) -> Any:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    text = f"{script}\nconsole.log(JSON.stringify({calls}))"
    return json.loads(subprocess.run([node, "-"], input=text, capture_output=True, text=True, check=True).stdout)


def test_javascript_of_a_calibrator() -> None:
    one, rows, wanted = fitted()
    held = f"JSON.parse({json.dumps(json.dumps(rows.to_pylist()))})"
    found = in_node(one.to_javascript(), f"{held}.map(r => repaired(r.p, r))")
    assert np.abs(np.array(found) - wanted).max() < 1e-12


def test_names_that_differ_by_case_are_two_or_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    p = rng.uniform(0.1, 0.9, 2000)
    pair = pa.table({"Age": rng.normal(size=2000), "age": rng.normal(size=2000)})
    one = cal.repair.AugmentedLogistic(variables=("Age", "age")).fit(cal.predictions(rng.random(2000) < p, p, pair))
    assert '"Age"' in one.to_sql("postgres", score="p")
    for dialect in ("duckdb", "sqlite", "spark", "bigquery", "tsql"):
        with pytest.raises(NotComputable, match=r"'Age' and 'age' differ by case alone, which .* does not tell apart"):
            one.to_sql(dialect, score="p", table="t", keep=[])
    pytest.importorskip("duckdb")
    rows = cal.sql('select i % 2 as y, i / 100 as p, i as "Age", -i as "age" from range(80) t(i)')
    with pytest.raises(BadInput, match="column 'age' cannot be read: it differs from another by case alone"):
        cal.sketch(rows, label="y", score="p", by="age")
    assert cal.read(rows, label="y", score="p").n == 80


def test_dates_that_an_engine_would_take_for_another_day_are_refused() -> None:
    """V8 reads 01.02.2019 as 2 January, and SQLite as nothing."""
    rng = np.random.default_rng(6)
    n = 1500
    p, days = rng.uniform(0.1, 0.9, n), rng.integers(17_000, 18_500, n)
    y = rng.random(n) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - (days - 17_750) / 400))
    data = cal.predictions(y, p, pa.table({"since": pa.array(days.astype("datetime64[D]"))}))
    one = cal.repair.AugmentedLogistic(variables=("since",)).fit(data)
    texts = ["2019-02-01", None, "01.02.2019", "31.01.2019", "2/1/2019"]
    first, second = (
        float(one.scores([0.5], columns=pa.table({"since": pa.array([t], pa.string())}))[0]) for t in texts[:2]
    )
    found = in_node(one.to_javascript(), f"{json.dumps(texts)}.map(since => repaired(0.5, {{since}}))")
    assert found[:2] == pytest.approx([first, second], abs=1e-12)
    assert found[2:] == [None] * 3
    with contextlib.closing(sqlite3.connect(":memory:")) as lite:
        lite.execute("CREATE TABLE scores (p, since)")
        lite.executemany("INSERT INTO scores VALUES (0.5, ?)", [[t] for t in texts])
        lines = [v for (v,) in lite.execute(one.to_sql("sqlite", score="p", table="scores", keep=[]))]
    assert lines[:2] == pytest.approx([first, second], abs=1e-12)
    assert lines[2:] == [None] * 3
