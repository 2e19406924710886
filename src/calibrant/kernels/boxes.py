"""Boxes of attributes: sums of their cells, sums of simulated outcomes in them, and the box that deviates most."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import LANES
from calibrant.kernels.runtime import as_readonly, few, inlined, kernel
from calibrant.kernels.tally import SCORE_BITS, fixed, fixed_point

Cells = NDArray[np.uint8]
Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]
Ints = NDArray[np.int64]
Labels = NDArray[np.int8]

SUMS = 4  # of a cell: rows, events, scores q = min(floor(p 2^30), 2^30 - 1), null variances floor(q (2^30 - q) / 2^30)
_TURN = 8192  # rows that stay in the cache while all tables take them
WORDS_PER_ROW, SEEN_PER_ROW = 4, 64  # words of draws, and sums seen, that take as long as a row of other kernels
BOXES_PER_ROW = 128  # and draws of boxes
SLACK, TINY = 1.0 + 1e-9, 1e-300  # over rounding, and over nothing
_LOW = 44  # bits of a word that hold a sum of scores or null variances; those above count rows or events

# ---- Tables: the sums of each cell of one, two or three attributes ----


def box_sums(cells: ArrayLike, p: ArrayLike, y: ArrayLike, tables: ArrayLike, sizes: ArrayLike, out: Ints) -> None:
    """Add rows to the tables of several combinations of attributes.

    Parameters
    ----------
    cells : uint8 array of shape (attributes, n)
    p : float64 array of shape (n,)
    y : int8 array of shape (n,)
    tables : int64 array of shape (m, 4)
        Three attributes, -1 for none, and where the table begins in `out`.
    sizes : int64 array of shape (attributes,)
        Cells of each attribute.
    out : int64 array of shape (cells of all tables, 4)
        Rows, events, sums of scores and of null variances; the cell of the last attribute changes fastest.
    """
    where = as_readonly(tables, np.int64), as_readonly(sizes, np.int64)
    rows = as_readonly(cells, np.uint8), as_readonly(p, np.float64), as_readonly(y, np.int8)
    if few(len(rows[1])):
        plain_box_sums(*rows, *where, out)
    else:
        _box_sums(*rows, *where, out)


@kernel
def _box_sums(cells: Cells, p: Floats, y: Labels, tables: Ints, sizes: Ints, out: Ints) -> None:
    # (1) Two words a row: one and its score, its label and its null variance. Their sums over a turn do not run over
    words, at = np.empty((_TURN, 2), dtype=np.int64), np.empty(_TURN, dtype=np.uint32)
    kept = np.zeros((sizes.max() ** 3, 2), dtype=np.int64)
    for first in range(0, p.shape[0], _TURN):
        rows = min(_TURN, p.shape[0] - first)
        for i in range(rows):
            q = fixed(p[first + i])
            words[i, 0] = (1 << _LOW) + q
            words[i, 1] = (np.int64(y[first + i]) << _LOW) + ((q * ((1 << SCORE_BITS) - q)) >> SCORE_BITS)
        for t in range(tables.shape[0]):
            size = _places(cells[:, first : first + rows], tables[t], sizes, at)
            for i in range(rows):
                own = at[i]
                kept[own, 0] += words[i, 0]
                kept[own, 1] += words[i, 1]
            _unpack(kept[:size], out[tables[t, 3] :])


@kernel
def _places(cells: Cells, table: Ints, sizes: Ints, at: NDArray[np.uint32]) -> int:
    """Find the cell of each row in a table, and return how many cells the table has."""
    size = sizes[table[0]]
    for i in range(cells.shape[1]):
        at[i] = cells[table[0], i]
    for attribute in table[1:3]:
        if attribute >= 0:
            size *= sizes[attribute]
            for i in range(cells.shape[1]):
                at[i] = at[i] * np.uint32(sizes[attribute]) + cells[attribute, i]
    return int(size)


@kernel
def _unpack(values: Ints, out: Ints) -> None:
    """Add what is held of each cell to its four sums, and empty it."""
    low = np.int64((1 << _LOW) - 1)
    for c in range(values.shape[0]):
        out[c, 0] += values[c, 0] >> _LOW
        out[c, 1] += values[c, 1] >> _LOW
        out[c, 2] += values[c, 0] & low
        out[c, 3] += values[c, 1] & low
    values[:] = 0


# ---- Sums of simulated outcomes: 64 draws a word, added up plane by plane as bits ----

_PLANES = 32  # bits of a count


def lane_sums(words: ArrayLike, order: ArrayLike, starts: ArrayLike) -> NDArray[np.int32]:
    """How many rows of each cell have each bit set.

    Parameters
    ----------
    words : uint64 array of shape (w, n)
        64 draws of each row's outcome in a word. It is copied unless the words of a row lie together.
    order : int64 array of shape (n,)
        Rows, cell by cell.
    starts : int64 array of shape (cells + 1,)
        Where each cell begins in `order`, and where the last ends.

    Returns
    -------
    int32 array of shape (cells, 64 w)
    """
    bits = as_readonly(np.transpose(words), np.uint64)
    cells = as_readonly(order, np.int64), as_readonly(starts, np.int64)
    if few(bits.size, WORDS_PER_ROW, often=True):
        return plain_lane_sums(bits, *cells)
    out = np.zeros((np.size(starts) - 1, LANES * bits.shape[1]), dtype=np.int32)
    _lane_sums(bits, *cells, out)
    return out


@inlined
def _added(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Add three bits in each lane: the carry, and the sum."""
    half = a ^ b
    return (a & b) | (half & c), half ^ c


