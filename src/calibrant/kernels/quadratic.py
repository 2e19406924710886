"""Local polynomial regression of a variable's cells, compiled; twin of `quadratic_reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.quadratic_reference import FLAT


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _window(x: Any, rows: Any, t: float, need: float) -> Any:
    """Return the first cell of the window, the one after its last, and its half-width."""
    last = x.shape[0]
    right = np.searchsorted(x, t)
    left = right
    held, h, near = 0.0, -1.0, np.inf
    while (held < need - 1e-9 or h <= near) and (left > 0 or right < last):
        if right >= last or (left > 0 and t - x[left - 1] <= x[right] - t):
            left -= 1
            far, n = t - x[left], rows[left]
        else:
            far, n = x[right] - t, rows[right]
            right += 1
        near, h = min(near, far), far
        held += n
    if h <= near:
        h = 1.5 * near if near > 0.0 else 1.0
    while left > 0 and t - x[left - 1] < h:
        left -= 1
    while right < last and x[right] - t < h:
        right += 1
    return left, right, h


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _fit(x: Any, mass: Any, t: float, a: int, b: int, h: float, degree: int, out: Any, tilt: Any) -> None:
    inverse = 1.0 / h
    s0, s1 = 0.0, 0.0
    for c in range(a, b):
        u = (x[c] - t) * inverse
        w = max(1.0 - abs(u * u * u), 0.0)
        w = w * w * w
        out[c] = w
        s0 += w * mass[c]
        s1 += w * mass[c] * u
    middle, m2, m3, m4 = s1 / s0, 0.0, 0.0, 0.0
    for c in range(a, b):
        v = (x[c] - t) * inverse - middle
        k = out[c] * mass[c]
        v2 = v * v
        m2 += k * v2
        m3 += k * v2 * v
    m2, m3 = m2 / s0, m3 / s0
    straight = degree >= 1 and m2 > FLAT
    skew = m3 / m2 if straight else 0.0
    for c in range(a, b):
        v = (x[c] - t) * inverse - middle
        bend = v * v - skew * v - m2
        m4 += out[c] * mass[c] * bend * bend
    curved = straight and degree >= 2 and m4 > FLAT * s0 * m2 * m2
    p1 = 1.0 / (s0 * m2) if straight else 0.0
    p2 = 1.0 / m4 if curved else 0.0
    at0 = middle * middle + skew * middle - m2
    down = -2.0 * middle - skew
    for c in range(a, b):
        v = (x[c] - t) * inverse - middle
        bend = v * v - skew * v - m2
        w = out[c]
        out[c] = w * (1.0 / s0 - middle * v * p1 + at0 * bend * p2)
        tilt[c] = w * (v * p1 + down * bend * p2) * inverse


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _operator(x: Any, rows: Any, mass: Any, grid: Any, need: float, degree: int, value: Any, slope: Any) -> None:
    for j in range(grid.shape[0]):
        a, b, h = _window(x, rows, grid[j], need)
        _fit(x, mass, grid[j], a, b, h, degree, value[j], slope[j])


def operator(x: Any, rows: Any, mass: Any, grid: Any, need: float, degree: int) -> tuple[Any, Any]:
    """Return what turns sums by cell into the local fit, and into its slope; see `quadratic_reference.operator`."""
    sealed = []
    for array in (x, rows, mass, grid):
        view = np.ascontiguousarray(array, dtype=np.float64).view()
        view.flags.writeable = False
        sealed.append(view)
    value, slope = np.zeros((len(grid), len(x))), np.zeros((len(grid), len(x)))
    _operator(*sealed, float(need), int(degree), value, slope)
    return value, slope
