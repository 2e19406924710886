"""Sums of outcomes and scores in the cells along a variable, and in bins of the score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import GOLDEN, Draws, Stream, start, stream, uniform
from calibrant.kernels.runtime import as_readonly, few, kernel
from calibrant.kernels.tally import fixed, fixed_point

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
Cells = NDArray[np.int32]
Ints = NDArray[np.int64]

# ---- Bins of the score ----


def bin_sums(
    p: ArrayLike, y: ArrayLike, count: ArrayLike | None, weight: ArrayLike | None, edges: ArrayLike | None, bins: int
) -> Floats:
    """Six sums for each bin.

    Parameters
    ----------
    p, y : arrays of shape (n,)
        Scores in [0, 1] and outcomes 0 or 1.
    count, weight : arrays of shape (n,) or None
        How many rows each entry stands for, and their sampling weight; None for one.
    edges : increasing array of shape (bins - 1,) or None
        Inner edges, each bin closed on the left; None for bins of equal width.
    bins : int

    Returns
    -------
    float64 array of shape (bins, 6)
        Rows, weight, weight of events, weighted scores, squared weighted residuals, squared weights.
    """
    inner, scores, labels = as_readonly(edges, np.float64), as_readonly(p, np.float64), as_readonly(y, np.int8)
    if few(len(scores)):
        return plain_bin_sums(
            scores, labels, (as_readonly(count, np.float64), as_readonly(weight, np.float64)), inner, bins
        )
    out = np.zeros((bins, 6))
    if count is None and weight is None:
        _row_sums(scores, labels, inner, out)
    else:
        _point_sums(scores, labels, as_readonly(count, np.float64), as_readonly(weight, np.float64), inner, out)
    return out


@kernel
def _row_sums(p: Floats, y: Labels, edges: Floats, out: Floats) -> None:
    """Rows of equal weight; two accumulators a bin, so that a row need not wait for the one before it."""
    bins, wide = out.shape[0], edges.shape[0] == 0
    sums = np.zeros((2 * bins, 4))
    for i in range(p.shape[0]):
        s = p[i]
        b = min(np.int64(s * bins), bins - 1) if wide else np.searchsorted(edges, s, side="right")
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


@kernel
def _point_sums(p: Floats, y: Labels, count: Floats, weight: Floats, edges: Floats, out: Floats) -> None:
    bins, wide = out.shape[0], edges.shape[0] == 0
    counted, weighted = count.shape[0] > 0, weight.shape[0] > 0
    for i in range(p.shape[0]):
        s = p[i]
        b = min(np.int64(s * bins), bins - 1) if wide else np.searchsorted(edges, s, side="right")
        f = count[i] if counted else 1.0
        w = weight[i] if weighted else 1.0
        r = y[i] - s
        out[b, 0] += f
        out[b, 1] += f * w
        out[b, 2] += f * w * y[i]
        out[b, 3] += f * w * s
        out[b, 4] += f * w * w * r * r
        out[b, 5] += f * w * w


def spread(p: ArrayLike, y: ArrayLike, count: ArrayLike | None, weight: ArrayLike | None, steps: int) -> Floats:
    """Three sums for each of the points ``0, 1/steps, ..., 1``, shape (steps + 1, 3).

    Weighted residuals, each shared between the two points next to its score in proportion to nearness, so that
    mass and mean are kept; their squares, and the squared weights, at the nearer point.
    """
    scores, labels = as_readonly(p, np.float64), as_readonly(y, np.int8)
    each = as_readonly(count, np.float64), as_readonly(weight, np.float64)
    if few(len(scores)):
        return plain_spread(scores, labels, each, steps)
    out = np.zeros((steps + 1, 3))
    _spread(scores, labels, *each, out)
    return out


@kernel
def _spread(p: Floats, y: Labels, count: Floats, weight: Floats, out: Floats) -> None:
    counted, weighted, steps = count.shape[0] > 0, weight.shape[0] > 0, out.shape[0] - 1
    for i in range(p.shape[0]):
        at = p[i] * steps
        j = min(np.int64(at), steps - 1)
        share = at - j
        f = count[i] if counted else 1.0
        w = weight[i] if weighted else 1.0
        r = w * (y[i] - p[i])
        out[j, 0] += f * r * (1.0 - share)
        out[j + 1, 0] += f * r * share
        j += np.int64(share + 0.5)
        out[j, 1] += f * r * r
        out[j, 2] += f * w * w


# ---- Cells along a variable ----

COLUMNS = 8  # sums a cell: rows, weights, their squares, outcomes, scores, null variance, squared residuals, x
BUCKETS = 4  # of equal width for each edge, so that a value is searched for among one or two edges


class Seen(NamedTuple):
    """Scores as a view takes them."""

    p: Floats  # shape (n,)
    weight: Floats | None = None  # shape (n,)
    confidence: bool = False  # turn outcome and score round where `p < 0.5`


class Typed(NamedTuple):
    """`Seen` as kernels take it: no weights are an empty array."""

    p: Floats
    weight: Floats
    confidence: bool


def _typed(seen: Seen) -> Typed:
    return Typed(as_readonly(seen.p, np.float64), as_readonly(seen.weight, np.float64), bool(seen.confidence))


def locate(x: ArrayLike, edges: ArrayLike) -> Cells:
    """The cell of each value: the number of edges at or below it; one more than there are edges for NaN.

    `x`: float64 of shape (n,). `edges`: increasing float64 of shape (c - 1,). Returned: int32 of shape (n,).
    """
    values, ends = as_readonly(x, np.float64), as_readonly(edges, np.float64)
    if not len(ends):
        return np.isnan(values).astype(np.int32)
    if few(len(values)):
        return plain_locate(values, ends)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scale = np.float64(BUCKETS * len(ends) - 1) / (ends[-1] - ends[0])
    scale = scale if np.isfinite(scale) else np.float64(0.0)
    bucket = ((ends - ends[0]) * scale).astype(np.int64) if scale else np.zeros(len(ends), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=BUCKETS * len(ends)))])
    out = np.empty(len(values), dtype=np.int32)
    padded = np.append(ends, [np.inf, np.inf])  # what is read past the last edge is above every value
    _locate(values, as_readonly(padded, np.float64), as_readonly(starts, np.uint32), scale, out)
    return out


@kernel
def _locate(x: Floats, edges: Floats, starts: NDArray[np.uint32], scale: np.float64, out: Cells) -> None:
    """Look among the edges of the value's own bucket only; `starts` counts the edges in buckets before each.

    Two edges are compared without a branch, for a bucket seldom has more; those of later buckets are above the value.
    """
    last = edges.shape[0] - 3
    size, bottom, top = np.uint32(last + 1), edges[0], edges[last]
    for i in range(x.shape[0]):
        v = x[i]
        if v >= bottom and v < top:
            b = np.uint32((v - bottom) * scale if scale > 0.0 else 0.0)  # 0 where no number is as long as all edges
            begin, after = starts[b], starts[b + np.uint32(1)]
            first = begin + np.uint32(edges[begin] <= v) + np.uint32(edges[begin + np.uint32(1)] <= v)
            while first < after and first >= begin + np.uint32(2):
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


def strata_sums(cell: ArrayLike, cells: int, y: ArrayLike, seen: Seen, x: ArrayLike | None = None) -> Floats:
    """Eight sums a cell: rows, weights, their squares, outcomes, scores, null variance, squared residuals, x.

    `cell`: int32 of shape (n,). `y`: int8 of shape (n,). `x`: float64 of shape (n,), optional; summed without weight.
    Returned: float64 of shape (cells, 8).
    """
    where, labels, typed, place = (
        as_readonly(cell, np.int32),
        as_readonly(y, np.int8),
        _typed(seen),
        as_readonly(x, np.float64),
    )
    if few(len(where)):
        return plain_strata_sums(where, cells, labels, typed, place)
    out = np.zeros((cells, COLUMNS))
    _strata_sums(where, labels, typed, place, out)
    return out


@kernel
def _strata_sums(cell: Cells, y: Labels, seen: Typed, x: Floats, out: Floats) -> None:
    p, weight = seen.p, seen.weight
    weighted, placed = weight.shape[0] > 0, x.shape[0] > 0
    for i in range(p.shape[0]):
        b = np.uint32(cell[i])
        s = p[i]
        hit = np.float64(y[i])
        if seen.confidence and s < 0.5:
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


def null_sums(ids: ArrayLike, cell: ArrayLike, cells: int, seen: Seen, draws: Draws) -> Floats:
    """Weighted sums of the outcomes that `draws.outcomes` simulates for a calibrated model, a column a draw.

    `ids`: uint64 of shape (n,). `cell`: int32 of shape (n,). `seen`: with confidence, an outcome of 0 counts where ``p
    < 0.5``. Returned: float64 of shape (cells, draws).
    """
    out = np.zeros((cells, draws.count))
    _null_sums(stream(ids, draws.first, draws.salt), as_readonly(cell, np.int32), _typed(seen), out)
    return out


@kernel
def _null_sums(rows: Stream, cell: Cells, seen: Typed, out: Floats) -> None:
    p, weight = seen.p, seen.weight
    weighted = weight.shape[0] > 0
    for i in range(p.shape[0]):
        state, s, b = start(rows, i), p[i], np.uint32(cell[i])
        w = weight[i] if weighted else 1.0
        for j in range(out.shape[1]):
            hit = uniform(state) < s
            if seen.confidence and s < 0.5:
                hit = not hit
            out[b, j] += w if hit else 0.0
            state += GOLDEN


def power_sums(residual: ArrayLike, cell: ArrayLike, block: ArrayLike, cells: int, blocks: int) -> Floats:
    """Sums of ``r^0`` to ``r^4`` per block and cell.

    `residual`: float64 of shape (n,). `cell`: int32 of shape (n,). `block`: uint8 of shape (n,). Returned: float64 of
    shape (blocks, cells, 5).
    """
    if few(np.size(cell)):
        at = np.asarray(block, dtype=np.int64) * cells + np.asarray(cell)
        sums: Floats = plain_power_sums(as_readonly(residual, np.float64), at, blocks * cells)
        return sums.reshape(blocks, cells, 5)
    out = np.zeros((blocks, cells, 5))
    _power_sums(as_readonly(residual, np.float64), as_readonly(cell, np.int32), as_readonly(block, np.uint8), out)
    return out


@kernel
def _power_sums(residual: Floats, cell: Cells, block: NDArray[np.uint8], out: Floats) -> None:
    for i in range(residual.shape[0]):
        r, b, c = residual[i], np.uint32(block[i]), np.uint32(cell[i])
        square = r * r
        out[b, c, 0] += 1.0
        out[b, c, 1] += r
        out[b, c, 2] += square
        out[b, c, 3] += square * r
        out[b, c, 4] += square * square


def fine_sums(
    cell: ArrayLike, x: ArrayLike | None, ends: ArrayLike | None, p: ArrayLike, y: ArrayLike, out: Ints
) -> None:
    """Add rows to four integer sums per cell, side of the score and label.

    Parameters
    ----------
    cell : int32 array of shape (n,)
    x : float64 array of shape (n,) or None
    ends : float64 array of shape (c + 1,) or None
        Ends of the cells of values; the cell after them is for missing values.
    p : float64 array of shape (n,)
    y : int8 array of shape (n,)
    out : int64 array of shape (cells, 2, 2, 4)
        Rows, ``q = min(floor(p 2^30), 2^30 - 1)``, ``(q >> 14)^2``, place in the cell in 65,535 steps.
    """
    values, edges = as_readonly(x, np.float64), as_readonly(ends, np.float64)
    rows = as_readonly(cell, np.int32), values, edges, as_readonly(p, np.float64), as_readonly(y, np.int8)
    if few(len(rows[0])):
        plain_fine_sums(*rows, out)
    else:
        _fine_sums(*rows, out)


@kernel
def _fine_sums(cell: Cells, x: Floats, ends: Floats, p: Floats, y: Labels, out: Ints) -> None:
    placed, values = x.shape[0] > 0, ends.shape[0] - 1
    for i in range(p.shape[0]):
        c = np.int64(cell[i])
        q = fixed(p[i])
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


# ---- the same in NumPy, for few rows ----


def _ones_or(value: Floats, n: int) -> Floats:
    """What was passed, or ones where it is empty."""
    return value if len(value) else np.ones(n)


def _counted(at: Ints | Cells, columns: tuple[Floats, ...], cells: int) -> Floats:
    return np.stack([np.bincount(at, column, cells) for column in columns], axis=1)


def plain_bin_sums(p: Floats, y: Labels, inputs: tuple[Floats, Floats], edges: Floats, bins: int) -> Floats:
    """Six sums for each bin; `inputs` are rows and weights, empty for ones."""
    f, w = (_ones_or(v, len(p)) for v in inputs)
    b = np.searchsorted(edges, p, side="right") if len(edges) else np.minimum((p * bins).astype(np.int64), bins - 1)
    weight = f * w
    residual = y - p
    return _counted(b, (f, weight, weight * y, weight * p, weight * w * residual * residual, weight * w), bins)


def plain_spread(p: Floats, y: Labels, inputs: tuple[Floats, Floats], steps: int) -> Floats:
    """Three sums for each of the points ``0, 1/steps, ..., 1``; `inputs` are rows and weights, empty for ones."""
    f, w = (_ones_or(v, len(p)) for v in inputs)
    at = p * steps
    j = np.minimum(at.astype(np.int64), steps - 1)
    share, r = at - j, w * (y - p)
    low, high = (np.bincount(k, f * r * part, steps + 1) for k, part in ((j, 1.0 - share), (j + 1, share)))
    near = j + (share + 0.5).astype(np.int64)
    squares = _counted(near, (f * r * r, f * w * w), steps + 1)
    return np.column_stack([low + high, squares])


def plain_locate(x: Floats, edges: Floats) -> Cells:
    """The number of edges at or below each value; one more than there are edges for NaN."""
    at = np.searchsorted(edges, x, side="right")
    return np.where(np.isnan(x), len(edges) + 1, at).astype(np.int32)


def plain_strata_sums(cell: Cells, cells: int, y: Labels, seen: Typed, x: Floats) -> Floats:
    """Eight sums a cell."""
    p, w = seen.p, _ones_or(seen.weight, len(seen.p))
    s, hit = p, y.astype(np.float64)
    if seen.confidence:
        turned = p < 0.5
        s, hit = np.where(turned, 1.0 - p, p), np.where(turned, 1.0 - hit, hit)
    residual, square = w * (hit - s), w * w
    place = x if len(x) else np.zeros(len(p))
    columns = (np.ones(len(p)), w, square, w * hit, w * s, square * s * (1.0 - s), residual * residual, place)
    return _counted(cell, columns, cells)


def plain_power_sums(residual: Floats, at: Ints, size: int) -> Floats:
    """Sums of ``r^0`` to ``r^4`` at each place."""
    square = residual * residual
    columns = np.ones(len(residual)), residual, square, square * residual, square * square
    return _counted(at, columns, size)


def plain_fine_sums(cell: Cells, x: Floats, ends: Floats, p: Floats, y: Labels, out: Ints) -> None:
    """Add rows to four integer sums per cell, side of the score and label."""
    q = fixed_point(p)
    place = np.zeros(len(q), dtype=np.int64)
    if len(x):
        known = np.flatnonzero(cell < len(ends) - 1)
        low, high = ends[cell[known]], ends[cell[known] + 1]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = np.where(high > low, (x[known] - low) / (high - low), 0.0)
        share = np.where(share > 0.0, share, 0.0)  # not a number, of ends that are infinite, too
        place[known] = (np.minimum(share, 1.0) * 65535.0).astype(np.int64)
    at = cell, q >> 29, y.astype(np.int64)
    for k, value in enumerate((np.ones_like(q), q, (q >> 14) ** 2, place)):
        np.add.at(out[..., k], at, value)
