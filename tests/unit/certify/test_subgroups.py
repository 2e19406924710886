"""The worst pocket, certified: cases that can be checked by hand, both ends, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import calibrant as cal
from calibrant.results import Interval
from calibrant.stats.subgroups.ranges import STEP


def two_sites(a: int = 60, b: int = 40) -> Any:
    """200 rows of site a, 100 of site b, one score of a quarter; so many cases at each."""
    y = np.concatenate([np.arange(200) < a, np.arange(100) < b])
    return cal.predictions(y, np.full(300, 0.25), {"site": np.repeat(["a", "b"], [200, 100])})


def certified(data: Any, **settings: Any) -> Any:
    return cal.certify.subgroups(data, **settings)


def test_two_boxes_by_hand() -> None:
    """The family is site = a and site = b; the score takes one value and makes no box."""
    found = certified(two_sites())
    s = found.settings
    assert (s["subgroups"], s["attributes"], s["order"], s["smallest_subgroup"]) == (2, ("the score", "site"), 2, 100)
    small = 1 / np.sqrt([200, 100])
    weight = small / small.sum()
    own = ((60, 200, weight[0]), (40, 100, weight[1]))
    floors = [beta.ppf(0.025 * w / 2, k, n - k + 1) - 0.25 - STEP for k, n, w in own]
    assert found.interval.low == pytest.approx(max(floors), abs=1e-12)
    assert (s["subgroup_low"], s["rows_low"]) == ("site = b", 100)
    assert s["gap_low"] == pytest.approx(0.15)
    ceilings = [beta.isf(0.025, k + 1, n - k) - 0.25 + STEP for k, n, _ in own]
    assert found.interval.high == pytest.approx(max(ceilings), abs=1e-12)
    assert s["subgroup_high"] == "site = b"
    assert s["conditions_high"] == ({"variable": "site", "kind": "category", "levels": ("b",)},)


def test_a_gap_below_zero_counts_as_much() -> None:
    found = certified(two_sites(a=50, b=5), side="lower")
    assert found.settings["subgroup_low"] == "site = b"
    assert found.settings["gap_low"] == pytest.approx(-0.2)
    assert found.interval.low > 0.1


def test_each_side_spends_all_of_alpha_where_it_is_alone() -> None:
    both, low, high = (certified(two_sites(), side=s) for s in ("two-sided", "lower", "upper"))
    assert low.interval.low > both.interval.low
    assert high.interval.high < both.interval.high
    assert (low.interval.high, high.interval.low) == (1.0, 0.0)
    assert low.settings["subgroup_high"] is None
    assert high.settings["subgroup_low"] is None
    assert high.settings["over"] is None
    assert low.settings["delta"] == (0.05, 0.0)
    assert certified(two_sites(), alpha=0.1).interval == Interval(
        low=low.interval.low, high=high.interval.high, level=0.9, guarantee="finite-sample"
    )


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [(None, "not_checked"), (0.01, "over"), (0.1, "undecided"), (0.2, "undecided"), (0.3, "within")],
)
def test_the_verdict_on_a_limit(limit: float | None, verdict: str) -> None:
    s = certified(two_sites(), limit=limit).settings
    assert (s["verdict"], s["limit"]) == (verdict, limit)
    assert s["over"] == {None: None, 0.01: 1}.get(limit, 0)
    if verdict != "undecided":
        assert (s["rows_needed"], s["rows_at_least"]) == (None, False)
    elif s["rows_needed"]:
        assert s["rows_needed"] > 300


@pytest.mark.parametrize("n", [200, 600])
@pytest.mark.parametrize("limit", [0.1, 0.2])
def test_an_undecided_limit_takes_more_rows_than_there_are(n: int, limit: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng([n, seed])
        p, x, z = rng.uniform(0.02, 0.98, (3, n))
        off = 0.3 * (seed % 2) * (x > 0.8)  # in a corner whose exact range is wider than a normal one
        data = cal.predictions(rng.uniform(size=n) < np.clip(p + off, 0, 1), p, {"x": x, "z": z})
        for side in ("lower", "upper", "two-sided"):
            need = certified(data, limit=limit, side=side).settings["rows_needed"]
            assert need is None or need > n


def test_rows_of_a_calibrated_score_are_at_least_so_many_until_estimates_are_clear_of_the_limit() -> None:
    found = {}
    for n in (200, 400, 20_000):
        rng = np.random.default_rng([n, 0x0C])
        p = rng.uniform(0.2, 0.8, n)
        data = cal.predictions(rng.uniform(size=n) < p, p, {"x": rng.uniform(size=n)})
        found[n] = cal.certify.subgroups(data, limit=0.05, clear_size=0.2).settings
    assert [found[n]["rows_at_least"] for n in found] == [True, True, False]
    assert all(found[n]["rows_needed"] > 1_500 for n in (200, 400))
    assert found[20_000]["verdict"] == "within"


def test_boxes_over_a_limit_spend_what_the_low_end_spends() -> None:
    both, low = (certified(two_sites(), side=s).interval.low for s in ("two-sided", "lower"))
    limit = (both + low) / 2
    over = [certified(two_sites(), side=s, limit=limit).settings["over"] for s in ("two-sided", "lower")]
    assert over == [0, 1]


def test_nothing_certified_names_no_box() -> None:
    s = certified(two_sites(a=50, b=25)).settings
    assert (s["subgroup_low"], s["conditions_low"], s["rows_low"], s["gap_low"]) == (None, (), None, None)


def test_the_shares_say_which_boxes() -> None:
    """Site b holds a third: above it, only site a is under the ceiling, or in the family at all."""
    clear = certified(two_sites(), clear_size=0.5)
    assert clear.settings["subgroup_high"] == "site = a"
    assert (clear.settings["clear_subgroups"], clear.settings["clear_rows"]) == (1, 150)
    assert clear.settings["subgroup_low"] == "site = b"
    assert certified(two_sites(), min_size=0.5, clear_size=0.5).settings["subgroups"] == 1


def test_a_pocket_with_just_that_share_is_under_the_ceiling() -> None:
    """Site a holds 21 rows of 300, seven in a hundred, and it is far off; in floating point 0.07 x 300 is above 21."""
    site = np.repeat(["a", "b", "c"], [21, 129, 150])
    y = (site == "a") | (np.arange(300) % 3 == 0)
    s = certified(cal.predictions(y, np.full(300, 0.4), {"site": site}), clear_size=0.07, side="upper").settings
    assert (s["subgroup_high"], s["clear_rows"], s["clear_subgroups"]) == ("site = a", 21, 6)


def test_a_box_has_twenty_rows_at_least() -> None:
    y = np.arange(100) % 3 == 0
    data = cal.predictions(y, np.full(100, 0.3), {"site": np.repeat(["a", "b", "c"], [60, 30, 10])})
    s = certified(data, min_size=0.0, clear_size=0.0).settings
    assert (s["smallest_subgroup"], s["clear_rows"]) == (30, 20)


def test_the_estimate_is_free_of_the_luck_of_a_search() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(4000, 4))
    p = np.full(4000, 0.3)
    data = cal.predictions(rng.uniform(size=4000) < p, p, {f"x{j}": x[:, j] for j in range(4)})
    assert certified(data, min_size=0.05).value < 0.02
    off = cal.predictions(rng.uniform(size=4000) < p + 0.4 * (x[:, 0] > 0.5), p, {"x": x[:, 0]})
    assert certified(off, min_size=0.05).value == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize(
    ("settings", "stated"),
    [
        ({"min_size": 0.1, "clear_size": 0.05}, "clear_size=0.05 is below min_size=0.1"),
        ({"clear_size": 1.0}, "clear_size"),
        ({"limit": 0.0}, "limit"),
        ({"order": 4}, "order"),
        ({"variables": "place"}, "place"),
        ({"side": "both"}, "side"),
    ],
)
def test_settings_that_make_no_sense(settings: Any, stated: str) -> None:
    with pytest.raises(cal.BadInput, match=stated):
        certified(two_sites(), **settings)


def test_units_make_it_wider_and_are_told() -> None:
    data = two_sites()
    attributes = {"site": np.repeat(["a", "b"], [200, 100])}
    plain = certified(data, limit=0.1)
    for more in ({"weights": np.arange(300) % 3 + 1.0}, {"cluster": np.arange(300) // 3}):
        found = certified(cal.predictions(data.y, data.p, attributes, **more), limit=0.1)
        assert found.interval.high > plain.interval.high
        assert found.settings["clusters"] == (300 if "weights" in more else 100)
        assert min(found.settings["clusters_high"]) >= 33
        assert "rows_needed" not in found.settings
    assert found.settings["largest_cluster"] == 3.0


def test_what_cannot_be_certified_is_refused() -> None:
    data = two_sites()
    with pytest.raises(cal.NotComputable, match="clear_size"):
        certified(data, clear_size=0.9)
    with pytest.raises(cal.BadInput, match="tests=True"):
        certified(cal.sketch(data))


def test_a_sketch_says_the_same() -> None:
    rng = np.random.default_rng(5)
    x, site = rng.uniform(size=3000), rng.choice(["a", "b", "c"], 3000)
    p = rng.uniform(0.1, 0.6, 3000)
    data = cal.predictions(rng.uniform(size=3000) < p, p, {"x": x, "site": site})
    whole = cal.sketch(data, variables=["x", "site"], tests=True)
    for settings in ({}, {"variables": "x", "limit": 0.05}, {"order": 1, "side": "upper"}):
        assert certified(data, **settings) == certified(whole, **settings)


def test_a_sketch_brings_its_own_seed() -> None:
    data = cal.predictions(np.arange(300) % 3 == 0, np.full(300, 0.25), {"x": np.arange(300) % 7})
    whole = cal.sketch(data, variables=["x"], tests=True, seed=3)
    assert certified(whole) == certified(data, seed=3)
    assert cal.diagnose.subgroups(whole).settings == cal.diagnose.subgroups(data, seed=3).settings
