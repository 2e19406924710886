"""A sketch and rows of the bundled data say the same, to the rounding that docs/data.md states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.data import EMPLOYMENT, employment_path
from calibrant.views.boxes import tables_of

pytestmark = pytest.mark.slow
ROUNDING = 1e-8
ASYMPTOTIC = 3e-3  # of a band's end: exact law from rows, asymptotic law from a sketch


@pytest.fixture(scope="module")
def both() -> tuple[cal.Predictions, Any]:
    path = employment_path()
    names = [n for n in pq.read_schema(path).names if n not in EMPLOYMENT.values()]
    rows = cal.read(path, **EMPLOYMENT, by=names)
    return rows, cal.sketch(path, **EMPLOYMENT, by=("sex", "race"), variables=names, tests=True)


@pytest.mark.parametrize("method", ["raw_lower", "rounded", "jittered", "distance", "bounded_variation"])
def test_certificates_are_the_same(both: Any, method: str) -> None:
    rows, sketch = (getattr(cal.certify, method)(data) for data in both)
    assert rows == sketch


def test_certified_pockets_are_the_same(both: Any) -> None:
    rows, sketch = both
    assert cal.certify.subgroups(rows, limit=0.03) == cal.certify.subgroups(sketch, limit=0.03)
    assert cal.certify.subgroups(rows, variables=["sex", "age"]) == cal.certify.subgroups(
        sketch, variables=["sex", "age"]
    )


def test_certificates_of_groups_are_the_same(both: Any) -> None:
    rows, sketch = both
    assert cal.certify.groups(rows, by=("sex", "race")) == cal.certify.groups(sketch)


@pytest.mark.parametrize(
    ("variable", "view"), [("age", "probability"), ("schooling", "probability"), ("race", "confidence")]
)
def test_vece(both: Any, variable: str, view: Any) -> None:
    rows, sketch = (cal.measure.vece(data, variable, view=view) for data in both)
    for a, b in (
        (rows.value, sketch.value),
        (rows.interval.low, sketch.interval.low),
        (rows.interval.high, sketch.interval.high),
    ):
        assert a == pytest.approx(b, abs=ROUNDING)
    for key in ("plug_in", "without_noise", "gap", "beyond_gap", "beyond_gap_plug_in"):
        assert rows.settings[key] == pytest.approx(sketch.settings[key], abs=ROUNDING)
    assert rows.settings["p_beyond_gap"] == pytest.approx(sketch.settings["p_beyond_gap"], abs=0.03)


@pytest.mark.parametrize("variable", ["age", "schooling", "year"])
def test_curves(both: Any, variable: str) -> None:
    rows, sketch = (cal.diagnose.variable_curve(data, variable) for data in both)
    assert rows.columns.keys() == sketch.columns.keys()
    for name, column in rows.columns.items():
        if all(isinstance(v, (int, float)) for v in column):
            off = ASYMPTOTIC if {"low", "high"} & set(name.split("_")) else ROUNDING
            np.testing.assert_allclose(column, sketch.columns[name], atol=off, rtol=0, err_msg=name)
        else:
            assert column == sketch.columns[name]


@pytest.mark.parametrize("view", ["probability", "confidence"])
def test_rankings(both: Any, view: Any) -> None:
    rows, sketch = (cal.diagnose.rank_variables(data, view=view).columns for data in both)
    for name in ("variable", "kind", "worst", "worst_rows", "bins"):
        assert rows[name] == sketch[name]
    for name in (
        "vece",
        "vece_plain",
        "beyond_gap",
        "beyond_gap_plain",
        "worst_gap",
        "worst_predicted",
        "worst_observed",
    ):
        np.testing.assert_allclose(rows[name], sketch[name], atol=ROUNDING, rtol=0, err_msg=name)
    for name, off in (("p_value", 0.03), ("p_adjusted", 0.1), ("low", 2e-3), ("high", 2e-3)):
        np.testing.assert_allclose(rows[name], sketch[name], atol=off, rtol=0, err_msg=name)


def test_certificates_along_a_counted_group(both: Any) -> None:
    rows, sketch = (cal.certify.variable(data, "race").interval for data in both)
    assert (rows.low, rows.high) == pytest.approx((sketch.low, sketch.high), abs=ROUNDING)


def test_the_local_test_is_the_same(both: Any) -> None:
    rows, sketch = (cal.detect.local_calibration_test(data) for data in both)
    assert rows == sketch


def test_boxes_are_the_same(both: Any) -> None:
    rows, sketch = (tables_of(data, None, 2, 0) for data in both)
    assert rows.attributes == sketch.attributes
    np.testing.assert_array_equal(rows.sums, sketch.sums)
    assert rows.complete
    assert sketch.complete


@pytest.mark.slow
@pytest.mark.parametrize("null", ["simulated", "bound"])
def test_the_scan_is_the_same(both: Any, null: Any) -> None:
    rows, sketch = (cal.detect.scan_test(data, null=null, seed=0) for data in both)
    assert rows == sketch


def test_certified_boxes_are_the_same(both: Any) -> None:
    rows, sketch = (cal.certify.subgroups(data) for data in both)
    assert rows == sketch
