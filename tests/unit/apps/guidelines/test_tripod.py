"""The items of TRIPOD+AI: what a record answers is its own numbers, and what it does not hold is not filled in."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
import factories
from calibrant.apps.guidelines import tripod
from calibrant.audit.record import AuditRecord
from calibrant.cli import main
from calibrant.errors import BadInput
from calibrant.report.findings import mask_of
from calibrant.report.outputs import files
from calibrant.report.spans import plain

PARTS = {3: "abc", 5: "ab", 6: "abc", 8: "abc", 9: "abc", 12: "abcdefg", 18: "abcdef", 20: "abc", 23: "ab", 27: "abc"}
NUMBERS = [f"{n}{part}" for n in range(1, 28) for part in PARTS.get(n, ("",))]
NEVER = "2 3a 3c 6b 6c 8b 8c 9a 9c 12a 12b 12c 12g 13 16 17 18a 18b 18c 18d 19 20c 22 27a 27b 27c"


def of(record: AuditRecord, number: str) -> tuple[str, str]:
    """Return the state of an item and its answer as plain text."""
    found = next(a for a in tripod.answers(record) if a.item.number == number)
    return found.state, "\n".join(map(plain, found.lines))


def reported(record: AuditRecord, **about: str) -> AuditRecord:
    """Return a record whose model, use, population, period and maker of the limit were given."""
    return replace(record, settings={**record.settings, "about": {**record.settings["about"], **about}})


def test_every_item_of_the_statement_is_there_once_and_in_order() -> None:
    assert [a.item.number for a in tripod.answers(factories.whole())] == NUMBERS
    topics = [a.item.topic for a in tripod.answers(factories.whole())]
    assert all(len(t.split()) <= 8 for t in topics), "labels of our own, not the text of the items"
    assert len(set(topics)) == 52


@pytest.mark.parametrize("make", [factories.whole, factories.tiny, factories.rare, factories.unshown])
def test_what_an_audit_cannot_know_is_for_the_authors_whatever_was_found(make) -> None:  # type: ignore[no-untyped-def]
    states = {a.item.number: a.state for a in tripod.answers(make())}
    assert " ".join(n for n, s in states.items() if s == "for the authors") == NEVER
    assert all(bool(a.lines) == (a.state in ("answered", "in part")) for a in tripod.answers(make()))


@pytest.mark.slow
def test_where_people_are_acted_on_it_is_said_and_what_that_is_worth() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 2000)
    record = cal.audit(cal.predictions(rng.uniform(size=2000) < p, p), threshold=[0.2, 0.5], quick=True)
    c = record.curve("decisions").columns
    assert "people are acted on from 0.2 and 0.5 on" in of(record, "15")[1]
    assert "Clinical utility: net benefit" in of(record, "12e")[1]
    lines = [line for line in of(record, "23a")[1].split("\n") if "acted on" in line]
    assert len(lines) == 2
    assert f"from 0.2 on: net benefit {c['net_benefit'][0]:.4f} (" in lines[0]
    assert "no classification" not in of(record, "15")[1]


@pytest.mark.slow
def test_a_limit_that_was_not_given_is_not_spoken_of() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=600)
    data = cal.predictions(rng.uniform(size=600) < p, p, {"sex": rng.choice(["f", "m"], 600)})
    free, limited = (cal.audit(data, by="sex", quick=True, limit=limit) for limit in (None, 0.1))
    for number in ("12e", "14"):
        assert "limit" not in of(free, number)[1]
        assert "limit" in of(limited, number)[1]
    assert "no classification was audited" in of(free, "15")[1]
    assert "each bound at 95% separately" in of(free, "10")[1]


def test_nothing_is_invented_for_what_was_not_given() -> None:
    bare = factories.tiny()
    for number in ("3b", "5b", "6a", "12d", "12f", "23b", "24"):
        assert of(bare, number) == ("not given", ""), number
        assert tripod.ABSENT[number] in tripod.markdown(bare)
    given = reported(bare, population="adults of one county", period="2024", intended_use="triage", model="risk 3.1")
    assert of(given, "3b") == ("in part", "Meant for: triage.\nPopulation: adults of one county.")
    assert of(given, "5b") == ("in part", "Period: 2024.")
    assert "risk 3.1" in of(given, "1")[1]


def test_performance_is_the_records_own_numbers_with_their_intervals() -> None:
    record = factories.whole()
    record = replace(record, estimates={**record.estimates, **factories.measures(record.everyone.rows)})
    lines = of(record, "23a")[1].split("\n")
    auroc = record.estimates["auroc"]
    low, high = auroc.interval.low, auroc.interval.high
    assert f"AUROC: {auroc.value:.4f} (95% interval {low:.4f} to {high:.4f}; asymptotic)" in lines
    assert len(lines) == len(record.measures) + 1 + len(record.groups)
    foreign = next(line for line in lines if line.startswith("nativity = foreign born"))
    assert "at least 1.6, rounded at most 3.4 points" in foreign
    assert foreign.endswith("over the limit")


def test_counts_of_the_flow_add_up_and_few_are_never_told_by_subtraction() -> None:
    record = factories.whole()
    record = replace(record, data={**record.data, "dropped": 7, "unlabelled": 40})
    assert of(record, "20a")[1] == (
        "277,724 rows read; 7 left out; "
        "277,677 audited, 139,199 with the outcome and 138,478 without.\n"
        "Rows without a label, kept apart: 40."
    )
    hidden = replace(record, data={**record.data, "unlabelled": None})
    assert "read" not in of(hidden, "20a")[1]
    assert "fewer than 20" in of(hidden, "20a")[1]


def test_groups_that_are_all_too_small_to_show_do_not_ask_for_groups() -> None:
    small = replace(factories.whole(), groups=())
    assert of(small, "20b") == ("in part", f"Every group has fewer than {mask_of(small)} people.")


def test_missing_values_are_told_by_how_they_were_handled() -> None:
    record = factories.whole()
    columns = {"age": {"kind": "number", "used": "group", "missing": 0.12}, "y": {"kind": "label", "missing": None}}
    record = replace(record, data={**record.data, "missing": "keep", "columns": columns, "dropped": 3})
    state, text = of(record, "11")
    assert state == "answered"
    assert "kept apart" in text
    assert "left out for a missing label or score: 3" in text
    assert "age at most 12%" in text


def test_what_was_not_checked_is_a_limitation_with_its_reason() -> None:
    text = of(factories.employment(), "26")[1]
    for check in factories.employment().checks:
        if check.status in ("not-run", "not-applicable"):
            assert check.reason.strip(".").lower() in text.lower()
    assert "groups are undecided" in text


def test_updating_names_what_was_tried_and_what_came_of_it() -> None:
    assert of(factories.whole(), "12f")[1].endswith("Recommended: isotonic regression.")
    lines = of(factories.whole(), "24")[1].split("\n")
    assert lines[0] == "As audited: calibration error 0.6 to 1.4 points, Brier score 0.1223, AUROC 0.9040"
    assert len(lines) == 3


@pytest.mark.slow
def test_sites_are_told_where_units_were_named() -> None:
    rng = np.random.default_rng(0)
    site = np.repeat([f"s{i}" for i in range(8)], 60)
    p = rng.uniform(0.2, 0.8, len(site))
    y = rng.uniform(size=len(site)) < p
    record = cal.audit(cal.predictions(y, p, cluster=site), quick=True)
    s = record.curve("sites").settings
    state, text = of(record, "23b")
    assert state == "answered"
    assert f"mean of 8 clusters: {s['ratio']:.2f} ({s['ratio_low']:.2f} to {s['ratio_high']:.2f})" in text
    assert "8 clusters" in of(record, "6a")[1]
    assert of(record, "12d")[0] == "answered"


def test_names_are_text_in_markdown_and_no_formula_in_a_spreadsheet() -> None:
    record = factories.hostile()
    bare = re.sub(r"(`+).*?\1", "", tripod.markdown(record))
    assert "<" not in bare
    assert "javascript:" not in bare
    rows = list(csv.DictReader(io.StringIO(tripod.as_csv(reported(record, population="=1+1")))))
    assert len(rows) == 52
    assert not any(cell[:1] in "=+-@" for row in rows for cell in row.values() if cell)


def test_the_table_is_a_result_and_comes_back() -> None:
    made = factories.whole().tripod()
    assert tuple(made.columns) == tripod.COLUMNS
    assert type(made).from_dict(made.to_dict()) == made
    assert len(made.columns["item"]) == 52


def test_files_of_both_kinds_are_written_and_others_refused(tmp_path: Path) -> None:
    record = factories.whole()
    assert tripod.save(record, tmp_path / "items.md").read_text(encoding="utf-8") == tripod.markdown(record)
    assert tripod.save(record, tmp_path / "items.csv").read_text(encoding="utf-8") == tripod.as_csv(record)
    with pytest.raises(BadInput, match=r"end its name in \.md or \.csv"):
        tripod.save(record, tmp_path / "items.txt")


@pytest.mark.slow
def test_the_command_writes_it_from_a_record_that_was_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = factories.whole().save(tmp_path / "record.json")
    out = tmp_path / "items.csv"
    assert main(["report", str(kept), "-o", f"tripod:{out}"]) == 0
    assert out.read_text(encoding="utf-8") == tripod.as_csv(AuditRecord.load(kept))
    capsys.readouterr()
    assert main(["report", str(kept), "-o", "tripod:-"]) == 0
    assert capsys.readouterr().out == tripod.markdown(AuditRecord.load(kept))
    assert main(["report", str(kept), "-o", f"tripod:{tmp_path / 'x.docx'}"]) == 2
    assert main(["report", str(kept), "-o", f"{tmp_path / 'all'}/"]) == 0
    assert (tmp_path / "all" / "tripod.md").read_text(encoding="utf-8") == tripod.markdown(AuditRecord.load(kept))
    assert (tmp_path / "all" / files.TABLES / "tripod.csv").exists()
