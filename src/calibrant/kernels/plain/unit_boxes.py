"""What units add up to in boxes of two traits: as `calibrant.kernels.unit_boxes`, to rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.unit_boxes import BOX_PARTS

Cells = NDArray[np.int64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HELD = 1 << 22  # numbers at once


def unit_boxes(cells: Cells, starts: Ints, parts: Floats, first: Ints, second: Ints) -> Floats:
    """Return eight parts of each box of two sets."""
    a, b = (max(int(c.max()) + 1, int(sets[:, 1::2].max())) for c, sets in zip(cells, (first, second), strict=True))
    out = np.zeros((len(first), len(second), BOX_PARTS))
    units = len(starts) - 1
    step = max(1, HELD // (4 * len(first) * len(second)))
    for at in range(0, units, step):
        # (1) Sums of a few units by cell, then by set of the first trait, then of the second
        ends = starts[at : at + step + 1]
        rows = slice(ends[0], ends[-1])
        unit = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        where = (unit * a + cells[0, rows]) * b + cells[1, rows]
        shape = (len(ends) - 1, a, b)
        table = np.stack(
            [np.bincount(where, v, int(np.prod(shape))).astype(np.float64).reshape(shape) for v in parts[rows].T],
            axis=-1,
        )
        count, w, t, p = np.moveaxis(_sets(_sets(table, first, 1), second, 2), -1, 0)
        # (2) What they are in each box, squared and at most
        there = count > 0.5
        w, t, p = (np.where(there, v, 0.0) for v in (w, t, p))
        whole = count > np.diff(ends)[:, None, None] - 0.5
        sums = (there, there & whole, t * t, t * w, w * w)
        out[..., :5] += np.stack([v.sum(axis=0) for v in sums], axis=-1)
        most = np.stack([v.max(axis=0) for v in (w, p, w - p)], axis=-1)
        out[..., 5:] = np.maximum(out[..., 5:], most)
    return out


def _sets(table: Floats, sets: Ints, axis: int) -> Floats:
    below = np.concatenate([np.zeros_like(table.take([0], axis)), np.cumsum(table, axis=axis)], axis=axis)
    ends = [below.take(sets[:, k], axis) for k in range(4)]
    out: Floats = ends[1] - ends[0] + ends[3] - ends[2]
    return out
