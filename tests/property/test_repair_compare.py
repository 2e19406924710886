"""Laws of the judge of repairs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.repair.calibrators.curves import Logistic
from calibrant.repair.fitted import FittedOn, fitted_on, overlap
from calibrant.repair.judge.evidence import gap_change
from calibrant.repair.judge.rows import hash_split
from calibrant.repair.judge.verdict import Comparison
from calibrant.stats.betting import Clusters, _spread_out, mean_limits
from effort import examples

numbers = st.floats(-1.0, 1.0)


@st.composite
def contributions(draw: Any) -> tuple[Any, Any, Any, Any]:
    n = draw(st.integers(1, 40))
    lists = [draw(st.lists(numbers, min_size=n, max_size=n)) for _ in range(2)]
    p = draw(st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return np.array(y), np.array(p), np.array(lists[0]), np.array(lists[1])


@given(contributions(), st.sampled_from([0.5, 0.05, 1e-4]))
def test_limits_hold_what_was_seen_and_stay_within_what_can_be(rows: Any, delta: float) -> None:
    y, p, z0, z1 = rows
    u = Clusters.of_values(y, p, (z0, z1), np.ones(len(p)))
    low, high = mean_limits(u, delta)
    assert np.minimum(z0, z1).mean() - 1e-9 <= low <= u.mean + 1e-9
    assert u.mean - 1e-9 <= high <= np.maximum(z0, z1).mean() + 1e-9


@given(contributions(), st.integers(2, 5))
def test_limits_turn_with_the_sign_and_grow_with_confidence(rows: Any, k: int) -> None:
    y, p, z0, z1 = rows
    low, high = mean_limits(Clusters.of_values(y, p, (z0, z1), np.ones(len(p))), 0.1)
    turned = mean_limits(Clusters.of_values(y, p, (-z0, -z1), np.ones(len(p))), 0.1)
    np.testing.assert_allclose((-turned[1], -turned[0]), (low, high), atol=1e-7)
    wide = mean_limits(Clusters.of_values(y, p, (z0, z1), np.ones(len(p))), 0.1 / k)
    assert wide[0] <= low + 1e-9
    assert wide[1] >= high - 1e-9


@example([0.0, 2.2250738585e-313])
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=60))
def test_spreading_keeps_rows_and_their_mean(values: list[float]) -> None:
    at, weight = _spread_out(np.array(values))
    assert abs(weight.sum() - len(values)) < 1e-6
    assert abs(at @ weight - np.sum(values)) < 1e-6
    assert at.min() >= min(values) - 1e-9
    assert at.max() <= max(values) + 1e-9


@given(numbers, numbers, numbers, st.floats(0.0, 1.0))
def test_the_change_of_a_gap_lies_within_its_range(moved: float, a: float, b: float, t: float) -> None:
    low, high = sorted((a, b))
    gap = low + t * (high - low)
    ends = gap_change(moved, low, high)
    assert ends[0] - 1e-12 <= abs(gap - moved) - abs(gap) <= ends[1] + 1e-12


@given(st.integers(1, 300), st.integers(1, 6), st.integers(0, 9), st.integers(0, 60))
def test_every_row_is_dealt_once_and_clusters_stay_whole(n: int, parts: int, seed: int, clusters: int) -> None:
    rng = np.random.default_rng([seed, n])
    codes = None if not clusters else rng.integers(0, clusters, n)
    data = cal.predictions(rng.integers(0, 2, n), rng.uniform(size=n), cluster=codes)
    try:
        part = hash_split(data, parts, seed)
    except cal.NotComputable:
        return
    assert set(part) == set(range(parts))
    if codes is not None:
        assert all(len(set(part[codes == c])) == 1 for c in np.unique(codes))
    else:
        assert np.ptp(np.bincount(part)) <= 1


@given(st.integers(0, 2000), st.integers(5, 400))
def test_the_rows_of_a_fit_are_known_in_any_order(seed: int, n: int) -> None:
    rng = np.random.default_rng([seed, 5])
    data = cal.predictions(np.r_[0, 1, rng.integers(0, 2, n)], rng.uniform(size=n + 2))
    fitted = fitted_on(data)
    shuffled = data.part(rng.permutation(data.n))
    assert fitted_on(shuffled) == fitted
    assert msgspec.convert(json.loads(json.dumps(asdict(fitted))), FittedOn) == fitted
    assert bool(overlap(fitted, shuffled)) == (fitted.distinct >= 8 or len(fitted.sample) >= 2)


@pytest.mark.slow
@examples(8)
@given(st.integers(0, 1000), st.integers(30, 200), st.booleans(), st.sampled_from([0, 2, 3]))
def test_a_comparison_is_what_its_dictionary_says(seed: int, n: int, grouped: bool, folds: int) -> None:
    rng = np.random.default_rng([seed, 6])
    y = np.r_[[0, 1] * 8, rng.integers(0, 2, n)]
    p = np.round(rng.uniform(size=len(y)), int(rng.integers(1, 9)))
    data = cal.predictions(y, p, {"g": rng.integers(0, 3, len(y))})
    one = Logistic(recipe="Platt", slope=float(rng.normal()), intercept=0.1)
    repairs = {"given": one} if not folds else {"Platt": cal.repair.Platt()}
    found = cal.repair.evaluate(data, repairs=repairs, by="g" if grouped else None, folds=folds, tests=())
    assert Comparison.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found
    for v in found.verdicts.values():
        shown = [*v["better"], *v["worse"], *v["undecided"]]
        assert len(shown) == len(set(shown))
