"""Local polynomial regression of a variable's cells: NumPy twin of `quadratic`, meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np

FLAT = 1e-9  # a spread, relative to the window, below which there is no slope (or, squared again, no bend)


def reach(x: Any, rows: Any, t: float, need: float) -> float:
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


def operator(x: Any, rows: Any, mass: Any, grid: Any, need: float, degree: int) -> tuple[Any, Any]:
    r"""Return what turns sums by cell into the local fit, and into its slope, at each point.

    With ``u = (x - t) / h``, tricube weights ``K = (1 - |u|^3)^3`` and `h` the distance of the `need`-th nearest row,
    the polynomial in `u` that minimises ``sum K mass (z / mass - f(u))^2`` is linear in the cells' sums z; row t of the
    first matrix times z is ``f(0)``, of the second ``f'(0) / h``. Written in the orthogonal polynomials of the window,
    so that what the window cannot tell (a bend from two values) is left out instead of divided by nought.

    Parameters
    ----------
    x : float64 array of shape (cells,)
        Increasing.
    rows, mass : float64 arrays of shape (cells,)
        Rows, which the window counts; and weights, which the fit uses.
    grid : float64 array of shape (points,)
    need : float
        Rows of a window.
    degree : int from 0 to 2

    Returns
    -------
    float64 arrays of shape (points, cells)
    """
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
