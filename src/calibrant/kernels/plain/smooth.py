"""Local polynomials, all points at once: those of `calibrant.kernels.smooth`, to rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.smooth import FLAT

Floats = NDArray[np.float64]

AT_ONCE = 1 << 15  # cells seen from points, that stay in the cache


def operator(x: Floats, rows: Floats, mass: Floats, grid: Floats, need: float, degree: int) -> tuple[Floats, Floats]:
    """Return what turns sums by cell into the local fit, and into its slope, at each point."""
    value, slope = np.empty((len(grid), len(x))), np.empty((len(grid), len(x)))
    points = max(1, AT_ONCE // len(x))
    for a in range(0, len(grid), points):
        value[a : a + points], slope[a : a + points] = _fits(x, rows, mass, grid[a : a + points], need, degree)
    return value, slope


def _fits(x: Floats, rows: Floats, mass: Floats, grid: Floats, need: float, degree: int) -> tuple[Floats, Floats]:
    away = x - grid[:, None]
    h = _reach(np.abs(away), rows, need)[:, None]
    # (1) tricube weights, and the mean of u, which is the first orthogonal polynomial's zero
    u = away / h
    tricube = np.maximum(1.0 - np.abs(u) ** 3, 0.0) ** 3
    k = tricube * mass
    s0 = k.sum(axis=1)[:, None]
    middle = (k * u).sum(axis=1)[:, None] / s0
    # (2) moments about the mean: v and v^2 - skew v - m2 are orthogonal to 1 and to each other
    v = u - middle
    kv2 = k * v * v
    m2, m3 = kv2.sum(axis=1)[:, None] / s0, (kv2 * v).sum(axis=1)[:, None] / s0
    straight = (m2 > FLAT) & (degree >= 1)
    skew = np.divide(m3, m2, out=np.zeros_like(m2), where=straight)
    curve = v * v - skew * v - m2
    norm = (k * curve * curve).sum(axis=1)[:, None]
    curved = straight & (norm > FLAT * s0 * m2 * m2) & (degree >= 2)
    # (3) each polynomial's value, and slope, at u = 0 over its squared norm
    p1 = np.divide(1.0, s0 * m2, out=np.zeros_like(m2), where=straight)
    p2 = np.divide(1.0, norm, out=np.zeros_like(m2), where=curved)
    at0 = middle * middle + skew * middle - m2
    down = -2.0 * middle - skew
    value = tricube * (1.0 / s0 - middle * v * p1 + at0 * curve * p2)
    return value, tricube * (v * p1 + down * curve * p2) / h


def _reach(far: Floats, rows: Floats, need: float) -> Floats:
    """The distance from each point within which `need` rows lie; or farther, so that a row lies within it."""
    order = np.argsort(far, axis=1, kind="stable")
    kept = np.cumsum(rows[order], axis=1)
    last = np.minimum((kept < need - 1e-9).sum(axis=1), far.shape[1] - 1)
    every = np.arange(len(far))
    h, near = far[every, order[every, last]], far[every, order[:, 0]]
    beyond = np.where(far > near[:, None], far, np.inf).min(axis=1)
    alone = np.where(near > 0.0, 1.5 * near, 1.0)
    return np.where(h > near, h, np.where(np.isfinite(beyond), beyond, alone))
