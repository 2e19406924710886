"""What `measure.vece` and `certify.variable` refuse, and what they say of themselves."""

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.results import Estimate


def rows(n=600, weights=None, clusters=None, **more):
    g = np.random.default_rng([0xFACE, n])
    p = g.uniform(size=n)
    table = {
        "x": np.where(np.arange(n) < 20, np.nan, g.normal(size=n)),
        "z": g.normal(size=n),
        "level": pa.array(["a", "b", None] * (n // 3)),
        "day": np.datetime64("2021-03-01") + g.integers(0, 40, n),
        "one": np.full(n, 7),
    } | more
    return cal.predictions(g.uniform(size=n) < p, p, table, weights=weights, cluster=clusters)


@pytest.mark.parametrize("variable", ["x", "z", "level", "day", "one", ("x", "level"), ("z", "day")])
def test_results_round_trip(variable):
    for found in (cal.measure.vece(rows(), variable, draws=99), cal.certify.variable(rows(), variable)):
        assert Estimate.from_dict(found.to_dict()) == found
        assert found.interval.low <= found.value <= found.interval.high


def test_missing_is_a_level_of_its_own_and_ties_are_said():
    found = cal.measure.vece(rows(), "x", draws=99).settings
    assert found["missing"]
    assert found["bins_used"] == 11
    assert found["bins_collapsed"] == 0
    ties = cal.measure.vece(rows(t=np.minimum(np.arange(600) // 20, 14)), "t", draws=99).settings
    assert ties["bins_used"] + ties["bins_collapsed"] == 10
    assert ties["bins_collapsed"] > 0
    assert cal.measure.vece(rows(), "level", draws=99).settings["bins_used"] == 3
    assert cal.certify.variable(rows(), "x").settings["pilot"] == 60


def test_confidence_view_by_hand():
    data = cal.predictions([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.5], {"g": ["a", "a", "b", "b"]})
    found = cal.measure.vece(data, "g", view="confidence", draws=99)
    assert found.settings["plug_in"] == pytest.approx((abs(2 - 1.7) + abs(0 - 1.2)) / 4)
    assert cal.measure.vece(data, "g", draws=99).settings["plug_in"] == pytest.approx((0.1 + 0.2) / 4)


def test_weights_count_as_rows_do():
    data = rows(300)
    w = np.where(np.arange(300) % 2, 2.0, 1.0)
    heavy = cal.predictions(data.y, data.p, data.covariates, weights=w)
    twice = np.repeat(np.arange(300), w.astype(int))
    copied = cal.predictions(data.y[twice], data.p[twice], data.covariates.take(pa.array(twice)))
    a, b = (cal.measure.vece(d, "level", draws=99).settings for d in (heavy, copied))
    assert a["plug_in"] == pytest.approx(b["plug_in"])
    assert a["gap"] == pytest.approx(b["gap"])


@pytest.mark.parametrize(
    ("variable", "settings", "message"),
    [
        ("nope", {}, "nope"),
        (3, {}, "variable=3"),
        (("x", "x"), {}, "two different"),
        ("x", {"bins": 0}, "bins=0"),
        ("x", {"view": "odds"}, "view='odds'"),
        ("x", {"alpha": 2}, "alpha=2"),
    ],
)
def test_bad_input(variable, settings, message):
    for function in (cal.measure.vece, cal.certify.variable):
        with pytest.raises(cal.BadInput, match=message):
            function(rows(), variable, **settings)


def test_bad_settings_of_one_function():
    for settings in ({"draws": 5}, {"strategy": "k-means"}):
        with pytest.raises(cal.BadInput, match=next(iter(settings))):
            cal.measure.vece(rows(), "x", **settings)
    for settings in ({"bandwidth": 0.9}, {"side": "both"}):
        with pytest.raises(cal.BadInput, match=next(iter(settings))):
            cal.certify.variable(rows(), "x", **settings)
    with pytest.raises(cal.BadInput, match="infinite"):
        cal.measure.vece(rows(bad=np.full(600, np.inf)), "bad")
    with pytest.raises(cal.BadInput, match="top_label"):
        cal.measure.vece(cal.multiclass_predictions([0, 1, 2], np.eye(3)), "x")


@pytest.mark.parametrize("variable", ["x", "level", ("x", "level")])
def test_copies_in_units_add_nothing(variable):
    """Interval and p-values are those of the single rows; of copies that pass for rows they are too sure."""
    plain = rows()
    table, who = plain.covariates.take(np.repeat(np.arange(600), 3)), np.repeat(np.arange(600), 3)
    y, p = np.repeat(plain.y, 3), np.repeat(plain.p, 3)
    held, naive = cal.predictions(y, p, table, cluster=who), cal.predictions(y, p, table)
    once, thrice, sure = (cal.measure.vece(d, variable, bins=5) for d in (plain, held, naive))
    assert thrice.settings["plug_in"] == pytest.approx(once.settings["plug_in"])
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high), abs=0.012)
    for key in ("p_value", "p_beyond_gap"):
        assert thrice.settings[key] == pytest.approx(once.settings[key], abs=0.12)
    assert sure.settings["p_value"] <= thrice.settings["p_value"]
    assert thrice.settings["null"].startswith("random signs of whole clusters")
    assert thrice.settings["clusters"] == 600
    assert cal.measure.vece(held, variable, bins=5, view="confidence").settings["null"] == thrice.settings["null"]


def test_not_computable():
    plain = rows()
    for refused in (
        lambda: cal.measure.vece(rows(clusters=np.zeros(600)), "x"),
        lambda: cal.certify.variable(rows(clusters=np.zeros(600)), "x"),
        lambda: cal.certify.variable(rows(clusters=np.arange(600) // 2), "x", bandwidth=0.1),
        lambda: cal.certify.variable(plain, "level", bandwidth=0.1),
        lambda: cal.measure.vece(plain, "level", paper=True),
        lambda: cal.measure.vece(plain, "x", paper=True),
        lambda: cal.measure.vece(cal.sketch(plain, variables="z"), "x"),
        lambda: cal.measure.vece(cal.sketch(plain, variables="*"), ("x", "level")),
        lambda: cal.measure.vece(cal.sketch(plain, variables="*"), "x", paper=True),
        lambda: cal.certify.variable(cal.sketch(plain, by="level"), "level", bandwidth=0.1),
    ):
        with pytest.raises(cal.NotComputable):
            refused()
