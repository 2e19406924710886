"""Rows that belong together though nobody said so: copies decide nothing, and a column that joins rows is named."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.column_names import names_cluster, numbered
from calibrant.data.specs.spec import Spec
from calibrant.report import markdown, terminal
from calibrant.stats.clusters.intraclass_correlation import intraclass_correlation

# the whole file takes seconds: it waits for --rest
pytestmark = pytest.mark.slow

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
    assert record.data["suppressed"]
    assert {record.verdict, *record.verdicts.values()} <= {"undecided", "absent"}
    assert record.exit_status == 3
    assert {c.code for c in record.checks if c.status in ("within", "over")} == set()
    assert all(f.rows_needed is None for f in (record.everyone, *record.groups))
    for reported in (terminal.render(record), markdown.render(record), repr(record)):
        assert "Not certified: rows are copies of others" in reported
    reported = terminal.render(record)
    assert "2.2 times too narrow" in reported.replace("\n  ", " ")
    assert "--key" in reported
    assert "What the error varies with" not in reported


def test_the_same_rows_once_are_judged() -> None:
    record = cal.audit(copied(1).drop_columns("own"), by="sex", **READ)
    assert not record.data["suppressed"]
    assert "copies" not in terminal.render(record)


def test_what_tells_rows_apart_or_holds_copies_together_lets_them_be_judged() -> None:
    t = copied()
    apart = t.append_column("visit", pa.array(np.arange(len(t))))
    assert not cal.audit(apart, key="visit", variables="age", quick=True, **READ).data["suppressed"]
    by_cluster = cal.audit(t, cluster="own", quick=True, **READ)
    assert not by_cluster.data["suppressed"]
    assert by_cluster.data["clusters"]["design_effect"] > 3.0
    meant = cal.audit(t, allow_same=True, quick=True, **READ)
    assert not meant.data["suppressed"]
    assert meant.settings["allow_same"]


def test_few_copies_are_told_and_leave_the_verdict() -> None:
    record = cal.audit(copied(2, 2000, share=0.05).drop_columns("own"), quick=True, label="y", score="p", limit=0.3)
    assert "repeated-rows" in record.data["warnings"]
    assert 1.0 < record.data["repeats"]["times"] < 1.2
    assert (record.data["suppressed"], record.verdict) == (False, "within")


@pytest.mark.parametrize("decimals", [1, 2])
def test_rows_that_repeat_by_chance_are_judged(decimals: int) -> None:
    rng = np.random.default_rng(decimals)
    p = np.round(rng.uniform(size=5000), decimals)
    t = {"y": (rng.uniform(size=5000) < p) * 1, "p": p, "sex": rng.integers(0, 2, 5000)}
    record = cal.audit(t, quick=True, label="y", score="p", limit=0.3)
    assert record.data["repeats"]["times"] > 5.0
    assert (record.data["suppressed"], record.verdict) == (False, "within")


# ---- a column that joins rows ----


@pytest.mark.parametrize("text", [True, False])
def test_a_column_whose_rows_are_alike_is_named_with_the_command(text: bool, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(clinic(shared=1.3, text=text), tmp_path / "visits.parquet")
    record = cal.audit(tmp_path / "visits.parquet", **READ)
    assert found_in(record) == {"patient": True}
    reported = " ".join(terminal.render(record).split())
    assert "Rows of one patient are more correlated than their scores explain: design effect" in reported
    assert "--cluster patient" in reported
    assert "times too narrow" in reported
    assert "--by patient" not in reported
    assert "cluster='patient'" in repr(record)


def test_independent_rows_are_left_in_peace() -> None:
    record = cal.audit(clinic(shared=0.0), **READ)
    assert found_in(record) == {"patient": False}
    assert "hardly more correlated" in " ".join(terminal.render(record).split())
    assert "--cluster" not in terminal.render(record)


def test_groups_and_a_named_unit_are_no_candidates() -> None:
    t = clinic(shared=1.3, name="ward", text=True)
    assert found_in(cal.audit(t, **READ)) == {"ward": True}  # P0012: a word with a number each
    t = clinic(shared=1.3)
    assert "dependence" not in cal.audit(t, cluster="patient", **READ).curves
    few = t.set_column(2, "patient", pa.array(np.arange(1500) % 25))
    assert found_in(cal.audit(few, by="patient", **READ)) == {}


def test_it_says_where_it_was_not_run() -> None:
    held = cal.sketch(clinic(shared=1.3), label="y", score="p", variables="*")
    check = next(c for c in cal.audit(held, limit=0.02).checks if c.code == "dependence")
    assert (check.status, "--tests" in check.reason) == ("not-run", True)


# ---- identifiers, which are no covariates ----


def visits(shared: float = 1.5, patients: int = 1500) -> pa.Table:
    """Return three visits of each patient, in no order: UUIDs and large numbers, and a visit's own number."""
    rng = np.random.default_rng(8)
    who = rng.permutation(np.repeat(np.arange(patients), 3))
    x = rng.normal(size=len(who))
    y = rng.uniform(size=len(who)) < 1 / (1 + np.exp(-x - shared * rng.normal(size=patients)[who]))
    own = [str(UUID(int=int(k), version=4)) for k in rng.integers(1, 2**62, patients)]
    log = {"y": y * 1, "p": 1 / (1 + np.exp(-x)), "ref": [own[k] for k in who], "visit_id": np.arange(len(who))}
    return pa.table(log | {"customer": [None if k == 7 else f"c-{k * 7919 % 99991}" for k in who], "age": x.round(1)})


