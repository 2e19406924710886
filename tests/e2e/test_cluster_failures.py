"""A machine is lost, or the user presses Ctrl-C, in the middle: the same digest or a clear error; nothing runs on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.cluster_log import write

SCRIPT = Path(__file__).parent / "cluster_failures.py"


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["spark", "dask"])
@pytest.mark.parametrize("what", ["lost", "stopped"])
def test_no_partial_result(engine: str, what: str, tmp_path: Path) -> None:
    pytest.importorskip({"spark": "pyspark", "dask": "distributed"}[engine], reason=f"needs calibrant[{engine}]")
    begun = tmp_path / "begun"
    begun.mkdir()
    command = [sys.executable, str(SCRIPT), engine, what, str(write(tmp_path / "log.parquet")), str(begun)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=tmp_path)
    stated = (
        json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else pytest.fail(done.stderr[-3000:])
    )
    if what == "lost":
        assert stated["outcome"] == stated["here"] or stated["outcome"].startswith("EngineFailed: the ")
        assert "\n" not in stated["outcome"]
    else:
        assert stated["outcome"] == "stopped"
        assert stated["idle"]
        assert stated["later"] <= stated["begun"] + 2  # what ran may end, and nothing else begins
