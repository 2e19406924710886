"""What is proved of the surrogates holds: the distance of the denoiser, and the smoother's mean distance at a point."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from validity.acceptance import check, refuted

ALPHA, N = 0.2, 2_000
FINE = (np.arange(2_000) + 0.5) / 2_000
Rate = Callable[[Any], Any]
SHAPES: dict[str, tuple[Rate, float]] = {
    "square": (lambda s: s**2, 1.0),
    "step": (lambda s: (s > 0.5) * 1.0, 1.0),
    "parabola": (lambda s: (2 * s - 1) ** 2, 2.0),
    "even": (lambda s: 0 * s + 0.5, 0.0),
}


def drawn(eta: Rate, replicate: int) -> Any:
    rng = np.random.default_rng([0xCF, replicate])
    p = rng.random(N)
    return cal.predictions((rng.random(N) < eta(p)).astype(int), p)


def far(name: str, claimed: Callable[[Any], float], variation: float | None = None) -> Callable[[int], bool]:
    """Tell whether the denoiser is farther from the truth, on average over uniform scores, than claimed."""
    eta, true = SHAPES[name]
    v = true if variation is None else variation

    def miss(replicate: int) -> bool:
        made = cal.papers.calibration_function(
            drawn(eta, replicate), method="total-variation", grid=FINE, variation=v, alpha=ALPHA
        )
        return bool(np.abs(np.array(made.columns["rate"]) - eta(FINE)).mean() > claimed(made))

    return miss


@pytest.mark.parametrize("runs", [60, pytest.param(600, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", SHAPES)
def test_the_denoiser_is_as_close_as_claimed(name, runs):
    check(far(name, lambda made: made.settings["error"]), runs, ALPHA)


H, AT = 2**-4, np.array([0.40, 0.47, 0.50, 0.55, 0.62])


def even(s: Any) -> Any:
    return 0 * s + 0.5


def mixed(s: Any) -> Any:
    """Equation 7 for two scores, 0.45 and 0.55, as frequent as each other, with rates 0.2 and 0.8."""
    low, high = (1 / np.cosh((s - p) / H) for p in (0.45, 0.55))
    return (0.2 * low + 0.8 * high) / (low + high)


def hits(n: int, runs: int, perturb: bool, factor: float) -> tuple[Any, Any]:
    """Coins that fall with probability |rate - eta|: their expectation is what `error` claims to bound."""
    falls, claimed = np.zeros(len(AT), int), np.zeros(len(AT))
    for replicate in range(runs):
        rng = np.random.default_rng([0xCE, replicate])
        two = np.where(rng.random(n) < 0.5, 0.45, 0.55)
        p, eta = (two, np.where(two < 0.5, 0.2, 0.8)) if perturb else (np.linspace(0.3, 0.7, n), 0.5)
        data = cal.predictions((rng.random(n) < eta).astype(int), p)
        h = H if perturb else 10.0  # an even rate has any bound on its derivatives: what is left is the noise
        made = cal.papers.calibration_function(data, grid=AT, bandwidth=h, perturb=perturb, seed=replicate)
        truth = mixed(AT) if perturb else even(AT)
        falls += rng.random(len(AT)) < np.abs(np.array(made.columns["rate"]) - truth)
        claimed = np.maximum(claimed, factor * np.array(made.columns["error"]))
    return falls, claimed


@pytest.mark.parametrize("runs", [1_000, pytest.param(5_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("n", "perturb"), [(10, False), (60, True), (2_000, True)])
def test_the_smoother_is_as_close_as_claimed_at_every_point(n, perturb, runs):
    falls, claimed = hits(n, runs, perturb, 1.0)
    assert not [x for x, k, c in zip(AT, falls, claimed, strict=True) if refuted(k, runs, c)]
