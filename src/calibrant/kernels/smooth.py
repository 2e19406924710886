"""Smoothers: local polynomials, a sliding window, total variation denoising, and the nearest increasing sequence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.runtime import as_readonly, few, kernel

Floats = NDArray[np.float64]

# ---- Local polynomial regression of a variable's cells (LOESS: Cleveland 1979) ----

CELLS_PER_ROW = 64  # cells seen from points that take as long as a row of other kernels
FLAT = 1e-9  # a spread, relative to the window, below which there is no slope (or, squared again, no curvature)


class Cells(NamedTuple):
    """Cells along a variable: increasing values, rows (which the window counts), weights (which the fit uses)."""

    x: Floats
    rows: Floats
    mass: Floats


class Window(NamedTuple):
    """A point, the first cell of its window, the one after its last, and its half-width."""

    t: float
    first: int
    after: int
    width: float


def operator(
    x: ArrayLike, rows: ArrayLike, mass: ArrayLike, grid: ArrayLike, need: float, degree: int
) -> tuple[Floats, Floats]:
    r"""What turns sums by cell into the local fit, and into its slope, at each point.

    With ``u = (x - t) / h``, tricube weights ``K = (1 - |u|^3)^3`` and `h` the distance of the `need`-th nearest row,
    the polynomial in `u` that minimises ``sum K mass (z / mass - f(u))^2`` is linear in the cells' sums z; row t of the
    first matrix times z is ``f(0)``, of the second ``f'(0) / h``. Written in the orthogonal polynomials of the window,
    so that what the window cannot tell (a curvature from two values) is left out instead of divided by nought.

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
    cells = Cells(as_readonly(x, np.float64), as_readonly(rows, np.float64), as_readonly(mass, np.float64))
    points = as_readonly(grid, np.float64)
    if few(len(points) * len(cells.x), CELLS_PER_ROW, often=True):
        return plain_operator(*cells, points, float(need), int(degree))
    value, slope = np.zeros((len(points), len(cells.x))), np.zeros((len(points), len(cells.x)))
    _operator(cells, points, float(need), int(degree), value, slope)
    return value, slope


@kernel
def _operator(cells: Cells, grid: Floats, need: float, degree: int, value: Floats, slope: Floats) -> None:
    for j in range(grid.shape[0]):
        window = _window(cells.x, cells.rows, grid[j], need)
        _fit(cells, window, degree, value[j], slope[j])


@kernel
def _window(x: Floats, rows: Floats, t: float, need: float) -> Window:
    """The window that holds `need` rows; or a wider one, so that a row lies strictly within it."""
    last = x.shape[0]
    right = int(np.searchsorted(x, t))
    left = right
    kept, h, near = 0.0, -1.0, np.inf
    while (kept < need - 1e-9 or h <= near) and (left > 0 or right < last):  # 1e-9: rounding of the rows' sum
        if right >= last or (left > 0 and t - x[left - 1] <= x[right] - t):
            left -= 1
            far, n = t - x[left], rows[left]
        else:
            far, n = x[right] - t, rows[right]
            right += 1
        near, h = min(near, far), far
        kept += n
    if h <= near:
        h = 1.5 * near if near > 0.0 else 1.0
    while left > 0 and t - x[left - 1] < h:
        left -= 1
    while right < last and x[right] - t < h:
        right += 1
    return Window(t, left, right, h)


@kernel
def _fit(cells: Cells, window: Window, degree: int, out: Floats, tilt: Floats) -> None:
    x, mass, t = cells.x, cells.mass, window.t
    a, b, inverse = window.first, window.after, 1.0 / window.width
    # (1) tricube weights, and the mean of u, which is the first orthogonal polynomial's zero
    s0, s1 = 0.0, 0.0
    for c in range(a, b):
        u = (x[c] - t) * inverse
        w = max(1.0 - abs(u * u * u), 0.0)
        w = w * w * w
        out[c] = w
        s0 += w * mass[c]
        s1 += w * mass[c] * u
    # (2) moments about the mean: v and v^2 - skew v - m2 are orthogonal to 1 and to each other
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
        curve = v * v - skew * v - m2
        m4 += out[c] * mass[c] * curve * curve
    curved = straight and degree >= 2 and m4 > FLAT * s0 * m2 * m2
    # (3) each polynomial's value, and slope, at u = 0 over its squared norm
    p1 = 1.0 / (s0 * m2) if straight else 0.0
    p2 = 1.0 / m4 if curved else 0.0
    at0 = middle * middle + skew * middle - m2
    down = -2.0 * middle - skew
    for c in range(a, b):
        v = (x[c] - t) * inverse - middle
        curve = v * v - skew * v - m2
        w = out[c]
        out[c] = w * (1.0 / s0 - middle * v * p1 + at0 * curve * p2)
        tilt[c] = w * (v * p1 + down * curve * p2) * inverse


# ---- Nadaraya-Watson smoothing by a sliding window over sorted scores ----

_GUESS = int(1.2 * (1023 - 0.045) * 2**52)  # of x^(-1/5) from x's exponent bits; 0.045 centres the guess's error
_FIFTH = 0x33333333  # a fifth of 2^32
_CHUNK = 1024


class Smoothed(NamedTuple):
    """The surrogate and its error bound `g` (Lemma 6) at each point, and how many points had no score in reach."""

    fit: Floats
    error: Floats
    alone: int


