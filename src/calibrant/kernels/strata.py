"""Sums of outcomes and scores in the cells along a variable, and in bins of the score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.draws_reference import GOLDEN
from calibrant.kernels.strata_reference import COLUMNS
from calibrant.kernels.tally import _mix

# ---- Sums of scores and outcomes by bin, and residuals spread on a grid, compiled; twins of `bins_reference` ----


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


# ---- Sums of outcomes and scores in cells along a variable, compiled; twins of `strata_reference` ----

BUCKETS = 4  # of equal width for each edge
_GOLDEN = np.uint64(GOLDEN)
_S11 = np.uint64(11)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _locate(x: Any, edges: Any, starts: Any, scale: Any, out: Any) -> None:
    """Search among the edges of the value's own bucket only; `starts` counts the edges in buckets before each."""
    size, bottom, top = np.uint32(edges.shape[0]), edges[0], edges[-1]
    for i in range(x.shape[0]):
        v = x[i]
        if v >= bottom and v < top:
            b = np.uint32((v - bottom) * scale)
            first, after = starts[b], starts[b + np.uint32(1)]
            while first < after:
                half = (first + after) >> np.uint32(1)
                if edges[half] <= v:
                    first = half + np.uint32(1)
                else:
                    after = half
            out[i] = first
        elif v >= top:
            out[i] = size
        else:
            out[i] = np.uint32(0) if v < bottom else size + np.uint32(1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sums(cell: Any, x: Any, y: Any, p: Any, weight: Any, confidence: bool, out: Any) -> None:
    weighted, placed = weight.shape[0] > 0, x.shape[0] > 0
    for i in range(p.shape[0]):
        b = np.uint32(cell[i])
        s = p[i]
        hit = np.float64(y[i])
        if confidence and s < 0.5:
            s = 1.0 - s
            hit = 1.0 - hit
        w = weight[i] if weighted else 1.0
        r = w * (hit - s)
        out[b, 0] += 1.0
        out[b, 1] += w
        out[b, 2] += w * w
        out[b, 3] += w * hit
        out[b, 4] += w * s
        out[b, 5] += w * w * s * (1.0 - s)
        out[b, 6] += r * r
        if placed:
            out[b, 7] += x[i]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _null_sums(ids: Any, p: Any, weight: Any, cell: Any, first: Any, salt: Any, confidence: bool, out: Any) -> None:
    weighted = weight.shape[0] > 0
    for i in range(ids.shape[0]):
        state = _mix(ids[i] ^ salt) + first * _GOLDEN
        s, b = p[i], np.uint32(cell[i])
        w = weight[i] if weighted else 1.0
        for j in range(out.shape[1]):
            hit = np.float64(_mix(state) >> _S11) * 1.1102230246251565e-16 < s
            if confidence and s < 0.5:
                hit = not hit
            out[b, j] += w if hit else 0.0
            state += _GOLDEN


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _power_sums(residual: Any, cell: Any, block: Any, out: Any) -> None:
    for i in range(residual.shape[0]):
        r, b, c = residual[i], np.uint32(block[i]), np.uint32(cell[i])
        square = r * r
        out[b, c, 0] += 1.0
        out[b, c, 1] += r
        out[b, c, 2] += square
        out[b, c, 3] += square * r
        out[b, c, 4] += square * square


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _fine_sums(cell: Any, x: Any, ends: Any, p: Any, y: Any, out: Any) -> None:
    placed, values = x.shape[0] > 0, ends.shape[0] - 1
    for i in range(p.shape[0]):
        c = np.int64(cell[i])
        q = min(np.int64(p[i] * 1073741824.0), np.int64(1073741823))
        place = np.int64(0)
        if placed and c < values:
            low, high = ends[c], ends[c + 1]
            if high > low:
                place = np.int64(min(max((x[i] - low) / (high - low), 0.0), 1.0) * 65535.0)
        b, side, label = np.uint32(c), np.uint32(q >> 29), np.uint32(y[i])
        short = q >> 14
        out[b, side, label, 0] += 1
        out[b, side, label, 1] += q
        out[b, side, label, 2] += short * short
        out[b, side, label, 3] += place


def locate(x: Any, edges: Any) -> Any:
    """Return the cell of each value; see `strata_reference.locate`."""
    out = np.empty(len(x), dtype=np.int32)
    if not len(edges):
        return np.isnan(x).astype(np.int32)
    edges = _sealed(edges, np.float64)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scale = np.float64(BUCKETS * len(edges) - 1) / (edges[-1] - edges[0])
    scale = scale if np.isfinite(scale) else np.float64(0.0)
    bucket = ((edges - edges[0]) * scale).astype(np.int64) if scale else np.zeros(len(edges), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=BUCKETS * len(edges)))])
    _locate(_sealed(x, np.float64), edges, _sealed(starts, np.uint32), scale, out)
    return out


def strata_sums(cell: Any, x: Any, y: Any, p: Any, weight: Any, cells: int, confidence: bool) -> Any:
    """Return eight sums a cell; see `strata_reference.strata_sums`."""
    out = np.zeros((cells, COLUMNS))
    _sums(
        _sealed(cell, np.int32),
        _sealed(x, np.float64),
        _sealed(y, np.int8),
        _sealed(p, np.float64),
        _sealed(weight, np.float64),
        bool(confidence),
        out,
    )
    return out


def null_sums(
    ids: Any, p: Any, weight: Any, cell: Any, cells: int, first: int, draws: int, salt: int, confidence: bool
) -> Any:
    """Return weighted sums of simulated outcomes; see `strata_reference.null_sums`."""
    out = np.zeros((cells, draws))
    _null_sums(
        _sealed(ids, np.uint64),
        _sealed(p, np.float64),
        _sealed(weight, np.float64),
        _sealed(cell, np.int32),
        np.uint64(first),
        np.uint64(salt),
        bool(confidence),
        out,
    )
    return out


def power_sums(residual: Any, cell: Any, block: Any, cells: int, blocks: int) -> Any:
    """Return sums of powers of residuals; see `strata_reference.power_sums`."""
    out = np.zeros((blocks, cells, 5))
    _power_sums(_sealed(residual, np.float64), _sealed(cell, np.int32), _sealed(block, np.uint8), out)
    return out


def fine_sums(cell: Any, x: Any, ends: Any, p: Any, y: Any, out: Any) -> None:
    """Add rows to integer sums; see `strata_reference.fine_sums`."""
    _fine_sums(
        _sealed(cell, np.int32),
        _sealed(x, np.float64),
        _sealed(ends, np.float64),
        _sealed(p, np.float64),
        _sealed(y, np.int8),
        out,
    )
