"""Units on several levels: the coarsest where they are nested, a refusal where they cross."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal

HOSPITAL = np.repeat(["a", "b", "c"], 6)
PATIENT = np.repeat(np.arange(9), 2)
Y, P = np.tile([0, 1], 9), np.full(18, 0.5)


@pytest.mark.parametrize("order", [("patient", "hospital"), ("hospital", "patient")])
def test_of_nested_levels_the_coarsest_is_the_unit(order):
    levels = {"patient": PATIENT, "hospital": HOSPITAL}
    found = cal.predictions(Y, P, cluster={name: levels[name] for name in order})
    assert found.cluster.tolist() == HOSPITAL.tolist()
    assert cal.measure.brier(found).interval == cal.measure.brier(cal.predictions(Y, P, cluster=HOSPITAL)).interval


def test_a_patient_of_two_hospitals_is_counted_and_refused():
    moved = HOSPITAL.copy()
    moved[[0, 7]] = "c"
    with pytest.raises(cal.NotComputable, match="'patient' and 'hospital' cross: 2 of the former"):
        cal.predictions(Y, P, cluster={"patient": PATIENT, "hospital": moved})


def test_persons_and_questions_cross():
    person, question = np.divmod(np.arange(18), 6)
    with pytest.raises(cal.NotComputable, match="cross"):
        cal.predictions(Y, P, cluster={"person": person, "question": question})


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({}, "no column"),
        ({"a": PATIENT, "b": PATIENT[:4]}, "'b' has 4 rows"),
        ({"a": PATIENT, "b": [None, *PATIENT[1:]]}, "'b': cluster is missing"),
        ({"a": 3}, "'a' is a int"),
    ],
)
def test_what_is_no_column_is_named(cluster, words):
    with pytest.raises(cal.BadInput, match=words):
        cal.predictions(Y, P, cluster=cluster)
