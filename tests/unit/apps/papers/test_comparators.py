"""Comparators of the strong calibration test: interface, directions, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome

D, P = cal.detect, cal.papers
QUICK: list[tuple[str, Any]] = [
    ("tree", DecisionTreeRegressor(max_depth=3, min_samples_leaf=10)),
    ("logistic", LogisticRegression()),
]
ADAPTIVE: list[Any] = [
    P.adaptive_score_test,
    P.adaptive_chi_square_test,
    P.multicalibration_score_test,
]
ALONE: list[Any] = [D.hosmer_lemeshow_test, D.score_test]


def planted(n: int = 1200, off: float = 0.35, **more: Any) -> Any:
    """A model that is off for those over 60."""
    rng = np.random.default_rng([0xC0, n])
    age, p = rng.uniform(20, 90, n), rng.uniform(0.35, 0.6, n)
    return cal.predictions(rng.random(n) < np.where(age > 60, p + off, p), p, {"age": age}, **more)


def shifted(shift: float, n: int = 2000, ties: bool = False, **more: Any) -> Any:
    rng = np.random.default_rng([0xC1, n])
    p = rng.uniform(0.2, 0.8, n)
    p = p.round(1) if ties else p
    return cal.predictions(rng.random(n) < p + shift, p, **more)


@pytest.mark.parametrize("test", ADAPTIVE)
def test_both_directions_are_found(test: Any) -> None:
    for off, side in ((0.35, "greater"), (-0.35, "less")):
        data = planted(off=off)
        found = {
            a: test(data, tolerance=0.05, alternative=a, models=QUICK, draws=99)
            for a in ("two-sided", "greater", "less")
        }
        assert found["two-sided"].p_value == found[side].p_value == 0.01
        assert found["greater" if side == "less" else "less"].p_value > 0.05
        whole = found["two-sided"]
        assert whole.parts["models"] == ("tree", "logistic", "mean")
        assert whole.statistic == max(whole.parts["statistics"])
        assert Outcome.from_dict(whole.to_dict()) == whole


def test_nulls_and_rows_tested() -> None:
    data = planted()
    assert P.adaptive_score_test(data, models=QUICK, draws=19).settings["null"] == "split"
    assert P.adaptive_score_test(data, tolerance=0.05, models=QUICK, draws=19).settings["null"] == "fixed"
    assert "reject too often" in P.adaptive_score_test(data, models=QUICK, draws=19, null="fixed").law
    assert P.adaptive_chi_square_test(data, models=QUICK, draws=19).parts["rows_tested"] == 600
    assert P.multicalibration_score_test(data, models=QUICK, draws=19).parts["rows_tested"] == 300


def test_one_group_weighted_by_size_is_the_score_test() -> None:
    """The score test is the end of the default path: ``S_K / sqrt(V_K)``."""
    from calibrant.search.detectors import Settings, detector_inputs, detectors_of

    data = planted(400)
    found = P.adaptive_score_test(data, tolerance=0.05, models=QUICK, draws=19)
    d = detectors_of(detector_inputs(data, Settings(tolerance=0.05, models=QUICK)))
    ends = [float(q.curve(data.y.astype(float))[-1]) for q in d.paths]
    assert found.parts["statistics"] == pytest.approx(tuple(max(v, 0.0) for v in ends), rel=1e-9)


@pytest.mark.slow
def test_the_papers_models_and_weights() -> None:
    """Fits are shared by all that ask for them; the weights of the authors' program enter the score test alone."""
    data = planted(200)
    settings = {"tolerance": 0.05, "draws": 19, "folds": 2, "null": "fixed"}
    made = {
        (test, d): test(data, detector=d, **settings).parts["statistics"]
        for test in ADAPTIVE[:2]
        for d in ("paper", "authors")
    }
    assert len([k for k in data.cache if k[0] == "strong detectors"]) == 1
    assert all(len(v) == 7 for v in made.values())
    score, chi = ADAPTIVE[:2]
    assert made[chi, "paper"] == made[chi, "authors"]
    assert made[score, "paper"] != made[score, "authors"]
    one = D.strong_calibration_test(data, detector="authors", tolerance=0.05, draws=19, folds=2, null="fixed")
    assert one.parts["models"] == P.multicalibration_score_test(data, detector="paper", draws=19).parts["models"]
    assert score(data, detector="paper", **settings).settings["detector"] == "paper"


