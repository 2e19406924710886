"""The command, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import calibrant.certify.certificate as declaring
from calibrant import AuditRecord, Sketch
from calibrant.certify import rounded
from calibrant.cli import main
from calibrant.results import Estimate, Side


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(7)
    p = rng.uniform(size=3000)
    table = pa.table(
        {"y": (rng.uniform(size=3000) < p).astype(int), "p": p, "sex": np.where(rng.uniform(size=3000) < 0.5, "f", "m")}
    )
    pa.csv.write_csv(table, tmp_path / "log.csv")
    shifted = pa.table({"y": np.zeros(3000, int), "p": p, "sex": table["sex"]})
    pa.csv.write_csv(shifted, tmp_path / "wrong.csv")
    return tmp_path


def run(log: Path, file: str, *more: str) -> int:
    return main(["audit", str(log / file), "--label", "y", "--score", "p", *more])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "limit", "status", "word"),
    [
        ("log.csv", "0.2", 0, "Everyone: within the limit."),
        ("log.csv", "0.03", 3, "Everyone: undecided."),
        ("wrong.csv", "0.2", 1, "Everyone: over the limit."),
        ("log.csv", None, 0, "No limit is set."),
    ],
)
def test_exit_status_says_the_verdict(
    log: Path, capsys: pytest.CaptureFixture[str], file: str, limit: str | None, status: int, word: str
) -> None:
    assert run(log, file, "--quick", *(["--limit", limit] if limit else [])) == status
    assert word in capsys.readouterr().out


@pytest.mark.slow
def test_a_broken_group_breaks_the_audit(log: Path) -> None:
    assert run(log, "wrong.csv", "--by", "sex", "--limit", "0.3") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit"],
        ["nothing"],
        ["audit", "missing.csv", "--label", "y", "--score", "p"],
        ["audit", "LOG", "--label", "y"],
        ["audit", "LOG", "--label", "y", "--score", "p", "--limit", "x"],
        ["plan", "0"],
        ["merge", "missing.sketch", "--out", "x"],
        ["certify", "LOG", "--label", "y", "--score", "p", "--method", "magic"],
        ["audit", "LOG", "--label", "y", "--score", "p", "-o", "/no/such/place.html"],
        ["audit", "LOG", "--label", "y", "--score", "p", "--costs", "-1,4"],
        ["audit", "LOG", "--label", "y", "--score", "p", "--costs", "a,b"],
        ["compare", "LOG", "--label", "y", "--score", "p,p2", "--measure", "worth"],
    ],
)
def test_bad_usage_is_status_2_and_one_line(
    log: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main([str(log / "log.csv") if a == "LOG" else a for a in arguments]) == 2
    assert capsys.readouterr().err.strip().count("\n") == 0


def test_unexpected_errors_are_status_70(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("calibrant.cli.commands.audited", broken)
    assert run(log, "log.csv") == 70
    assert "boom" in capsys.readouterr().err


@pytest.mark.slow
def test_json_on_standard_output_is_the_record(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(log, "log.csv", "--by", "sex", "--limit", "0.2", "--json")
    text = capsys.readouterr().out
    record = AuditRecord.from_json(text)
    assert json.loads(text)["verdict"] == record.verdict
    assert record.to_json() + "\n" == text


@pytest.mark.slow
def test_same_input_same_bytes(log: Path) -> None:
    for i in (1, 2):
        run(
            log,
            "log.csv",
            "--by",
            "sex",
            "--limit",
            "0.1",
            "-o",
            str(log / f"{i}.html"),
            "-o",
            str(log / f"{i}.json"),
        )
    assert (log / "1.html").read_bytes() == (log / "2.html").read_bytes()
    assert (log / "1.json").read_bytes() == (log / "2.json").read_bytes()


@pytest.mark.slow
def test_sketches_add_up_to_the_same_audit(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = [str(log / "log.csv"), "--label", "y", "--score", "p"]
    assert main(["sketch", *data, "--by", "sex", "--out", str(log / "a.sketch")]) == 0
    assert main(["sketch", data[0], "--like", str(log / "a.sketch"), "--out", str(log / "b.sketch")]) == 0
    assert (
        main(["merge", str(log / "a.sketch"), str(log / "b.sketch"), "--allow-same", "--out", str(log / "c.sketch")])
        == 0
    )
    capsys.readouterr()
    main(["audit", str(log / "a.sketch"), "--quick", "--json"])
    from_sketch = json.loads(capsys.readouterr().out)
    run(log, "log.csv", "--by", "sex", "--quick", "--json")
    from_file = json.loads(capsys.readouterr().out)
    assert from_sketch["groups"] == from_file["groups"]
    assert from_sketch["data"]["fingerprint"] == from_file["data"]["fingerprint"]
    main(["audit", str(log / "c.sketch"), "--quick", "--json"])
    assert json.loads(capsys.readouterr().out)["data"]["rows"] == 6000


@pytest.mark.slow
def test_a_test_named_as_a_gate_counts_for_the_exit_status(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    p, x = rng.uniform(0.2, 0.8, 3000), rng.normal(size=3000)
    y = rng.uniform(size=3000) < p + np.where(x > 0, 0.15, -0.15)
    file, held = tmp_path / "off.parquet", str(tmp_path / "off.sketch")
    pq.write_table(pa.table({"y": y.astype(int), "p": p, "x": x}), file)
    data = [str(file), "--label", "y", "--score", "p"]
    assert main(["audit", *data]) == 0
    assert main(["audit", *data, "--fail-on", "local-calibration"]) == 1
    assert main(["sketch", *data, "--out", held]) == 0
    assert main(["audit", held, "--fail-on", "local-calibration"]) == 3  # not run is not a pass
    assert main(["audit", *data, "--quick", "--fail-on", "local-calibration"]) == 2


@pytest.mark.slow
def test_certify_and_plan(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    methods = "raw_lower,rounded,jittered,distance,bounded_variation"
    assert main(["certify", str(log / "log.csv"), "--label", "y", "--score", "p", "--method", methods]) == 0
    stated = capsys.readouterr().out
    assert all(m in stated for m in methods.split(","))
    assert main(["plan", "0.02", "--method", "jittered"]) == 0
    assert "rows" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["audit", "example", "certify", "plan", "sketch", "merge"])
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    stated = capsys.readouterr().out
    assert "exit status" in stated
    assert "usage: calibrant" in stated


@pytest.mark.slow
def test_the_example_leaves_a_report(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "calibrant", "example", "--quick"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env=os.environ | {"PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "calibrant-example.html").read_bytes()
    assert len(page) <= 500_000
    assert "foreign born" in done.stdout


def test_two_certificates_may_share_the_name_of_a_setting(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(declaring, "_DECLARED", dict(declaring._DECLARED))
    given = []

    @declaring.certificate(order=99, settings=(declaring.Setting("steps", 20, "M", "steps of mine"),))
    def mine(data: Sketch, *, alpha: float, side: Side, seed: int, steps: int) -> Estimate:
        given.append(steps)
        return rounded(data, alpha=alpha, side=side, seed=seed, steps=steps)

    @declaring.certificate(order=98, settings=(declaring.Setting("steps", 100, "K", "rounding steps of the score"),))
    def another(data: Sketch, *, alpha: float, side: Side, seed: int, steps: int) -> Estimate:
        given.append(steps)
        return rounded(data, alpha=alpha, side=side, seed=seed, steps=steps)

    asked = ["certify", str(log / "log.csv"), "--label", "y", "--score", "p", "--method", "mine,another,rounded"]
    assert main(asked) == 0
    assert main([*asked, "--steps", "50"]) == 0
    assert given == [20, 100, 50, 50]
    capsys.readouterr()
    assert main(["certify", "--help"]) == 0
    stated = " ".join(capsys.readouterr().out.split())
    shared = "of rounded, worst_group, another: rounding steps of the score (default 100); of mine: steps of mine"
    assert f"{shared} (default 20)" in stated


def test_pockets_are_certified_by_the_command(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["certify", str(log / "log.csv"), "--label", "y", "--score", "p"]
    assert main([*asked, "--method", "subgroups", "--clear-size", "0.2", "--order", "1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["settings"]["clear_size"] == 0.2
    assert found["settings"]["order"] == 1
    assert len(found["settings"]["attributes"]) > 1
    assert main([*asked, "--method", "rounded", "--variables", "x"]) == 2
    assert "--variables goes with --method subgroups" in capsys.readouterr().err


def test_certificates_go_by_hyphens_too(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stated = []
    for methods in ("raw_lower,bounded_variation", "raw-lower,bounded-variation"):
        assert main(["certify", str(log / "log.csv"), "--label", "y", "--score", "p", "--method", methods]) == 0
        stated.append(capsys.readouterr().out)
    assert stated[0] == stated[1]
