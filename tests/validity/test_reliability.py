"""The reliability curve: the level of its test and band, and what the band covers where the model is off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.diagnose.reliability_curve import Drawing, curve_of, scored
from calibrant.stats.smoothing import weights
from calibrant.views.population import Population
from validity.acceptance import LEAST, count, refuted

ALPHA, DRAWS, CELLS = 0.1, 199, 1 << 14
SCORES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.beta(0.3, 0.3, n),
    "rare": lambda rng, n: rng.beta(1.0, 30.0, n),
    "ties": lambda rng, n: rng.integers(1, 20, n) / 20,
    "two clumps": lambda rng, n: np.clip(rng.choice([0.1, 0.8], n) + rng.normal(0, 0.02, n), 0, 1),
}


def population(p: Any, y: Any) -> Population:
    """Count rows as a sketch does, without its blocks."""
    q = np.minimum((p * (1 << 30)).astype(np.int64), (1 << 30) - 1)
    cell, rest = q >> 16, q & 0xFFFF
    raw = np.zeros((1, CELLS, 4), dtype=np.int64)
    for label in (0, 1):
        at = y == label
        raw[0, :, label] = np.bincount(cell[at], minlength=CELLS)
        np.add.at(raw[0, :, 2 + label], cell[at], rest[at])
    return Population(raw, np.array([[[int((y == 0).sum()), int(y.sum())]]]))


def draw(scores: str, n: int, replicate: int, eta: Callable[[Any], Any] = lambda p: p) -> tuple[Any, Any]:
    rng = np.random.default_rng([0xC0DE, n, replicate, *scores.encode()])
    p = SCORES[scores](rng, n)
    return p, (rng.random(n) < eta(p)).astype(np.int64)


def fit(q: Population, seed: int, method: Any = "smooth", axis: Any = "probability", smallest: int = 1) -> Any:
    how = Drawing(grid=41, axis=axis, method=method, alpha=ALPHA, draws=DRAWS, seed=seed, smallest=smallest)
    return curve_of(q, how)


def outside(curve: Any, low: str = "low", high: str = "high") -> bool:
    """Tell whether a band excludes zero somewhere."""
    return bool((np.array(curve.columns[low]) > 0).any() or (np.array(curve.columns[high]) < 0).any())


def exact(misses: int, runs: int) -> None:
    """Fail unless the misses are what a test of exactly this level makes, in either direction."""
    assert not refuted(misses, runs, ALPHA), f"{misses} rejections in {runs} runs: more than {ALPHA}"
    assert binom.cdf(misses, runs, ALPHA) >= LEAST, f"{misses} rejections in {runs} runs: fewer than {ALPHA}"


@pytest.mark.parametrize("axis", ["probability", "logit"])
@pytest.mark.parametrize("scores", SCORES)
def test_level_of_the_whole_curve_and_of_its_band(scores: str, axis: str) -> None:
    runs, rejected, excluded = 300 if axis == "probability" else 150, 0, 0
    for replicate in range(runs):
        curve = fit(population(*draw(scores, 2500, replicate)), replicate, axis=axis)
        rejects = curve.settings["p_value"] <= ALPHA
        assert rejects or not outside(curve)
        rejected, excluded = rejected + rejects, excluded + outside(curve)
    exact(rejected, runs)
    assert not refuted(excluded, runs, ALPHA)


@pytest.mark.parametrize("scores", ["uniform", "rare", "ties"])
def test_level_with_cells_joined_for_privacy(scores: str) -> None:
    runs = 200
    made = (fit(population(*draw(scores, 2500, 1000 + r)), r, smallest=20) for r in range(runs))
    exact(sum(c.settings["p_value"] <= ALPHA for c in made), runs)


@pytest.mark.parametrize("scores", ["uniform", "rare", "ties"])
def test_level_of_the_isotonic_curve(scores: str) -> None:
    runs, rejected = 60, 0
    for r in range(runs):
        curve = fit(population(*draw(scores, 600 if scores != "rare" else 2500, r)), r, "isotonic")
        rejects = curve.settings["p_value"] <= ALPHA
        assert rejects == outside(curve)
        rejected += rejects
    exact(rejected, runs)


def test_level_of_the_public_function() -> None:
    def rejects(replicate: int) -> bool:
        p, y = draw("skewed", 2000, 5000 + replicate)
        found = cal.diagnose.reliability_curve(cal.predictions(y, p), grid=31, alpha=ALPHA, draws=99, seed=replicate)
        return bool(found.settings["p_value"] <= ALPHA)

    exact(count(rejects, 200), 200)


def smoothed_truth(q: Population, p: Any, eta: Callable[[Any], Any], curve: Any) -> Any:
    """Return the smoothed gap that the curve estimates, from the event rates themselves."""
    s = scored(q, Drawing(grid=41))
    w = weights(s.runs.x, s.runs.rows, np.array(curve.columns["x"]), s.half)
    edges = np.searchsorted(s.runs.x, p)
    near = np.clip(edges, 1, len(s.runs.x) - 1)
    run = np.where(p - s.runs.x[near - 1] < s.runs.x[near] - p, near - 1, near)
    return w @ np.bincount(run, eta(p) - p, len(s.runs.x))


OFF: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "square": ("uniform", lambda p: p * p),
    "five times as many": ("rare", lambda p: np.minimum(5 * p, 1.0)),
    "too timid": ("skewed", lambda p: np.clip(p + 0.3 * np.sign(p - 0.5) * p * (1 - p) * 4, 0, 1)),
}


def misses(name: str, runs: int, low: str = "low", high: str = "high") -> int:
    """Count how often the band misses the smoothed gap somewhere."""
    scores, eta = OFF[name]
    missed = 0
    for r in range(runs):
        p, y = draw(scores, 4000, r, eta)
        q = population(p, y)
        curve = fit(q, r)
        truth = smoothed_truth(q, p, eta, curve)
        a, b = np.array(curve.columns[low]), np.array(curve.columns[high])
        missed += bool(((truth < a - 1e-4) | (truth > b + 1e-4)).any())
    return missed


@pytest.mark.parametrize("name", OFF)
def test_the_band_holds_the_smoothed_gap_where_the_model_is_off(name: str) -> None:
    assert not refuted(misses(name, 150), 150, ALPHA)