@kernel
def _lane_sums(words: Ids, order: Ints, starts: Ints, out: NDArray[np.int32]) -> None:
    wide = words.shape[1]
    planes, waiting = np.zeros((_PLANES, wide), dtype=np.uint64), np.zeros((_PLANES, wide), dtype=np.uint64)
    rows, carry = np.zeros((8, wide), dtype=np.uint64), np.zeros(wide, dtype=np.uint64)
    for c in range(starts.shape[0] - 1):
        planes[:], waiting[:] = 0, 0
        first, last = starts[c], starts[c + 1]
        for eight in range((last - first + 7) >> 3):
            # (1) Eight rows are copied side by side, so that the loops over words are of neighbours
            _copy(words, order[first + 8 * eight : last], rows)
            # (2) They enter the planes of ones, twos and fours by seven full adders: the carry stands for eight
            for w in range(wide):
                t0, one = _added(planes[0, w], rows[0, w], rows[1, w])
                t1, one = _added(one, rows[2, w], rows[3, w])
                t2, one = _added(one, rows[4, w], rows[5, w])
                t3, planes[0, w] = _added(one, rows[6, w], rows[7, w])
                f0, two = _added(planes[1, w], t0, t1)
                f1, planes[1, w] = _added(two, t2, t3)
                carry[w], planes[2, w] = _added(planes[2, w], f0, f1)
            # (3) Every other carry waits for the next, and enters the plane of its worth together with it
            k, turn = 3, eight
            while turn & 1:
                for w in range(wide):
                    carry[w], planes[k, w] = _added(planes[k, w], waiting[k, w], carry[w])
                    waiting[k, w] = 0
                k += 1
                turn >>= 1
            for w in range(wide):
                waiting[k, w] = carry[w]
        # (4) A lane's count is read off its bit in each plane
        for k in range(_PLANES):
            for w in range(wide):
                _read(planes[k, w], k, out[c, w * LANES : (w + 1) * LANES])
                _read(waiting[k, w], k, out[c, w * LANES : (w + 1) * LANES])


@kernel
def _copy(words: Ids, order: Ints, rows: Ids) -> None:
    for k in range(rows.shape[0]):
        if k < order.shape[0]:
            at = order[k]
            for w in range(rows.shape[1]):
                rows[k, w] = words[at, w]
        else:
            rows[k, :] = 0


@kernel
def _read(plane: np.uint64, worth: int, lanes: NDArray[np.int32]) -> None:
    if plane:
        for lane in range(LANES):
            lanes[lane] += np.int64((plane >> np.uint64(lane)) & np.uint64(1)) << worth


# ---- The box that deviates most, in the data and in every draw ----


def box_peaks(
    events: NDArray[np.int32], first: ArrayLike, second: ArrayLike, mean: ArrayLike, scale: ArrayLike, peaks: Floats
) -> None:
    """Raise `peaks` to the largest residual of all boxes, too many events and too few, in every draw.

    Parameters
    ----------
    events : int32 array of shape (a, b, draws)
        Events in each cell of a table of two attributes.
    first, second : int64 arrays of shape (k, 4) and (l, 4)
        Sets of cells of each attribute: cells from column 0 to below 1, and from 2 to below 3.
    mean : float64 array of shape (2, k, l)
        Cases of each box that are not too many yet, and that are not too few.
    scale : float64 array of shape (k, l)
        Of each box; one of scale 0 is not looked at.
    peaks : float64 array of shape (2, draws), written
        Largest ``scale (events - mean[0])``, and largest ``scale (mean[1] - events)``.
    """
    sets = as_readonly(first, np.int64), as_readonly(second, np.int64)
    boxes = as_readonly(mean, np.float64), as_readonly(scale, np.float64)
    if few(np.size(scale) * events.shape[2], BOXES_PER_ROW, often=True):
        plain_box_peaks(as_readonly(events, np.int32), *sets, *boxes, peaks)
    else:
        _box_peaks(as_readonly(events, np.int32), *sets, *boxes, peaks)


