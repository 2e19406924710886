"""Rows that belong together though nobody said so: copies decide nothing, and a column that joins rows is named."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.cli import main
from calibrant.data.specs.column_names import names_cluster
from calibrant.report import markdown, terminal
from calibrant.report.findings import SharedBy
from calibrant.report.wording import headline

# what takes seconds waits for --rest
slow = pytest.mark.slow

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


def found_in(record: AuditRecord) -> list[tuple[str, ...]]:
    return [tuple(names) for names in record.curves["dependence"].columns.get("columns", ())]


def said(record: AuditRecord) -> str:
    return " ".join(terminal.render(record).split())


def snapshots(name: str = "bout", together: bool = False, n: int = 60) -> pa.Table:
    """Return 120 games of one outcome each, looked at so many times; a column names them, or two do together."""
    rng = np.random.default_rng(2)
    game = np.repeat(np.arange(120), n)
    rate = rng.uniform(0.2, 0.8, 120)
    p = np.clip(rate[game] + rng.normal(0, 0.05, len(game)), 0.01, 0.99)
    own: dict[str, Any] = {name: [f"{name}-{k}" for k in game]}
    if together:
        own = {
            "season": 2000 + game % 12,
            "home": [f"t{k % 10}" for k in game],
            "away": [f"t{10 + k // 12}" for k in game],
        }
    minute = np.tile(np.arange(n), 120)
    return pa.table({"y": (rng.uniform(size=120) < rate)[game] * 1, "p": p, **own, "minute": minute})


# ---- copies ----


@slow
def test_copies_decide_nothing_and_say_so_first() -> None:
    record = cal.audit(copied().drop_columns("own"), by="sex", **READ)
    assert record.withheld
    assert {record.verdict, *record.verdicts.values()} == {"not_checked"}
    assert not any(record.error_shown.values())
    assert record.shares == ()
    assert record.exit_status == 3
    assert {c.code for c in record.checks if c.status in ("within", "over")} == set()
    assert all(f.rows_needed is None for f in (record.everyone, *record.groups))
    for reported in (terminal.render(record), markdown.render(record), repr(record)):
        assert "Not certified: rows are copies of others" in reported
    reported = terminal.render(record)
    assert "2.2 times too narrow" in reported.replace("\n  ", " ")
    assert 'key="COLUMN"' in reported
    assert "What the error varies with" not in reported


@slow
def test_the_same_rows_once_are_judged() -> None:
    record = cal.audit(copied(1).drop_columns("own"), by="sex", **READ)
    assert not record.withheld
    assert "copies" not in terminal.render(record)


@slow
def test_what_tells_rows_apart_or_holds_copies_together_lets_them_be_judged() -> None:
    t, alone = copied(), copied().drop_columns("own")
    apart = alone.append_column("visit", pa.array(np.arange(len(t))))
    assert not cal.audit(apart, key="visit", variables="age", quick=True, **READ).withheld
    by_cluster = cal.audit(t, cluster="own", quick=True, **READ)
    assert not by_cluster.withheld
    assert by_cluster.data["clusters"]["design_effect"] > 3.0
    meant = cal.audit(alone, allow_same=True, quick=True, **READ)
    assert not meant.withheld
    assert meant.settings["allow_same"]


@slow
def test_few_copies_are_told_and_leave_the_verdict() -> None:
    record = cal.audit(copied(2, 2000, share=0.05).drop_columns("own"), quick=True, label="y", score="p", limit=0.3)
    assert "repeated-rows" in record.data["warnings"]
    assert 1.0 < record.data["repeats"]["times"] < 1.2
    assert (record.withheld, record.verdict) == (None, "within")


@slow
@pytest.mark.parametrize("decimals", [1, 2])
def test_rows_that_repeat_by_chance_are_judged(decimals: int) -> None:
    rng = np.random.default_rng(decimals)
    p = np.round(rng.uniform(size=5000), decimals)
    t = {"y": (rng.uniform(size=5000) < p) * 1, "p": p, "sex": rng.integers(0, 2, 5000)}
    record = cal.audit(t, quick=True, label="y", score="p", limit=0.3)
    assert record.data["repeats"]["times"] > 5.0
    assert (record.withheld, record.verdict) == (None, "within")


# ---- a column that rows share ----


@slow
@pytest.mark.parametrize("name", ["bout", "q", "encounter"])
def test_one_outcome_looked_at_many_times_decides_nothing_whatever_the_column_is_called(
    name: str, tmp_path: Any
) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(snapshots(name), tmp_path / "log.csv")
    record = cal.audit(tmp_path / "log.csv", quick=True, **READ)
    assert found_in(record) == [(name,)]
    c = record.curves["dependence"].columns
    assert (c["clusters"], c["rows"], c["one_outcome"], c["kind"]) == ((120,), (7200,), (1.0,), ("cluster",))
    assert c["design_effect"][0] > 50.0
    assert (record.withheld, record.verdict, record.exit_status) == (f"dependence by {name}", "not_checked", 3)
    reported = said(record)
    assert f"Not certified: rows of one {name} share one outcome. Audit by clusters." in reported
    assert "one outcome many times" in reported
    assert f"--cluster {name}" in reported
    assert "--cluster none" in reported
    assert f"--cluster {name}" in repr(record)
    assert "rows are copies" not in markdown.render(record)


@slow
def test_columns_that_name_a_game_together_are_found_and_audited(tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(snapshots(together=True), tmp_path / "log.parquet")
    record = cal.audit(tmp_path / "log.parquet", quick=True, **READ)
    assert found_in(record) == [("season", "away")]
    assert "--cluster season+away" in said(record)
    by_game = cal.audit(tmp_path / "log.parquet", quick=True, cluster="season+away", **READ)
    assert (by_game.data["cluster"], by_game.data["clusters"]["count"]) == ("season+away", 120)
    assert not by_game.withheld
    three = cal.audit(tmp_path / "log.parquet", quick=True, cluster="season+home+away", **READ)
    assert three.data["clusters"]["count"] == 120
    assert (
        three.everyone.upper
        == cal.audit(snapshots(together=True), quick=True, cluster="season+home+away", **READ).everyone.upper
    )


@slow
def test_the_column_is_looked_at_beside_the_variables_named_too() -> None:
    record = cal.audit(snapshots(), variables="minute", quick=True, **READ)
    assert found_in(record) == [("bout",)]
    assert found_in(cal.audit(snapshots(), variables=None, quick=True, **READ)) == [("bout",)]
    named = snapshots()
    rows = cal.predictions(named["y"], named["p"], covariates=named.select(["bout", "minute"]))
    assert found_in(cal.audit(rows, quick=True, limit=0.02)) == [("bout",)]


@slow
def test_declared_independence_is_kept_told_and_restores_the_verdict() -> None:
    record = cal.audit(snapshots(), cluster="none", quick=True, **READ)
    assert (record.withheld, record.settings["independent"], record.verdict) == (None, True, "over")
    assert 'declared independent by cluster="none"' in said(record)
    alone = cal.audit(clinic(shared=0.0), cluster="none", quick=True, **READ)
    assert 'Rows are declared independent by cluster="none".' in said(alone)


@pytest.mark.slow
def test_numbers_of_many_digits_and_blanks_are_read_as_they_are(tmp_path: Any) -> None:
    import pyarrow.csv

    t = snapshots(n=20)
    game = [int(name.split("-")[1]) for name in t["bout"].to_pylist()]
    large = t.append_column("case", pa.array([9007199254740993 + 2 * k if k else None for k in game])).drop_columns(
        "bout"
    )
    pyarrow.csv.write_csv(large, tmp_path / "log.csv")
    for source in (large, tmp_path / "log.csv"):
        record = cal.audit(source, variables=None, quick=True, **READ)
        assert found_in(record) == [("case",)]
        assert record.curves["dependence"].columns["clusters"] == (119,)


@pytest.mark.slow
def test_groups_by_which_one_audits_are_no_clusters_alone() -> None:
    t = snapshots(n=20)
    pairs = t.append_column("half", pa.array([int(v.split("-")[1]) // 3 for v in t["bout"].to_pylist()]))
    record = cal.audit(pairs.drop_columns("bout"), by="half", quick=True, **READ)
    assert found_in(record) == []
    assert "Groups were not looked at as clusters: half." in said(record)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["season,away", pytest.param("season,home,away", marks=slow)])
def test_groups_are_looked_at_together(by: str, tmp_path: Any) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(snapshots(together=True, n=20), tmp_path / "log.csv")
    record = cal.audit(tmp_path / "log.csv", by=by.split(","), variables=None, quick=True, **READ)
    assert found_in(record) == [("season", "away")]
    assert record.withheld
    held = cal.audit(snapshots(together=True, n=20), by=by.split(","), quick=True, **READ)
    assert found_in(held) == [("season", "away")]


@slow
def test_a_group_of_one_outcome_each_is_a_cluster_too() -> None:
    record = cal.audit(snapshots("q", n=20), by="q", quick=True, **READ)
    assert found_in(record) == [("q",)]
    assert record.withheld


@pytest.mark.slow
def test_a_column_that_makes_the_label_is_left_out_and_no_cluster() -> None:
    rng = np.random.default_rng(5)
    p = rng.uniform(size=2000)
    y = (rng.uniform(size=2000) < p) * 1
    days = np.where(y == 1, rng.integers(1, 60, 2000), rng.integers(100, 160, 2000))
    for variables in ("*", "age"):
        t = pa.table({"y": y, "p": p, "days": days, "age": rng.normal(size=2000)})
        assert found_in(cal.audit(t, variables=variables, quick=True, **READ)) == []


@pytest.mark.slow
def test_a_few_sites_that_are_off_leave_the_verdict() -> None:
    rng = np.random.default_rng(7)
    site, p = rng.integers(0, 40, 6000), rng.beta(2.0, 5.0, 6000)
    y = (rng.random(6000) < np.clip(p + 0.25 * (site == 7), 0.0, 1.0)) * 1
    record = cal.audit(pa.table({"y": y, "p": p, "site": site}), quick=True, **READ)
    assert found_in(record) == [("site",)]
    assert record.curves["dependence"].columns["kind"] == ("group",)
    assert not record.withheld
    assert 'a few of which are off: by="site".' in said(record)
    assert 'cluster="site"' in said(record)


def test_where_a_few_sites_withhold_the_verdict_the_headline_offers_them_as_groups() -> None:
    few = SharedBy(("site",), 50.0, 40, False, True, True)
    assert next(headline._correlated(few)).endswith(
        "rows of one site are correlated. Audit by clusters, or by these groups."
    )


def test_predictions_say_where_their_clusters_are_named() -> None:
    rows = cal.predictions([0, 1], [0.2, 0.8])
    with pytest.raises(cal.BadInput, match="make them with cluster=, which takes one value a row"):
        cal.audit(rows, cluster="season+away")


@slow
@pytest.mark.parametrize("text", [True, False])
def test_a_column_whose_rows_are_alike_is_named_with_the_command(text: bool, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(clinic(shared=1.3, text=text), tmp_path / "visits.parquet")
    record = cal.audit(tmp_path / "visits.parquet", quick=True, **READ)
    assert found_in(record) == [("patient",)]
    reported = said(record)
    assert "Rows of one patient are more correlated than their scores explain: design effect" in reported
    assert "--cluster patient" in reported
    assert "times too narrow" in reported
    assert "Or the score misses what patient says: --by patient." in reported
    assert not record.withheld  # of a design effect under 2
    assert "--cluster patient" in repr(record)


@pytest.mark.slow
def test_independent_rows_are_judged_and_what_was_looked_at_is_counted() -> None:
    record = cal.audit(clinic(shared=0.0), quick=True, **READ)
    assert found_in(record) == []
    assert record.curves["dependence"].settings["columns"] == 1
    assert "looked at 1 column that rows share, and detected no correlation." in said(record)
    assert "cluster=" not in terminal.render(record)


@pytest.mark.slow
def test_a_named_cluster_is_not_sought() -> None:
    assert "dependence" not in cal.audit(clinic(shared=1.3), cluster="patient", quick=True, **READ).curves


@slow
def test_it_says_where_it_was_not_run() -> None:
    held = cal.sketch(clinic(shared=1.3), label="y", score="p", variables="*")
    check = next(c for c in cal.audit(held, limit=0.02, quick=True).checks if c.code == "dependence")
    assert (check.status, "--tests" in check.reason) == ("not-run", True)


@pytest.mark.slow
def test_of_a_sketch_the_rows_held_for_tests_are_looked_at() -> None:
    held = cal.sketch(snapshots(), label="y", score="p", variables="*", tests=True)
    record = cal.audit(cal.Sketch.from_bytes(held.to_bytes()), limit=0.02, quick=True)
    assert found_in(record) == [("bout",)]
    assert record.curves["dependence"].settings["identifiers"] is False
    assert record.withheld


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


@slow
def test_identifiers_that_rows_share_are_tested(seen: AuditRecord) -> None:
    c = seen.curves["dependence"].columns
    assert found_in(seen) in ([("ref",)], [("customer",)])  # of one what the other says
    assert c["clusters"][0] in (1499, 1500)
    assert abs(float(c["design_effect"][0]) - 1.5) < 0.15


@slow
def test_identifiers_are_the_same_in_a_file_a_frame_and_in_parts(seen: AuditRecord, tmp_path: Any) -> None:
    import pyarrow.csv
    import pyarrow.parquet as pq

    pq.write_table(visits(), tmp_path / "visits.parquet", row_group_size=4000)
    pyarrow.csv.write_csv(visits(), tmp_path / "visits.csv")
    reported = seen.curves["dependence"]
    for name in ("visits.parquet", "visits.csv"):
        assert cal.audit(tmp_path / name, quick=True, **READ).curves["dependence"] == reported
    keyed = cal.audit(visits(), variables="age", key=["ref", "visit_id"], quick=True, **READ)
    assert len(found_in(keyed)) == 1


@slow
def test_of_identifiers_nothing_is_told_but_their_names(seen: AuditRecord) -> None:
    rows = visits()
    reported = seen.to_json() + terminal.render(seen) + markdown.render(seen)
    assert not [v for v in (*rows["ref"].to_pylist()[:50], *rows["customer"].to_pylist()[:50]) if v and v in reported]


@slow
def test_of_many_rows_a_sample_tells_the_design_effect_of_all() -> None:
    rng = np.random.default_rng(3)
    n = 100_000
    who = rng.permutation(np.repeat(np.arange(n // 10), 10))
    p = rng.uniform(0.2, 0.8, n)
    y = np.where(rng.uniform(size=n) < 0.4, rng.uniform(size=n // 10)[who], rng.uniform(size=n)) < p
    t = pa.table({"y": y * 1, "p": p, "k": who})
    record = cal.audit(t, quick=True, label="y", score="p", limit=0.1)
    effect = record.curves["dependence"].columns["design_effect"][0]
    whole = cal.audit(t, quick=True, cluster="k", label="y", score="p", limit=0.1).data["clusters"]["design_effect"]
    assert abs(effect / whole - 1.0) < 0.2


def test_names_of_clusters_are_not_those_of_what_is_about_them() -> None:
    yes = ("patient", "userId", "customer_no", "id", "member key", "household")
    no = ("patient_age", "user_segment", "household_income_band", "sex", "number", "age")
    assert [names_cluster(n) for n in yes + no] == [True] * len(yes) + [False] * len(no)


def test_look_proposes_no_pair_that_makes_the_outcome() -> None:
    rng = np.random.default_rng(9)
    home, away = rng.integers(0, 9, 2000), rng.integers(0, 9, 2000)
    t = {"y": (home > away) * 1, "p": rng.uniform(size=2000), "home_points": home, "away_points": away}
    assert cal.look(t, label="y", score="p").one_outcome == ()


# ---- accept and compare ----


def test_accept_and_compare_warn_of_rows_that_share_one_outcome(tmp_path: Any, capsys: pytest.CaptureFixture) -> None:
    import pyarrow.csv

    log, file = snapshots("q", n=10), str(tmp_path / "log.csv")
    pyarrow.csv.write_csv(log.append_column("new", pa.array(np.sqrt(log["p"].to_numpy()))), file)
    warned = "rows of one q share one outcome, and what is certified takes rows as independent"
    for words in (["accept", file, "--score", "p", "--risk", "0.4"], ["compare", file, "--score", "p,new"]):
        main([*words, "--label", "y"])
        assert warned in capsys.readouterr().err
        main([*words, "--label", "y", "--cluster", "q"])
        assert warned not in capsys.readouterr().err
