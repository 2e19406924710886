"""The bias map: level over the map and at a point, what the bands cover, what is found, and clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.report.by_variable import regions
from validity.acceptance import LEAST, refuted

ALPHA, DRAWS = 0.05, 99
Design = Callable[[np.random.Generator, int], tuple[Any, dict[str, Any]]]


def plain(rng: np.random.Generator, n: int) -> tuple[Any, dict[str, Any]]:
    x = rng.normal(size=(n, 2))
    return 1 / (1 + np.exp(-x.sum(1))), {"x": x[:, 0], "z": x[:, 1], "g": rng.choice(["a", "b", "c"], n)}


def rare(rng: np.random.Generator, n: int) -> tuple[Any, dict[str, Any]]:
    p, cov = plain(rng, n)
    return 0.03 * p**2, cov


def sure(rng: np.random.Generator, n: int) -> tuple[Any, dict[str, Any]]:
    """Scores near 0 and 1, whose noise depends on x."""
    p, cov = plain(rng, n)
    cov["x"] = cov["x"] + 2 * p
    return np.where(cov["z"] > 0.5, 0.5, rng.beta(0.3, 0.3, n)), cov


def heavy(rng: np.random.Generator, n: int) -> tuple[Any, dict[str, Any]]:
    p, cov = plain(rng, n)
    cov["x"] = np.where(rng.random(n) < 0.1, np.nan, np.exp(2 * cov["x"]))
    return p, cov


def whole(rng: np.random.Generator, n: int) -> tuple[Any, dict[str, Any]]:
    p, cov = plain(rng, n)
    return p, cov | {"x": np.round(5 * cov["x"])}


def uneven(rng: np.random.Generator, n: int) -> tuple[Any, dict[str, Any]]:
    """Noise that depends on x: scores of a half in the middle, of a fiftieth elsewhere."""
    _, cov = plain(rng, n)
    return np.where(np.abs(cov["x"]) < 0.4, 0.5, 0.02), cov


DESIGNS = {f.__name__: f for f in (plain, rare, sure, heavy, whole, uneven)}
MAPS = {
    "one": {"variables": "x", "grid": 41},
    "groups": {"variables": "x", "by": "g", "grid": 21},
    "pair": {"variables": ("x", "z"), "grid": 9},
    "mixed": {"variables": ("x", "g"), "grid": 11},
    "score": {"variables": "x", "by_score": True, "grid": 9},
}


def made(design: Design, n: int, replicate: int, weights: bool = False) -> Any:
    rng = np.random.default_rng([0xB1A, n, replicate, *design.__name__.encode()])
    p, cov = design(rng, n)
    y = rng.random(n) < p
    return cal.predictions(y, p, cov, weights=rng.exponential(size=n) + 0.05 if weights else None)


def levels(design: str, kind: str, n: int, runs: int, weights: bool = False) -> tuple[int, int]:
    """Count maps that exclude zero somewhere, and those that do at one point chosen beforehand, by itself."""
    anywhere = at_point = 0
    for r in range(runs):
        c = cal.diagnose.local_bias(
            made(DESIGNS[design], n, r, weights), **MAPS[kind], draws=DRAWS, seed=r, alpha=ALPHA
        )
        low, high = np.array(c.columns["low"]), np.array(c.columns["high"])
        off = bool(((low > 0) | (high < 0)).any())
        assert off == (c.settings["p_value"] <= ALPHA)
        anywhere += off
        at_point += c.columns["p_point"][len(low) // 2] <= ALPHA
    return anywhere, at_point


def exact(misses: int, runs: int, discrete: bool = False) -> None:
    """Fail unless the misses are what a test of exactly this level makes; one of few outcomes may make fewer."""
    assert not refuted(misses, runs, ALPHA), f"{misses} rejections in {runs} runs: more than {ALPHA}"
    assert discrete or binom.cdf(misses, runs, ALPHA) >= LEAST, f"{misses} in {runs} runs: fewer than {ALPHA}"


@pytest.mark.parametrize("kind", MAPS)
def test_level(kind: str) -> None:
    for misses in levels("plain", kind, 300, 150):
        exact(misses, 150)


@pytest.mark.parametrize("design", ["rare", "sure", "heavy", "whole", "uneven"])
def test_level_of_hard_designs(design: str) -> None:
    anywhere, point = levels(design, "one", 400, 120, weights=design == "sure")
    exact(anywhere, 120, discrete=design == "rare")
    exact(point, 120, discrete=design == "rare")


@pytest.mark.nightly
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("design", DESIGNS)
def test_level_nightly(design: str, kind: str, weights: bool) -> None:
    for misses in levels(design, kind, 500, 500, weights):
        exact(misses, 500, discrete=design == "rare")


def shifted(n: int, replicate: int, by: float = 0.2) -> Any:
    """Five covariates, and a shift where the first exceeds one."""
    rng = np.random.default_rng([0x5F1F7, n, replicate])
    x = rng.normal(size=(n, 5))
    p = 0.1 + 0.7 / (1 + np.exp(-x.sum(1) / 2))
    y = rng.random(n) < p + by * (x[:, 0] > 1)
    return cal.predictions(y, p, {f"x{j + 1}": x[:, j] for j in range(5)})


def found(runs: int) -> Any:
    """Return shares: the shift is found; a false point beyond one bandwidth of it; a region that does not touch it."""
    out = []
    for r in range(runs):
        c = cal.diagnose.local_bias(shifted(2000, r), "x1", draws=199, seed=r)
        x, h = np.array(c.columns["x"]), c.settings["bandwidths"]["everyone"]["x1"]
        off = np.array(c.columns["p_adjusted"]) <= ALPHA
        apart = any(q["span"][0]["high"] < 1 for q in regions(c))
        out.append((off[x > 1].any(), off[x < 1 - h].any(), apart))
    return np.mean(out, axis=0)


def test_a_shift_is_found_and_nothing_else() -> None:
    power, beyond, apart = found(60)
    assert power >= 0.95
    assert max(beyond, apart) <= 0.10


@pytest.mark.nightly
def test_a_shift_is_found_and_nothing_else_nightly() -> None:
    power, beyond, apart = found(400)
    assert power >= 0.95
    assert max(beyond, apart) <= 0.10


def misses(runs: int, n: int = 1500) -> int:
    """Count maps whose simultaneous band misses the smoothed bias of a model that says far too little."""
    missed = 0
    for r in range(runs):
        rng = np.random.default_rng([0xBA7D, n, r])
        x = rng.normal(size=n)
        p = rng.uniform(0.01, 0.03, n)
        rate = p + 0.25 / (1 + np.exp(-2 * x))
        data = cal.predictions(rng.random(n) < rate, p, {"x": x})
        c = cal.diagnose.local_bias(data, "x", grid=21, draws=199, seed=r, alpha=ALPHA)
        h = c.settings["bandwidths"]["everyone"]["x"]
        k = np.exp(-0.5 * ((np.array(c.columns["x"])[:, None] - x) / h) ** 2)
        truth = k @ (rate - p) / k.sum(1)
        low, high = np.array(c.columns["low"]), np.array(c.columns["high"])
        missed += bool(((truth < low - 1e-9) | (truth > high + 1e-9)).any())
    return missed


def test_the_band_holds_the_smoothed_bias_where_the_model_is_off() -> None:
    assert not refuted(misses(120), 120, ALPHA)


def clustered(replicate: int, effect: float, n: int = 600, size: int = 10) -> Any:
    """A random effect of clusters whose covariate is nearly shared; given the covariate the model is calibrated."""
    rng = np.random.default_rng([0xC105, replicate])
    group = np.arange(n) // size
    x = rng.normal(size=n // size)[group] + 0.2 * rng.normal(size=n)
    gap = effect * rng.choice([-1.0, 1.0], n // size)[group]
    p = np.full(n, 0.5) + 0.2 * np.tanh(x)
    y = rng.random(n) < p + gap
    return cal.predictions(y, p, {"x": x}, cluster=group)


def rejections(runs: int, effect: float) -> int:
    return sum(
        cal.diagnose.local_bias(clustered(r, effect), "x", grid=31, draws=DRAWS, seed=r).settings["p_value"] <= ALPHA
        for r in range(runs)
    )


def test_clusters_keep_the_level() -> None:
    runs = 150
    assert not refuted(rejections(runs, 0.2), runs, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("effect", [0.0, 0.1, 0.25])
def test_level_of_clusters_nightly(effect: float) -> None:
    """Asymptotic: 60 clusters may reject up to 1.5 times as often as said."""
    assert not refuted(rejections(500, effect), 500, 1.5 * ALPHA)
