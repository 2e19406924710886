"""Smoothers: local polynomials, a sliding window, and total variation denoising."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.quadratic_reference import FLAT

# ---- Local polynomial regression of a variable's cells, compiled; twin of `quadratic_reference` ----


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


# ---- Nadaraya-Watson smoothing by a sliding window over sorted scores, compiled; twin of `window_reference` ----

_GUESS = int(1.2 * (1023 - 0.045) * 2**52)
_FIFTH = 0x33333333
_CHUNK = 1024


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _tempered(gap: Any, weight: Any, size: int, inverse: float) -> None:
    """Fill `weight` with `(1 - (gap * inverse)^2)^1.2` without `pow`, so that the loop vectorises.

    With `x` the base, `x^1.2 = x^2 z^4` where `z = x^(-1/5)`: the exponent bits give a guess good to a
    few per cent and four Newton steps for `z^-5 = x` take it to rounding error. Nine times faster than
    `pow`.
    """
    for i in range(size):
        u = gap[i] * inverse
        x = max(1.0 - u * u, 0.0)
        bits = np.float64(x).view(np.int64)
        z = np.int64(_GUESS - (bits >> 32) * _FIFTH).view(np.float64)
        for _ in range(4):
            z2 = z * z
            z = z * (1.2 - 0.2 * x * z2 * z2 * z)
        z2 = z * z
        weight[i] = x * x * z2 * z2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _nearest(scores: Any, s: float) -> Any:
    """Return the index of the score nearest to `s`, the first of those equally near."""
    i = min(np.searchsorted(scores, s), scores.size - 1)
    while i > 0 and abs(scores[i - 1] - s) <= abs(scores[i] - s):
        i -= 1
    return i


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def smooth(at: Any, scores: Any, labels: Any, bandwidth: float, slope: float, curvature: float) -> tuple[Any, Any, int]:
    """Return the surrogate at each point of `at`, its error bound `g` (Lemma 6), and how many fell back.

    `at` and `scores` ascend. One signature: read-only contiguous float64 arrays and three floats.
    """
    n, total = scores.size, at.size
    fit, error = np.empty(total), np.empty(total)
    gap, weight = np.empty(_CHUNK), np.empty(_CHUNK)
    first, last, alone = 0, 0, 0
    inverse = 1.0 / bandwidth
    for j in range(total):
        s = at[j]
        while first < n and scores[first] <= s - bandwidth:
            first += 1
        last = max(last, first)
        while last < n and scores[last] < s + bandwidth:
            last += 1
        w0, wy, wd, wdd, ww = 0.0, 0.0, 0.0, 0.0, 0.0
        for start in range(first, last, _CHUNK):
            size = min(_CHUNK, last - start)
            for i in range(size):
                gap[i] = abs(scores[start + i] - s)
            _tempered(gap, weight, size, inverse)
            for i in range(size):
                w, d = weight[i], gap[i]
                w0 += w
                wy += w * labels[start + i]
                wd += w * d
                wdd += w * d * d
                ww += w * w
        if w0 > 0.0:
            fit[j] = wy / w0
            error[j] = (slope * wd + 0.5 * curvature * wdd + 0.5 * np.sqrt(ww)) / w0
        else:
            alone += 1
            i = _nearest(scores, s)
            d = abs(scores[i] - s)
            fit[j] = labels[i]
            error[j] = slope * d + 0.5 * curvature * d * d + 0.5
    return fit, error, alone


# ---- Total variation denoising in linear time: a taut string by a funnel; twin of `denoise_reference` ----


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def taut_string(counts: Any, sums: Any, radius: float) -> Any:
    """Minimise `sum_j counts_j (sums_j / counts_j - v_j)^2 / 2 + radius * sum_j |v_(j+1) - v_j|`.

    Linear time. One signature: two read-only contiguous float64 arrays and a float.
    """
    m = counts.size
    x, edge = np.zeros(m + 1), np.zeros((2, m + 1))
    height = 0.0
    for j in range(m):
        x[j + 1] = x[j] + counts[j]
        height += sums[j]
        slack = radius if j < m - 1 else 0.0
        edge[0, j + 1], edge[1, j + 1] = height + slack, height - slack
    return _funnel(x, edge)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _funnel(x: Any, edge: Any) -> Any:
    """Slopes of the shortest path between the upper edge (row 0) and the lower edge (row 1).

    From the last bend `(x[here], level)` two chains of knots fan out: the upper one is convex, the lower
    concave, and the first upper piece is no flatter than the first lower one. A new knot first drops the
    chain ends it makes slack; if it then lies beyond the other chain, the bend moves along that chain and
    the path so far is final. Each knot enters and leaves each chain at most once.
    """
    m = x.size - 1
    fit, chain = np.empty(m), np.empty((2, m + 1), np.int64)
    head, tail = np.zeros(2, np.int64), np.zeros(2, np.int64)
    here, level = 0, 0.0
    for j in range(1, m + 1):
        for k in range(2):
            turn, end, other = 1.0 - 2.0 * k, edge[k, j], 1 - k
            while tail[k] > head[k]:
                b, xa, a = chain[k, tail[k] - 1], x[here], level
                if tail[k] - head[k] > 1:
                    xa, a = x[chain[k, tail[k] - 2]], edge[k, chain[k, tail[k] - 2]]
                if turn * ((end - a) * (x[b] - xa) - (edge[k, b] - a) * (x[j] - xa)) > 0.0:
                    break
                tail[k] -= 1
            while tail[k] == head[k] and tail[other] > head[other]:
                b = chain[other, head[other]]
                rise, run = edge[other, b] - level, x[b] - x[here]
                if turn * ((end - level) * run - rise * (x[j] - x[here])) >= 0.0:
                    break
                fit[here:b] = rise / run
                here, level = b, edge[other, b]
                head[other] += 1
            chain[k, tail[k]] = j
            tail[k] += 1
    fit[here:m] = (edge[0, m] - level) / (x[m] - x[here])
    return fit
