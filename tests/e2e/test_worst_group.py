"""The worst of all groups from the command line: as the function says, of files and of sketches, of errors and gaps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main

COLUMNS = ["--label", "y", "--score", "p"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(21)
    p, site = rng.uniform(size=3000), rng.choice(["a", "b", "c"], 3000)
    y = (rng.uniform(size=3000) < np.clip(p + 0.2 * (site == "b"), 0, 1)).astype(int)
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"y": y, "p": p, "site": site}), "log.parquet")


@pytest.mark.parametrize("judge", ["error", "gap"])
def test_the_command_says_what_the_function_says(log: None, judge: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--method", "worst-group", "--by", "site", "--judge", judge, "--json"]
    assert main(["certify", "log.parquet", *COLUMNS, *asked]) == 0
    (reported,) = json.loads(capsys.readouterr().out)
    whole = cal.sketch("log.parquet", label="y", score="p", by="site", variables=())
    found = cal.certify.worst_group(whole, judge=judge)
    assert reported["interval"]["low"] == found.interval.low > 0.02
    assert reported["interval"]["high"] == found.interval.high
    assert reported["settings"]["group_low"] == found.settings["group_low"] == "site = b"


def test_groups_go_with_it_only(log: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", "log.parquet", *COLUMNS, "--by", "site"]) == 2
    assert "--by goes with --method worst_group" in capsys.readouterr().err
    assert main(["certify", "log.parquet", *COLUMNS, "--method", "worst_group"]) == 2
    assert "no groups" in capsys.readouterr().err
