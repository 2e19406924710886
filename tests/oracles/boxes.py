"""Boxes of traits, in plain NumPy: slow, short, and meant to be read first."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import LANES

Array = NDArray[Any]


def box_sums(cells: Array, p: Array, y: Array, tables: Array, sizes: Array, out: Array) -> None:
    """Whole numbers, added at the cell of each row in each table."""
    q = np.minimum((np.asarray(p) * 2.0**30).astype(np.int64), (1 << 30) - 1)
    columns = np.stack([np.ones_like(q), np.asarray(y).astype(np.int64), q, (q * ((1 << 30) - q)) >> 30], axis=1)
    for *attributes, first in tables:
        own = [t for t in attributes if t >= 0]
        at = np.ravel_multi_index([cells[t] for t in own], [sizes[t] for t in own])
        np.add.at(out, first + at, columns)


def lane_sums(words: Array, order: Array, starts: Array) -> Array:
    """Every bit by itself, added up over the rows of each cell."""
    lanes = np.arange(LANES, dtype=np.uint64)
    bits = ((words[:, :, None] >> lanes) & np.uint64(1)).astype(np.int32)  # word, row, lane
    rows = [order[a:b] for a, b in pairwise(starts)]
    sums = [bits[:, own].sum(axis=1, dtype=np.int32).reshape(-1) for own in rows]
    return np.array(sums, dtype=np.int32).reshape(len(rows), LANES * len(words))


def box_peaks(events: Array, first: Array, second: Array, mean: Array, scale: Array, peaks: Array) -> None:
    """Each box by itself."""
    for k, own in enumerate(first):
        for m, other in enumerate(second):
            if scale[k, m] > 0.0:
                inside = events[_cells(own)][:, _cells(other)].sum(axis=(0, 1))
                beyond = inside - mean[0, k, m], mean[1, k, m] - inside
                peaks[:] = np.maximum(peaks, scale[k, m] * np.array(beyond))


def _cells(own: Array) -> list[int]:
    first, last, second, end = own
    return [*range(first, last), *range(second, end)]


def subset_peaks(events: Array, levels: Array, extra: float, fewest: float, peaks: Array) -> None:
    """Levels in order, from either end."""
    kept = np.flatnonzero(levels[:, 1] > 0.0)
    expected, variance, rows = levels[kept].T
    for d in range(events.shape[1]):
        residual = events[kept, d] - expected
        order = np.argsort(-residual / variance, kind="stable")
        for side, (sign, own) in enumerate(((1.0, order), (-1.0, order[::-1]))):
            s, v, n = (np.cumsum(column[own])[:-1] for column in (residual, variance, rows))
            z = sign * s / np.sqrt(v + extra)
            peaks[side, d] = max([peaks[side, d], *z[n >= fewest]])


def cluster_boxes(cells: Array, starts: Array, parts: Array, first: Array, second: Array) -> Array:
    """Each box and each unit by itself."""
    out = np.zeros((len(first), len(second), 8))
    for k, own in enumerate(first):
        for m, other in enumerate(second):
            for a, b in pairwise(starts):
                rows = np.isin(cells[0, a:b], _cells(own)) & np.isin(cells[1, a:b], _cells(other))
                if rows.any():
                    _, w, t, p = parts[a:b][rows].sum(axis=0)
                    out[k, m, :5] += 1.0, rows.all(), t * t, t * w, w * w
                    out[k, m, 5:] = np.maximum(out[k, m, 5:], (w, p, w - p))
    return out
