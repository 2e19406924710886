"""An audit of more columns than tests take: some rows choose, the others are tested, and the record says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.checks import gates
from calibrant.audit.checks.covariates import _map
from calibrant.audit.context import AuditContext
from calibrant.audit.judging import Judging
from calibrant.data.specs.local import MOST
from calibrant.views.features import CHOSEN, departure, hash_split, strongest


def rows(n: int, columns: int, effect: float = 0.0, seed: int = 0) -> cal.Predictions:
    """Return rows of which the seventh covariate carries an error; every fifth is a category, with values missing."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.15, 0.6, n)
    x: dict[str, Any] = {f"x{j}": rng.normal(size=n) for j in range(columns)}
    y = rng.random(n) < np.clip(p + effect * np.sign(x["x7"]), 0.0, 1.0)
    for j in range(0, columns, 5):
        x[f"x{j}"] = rng.choice(["a", "b", "c", None], n)
    return cal.predictions(y, p, x)


def event_of(data: cal.Predictions, **asked: Any) -> AuditContext:
    return AuditContext(cal.sketch(data, variables="*", tests=True), Judging.of(gates=gates(), **asked))


def test_a_third_of_the_rows_chooses_and_no_row_does_both() -> None:
    pilot, rest = hash_split(9000, 3)
    assert abs(len(pilot) / 9000 - 1 / 3) < 0.03
    assert np.array_equal(np.sort(np.concatenate([pilot, rest])), np.arange(9000))
    assert not np.array_equal(hash_split(9000, 4)[0], pilot)


@pytest.mark.slow
def test_rows_are_dealt_without_labels_and_tested_as_they_came() -> None:
    data = rows(1200, MOST + 20)
    found = event_of(data)
    pilot, rest = hash_split(data.n, 0)
    assert found.screen is not None
    assert found.sample_rows is not None
    assert (found.screen.pilot, found.screen.tested, found.screen.of) == (len(pilot), len(rest), MOST + 20)
    np.testing.assert_array_equal(found.sample_rows.y, data.y[rest])
    np.testing.assert_array_equal(found.sample_rows.p, data.p[rest])
    assert set(found.sample_rows.covariates.column_names) == set(found.screen.chosen)
    assert len(found.screen.chosen) == CHOSEN


@pytest.mark.slow
def test_what_carries_the_error_is_chosen() -> None:
    assert event_of(rows(3000, MOST + 20, 0.12)).screen.chosen[0] == "x7"


@pytest.mark.slow
def test_labels_of_the_rows_tested_choose_nothing() -> None:
    data = rows(900, MOST + 5)
    _, rest = hash_split(data.n, 0)
    y = np.array(data.y)
    y[rest] = 1 - y[rest]
    other = cal.predictions(y, data.p, {k: data.covariates.column(k) for k in data.covariates.column_names})
    assert event_of(other).screen == event_of(data).screen


@pytest.mark.slow
def test_up_to_a_hundred_columns_all_are_tested() -> None:
    found = event_of(rows(300, MOST))
    assert found.screen is None
    assert found.tested is found.sketch


@pytest.mark.slow
def test_group_columns_are_always_among_those_tested() -> None:
    held = cal.sketch(rows(600, MOST + 10), by=["x5", "x10"], variables="*", tests=True)
    chosen = AuditContext(held, Judging.of(gates=gates())).screen.chosen
    assert chosen[:2] == ("x5", "x10")
    assert len(chosen) == CHOSEN + 2


@pytest.mark.slow
def test_many_group_columns_are_all_tested_and_others_beside_them_while_there_is_room() -> None:
    data = rows(400, MOST + 10)
    by = [f"x{j}" for j in range(0, MOST + 10, 5)]
    found = AuditContext(cal.sketch(data, by=by, variables="*", tests=True), Judging.of(gates=gates())).screen
    assert set(by) < set(found.chosen)
    assert len(found.chosen) == len(by) + CHOSEN
    assert len(strongest(data, always=[f"x{j}" for j in range(MOST - 4)])) == MOST


@pytest.mark.slow
def test_group_columns_that_fill_the_tests_leave_no_choice_and_no_row_is_lost() -> None:
    rng = np.random.default_rng(0)
    x = {f"x{j}": rng.choice(["a", "b"], 300) for j in range(MOST + 3)}
    data = cal.predictions(rng.random(300) < 0.3, np.full(300, 0.3), x)
    held = cal.sketch(data, by=list(x), variables="*", tests=True)
    found = AuditContext(held, Judging.of(gates=gates()))
    assert (found.screen.pilot, found.screen.tested, found.sample_rows.n) == (0, 300, 300)
    assert found.screen.chosen == tuple(x)[:MOST]


@pytest.mark.slow
def test_shares_along_a_map_are_of_the_rows_tested() -> None:
    rng = np.random.default_rng(0)
    n, more = 3000, MOST + 2
    x = {f"x{j}": rng.choice(["a", "b"], n) for j in range(more)}
    data = cal.predictions(rng.random(n) < 0.3, rng.uniform(0.2, 0.4, n), x)
    found = AuditContext(cal.sketch(data, by=["x5"], variables="*", tests=True), Judging.of(gates=gates()))
    drawn = _map(found.rows, "x5", found)
    assert found.screen is not None
    assert sum(drawn.columns["share"]) == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_an_audit_of_many_columns_runs_every_check_and_says_what_it_read() -> None:
    record = cal.audit(rows(1000, MOST + 30, 0.15), limit=0.02)
    reported = record.data["screen"]
    assert reported["of"] == MOST + 30
    assert len(reported["chosen"]) == CHOSEN
    assert "x7" in reported["chosen"]
    status = {c.code: c.status for c in record.checks}
    for code in ("variables", "local-calibration", "subgroups", "strong-calibration", "repair"):
        assert status[code] not in ("not-run", "not-applicable"), code
    ranked = record.curve("ranking").columns
    assert len(ranked["variable"]) == MOST + 30
    assert ranked["high"][99] is not None
    assert ranked["high"][100] is None
    assert status["subgroups"] != "within"


def test_the_departure_sees_a_trend_a_bend_and_a_level_and_is_small_of_noise() -> None:
    rng = np.random.default_rng(1)
    n = 4000
    cell, variance = rng.integers(0, 10, n), np.full(n, 0.25)
    noise = [departure(cell, rng.normal(0, 0.5, n), variance, 10) for _ in range(200)]
    for signal in (0.04 * (cell - 4.5) / 4.5, 0.06 * np.abs(cell - 4.5) / 4.5, 0.12 * (cell == 3)):
        found = [departure(cell, rng.normal(0, 0.5, n) + signal, variance, 10) for _ in range(50)]
        assert np.median(found) > np.quantile(noise, 0.9)
    shifted = departure(cell, rng.normal(0, 0.5, n) + 0.3, variance, 10)
    assert shifted < np.quantile(noise, 0.999)  # an error of everyone is along no covariate


def test_a_departure_of_nothing_is_zero() -> None:
    nothing = np.zeros(5)
    assert departure(np.zeros(5, dtype=int), nothing, nothing, 1) == 0.0
    assert strongest(cal.predictions([0, 1], [0.5, 0.5], {"x": [1.0, 1.0]})) == ("x",)
