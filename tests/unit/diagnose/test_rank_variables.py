"""The ranking: its key, its columns, what is left out, pairs, and refusals."""

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.diagnose.rank_variables import certified_ranges
from calibrant.diagnose.ranking import EXACT, GAUSSIAN
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve

N = 6000


def data(gap: float = 0.03, weights: Any = None) -> cal.Predictions:
    rng = np.random.default_rng([0xACE, N])
    p, income, height = rng.uniform(0.2, 0.8, N), rng.normal(size=N), rng.normal(size=N)
    region = np.array(["east", "west"])[rng.integers(0, 2, N)]
    rate = p + gap + 0.1 * np.sign(income)
    table = pa.table(
        {
            "height": height,
            "region": region,
            "income": income,
            "row": np.arange(N),
            "same": np.ones(N),
            "name": [f"p{i}" for i in range(N)],
        }
    )
    found = cal.predictions(rng.random(N) < np.clip(rate, 0, 1), p, table, weights=weights)
    assert isinstance(found, cal.Predictions)
    return found


def test_the_error_beyond_the_shift_leads_and_nothing_is_left_out_silently() -> None:
    found = cal.diagnose.rank_variables(data(), draws=199)
    c, s = found.columns, found.settings
    assert c["variable"][0] == "income"
    assert sorted(c["variable"]) == ["height", "income", "region"]
    assert s["left_out"] == {"row": s["left_out"]["name"], "same": "one value only", "name": s["left_out"]["row"]}
    assert "identifier" in s["left_out"]["row"]
    assert c["p_adjusted"][0] == 1 / 200
    assert min(c["p_adjusted"][1:]) > 0.05
    assert 0.08 < c["beyond_gap"][0] < 0.12
    assert max(c["beyond_gap"][1:]) < 0.02 < min(c["vece"])
    assert c["beyond_low"][0] > 0.03
    assert all(a <= b <= z for a, b, z in zip(c["low"], c["vece"], c["high"], strict=True))
    assert abs(c["worst_beyond_gap"][0]) == pytest.approx(abs(c["worst_gap"][0] - s["gap"]))
    assert Curve.from_dict(found.to_dict()) == found


