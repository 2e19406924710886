"""Units on several levels: the coarsest where they are nested, a refusal where they cross."""

from __future__ import annotations

import io
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.data.sketches.sketch import Sketch

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
        cal.sketch(VISITS | {"hospital": moved}, **NAMED)


def test_persons_and_questions_cross():
    person, question = np.divmod(np.arange(18), 6)
    found = cal.predictions(Y, P, cluster={"question": question, "person": person})
    assert (found.crossing.names, found.crossing.clusters) == (("question", "person"), (6, 3))
    assert found.crossing.codes.tolist() == [question.tolist(), person.tolist()]
    assert len(np.unique(found.cluster)) == 1  # what knows nothing of crossing takes no two rows as independent


def test_a_finer_column_goes_and_three_that_cross_are_refused():
    person, question = np.divmod(np.arange(18), 6)
    columns = {"person": person, "question": question, "row": np.arange(18), "school": person // 2}
    assert cal.predictions(Y, P, cluster=columns).crossing.names == ("question", "school")
    rater = (person + question) % 2
    with pytest.raises(cal.NotComputable, match="two columns may"):
        cal.predictions(Y, P, cluster={"person": person, "question": question, "rater": rater})


def test_rows_without_a_label_leave_their_units():
    person, question = np.divmod(np.arange(18), 6)
    y = [None if q == 5 else 1 for q in question]
    found = cal.predictions(y, P, cluster={"person": person, "question": question}, drop_missing=True)
    assert (found.n, found.crossing.clusters) == (15, (5, 3))


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({}, "no column"),
        ({"a": PATIENT, "b": PATIENT[:4]}, "'b' has 4 rows"),
        ({"a": PATIENT, "b": [None, *PATIENT[1:]]}, "'b' is missing"),
        ({"a": 3}, "'a' is a int"),
    ],
)
def test_what_is_no_column_is_named(cluster, words):
    with pytest.raises(cal.BadInput, match=words):
        cal.predictions(Y, P, cluster=cluster)


# ---- of columns that are nested ----

VISITS = {
    "y": Y,
    "p": P,
    "patient": PATIENT,
    "hospital": HOSPITAL,
    "age": np.tile([30.0, 50.0, 70.0], 6),
    "id": np.arange(18),
}
NAMED = {"label": "y", "score": "p", "cluster": ["patient", "hospital"]}


@pytest.mark.parametrize(
    "cluster",
    [
        {"patient": PATIENT, "hospital": HOSPITAL},
        pd.DataFrame({"patient": PATIENT, "hospital": HOSPITAL}),
        pa.table({"patient": PATIENT, "hospital": HOSPITAL}),
        [pd.Series(PATIENT, name="patient"), pd.Series(HOSPITAL, name="hospital")],
    ],
)
def test_levels_come_as_dictionary_frame_and_list(cluster):
    found = cal.predictions(Y, P, cluster=cluster)
    assert found.levels == (("hospital", 3), ("patient", 9))
    assert found.cluster.tolist() == HOSPITAL.tolist()


def test_arrays_of_a_list_have_a_number_for_a_name():
    assert cal.predictions(Y, P, cluster=[PATIENT, HOSPITAL]).levels == (("column 2", 3), ("column 1", 9))


def test_a_list_of_values_is_one_column():
    assert cal.predictions(Y, P, cluster=PATIENT.tolist()).levels == ()
    assert cal.predictions(Y, P, cluster=HOSPITAL.tolist()).levels == ()


def test_levels_are_joined_by_their_labels_before_they_are_compared():
    """In the order of rows as given each patient would be in two hospitals."""
    rows, order = [f"row {i}" for i in range(18)], np.r_[1:18, 0]
    labels, patient = pd.Series(Y, index=rows), pd.Series(PATIENT, index=rows)
    moved = pd.Series(HOSPITAL, index=rows).iloc[order]
    found = cal.predictions(labels, P, cluster={"patient": patient, "hospital": moved})
    assert found.cluster.tolist() == HOSPITAL.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [["patient", "hospital"], ["hospital", "patient"]])
def test_every_way_of_reading_takes_the_coarsest(cluster):
    one = cal.audit(VISITS, label="y", score="p", cluster="hospital", variables=["age"], quick=True)
    asked = {"label": "y", "score": "p", "cluster": cluster}
    assert cal.read(VISITS, **asked).levels == (("hospital", 3), ("patient", 9))
    whole = cal.sketch(VISITS, **asked)
    assert (whole.spec.cluster, whole.nested) == ("hospital", (("hospital", 3), ("patient", 9)))
    record = cal.audit(VISITS, **asked, variables=["age"], quick=True)
    assert (record.data["cluster"], record.data["nested"]) == ("hospital", {"patient": 9})
    assert record.everyone == one.everyone
    assert one.data["nested"] == {}


def test_what_was_read_says_its_levels():
    for found in (cal.measure.brier(cal.read(VISITS, **NAMED)), cal.certify.raw_lower(cal.read(VISITS, **NAMED))):
        assert (found.settings["cluster"], found.settings["nested"]) == ("hospital", ("patient",))


