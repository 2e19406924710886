"""A Gaussian kernel on the score alone, exact to rounding through a few dozen points: linear in the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

PRECISION = 1e-12  # largest error of the kernel, which is at most one
NARROWEST = 1.0 / 250.0  # of the range of the scores
PROBES, FEW = 1001, 25  # points between which the interpolated kernel is checked


@dataclass(frozen=True)
class Nodes:
    """``exp(-(p - q)^2 / (2 w^2)) = L(p) K L(q)'``, by interpolation at Chebyshev points of both scores.

    Parameters
    ----------
    at : float64 array of shape (nodes,)
        The points.
    kernel : float64 array of shape (nodes, nodes)
        Between them.
    """

    at: Any
    kernel: Any

    def weights(self, p: Any) -> Any:
        """Return L, shape (rows, nodes): Lagrange's polynomials in barycentric form."""
        if len(self.at) == 1:
            return np.ones((len(p), 1))
        k = np.arange(len(self.at))
        sign = np.where(k % 2 == 0, 1.0, -1.0) * np.where((k == 0) | (k == len(k) - 1), 0.5, 1.0)
        gap = p[:, None] - self.at
        hit = gap == 0
        out = sign / np.where(hit, 1.0, gap)
        out /= out.sum(axis=1, keepdims=True)
        some = hit.any(axis=1)
        out[some] = hit[some]
        return out


def nodes_of(p: Any, width: float) -> Nodes:
    """Return points that reproduce the kernel on the range of `p`.

    Raises
    ------
    ValueError
        The width is under 1/250 of the range.
    """
    low, high = float(p.min()), float(p.max())
    if low == high:
        return Nodes(np.array([low]), np.ones((1, 1)))
    if width < NARROWEST * (high - low):
        raise ValueError(f"width {width:g}")
    ratio = (high - low) / width
    probe, few = np.linspace(low, high, PROBES), low + (high - low) * np.random.default_rng(0).random(FEW)
    want, number = _gauss(probe, few, width), 14.0 + 3.4 * ratio  # near enough to where rounding is reached
    while True:  # convergence is geometric
        m = int(number)
        at = low + (high - low) * (0.5 - 0.5 * np.cos(np.pi * np.arange(m) / (m - 1)))
        found = Nodes(at, _gauss(at, at, width))
        if np.abs(found.weights(probe) @ (found.kernel @ found.weights(few).T) - want).max() < PRECISION:
            return found
        number *= 1.2


def _gauss(a: Any, b: Any, width: float) -> Any:
    return np.exp(-0.5 * ((a[:, None] - b) / width) ** 2)
