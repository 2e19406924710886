"""Levels of the comparators, of the control chart's line and of rules; coverage of rules."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.tree import DecisionTreeRegressor

import calibrant as cal
from calibrant.views.rules import Condition, columns_of
from validity.acceptance import check, count

ALPHA = 0.1
TREE = [("tree", DecisionTreeRegressor(max_depth=3, min_samples_leaf=10, random_state=0))]
FITTED = [("deep", DecisionTreeRegressor(min_samples_leaf=3, random_state=0)), *TREE]
D = cal.detect
CHART, RULES, SEARCH = (
    import_module(f"calibrant.diagnose.{m}") for m in ("strong_diagnosis", "searched_subgroups", "rule_search")
)


def rows(n: int, replicate: int, gap: Callable[[Any, Any], Any] = lambda p, x: p, **more: Any) -> Any:
    """Rows whose outcomes happen at the rate that `gap` makes of the score."""
    rng = np.random.default_rng([0x5D1A, n, replicate])
    x = rng.uniform(-1, 1, (n, 2))
    p = expit(1.5 * x[:, 0] + 0.7 * rng.normal(size=n))
    return cal.predictions(rng.random(n) < gap(p, x), p, {"a": x[:, 0], "b": x[:, 1]}, **more)


def up(p: Any, x: Any) -> Any:
    return np.minimum(p + 0.05, 1.0)


def either(p: Any, x: Any) -> Any:
    return np.clip(p + 0.05 * np.sign(x[:, 1]), 0.0, 1.0)


AT_EDGE = [(up, "two-sided"), (up, "greater"), (either, "two-sided")]
TESTS: dict[str, Callable[..., Any]] = {
    "score": lambda d, **k: cal.papers.adaptive_score_test(d, models=TREE, draws=99, null="split", **k),
    "chi-square": lambda d, **k: cal.papers.adaptive_chi_square_test(d, models=TREE, draws=99, null="split", **k),
    "multicalibration": lambda d, **k: cal.papers.multicalibration_score_test(d, models=TREE, draws=99, **k),
    "hosmer-lemeshow": lambda d, **k: D.hosmer_lemeshow_test(d, bins=4, draws=99, **k),
    "platt": lambda d, **k: D.score_test(d, draws=99, **k),
}


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize(("gap", "side"), AT_EDGE)
def test_level_of_comparators_at_the_edge(name: str, gap: Any, side: str) -> None:
    def once(replicate: int) -> bool:
        data = rows(160, replicate, gap)
        return bool(TESTS[name](data, tolerance=0.05, alternative=side, seed=replicate).p_value <= ALPHA)

    check(once, 150, ALPHA)


def test_level_of_comparators_without_tolerance() -> None:
    for test in TESTS.values():
        check(lambda r, f=test: bool(f(rows(160, r), seed=r).p_value <= ALPHA), 120, ALPHA)


def crosses(replicate: int) -> bool:
    """Tell whether the evidence of a calibrated model crosses the line anywhere."""
    curve = CHART.control_chart(rows(160, replicate), null="split", models=FITTED, draws=99, alpha=ALPHA)
    return bool(max(curve.columns["evidence"]) >= curve.columns["line"][0])


def test_the_line_is_crossed_in_alpha_of_repeats() -> None:
    check(crosses, 120, ALPHA)


def off(p: Any, x: Any) -> Any:
    return np.clip(np.where((x[:, 0] > 0.4) & (x[:, 1] > 0.2), p - 0.25, p), 0.0, 1.0)


def misses(gap: Callable[[Any, Any], Any], n: int, **more: Any) -> Callable[[int], bool]:
    """Tell whether any limits miss the mean rate of the rows they are about, or any calibrated rule is a finding."""

    def once(replicate: int) -> bool:
        data = rows(n, replicate, gap, **{k: v(n, replicate) for k, v in more.items()})
        table = cal.diagnose.subgroups(
            data, models=TREE, rules=2, depth=2, seed=replicate, alpha=ALPHA, method="searched"
        )
        columns = columns_of(data, None)
        x = np.stack([columns.numbers["a"], columns.numbers["b"]], axis=1)
        w = np.ones(n) if data.weights is None else data.weights
        judges = SEARCH.hash_split(n, 2, replicate, None if data.cluster is None else np.asarray(data.cluster)) == 1
        for i, rule in enumerate(table.settings["conditions"]):
            inside = judges & columns.matching([Condition.from_dict(c) for c in rule])
            truth = float((w * (gap(data.p, x) - data.p))[inside].sum() / w[inside].sum())
            if not table.columns["low"][i] <= truth <= table.columns["high"][i]:
                return True
        return gap is calibrated and any(table.columns["finding"])

    return once


def calibrated(p: Any, x: Any) -> Any:
    return p


def test_rules_of_calibrated_models_are_no_findings() -> None:
    check(misses(calibrated, 240), 40, ALPHA)


def test_limits_hold_where_a_group_is_badly_served() -> None:
    check(misses(off, 300), 25, ALPHA)


def weights(n: int, replicate: int) -> Any:
    return np.random.default_rng([3, replicate]).uniform(0.3, 3.0, n)


def test_limits_hold_with_weights() -> None:
    check(misses(off, 300, weights=weights), 25, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("clustered", [False, True])
def test_rules_of_calibrated_models_with_the_default_models(clustered: bool) -> None:
    def once(replicate: int) -> bool:
        more: dict[str, Any] = {"cluster": np.arange(1000) // 4} if clustered else {}
        data = rows(1000, replicate, **more)
        return any(cal.diagnose.subgroups(data, seed=replicate, method="searched").columns["finding"])

    check(once, 100, 0.05)


@pytest.mark.nightly
def test_planted_groups_of_nine_in_a_hundred_are_named() -> None:
    """Overlap of at least one half with the top rule, in at least 80 % of runs at 4,000 rows."""

    def found(replicate: int) -> bool:
        rng = np.random.default_rng([0x91A, replicate])
        age, sex = rng.integers(18, 95, 4000), rng.choice(["f", "m"], 4000)
        p = expit(-1.2 + 0.02 * (age - 55) + 0.5 * rng.normal(size=4000))
        inside = (age > 80) & (sex == "f")
        y = rng.random(4000) < np.where(inside, np.minimum(p + 0.3, 1.0), p)
        noise = {f"z{j}": rng.normal(size=4000) for j in range(5)}
        data: Any = cal.predictions(y, p, {"age": age, "sex": sex, **noise})
        table = cal.diagnose.subgroups(data, tolerance=0.02, seed=replicate, method="searched")
        rule = [Condition.from_dict(c) for c in table.settings["conditions"][0]]
        top = columns_of(data, None).matching(rule)
        return bool((top & inside).sum() / (top | inside).sum() >= 0.5)

    assert count(found, 40) >= 32
