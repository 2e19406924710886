"""Distinct pockets: the ranges told hold together whichever pockets are told, and each planted error is told once."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cal
from calibrant.stats.subgroups.ranges import ends
from calibrant.views.rules import Condition, columns_of
from validity.acceptance import check
from validity.subgroup_designs import DESIGNS, FINEST, calibrated, drawn, planted

ALPHA = 0.05
RANGES = sys.modules[ends.__module__]


def missed(data: Any, eta: Any, curve: Any) -> bool:
    """Tell whether a range told does not hold the true gap of its people."""
    columns, c = columns_of(data, None), curve.columns
    for i, conditions in enumerate(curve.settings["conditions"]):
        inside = columns.matching([Condition.from_dict(v) for v in conditions])
        assert inside.sum() == c["rows"][i]
        true = float((eta - data.p)[inside].mean())
        if not c["low"][i] - FINEST <= true <= c["high"][i] + FINEST:
            return True
    return False


SOME = ("calibrated", "planted", "rare")  # of the others the night has the ranges


@pytest.mark.parametrize(
    "design", [d if d.__name__ in SOME else pytest.param(d, marks=pytest.mark.nightly) for d in DESIGNS]
)
def test_the_ranges_told_hold_together(design: Any) -> None:
    def wrong(replicate: int) -> bool:
        data, eta = drawn(design, 1000, replicate)
        return missed(data, eta, cal.diagnose.subgroups(data, min_size=0.02, alpha=ALPHA))

    check(wrong, 400, ALPHA)


def test_of_a_calibrated_model_hardly_any_floor_is_above_zero() -> None:
    def found(replicate: int) -> bool:
        return bool(cal.diagnose.subgroups(drawn(calibrated, 1500, replicate)[0]).columns["floor"][0] > 0)

    check(found, 400, ALPHA)


# ---- Planted errors ----


def corner(seed: int, gap: float, n: int = 60_000) -> Any:
    """Eight traits, and a corner of two of them that is off."""
    rng = np.random.default_rng([0xF0ED, seed])
    x = rng.uniform(size=(n, 8))
    p = expit(-0.9 + 0.8 * (x[:, 0] - 0.5) + 0.6 * (x[:, 1] - 0.5) + 0.5 * rng.normal(size=n))
    y = rng.random(n) < p + gap * ((x[:, 1] > 0.8) & (x[:, 2] > 0.8))
    return cal.predictions(y, p, {f"x{j + 1}": x[:, j] for j in range(8)})


def test_a_planted_corner_is_told_once_and_certified() -> None:
    found = [cal.diagnose.subgroups(corner(seed, 0.07)).columns for seed in range(20)]
    assert sum(c["rule"][0] == "x2 over 0.8 and x3 over 0.8" for c in found) >= 18
    assert all(c["floor"][0] > 0 for c in found)
    assert sum(len(c["rule"]) for c in found) <= 22


@pytest.mark.parametrize("runs", [80, pytest.param(600, marks=pytest.mark.nightly)])
def test_peeling_leaves_nothing_of_a_pocket_that_was_taken_out(runs: int) -> None:
    """No guarantee, but a rule that has to work: where one box is off, no second is told, but by chance."""

    def second(replicate: int) -> bool:
        data, _ = drawn(planted, 2000, replicate)
        found = cal.diagnose.subgroups(data, min_size=0.02, rules=2).columns["rule"]
        return len(found) > 1 and set(found[0].split(" and ")) == {"x over 0.8", "z over 0.8"}

    check(second, runs, ALPHA)
