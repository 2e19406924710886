"""The smoothers in plain NumPy, a point at a time: slow, short, and meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.smooth import FLAT, Smoothed

Array = NDArray[Any]


def operator(x: Array, rows: Array, mass: Array, grid: Array, need: float, degree: int) -> tuple[Array, Array]:
    """The orthogonal polynomials of every window over all cells."""
    value, slope = np.zeros((len(grid), len(x))), np.zeros((len(grid), len(x)))
    for j, t in enumerate(grid):
        h = reach(x, rows, t, need)
        u = (x - t) / h
        tricube = np.where(np.abs(u) < 1.0, np.clip(1.0 - np.abs(u) ** 3, 0.0, None) ** 3, 0.0)
        k = tricube * mass
        s0 = k.sum()
        middle = (k @ u) / s0
        v = u - middle
        m2, m3 = (k @ v**2) / s0, (k @ v**3) / s0
        out, tilt = np.ones(len(x)) / s0, np.zeros(len(x))
        if degree >= 1 and m2 > FLAT:
            out = out - middle * v / (s0 * m2)
            tilt = v / (s0 * m2)
            bend = v * v - m3 / m2 * v - m2
            norm = k @ bend**2
            if degree >= 2 and norm > FLAT * s0 * m2 * m2:
                out = out + (middle * middle + m3 / m2 * middle - m2) * bend / norm
                tilt = tilt + (-2.0 * middle - m3 / m2) * bend / norm
        value[j] = tricube * out
        slope[j] = tricube * tilt / h
    return value, slope


def reach(x: Array, rows: Array, t: float, need: float) -> float:
    """Return the distance from `t` within which `need` rows lie; or farther, so that a row lies strictly within it."""
    far = np.abs(x - t)
    order = np.argsort(far, kind="stable")
    held = np.cumsum(rows[order])
    last = min(int(np.searchsorted(held, need - 1e-9)), len(x) - 1)
    h, near = float(far[order[last]]), float(far.min())
    if h > near:
        return h
    beyond = far[far > near]
    return float(beyond.min()) if len(beyond) else 1.5 * near if near > 0 else 1.0


def smooth(at: Array, scores: Array, labels: Array, bandwidth: float, slope: float, curvature: float) -> Smoothed:
    """The published formula, with `pow`."""
    fit, error, alone = np.empty(at.size), np.empty(at.size), 0
    for j, s in enumerate(at):
        near = (scores > s - bandwidth) & (scores < s + bandwidth)
        gap, y = np.abs(scores[near] - s), labels[near]
        weight = np.maximum(1 - (gap / bandwidth) ** 2, 0.0) ** 1.2
        if weight.sum() == 0:
            alone += 1
            nearest = int(np.argmin(np.abs(scores - s)))
            gap, y, weight = np.abs(scores[[nearest]] - s), labels[[nearest]], np.ones(1)
        weight = weight / weight.sum()
        fit[j] = weight @ y
        error[j] = slope * weight @ gap + curvature / 2 * weight @ gap**2 + np.sqrt(weight @ weight) / 2
    return Smoothed(fit, error, alone)


def taut_string(counts: Array, sums: Array, radius: float) -> Array:
    """Pull the string: from the last bend, look ahead for the first knot that no straight line can reach.

    The path bends where it was held back. Quadratic at worst.
    """
    x = np.concatenate([[0.0], np.cumsum(counts)])
    height = np.concatenate([[0.0], np.cumsum(sums)])
    slack = np.full(x.size, radius)
    slack[[0, -1]] = 0.0
    top, bottom = height + slack, height - slack
    fit = np.empty(counts.size)
    here, level = 0, 0.0
    while here < counts.size:
        there, level_there = next_bend(x, top, bottom, here, level)
        fit[here:there] = (level_there - level) / (x[there] - x[here])
        here, level = there, level_there
    return fit


def next_bend(x: Array, top: Array, bottom: Array, here: int, level: float) -> tuple[int, float]:
    """Return where the string fixed at `(x[here], level)` next touches the tube: knot and height."""
    most, least = np.inf, -np.inf
    at_most = at_least = here
    for j in range(here + 1, x.size):
        up, down = (top[j] - level) / (x[j] - x[here]), (bottom[j] - level) / (x[j] - x[here])
        if down > most:
            return at_most, float(top[at_most])
        if up < least:
            return at_least, float(bottom[at_least])
        if up <= most:
            most, at_most = up, j
        if down >= least:
            least, at_least = down, j
    return x.size - 1, float(top[-1])