def test_rows_are_read_by_the_null_that_all_names_afford(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more names than can be simulated few have a line: what was not kept for them is not read either."""
    monkeypatch.setattr("calibrant.diagnose.bands.AFFORDABLE", 5 * N * 199)
    assert cal.diagnose.rank_variables(data(), draws=199).settings["null"] == GAUSSIAN


def test_the_values_are_those_of_vece() -> None:
    rows = data()
    found = cal.diagnose.rank_variables(rows, draws=99)
    for name, beyond, whole in zip(
        *(found.columns[k] for k in ("variable", "beyond_gap_plain", "vece_plain")), strict=True
    ):
        own = cal.measure.vece(rows, name, draws=99).settings
        assert beyond == pytest.approx(own["beyond_gap_plug_in"], abs=1e-12)
        assert whole == pytest.approx(own["plug_in"], abs=1e-12)


def test_the_ranges_are_those_of_certify_variable() -> None:
    rows = data()
    ends, why = certified_ranges(rows, ["income", "region"], 10, "probability", 0.1, 3)
    assert why is None
    for name in ("income", "region"):
        whole = cal.certify.variable(rows, name, alpha=0.1 / 4, seed=3).interval
        beyond = cal.certify.variable(rows, name, beyond_gap=True, alpha=0.1 / 4, seed=3).interval
        assert ends[name]["low"] == pytest.approx(whole.low, abs=1e-9)
        assert ends[name]["high"] == pytest.approx(whole.high, abs=1e-9)
        assert ends[name]["beyond_low"] == pytest.approx(beyond.low, abs=1e-9)
        assert ends[name]["beyond_high"] == pytest.approx(beyond.high, abs=1e-9)


def test_ranges_of_weighted_rows_are_those_of_the_certificate() -> None:
    rows = data(weights=np.random.default_rng(5).uniform(0.5, 2, N))
    found = cal.diagnose.rank_variables(rows, variables=["income", "region"], draws=99, alpha=0.1)
    assert found.settings["not_certified"] is None
    own = cal.certify.variable(rows, "income", alpha=0.1 / 4).interval
    at = found.columns["variable"].index("income")
    assert (found.columns["low"][at], found.columns["high"][at]) == pytest.approx((own.low, own.high), abs=1e-9)


def test_without_a_proof_there_is_no_range_and_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = data(weights=np.random.default_rng(5).uniform(0.5, 2, N))
    monkeypatch.setattr(sys.modules["calibrant.certify.variable"], "MOST_OF_CLUSTERS", 5)
    with pytest.raises(NotComputable, match=r"11 cells are too many with cluster= or weights="):
        cal.certify.variable(rows, "height")
    found = cal.diagnose.rank_variables(rows, draws=99)
    assert set(found.columns["low"]) == {None}
    assert "weights" in found.settings["not_certified"]


@pytest.mark.slow
def test_many_rows_use_gaussian_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = data()
    exact = cal.diagnose.rank_variables(rows, draws=999)
    monkeypatch.setattr("calibrant.diagnose.bands.AFFORDABLE", 0)
    fast = cal.diagnose.rank_variables(rows, draws=999)
    assert (exact.settings["null"], fast.settings["null"]) == (EXACT, GAUSSIAN)
    by_name = [dict(zip(f.columns["variable"], f.columns["p_value"], strict=True)) for f in (exact, fast)]
    for name in ("height", "region"):
        assert by_name[0][name] == pytest.approx(by_name[1][name], abs=0.06)


@pytest.mark.slow
def test_a_pair_is_found_only_where_it_shows_more_than_its_variables() -> None:
    rng = np.random.default_rng([0xACE, 2])
    p, a, b, c = rng.uniform(0.3, 0.7, N), *(rng.normal(size=N) for _ in range(3))
    two_way = np.clip(p + 0.12 * np.sign(a * b), 0, 1)
    added = np.clip(p + 0.1 * np.sign(a) + 0.1 * np.sign(b), 0, 1)
    for rate, found in ((two_way, True), (added, False)):
        y = rng.random(N) < rate
        made = cal.diagnose.rank_variables(cal.predictions(y, p, {"a": a, "b": b, "c": c}), draws=199, pairs=3)
        lines = dict(zip(made.columns["variable"], made.columns["p_adjusted"], strict=True))
        assert (lines["a x b"] <= 0.05) is found
        assert lines["a x c"] > 0.05
        assert made.settings["pairs_tried"] == 3
        if found:
            assert made.columns["variable"][3] == "a x b"
            assert made.columns["gain"][3] > 0.05


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"bins": 1}, "bins=1"),
        ({"draws": 10}, "draws=10"),
        ({"pairs": -1}, "pairs=-1"),
        ({"alpha": 0}, "alpha=0"),
        ({"variables": ["nobody"]}, "nobody"),
        ({"variables": []}, "variables="),
        ({"view": "x"}, "view='x'"),
        ({"variables": ["income", "income"]}, "names 'income' twice"),
    ],
)
def test_bad_settings_are_named(more: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        cal.diagnose.rank_variables(data(), **more)


def test_nothing_to_rank() -> None:
    with pytest.raises(NotComputable, match="one value only"):
        cal.diagnose.rank_variables(data(), variables="same")
    rng = np.random.default_rng(1)
    with pytest.raises(NotComputable, match="no covariates"):
        cal.diagnose.rank_variables(cal.predictions(rng.random(90) < 0.5, rng.random(90)))


@pytest.mark.slow
def test_a_sketch_gives_the_same_order_and_curve() -> None:
    rows = data()
    table = rows.covariates.select(["income", "height", "region", "same"])
    whole = cal.sketch(
        table.append_column("y", pa.array(rows.y)).append_column("p", pa.array(rows.p)),
        label="y",
        score="p",
        variables=["income", "height", "region", "same"],
    )
    names = ["income", "height", "region"]
    from_rows, from_cells = (cal.diagnose.rank_variables(d, variables=names) for d in (rows, whole))
    assert from_cells.columns["variable"][0] == "income"
    for k in ("beyond_gap_plain", "vece_plain"):
        ours, theirs = (dict(zip(f.columns["variable"], f.columns[k], strict=True)) for f in (from_rows, from_cells))
        assert ours == pytest.approx(theirs, abs=2e-3)
    assert from_cells.settings["null"] == GAUSSIAN
    assert cal.diagnose.rank_variables(whole).settings["left_out"] == {"same": "it takes one value only"}
    with pytest.raises(NotComputable, match="pairs"):
        cal.diagnose.rank_variables(whole, pairs=1)
    curves = [cal.diagnose.variable_curve(d, "income", grid=[-1.0, 0.0, 1.0]) for d in (rows, whole)]
    np.testing.assert_allclose(curves[0].columns["gap"], curves[1].columns["gap"], atol=1e-3)
    np.testing.assert_allclose(curves[0].columns["high"], curves[1].columns["high"], atol=6e-3)


def test_a_column_of_intervals_is_left_out_with_the_reason() -> None:
    rng = np.random.default_rng(8)
    band = pa.array([{"left": float(i % 3), "right": float(i % 3 + 1)} for i in range(300)])
    table = pa.table({"band": band, "x": rng.random(300)})
    rows = cal.predictions(rng.random(300) < 0.5, np.full(300, 0.5), table)
    found = cal.diagnose.rank_variables(rows, draws=99)
    assert found.columns["variable"] == ("x",)
    assert "use text, numbers" in found.settings["left_out"]["band"]
