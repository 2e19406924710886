from __future__ import annotations

import itertools

import pytest

import factories
from calibrant.audit.record import AuditRecord, Check
from calibrant.report import wording
from calibrant.report.sections.reference import line
from calibrant.report.sections.summary import caveats, next_steps
from calibrant.report.spans import label, plain

MIXTURES = [
    ("met", ["met"] * 12, "Within the limit for everyone together and for all 12 groups"),
    ("met", [], "Within the limit for everyone together"),
    ("met", ["met"], "Within the limit for everyone together and for the one group"),
    ("broken", [], "Over the limit for everyone together"),
    ("broken", ["met", "undecided"], "Over the limit for everyone together"),
    ("broken", ["met", "broken"], "Over the limit for everyone together, and for 1 of 2 groups"),
    ("met", ["broken"] + ["met"] * 40, "Within the limit for everyone together, over it for 1 of 41 groups"),
    ("met", ["broken", "undecided"], "Within the limit for everyone together, over it for 1 of 2 groups"),
    ("undecided", [], "Too few people to tell: the limit of 1.5 lies inside the interval"),
    ("undecided", ["undecided", "met"], "Too few people to tell: the limit of 1.5 lies inside the interval"),
    ("undecided", ["broken", "met"], "Too few people to tell for everyone together; over the limit for 1 of 2 groups"),
    ("met", ["undecided", "met"], "Within the limit for everyone together; for 1 of 2 groups too few people to tell"),
]


@pytest.mark.parametrize(("everyone", "groups", "headline"), MIXTURES)
def test_headlines(everyone, groups, headline):
    assert wording.headline(factories.mixture(everyone, groups)) == headline


def test_headline_without_a_limit():
    assert wording.headline(factories.employment(limit=None)) == "Off by 0.6 to 1.2 points on average"


def test_headline_where_the_raw_score_is_off_by_more_than_the_score_shown():
    record = factories.record(factories.finding(0.0351, 0.0099, limit=None), limit=None)
    assert wording.headline(record) == "Off by at least 3.5 points raw, by at most 1.0 as shown"
    assert "3.5 to 1.0" not in plain(wording.overall_answer(record))


def test_lead_of_the_mock_up():
    assert plain(wording.lead(factories.employment())).replace("\u202f", " ") == (
        "Over all 277 677 people, the probabilities shown are off by at most 1.2 points on average, "
        "within the limit of 1.5. For the group nativity: foreign born they are off by at least 1.6: of "
        "every 1 000 people in it the model expects 562 to be employed; 585 were."
    )


def test_leads_of_the_other_states():
    def lead(record: AuditRecord) -> str:
        return plain(wording.lead(record)).replace("\u202f", " ")

    assert lead(factories.mixture("met", ["met"] * 2)).endswith(
        "within the limit of 1.5. The group with the largest upper bound is region: region 0, at most 0.7."
    )
    assert lead(factories.mixture("undecided", [])).endswith(
        "off by 0.4 to 3.9 points on average. About 1 500 000 people would decide, "
        "if the error is as estimated (2.2 points)."
    )
    assert lead(factories.mixture("broken", [])).endswith(
        "off by at least 2.9 points on average; the limit is 1.5. Of every 100 people "
        "the model expects 31 cases; there were 24. The probabilities are too high."
    )
    assert "No limit was given" in lead(factories.employment(limit=None))


@pytest.mark.parametrize(
    ("everyone", "groups"),
    list(
        itertools.product(("met", "undecided", "broken"), ([], ["met"], ["undecided"] * 3, ["broken", "broken", "met"]))
    ),
)
def test_every_mixture_reads_as_sentences(everyone, groups):
    record = factories.mixture(everyone, groups)
    steps = next_steps(record)
    assert 1 <= len(steps) <= 3
    assert len(caveats(record)) == 3
    for text in (wording.lead(record), wording.overall_answer(record), wording.groups_answer(record), *steps):
        said = plain(text)
        assert said[0].isupper() or said.startswith("region")
        assert said.endswith(".")
        assert not any(odd in said for odd in ("  ", "..", "None", "nan", "1 groups", " ."))


def test_only_the_caveat_speaks_of_a_confidence_interval_and_denies_it():
    said = [plain(c) for c in caveats(factories.employment())]
    assert [("confidence interval" in s) for s in said] == [False, False, True]
    assert "not a confidence interval" in said[2]


def test_estimate_on_the_limit_promises_no_number_of_people():
    one = factories.finding(0.004, 0.039)
    record = factories.record(factories.Finding.from_dict({**one.to_dict(), "rows_needed": None}))
    assert "no number of people is sure to decide" in plain(wording.lead(record))


def test_pooled_and_blank_names():
    assert label(factories.finding(variables=[("race", "x")], pooled=3)) == "race: 3 small values together"
    assert label(factories.finding(variables=[("race", ""), ("sex", "f")])) == "race, sex: (blank), f"


@pytest.mark.parametrize(
    ("code", "status", "found"),
    [
        ("error-everyone", "broken", "Broken"),
        ("shift", "measured", "Error found"),
        ("reliability", "measured", "Error found"),
        ("distance", "measured", "Measured"),
        ("local-calibration", "not-run", "Not run"),
        ("jittered", "not-applicable", "Not applicable (not a pass)"),
        ("a-code-from-the-future", "measured", "Measured"),
    ],
)
def test_checks_never_call_a_measurement_met_or_broken(code, status, found):
    check = Check(code=code, status=status, reason="why")
    read = line(check, factories.employment())
    assert read.found == found
    if status.startswith("not-"):
        assert read.numbers == "Why."
    if code == "a-code-from-the-future":
        assert code in plain(read.question)


def test_a_shift_that_may_be_zero_is_no_proof_of_none():
    record = factories.record(estimates={"shift": factories.estimate(-0.002, 0.003)})
    read = line(Check(code="shift", status="measured"), record)
    assert read.found == "No error found (not proof of none)"
    assert "not shown to be off" in plain(wording.overall_answer(record))
