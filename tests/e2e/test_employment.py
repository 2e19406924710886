"""The main job on real data: a deployed-style classifier of employment in Massachusetts, 2015 to 2018."""

from __future__ import annotations

from typing import Any

import pytest

import calibrant as cal
from calibrant.data import EMPLOYMENT, EMPLOYMENT_BY, employment_path

pytestmark = pytest.mark.slow


@pytest.fixture
def record(example: Any) -> cal.AuditRecord:
    return example.record


def group(record: cal.AuditRecord, variable: str, value: str) -> Any:
    return next(g for g in record.groups if g.variables == ((variable, value),))


def test_everyone(record: cal.AuditRecord) -> None:
    assert record.everyone.rows == 277_677
    assert record.everyone.lower.interval.low >= 0.005
    assert record.everyone.upper.interval.high <= 0.0135
    assert record.everyone.lower.interval.low <= record.everyone.upper.interval.high


def test_drift_is_found_in_the_last_year_and_not_in_the_first(record: cal.AuditRecord) -> None:
    first, last = (group(record, "year", y) for y in ("2015", "2018"))
    assert last.lower.interval.low > 0.004
    assert first.lower.interval.low <= 0.004 < first.upper.interval.high


def test_ages_and_races_are_in_one_simultaneous_family(record: cal.AuditRecord) -> None:
    shares = {g.lower.settings["delta"] for g in record.groups} | {g.upper.settings["delta"][1] for g in record.groups}
    each = 0.05 / len(record.groups)
    assert {round(s, 12) for s in shares} == {round(0.2 * each, 12), round(0.5 * each, 12)}  # over by error, and within
    assert {"age", "race", "year"} <= {g.variables[0][0] for g in record.groups}


def test_small_groups_are_pooled(record: cal.AuditRecord) -> None:
    assert min(g.rows for g in record.groups) >= 20
    pools = [g for g in record.groups if g.pooled]
    assert [(g.variables[0][0], g.rows, g.pooled) for g in pools] == [("race", 102, 2)]


def test_rows_in_every_variable_add_up(record: cal.AuditRecord) -> None:
    for variable in EMPLOYMENT_BY:
        rows = [g.rows for g in record.groups if g.variables[0][0] == variable]
        assert abs(sum(rows) - record.everyone.rows) < 5 * len(rows)  # each is told as a multiple of five


def test_the_record_round_trips(record: cal.AuditRecord) -> None:
    again = cal.AuditRecord.from_json(record.to_json())
    assert again.to_json() == record.to_json()
    assert again.exit_status == record.exit_status == 1


def test_the_page_is_light_and_names_who_is_badly_served(example: Any) -> None:
    text = example.page.read_text(encoding="utf-8")
    assert len(text.encode()) < 565_000
    assert "foreign born" in text


def test_limits_move_the_verdict() -> None:
    data = cal.sketch(employment_path(), **EMPLOYMENT)
    verdicts = {limit: cal.audit(data, limit=limit).verdict for limit in (0.004, 0.009, 0.0135)}
    assert verdicts == {0.004: "over", 0.009: "undecided", 0.0135: "within"}
