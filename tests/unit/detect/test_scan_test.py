"""The scan test and the pocket test: what is found, what is told, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.detect.subgroup_tests import WEIGHT, joined
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome
from calibrant.views.rules import Condition, columns_of


def uniform(seed: int, n: int = 4_000, **columns: Any) -> tuple[Any, Any, dict[str, Any]]:
    """A generator, scores, and two uniform traits."""
    g = np.random.default_rng([0x5CAA, seed])
    return g, g.uniform(0.1, 0.5, n), {f"x{j}": g.uniform(size=n) for j in range(2)} | columns


def corner(n: int = 4_000, gap: float = 0.3) -> Any:
    """Data with a corner of 9 % of the rows where more happens."""
    g, p, x = uniform(0, n)
    return cal.predictions(g.random(n) < p + gap * ((x["x0"] > 0.7) & (x["x1"] > 0.7)), p, x)


@pytest.mark.parametrize("null", ["simulated", "bound"])
def test_a_corner_is_found_and_told(null: Any) -> None:
    data = corner()
    found = cal.detect.scan_test(data, null=null)
    parts = found.parts
    assert found.p_value <= 0.001
    assert parts["rule"] == "x0 over 0.7 and x1 over 0.7"
    assert (parts["side"], parts["fixed"], found.settings["null"]) == ("underpredicts", True, null)
    rows = columns_of(data, None).matching([Condition.from_dict(c) for c in parts["conditions"]])
    assert parts["rows"] == rows.sum()
    assert parts["share"] == pytest.approx(rows.mean())
    assert parts["observed"] == pytest.approx(data.y[rows].mean())
    assert parts["predicted"] == pytest.approx(data.p[rows].mean(), abs=1e-8)
    assert parts["gap"] == pytest.approx((data.y - data.p)[rows].mean(), abs=1e-8)
    spread = np.sqrt((data.p * (1 - data.p))[rows].sum() + found.settings["extra"])
    assert parts["score"] == pytest.approx((data.y - data.p)[rows].sum() / spread, abs=1e-6)
    assert found.statistic == pytest.approx(parts["score"] - parts["needed"])
    assert parts["by_order"][1] == parts["score"] > parts["by_order"][0]
    assert parts["tables"] == 6


@pytest.mark.slow
def test_sides_and_tolerance() -> None:
    data = corner()
    assert cal.detect.scan_test(data, alternative="greater").p_value == 0.001
    assert cal.detect.scan_test(data, alternative="less").p_value > 0.1
    assert cal.detect.scan_test(data, tolerance=0.1).p_value == 0.001
    wide = cal.detect.scan_test(data, tolerance=0.3)
    assert wide.p_value > 0.2
    assert wide.law.endswith("at the edge of the tolerance")
    turned = cal.predictions(1 - data.y, 1 - data.p, data.covariates)
    other = cal.detect.scan_test(turned, alternative="less")
    assert (other.p_value, other.parts["side"]) == (0.001, "overpredicts")


@pytest.mark.slow
def test_the_best_subset_of_levels_is_listed_and_is_no_box_of_the_family() -> None:
    g, p, x = uniform(1, 12_000)
    names = np.array([f"s{k:02d}" for k in range(12)])
    site = names[g.integers(0, 12, 12_000)]
    odd = np.isin(site, names[[1, 4, 6, 9]])
    data = cal.predictions(g.random(12_000) < p + 0.07 * odd, p, x | {"site": site})
    found = cal.detect.scan_test(data, order=1)
    assert found.p_value == 0.001
    (condition,) = found.parts["conditions"]
    assert (condition["variable"], sorted(condition["levels"])) == ("site", ["s01", "s04", "s06", "s09"])
    assert found.parts["rule"] == f"site = {' or '.join(condition['levels'])}"  # the most frequent first
    assert not found.parts["fixed"]
    assert found.parts["rows"] == odd.sum()
    assert found.parts["gap"] == pytest.approx((data.y - data.p)[odd].mean(), abs=1e-8)
    within = odd & (x["x0"] > 0.5)
    data = cal.predictions(g.random(12_000) < p + 0.12 * within, p, x | {"site": site})
    found = cal.detect.scan_test(data)
    assert found.parts["rule"] == f"x0 over 0.5 and site = {' or '.join(condition['levels'])}"
    assert found.parts["rows"] == within.sum()
    for other in ({"null": "bound"}, {"tolerance": 0.01}, {"alternative": "greater"}):
        assert cal.detect.scan_test(data, **other).parts["fixed"], other


def test_levels_of_under_twenty_rows_are_never_listed() -> None:
    g, p, _ = uniform(2, 600)
    site = np.repeat(np.array(["a", "b", "c", "d", "e"]), [150, 150, 150, 135, 15])
    y = (g.random(600) < p) | np.isin(site, ["c", "d", "e"])
    found = cal.detect.scan_test(cal.predictions(y, p, {"site": site}), order=1)
    assert found.parts["rule"] == "site = c or d"


@pytest.mark.slow
def test_three_traits() -> None:
    g, p, x = uniform(3, 8_000)
    x["x2"] = g.uniform(size=8_000)
    inside = (x["x0"] > 0.6) & (x["x1"] > 0.6) & (x["x2"] > 0.6)
    data = cal.predictions(g.random(8_000) < p + 0.3 * inside, p, x)
    found = cal.detect.scan_test(data, order=3, draws=99)
    assert found.parts["rule"] == "x0 over 0.6 and x1 over 0.6 and x2 over 0.6"
    assert found.settings["order"] == len(found.parts["by_order"]) == 3


@pytest.mark.slow
def test_which_null_is_used_and_from_what() -> None:
    data = corner(2_000)
    rows = {"y": data.y, "p": data.p, **{n: data.covariates.column(n) for n in ("x0", "x1")}}
    table = pa.table(rows)
    sketch = cal.sketch(table, label="y", score="p", variables="*", tests=True)
    assert cal.detect.scan_test(data) == cal.detect.scan_test(sketch)
    assert cal.detect.scan_test(data, variables=["x0"]) == cal.detect.scan_test(sketch, variables=["x0"])
    assert cal.detect.scan_test(data).settings["null"] == "simulated"
    intraclass_correlation = cal.predictions(
        data.y, data.p, data.covariates, weights=np.ones(data.n), cluster=np.arange(data.n)
    )
    assert cal.detect.scan_test(intraclass_correlation) == cal.detect.scan_test(data)


def test_draws_are_counted_one_by_one() -> None:
    data = corner(1_000, gap=0.0)
    p = [cal.detect.scan_test(data, draws=d).p_value for d in (19, 99, 128)]
    assert [v * (d + 1) for v, d in zip(p, (19, 99, 128), strict=True)] == pytest.approx(
        [round(v * (d + 1)) for v, d in zip(p, (19, 99, 128), strict=True)]
    )


def test_small_and_flat_data() -> None:
    g, p, x = uniform(4, 10)
    with pytest.raises(NotComputable, match="no subgroup has 20 of them"):
        cal.detect.scan_test(cal.predictions(g.random(10) < p, p, x))
    with pytest.raises(NotComputable, match="no subgroup"):
        cal.detect.scan_test(cal.predictions(g.random(100) < 0.5, np.full(100, 0.5)))
    g, p, x = uniform(5, 500)
    for null in ("simulated", "bound"):
        alone = cal.detect.scan_test(cal.predictions(g.random(500) < p, p), null=null)
        assert (alone.parts["tables"], alone.settings["order"], len(alone.parts["by_order"])) == (1, 1, 1)
        nobody = cal.predictions(np.zeros(500, dtype=int), p, x)
        assert cal.detect.scan_test(nobody, null=null).p_value <= 0.001
        assert cal.detect.scan_test(nobody, null=null, alternative="greater").p_value == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_many_traits(attributes: int) -> None:
    g, p, _ = uniform(6, 400)
    many = {f"x{j}": g.uniform(size=400) for j in range(101)}
    with pytest.raises(NotComputable, match="101 covariates"):
        cal.detect.scan_test(cal.predictions(g.random(400) < p, p, many))
    some = dict(list(many.items())[:attributes])
    found = cal.detect.scan_test(cal.predictions(g.random(400) < p, p, some), draws=19)
    assert found.parts["tables"] == (attributes + 1) * (attributes + 2) // 2


@pytest.mark.parametrize("null", ["simulated", "bound"])
def test_impossible_outcomes(null: Any) -> None:
    g, p, x = uniform(7, 400)
    y = (g.random(400) < p).astype(int)
    p[0], y[0] = 0.0, 1
    p[1], y[1] = 1.0, 0
    data = cal.predictions(y, p, x)
    both = cal.detect.scan_test(data, null=null)
    assert (both.p_value, both.parts["impossible"]) == (0.0, 2)
    assert both.law.startswith("exact: outcomes of probability zero")
    assert cal.detect.scan_test(data, null=null, alternative="greater").parts["impossible"] == 1
    assert cal.detect.scan_test(data, null=null, tolerance=0.01).parts["impossible"] == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"order": 4},
        {"tolerance": -0.1},
        {"tolerance": 1},
        {"alternative": "up"},
        {"min_size": 1},
        {"null": "asymptotic"},
        {"draws": 18},
        {"seed": -1},
        {"variables": "x9"},
    ],
)
def test_settings_that_cannot_be_used(settings: Any) -> None:
    with pytest.raises(BadInput):
        cal.detect.scan_test(corner(400), **settings)


def test_outcomes_round_trip() -> None:
    found = cal.detect.scan_test(corner(1_000))
    assert Outcome.from_dict(found.to_dict()).to_dict() == found.to_dict()


# ---- The scan and the models joined ----


def outcome(p: float) -> Outcome:
    return Outcome(method="", statistic=0.0, p_value=p, alternative="", null="", law="", settings={}, parts={"a": 1})


@pytest.mark.parametrize(
    ("scan", "adaptive", "by"),
    [
        (0.001, 0.5, "scan"),
        (0.5, 0.001, "adaptive"),
        (0.001, 0.001, "both"),
        (0.2, 0.3, "neither"),
        (0.0, 1.0, "scan"),
    ],
)
def test_two_p_values_are_one(scan: float, adaptive: float, by: str) -> None:
    found = joined(outcome(scan), outcome(adaptive))
    assert found.p_value == min(1.0, scan / WEIGHT, adaptive / (1 - WEIGHT))
    assert found.parts["detected_by"] == by
    assert (found.parts["p_scan"], found.parts["p_adaptive"]) == (scan, adaptive)


def test_the_weights_add_up_to_one_and_neither_is_nothing() -> None:
    assert 0.2 <= WEIGHT <= 0.8
    assert joined(outcome(0.9), outcome(0.9)).p_value == 1.0
    assert joined(outcome(0.05 * WEIGHT), outcome(1.0)).p_value == pytest.approx(0.05)


@pytest.mark.slow
def test_a_pocket_is_found_in_two_ways_at_once() -> None:
    data = corner(2_500)
    found = cal.detect.subgroup_test(data)
    scan, adaptive = cal.detect.scan_test(data), cal.detect.strong_calibration_test(data)
    assert found == joined(scan, adaptive)
    assert found.parts["detected_by"] == "both"
    assert found.parts["scan"]["rule"] == "x0 over 0.7 and x1 over 0.7"
    with pytest.raises(BadInput, match="alpha"):
        cal.detect.subgroup_test(data, alpha=1.0)
