"""Boxes of two traits, by units: what a unit's rows add up to in every box, squared and at most."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.runtime import few, kernel, plain, sealed

Cells = NDArray[np.int64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PARTS = 4  # of a row: one, its weight, its weighted residual, and its weighted score
UNITS, INSIDE, SQUARE, CROSS, SPREAD, LARGEST, MOST_P, MOST_Q = range(8)  # of a box
BOX_PARTS = 8
BOXES_PER_ROW = 8  # of units, that take as long as a row of other kernels


def unit_boxes(cells: ArrayLike, starts: ArrayLike, parts: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Return what units add up to in the boxes of two traits.

    Parameters
    ----------
    cells : int64 array of shape (2, n)
        Cell of each row in either trait; rows of one unit lie together.
    starts : int64 array of shape (m + 1,)
        Where each unit begins, and where the last ends.
    parts : float64 array of shape (n, 4)
        One, weight w, weighted residual and weighted score of each row.
    first, second : int64 arrays of shape (k, 4) and (l, 4)
        Sets of cells of each trait: cells from column 0 to below 1, and from 2 to below 3.

    Returns
    -------
    float64 array of shape (k, l, 8)
        With t, W and P a unit's sums of residuals, weights and scores in the box: units with rows in it, and with no
        row elsewhere; sums of ``t^2``, ``t W`` and ``W^2``; the largest W, P and ``W - P``.
    """
    rows = sealed(cells, np.int64), sealed(starts, np.int64), sealed(parts, np.float64)
    sets = sealed(first, np.int64), sealed(second, np.int64)
    if few(len(rows[1]) * len(sets[0]) * len(sets[1]), BOXES_PER_ROW):
        found: Floats = plain(__name__).unit_boxes(*rows, *sets)
        return found
    out = np.zeros((len(sets[0]), len(sets[1]), BOX_PARTS))
    _unit_boxes(*rows, *sets, out)
    return out


@kernel
def _unit_boxes(cells: Cells, starts: Ints, parts: Floats, first: Ints, second: Ints, out: Floats) -> None:
    a = max(cells[0].max() + 1, first[:, 1].max(), first[:, 3].max())
    b = max(cells[1].max() + 1, second[:, 1].max(), second[:, 3].max())
    over, run = np.zeros((a + 1, b, PARTS)), np.zeros((b + 1, PARTS))
    for g in range(starts.shape[0] - 1):
        _over(cells, parts, starts[g], starts[g + 1], over)
        rows = float(starts[g + 1] - starts[g])
        for k in range(first.shape[0]):
            # For one set of the first trait, sums over the first cells of the second: each set of it makes a box
            s, e, s2, e2 = first[k]
            for j in range(b):
                for f in range(PARTS):
                    run[j + 1, f] = run[j, f] + (over[e, j, f] - over[s, j, f] + over[e2, j, f] - over[s2, j, f])
            if run[b, 0] > 0.5:
                _add(run, second, rows, out[k])


@kernel
def _over(cells: Cells, parts: Floats, start: int, end: int, over: Floats) -> None:
    """Put a unit's sums over none, one, two ... cells of the first trait."""
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
    """Add a unit to the boxes of one set of the first trait."""
    for m in range(second.shape[0]):
        x, y, x2, y2 = second[m]
        inside = run[y, 0] - run[x, 0] + run[y2, 0] - run[x2, 0]
        if inside > 0.5:
            w = run[y, 1] - run[x, 1] + run[y2, 1] - run[x2, 1]
            t = run[y, 2] - run[x, 2] + run[y2, 2] - run[x2, 2]
            p = run[y, 3] - run[x, 3] + run[y2, 3] - run[x2, 3]
            boxes[m, UNITS] += 1.0
            boxes[m, INSIDE] += 1.0 if inside > rows - 0.5 else 0.0
            boxes[m, SQUARE] += t * t
            boxes[m, CROSS] += t * w
            boxes[m, SPREAD] += w * w
            boxes[m, LARGEST] = max(boxes[m, LARGEST], w)
            boxes[m, MOST_P] = max(boxes[m, MOST_P], p)
            boxes[m, MOST_Q] = max(boxes[m, MOST_Q], w - p)
