"""A newcomer reaches a page by what the start page says, from a CSV, a softmax array, an eval log and a Spark table."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from pages import ROOT, Played, blocks, commands, run

START = ROOT / "docs/start.md"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not START.exists(), reason="a source distribution without docs"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),  # of pandas 3, which calibrant does not use there
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS = 3_000
SECONDS = 60.0  # of computing; the rest of five minutes is for reading


def section(title: str) -> str:
    """Return what stands below a heading of the start page, up to the next."""
    found = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##)", START.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None, f"the start page has no section {title!r}"
    return found[1]


def follow(title: str, capsys: pytest.CaptureFixture[str], **names: Any) -> str:
    """Do what a section says, in its order; return what the commands print."""
    scope, played, before = {"__name__": "__docs__", **names}, Played(), time.process_time()
    for info, body, line in blocks(section(title)):
        if info.startswith("python"):
            exec(compile("\n" * line + body, "start.md", "exec"), scope)  # noqa: S102
        elif info == "bash":
            for words in commands(body):
                run(words, capsys, played)
    assert time.process_time() - before < SECONDS
    return "\n".join(played.commands.values())


def rows() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 5, ROWS).round(3)
    groups = {"sex": rng.choice(["f", "m"], ROWS), "site": rng.choice(["north", "south"], ROWS)}
    return {"id": np.arange(ROWS), "p": p, "y": (rng.uniform(size=ROWS) < p).astype(int), **groups}


def a_page(path: str, *says: str) -> None:
    """Hold that a file is a report, and what it is about."""
    page = Path(path).read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert all(words in page for words in says)
    assert cal.AuditRecord.load(path).verdict in ("within", "over", "undecided")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_with_a_csv(capsys: pytest.CaptureFixture[str]) -> None:
    log = {"readmitted" if k == "y" else "risk" if k == "p" else k: v for k, v in rows().items()}
    pa.csv.write_csv(pa.table(log), "log.csv")
    printed = follow("A CSV or Parquet file", capsys)
    assert "calibrant audit log.csv --label readmitted --score risk --by sex,site" in printed
    a_page("audit.html", "readmitted", "site")


def test_with_a_softmax_array(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    softmax = rng.dirichlet([0.4] * 5, ROWS)
    np.save("softmax.npy", softmax.astype("float32"))
    np.save("labels.npy", np.array([rng.choice(5, p=p) for p in softmax]))
    follow("A softmax array", capsys)
    a_page("pictures.html", "pictures", "said")


def test_with_the_log_of_an_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    rng, samples = np.random.default_rng(0), []
    for q in range(ROWS // 2):
        sure = round(float(rng.beta(3, 1)), 2)
        for epoch in (1, 2):
            score = {"value": "C" if rng.uniform() < sure else "I", "metadata": {"confidence": sure}}
            known = {"topic": ("law", "physics")[q % 2]}
            samples.append({"id": f"q{q}", "epoch": epoch, "scores": {"choice": score}, "metadata": known})
    of = {"task": "exam", "model": "some/model"}
    Path("exam.json").write_text(json.dumps({"version": 2, "status": "success", "eval": of, "samples": samples}))
    printed = follow("The log of an evaluation", capsys)
    assert "--score confidence_stated" in printed
    a_page("exam.html", "the model named it in its answer", "topic")


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


@pytest.mark.xdist_group("spark")
def test_with_a_spark_table(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = {{"y": "defaulted", "id": "loan", "site": "region"}.get(k, k): v for k, v in rows().items()}
    pq.write_table(pa.table(log), tmp_path / "scored.parquet")
    spark.read.parquet(str(tmp_path / "scored.parquet")).createOrReplaceTempView("scored")
    follow("A Spark table", capsys, spark=spark)
    a_page("scored.html", "defaulted", "region")


def test_the_start_page_has_a_way_for_each_of_the_four() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    for anchor in ("a-csv-or-parquet-file", "a-softmax-array", "the-log-of-an-evaluation", "a-spark-table"):
        assert f"(start.md#{anchor})" in index
