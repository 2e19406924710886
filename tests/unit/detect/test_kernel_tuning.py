"""The tuning curve: what it plants, that it reads no outcome, and what it hands on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.detect.kernel_calibration_test import _rates
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve

FEW: dict[str, Any] = {"runs": 20, "draws": 19, "widths": (0.5, 2.0)}


def rows(n: int = 200, **more: Any) -> Any:
    rng = np.random.default_rng(5)
    p, x = rng.uniform(0.1, 0.9, n), rng.normal(size=n)
    covariates = {"one": np.ones(n), "x": x, "site": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]), "old": x > 1}
    return cal.predictions(rng.random(n) < p, p, covariates, **more)


def test_no_outcome_is_read() -> None:
    data = rows()
    other = cal.predictions(1 - data.y, data.p, data.covariates)
    found = cal.detect.kernel_tuning(data, by_variable="x", gap=0.1, **FEW)
    assert found == cal.detect.kernel_tuning(other, by_variable="x", gap=0.1, **FEW)
    assert found != cal.detect.kernel_tuning(data, by_variable="x", gap=0.1, seed=1, **FEW)
    assert Curve.from_dict(found.to_dict()) == found


def test_a_line_for_each_kernel_and_the_best_for_the_test() -> None:
    found = cal.detect.kernel_tuning(rows(), by_variable="x", gap=0.3, degree=2, **FEW)
    c, best = found.columns, found.settings["best"]
    assert c["family"] == ("gaussian",) * 2 + ("laplace",) * 2 + ("polynomial",) * 2
    assert c["width"] == (0.5, 2.0) * 3
    assert all(low <= rate <= high for low, rate, high in zip(c["low"], c["type_2"], c["high"], strict=True))
    assert all(low <= rate <= high for low, rate, high in zip(c["raw_low"], c["raw"], c["raw_high"], strict=True))
    at = c["type_2"].index(min(c["type_2"]))
    assert (best["family"], best["score_width"]) == (c["family"][at], c["score_width"][at])
    outcome = cal.detect.local_calibration_test(rows(), features="exact", draws=19, **best)
    assert outcome.settings["covariate_width"] == best["covariate_width"]


def test_the_error_that_is_planted() -> None:
    data = rows()
    x = data.covariates["x"].to_numpy()
    halves = _rates(data, "x", None, 0.05, 2) - data.p
    assert np.allclose(halves, np.where(x < np.median(x), 0.05, -0.05))
    four = _rates(data, "x", None, 0.05, 4) - data.p
    assert np.allclose(four[np.argsort(x)], np.repeat([0.05, -0.05, 0.05, -0.05], 50))
    site = np.array(data.covariates["site"].to_pylist())
    assert np.allclose(_rates(data, "site", None, 0.05, 2) - data.p, np.where(site == "b", -0.05, 0.05))
    old = np.array(data.covariates["old"].to_pylist())
    assert np.allclose(_rates(data, "old", None, 0.05, 2) - data.p, np.where(old, -0.05, 0.05))
    assert np.ptp(_rates(data, "x", None, 0.9, 2)) <= 1.0
    own = cal.detect.kernel_tuning(data, rate=np.clip(data.p + 0.1, 0, 1), **FEW)
    assert own.settings["by_variable"] is None
    assert own.settings["planted"] == pytest.approx(0.1, abs=0.01)


def test_bands_alternate_where_some_hold_no_rows() -> None:
    data = cal.predictions([0, 1] * 50, np.full(100, 0.5), {"x": np.arange(100) // 50})
    assert np.ptp(_rates(data, "x", None, 0.1, 3)) == pytest.approx(0.2)


def test_an_outcome_that_the_score_called_impossible_is_found_by_the_whole_test() -> None:
    p = np.r_[0.0, 1.0, np.full(98, 0.5)]
    data = cal.predictions([0, 1] * 50, p, {"x": np.arange(100.0)})
    how: dict[str, Any] = {"widths": 1.0, "families": "gaussian", "runs": 20, "draws": 19}
    for row, rate in ((0, 1.0), (1, 0.0)):
        truth = p.copy()
        truth[row] = rate
        found = cal.detect.kernel_tuning(data, rate=truth, **how)
        assert found.columns["type_2"] == (0.0,)
        assert found.columns["raw"][0] > 0.5


def test_more_data_sets_are_missed_by_a_test_that_looks_at_other_variables() -> None:
    how: dict[str, Any] = {
        "by_variable": "x",
        "gap": 0.2,
        "families": "gaussian",
        "widths": [1.0],
        "runs": 60,
        "draws": 39,
    }
    seen, unseen = (cal.detect.kernel_tuning(rows(400), variables=v, **how).columns["high"][0] for v in ("x", "site"))
    assert seen < unseen


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({}, BadInput, "pass one of by_variable="),
        ({"by_variable": "x", "rate": [0.5]}, BadInput, "pass one of by_variable="),
        ({"rate": [0.5]}, BadInput, "rate= has shape"),
        ({"rate": np.full(200, 1.5)}, BadInput, "200 values that are not between 0 and 1, the first 1.5 in row 0"),
        ({"rate": np.r_[np.full(199, 0.5), np.nan]}, BadInput, "1 values that are not between 0 and 1, the first nan"),
        ({"rate": ["a"] * 200}, BadInput, "not all numbers"),
        ({"by_variable": "one"}, BadInput, "by_variable='one' takes one value only"),
        ({"by_variable": "x", "families": None}, BadInput, "families=None"),
        ({"by_variable": "x", "widths": None}, BadInput, "widths=None"),
        ({"by_variable": "x", "widths": 1e300}, BadInput, "widths=1e[+]300"),
        ({"by_variable": "age"}, BadInput, "age"),
        ({"by_variable": "x", "gap": 0}, BadInput, "gap=0"),
        ({"by_variable": "x", "bands": 1}, BadInput, "bands=1"),
        ({"by_variable": "x", "families": ["cosine"]}, BadInput, "families='cosine'"),
        ({"by_variable": "x", "widths": []}, BadInput, "one of each or more"),
        ({"by_variable": "x", "widths": [0.0]}, BadInput, "widths=0"),
        ({"by_variable": "x", "families": ["laplace"], "degree": 2}, BadInput, "without 'polynomial'"),
        ({"by_variable": "x", "runs": 5}, BadInput, "runs=5"),
        ({"by_variable": "x", "draws": 9}, BadInput, "draws=9"),
    ],
)
def test_what_cannot_be_used_is_refused(more: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cal.detect.kernel_tuning(rows(), **more)


def test_clusters_are_refused() -> None:
    with pytest.raises(NotComputable, match="use kernel_calibration_test"):
        cal.detect.kernel_tuning(rows(cluster=np.arange(200) // 2), by_variable="x")


def test_the_picture_has_a_panel_of_the_whole_test_and_one_of_the_statistic() -> None:
    pytest.importorskip("altair")
    drawn = cal.detect.kernel_tuning(rows(), by_variable="x", gap=0.1, **FEW).chart().to_dict()
    assert [panel["title"]["text"] for panel in drawn["concat"]] == ["the whole test", "KLCE alone"]
    assert "200 rows" in drawn["title"]["subtitle"][0]
