from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterable

import numpy as np
import pytest

import factories
from calibrant.cli import build_parser, main
from calibrant.report.document import Command, Entries, Node, Paragraph
from calibrant.report.sections import reference
from calibrant.report.spans import plain


def audited(**data):
    groups = [
        factories.finding(variables=[("sex", "female")]),
        factories.finding(variables=[("age", "10–19")]),
    ]
    return factories.record(groups=groups, data={"files": ["my data.csv"], **data})


def entries(nodes: Iterable[Node]) -> dict[str, str]:
    """Return what is said of each term."""
    return {e.term: plain(e.text) for n in nodes if isinstance(n, Entries) for e in n.entries}


def words(record) -> list[str]:
    return shlex.split(reference.command(record).replace("\\\n", " "))


def test_the_command_says_how_the_data_were_read():
    stated = words(
        audited(
            by=[["sex"], ["age"], ["sex", "age"]],
            positive="yes",
            key=["id", "site"],
            dropped=3,
            variables={
                "sex": {"kind": "category", "edges": []},
                "age": {"kind": "number", "edges": [10.0, 20.5]},
            },
        )
    )
    assert stated[:3] == ["calibrant", "audit", "my data.csv"]
    given = {"--by": "sex,age", "--positive": "yes", "--key": "id,site", "--bins": "age=10,20.5"}
    given |= {"--limit": "0.015", "--steps": "50", "--seed": "0", "--missing": "drop"}
    for flag, value in given.items():
        assert stated[stated.index(flag) + 1] == value
    assert "--intersections" in stated
    assert "--quick" not in stated


def test_arrays_have_no_command():
    assert reference.command(audited(files=[])) == ""


def test_about_names_what_is_shown_together_and_what_was_not_given():
    groups = [factories.finding(variables=[("race", "a + b")], pooled=2)]
    stated = entries(reference.about(factories.record(groups=groups, data={"warnings": ["constant label"]})))
    assert "shown together: a + b" in stated["Groups"]
    assert stated["Meant for"] == "not given"
    assert stated["Note"] == "constant label"
    assert stated["Rows"] == "10,000 read, 0 dropped"


@pytest.fixture
def table(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    n, p = 400, rng.uniform(0.2, 0.8, 400)
    columns = {
        "y": np.where(rng.random(n) < p, "yes", "no"),
        "-p": p.round(4),
        "id": np.arange(n),
        "site": ["one"] * n,
        "age": rng.uniform(20, 90, n).round(6),
        "sex": rng.choice(["f", "m"], n),
        "note": [f"text {i}" for i in range(n)],
    }
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "my data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


GIVEN = "audit 'my data.csv' --label y --positive yes --score=-p --key id"


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        "",
        "--variables none --limit 0.3",
        "--variables age,site --by age --bins age=30.123456789,60 --steps 20 --alpha 0.1",
        "--by sex,age --intersections --about words.toml --seed 7",
    ],
)
def test_the_command_gives_the_same_record(table, more):
    said = "name = 'other \"name\"'", "date = '2026-01-31'", "outcome = 'ill person'", "noun = 'loans'"
    (table / "words.toml").write_text("\n".join(said))
    assert main([*shlex.split(f"{GIVEN} {more} --tolerance 0.03 --quick"), "-o", "a.json"]) in (0, 1, 3)
    record = factories.AuditRecord.from_json((table / "a.json").read_text(encoding="utf-8"))
    stated = words(record)[1:]
    (table / "about.toml").write_text(reference.wording(record), encoding="utf-8")
    assert main([*stated, "-o", "b.json"]) in (0, 1, 3)
    assert (table / "b.json").read_bytes() == (table / "a.json").read_bytes()
    typed = build_parser().parse_args(stated)
    asked = tuple(record.settings["variables"]) or ("none",)
    assert (typed.tolerance, typed.quick, typed.variables) == (0.03, True, None if asked == ("*",) else asked)
    assert {k: getattr(typed, k) for k in ("limit", "steps", "alpha", "seed")} == {
        k: record.settings[k] for k in ("limit", "steps", "alpha", "seed")
    }


def test_every_option_of_the_audit_is_in_the_command_or_is_an_output():
    record = audited(
        by=[["a"], ["b"], ["a", "b"]],
        positive="yes",
        percent=True,
        logits=True,
        renormalize=True,
        key=["id"],
        dropped=1,
        cluster="u",
        weights="w",
        variables={"a": {"kind": "number", "edges": [1.0]}},
    )
    given = {
        "date": "2026-01-31",
        "fail_on": ("strong-calibration",),
        "tolerance": 0.02,
        "variables": ("a",),
        "allow": ("a",),
    }
    given |= {"threshold": (0.2, 0.5), "limit_classes": 0.3, "infer": ("a",)}
    reported = ("model", "intended_use", "period", "population", "set_by")
    given |= {"judge": "gap", "target": "population", "about": {"noun": "loans", **{k: f"some {k}" for k in reported}}}
    record = factories.replace(
        record, settings={**record.settings, **given, "quick": True, "publish": True, "outcome": "ill"}
    )
    typed, untouched = vars(build_parser().parse_args(words(record)[1:])), build_parser().parse_args(["audit", "f"])
    kept = {"command", "seed", "alpha", "mask", "json", "out", "open"}
    kept |= {
        "sql",
        "encoding",
        "delimiter",
        "decimal",
        "sheet",
        "dates",
        "format",
    }  # how files are read, which no record holds
    kept |= {"against"}  # what a summary is held against
    kept |= {"limit_relative"}  # or --limit
    kept |= {"time", "event", "horizon", "entered", "closed", "competing", "way", "within"}  # or --label
    kept |= {"listed", "rest", "ordered"}  # of several classes
    kept |= {"rows_of"}  # which audits nothing
    kept |= {"csv_decimal", "csv_digits", "language"}  # how tables and pages are written
    kept |= {"costs"}  # or --threshold, which it sets
    kept |= {"allow_same", "missing_odds"}  # the last goes with --missing keep
    assert {k for k, v in vars(untouched).items() if typed[k] == v} <= kept
    assert (typed["fail_on"], typed["missing"], typed["about"]) == (("strong-calibration",), "drop", "about.toml")
    said = tomllib.loads(reference.wording(record))
    assert said == {"noun": "loans", **{k: f"some {k}" for k in reported}, "outcome": "ill", "date": "2026-01-31"} | (
        {"name": record.name} if "name" in said else {}
    )


def test_odd_names_are_typed_in_quotes():
    odd = ["a,b", " c", '"d"', "e f"]
    typed = build_parser().parse_args(words(audited(key=odd, by=[[n] for n in odd], variables={}))[1:])
    assert list(typed.key) == list(typed.by) == odd


def test_what_cannot_be_typed_has_no_command():
    nodes = list(reference.reproduce(audited(file_count=30)))
    assert not any(isinstance(n, Command) for n in nodes)
    (why,) = (n for n in nodes if isinstance(n, Paragraph))
    assert plain(why.text).startswith("The command line cannot name all")
    assert "()" not in entries(reference.reproduce(audited()))["Settings"]


@pytest.mark.slow
def test_a_sketch_of_named_covariates_says_so(table):
    import calibrant as cal

    whole = cal.sketch("my data.csv", label="y", score="-p", key="id", positive="yes", variables=["age", "site"])
    assert cal.audit(whole, quick=True).settings["variables"] == ("age", "site")
    json.dumps(cal.audit(whole, quick=True).to_dict())