@pytest.fixture(scope="module")
def seen() -> AuditRecord:
    return cal.audit(visits(), quick=True, **READ)


def test_identifiers_that_rows_share_are_tested_under_quick_too(seen: AuditRecord) -> None:
    c = seen.curves["dependence"].columns
    assert found_in(seen) == {"ref": True, "customer": True}
    assert dict(zip(c["column"], zip(c["clusters"], c["rows"], strict=True), strict=True)) == {
        "ref": (1500, 4500),
        "customer": (1499, 4497),  # a missing name is nobody's
    }
    assert all(abs(float(d) - 1.5) < 0.15 for d in c["design_effect"])
    assert "design effect 1.5. Ranges and tests here take rows as independent" in " ".join(
        terminal.render(seen).split()
    )


def test_identifiers_are_the_same_in_a_file_a_frame_and_in_parts(seen: AuditRecord, tmp_path: Any) -> None:
    import pyarrow.csv
    import pyarrow.parquet as pq

    pq.write_table(visits(), tmp_path / "visits.parquet", row_group_size=4000)
    pyarrow.csv.write_csv(visits(), tmp_path / "visits.csv")
    reported = seen.curves["dependence"].columns
    for name in ("visits.parquet", "visits.csv"):
        assert cal.audit(tmp_path / name, quick=True, **READ).curves["dependence"].columns == reported
    rows = visits()
    p = cal.predictions(rows["y"], rows["p"], covariates=rows.drop_columns(["y", "p"]))
    assert cal.audit(p, quick=True, limit=0.02).curves["dependence"].columns == reported


def test_columns_beside_the_variables_and_parts_of_a_key_are_tested(tmp_path: Any) -> None:
    assert found_in(cal.audit(visits(), variables="age", quick=True, **READ)) == {"customer": True}
    keyed = cal.audit(visits(), variables="age", key=["ref", "visit_id"], quick=True, **READ)
    assert found_in(keyed) == {"ref": True, "customer": True}
    assert found_in(cal.audit(iter(visits().to_batches()), variables=None, quick=True, **READ)) == {"customer": True}


def test_of_identifiers_nothing_is_told_but_their_names(seen: AuditRecord) -> None:
    rows = visits()
    reported = seen.to_json() + terminal.render(seen) + markdown.render(seen)
    assert not [v for v in (*rows["ref"].to_pylist()[:50], *rows["customer"].to_pylist()[:50]) if v and v in reported]
    held = cal.sketch(rows, label="y", score="p", variables="*", tests=True)
    assert "candidates" not in held.parts
    assert found_in(cal.audit(held, limit=0.02, quick=True)) == {"customer": True}  # UUIDs are no covariate


