"""Models that are right given their covariates, and rows drawn from them, for the local calibration test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal


def logistic(z: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-z))


def normal(scores: Callable[[Any, Any], Any], d: int) -> Callable[[Any, int], tuple[Any, Any]]:
    """Normal covariates, and scores given them."""

    def draw(rng: Any, n: int) -> tuple[Any, Any]:
        x = rng.normal(size=(n, d))
        return scores(rng, x), x

    return draw


def clumped(rng: Any, n: int) -> tuple[Any, Any]:
    """A tenth of the rows far off, with scores of one half where the others are near 0.04."""
    x = rng.choice([-3.0, 0.0, 0.2, 8.0], (n, 3), p=[0.1, 0.4, 0.4, 0.1]) + 0.01 * rng.normal(size=(n, 3))
    return np.where(x[:, 0] > 4, 0.5, 0.03 + 0.02 * (x[:, 1] > 0.1)), x


def discrete(rng: Any, n: int) -> tuple[Any, Any]:
    x = rng.integers(0, 3, (n, 3)).astype(float)
    return 0.1 + 0.2 * x[:, 0], x


DESIGNS: dict[str, tuple[Callable[[Any, int], tuple[Any, Any]], int]] = {
    "homogeneous": (normal(lambda _, x: np.full(len(x), 0.3), 2), 100),
    "uniform": (normal(lambda rng, x: rng.random(len(x)), 1), 300),
    "extreme scores": (normal(lambda rng, x: rng.beta(0.5, 0.5, len(x)), 5), 500),
    "rare": (normal(lambda _, x: 0.01 * np.exp(x[:, 0] - 0.5).clip(0, 9), 3), 1000),
    "paper": (normal(lambda _, x: logistic(x.sum(axis=1)), 10), 500),
    "clumped": (clumped, 300),
    "discrete": (discrete, 400),
    "many covariates": (normal(lambda _, x: logistic(x.sum(axis=1)), 50), 200),
    "many rows": (normal(lambda _, x: logistic(x[:, 0] - 1), 4), 5000),
}


def rows(design: str, replicate: int, **more: Any) -> Any:
    """Predictions of one replicate; the stream is not the library's."""
    draw, n = DESIGNS[design]
    rng = np.random.default_rng([0x10CA, n, replicate, *design.encode()])
    p, x = draw(rng, n)
    return cal.predictions(rng.random(n) < p, p, {f"x{j}": x[:, j] for j in range(x.shape[1])}, **more)
