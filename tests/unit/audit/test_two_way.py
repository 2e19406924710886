"""An audit of units that cross: the certificates of both, and what is left open, in every output alike."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.cli.run import main
from calibrant.report import markdown

PERSONS, QUESTIONS = 60, 24
CERTIFIED = {"error-everyone", "error-groups", "gap", "distance", "reliability"}
NAMED = {"label": "y", "score": "p", "cluster": ["question", "person"], "by": "sex", "limit": 0.1}


def exam(off: float = 0.0) -> dict[str, np.ndarray]:
    """Return 60 persons who answer the same 24 questions; every score happens with its rate and `off`."""
    rng = np.random.default_rng(3)
    person, question = np.divmod(np.arange(PERSONS * QUESTIONS), QUESTIONS)
    p = rng.choice([0.2, 0.5, 0.7], len(person))
    y = (rng.uniform(size=len(p)) < p + off).astype(int)
    sex, age = np.array(["f", "m"])[person % 2], rng.integers(20, 60, PERSONS)[person]
    return {"y": y, "p": p, "person": person, "question": question, "sex": sex, "age": age}


@pytest.fixture(scope="module")
def record() -> AuditRecord:
    return cal.audit(exam(off=0.25), **NAMED)


@pytest.mark.slow
def test_ends_are_those_of_the_certificates_of_both_columns(record: AuditRecord) -> None:
    rows = cal.read(exam(off=0.25), label="y", score="p", by="sex", cluster=["person", "question"])
    high = cal.certify.values(rows, side="upper").interval.high
    assert record.everyone.upper.interval.high == pytest.approx(high, abs=1e-12)
    assert record.everyone.lower.interval.low == cal.certify.raw_lower(rows).interval.low
    assert record.estimates["distance"].settings["two_way"] == ("person", "question")
    assert record.everyone.gap.guaranteed.low < 0.25 < record.everyone.gap.guaranteed.high
    assert len(record.groups) == 2
    alone = cal.audit(exam(off=0.25), **{**NAMED, "cluster": "person"}, quick=True)
    assert record.everyone.upper.interval.high > alone.everyone.upper.interval.high


def test_the_record_says_what_crosses_and_what_is_left_open(record: AuditRecord) -> None:
    assert record.data["two_way"] == {"person": PERSONS, "question": QUESTIONS}
    assert record.data["clusters"]["count"] == QUESTIONS
    open_ = {c.code for c in record.checks if c.status == "not-applicable"}
    assert {c.code for c in record.checks} - open_ == CERTIFIED
    assert all("--cluster person" in c.reason for c in record.checks if c.code in open_)
    assert not any(c.outcome for c in record.checks)  # no p-value
    assert record.verdicts["subgroups"] == "not_checked"
    assert record.everyone.rows_needed is record.everyone.clusters_needed is None
    assert {*record.curves} == {"reliability", "bins"}
    assert not record.curves["reliability"].columns
    assert AuditRecord.from_json(record.to_json()) == record


def test_the_first_screen_says_it_in_words(record: AuditRecord) -> None:
    reported = " ".join(markdown.render(record).split())
    for words in (
        "60 clusters (`person`) and 24 clusters (`question`), which cross",
        "as independent that share neither `person` nor `question`",
        'By one column it is: `cluster="person"`, about these clusters of `question`, or `cluster="question"`.',
        "Theorem X",
    ):
        assert words in reported, words
    for words in ("Rows count as independent", "would settle", "random signs", "too close to the limit"):
        assert words not in reported, words


@pytest.mark.slow
def test_rows_in_memory_and_a_stream_say_the_same(record: AuditRecord) -> None:
    held = exam(off=0.25)
    cluster = {"person": held["person"], "question": held["question"]}
    table = {"sex": held["sex"], "age": held["age"]}
    rows = cal.audit(cal.predictions(held["y"], held["p"], table, cluster=cluster), by="sex", limit=0.1)
    stream = cal.audit(pa.table(held).to_reader(max_chunksize=500), **NAMED)
    for other in (rows, stream):
        assert [f.to_dict() for f in (other.everyone, *other.groups)] == [
            f.to_dict() for f in (record.everyone, *record.groups)
        ]


@pytest.mark.slow
def test_a_group_of_few_units_of_either_column_is_not_shown() -> None:
    held = exam()
    held["topic"] = np.where(held["question"] < 6, "few", "many")
    hidden = cal.audit(held, **{**NAMED, "by": "topic"}, quick=True)
    assert not hidden.groups
    (check,) = (c for c in hidden.checks if c.code == "error-groups")
    assert check.reason == "every group has fewer than 20 clusters of person or of question"
    shown = cal.audit(held, **{**NAMED, "by": "topic"}, quick=True, mask=5)
    assert {f.variables for f in shown.groups} == {(("topic", "few"),), (("topic", "many"),)}


@pytest.mark.slow
def test_decisions_and_gates_are_left_open() -> None:
    found = cal.audit(exam(), **NAMED, threshold=0.5, fail_on="subgroups")
    assert {c.code: c.status for c in found.checks}["decisions"] == "not-applicable"
    assert "decisions" not in found.curves
    assert found.exit_status == 3


def test_such_rows_make_no_sketch_that_is_kept() -> None:
    with pytest.raises(cal.NotComputable, match="neither stored nor merged"):
        cal.sketch(cal.read(exam(), label="y", score="p", cluster=["person", "question"]))


@pytest.mark.slow
def test_the_command_audits_both(tmp_path, capsys) -> None:
    path = tmp_path / "exam.parquet"
    pq.write_table(pa.table(exam(off=0.25)), path)
    asked = ["audit", str(path), "--label", "y", "--score", "p", "--cluster", "person,question", "--by", "sex"]
    assert main([*asked, "--limit", "0.1", "--json"]) == 3
    stated = json.loads(capsys.readouterr().out)
    assert stated["data"]["two_way"] == {"person": PERSONS, "question": QUESTIONS}
    assert main([*asked, "--limit", "0.1"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "60 clusters (person) and 24 clusters (question), which cross" in out
