"""The recipes of docs/howto/watch-schedule.md run: a script for cron, and Spark Structured Streaming."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from pages import ROOT, blocks

PAGE = ROOT / "docs/howto/watch-schedule.md"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGE.exists(), reason="a source distribution without docs"),
]
SPARKS = [
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def recipe(title: str, info: str) -> str:
    """The code below a heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    return next(body for own, body, _ in blocks(section) if own == info)


def rows(number: int, off: float = 0.0, n: int = 800) -> pa.Table:
    rng = np.random.default_rng(number)
    p, region = rng.uniform(0.1, 0.6, n).round(3), rng.choice(["north", "south"], n)
    y = rng.uniform(size=n) < p + np.where(region == "south", off, 0.0)
    day = [f"2026-01-{number:02}"] * n
    return pa.table({"day": day, "region": region, "p": p, "y": pa.array(y.astype(int), pa.int32())})


@pytest.mark.skipif(os.name == "nt", reason="a script for a shell")
def test_the_script_of_cron_reads_the_status_and_calls_the_hook(tmp_path: Path) -> None:
    (tmp_path / "watch.sh").write_text(recipe("cron", "console"))
    command = tmp_path / "bin" / "calibrant"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m calibrant "$@"\n')
    command.chmod(0o755)
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ncat >> {tmp_path}/told\n")
    hook.chmod(0o755)
    paths = (str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
    inputs = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(paths)}

    def run(*arguments: object) -> int:
        return subprocess.run([*map(str, arguments)], env=inputs, cwd=tmp_path, capture_output=True).returncode

    assert run(command, "watch", "start", "m", "--label", "y", "--score", "p", "--by", "region", "--limit", "0.1") == 0
    statuses = []
    for number, off in ((1, 0.0), (2, 0.35)):
        pq.write_table(rows(number, off), tmp_path / f"{number}.parquet")
        day = f"2026-01-0{number}"
        statuses.append(run("sh", "watch.sh", "m", f"{number}.parquet", day, hook))
        assert (tmp_path / "told").exists() == (number == 2)
    assert statuses == [0, 1]
    assert "region = south (underpredicts)" in (tmp_path / "told").read_text()
    assert (tmp_path / "m" / "page.html").exists()
    assert run("sh", "watch.sh", "m", "2.parquet", "2026-01-02", hook) == 2
    assert "ended with 2: 2.parquet was not entered" in (tmp_path / "told").read_text()


@pytest.fixture
def spark() -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="PySpark 4 is not installed: pip install 'calibrant[spark]'")
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark runs in: install version 17 or set JAVA_HOME")
    with pytest.MonkeyPatch.context() as m, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        made = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        yield made
        made.stop()


def _of_spark(function: Any) -> Any:
    for mark in (*SPARKS, pytest.mark.xdist_group("spark")):
        function = mark(function)
    return function


@_of_spark
def test_each_batch_of_a_stream_of_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of the stream, the second after a failure: a batch that Spark hands over again enters nothing twice."""
    monkeypatch.chdir(tmp_path)
    text = recipe("Spark Structured Streaming", "python no-run")
    for name in ("days", "checkpoint"):  # Spark may run where an earlier test started it
        assert text.count(f'("{name}")') + text.count(f', "{name}")') == 1
        text = text.replace(f'"{name}")', f'"{tmp_path / name}")')
    code = compile(text, "watch-schedule.md", "exec")
    space: dict[str, Any] = {"__name__": "__docs__", "spark": spark}
    (tmp_path / "days").mkdir()
    for part in ((1, 2), (3,)):
        for number in part:
            pq.write_table(rows(number), tmp_path / "days" / f"{number}.parquet")
        exec(code, space)  # noqa: S102
    state = cal.Monitor.load("drift.json").state
    assert (state.looks, state.rows, state.at) == (3, 2400, "2026-01-03")
    before = Path("drift.json").read_bytes()
    shutil.rmtree("checkpoint")  # Spark has forgotten what it has handed over, and hands it over again
    exec(code, space)  # noqa: S102
    assert Path("drift.json").read_bytes() == before
    whole = cal.Monitor(label="y", score="p", by="region", limit=0.05)
    for number in (1, 2, 3):
        whole.update(rows(number), at=f"2026-01-{number:02}")
    assert [r.rows for r in whole.state.window] == [r.rows for r in state.window]
    assert [r.gap for r in whole.state.window] == pytest.approx([r.gap for r in state.window])
