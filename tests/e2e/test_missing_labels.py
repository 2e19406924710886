"""Missing labels from the command line: as the function says, of files and of sketches."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.results import Curve

COLUMNS = ["--label", "y", "--score", "p", "--missing", "keep"]
KEPT = {"label": "y", "score": "p", "missing": "keep"}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(21)
    p, site = rng.uniform(size=4000), rng.choice(["a", "b"], 4000)
    y = (rng.uniform(size=4000) < p).astype(int)
    lost = rng.uniform(size=4000) < np.where(site == "b", 0.3, 0.05)
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"y": pa.array(y, mask=lost), "p": p, "site": site}), "log.parquet")


@pytest.mark.slow
def test_the_command_says_what_the_function_says(log: None, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--method", "missing-labels", "--limit", "0.1", "--missing-odds", "1.5", "--json"]
    assert main(["certify", "log.parquet", *COLUMNS, *asked, "--by", "site"]) == 0
    (reported,) = json.loads(capsys.readouterr().out)
    whole = cal.sketch("log.parquet", **KEPT, by="site", variables=())
    found = cal.certify.missing_labels(whole, limit=0.1, odds=1.5)
    assert Curve.from_dict(reported) == found
    assert {"within", "undecided"} == {*found.columns["verdict"]}
    Path("log.sketch").write_bytes(whole.to_bytes())
    assert main(["certify", "log.sketch", *asked]) == 0
    assert json.loads(capsys.readouterr().out) == [reported]


def test_a_table_stands_beside_ranges(log: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", "log.parquet", *COLUMNS, "--method", "missing_labels,rounded"]) == 0
    text = capsys.readouterr().out
    assert "rounded" in text
    assert "at random" in text
    assert "sex=" not in text


def test_what_it_cannot_be_asked(log: None, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["certify", "log.parquet", "--label", "y", "--score", "p", "--method", "missing_labels"]
    assert main([*asked, "--missing", "drop"]) == 2
    assert "--missing keep" in capsys.readouterr().err
    assert main([*asked, "--missing", "keep", "--side", "upper"]) == 2
    assert "leave --side out" in capsys.readouterr().err
    assert main([*asked, "--missing", "keep", "--missing-odds", "0.5"]) == 2
    assert "odds" in capsys.readouterr().err


def test_who_is_missing_is_asked_by_the_command(log: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "missing-labels", "log.parquet", *COLUMNS, "--by", "site", "--json"]) == 0
    reported = Curve.from_dict(json.loads(capsys.readouterr().out))
    assert (
        reported.columns == cal.diagnose.missing_labels(cal.read("log.parquet", **KEPT, by="site"), by="site").columns
    )


@pytest.mark.slow
def test_an_audit_takes_the_odds_and_prints_the_command_again(log: None, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--by", "site", "--limit", "0.2", "--quick", "--missing-odds", "1.5"]
    assert main(["audit", "log.parquet", *COLUMNS, *asked, "-o", "out.json"]) == 0
    record = cal.AuditRecord.load("out.json")
    assert {1.5, 1.0, None} == {*record.curve("missing_labels").columns["odds"]}
    text = " ".join(capsys.readouterr().out.split())
    assert "--missing keep" in text
    assert "--missing-odds 1.5" in text
