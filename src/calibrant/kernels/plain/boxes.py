"""Boxes of traits: the same as `calibrant.kernels.boxes` finds, peaks to rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import boxes as b
from calibrant.kernels.tally import SCORE_BITS, fixed_point

Events = NDArray[np.int32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DRAWS = 1024  # at once


def box_sums(cells: b.Cells, p: Floats, y: b.Labels, tables: Ints, sizes: Ints, out: Ints) -> None:
    """Add rows to the tables of several combinations of traits."""
    q = fixed_point(p)
    # Sums stay below 2^53, so that doubles hold them
    columns = (None, y.astype(np.float64), q.astype(np.float64), ((q * ((1 << SCORE_BITS) - q)) >> SCORE_BITS) * 1.0)
    own = cells.astype(np.int64)
    for *attributes, first in tables.tolist():
        at, size = np.zeros(len(q), dtype=np.int64), 1
        for attribute in attributes:
            if attribute >= 0:
                at, size = at * int(sizes[attribute]) + own[attribute], size * int(sizes[attribute])
        for k, column in enumerate(columns):
            out[first : first + size, k] += np.bincount(at, column, size).astype(np.int64)


def lane_sums(words: NDArray[np.uint64], order: Ints, starts: Ints) -> Events:
    """Return how many rows of each cell have each bit set; the words of a row lie together."""
    little = words.astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(little, axis=1, bitorder="little")
    out = np.zeros((len(starts) - 1, bits.shape[1]), dtype=np.int32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        out[filled] = np.add.reduceat(bits[order[: starts[-1]]], starts[filled].astype(np.intp), axis=0, dtype=np.int32)
    return out


def box_peaks(events: Events, first: Ints, second: Ints, mean: Floats, scale: Floats, peaks: Floats) -> None:
    """Raise `peaks` to the largest residual of all boxes, too many cases and too few, in every draw."""
    looked = scale > 0.0
    if looked.any(axis=1).sum() > looked.any(axis=0).sum():  # one product for each set of the attribute that has fewer
        box_peaks(events.transpose(1, 0, 2), second, first, mean.transpose(0, 2, 1), scale.T, peaks)
        return
    (a, c, draws), within = events.shape, _within(second, events.shape[1])
    for start in range(0, draws, DRAWS):  # so that what is summed stays in the cache
        some = slice(start, min(start + DRAWS, draws))
        over, room = np.zeros((a + 1, c, some.stop - start)), np.empty((2, len(second), some.stop - start))
        np.cumsum(events[:, :, some], axis=0, out=over[1:])
        for k in np.flatnonzero(looked.any(axis=1)).tolist():
            # (1) Cases of the set's boxes, whole numbers, times the scale
            s, e, s2, e2 = first[k].tolist()
            own = over[e] - over[s]
            if s2 != e2:
                own += over[e2] - over[s2]
            kept = np.flatnonzero(looked[k])
            f, beyond = scale[k, kept, None], room[1, : len(kept)]
            inside = np.matmul(within[kept], own, out=room[0, : len(kept)])
            inside *= f
            # (2) The largest beyond what is not too many yet, and not too few
            most, least = (f * v[k, kept, None] for v in mean)
            np.subtract(inside, most, out=beyond)
            np.maximum(peaks[0, some], beyond.max(axis=0), out=peaks[0, some])
            np.subtract(least, inside, out=beyond)
            np.maximum(peaks[1, some], beyond.max(axis=0), out=peaks[1, some])


def _within(sets: Ints, cells: int) -> Floats:
    """Return 1 for each cell of a set, a row a set."""
    (first, last, second, end), cell = (own[:, None] for own in sets.T), np.arange(cells)
    inside: Floats = ((first <= cell) & (cell < last) | (second <= cell) & (cell < end)).astype(np.float64)
    return inside


def subset_peaks(events: Events, levels: Floats, extra: float, fewest: float, peaks: Floats) -> None:
    """Raise `peaks` to the largest standardised residual over subsets of levels, not of all, that have rows enough."""
    kept = np.flatnonzero(levels[:, 1] > 0.0)
    if len(kept) < 2:
        return
    expected, variance, rows = levels[kept].T
    beyond = events[kept] - expected[:, None]
    share = b.SLACK * variance.sum() / max(variance.sum() + extra, b.TINY) / variance
    most = np.stack([share @ np.square(np.maximum(beyond, 0.0)), share @ np.square(np.minimum(beyond, 0.0))])
    some = np.flatnonzero(((peaks < 0.0) | (np.square(np.maximum(peaks, 0.0)) < most)).any(axis=0))
    if not len(some):
        return
    residual = beyond[:, some]
    order = np.argsort(-residual / variance[:, None], axis=0, kind="stable")
    columns = np.take_along_axis(residual, order, axis=0), variance[order], rows[order]
    for side, turn, sign in ((0, 1, 1.0), (1, -1, -1.0)):
        s, v, n = (np.cumsum(column[::turn], axis=0)[:-1] for column in columns)
        v += extra
        s /= np.sqrt(v, out=v)
        s *= sign
        s[n < fewest] = -np.inf
        peaks[side, some] = np.maximum(peaks[side, some], s.max(axis=0))


# ---- What clusters add up to in boxes of two attributes ----

CLUSTER_SETS = 1 << 22  # numbers at once


def cluster_boxes(cells: Ints, starts: Ints, parts: Floats, first: Ints, second: Ints) -> Floats:
    """Return eight parts of each box of two sets."""
    m, k = (max(int(c.max()) + 1, int(sets[:, 1::2].max())) for c, sets in zip(cells, (first, second), strict=True))
    out = np.zeros((len(first), len(second), b.BOX_PARTS))
    clusters = len(starts) - 1
    step = max(1, CLUSTER_SETS // (4 * len(first) * len(second)))
    for at in range(0, clusters, step):
        # (1) Sums of a few clusters by cell, then by set of the first attribute, then of the second
        ends = starts[at : at + step + 1]
        rows = slice(ends[0], ends[-1])
        cluster = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        where = (cluster * m + cells[0, rows]) * k + cells[1, rows]
        shape = (len(ends) - 1, m, k)
        table = np.stack(
            [np.bincount(where, v, int(np.prod(shape))).astype(np.float64).reshape(shape) for v in parts[rows].T],
            axis=-1,
        )
        count, w, t, p = np.moveaxis(_by_set(_by_set(table, first, 1), second, 2), -1, 0)
        # (2) What they are in each box, squared and at most
        there = count > 0.5
        w, t, p = (np.where(there, v, 0.0) for v in (w, t, p))
        whole = count > np.diff(ends)[:, None, None] - 0.5
        sums = (there, there & whole, t * t, t * w, w * w)
        out[..., :5] += np.stack([v.sum(axis=0) for v in sums], axis=-1)
        most = np.stack([v.max(axis=0) for v in (w, p, w - p)], axis=-1)
        out[..., 5:] = np.maximum(out[..., 5:], most)
    return out


def _by_set(table: Floats, sets: Ints, axis: int) -> Floats:
    below = np.concatenate([np.zeros_like(table.take([0], axis)), np.cumsum(table, axis=axis)], axis=axis)
    ends = [below.take(sets[:, k].astype(np.intp), axis) for k in range(4)]
    out: Floats = ends[1] - ends[0] + ends[3] - ends[2]
    return out
