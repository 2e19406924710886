"""Rows that belong together though nobody said so: copies decide nothing, and a column that joins rows is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.checks.dependence import numbered
from calibrant.audit.record import AuditRecord
from calibrant.look.roles import names_unit
from calibrant.report import markdown, terminal
from calibrant.stats.units.alike import alike

READ: dict[str, Any] = {"label": "y", "score": "p", "limit": 0.02}


def copied(times: int = 5, n: int = 150, share: float = 1.0) -> pa.Table:
    """Return rows, of which a share is there several times."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=n)
    log = {"y": (rng.uniform(size=n) < p) * 1, "p": p, "age": rng.normal(size=n), "sex": rng.integers(0, 4, n)}
    log["own"] = np.arange(n)
    again = np.concatenate([np.arange(n), np.repeat(np.arange(int(share * n)), times - 1)])
    return pa.table({name: column[again] for name, column in log.items()})


def clinic(*, shared: float, name: str = "patient", text: bool = True) -> pa.Table:
    """Return 1,500 visits of 300 patients, whose frailty moves the log odds by so much, calibrated on average."""
    rng = np.random.default_rng(4)
    who = rng.integers(0, 300, 1500)
    x = rng.normal(size=1500)
    p = 1 / (1 + np.exp(-x))
    y = rng.uniform(size=1500) < 1 / (1 + np.exp(-x - shared * rng.normal(size=300)[who]))
    return pa.table(
        {"y": y * 1, "p": p, name: [f"P{k:04d}" for k in who] if text else who, "age": rng.normal(size=1500)}
    )


def found_in(record: AuditRecord) -> dict[str, bool]:
    c = record.curves["dependence"].columns
    return dict(zip(c["column"], c["found"], strict=True))


# ---- copies ----


def test_copies_decide_nothing_and_say_so_first() -> None:
    record = cal.audit(copied().drop_columns("own"), by="sex", **READ)
    assert record.data["withheld"]
    assert {record.verdict, *record.verdicts.values()} <= {"undecided", "absent"}
    assert record.exit_status == 3
    assert {c.code for c in record.checks if c.status in ("met", "broken")} == set()
    assert all(f.rows_needed is None for f in (record.everyone, *record.groups))
    for told in (terminal.render(record), markdown.render(record), repr(record)):
        assert "Not certified: rows are copies of others" in told
    told = terminal.render(record)
    assert "2.2 times too narrow" in told.replace("\n  ", " ")
    assert "--key" in told
    assert "What the error follows" not in told


def test_the_same_rows_once_are_judged() -> None:
    record = cal.audit(copied(1).drop_columns("own"), by="sex", **READ)
    assert not record.data["withheld"]
    assert "copies" not in terminal.render(record)


def test_what_tells_rows_apart_or_holds_copies_together_lets_them_be_judged() -> None:
    t = copied()
    apart = t.append_column("visit", pa.array(np.arange(len(t))))
    assert not cal.audit(apart, key="visit", variables="age", quick=True, **READ).data["withheld"]
    by_unit = cal.audit(t, cluster="own", quick=True, **READ)
    assert not by_unit.data["withheld"]
    assert by_unit.data["units"]["design_effect"] > 3.0
    meant = cal.audit(t, allow_same=True, quick=True, **READ)
    assert not meant.data["withheld"]
    assert meant.settings["allow_same"]


def test_few_copies_are_told_and_leave_the_verdict() -> None:
    record = cal.audit(copied(2, 2000, share=0.05).drop_columns("own"), quick=True, label="y", score="p", limit=0.3)
    assert "repeated-rows" in record.data["warnings"]
    assert 1.0 < record.data["repeats"]["times"] < 1.2
    assert (record.data["withheld"], record.verdict) == (False, "met")


@pytest.mark.parametrize("decimals", [1, 2])
def test_rows_that_repeat_by_chance_are_judged(decimals: int) -> None:
    rng = np.random.default_rng(decimals)
    p = np.round(rng.uniform(size=5000), decimals)
    t = {"y": (rng.uniform(size=5000) < p) * 1, "p": p, "sex": rng.integers(0, 2, 5000)}
    record = cal.audit(t, quick=True, label="y", score="p", limit=0.3)
    assert record.data["repeats"]["times"] > 5.0
    assert (record.data["withheld"], record.verdict) == (False, "met")