@kernel
def _box_peaks(
    events: NDArray[np.int32], first: Ints, second: Ints, mean: Floats, scale: Floats, peaks: Floats
) -> None:
    b, draws = events.shape[1:]
    up, down = peaks[0], peaks[1]
    # (1) Sums over the first cells of the first attribute: those of a set are differences
    over, run = _over(events), np.zeros((b + 1, draws), dtype=np.int32)
    for k in range(first.shape[0]):
        if not scale[k].any():
            continue
        # (2) For one set of the first attribute, sums over the first cells of the second
        s, e, s2, e2 = first[k]
        for j in range(b):
            for d in range(draws):
                more = over[e, j, d] - over[s, j, d] + over[e2, j, d] - over[s2, j, d]
                run[j + 1, d] = run[j, d] + more
        # (3) Each set of the second attribute makes a box with it
        for m in range(second.shape[0]):
            f, most, least = scale[k, m], mean[0, k, m], mean[1, k, m]
            if f > 0.0:
                t, u, t2, u2 = second[m]
                for d in range(draws):
                    inside = run[u, d] - run[t, d] + run[u2, d] - run[t2, d]
                    up[d] = max(up[d], f * (inside - most))
                    down[d] = max(down[d], f * (least - inside))


@kernel
def _over(events: NDArray[np.int32]) -> NDArray[np.int32]:
    """The sums over none, one, two ... cells of the first axis; NumPy's take thrice as long."""
    a, b, draws = events.shape
    out = np.zeros((a + 1, b, draws), dtype=np.int32)
    for i in range(a):
        for j in range(b):
            for d in range(draws):
                out[i + 1, j, d] = out[i, j, d] + events[i, j, d]
    return out


def subset_peaks(events: ArrayLike, levels: ArrayLike, extra: float, fewest: float, peaks: Floats) -> None:
    """Raise `peaks` to the largest ``|S| / sqrt(V + extra)`` over subsets of levels, not of all, that have rows enough.

    Linear-time subset scanning (Neill 2012): only the first one, two, three ... levels in the order of ``S / V`` are
    looked at. No other subset is above zero and better than each of these and all levels together. Where few rows are
    asked for; otherwise one that reaches them with a level out of turn may be better, and is not looked for.

    Parameters
    ----------
    events : int32 array of shape (levels, draws)
    levels : float64 array of shape (levels, 3)
        Expected events, null variance and rows of each; one without variance is left out.
    extra, fewest : float
        What is added to the variance, and the fewest rows of a subset.
    peaks : float64 array of shape (2, draws), written
        As `box_peaks`. A draw that cannot exceed what it holds costs a pass over its levels.
    """
    inputs = as_readonly(events, np.int32), as_readonly(levels, np.float64), float(extra), float(fewest)
    if few(inputs[0].size, SEEN_PER_ROW, often=True):
        plain_subset_peaks(*inputs, peaks)
    else:
        _subset_peaks(*inputs, peaks)


@kernel
def _most(events: NDArray[np.int32], levels: Floats, extra: float) -> Floats:
    """What no subset's square exceeds in a draw: S^2 <= V sum S_i^2 / V_i over its levels (Cauchy, Schwarz)."""
    out, whole = np.zeros((2, events.shape[1])), 0.0
    for v in range(levels.shape[0]):
        if levels[v, 1] > 0.0:
            whole += levels[v, 1]
            for d in range(events.shape[1]):
                r = events[v, d] - levels[v, 0]
                out[0, d] += max(r, 0.0) ** 2 / levels[v, 1]
                out[1, d] += min(r, 0.0) ** 2 / levels[v, 1]
    out *= SLACK * whole / max(whole + extra, TINY)
    return out


@inlined
def _reached(peak: float, most: float) -> bool:
    """Tell whether a peak is at least the root of what no square of another exceeds."""
    return peak >= 0.0 and peak * peak >= most


