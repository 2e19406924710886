"""The sech perturbation of a score: normaliser, exact sampling, and the derivative bounds it buys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CHUNK = 2**15


def gudermannian(x: Floats) -> Floats:
    """Return `arctan(sinh x)`, the antiderivative of sech, without the overflow of sinh."""
    return np.asarray(2.0 * np.arctan(np.tanh(0.5 * x)), dtype=np.float64)


def sech_normaliser(scores: Floats, bandwidth: float) -> Floats:
    """Return `Z(p, h)`, the integral of `sech((s - p) / h)` over `s` in [0, 1] (Lemma 7, eq. 24)."""
    return bandwidth * (gudermannian((1.0 - scores) / bandwidth) + gudermannian(scores / bandwidth))


def perturbed(scores: Floats, bandwidth: float, rng: np.random.Generator) -> Floats:
    """Draw `s` from the density `sech((s - p) / h) / Z(p, h)` on [0, 1] (eq. 8), one draw a score.

    Exact inversion: the distribution function is affine in `gd((s - p) / h)`, so a uniform angle between
    `gd(-p / h)` and `gd((1 - p) / h)` is turned back by the inverse Gudermannian `arcsinh(tan(angle))`.
    """
    out = np.empty(scores.size)
    for start in range(0, scores.size, _CHUNK):
        p = scores[start : start + _CHUNK]
        low, high = gudermannian(-p / bandwidth), gudermannian((1.0 - p) / bandwidth)
        angle = low + rng.random(p.size) * (high - low)
        out[start : start + _CHUNK] = p + bandwidth * np.arcsinh(np.tan(angle))
    return np.clip(out, 0.0, 1.0, out=out)


def derivative_bounds(bandwidth: float) -> tuple[float, float]:
    """Return the uniform bounds on the first and second derivative of the perturbed calibration function.

    Lemma 1: `b1 = 1 / (2 h)` (also the Lipschitz constant) and `b2 = 3 / (2 h^2)`, whatever the classifier.
    """
    return 0.5 / bandwidth, 1.5 / bandwidth**2
