"""Unlisted subgroups from the command: a planted corner is certified and named; what is calibrated is not accused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant.cli import main

pytestmark = pytest.mark.slow
COLUMNS = ["--label", "y", "--score", "p"]


def file(folder: Path, n: int, gap: float, covariates: int = 8) -> str:
    """Write people of whom, in a corner of two traits, more are cases than the score says."""
    rng = np.random.default_rng(23)
    x = rng.uniform(size=(covariates, n))
    p = 1 / (1 + np.exp(1 - 1.6 * (x[0] - 0.5)))
    corner = (x[1] > 0.8) & (x[2] > 0.8) if covariates > 2 else x[-1] > 0.9
    y = rng.uniform(size=n) < p + np.where(corner, gap, 0.0)
    path = folder / f"{n}-{gap:g}-{covariates}.parquet"
    pq.write_table(pa.table({"y": y.astype(int), "p": p, **{f"x{i + 1}": v for i, v in enumerate(x)}}), path)
    return str(path)


def audited(path: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status of an audit, and its record."""
    out = Path(path).with_suffix(".json")
    status = main(["audit", path, *(() if path.endswith("sketch") else COLUMNS), *options, "-o", str(out)])
    return status, json.loads(out.read_text(encoding="utf-8"))


def check(record: dict[str, Any]) -> dict[str, Any]:
    return next(c for c in record["checks"] if c["code"] == "subgroups")


@pytest.mark.slow
def test_a_planted_corner_breaks_the_limit_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    status, record = audited(file(tmp_path, 60_000, 0.07), "--limit", "0.02", "-o", str(page))
    stated = " ".join(capsys.readouterr().out.split())
    assert (status, record["verdict"], record["everyone"]["verdict"]) == (1, "over", "within")
    assert check(record)["status"] == "over"
    assert check(record)["outcome"]["parts"]["p_scan"] == 0.001
    assert "x2 over 0.8 with x3 over 0.8 is over it." in stated
    assert "Unlisted subgroups: 1 over the limit. Searched" in stated
    assert "Most evident: x2 over 0.8 and x3 over 0.8: +" in stated
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 500_000
    assert 'class="frame"' in text


@pytest.mark.slow
def test_what_is_calibrated_is_not_accused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, record = audited(file(tmp_path, 60_000, 0.0), "--limit", "0.02")
    assert record["verdict"] == "within"
    assert check(record)["status"] == "undecided"
    assert "nlisted subgroups" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_as_a_gate_undecided_is_not_a_pass(tmp_path: Path) -> None:
    path = file(tmp_path, 2_500, 0.0, covariates=2)
    assert audited(path, "--limit", "0.3")[0] == 0
    assert audited(path, "--limit", "0.1", "--fail-on", "subgroups")[0] == 3
    assert audited(path, "--fail-on", "subgroups")[0] == 0  # no limit, and no error is found
    assert audited(path, "--quick", "--limit", "0.3")[1]["checks"][-2]["reason"] == "left out by --quick"
    assert main(["audit", path, *COLUMNS, "--quick", "--fail-on", "subgroups"]) == 2
    off = file(tmp_path, 2_500, 0.5, covariates=2)
    assert audited(off)[0] == 0
    assert audited(off, "--fail-on", "subgroups")[0] == 1


@pytest.mark.slow
def test_a_sketch_answers_as_its_rows_do(tmp_path: Path) -> None:
    path, held = file(tmp_path, 2_500, 0.3, covariates=3), str(tmp_path / "held.sketch")
    assert main(["sketch", path, *COLUMNS, "--variables", "x1,x2,x3", "--tests", "--out", held]) == 0
    (first, one), (second, two) = audited(path, "--limit", "0.05"), audited(held, "--limit", "0.05")
    assert first == second
    assert one["estimates"]["subgroups"] == two["estimates"]["subgroups"]
    assert one["curves"]["subgroups"] == two["curves"]["subgroups"]
    assert main(["sketch", path, *COLUMNS, "--variables", "x1", "--out", held]) == 0
    assert audited(held, "--fail-on", "subgroups")[0] == 3  # not run is not a pass


@pytest.mark.slow
def test_few_rows_no_covariates_and_a_large_mask_are_said(tmp_path: Path) -> None:
    assert "at least 20" in check(audited(file(tmp_path, 10, 0.0))[1])["reason"]
    path = file(tmp_path, 2_500, 0.3, covariates=3)
    assert "no covariates" in check(audited(path, "--variables", "none")[1])["reason"]
    _, record = audited(path, "--mask", "200", "--limit", "0.05")
    curve = record["curves"]["subgroups"]
    assert all(200 <= rows <= 2_300 for rows in curve["columns"]["rows"])
    assert record["estimates"]["subgroups"]["settings"]["min_size"] == 0.08
    assert all(
        rows >= 200 for rows in record["curves"].get("subgroup_map", {"columns": {"rows": []}})["columns"]["rows"]
    )