# Why no other subset is better. The points (V, S) of all subsets span a zonotope. (1) For z >= 0 the points where
# S / sqrt(V + c) is at most z, S <= z sqrt(V + c), are a convex set, for the square root is concave; so the largest
# value, if it is above zero, is taken at a vertex. (2) A vertex is the subset of the levels i with a S_i + b V_i > 0 in
# a direction (a, b). As the value grows with S it is on the upper side, a > 0: the levels with S_i / V_i > -b / a,
# the first ones of the order. Levels of one ratio lie on one edge of the zonotope, so their order does not matter.
@kernel
def _subset_peaks(events: NDArray[np.int32], levels: Floats, extra: float, fewest: float, peaks: Floats) -> None:
    ratio, order = np.empty(levels.shape[0]), np.empty(levels.shape[0], dtype=np.int64)
    most = _most(events, levels, extra)
    for d in range(events.shape[1]):
        if _reached(peaks[0, d], most[0, d]) and _reached(peaks[1, d], most[1, d]):
            continue
        # (1) Levels in the order of their residual in units of their null variance, by insertion: they are few
        kept = 0
        for v in range(levels.shape[0]):
            if levels[v, 1] > 0.0:
                r = (events[v, d] - levels[v, 0]) / levels[v, 1]
                at = kept
                while at > 0 and ratio[at - 1] < r:
                    ratio[at], order[at] = ratio[at - 1], order[at - 1]
                    at -= 1
                ratio[at], order[at] = r, v
                kept += 1
        # (2) From the top for too many events, from the bottom for too few
        for side in range(2):
            s, variance, rows = 0.0, 0.0, 0.0
            for i in range(kept - 1):
                v = order[i if side == 0 else kept - 1 - i]
                s += events[v, d] - levels[v, 0]
                variance += levels[v, 1]
                rows += levels[v, 2]
                if rows >= fewest:
                    z = (s if side == 0 else -s) / np.sqrt(variance + extra)
                    peaks[side, d] = max(peaks[side, d], z)


# ---- What clusters add up to in boxes of two attributes ----

PARTS = 4  # of a row: one, its weight, its weighted residual, and its weighted score
CLUSTERS, INSIDE, SQUARE, CROSS, SPREAD, LARGEST, MOST_P, MOST_Q = range(8)  # of a box
BOX_PARTS = 8
CLUSTER_BOXES_PER_ROW = 8  # of clusters, that take as long as a row of other kernels


