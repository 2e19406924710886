"""A repair fitted on two years of the bundled data, judged on the two that follow."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.data import EMPLOYMENT, EMPLOYMENT_BY, employment_path
from calibrant.repair.judge.verdict import AS_AUDITED, Comparison

pytestmark = pytest.mark.slow
ATTRIBUTES = tuple(name for name in EMPLOYMENT_BY if name != "year")


@pytest.fixture(scope="module")
def found() -> Comparison:
    data = cal.read(employment_path(), **EMPLOYMENT, by=EMPLOYMENT_BY)
    year = data.covariates.column("year").to_numpy()
    earlier, later = (data.part(np.flatnonzero(keep)) for keep in (year <= 2016, year >= 2017))
    repairs = [cal.repair.Platt(), cal.repair.AugmentedLogistic(variables=ATTRIBUTES)]
    return cal.repair.evaluate(
        later,
        repairs=repairs,
        fit_on=earlier,
        by=ATTRIBUTES,
        variables=ATTRIBUTES,
        steps=50,
        tests=(),
        smallest_group=1000,
    )


def test_the_certified_bound_and_the_worst_group_bound_both_fall(found: Comparison) -> None:
    before, after = found.row(AS_AUDITED), found.row("AugmentedLogistic")
    assert (found.settings["rows_fit"], found.settings["rows_judged"]) == (137_911, 139_766)
    assert after["error_high"] < 0.75 * before["error_high"]
    assert after["worst_group_high"] < before["worst_group_high"]
    assert after["worst_group_low"] < 0.5 * before["worst_group_low"]
    assert after["distance_high"] < before["distance_high"]


def test_both_are_better_and_move_no_harm(found: Comparison) -> None:
    assert found.recommended == "Platt"  # the simpler: the other's Brier score is lower, but not shown to be
    assert found.row("AugmentedLogistic")["brier"] < found.row("Platt")["brier"]
    v = found.verdicts["AugmentedLogistic"]
    assert {"brier", "log_loss", "variable:age"} <= set(v["better"])
    assert not v["worse"]
    assert found.row("AugmentedLogistic")["groups_better"] > 5 * found.row("AugmentedLogistic")["groups_worse"]
