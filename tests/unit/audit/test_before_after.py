"""Who is held against the limit before and after a repair: those the audit found, and nobody that can be told apart."""

from __future__ import annotations

import json
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.cli import main
from calibrant.data.engines.reduce import chosen_rows
from calibrant.data.reading import Reading
from calibrant.data.sources.files import open_source
from calibrant.repair.catalogue import tried_by_default
from calibrant.repair.judge.rows import hash_split
from calibrant.report.sections.repair import command

LIMIT = 0.05


def rows(n: int = 8_000, seed: int = 1) -> Any:
    """Return predictions too low by 0.2 where it is north, and in a corner of two traits; 12 rows have a rare level."""
    rng = np.random.default_rng([seed, 0xBA])
    p, x = rng.uniform(0.2, 0.6, n), rng.uniform(size=n)
    site = rng.choice(["north", "south", "west"], n, p=[0.2, 0.4, 0.4])
    rare = np.full(n, "usual")
    rare[:12] = "rare"
    off = 0.2 * (site == "north")
    return cal.predictions(rng.uniform(size=n) < p + off, p, {"site": site, "rare": rare, "x": x})


REQUESTED = ("error-everyone", "error-groups", "subgroups", "repair")


def audited(data: Any, **settings: Any) -> AuditRecord:
    """Return the record of an audit that asks only what is looked at here, and makes no test."""
    run, subgroups, evidence = (
        import_module(f"calibrant.{name}") for name in ("audit.run", "audit.checks.subgroups", "repair.judge.evidence")
    )
    own = tuple(q for q in run.all_checks() if q.code in REQUESTED)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "all_checks", lambda: own)
        patched.setattr(subgroups, "_searched", lambda _: None)
        patched.setattr(evidence, "TESTS", {})
        return cal.audit(data, **settings)


@pytest.fixture(scope="module")
def record() -> AuditRecord:
    return audited(rows(), by=["site", "rare"], limit=LIMIT, publish=True)


def lines(record: AuditRecord) -> list[dict[str, Any]]:
    c = record.curve("fixed").columns
    return [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)]


def test_everyone_and_whom_the_audit_found_over_the_limit_are_there(record: AuditRecord) -> None:
    broken = {g.id for g in record.groups if g.verdict == "over"}
    assert broken
    reported = {line["id"] for line in lines(record)}
    assert {"everyone", *broken} <= reported
    assert "subgroup-1" in reported
    north = next(line for line in lines(record) if line["value"] == "north")
    assert (north["variable"], north["now"]) == ("site", "over")
    assert north["rows"] % 5 == 0
    assert abs(north["rows"] - 800) < 120
    assert north["after_high"] < north["now_low"]


def test_the_same_repairs_are_tried_as_by_the_command(record: AuditRecord) -> None:
    tried = tuple(record.curve("repairs").columns["probability"])[1:]
    assert tried == tuple(tried_by_default(("site", "x"), "unless quick"))
    assert tuple(c["name"] for c in record.curve("fixed").settings["candidates"]) == ("as audited", *tried)
    assert record.curve("fixed").settings["candidate"] == record.curve("repairs").settings["recommended"]


def test_ends_of_groups_and_pockets_are_told_in_steps(record: AuditRecord) -> None:
    for line in lines(record):
        if line["kind"] != "everyone":
            for end in ("now_low", "now_high", "after_low", "after_high"):
                assert round(line[end], 4) == line[end]


def test_a_group_of_few_people_is_not_told(record: AuditRecord) -> None:
    assert not any("rare" in f"{line['who']} {line['value']}" for line in lines(record))


def test_counts_are_those_of_the_lines(record: AuditRecord) -> None:
    chosen = record.curve("fixed").settings["candidate"]
    counts = next(c for c in record.curve("fixed").settings["candidates"] if c["name"] == chosen)
    after = [line["after"] for line in lines(record)]
    assert [counts[k] for k in ("over", "undecided", "within")] == [
        after.count(v) for v in ("over", "undecided", "within")
    ]


@pytest.mark.slow
def test_the_gap_is_judged_where_it_is_asked_for() -> None:
    found = lines(audited(rows(4000), by="site", limit=LIMIT, judge="gap"))
    assert {line["measure"] for line in found} == {"gap"}


@pytest.mark.slow
def test_without_a_limit_ranges_have_no_verdict() -> None:
    found = lines(audited(rows(4000), by="site"))
    assert found[0]["now"] == "not_checked"
    assert all(line["kind"] != "group" for line in found)


def test_the_table_is_as_the_schema_says(record: AuditRecord) -> None:
    path = Path(__file__).parents[3] / "docs/schema/calibrant-4.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    reported = json.loads(record.to_json())["curves"]["fixed"]
    Draft202012Validator({"$ref": "#/$defs/RepairEvaluateFixed", "$defs": schema["$defs"]}).validate(reported)


@pytest.mark.parametrize("key", [(), ("id",)])
def test_the_command_judges_the_rows_that_the_audit_judged(tmp_path: Path, key: tuple[str, ...]) -> None:
    data = rows(2000)
    made = {"id": np.arange(2000) * 7, "y": data.y, "p": data.p}
    table = data.covariates
    for name, values in made.items():
        table = table.append_column(name, [values.tolist()])
    pq.write_table(table, tmp_path / "log.parquet")
    asked = {"label": "y", "score": "p", "by": "site", "variables": ["site", "x"], "key": key or None}
    held = cal.sketch(str(tmp_path / "log.parquet"), tests=True, **asked).parts["sample"].predictions()
    reading = Reading.of(**asked).named()
    chosen = chosen_rows(open_source(str(tmp_path / "log.parquet")), reading.rows_spec(), ("site", "x"), 300_000)
    half = hash_split(held, 2, 0) == 1
    assert np.array_equal(held.p[half], chosen.data.p[hash_split(chosen.data, 2, 0) == 1])


@pytest.mark.slow
def test_the_command_that_a_report_prints_makes_the_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = rows(3000)
    table = data.covariates.append_column("the outcome", [data.y.tolist()]).append_column("p", [data.p.tolist()])
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "my log.parquet")
    found = audited("my log.parquet", label="the outcome", score="p", by="site", limit=LIMIT)
    words = shlex.split(command(found).replace("\\\n", " "))
    assert words[:3] == ["calibrant", "repair", "my log.parquet"]
    assert main([*words[1:], "--quick"]) == 0
    assert "over the limit" in capsys.readouterr().out
    assert (
        json.loads((tmp_path / "calibrator.json").read_text())["recipe"] == found.curve("fixed").settings["candidate"]
    )
