"""A Spark table is audited as the page on distributed data says."""

from __future__ import annotations

import os
import shutil
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

PAGE = ROOT / "docs/distributed.md"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGE.exists(), reason="a source distribution without docs"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),  # of pandas 3, which calibrant does not use there
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS = 3_000


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
def test_a_spark_table(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.beta(2, 5, ROWS).round(3)
    columns = {"loan": np.arange(ROWS), "p": p, "defaulted": (rng.uniform(size=ROWS) < p).astype(int)}
    pq.write_table(pa.table({**columns, "region": rng.choice(["north", "south"], ROWS)}), tmp_path / "scored.parquet")
    spark.read.parquet(str(tmp_path / "scored.parquet")).createOrReplaceTempView("scored")
    section = PAGE.read_text(encoding="utf-8").partition("## Spark\n")[2].partition("\n## ")[0]
    code = next(body for info, body, _ in blocks(section) if info == "python no-run")
    exec(compile(code, "distributed.md", "exec"), {"__name__": "__docs__", "spark": spark})  # noqa: S102
    page = Path("scored.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "loans of 2025" in page
    assert "region" in page
    assert cal.AuditRecord.load("scored.html").verdict in ("within", "over", "undecided")
