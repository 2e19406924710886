"""Variable curves: columns, kinds of variables, units, refusals, and the theorems on over- and under-confidence."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve

N = 4000


def rows(n: int = N, **covariates: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng([0xBEEF, n])
    p = rng.uniform(0.2, 0.8, n)
    return p, rng


def curve(y: Any, p: Any, table: Any, *args: Any, weights: Any = None, **more: Any) -> Curve:
    return cal.diagnose.variable_curve(cal.predictions(y, p, table, weights=weights), *args, **{"draws": 99, **more})


def test_a_number_has_a_curve_and_missing_values_a_level() -> None:
    p, rng = rows()
    x = np.where(rng.random(N) < 0.1, np.nan, rng.uniform(20, 80, N))
    found = curve(rng.random(N) < p, p, {"x": pa.array(x, from_pandas=True)}, "x")
    assert found.settings["kind"] == "curve"
    assert found.columns["label"][-1] == "missing"
    assert found.columns["x"][-1] is None
    assert found.columns["stretch"][-1] == -1
    assert len(found.columns["x"]) == 42
    assert Curve.from_dict(found.to_dict()) == found
    assert found.to_arrow().num_rows == 42


def test_dates_are_written_as_dates() -> None:
    p, rng = rows()
    day = np.datetime64("2021-01-01") + rng.integers(0, 700, N)
    found = curve(rng.random(N) < p, p, {"day": pa.array(day)}, "day", grid=["2021-03-01", "2022-06-30"])
    assert found.columns["label"] == ("2021-03-01", "2022-06-30")
    assert found.settings["date"]


@pytest.mark.parametrize("few", [True, False])
def test_levels_are_their_plain_means(few: bool) -> None:
    p, rng = rows()
    g = rng.integers(0, 4, N) if few else np.array(list("abcd"))[rng.integers(0, 4, N)]
    y = rng.random(N) < p
    found = curve(y, p, {"g": g}, "g")
    assert found.settings["kind"] == "levels"
    for label, gap, n in zip(*(found.columns[k] for k in ("label", "gap", "rows")), strict=True):
        own = g.astype(str) == label
        assert gap == pytest.approx(float((y - p)[own].mean()))
        assert n == pytest.approx(own.sum())


def test_weights_count_rows_again() -> None:
    p, rng = rows()
    x, w = rng.uniform(0, 1, N).round(2), rng.integers(1, 4, N)
    y = rng.random(N) < p
    weighted = curve(y, p, {"x": x}, "x", weights=w, span=1.0, degree=0, grid=[0.5])
    again = np.repeat(np.arange(N), w)
    repeated = curve(y[again], p[again], {"x": x[again]}, "x", span=1.0, degree=0, grid=[0.5])
    assert weighted.columns["gap"][0] == pytest.approx(repeated.columns["gap"][0], abs=1e-9)
    assert weighted.columns["rows"][0] < repeated.columns["rows"][0]


def test_the_confidence_view_turns_rows_round() -> None:
    p, rng = rows()
    x, y = rng.uniform(0, 1, N), rng.random(N) < p
    right = np.where(p >= 0.5, y, ~y)
    ours = curve(y, p, {"x": x}, "x", view="confidence")
    theirs = curve(right, np.maximum(p, 1 - p), {"x": x}, "x")
    np.testing.assert_allclose(ours.columns["gap"], theirs.columns["gap"], atol=1e-12)
    assert ours.settings["p_value"] == pytest.approx(theirs.settings["p_value"])


def test_groups_and_pairs() -> None:
    p, rng = rows()
    x, g = rng.uniform(0, 1, N), np.array(["n", "s"])[rng.integers(0, 2, N)]
    off = np.where((g == "s") & (x > 0.5), 0.2, 0.0)
    y = rng.random(N) < np.clip(p + off, 0, 1)
    multiples = curve(y, p, {"x": x, "g": g}, "x", by="g")
    assert set(multiples.columns["group"]) == {"n", "s"}
    assert multiples.settings["worst_group"] == "s"
    own = g == "s"
    alone = curve(y[own], p[own], {"x": x[own]}, "x", grid=[0.3, 0.7])
    part = curve(y, p, {"x": x, "g": g}, "x", by="g", grid=[0.3, 0.7])
    at = [i for i, name in enumerate(part.columns["group"]) if name == "s"]
    np.testing.assert_allclose([part.columns["gap"][i] for i in at], alone.columns["gap"], atol=2e-3)
    pair = curve(y, p, {"x": x, "g": g}, ("x", "g"))
    assert len(pair.columns["gap"]) == 12
    assert pair.settings["worst_group"] == "s"


def test_tails_and_gaps_are_masked_and_counted() -> None:
    p, rng = rows()
    x = np.where(rng.random(N) < 0.5, rng.uniform(0, 1, N), rng.uniform(9, 10, N))
    found = curve(rng.random(N) < p, p, {"x": x}, "x", grid=101)
    assert found.settings["masked"] > 50
    assert set(found.columns["stretch"]) == {0, 1}
    rare = p / 5000
    with pytest.raises(NotComputable, match="20 people and 5 expected events"):
        curve(rng.random(N) < rare, rare, {"x": x}, "x")


def test_the_worst_interval_is_read_off_the_band() -> None:
    p, rng = rows(20_000)
    x = rng.uniform(0, 10, 20_000)
    y = rng.random(20_000) < np.clip(p + 0.15 * np.sin(x / 1.6), 0, 1)
    s = curve(y, p, {"x": x}, "x").settings
    assert s["worst_low"] <= abs(s["worst_gap"]) <= s["worst_high"]
    assert s["worst_low"] > 0.05
    assert 0.5 <= s["worst_at"] <= 9.5


def test_consistent_over_and_under_confidence_and_theorem_5_4() -> None:
    p, rng = rows(20_000)
    x, u = rng.uniform(0, 1, 20_000), rng.random(20_000)
    for side, move in (("over", -0.1), ("under", 0.1)):
        data = cal.predictions(u < p + move, p, {"x": x})
        s = cal.diagnose.variable_curve(data, "x", draws=99).settings
        assert (s["consistent"], s["consistent_how"][:5]) == (side, "shown")
        vece = cal.measure.vece(data, "x", draws=99).settings["plug_in"]
        assert vece == pytest.approx(abs(s["gap"]), abs=1e-9)
        assert cal.measure.ece(data, bins=10).settings["plug_in"] == pytest.approx(vece, abs=1e-9)
    calibrated = cal.diagnose.variable_curve(cal.predictions(u < p, p, {"x": x}), "x", draws=99)
    assert calibrated.settings["consistent"] is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"span": 0.0}, "span=0.0"),
        ({"span": 1.5}, "span=1.5"),
        ({"degree": 3}, "degree=3"),
        ({"grid": 1}, "grid=1"),
        ({"grid": [2.0, 1.0]}, "grid"),
        ({"draws": 5}, "draws=5"),
        ({"alpha": 2}, "alpha=2"),
        ({"view": "class"}, "view='class'"),
        ({"by": "nobody"}, "nobody"),
    ],
)
def test_bad_settings_are_named(more: dict[str, Any], message: str) -> None:
    p, rng = rows()
    with pytest.raises(BadInput, match=message):
        curve(rng.random(N) < p, p, {"x": rng.random(N)}, "x", **more)


@pytest.mark.slow
def test_copies_in_units_add_nothing() -> None:
    """Band and p-value are those of the single rows; of copies that pass for rows they are too sure."""
    p, rng = rows()
    y, x = rng.random(N) < p, rng.random(N)
    who = np.repeat(np.arange(N), 3)
    copies = y[who], p[who], {"x": x[who], "g": np.array(["n", "s"])[(x > 0.4).astype(int)][who]}
    held, naive = cal.predictions(*copies, cluster=who), cal.predictions(*copies)
    once = cal.diagnose.variable_curve(cal.predictions(y, p, {"x": x}), "x")
    thrice, sure = (cal.diagnose.variable_curve(d, "x") for d in (held, naive))
    width = [np.mean(np.subtract(c.columns["high"], c.columns["low"])) for c in (once, thrice, sure)]
    assert width[1] == pytest.approx(width[0], rel=0.1)
    assert width[2] < 0.7 * width[1]
    assert thrice.settings["p_value"] == pytest.approx(once.settings["p_value"], abs=0.12)
    assert thrice.settings["null"].startswith("random signs of whole clusters")
    table = [cal.diagnose.rank_variables(d, pairs=1) for d in (held, naive)]
    sizes, naive_p = (dict(zip(t.columns["variable"], t.columns["p_value"], strict=True)) for t in table)
    assert all(sizes[name] >= naive_p[name] - 0.02 for name in sizes)
    assert "clusters" in table[0].settings["null"]
    assert table[0].settings["not_certified"] is None
    ends = [dict(zip(t.columns["variable"], t.columns["beyond_high"], strict=True)) for t in table]
    assert all(ends[0][name] > ends[1][name] for name in ("x", "g"))


def test_bad_data_is_refused() -> None:
    p, rng = rows()
    y, x = rng.random(N) < p, rng.random(N)
    with pytest.raises(BadInput, match="variable="):
        curve(y, p, {"x": x}, ("x", "x"))
    with pytest.raises(BadInput, match="by='x'"):
        curve(y, p, {"x": x, "z": x}, ("x", "z"), by="x")
    with pytest.raises(NotComputable, match="one cluster"):
        cal.diagnose.variable_curve(cal.predictions(y, p, {"x": x}, cluster=np.zeros(N)), "x")
    many: Any = cal.multiclass_predictions(rng.integers(0, 3, 50), np.full((50, 3), 1 / 3), {"x": rng.random(50)})
    with pytest.raises(BadInput, match="several classes"):
        cal.diagnose.variable_curve(many, "x")


@pytest.mark.parametrize(
    "kind", ["curve", "levels", pytest.param("by", marks=pytest.mark.slow), "pair", "date", "ranking", "confidence"]
)
def test_every_kind_has_a_chart(kind: str) -> None:
    p, rng = rows()
    y, x, g = rng.random(N) < p, rng.random(N), np.array(["n", "s"])[rng.integers(0, 2, N)]
    day = np.datetime64("2021-01-01") + rng.integers(0, 700, N)
    data = cal.predictions(y, p, pa.table({"x": x, "g": g, "day": pa.array(day)}))
    ask = {
        "curve": ("x", None),
        "levels": ("g", None),
        "by": ("x", "g"),
        "pair": (("x", "g"), None),
        "date": ("day", None),
        "confidence": ("x", None),
    }
    if kind == "ranking":
        made = cal.diagnose.rank_variables(data, draws=99, pairs=1)
    else:
        view: Any = "confidence" if kind == "confidence" else "probability"
        made = cal.diagnose.variable_curve(data, ask[kind][0], view=view, by=ask[kind][1], draws=99)
    text = made.chart().to_json()
    assert "points" in text
    if kind == "confidence":
        assert "predicted error" in text
    assert "NaN" not in text
