"""The judge of repairs: what it returns, what it refuses, and what it calls better."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.repair.comparison import AS_AUDITED, Comparison

Platt = cal.repair.Platt


def rows(n: int = 6000, seed: int = 11, bend: float = 1.0, groups: bool = True, **more: Any) -> Any:
    """Return predictions whose event rate is the score to a power, with two groups and a number beside it."""
    rng = np.random.default_rng([seed, 0xC0])
    true = rng.uniform(0.02, 0.98, n)
    side = {"sex": np.array(["f", "m"])[rng.integers(0, 2, n)], "age": rng.integers(18, 90, n)}
    return cal.predictions(rng.uniform(size=n) < true, true**bend, side if groups else None, **more)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return cal.repair.compare(rows(bend=2.0), [Platt(), Platt(scale="raw")], by=["sex", "age"], tests=())


def test_names_rows_and_round_trip(found: Comparison) -> None:
    assert found.table.columns["probability"] == (AS_AUDITED, "Platt", "Platt 2")
    assert set(found.maps) == {"Platt", "Platt 2"} == set(found.verdicts)
    again = Comparison.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again == found


def test_a_real_improvement_is_recommended_and_said(found: Comparison) -> None:
    v = found.verdicts["Platt"]
    assert {"error", "brier", "log_loss"} <= set(v["better"])
    assert not v["worse"]
    assert v["line"].startswith("Platt: better in certified error, Brier score")
    assert found.recommended in ("Platt", "Platt 2")
    assert found.row("Platt")["error_high"] < found.row(AS_AUDITED)["error_low"]
