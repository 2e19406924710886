"""The recipes for cron and Spark, as they are printed: a day twice, late rows, and a day that is off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schedules import DAYS, PAGE, entered, folder, recipe, scored

__all__ = ["folder"]
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="a source distribution without docs")


@pytest.mark.slow
def test_cron_enters_a_day_once_and_sends_an_alarm(folder: Path) -> None:
    script = folder / "daily.sh"
    script.write_text(recipe("sh", "curl"))
    (folder / "scored").mkdir()
    statuses = []
    for day in (*DAYS[:2], DAYS[1], DAYS[2]):  # one day twice
        pq.write_table(scored(day), folder / f"scored/{day}.parquet")
        statuses.append(subprocess.run(["sh", str(script)], env={**os.environ, "DAY": day}).returncode)
    assert statuses == [0, 0, 0, 1]
    assert entered(folder).state.rows == 3 * 400
    sent = (folder / "sent.txt").read_text()
    assert "https://chat.example/hook" in sent
    assert "Alarm" in sent
    assert (folder / "page.html").exists()
    assert subprocess.run(["sh", str(script)], env={**os.environ, "DAY": "2026-02-30"}).returncode == 2


@pytest.mark.slow
def test_spark_keeps_batches_by_day_and_enters_complete_days(folder: Path) -> None:
    pytest.importorskip("pyspark", reason="pip install pyspark")
    (folder / "incoming").mkdir()
    program = folder / "stream.py"
    program.write_text(recipe("python no-run", "pyspark"))

    def arrive(name: str, days: list[str], part: slice) -> None:
        of_days = [scored(d).append_column("day", pa.array([d] * 400)).slice(part.start, part.stop) for d in days]
        pq.write_table(
            pa.concat_tables(of_days).select(["day", "region", "p", "y"]), folder / f"incoming/{name}.parquet"
        )
        subprocess.run([sys.executable, str(program)], check=True, capture_output=True)

    arrive("one", DAYS[:2], slice(0, 200))  # half of two days: the first seems complete
    assert entered(folder).state.rows == 200
    arrive("two", DAYS[1:4], slice(200, 200))
    assert (folder / "entered.txt").read_text().split() == DAYS[:3]
    assert entered(folder).state.rows == 200 + 400 + 200
    assert "Alarm" in (folder / "sent.txt").read_text()
    assert "region = n" in {suspect.name for suspect in entered(folder).state.lasting.suspects}  # type: ignore[union-attr]
