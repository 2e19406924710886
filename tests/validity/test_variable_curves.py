"""Curves along variables and their ranking: levels, what the band covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.diagnose.bands import Layout, plan_of
from calibrant.diagnose.ranking import SimulatedNull, lines_of, ranked
from validity.acceptance import LEAST, refuted

ALPHA, DRAWS = 0.1, 99
VARIABLES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "even": lambda rng, n: rng.random(n),
    "heavy tail": lambda rng, n: rng.lognormal(0, 1.5, n),
    "ties": lambda rng, n: rng.integers(0, 30, n),
    "gap": lambda rng, n: rng.choice([0.0, 8.0], n) + rng.random(n),
    "levels": lambda rng, n: np.array(list("abcdefgh"))[rng.integers(0, 8, n) * rng.integers(0, 2, n)],
}


@pytest.fixture(autouse=True)
def _fewer_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.diagnose.bands.SEARCHED", 24)


def drawn(kind: str, n: int, replicate: int, eta: Callable[[Any, Any], Any] = lambda p, x: p) -> Any:
    """Rows whose scores depend on the variable, so that residuals are noisier for some of its values."""
    rng = np.random.default_rng([0x5A1E, n, replicate, *kind.encode()])
    x = VARIABLES[kind](rng, n)
    rank = np.unique(x, return_inverse=True)[1] / n if kind != "levels" else (x == "a") * 0.5
    p = np.clip(rng.beta(0.6, 0.6 + 8 * (rank > 0.4), n), 0.001, 0.999)
    return cal.predictions(rng.random(n) < np.clip(eta(p, x), 0, 1), p, {"x": x})


def fit(data: Any, seed: int, **more: Any) -> Any:
    return cal.diagnose.variable_curve(data, "x", grid=21, alpha=ALPHA, draws=DRAWS, seed=seed, **more)


def outside(curve: Any, low: str = "low", high: str = "high") -> bool:
    return bool((np.array(curve.columns[low]) > 0).any() or (np.array(curve.columns[high]) < 0).any())


def exact(rejected: int, runs: int) -> None:
    """Fail unless so many rejections are what a test of exactly this level makes, in either direction."""
    assert not refuted(rejected, runs, ALPHA), f"{rejected} of {runs}: more than {ALPHA}"
    assert binom.cdf(rejected, runs, ALPHA) >= LEAST, f"{rejected} of {runs}: fewer than {ALPHA}"


def levels(kind: str, runs: int, n: int = 900, **more: Any) -> None:
    rejected = excluded = 0
    for r in range(runs):
        curve = fit(drawn(kind, n, r), r, **more)
        rejects = curve.settings["p_value"] <= ALPHA
        assert rejects or not outside(curve)
        rejected, excluded = rejected + rejects, excluded + outside(curve)
    exact(rejected, runs)
    assert not refuted(excluded, runs, ALPHA)


@pytest.mark.parametrize("kind", VARIABLES)
def test_level_of_the_curve_and_of_its_band(kind: str) -> None:
    levels(kind, 120)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", VARIABLES)
@pytest.mark.parametrize("view", ["probability", "confidence"])
def test_level_at_length(kind: str, view: str) -> None:
    levels(kind, 400, view=view)


def test_level_with_gaussian_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.diagnose.bands.AFFORDABLE", 0)
    rejected = sum(fit(drawn("even", 2000, r), r).settings["p_value"] <= ALPHA for r in range(80))
    assert not refuted(rejected, 80, 1.3 * ALPHA)
    assert rejected > 0


def smoothed_truth(data: Any, curve: Any, eta: Callable[[Any, Any], Any]) -> Any:
    """Return the gap that the curve estimates, from the event rates themselves."""
    x = data.covariates.column("x").to_numpy()
    off = np.clip(eta(data.p, x), 0, 1) - data.p
    plan = plan_of(data, Layout(variable="x", grid=21))
    group = np.searchsorted(plan.panels[0].cells.low, x, side="right") - 1
    sums = np.bincount(group, off, plan.panels[0].cells.size)
    shown = [i for i, at in enumerate(plan.panels[0].x.tolist()) if at in set(curve.columns["x"])]
    kept = [i for i in shown if plan.panels[0].kind[i] == 0]
    return plan.panels[0].average[kept] @ sums, np.abs(plan.panels[0].average[plan.panels[0].kind == 1] @ sums)


OFF: dict[str, Callable[[Any, Any], Any]] = {
    "wave": lambda p, x: p + 0.15 * np.sin(6 * x),
    "five times as many": lambda p, x: np.where(p < 0.1, 5 * p, p),
    "half": lambda p, x: p * (1 - 0.5 * x),
}


def misses(name: str, runs: int, low: str, high: str) -> tuple[int, int]:
    """Count how often the band misses the smoothed gap somewhere, and the range of the worst its maximum."""
    band = worst = 0
    for r in range(runs):
        data = drawn("even", 1500, 7000 + r, OFF[name])
        curve = fit(data, r)
        truth, searched = smoothed_truth(data, curve, OFF[name])
        a, b = np.array(curve.columns[low]), np.array(curve.columns[high])
        band += bool((truth < a - 1e-12).any() or (truth > b + 1e-12).any())
        s = curve.settings
        worst += not s["worst_low"] <= searched.max() <= s["worst_high"]
    return band, worst


@pytest.mark.parametrize("name", OFF)
def test_the_band_covers_where_the_model_is_off(name: str) -> None:
    band, worst = misses(name, 100, "low", "high")
    assert not refuted(band, 100, 1.3 * ALPHA)
    assert not refuted(worst, 100, 1.3 * ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", OFF)
def test_the_band_covers_at_length(name: str) -> None:
    band, worst = misses(name, 500, "low", "high")
    assert not refuted(band, 500, 1.3 * ALPHA)
    assert not refuted(worst, 500, 1.3 * ALPHA)


def test_the_simulated_sums_are_those_of_the_rows() -> None:
    data = drawn("ties", 2000, 1)
    plan = plan_of(data, Layout(variable="x", grid=21))
    sums, _ = plan.simulated(2999, 4)
    noise = plan.panels[0].cells.noise
    assert np.abs(sums.mean(axis=1) / np.sqrt(noise)).max() < 5 / np.sqrt(2999)
    assert np.abs(sums.var(axis=1) / noise - 1).max() < 0.15


def many(replicate: int, n: int = 600, eta: Callable[[Any, Any], Any] = lambda p, x: p) -> Any:
    """Rows with twelve variables, some of them copies with noise."""
    rng = np.random.default_rng([0x12A4, n, replicate])
    base = rng.normal(size=(n, 3))
    x = {f"v{j}": base[:, j % 3] + (j // 3) * 0.4 * rng.normal(size=n) for j in range(12)}
    x["c"] = np.array(list("abcd"))[rng.integers(0, 4, n)]
    p = rng.beta(1, 2, n)
    return cal.predictions(rng.random(n) < np.clip(eta(p, base), 0, 1), p, x)


def family_errors(runs: int, column: str, own: tuple[str, ...] = (), **more: Any) -> int:
    """Count replicates in which a variable that has no error is found."""
    wrong = 0
    for r in range(runs):
        c = p_values(many(r, **more), r)
        wrong += any(p <= ALPHA for p, v in zip(c[column], c["variable"], strict=True) if v not in own)
    return wrong


def p_values(data: Any, seed: int) -> dict[str, Any]:
    """Return names and p-values, without the ranges, which have tests of their own."""
    rows, names = ranked(data), data.covariates.schema.names
    lines, _ = lines_of(rows, names, "probability", 10, True)
    null = rows.null(len(names), DRAWS, seed, 2)
    own, adjusted = null.judged(null.measures(lines, lines))
    return {"variable": [line.name for line in lines], "p_value": own, "p_adjusted": adjusted}


def test_the_ranking_keeps_its_family_wise_level() -> None:
    exact(family_errors(200, "p_adjusted"), 200)


def test_the_ranking_keeps_its_level_for_the_others_where_one_variable_errs() -> None:
    """The error follows v0 and its noisy copies; the other variables are independent of it."""
    own = ("v0", "v3", "v6", "v9")
    wrong = family_errors(150, "p_adjusted", own, eta=lambda p, base: p + 0.15 * np.sign(base[:, 0]) * p)
    assert not refuted(wrong, 150, 1.3 * ALPHA)


ELSEWHERE: dict[str, Callable[[Any, Any], Any]] = {  # error that has nothing to do with any variable
    "low for everyone": lambda p, base: 0.15 + 0.85 * p,
    "too sure": lambda p, base: 0.25 + 0.5 * p,
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_error_elsewhere_is_not_found_along_the_variables(name: str) -> None:
    def sharp(r: int) -> Any:
        rows = many(r, n=1000)
        rng = np.random.default_rng([0xE15E, r])
        p = np.where(rng.random(1000) < 0.5, 0.02, 0.98 if name == "too sure" else 0.05)
        return cal.predictions(rng.random(1000) < ELSEWHERE[name](p, None), p, rows.covariates)

    wrong = vece = 0
    for r in range(50):
        rows = sharp(r)
        wrong += bool(p_values(rows, r)["p_adjusted"].min() <= ALPHA)
        vece += cal.measure.vece(rows, "v0", draws=DRAWS, seed=r).settings["p_beyond_gap"] <= ALPHA
    assert not refuted(wrong, 50, 1.2 * ALPHA)
    assert not refuted(vece, 50, 1.2 * ALPHA)


@pytest.mark.nightly
def test_the_ranking_keeps_its_family_wise_level_at_length() -> None:
    exact(family_errors(500, "p_adjusted"), 500)


def test_the_gaussian_null_with_holm_keeps_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.diagnose.bands.AFFORDABLE", 0)
    monkeypatch.setattr("calibrant.diagnose.ranking.GAUSSIAN_DRAWS", 999)
    assert not refuted(family_errors(50, "p_adjusted", n=2000), 50, 1.2 * ALPHA)


def test_the_pairs_keep_their_level_where_both_variables_err() -> None:
    from calibrant.diagnose.ranking import tested_pairs

    def rejects(r: int) -> bool:
        rng = np.random.default_rng([0xFA1, r])
        x, p = rng.normal(size=(500, 4)), rng.uniform(0.35, 0.65, 500)
        rate = p + 0.08 * np.sign(x[:, 0]) + 0.08 * np.sign(x[:, 1])
        data: Any = cal.predictions(rng.random(500) < rate, p, {f"v{j}": x[:, j] for j in range(4)})
        tested, _ = tested_pairs(ranked(data), ["v0", "v1", "v2", "v3"], "probability", DRAWS, r)
        return min(t.adjusted for t in tested) <= ALPHA

    assert not refuted(sum(rejects(r) for r in range(80)), 80, 1.3 * ALPHA)


def test_the_shared_outcomes_move_variables_together() -> None:
    data = many(3)
    rows = ranked(data)
    lines, _ = lines_of(rows, ["v0", "v3", "v1"], "probability", 10, True)
    null = rows.null(3, 3000, 3, 2)
    assert isinstance(null, SimulatedNull)
    drawn_sums = null.residuals(lines)
    top = [line.statistics(v, line.bins.noise)[0] for line, v in zip(lines, drawn_sums, strict=True)]
    assert np.corrcoef(top[0], top[1])[0, 1] > np.corrcoef(top[0], top[2])[0, 1] + 0.08
