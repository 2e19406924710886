"""Total variation denoising by pulling a string tight, the slow way; twin of `denoise`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def taut_string(counts: Floats, sums: Floats, radius: float) -> Floats:
    """Minimise `sum_j counts_j (sums_j / counts_j - v_j)^2 / 2 + radius * sum_j |v_(j+1) - v_j|`.

    The cumulative fit is the shortest path from `(0, 0)` to `(N, S)` that stays within `radius` of the
    cumulative sums at every inner knot. From the last bend, look ahead for the first knot that no
    straight line can reach: the path bends where it was held back. Quadratic at worst.
    """
    x = np.concatenate([[0.0], np.cumsum(counts)])
    height = np.concatenate([[0.0], np.cumsum(sums)])
    slack = np.full(x.size, radius)
    slack[[0, -1]] = 0.0
    top, bottom = height + slack, height - slack
    fit = np.empty(counts.size)
    here, level = 0, 0.0
    while here < counts.size:
        there, level_there = _next_bend(x, top, bottom, here, level)
        fit[here:there] = (level_there - level) / (x[there] - x[here])
        here, level = there, level_there
    return fit


def _next_bend(x: Floats, top: Floats, bottom: Floats, here: int, level: float) -> tuple[int, float]:
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