def cluster_boxes(cells: ArrayLike, starts: ArrayLike, parts: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """What clusters add up to in the boxes of two attributes.

    Parameters
    ----------
    cells : int64 array of shape (2, n)
        Cell of each row in either attribute; rows of one cluster lie together.
    starts : int64 array of shape (m + 1,)
        Where each cluster begins, and where the last ends.
    parts : float64 array of shape (n, 4)
        One, weight w, weighted residual and weighted score of each row.
    first, second : int64 arrays of shape (k, 4) and (l, 4)
        Sets of cells of each attribute: cells from column 0 to below 1, and from 2 to below 3.

    Returns
    -------
    float64 array of shape (k, l, 8)
        With t, W and P a cluster's sums of residuals, weights and scores in the box: clusters with rows in it, and with
        no row elsewhere; sums of ``t^2``, ``t W`` and ``W^2``; the largest W, P and ``W - P``.
    """
    rows = as_readonly(cells, np.int64), as_readonly(starts, np.int64), as_readonly(parts, np.float64)
    sets = as_readonly(first, np.int64), as_readonly(second, np.int64)
    if few(len(rows[1]) * len(sets[0]) * len(sets[1]), CLUSTER_BOXES_PER_ROW):
        return plain_cluster_boxes(*rows, *sets)
    out = np.zeros((len(sets[0]), len(sets[1]), BOX_PARTS))
    _cluster_boxes(*rows, *sets, out)
    return out


@kernel
def _cluster_boxes(cells: Ints, starts: Ints, parts: Floats, first: Ints, second: Ints, out: Floats) -> None:
    a = max(cells[0].max() + 1, first[:, 1].max(), first[:, 3].max())
    b = max(cells[1].max() + 1, second[:, 1].max(), second[:, 3].max())
    over, run = np.zeros((a + 1, b, PARTS)), np.zeros((b + 1, PARTS))
    for g in range(starts.shape[0] - 1):
        _cluster_over(cells, parts, starts[g], starts[g + 1], over)
        rows = float(starts[g + 1] - starts[g])
        for k in range(first.shape[0]):
            # For one set of the first attribute, sums over the first cells of the second: each set of it makes a box
            s, e, s2, e2 = first[k]
            for j in range(b):
                for f in range(PARTS):
                    run[j + 1, f] = run[j, f] + (over[e, j, f] - over[s, j, f] + over[e2, j, f] - over[s2, j, f])
            if run[b, 0] > 0.5:
                _add(run, second, rows, out[k])


@kernel
def _cluster_over(cells: Ints, parts: Floats, start: int, end: int, over: Floats) -> None:
    """Put a unit's sums over none, one, two ... cells of the first attribute."""
    over[:] = 0.0
    for i in range(start, end):
        for f in range(PARTS):
            over[cells[0, i] + 1, cells[1, i], f] += parts[i, f]
    for c in range(over.shape[0] - 1):
        for j in range(over.shape[1]):
            for f in range(PARTS):
                over[c + 1, j, f] += over[c, j, f]


@kernel
def _add(run: Floats, second: Ints, rows: float, boxes: Floats) -> None:
    """Add a unit to the boxes of one set of the first attribute."""
    for m in range(second.shape[0]):
        x, y, x2, y2 = second[m]
        inside = run[y, 0] - run[x, 0] + run[y2, 0] - run[x2, 0]
        if inside > 0.5:
            w = run[y, 1] - run[x, 1] + run[y2, 1] - run[x2, 1]
            t = run[y, 2] - run[x, 2] + run[y2, 2] - run[x2, 2]
            p = run[y, 3] - run[x, 3] + run[y2, 3] - run[x2, 3]
            boxes[m, CLUSTERS] += 1.0
            boxes[m, INSIDE] += 1.0 if inside > rows - 0.5 else 0.0
            boxes[m, SQUARE] += t * t
            boxes[m, CROSS] += t * w
            boxes[m, SPREAD] += w * w
            boxes[m, LARGEST] = max(boxes[m, LARGEST], w)
            boxes[m, MOST_P] = max(boxes[m, MOST_P], p)
            boxes[m, MOST_Q] = max(boxes[m, MOST_Q], w - p)


# ---- the same in NumPy, for few rows ----

Events = NDArray[np.int32]

DRAWS = 1024  # at once


def plain_box_sums(cells: Cells, p: Floats, y: Labels, tables: Ints, sizes: Ints, out: Ints) -> None:
    """Add rows to the tables of several combinations of attributes."""
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


def plain_lane_sums(words: NDArray[np.uint64], order: Ints, starts: Ints) -> Events:
    """How many rows of each cell have each bit set; the words of a row lie together."""
    little = words.astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(little, axis=1, bitorder="little")
    out = np.zeros((len(starts) - 1, bits.shape[1]), dtype=np.int32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        out[filled] = np.add.reduceat(bits[order[: starts[-1]]], starts[filled].astype(np.intp), axis=0, dtype=np.int32)
    return out


def plain_box_peaks(events: Events, first: Ints, second: Ints, mean: Floats, scale: Floats, peaks: Floats) -> None:
    """Raise `peaks` to the largest residual of all boxes, too many cases and too few, in every draw."""
    looked = scale > 0.0
    if looked.any(axis=1).sum() > looked.any(axis=0).sum():  # one product for each set of the attribute that has fewer
        plain_box_peaks(events.transpose(1, 0, 2), second, first, mean.transpose(0, 2, 1), scale.T, peaks)
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
    """1 for each cell of a set, a row a set."""
    (first, last, second, end), cell = (own[:, None] for own in sets.T), np.arange(cells)
    inside: Floats = ((first <= cell) & (cell < last) | (second <= cell) & (cell < end)).astype(np.float64)
    return inside


def plain_subset_peaks(events: Events, levels: Floats, extra: float, fewest: float, peaks: Floats) -> None:
    """Raise `peaks` to the largest standardised residual over subsets of levels, not of all, that have rows enough."""
    kept = np.flatnonzero(levels[:, 1] > 0.0)
    if len(kept) < 2:
        return
    expected, variance, rows = levels[kept].T
    beyond = events[kept] - expected[:, None]
    share = SLACK * variance.sum() / max(variance.sum() + extra, TINY) / variance
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


def plain_cluster_boxes(cells: Ints, starts: Ints, parts: Floats, first: Ints, second: Ints) -> Floats:
    """Eight parts of each box of two sets."""
    m, k = (max(int(c.max()) + 1, int(sets[:, 1::2].max())) for c, sets in zip(cells, (first, second), strict=True))
    out = np.zeros((len(first), len(second), BOX_PARTS))
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
