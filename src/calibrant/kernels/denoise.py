"""Total variation denoising in linear time: a taut string by a funnel; twin of `denoise_reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


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
