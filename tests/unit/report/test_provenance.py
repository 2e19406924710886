from __future__ import annotations

import shlex

import factories
from calibrant.report import provenance
from calibrant.report.spans import plain


def audited(**data):
    groups = [
        factories.finding(variables=[("sex", "female")]),
        factories.finding(variables=[("age", "10–19")]),
    ]
    return factories.record(groups=groups, data={"files": ["my data.csv"], **data})


def words(record) -> list[str]:
    return shlex.split(provenance.command(record).replace("\\\n", " "))


def test_the_command_says_how_the_data_were_read():
    said = words(
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
    assert said[:3] == ["calibrant", "audit", "my data.csv"]
    given = {"--by": "sex,age", "--positive": "yes", "--key": "id,site", "--bins": "age=10,20.5"}
    given |= {"--limit": "0.015", "--levels": "50", "--seed": "0"}
    for flag, value in given.items():
        assert said[said.index(flag) + 1] == value
    assert {"--intersections", "--drop-missing"} <= set(said)
    assert "--quick" not in said


def test_arrays_have_no_command():
    assert provenance.command(audited(files=[])) == ""


def test_about_names_what_is_shown_together_and_what_was_not_given():
    groups = [factories.finding(variables=[("race", "a + b")], pooled=2)]
    entries = dict(provenance.about(factories.record(groups=groups, data={"warnings": ["constant label"]}))["entries"])
    assert "shown together: a + b" in plain(entries["Groups"])
    assert plain(entries["Meant for"]) == "not given"
    assert plain(entries["Note"]) == "constant label"
    assert plain(entries["Rows"]) == "10\u202f000 read, 0 dropped"