# ---- a column that joins rows ----


@pytest.mark.parametrize("text", [True, False])
def test_a_column_whose_rows_are_alike_is_named_with_the_command(text: bool, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(clinic(shared=1.3, text=text), tmp_path / "visits.parquet")
    record = cal.audit(tmp_path / "visits.parquet", **READ)
    assert found_in(record) == {"patient": True}
    told = " ".join(terminal.render(record).split())
    assert "Rows of one patient are more alike than their scores explain: design effect" in told
    assert "--cluster patient" in told
    assert "times too narrow" in told
    assert "--by patient" not in told
    assert "cluster='patient'" in repr(record)


def test_independent_rows_are_left_in_peace() -> None:
    record = cal.audit(clinic(shared=0.0), **READ)
    assert found_in(record) == {"patient": False}
    assert "more alike" not in terminal.render(record)


def test_groups_and_a_named_unit_are_no_candidates() -> None:
    t = clinic(shared=1.3, name="ward", text=True)
    assert found_in(cal.audit(t, **READ)) == {"ward": True}  # P0012: a word with a number each
    t = clinic(shared=1.3)
    assert "dependence" not in cal.audit(t, cluster="patient", **READ).curves
    few = t.set_column(2, "patient", pa.array(np.arange(1500) % 25))
    assert found_in(cal.audit(few, by="patient", **READ)) == {}


def test_it_says_where_it_was_not_run() -> None:
    t = clinic(shared=1.3)
    status = {c.code: c.status for c in cal.audit(t, quick=True, **READ).checks}
    assert status["dependence"] == "not-run"
    held = cal.sketch(t, label="y", score="p", variables="*")
    check = next(c for c in cal.audit(held, limit=0.02).checks if c.code == "dependence")
    assert "--tests" in check.reason


def test_names_of_units_are_not_those_of_what_is_about_them() -> None:
    yes = ("patient", "userId", "customer_no", "id", "member key", "household")
    no = ("patient_age", "user_segment", "household_income_band", "sex", "number", "age")
    assert [names_unit(n) for n in yes + no] == [True] * len(yes) + [False] * len(no)
    assert numbered(tuple(f"P{i:03d}" for i in range(30)))
    assert not numbered(tuple(f"{'ABC'[i % 3]}{i}" for i in range(30)))  # codes of kinds, such as of diagnoses
    assert not numbered(tuple(map(str, range(30))))


# ---- the statistic ----


def test_the_design_effect_is_that_of_copies() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(size=2000)
    y = (rng.uniform(size=2000) < p) * 1.0
    found = alike(np.repeat(np.arange(2000), 3), np.repeat(p, 3), np.repeat(y, 3))
    assert abs(found.design_effect - 3.0) < 0.1
    assert (found.units, found.rows) == (2000, 6000)
    assert found.p_value == 1 / 2000


def test_a_sample_of_the_rows_tells_the_design_effect_of_all() -> None:
    rng = np.random.default_rng(2)
    p, who = rng.uniform(size=60_000), np.repeat(np.arange(3000), 20)
    y = (np.where(rng.uniform(size=60_000) < 0.3, rng.uniform(size=3000)[who], rng.uniform(size=60_000)) < p) * 1.0
    some = np.flatnonzero(rng.uniform(size=60_000) < 0.25)
    whole, part = alike(who, p, y), alike(who[some], p[some], y[some], share=0.25)
    assert whole.design_effect > 1.7
    assert abs(part.design_effect / whole.design_effect - 1.0) < 0.2


def test_a_score_that_is_wrong_makes_no_rows_alike() -> None:
    rng = np.random.default_rng(3)
    p = np.sort(rng.uniform(0.05, 0.6, size=4000))
    y = (rng.uniform(size=4000) < np.minimum(1.6 * p, 1.0)) * 1.0
    found = alike(np.arange(4000) // 8, p, y)  # rows of one unit have about one score
    assert found.p_value > 0.01


def test_where_nothing_can_differ_nothing_is_alike() -> None:
    found = alike(np.arange(40) // 2, np.full(40, 0.3), np.ones(40))
    assert (found.design_effect, found.p_value) == (1.0, 1.0)
