"""An audit and a direct call of the same rows, with the same seed, give the same p-values and the same worst gap."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.pooling import pooled_rows
from calibrant.audit.rounding import Sums, reported_by_variable

D = cal.detect
ROWS, SEED, TOLERANCE = 400, 3, 0.01
COLUMNS = {"label": "y", "score": "p"}


def columns():
    """Return covariates of every kind, levels of few people, missing values and an identifier among them."""
    rng = np.random.default_rng(5)
    region = rng.choice(["north", "south", "west"], ROWS)
    region[:3], region[3:30] = "tiny", "small"
    age, income = rng.uniform(20, 90, ROWS), rng.lognormal(3, 1.5, ROWS)
    income[rng.random(ROWS) < 0.1] = np.nan
    p = rng.uniform(0.05, 0.6, ROWS)
    y = (rng.random(ROWS) < np.where(age > 65, p + 0.25, p)).astype(int)
    flag, number = rng.random(ROWS) < 0.3, np.arange(ROWS) + 10_000
    rest = {"visits": rng.integers(0, 4, ROWS), "flag": flag, "number": number}
    return {"y": y, "p": p, "age": age, "income": income, "region": region, **rest}


@pytest.fixture(scope="module")
def rows():
    held = columns()
    covariates = {k: v for k, v in held.items() if k not in ("y", "p")}
    return cal.predictions(held["y"], held["p"], covariates)


def source(form, rows, folder):
    import pyarrow as pa
    from pyarrow import csv, parquet

    if form == "predictions":
        return rows, {}
    table = pa.table(columns())
    if form == "frame":
        return table, COLUMNS
    path = folder / f"rows.{form}"
    (csv.write_csv if form == "csv" else parquet.write_table)(table, path)
    return str(path), COLUMNS


@pytest.fixture(scope="module", params=["predictions", "frame", "parquet", "csv"])
def record(request, rows, tmp_path_factory):
    data, how = source(request.param, rows, tmp_path_factory.mktemp("rows"))
    return cal.audit(data, seed=SEED, tolerance=TOLERANCE, **how)


@pytest.fixture(scope="module")
def direct(rows):
    """Every test by itself, once for all forms of the rows."""
    return {
        "local": D.local_calibration_test(rows, seed=SEED),
        "scan": D.scan_test(rows, tolerance=TOLERANCE, seed=SEED),
        "strong": D.strong_calibration_test(rows, tolerance=TOLERANCE, seed=SEED),
        "subgroup": D.subgroup_test(rows, tolerance=TOLERANCE, seed=SEED),
        "ranking": cal.diagnose.rank_variables(pooled_rows(rows, 20), seed=SEED),  # small levels, as an audit does
    }


@pytest.mark.slow
def test_tests_of_the_audit_and_by_themselves(record, direct):
    found = {c.code: c.outcome for c in record.checks if c.outcome is not None}
    assert found["local-calibration"].p_value == direct["local"].p_value
    assert found["local-calibration"].statistic == direct["local"].statistic
    assert found["strong-calibration"].p_value == direct["strong"].p_value
    assert found["strong-calibration"].statistic == direct["strong"].statistic
    assert found["subgroups"].p_value == direct["subgroup"].p_value
    assert found["subgroups"].parts["p_scan"] == direct["scan"].p_value
    assert found["subgroups"].parts["p_adaptive"] == direct["strong"].p_value
    assert set(found) == {"local-calibration", "strong-calibration", "subgroups"}, "a new test: compare it here"


@pytest.mark.slow
def test_ranking_of_the_audit_and_by_itself(record, direct):
    for column in ("variable", "p_value", "p_adjusted"):
        assert record.curves["ranking"].columns[column] == direct["ranking"].columns[column]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["age", "income", "visits", "flag"])
def test_curve_and_worst_gap_of_the_audit_and_by_itself(record, rows, name):
    curve = cal.diagnose.variable_curve(rows, name, seed=SEED)
    reported = record.curves[f"variable_curve/{name}"]
    assert reported.settings["p_value"] == curve.settings["p_value"]
    if name == "age":  # a smooth line is told to a thousandth
        assert reported.settings["worst_gap"] == pytest.approx(curve.settings["worst_gap"], abs=0.001)
    assert reported.columns == reported_by_variable(curve, rows.n, Sums).columns
    rounded = reported_by_variable(curve, rows.n, Sums).settings
    for number in ("worst_label", "worst_at", "worst_gap", "worst_low", "worst_high"):
        assert reported.settings[number] == rounded[number]


def test_rows_of_a_sketch_are_in_the_order_of_the_source(rows):
    held = cal.sketch(rows, variables="*", tests=True, seed=SEED).parts["sample"].predictions()
    np.testing.assert_array_equal(held.p, rows.p)
    np.testing.assert_array_equal(held.y, rows.y)
    with_key = cal.sketch(columns(), **COLUMNS, key="number", variables="*", tests=True).parts["sample"].predictions()
    assert sorted(with_key.p) == sorted(rows.p)
    assert list(with_key.p) != list(rows.p)


def test_strong_test_of_rows_leaves_out_what_an_audit_does(rows):
    assert "number" not in D.strong_calibration_test(rows, tolerance=0.05, draws=19).settings["variables"]
    assert (
        "number"
        in D.strong_calibration_test(rows, variables=["number"], draws=19, tolerance=0.05).settings["variables"]
    )
