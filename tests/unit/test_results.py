"""Results read as what they are: estimates as numbers with ranges, curves in a line, and equal where they agree."""

from __future__ import annotations

import copy
import json
import math
import operator
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
import factories
from calibrant.results import Curve, Estimate, Interval, Outcome, frozen, plain

span = Interval(low=0.0091, high=0.01401, level=0.95, guarantee="finite-sample")
found = Estimate(method="certify.rounded", value=0.0123, unit="probability", n=9, interval=span, assumes="none")


def outcome(p: float) -> Outcome:
    return Outcome(method="m", statistic=2.0, p_value=p, alternative="a", null="n", law="exact")


def test_an_estimate_is_written_with_its_range_rounded_outward() -> None:
    assert f"{found:.3f}" == "0.012 (0.009 to 0.015)"
    assert f"{found:.2%}" == "1.23% (0.91% to 1.41%)"
    assert f"{found}" == "0.0123 (0.0091 to 0.01401)"
    assert f"{span:.1e}" == "9.1e-3 to 1.5e-2"
    assert f"{replace(span, low=-0.0001, high=math.inf):.2f}" == "-0.01 to inf"
    assert f"{replace(span, low=1234567.89, high=0.3):,.1f}" == "1,234,567.8 to 0.3"


def test_an_estimate_compares_as_its_value() -> None:
    about = replace(found, interval=replace(span, guarantee="asymptotic"))
    assert about < 0.02
    assert about <= 0.0123
    assert about > np.float64(0.01)
    assert 0.02 > about >= 0.0123
    assert np.float64(0.02) > about
    assert float(found) == 0.0123
    assert (found.low, found.high) == (0.0091, 0.01401)
    other = replace(about, value=0.5, method="measure.ece")
    assert max(about, other) is other
    assert found != 0.0123, "equality is agreement in everything"
    assert found != replace(found, n=10)
    assert 0.01 in span
    assert 0.02 not in span
    assert 0.3 not in replace(span, low=0.4, high=0.2), "a certified range may cross"


def test_a_p_value_is_never_rounded_down() -> None:
    assert f"{outcome(0.0121):.3f}" == "p = 0.013"
    assert f"{outcome(0.05)}" == "p = 0.05"


def test_equal_results_have_equal_hashes_and_outlive_copies() -> None:
    one = replace(found, settings={"draws": 10, "names": ["a", "b"], 3: {"x": np.float64(1.0)}, "far": -math.inf})
    same = replace(found, settings={"3": {"x": 1}, "draws": 10.0, "names": ("a", "b"), "far": -math.inf})
    assert one == same
    assert hash(one) == hash(same)
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one)), Estimate.from_dict(one.to_dict())):  # noqa: S301 - made here
        assert again == one
        assert again.settings["far"] == -math.inf
    assert one != replace(one, settings={**one.settings, "far": "-inf"}), "a word is no number"


@pytest.mark.parametrize("text", ["inf", "-inf", "\\inf", "\\\\-inf", "infinity", "nan", "\\", ""])
def test_texts_that_look_like_infinities_stay_texts(text: str) -> None:
    assert frozen(json.loads(json.dumps(plain(text)))) == text


def test_a_curve_is_one_line() -> None:
    assert repr(Curve(method="m", columns={"x": (1, 2), "y": (3, 4)})) == "Curve(method='m', 2 rows of x, y)"
    assert repr(Curve(method="m", columns={})) == "Curve(method='m', 0 rows of no columns)"
    assert len(repr(factories.control_chart())) < 200


@pytest.mark.slow
def test_a_record_read_again_is_equal_and_makes_the_same_page() -> None:
    for made in (factories.employment(), factories.repaired(), factories.hostile_subgroups(), factories.tiny()):
        again = cal.AuditRecord.from_json(made.to_json())
        assert again == made
        assert hash(again) == hash(made)
        assert again.to_json() == made.to_json()
        assert repr(again) == repr(made)
        assert again != replace(made, name="other")


def test_data_are_a_line() -> None:
    attributes = {f"trait {i}": [0, 1, 2, 3] for i in range(8)}
    data = cal.predictions([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.5], attributes, weights=[1, 1, 2, 1])
    reported = (
        "Predictions(data: 4 rows, 2 events, covariates trait 0, trait 1, trait 2, trait 3, trait 4, trait 5 and 2 more"
    )
    assert repr(data) == f"{reported}, weights)"
    whole = cal.sketch({"y": [0, 1], "p": [0.5, 0.5], "g": ["a", "b"]}, label="y", score="p", by="g")
    assert repr(whole).startswith("Sketch(data: 2 rows, 1 events, ")
    several = cal.multiclass_predictions([0, 1, 2], np.eye(3) * 0.7 + 0.1)
    assert repr(several) == "MulticlassPredictions(data: 3 rows, 3 classes)"


# ---- a range with a guarantee is not compared as a number ----


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_an_estimate_with_a_guarantee_says_which_end_to_compare(compare: Callable[[object, object], bool]) -> None:
    ends = Interval(low=0.01, high=0.03, level=0.95, guarantee="finite-sample")
    sure = Estimate(method="certify.rounded", value=0.02, unit="", n=9, interval=ends, assumes="")
    about = replace(sure, interval=replace(ends, guarantee="asymptotic"))
    for one, other in ((sure, 0.02), (0.02, sure), (sure, sure), (sure, about), (about, sure)):
        with pytest.raises(TypeError, match=r"certify.rounded is a range.*compare .high or .low"):
            compare(one, other)
    assert compare(about, 0.01) == compare(0.02, 0.01)
    assert compare(about, about) == compare(0.02, 0.02)
    assert sure.high < 0.04 < float("inf")


def test_an_estimate_prints_with_its_range_unpacks_and_rounds() -> None:
    one = Estimate(
        method="certify.rounded",
        value=0.0154,
        unit="probability",
        n=9,
        interval=Interval(low=0.0009, high=0.0411, level=0.95, guarantee="finite-sample"),
        assumes="",
    )
    assert str(one) == "0.015 (0.000 to 0.042), guaranteed"
    assert round(one, 3) == 0.015
    low, high = one.interval
    assert (low, high) == (0.0009, 0.0411)
    assert str(one.interval) == "0.000 to 0.042"
    row = one.to_arrow().to_pylist()[0]
    assert row["value"] == 0.0154
    assert row["guarantee"] == "finite-sample"
    assert one.to_pandas().loc[0, "high"] == 0.0411
    one.remember("polars")
    assert type(one.to_frame()).__module__.startswith("polars")
    one.remember("a_library_that_is_not_here")
    with pytest.raises(ImportError, match=r"a frame needs a_library.* or take to_arrow\(\)"):
        one.to_frame()


def test_a_test_has_the_p_value_under_both_names() -> None:
    one = Outcome(method="m", statistic=1.5, p_value=0.01, alternative="a", null="n", law="exact")
    assert one.pvalue == one.p_value == one.to_arrow().to_pylist()[0]["p_value"]