def test_weights_and_clusters() -> None:
    rng = np.random.default_rng(2)
    data = planted(weights=rng.uniform(0.5, 2.0, 1200), cluster=np.arange(1200) % 150)
    for test in ADAPTIVE:
        found = test(data, tolerance=0.05, models=QUICK, draws=99)
        assert found.p_value <= 0.05
        assert "cluster" in found.law


@pytest.mark.slow
@pytest.mark.parametrize("test", ALONE)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_tolerance_of_tests_of_the_score(test: Any, ties: bool, weighted: bool) -> None:
    more: dict[str, Any] = {"weights": np.random.default_rng(1).uniform(0.5, 2.0, 2000)} if weighted else {}
    for shift, side in ((0.12, "greater"), (-0.12, "less")):
        data = shifted(shift, ties=ties, **more)
        other = "less" if side == "greater" else "greater"
        assert test(data, tolerance=0.05).p_value <= 0.01
        assert test(data, tolerance=0.05, alternative=side).p_value <= 0.01
        assert test(data, tolerance=0.05, alternative=other).p_value > 0.2
        assert test(data, tolerance=0.15).p_value > 0.2
        found = test(data, tolerance=0.05)
        assert found.null == "|E[Y | p] - p| <= 0.05 for every row"
        assert Outcome.from_dict(found.to_dict()) == found


@pytest.mark.parametrize("test", ALONE)
def test_a_tolerance_of_next_to_nothing_changes_nothing(test: Any) -> None:
    for ties in (False, True):
        data = shifted(0.02, 500, ties=ties)
        plain, close = test(data), test(data, tolerance=1e-13)
        assert close.statistic == pytest.approx(plain.statistic, rel=1e-6)
        assert close.p_value == pytest.approx(plain.p_value, abs=0.0 if not ties else 0.06)


@pytest.mark.slow
def test_a_slope_is_found_both_ways_and_the_sketch_agrees() -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 0.9, 3000)
    for slope in (0.6, 1.5):
        y = rng.random(3000) < np.clip(0.5 + (p - 0.5) * slope, 0, 1)
        found = D.score_test(cal.predictions(y, p), tolerance=0.05)
        assert found.parts["slope_p"] <= 0.01
        sketch = cal.sketch({"y": y.astype(int), "p": p}, label="y", score="p")
        for test in ALONE:
            assert test(sketch, tolerance=0.05).p_value <= 0.05


def test_within_the_tolerance_nothing_is_impossible() -> None:
    data = cal.predictions([1] * 30 + [0] * 70, [0.0] * 40 + [0.4] * 60)
    assert D.hosmer_lemeshow_test(data).p_value == 0.0
    assert D.hosmer_lemeshow_test(data, tolerance=0.1).parts["impossible"] == 0
    assert D.score_test(data, tolerance=0.1).parts["impossible"] == 0


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda d: P.adaptive_score_test(d, null="refit"), "null='refit'"),  # type: ignore[arg-type]
        (lambda d: P.adaptive_chi_square_test(d, bins=0), "bins=0"),
        (lambda d: P.multicalibration_score_test(d, draws=3), "draws=3"),
        (lambda d: P.adaptive_score_test(d, alternative="up"), "alternative='up'"),  # type: ignore[arg-type]
        (lambda d: D.score_test(d, tolerance=1.5), "tolerance=1.5"),
        (lambda d: D.hosmer_lemeshow_test(d, alternative="up"), "alternative='up'"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_named(call: Any, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        call(planted(100))


def test_a_tolerance_has_no_asymptotic_law() -> None:
    for test in ALONE:
        with pytest.raises(NotComputable, match="simulated"):
            test(shifted(0.0, 200), tolerance=0.05, null="asymptotic")
