"""Verdicts that someone signs, from the command: what was once called met and was not, and a shift that is plain."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from calibrant.cli import main

Floats = NDArray[np.float64]


def written(folder: Path, p: Floats, truth: Floats, seed: int) -> str:
    """Write labels drawn from `truth` beside the scores."""
    y = np.random.default_rng([seed, 1]).uniform(size=len(p)) < np.clip(truth, 0.0, 1.0)
    path = folder / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("y", "p"), *zip(y.astype(int).tolist(), p.tolist(), strict=True)])
    return str(path)


def audited(path: str, limit: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status of an audit, and its record."""
    out = Path(path).with_suffix(".json")
    columns = ("--label", "y", "--score", "p", "--limit", limit, "--quick")
    status = main(["audit", path, *columns, "-o", str(out)])
    return status, json.loads(out.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["all", "odd", "even", "alternating"])
@pytest.mark.parametrize("n", [5_000, 60_000])
def test_whole_per_cent_that_are_off_are_not_met(tmp_path: Path, which: str, n: int) -> None:
    percent = np.random.default_rng(n).integers(10, 91, n)
    off = {
        "all": np.full(n, 0.025),
        "odd": np.where(percent % 2, 0.05, 0.0),
        "even": np.where(percent % 2, 0.0, 0.05),
        "alternating": np.where(percent % 2, 0.025, -0.025),
    }[which]
    status, record = audited(written(tmp_path, percent / 100, percent / 100 + off, n), "0.02")
    assert record["data"]["display"] == {"values": 81}
    assert record["everyone"]["verdict"] in ("undecided", "over")
    assert status in (1, 3)
    assert record["everyone"]["upper"]["interval"]["high"] > 0.025


def test_a_plain_shift_is_over_the_limit(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    p = 1 / (1 + 10 ** (-(rng.normal(60.0, 150.0, 8_000)) / 400))  # a favourite at home, by rating
    status, record = audited(written(tmp_path, p, p - 0.05, 7), "0.02")
    gap = record["estimates"]["gap"]["interval"]
    assert (status, record["verdicts"]["everyone"]) == (1, "over")
    assert record["everyone"]["lower"]["interval"]["low"] > 0.85 * -gap["high"] > 0.02
    assert record["data"]["display"] == {"steps": 100}