def test_independent_rows_of_identifiers_are_left_in_peace() -> None:
    record = cal.audit(visits(0.0), quick=True, **READ)
    assert found_in(record) == {"ref": False, "customer": False}
    reported = " ".join(terminal.render(record).split())
    assert "those of one customer are hardly more correlated than others" in reported
    assert "If one names a household" not in reported


def test_whole_units_are_held_however_the_rows_were_split() -> None:
    n = 66_000
    rng = np.random.default_rng(3)
    rows = pa.table({"y": rng.integers(0, 2, n), "p": rng.uniform(size=n), "user_id": rng.integers(0, 10_000, n)})
    spec = replace(Spec(label="y", score="p"), candidates=("user_id",))

    def summed(cuts: list[int]) -> Sketch:
        out = Sketch(spec)
        for a, b in itertools.pairwise([0, *cuts, n]):
            part = Sketch(spec)
            part.update(rows.slice(a, b - a), first_row=a)
            out.merge(Sketch.from_bytes(part.to_bytes(level=1)))
        return out.checked()

    whole, parts = summed([]), summed([40_001, 65_900])
    assert whole.to_bytes(level=1) == parts.to_bytes(level=1)
    held = whole.parts["candidates"]
    clusters, p, _ = held.of("user_id")
    assert 29_000 < len(clusters) <= 30_000
    share = held.share("user_id")
    assert abs(len(np.unique(clusters)) / share / 10_000 - 1) < 0.03
    score, user = rows["p"].to_numpy(), rows["user_id"].to_numpy()
    kept = np.isin(user, user[np.isin(score, p)])  # every row of a unit of which one is held
    assert sorted(score[kept]) == sorted(p)


def test_names_of_units_are_not_those_of_what_is_about_them() -> None:
    yes = ("patient", "userId", "customer_no", "id", "member key", "household")
    no = ("patient_age", "user_segment", "household_income_band", "sex", "number", "age")
    assert [names_cluster(n) for n in yes + no] == [True] * len(yes) + [False] * len(no)
    assert numbered(tuple(f"P{i:03d}" for i in range(30)))
    assert not numbered(tuple(f"{'ABC'[i % 3]}{i}" for i in range(30)))  # codes of kinds, such as of diagnoses
    assert not numbered(tuple(map(str, range(30))))


# ---- the statistic ----


def test_the_design_effect_is_that_of_copies() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(size=2000)
    y = (rng.uniform(size=2000) < p) * 1.0
    found = intraclass_correlation(np.repeat(np.arange(2000), 3), np.repeat(p, 3), np.repeat(y, 3))
    assert abs(found.design_effect - 3.0) < 0.1
    assert (found.clusters, found.rows) == (2000, 6000)
    assert found.p_value == 1 / 2000


def test_a_sample_of_the_rows_tells_the_design_effect_of_all() -> None:
    rng = np.random.default_rng(2)
    p, who = rng.uniform(size=60_000), np.repeat(np.arange(3000), 20)
    y = (np.where(rng.uniform(size=60_000) < 0.3, rng.uniform(size=3000)[who], rng.uniform(size=60_000)) < p) * 1.0
    some = np.flatnonzero(rng.uniform(size=60_000) < 0.25)
    whole, part = intraclass_correlation(who, p, y), intraclass_correlation(who[some], p[some], y[some], share=0.25)
    assert whole.design_effect > 1.7
    assert abs(part.design_effect / whole.design_effect - 1.0) < 0.2


def test_a_score_that_is_wrong_makes_no_rows_alike() -> None:
    rng = np.random.default_rng(3)
    p = np.sort(rng.uniform(0.05, 0.6, size=4000))
    y = (rng.uniform(size=4000) < np.minimum(1.6 * p, 1.0)) * 1.0
    found = intraclass_correlation(np.arange(4000) // 8, p, y)  # rows of one unit have about one score
    assert found.p_value > 0.01


def test_where_nothing_can_differ_nothing_is_alike() -> None:
    found = intraclass_correlation(np.arange(40) // 2, np.full(40, 0.3), np.ones(40))
    assert (found.design_effect, found.p_value) == (1.0, 1.0)
