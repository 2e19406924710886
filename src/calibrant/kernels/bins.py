"""Sums of scores and outcomes by bin, and residuals spread on a grid, compiled; twins of `bins_reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _row_sums(p: Any, y: Any, edges: Any, bins: int, wide: bool, out: Any) -> None:
    """Rows of equal weight; two accumulators a bin, so that a row need not wait for the one before it."""
    size, last = p.shape[0], bins - 1
    sums = np.zeros((2 * bins, 4))
    for i in range(size):
        s = p[i]
        b: Any = min(np.int64(s * bins), last) if wide else np.searchsorted(edges, s, side="right")
        b = 2 * b + (i & 1)
        r = y[i] - s
        sums[b, 0] += 1.0
        sums[b, 1] += y[i]
        sums[b, 2] += s
        sums[b, 3] += r * r
    for b in range(bins):
        for j in range(4):
            total = sums[2 * b, j] + sums[2 * b + 1, j]
            out[b, (0, 2, 3, 4)[j]] = total
        out[b, 1] = out[b, 0]
        out[b, 5] = out[b, 0]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _point_sums(p: Any, y: Any, count: Any, weight: Any, edges: Any, bins: int, wide: bool, out: Any) -> None:
    counted, weighted, last = count.shape[0] > 0, weight.shape[0] > 0, bins - 1
    for i in range(p.shape[0]):
        s = p[i]
        b: Any = min(np.int64(s * bins), last) if wide else np.searchsorted(edges, s, side="right")
        f = count[i] if counted else 1.0
        w = weight[i] if weighted else 1.0
        r = y[i] - s
        out[b, 0] += f
        out[b, 1] += f * w
        out[b, 2] += f * w * y[i]
        out[b, 3] += f * w * s
        out[b, 4] += f * w * w * r * r
        out[b, 5] += f * w * w


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _spread(p: Any, y: Any, count: Any, weight: Any, steps: int, out: Any) -> None:
    counted, weighted = count.shape[0] > 0, weight.shape[0] > 0
    for i in range(p.shape[0]):
        at = p[i] * steps
        j: Any = min(np.int64(at), steps - 1)
        share = at - j
        f = count[i] if counted else 1.0
        w = weight[i] if weighted else 1.0
        r = w * (y[i] - p[i])
        out[j, 0] += f * r * (1.0 - share)
        out[j + 1, 0] += f * r * share
        j += np.int64(share + 0.5)
        out[j, 1] += f * r * r
        out[j, 2] += f * w * w


def _sealed(a: Any, dtype: Any) -> Any:
    """View of `a`, or of nothing, as a read-only contiguous array, so that a kernel sees one type."""
    view = np.ascontiguousarray([] if a is None else a, dtype=dtype).view()
    view.flags.writeable = False
    return view


def bin_sums(p: Any, y: Any, count: Any, weight: Any, edges: Any, bins: int) -> Any:
    """Return six sums a bin; see `bins_reference.bin_sums`."""
    out = np.zeros((bins, 6))
    inner, wide = _sealed(edges, np.float64), edges is None
    scores, labels = _sealed(p, np.float64), _sealed(y, np.int8)
    if count is None and weight is None:
        _row_sums(scores, labels, inner, bins, wide, out)
    else:
        _point_sums(scores, labels, _sealed(count, np.float64), _sealed(weight, np.float64), inner, bins, wide, out)
    return out


def spread(p: Any, y: Any, count: Any, weight: Any, steps: int) -> Any:
    """Return three sums for each grid point; see `bins_reference.spread`."""
    out = np.zeros((steps + 1, 3))
    count, weight = _sealed(count, np.float64), _sealed(weight, np.float64)
    _spread(_sealed(p, np.float64), _sealed(y, np.int8), count, weight, steps, out)
    return out