def test_the_finer_column_is_no_covariate_and_the_page_says_that_it_lies_in_the_coarser(tmp_path):
    record = cal.audit(VISITS, **NAMED, quick=True)
    assert record.data["covariates"] == ("age",)
    assert record.data["columns"]["patient"]["used"] == "cluster"
    record.save(tmp_path / "audit.md")
    assert "3 clusters (`hospital`, in which all 9 of `patient` lie)" in (tmp_path / "audit.md").read_text()


def test_merged_sketches_do_not_claim_that_levels_are_nested():
    first = cal.sketch(VISITS, **NAMED, key="id", spec=None)
    second = Sketch(first.spec)
    assert first.copy().nested == first.nested
    second.add(first)
    assert second.nested == ()


def test_rows_in_memory_may_have_units_that_cross():
    found = cal.read(VISITS | {"q": np.arange(18) % 6}, label="y", score="p", cluster=["q", "hospital"])
    assert found.crossing.names == ("q", "hospital")


@pytest.mark.parametrize("reads", [cal.read, cal.sketch, cal.audit])
def test_levels_that_cross_or_are_missing_are_refused_where_there_is_no_way_with_them(reads):
    if reads is cal.sketch:
        with pytest.raises(cal.NotComputable, match="'q' and 'hospital' cross"):
            reads(VISITS | {"q": np.arange(18) % 6}, label="y", score="p", cluster=["q", "hospital"])
    gone = [None, *PATIENT[1:].tolist()]
    with pytest.raises(cal.BadInput, match=r"'patient'.*missing"):
        reads(VISITS | {"patient": gone}, **NAMED)


def test_a_column_named_twice_is_refused():
    with pytest.raises(cal.BadInput, match="names 'patient' twice"):
        cal.read(VISITS, label="y", score="p", cluster=["patient", "patient"])


@pytest.mark.slow
def test_a_look_types_all_columns_and_those_that_cross():
    assert "cluster=['patient', 'hospital']" in cal.look(VISITS, **NAMED, by=["age"]).command
    seen = cal.look(VISITS | {"q": np.arange(18) % 6}, label="y", score="p", cluster=["q", "hospital"])
    assert seen.refusals == ()
    assert "cluster=['q', 'hospital']" in seen.command


@pytest.mark.slow
def test_commands_take_several_columns(tmp_path, capsys, monkeypatch):
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table(VISITS), path)
    asked = ["--label", "y", "--score", "p", "--cluster", "patient,hospital"]
    assert main(["audit", str(path), *asked, "--quick"]) == 0
    reported = capsys.readouterr().out
    assert "in which all 9 of patient lie" in reported
    assert "--cluster hospital,patient" in reported
    assert main(["measure", "brier", str(path), *asked]) == 0
    capsys.readouterr()
    text = pd.DataFrame(VISITS).to_csv(index=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["sketch", "-", *asked, "--out", str(tmp_path / "v.sketch")]) == 0
    assert main(["audit", str(tmp_path / "v.sketch"), "--quick"]) == 0
    assert "of 3 clusters (hospital)" in capsys.readouterr().out


@pytest.mark.slow
def test_three_units_are_audited_and_refute_nothing_from_above():
    """Two of them certify, on whose number no bet is made."""
    assert cal.audit(VISITS, **NAMED, quick=True).everyone.upper.interval.high == 1.0


def test_some_rows_have_their_own_labels_weights_clusters_and_covariates() -> None:
    rng, rows = np.random.default_rng(8), np.array([7, 2, 11, 4])
    y, p, w = np.arange(12) % 2, rng.uniform(size=12), rng.uniform(1, 2, 12)
    person, item = np.arange(12) % 4, np.arange(12) % 3
    crossed = cal.predictions(y, p, {"x": np.arange(12)}, weights=w, cluster={"person": person, "item": item})
    some = crossed.part(rows)
    assert (some.n, some.crossing.names) == (4, ("person", "item"))
    for kept, column in zip(some.crossing.codes, (person, item), strict=True):
        pairs = set(zip(kept.tolist(), column[rows].tolist(), strict=True))
        assert len(pairs) == len(set(kept.tolist())) == len(set(column[rows].tolist()))
    assert (some.p == p[rows]).all()
    assert (some.y == y[rows]).all()
    assert (some.weights == w[rows]).all()
    assert some.covariates.column("x").to_pylist() == rows.tolist()
    plain = cal.predictions(y, p, cluster=person).part(rows)
    assert plain.cluster.tolist() == person[rows].tolist()
    with pytest.raises(ValueError, match="read-only"):
        some.p[0] = 0.5


def test_clusters_whose_column_is_called_weights_are_no_weights():
    weights, stay = np.linspace(0.5, 3.0, 18), np.repeat(np.arange(9), 2) + 1
    named = cal.predictions(Y, P, cluster={"weights": np.repeat([1, 7, 9], 6), "stay": stay}, weights=weights)
    other = cal.predictions(Y, P, cluster={"place": np.repeat([1, 7, 9], 6), "stay": stay}, weights=weights)
    assert cal.sketch(named).rows().weights.tolist() == cal.sketch(other).rows().weights.tolist() == weights.tolist()
