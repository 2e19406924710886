"""Calibration functions of Figures 3 and 5, rows drawn from them, and their true calibration errors."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import calibrant as cal
from reproduce.measuring.bounds import H

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "s (calibrated)": lambda s: s,
    "s²": lambda s: s**2,
    "(2s − 1)²": lambda s: (2 * s - 1) ** 2,
    "s + 0.8 s(1 − s) sin(30πs)": lambda s: s + 0.8 * s * (1 - s) * np.sin(30 * np.pi * s),
}
CALIBRATED, _, PARABOLA, WAVES = FUNCTIONS


def sample(function: str, n: int, seed: tuple[int, ...]) -> Any:
    """Draw uniform scores and outcomes whose rate is `function` of them."""
    rng = np.random.default_rng([*seed, n])
    s = rng.uniform(size=n)
    return cal.predictions((rng.uniform(size=n) < FUNCTIONS[function](s)).astype(np.int8), s)


@cache
def true_error(function: str, about: str) -> float:
    """Calibration error of the scores as they are, rounded to 50 steps or jittered, by a fine grid of scores."""
    if about == "jittered":
        s, k = middles(1000), kernel(1000)
        return float(np.abs(s * k.sum(axis=0) - FUNCTIONS[function](s) @ k).mean())
    s = middles(1_000_000)
    if about == "as it is":
        return float(np.abs(s - FUNCTIONS[function](s)).mean())
    step = np.floor(s * 50 + 0.5).astype(int)
    return float(np.abs(np.bincount(step, step / 50 - FUNCTIONS[function](s))).sum() / len(s))


@cache
def kernel(points: int) -> Any:
    """Jitter, equation 8: a row for each score, its chances of every jittered score."""
    s = middles(points)
    k = 1.0 / np.cosh((s[:, None] - s[None, :]) / H)
    return k / k.sum(axis=1, keepdims=True)


@cache
def variation(function: str) -> float:
    """Total variation."""
    return float(np.abs(np.diff(FUNCTIONS[function](np.linspace(0.0, 1.0, 100_001)))).sum())


def middles(points: int) -> Any:
    """Middles of equal parts of [0, 1]."""
    return (np.arange(points) + 0.5) / points
