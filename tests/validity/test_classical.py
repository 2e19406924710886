"""The classical tests: the level of each with both nulls, over whole public calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import calibrant as cal
from calibrant.stats.classical import posterior_tails
from validity.acceptance import LEAST, refuted

ALPHA, DRAWS = 0.05, 99
D = cal.detect
TESTS: dict[str, Callable[..., Any]] = {
    "hosmer-lemeshow": D.hosmer_lemeshow_test,
    "spiegelhalter": D.spiegelhalter_test,
    "score": D.score_test,
    "cox": D.cox_test,
    "kuiper": D.cumulative_test,
    "kolmogorov-smirnov": lambda data, **k: D.cumulative_test(data, statistic="kolmogorov-smirnov", **k),
    "jeffreys": lambda data, **k: D.jeffreys_test(data, by="g", **k),
    "jeffreys two-sided": lambda data, **k: D.jeffreys_test(data, by="g", alternative="two-sided", **k),
}
SCORES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "skewed": lambda rng, n: np.clip(rng.beta(0.5, 0.5, n), 1e-6, 1 - 1e-6),
    "rare": lambda rng, n: rng.beta(1.0, 99.0, n),
    "ties": lambda rng, n: rng.integers(1, 10, n) / 10,
}
ROWS = {"skewed": 200, "rare": 500, "ties": 200}


def draw(scores: str, n: int, replicate: int) -> Any:
    rng = np.random.default_rng([0xC1A55, n, replicate, *scores.encode()])
    p = SCORES[scores](rng, n)
    return cal.predictions(rng.random(n) < p, p, {"g": rng.integers(0, 5, n)})


def rejections(name: str, scores: str, n: int, runs: int, **settings: Any) -> int:
    """Count rejections; what cannot be computed is not rejected."""
    rejected = 0
    for r in range(runs):
        try:
            rejected += TESTS[name](draw(scores, n, r), seed=r, **settings).p_value <= ALPHA
        except cal.NotComputable:
            assert name == "cox"
    return rejected


def check_level(name: str, scores: str, n: int, runs: int, **settings: Any) -> None:
    rejected = rejections(name, scores, n, runs, **settings)
    assert not refuted(rejected, runs, ALPHA), f"{name}, {scores}: {rejected} of {runs}"
    if settings["null"] == "simulated" and scores == "skewed":
        assert binom.cdf(rejected, runs, ALPHA) >= LEAST, f"{name}, {scores}: only {rejected} of {runs}"


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("name", TESTS)
def test_level_of_the_simulated_null(name: str, scores: str) -> None:
    runs = 60 if name == "cox" else 200 if name.startswith("jeffreys") else 500
    check_level(name, scores, ROWS[scores], runs, null="simulated", draws=DRAWS)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("name", TESTS)
def test_level_of_the_asymptotic_null(name: str, scores: str) -> None:
    runs = 80 if name == "cox" else 200 if name.startswith("jeffreys") else 300
    check_level(name, scores, 6000 if scores == "rare" else 1000, runs, null="asymptotic")


@pytest.mark.nightly
@pytest.mark.parametrize("null", ["simulated", "asymptotic"])
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("name", TESTS)
def test_level_at_length(name: str, scores: str, null: str) -> None:
    n = ROWS[scores] if null == "simulated" else 10_000 if scores == "rare" else 2000
    check_level(name, scores, n, 1500, null=null, draws=DRAWS)


@pytest.mark.parametrize("name", ["hosmer-lemeshow", "spiegelhalter", "score", "kuiper"])
def test_level_with_weights(name: str) -> None:
    def rejects(r: int) -> bool:
        rng = np.random.default_rng([0xC1A56, r])
        p = rng.integers(1, 60, 200) / 60
        data = cal.predictions(rng.random(200) < p, p, weights=rng.choice([0.2, 1.0, 5.0], 200))
        return bool(TESTS[name](data, draws=DRAWS, seed=r).p_value <= ALPHA)

    runs = 300
    rejected = sum(map(rejects, range(runs)))
    assert not refuted(rejected, runs, ALPHA)
    assert binom.cdf(rejected, runs, ALPHA) >= LEAST


def test_level_of_jeffreys_with_each_score_a_grade_and_of_every_adjusted_p_value() -> None:
    runs, rejected = 400, 0
    for r in range(runs):
        found = D.jeffreys_test(draw("ties", 300, r), seed=r, draws=DRAWS)
        rejected += min(found.parts["adjusted_p"]) <= ALPHA
    assert not refuted(rejected, runs, ALPHA)


# ---- Defaults that move together ----


def years(rho: float, assumed: float, runs: int) -> int:
    """Count the years in which a right 2 % for 2,000 debtors is rejected."""
    at = norm.ppf(0.02)

    def rejected(r: int) -> bool:
        rng = np.random.default_rng([0xC1A57, r])
        latent = np.sqrt(rho) * rng.normal() + np.sqrt(1 - rho) * rng.normal(size=2000)
        data = cal.predictions(latent <= at, np.full(2000, 0.02))
        return bool(D.jeffreys_test(data, rho=assumed, draws=DRAWS, seed=r).p_value <= ALPHA)

    return sum(map(rejected, range(runs)))


@pytest.mark.parametrize("rho", [0.03, 0.12, 0.24])
def test_level_where_defaults_move_together(rho: float) -> None:
    rejected = years(rho, rho, 500)
    assert not refuted(rejected, 500, ALPHA), rejected
    assert binom.cdf(rejected, 500, ALPHA) >= LEAST, rejected


@pytest.mark.parametrize(("rho", "share"), [(0.0, 0.051), (0.03, 0.242), (0.12, 0.266), (0.24, 0.239)])
def test_share_of_right_years_that_the_pages_name(rho: float, share: float) -> None:
    events, z = np.arange(2001), np.linspace(-8, 8, 2001)
    least = events[posterior_tails(events, 2000, 0.02, "greater") <= ALPHA].min()
    given = norm.cdf((norm.ppf(0.02) - np.sqrt(rho) * z) / np.sqrt(1 - rho))
    found = float((norm.pdf(z) * (z[1] - z[0])) @ binom.sf(least - 1, 2000, given))
    assert found == pytest.approx(share, abs=5e-4)