def smooth(
    at: ArrayLike, scores: ArrayLike, labels: ArrayLike, bandwidth: float, slope: float, curvature: float
) -> Smoothed:
    """The published surrogate: Epanechnikov weights to the power 1.2, normalised.

    Where no score lies within the bandwidth, all the weight is on the nearest score (the first of those equally near).

    `at`, `scores`: float64 of shape (m,) and (n,); both ascending. `labels`: float64 of shape (n,). `bandwidth`,
    `slope`, `curvature`: half-width of the window, and bounds on the derivatives of the rate.
    """
    points, known = as_readonly(at, np.float64), as_readonly(scores, np.float64)
    bounds = float(slope), float(curvature)
    return Smoothed(*_smooth(points, known, as_readonly(labels, np.float64), float(bandwidth), *bounds))


@kernel
def _smooth(
    at: Floats, scores: Floats, labels: Floats, bandwidth: float, slope: float, curvature: float
) -> tuple[Floats, Floats, int]:
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


@kernel
def _tempered(gap: Floats, weight: Floats, size: int, inverse: float) -> None:
    """Fill `weight` with `(1 - (gap * inverse)^2)^1.2` without `pow`, so that the loop vectorises.

    With `x` the base, `x^1.2 = x^2 z^4` where `z = x^(-1/5)`: the exponent bits give a guess good to a
    few percent and four Newton steps for `z^-5 = x` take it to rounding error. Nine times faster than
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


@kernel
def _nearest(scores: Floats, s: float) -> int:
    """The index of the score nearest to `s`, the first of those equally near."""
    i = min(int(np.searchsorted(scores, s)), scores.size - 1)
    while i > 0 and abs(scores[i - 1] - s) <= abs(scores[i] - s):
        i -= 1
    return i


# ---- Total variation denoising in linear time: a taut string by a funnel ----


def taut_string(counts: ArrayLike, sums: ArrayLike, radius: float) -> Floats:
    """Minimise ``sum_j counts_j (sums_j / counts_j - v_j)^2 / 2 + radius * sum_j |v_(j+1) - v_j|`` in linear time.

    The cumulative fit is the shortest path from ``(0, 0)`` to ``(N, S)`` that stays within `radius` of the cumulative
    sums at every inner knot (Davies & Kovac 2001).

    `counts`, `sums`: float64 of shape (m,).
    """
    return _taut_string(as_readonly(counts, np.float64), as_readonly(sums, np.float64), float(radius))


@kernel
def _taut_string(counts: Floats, sums: Floats, radius: float) -> Floats:
    m = counts.size
    x, edge = np.zeros(m + 1), np.zeros((2, m + 1))
    height = 0.0
    for j in range(m):
        x[j + 1] = x[j] + counts[j]
        height += sums[j]
        slack = radius if j < m - 1 else 0.0
        edge[0, j + 1], edge[1, j + 1] = height + slack, height - slack
    return _funnel(x, edge)


@kernel
def _funnel(x: Floats, edge: Floats) -> Floats:
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


# ---- the same in NumPy, for few rows ----


AT_ONCE = 1 << 15  # cells seen from points, that stay in the cache


def plain_operator(
    x: Floats, rows: Floats, mass: Floats, grid: Floats, need: float, degree: int
) -> tuple[Floats, Floats]:
    """What turns sums by cell into the local fit, and into its slope, at each point."""
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


# ---- The increasing sequence nearest to values with weights: compiled where values are many ----

Values = Floats | list[float]
Starts = NDArray[np.int64] | list[int]


def isotonic(values: ArrayLike, weights: ArrayLike) -> Floats:
    """The nondecreasing sequence that is nearest to values in weighted least squares.

    `values`, `weights`: float64 of shape (n,); weights are above 0. Returned: float64 of shape (n,).

    Notes
    -----
    **Method.** Pool adjacent violators, as `scipy.optimize.isotonic_regression` runs it (Busing 2022, algorithm 1,
    doi:10.18637/jss.v102.c01): all three give the same bits.
    **Cost.** A microsecond a value in Python, a hundredth of that compiled.
    """
    inputs = as_readonly(values, np.float64), as_readonly(weights, np.float64)
    n = len(inputs[0])
    fitted = np.empty(n)
    if few(n, often=True):  # lists, whose values plain Python reads faster than those of arrays
        _pool(inputs[0].tolist(), inputs[1].tolist(), fitted, [0.0] * n, [0.0] * n, [0] * n)
    else:
        _compiled(*inputs, fitted, np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))
    return fitted


def _pool(values: Values, weights: Values, out: Floats, level: Values, mass: Values, start: Starts) -> None:
    """Write the fit; the last three hold each block's level, weight and first value."""
    n, kept, i = len(values), 0, 0
    while i < n:
        x, w, at = values[i], weights[i], i
        if kept and level[kept - 1] >= x:
            # (1) The block before takes the value in, and the values after it that it reaches
            kept -= 1
            total = mass[kept] * level[kept] + w * x
            at = start[kept]
            w += mass[kept]
            x = total / w
            while i < n - 1 and x >= values[i + 1]:
                i += 1
                total += weights[i] * values[i]
                w += weights[i]
                x = total / w
            # (2) and the blocks before it that it has fallen to
            while kept and level[kept - 1] >= x:
                kept -= 1
                total += mass[kept] * level[kept]
                at = start[kept]
                w += mass[kept]
                x = total / w
        level[kept], mass[kept], start[kept] = x, w, at
        kept += 1
        i += 1
    for block in range(kept):
        out[start[block] : start[block + 1] if block + 1 < kept else n] = level[block]


_compiled = kernel(_pool)
