"""Sums of outcomes and scores in cells along a variable, compiled; twins of `strata_reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.bins import _sealed
from calibrant.kernels.strata_reference import COLUMNS


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _locate(x: Any, edges: Any, out: Any) -> None:
    """Binary search without a branch, so that values in random order cost no mispredictions."""
    size = np.uint32(edges.shape[0])
    for i in range(x.shape[0]):
        v = x[i]
        if np.isnan(v):
            out[i] = np.uint32(size + np.uint32(1))
            continue
        first, left = np.uint32(0), size
        while left > np.uint32(1):
            half = left >> np.uint32(1)
            first = first + half if edges[first + half - np.uint32(1)] <= v else first
            left -= half
        if left == np.uint32(1) and edges[first] <= v:
            first += np.uint32(1)
        out[i] = first


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


def locate(x: Any, edges: Any) -> Any:
    """Return the cell of each value; see `strata_reference.locate`."""
    out = np.empty(len(x), dtype=np.int32)
    _locate(_sealed(x, np.float64), _sealed(edges, np.float64), out)
    return out


def strata_sums(cell: Any, x: Any, y: Any, p: Any, weight: Any, cells: int, confidence: bool) -> Any:
    """Return eight sums a cell; see `strata_reference.strata_sums`."""
    out = np.zeros((cells, COLUMNS))
    _sums(
        _sealed(cell, np.int32), _sealed(x, np.float64), _sealed(y, np.int8), _sealed(p, np.float64),
        _sealed(weight, np.float64), bool(confidence), out,
    )  # fmt: skip
    return out
