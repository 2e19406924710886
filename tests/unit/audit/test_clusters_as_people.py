"""People under the mask are clusters where rows share clusters: thirty rows of three patients are three people."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.checks.covariates import _map, _masked
from calibrant.audit.context import AuditContext
from calibrant.audit.judging import Judging
from calibrant.audit.pooling import guarded, sharing
from calibrant.audit.rounding import Sums, few, reported_peak, reported_rules
from calibrant.data.read import sketch_rows
from calibrant.data.reading import Reading
from calibrant.diagnose.searched_subgroups import SubgroupOptions, described
from calibrant.search.detectors import Settings, detector_inputs
from calibrant.views.people import people_of
from calibrant.views.rules import columns_of

PATIENTS, MASK = 300, 20


def visits(few_of: int) -> cal.Predictions:
    """Patients with two visits each; the oldest, with 60 visits, are as many patients as asked for."""
    rng = np.random.default_rng(6)
    patient = np.concatenate([np.repeat(np.arange(PATIENTS), 2), PATIENTS + np.arange(60) % few_of])
    old = patient >= PATIENTS
    age = np.where(old, 90.0, 30.0 + patient % 11)
    p = rng.uniform(0.2, 0.5, len(patient))
    y = rng.random(len(p)) < np.where(old, p + 0.45, p)
    return cal.predictions(y, p, {"age": age}, cluster=patient)


def context_of(data: cal.Predictions) -> AuditContext:
    return AuditContext(cal.sketch(data, by=["age"]), Judging.of(gates=(), mask=MASK))


def test_people_of_a_set_are_rows_or_clusters() -> None:
    data = visits(3)
    old = np.asarray(data.covariates["age"]) == 90.0
    assert people_of(data).sides(old) == (3, PATIENTS)
    assert people_of(data).among(old.astype(int), 2).tolist() == [PATIENTS, 3]
    alone = cal.predictions(data.y, data.p, data.covariates)
    assert people_of(alone).sides(old) == (60, 2 * PATIENTS)
    straddling = np.arange(data.n) % 2 == 0  # patients with rows on both sides are people of both
    assert people_of(data).sides(straddling) == (PATIENTS + 3, PATIENTS + 3)


def test_people_of_two_columns_that_cross_are_of_the_column_of_fewer() -> None:
    """Towns lie in counties, whose exact numbers tell those of each town: of 15 persons they may be told."""
    person, question = np.divmod(np.arange(60 * 40), 40)
    p = np.random.default_rng(2).uniform(0.2, 0.8, len(person))
    where = {"town": np.array(list("abcd"))[person % 4], "county": np.array(list("ns"))[person % 2]}
    data = cal.predictions(p > 0.5, p, where, cluster={"person": person, "question": question})
    assert people_of(data).among(person % 4, 4).tolist() == [15] * 4
    assert people_of(data).most_rows(3) == 2 * 60 + 1  # all answers to two questions, and one more
    sketched = sketch_rows(data, Reading.of(by=["town", "county"], variables=["town", "county"], tests=True))
    assert people_of(sketched).in_groups(sketched)[:4].tolist() == [15] * 4
    assert sharing(sketched, data, 10) == ()


def test_few_people_are_some_and_not_enough() -> None:
    assert [few((n, 100 - n), MASK) for n in (0, 1, 19, 20, 80, 81, 99, 100)] == [
        *(False, True, True, False),
        *(False, True, True, False),
    ]
    assert not few((), MASK)


@pytest.mark.parametrize(("patients", "shown"), [(3, False), (40, True)])
def test_the_worst_bin_of_a_variable_has_people_enough(patients: int, shown: bool) -> None:
    data = visits(patients)
    ranked = cal.diagnose.rank_variables(data, draws=99)
    assert ranked.settings["people"] == ((patients, PATIENTS),)
    assert ranked.columns["worst_rows"] == (60,)
    reported = _masked(ranked, {"age": ()}, context_of(data))
    assert reported.columns["worst_rows"] == ((60,) if shown else (None,))
    assert "people" not in reported.settings


@pytest.mark.parametrize(("patients", "shown"), [(15, False), (40, True)])
def test_places_of_a_map_have_people_enough(patients: int, shown: bool) -> None:
    data = visits(patients)
    whole = cal.diagnose.local_bias(data, "age", grid=41, draws=99)
    assert whole.columns["people"][-1] == 60  # rows
    assert whole.settings["people"][-1] == patients
    drawn = _map(data, "age", context_of(data))
    assert drawn is not None
    assert (90.0 in drawn.columns["x"]) == shown
    assert (90.0 in drawn.settings["axes"][0]["places"]) == shown
    assert "people" not in drawn.settings


@pytest.mark.parametrize(("patients", "shown"), [(3, False), (60, True)])
def test_rules_and_peaks_have_people_enough(patients: int, shown: bool) -> None:
    data = visits(patients)
    q = detector_inputs(data, Settings(tolerance=0.02))
    rules = described(q, columns_of(data, None), SubgroupOptions())
    about_the_oldest = [i for i, rule in enumerate(rules.columns["rule"]) if "age" in rule]
    assert about_the_oldest
    inside = rules.settings["people"][about_the_oldest[0]][0]
    assert inside <= patients
    reported = reported_rules(rules, data.n, MASK, Sums)
    assert any("age" in rule for rule in reported.columns["rule"]) == shown
    assert "people" not in reported.settings

    chart = cal.diagnose.control_chart(data, tolerance=0.02, draws=99)
    outcome = cal.detect.strong_calibration_test(data, tolerance=0.02, draws=99)
    people, peak = chart.settings["people"], chart.settings["peak_clusters"]
    assert len(people) == len(chart.columns["x"])
    assert list(people) == sorted(people)
    assert people[-1] <= PATIENTS + patients
    assert outcome.parts["peak_clusters"] == peak
    masked = reported_peak(chart, MASK, Sums)
    assert not {"people", "peak_clusters"} & set(masked.settings)
    assert len(masked.columns["x"]) == sum(n == 0 or n >= MASK for n in people)
    assert (masked.settings["peak_observed"] is None) == few(peak, MASK) == (not shown)
    assert ("peak_rows" in guarded(outcome, "peak_", MASK).parts) == shown


@pytest.mark.slow
def test_an_audit_reports_nothing_of_few_patients_with_many_visits() -> None:
    data = visits(15)
    table = pa.table({"y": data.y, "p": data.p, "age": data.covariates["age"], "patient": data.cluster})
    how = {"label": "y", "score": "p", "by": "age", "cluster": "patient", "seed": 0}
    for mask, shown in ((MASK, False), ("none", True)):
        record = cal.audit(table, mask=mask, **how)
        worst = record.curve("ranking").columns["worst"]
        assert any(v is not None and "90" in v for v in worst) == shown
        places = record.curves["local_bias/age"].columns["x"] if "local_bias/age" in record.curves else ()
        assert (90.0 in places) == shown
        rules = record.curve("searched_subgroups").columns.get("rule", ())
        assert not shown or any("age" in rule for rule in rules)
        assert shown or not any("age" in rule for rule in rules)
