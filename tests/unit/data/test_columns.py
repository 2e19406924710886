"""What columns hold is kept: large numbers, dates as text, codes, extremes."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.data.columns import finite_numbers, number_texts, row_ids
from calibrant.data.layouts import unit_of
from calibrant.data.profile import LevelCounts

N = 400
AT = np.arange(N)
P = (AT % 90 + 5) / 100
Y = (AT * 7 % 100 < 100 * P).astype(int)
NAMED = {"label": "y", "score": "p"}
LARGE = {
    "int64": pa.array(2**53 + AT % 5),
    "negative": pa.array(-(2**53) - AT % 5),
    "uint64": pa.array(np.uint64(2**64 - 1) - (AT % 5).astype(np.uint64)),
    "decimal128": pa.array([10**30 + int(v) % 5 for v in AT], pa.decimal128(38, 0)),
    "decimal256": pa.array([10**60 + int(v) % 5 for v in AT], pa.decimal256(70, 0)),
}


def table(**other: Any) -> pa.Table:
    return pa.table({"y": Y, "p": P} | other)


def groups(sketch: Any) -> dict[str, int]:
    names = [name[0][1] for name in sketch.spec.group_names(0)]
    return {n: int(c) for n, c in zip(names, sketch.group_levels.sum(axis=(1, 2, 3)), strict=False) if c}


# ---- whole numbers that no double may be ----


@pytest.mark.parametrize("kind", LARGE)
def test_large_numbers_stay_apart(kind: str, tmp_path: Path) -> None:
    column = LARGE[kind]
    pq.write_table(table(c=column), tmp_path / "a.parquet")
    sources = [tmp_path / "a.parquet", table(c=column)]
    for source in sources:
        found = cal.sketch(str(source) if isinstance(source, Path) else source, by="c", variables="c", **NAMED)
        assert groups(found) == {str(v): N // 5 for v in column.unique().to_pylist()}
        assert len(found.spec.codings[0].levels) == 5
    rows = cal.read(table(c=column), by="c", **NAMED)
    assert groups(cal.sketch(rows, by="c")) == groups(found)
    assert len(cal.diagnose.variable_curve(rows, "c").columns["rows"]) == 5


@pytest.mark.parametrize("kind", LARGE)
def test_large_numbers_are_different_keys(kind: str) -> None:
    assert len(np.unique(row_ids([LARGE[kind]], 0))) == 5


def test_fifty_large_numbers_are_fifty_groups() -> None:
    found = groups(cal.sketch(table(c=10**18 + AT % 50), by="c", **NAMED))
    assert len(found) == 50
    assert set(found.values()) == {N // 50}


def test_large_numbers_among_small_ones_in_several_files(tmp_path: Path) -> None:
    for name, low in (("a", 0), ("b", 2**60), ("c", 3)):
        pq.write_table(table(c=low + AT % 2), tmp_path / f"{name}.parquet")
    found = cal.sketch(str(tmp_path / "*.parquet"), by="c", variables="c", **NAMED)
    assert groups(found) == {"0": 200, "1": 200, "3": 200, "4": 200, str(2**60): 200, str(2**60 + 1): 200}
    assert set(found.spec.codings[0].levels) == set(groups(found))
    again = cal.sketch(str(tmp_path / "*.parquet"), spec=found.spec)
    assert groups(again) == groups(found)


def test_many_large_numbers_are_no_group() -> None:
    with pytest.raises(cal.BadInput, match="looks like an identifier"):
        cal.sketch(table(c=10**18 + AT), by="c", **NAMED)


def test_profiles_of_large_numbers_merge_in_any_order() -> None:
    parts = [pa.array(AT % 5), pa.array(2**60 + AT % 3), pa.array(100 + AT % 9)]
    orders = [(0, 1, 2), (2, 1, 0), (1, 0, 2)]
    made = []
    for order in orders:
        whole = LevelCounts("c")
        for j in order:
            part = LevelCounts("c")
            part.update(parts[j])
            whole.merge(part)
        made.append(whole.variable())
    assert made[0] == made[1] == made[2]
    assert len(made[0].values) == 17


def test_numbers_as_names_of_levels() -> None:
    assert number_texts(pa.array([1.0, -0.0, 2.5, np.nan, 1e20])).to_pylist() == ["1", "0", "2.5", None, "1e+20"]
    assert number_texts(pa.array([2**63 + 1], pa.uint64())).to_pylist() == ["9223372036854775809"]


def test_decimals_are_read_from_parquet_as_from_text(tmp_path: Path) -> None:
    """To the last digit, whatever their precision: as scores, as covariates, and as names of levels."""
    rng = np.random.default_rng([3, 0x128])
    digits = ["".join(map(str, rng.integers(0, 10, k))) for k in rng.integers(15, 37, 2000)]
    p = [Decimal(f"0.{d}") for d in digits]
    few = [Decimal("0.0000001"), Decimal("1.50"), Decimal("0.123456789012345678"), Decimal("-0"), Decimal(2**40)]
    columns = {
        "y": pa.array(rng.integers(0, 2, len(p))),
        "p": pa.array(p, pa.decimal128(38, 36)),
        "x": pa.array([1000 * v for v in p], pa.decimal256(60, 36)),
        "g": pa.array([few[k] for k in rng.integers(0, len(few), len(p))], pa.decimal128(38, 18)),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    texts = [c.cast(pa.string()).to_pylist() for c in columns.values()]
    rows = "\n".join(map(",".join, zip(*texts, strict=True)))
    (tmp_path / "a.csv").write_text(f"{','.join(columns)}\n{rows}\n")
    packed, text = (cal.read(str(tmp_path / f"a.{e}"), label="y", score="p", by=["x", "g"]) for e in ("parquet", "csv"))
    assert packed.p.tolist() == text.p.tolist() == [float(v) for v in p]
    assert packed.covariates is not None
    assert text.covariates is not None
    for name in ("x", "g"):
        numbers = finite_numbers(packed.covariates[name], name, "covariate")
        assert numbers.tolist() == finite_numbers(text.covariates[name], name, "covariate").tolist()
    sketches = [cal.sketch(str(tmp_path / f"a.{e}"), by="g", **NAMED) for e in ("parquet", "csv")]
    assert groups(sketches[0]) == groups(sketches[1])


def test_a_level_named_by_a_real_number_is_found_in_whole_ones() -> None:
    spec = cal.sketch(table(c=(AT % 3).astype(float)), by="c", **NAMED).spec
    assert groups(cal.sketch(table(c=AT % 3), spec=spec)) == {"0": 134, "1": 133, "2": 133}
    assert groups(cal.sketch(table(c=pa.array((AT % 3).tolist(), pa.decimal128(5, 2))), spec=spec))["1"] == 133


# ---- dates ----


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(("days", "rows", "kind"), [(200, 4000, "month"), (900, 9000, "quarter"), (4000, 4000, "year")])
def test_dates_are_grouped_by_a_unit_of_few_groups(days: int, rows: int, kind: str, as_text: bool) -> None:
    at = np.arange(rows)
    day = pa.array((19_000 + at * 7919 % days).astype(np.int32), pa.date32())
    column = day.cast(pa.string()) if as_text else day
    source = pa.table({"y": at % 2, "p": np.full(rows, 0.5), "c": column})
    found = cal.sketch(source, by="c", variables="c", **NAMED)
    assert found.spec.variables[0].kind == kind
    assert len(found.spec.variables[0].values) <= 24
    assert sum(groups(found).values()) == rows
    assert "other" not in groups(found)
    assert found.spec.codings[0].kind == "date"
    assert groups(cal.sketch(cal.read(source, by="c", **NAMED), by="c")) == groups(found)


def test_units_of_dates() -> None:
    years = {f"{year}-{month:02d}": 50 for year in range(1920, 2000) for month in range(1, 13)}
    assert unit_of(years)[0] == "decade"
    assert unit_of({"2024-01": 10, "2024-02": 10}) == ("month", {"2024-01": 10, "2024-02": 10})
    assert unit_of({f"2024-{m:02d}": 40 for m in range(1, 13)}) == ("quarter", {f"2024-Q{q}": 120 for q in range(1, 5)})


def test_one_text_that_is_no_date_keeps_a_column_text(tmp_path: Path) -> None:
    days = [f"2024-03-{1 + v % 20:02d}" for v in AT]
    for name, first in (("a", days[0]), ("b", "unknown")):
        pq.write_table(table(c=[first, *days[1:]]), tmp_path / f"{name}.parquet")
    found = cal.sketch(str(tmp_path / "*.parquet"), by="c", variables="c", **NAMED)
    assert found.spec.variables[0].kind == "category"
    assert found.spec.codings[0].kind == "category"
    assert groups(found)["unknown"] == 1


def test_missing_dates_as_text_are_missing() -> None:
    days = ["", None, *(f"2024-0{1 + v % 3}-10" for v in AT[2:])]
    found = cal.sketch(table(c=days), by="c", variables="c", **NAMED)
    assert groups(found)["missing"] == 2
    assert found.spec.codings[0].missing


def test_dates_that_are_none_are_refused_where_dates_were_fixed() -> None:
    spec = cal.sketch(table(c=[f"2024-0{1 + v % 3}-10" for v in AT]), by="c", **NAMED).spec
    with pytest.raises(cal.BadInput, match="'c' held dates when the spec was fixed"):
        cal.sketch(table(c=["soon"] * N), spec=spec)


@pytest.mark.slow
def test_a_column_of_a_name_a_row_is_refused_before_names_are_counted() -> None:
    names = pa.array([f"customer {i}" for i in range(150_000)])
    for column in (names, names.dictionary_encode()):
        profile = LevelCounts("who")
        with pytest.raises(cal.BadInput, match="more than 100,000 distinct values"):
            profile.update(column)
        assert not profile.texts
    rows = cal.predictions(np.arange(len(names)) % 2, np.full(len(names), 0.5), {"who": names})
    for test in (cal.detect.local_calibration_test, cal.detect.strong_calibration_test):
        with pytest.raises(cal.BadInput, match=r"'who' has more than 100,000 distinct values.*leave it out"):
            test(rows, variables="who")
    days = pa.array([str(d) for d in np.datetime64("1500-01-01") + np.arange(150_000)])
    dated = LevelCounts("day")
    dated.update(days)
    assert dated.variable().kind in ("year", "decade")


# ---- identifiers, and what else is left out of every column ----


def test_likely_identifiers_are_not_ranked() -> None:
    rng = np.random.default_rng(7)
    source = table(
        row=AT,
        patient=rng.permutation(10**6)[:N],
        uuid=[f"{v:08x}-0000-4000-8000-{v:012x}" for v in AT],
        weight=rng.normal(70, 10, N),
        age=rng.integers(20, 90, N),
        change=rng.permutation(10**6)[:N] - 500_000,
    )
    spec = cal.sketch(source, variables="*", **NAMED).spec
    assert {c.name for c in spec.codings} == {"weight", "age", "change"}
    assert all("identifier" in why for _, why in spec.left_out)


def test_a_column_out_of_range_is_left_out_of_every_column() -> None:
    far = pa.array(np.full(N, 2**31 - 1, np.int32)).view(pa.date32())
    spec = cal.sketch(table(x=np.sqrt(AT), far=far, huge=1.7e308 * np.sin(AT)), variables="*", **NAMED).spec
    assert [c.name for c in spec.codings] == ["x"]
    assert dict(spec.left_out)["far"].startswith("it holds dates outside the years 1 to 9999")
    assert dict(spec.left_out)["huge"].startswith("it holds values such as")
    with pytest.raises(cal.BadInput, match="column 'far' holds dates outside"):
        cal.sketch(table(far=far), variables="far", **NAMED)


# ---- extremes ----


@pytest.mark.parametrize("edges", [[], [1, 1], [2, 1], [1e300], [0.5, float("nan")], [float("inf")]])
def test_bins_that_cannot_be_are_refused(edges: list[float]) -> None:
    with pytest.raises(cal.BadInput, match="bins"):
        cal.sketch(table(c=np.sqrt(AT)), by="c", bins={"c": edges}, **NAMED)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-200, 1e-100, 1e29])
def test_numbers_of_any_size_make_groups(scale: float) -> None:
    found = cal.sketch(table(c=np.sin(AT) * scale), by="c", variables="c", tests=True, **NAMED)
    assert sum(groups(found).values()) == N


def test_minus_zero_is_zero() -> None:
    assert groups(cal.sketch(table(c=np.where(AT % 2, -0.0, 0.0)), by="c", **NAMED)) == {"0": N}
    assert len(np.unique(row_ids([pa.array([-0.0, 0.0])], 0))) == 1


def test_keys_finer_than_a_microsecond_stay_apart() -> None:
    fine = pa.array([0, 1, 1000], pa.int64()).view(pa.timestamp("ns"))
    assert len(np.unique(row_ids([fine], 0))) == 3


@pytest.mark.parametrize("column", [pa.array([[1]] * N), pa.array([{"a": 1}] * N)])
def test_nested_keys_are_refused(column: pa.Array) -> None:
    with pytest.raises(cal.BadInput, match="key column 'c' holds"):
        cal.sketch(table(c=column), key="c", **NAMED)


# ---- long names ----


def test_long_names_are_refused_or_left_out() -> None:
    name = "x" * 1_000_000
    source = table(**{name: np.sqrt(AT), "z": np.sqrt(AT)})
    for part in ("by", "variables", "key"):
        with pytest.raises(cal.BadInput, match=r"its name has 1,000,000 characters") as e:
            cal.sketch(source, **NAMED, **{part: [name]})
        assert len(str(e.value)) < 300
    spec = cal.sketch(source, variables="*", **NAMED).spec
    assert [c.name for c in spec.codings] == ["z"]
    assert len(spec.left_out[0][0]) == 1000
    with pytest.raises(cal.BadInput, match="is not in the data") as e:
        cal.sketch(source, by="y" * 10**6, **NAMED)
    assert len(str(e.value)) < 1500


def test_long_texts_name_no_level() -> None:
    source = table(c=["x" * (1_000_000 if v == 3 else 1 + v % 2) for v in AT], z=np.sqrt(AT))
    with pytest.raises(cal.BadInput, match="covariate 'c' holds texts of 1,000,000 characters"):
        cal.sketch(source, variables="c", **NAMED)
    assert dict(cal.sketch(source, variables="*", **NAMED).spec.left_out).keys() == {"c"}


@pytest.mark.slow
def test_intervals_and_periods_of_pandas_are_known_in_files(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    spans = pd.arrays.IntervalArray.from_tuples([(v % 3 * 5, v % 3 * 5 + 5) for v in AT])
    months = pd.PeriodIndex([f"2024-0{1 + v % 3}" for v in AT], freq="M")
    pd.DataFrame({"y": Y, "p": P, "span": spans, "month": months}).to_parquet(tmp_path / "a.parquet")
    code = (
        "import calibrant as cal; "
        "s = cal.sketch('a.parquet', label='y', score='p', by=['span', 'month']); "
        "print([(v.kind, v.values) for v in s.spec.variables])"
    )
    reported = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    spelt = ("(0, 5]", "(5, 10]", "(10, 15]"), ("2024-01", "2024-02", "2024-03")
    assert reported.strip() == repr(list(zip(("category", "month"), spelt, strict=True)))


SIZES = {
    "both ends": np.where(AT % 2, 1e30, -1e30) * (1 + AT) / N,
    "denormal": np.sin(AT) * 1e-320,
    "tiny beside huge": np.where(AT % 2, 1e-320, 1e29),
    "one filler": np.where(AT == 7, 1e29, np.sin(AT)),
    "int64": np.where(AT % 2, 2**63 - 1, -(2**63)),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_numbers_of_any_size_are_audited_and_repaired(size: str) -> None:
    rows = cal.predictions(Y, P, {"x": SIZES[size], "z": np.cos(AT)})
    assert cal.audit(rows, by="x", variables=["x", "z"], quick=True).data["rows"] == N
    for recipe in ("VariableTree", "AugmentedLogistic", "LocalBias", "Multicalibrator", "ProportionalMulticalibrator"):
        repaired = getattr(cal.repair, recipe)(variables=["x", "z"]).fit(rows)(rows)
        assert ((repaired.p >= 0) & (repaired.p <= 1)).all(), recipe
    assert len(cal.diagnose.rank_variables(rows).columns["variable"]) >= 1
    cal.diagnose.variable_curve(rows, "x")
    cal.measure.vece(rows, "x")
    cal.detect.local_calibration_test(rows, draws=99)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 3.4e38, np.inf])
def test_fillers_are_refused_in_one_line(value: float) -> None:
    source = table(c=np.where(AT == 5, value, np.sin(AT)))
    for part in ("by", "variables"):
        with pytest.raises(cal.BadInput, match=r"'c' holds (values such as|infinite).*replace or cap them"):
            cal.sketch(source, **NAMED, **{part: "c"})
