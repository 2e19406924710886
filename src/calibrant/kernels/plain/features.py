"""Features of score and covariates in whole steps: those of `calibrant.kernels.features`, to the bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def bells(cross: Floats, own: Floats, marks: Floats, scale: float, table: Floats) -> None:
    """Turn products of coordinates into bells, in place."""
    squared = own[:, None] + marks - 2.0 * cross
    cross[:] = table[np.minimum(squared * scale, len(table) - 1.0).astype(np.int64)]


def looked_up(cells: Ints, table: NDArray[np.int16], first: Ints, start: Ints, out: Floats) -> None:
    """Write ``tables[j][cells[:, j]]`` into the columns of `out`, from that table's first."""
    ends = [*first.tolist(), len(table)]
    for j in range(len(first)):
        a, b, to, after = ends[j], ends[j + 1], int(start[j]), int(start[j + 1])
        if after > to:
            out[:, to:after] = table[a:b].reshape(-1, after - to)[cells[:, j]]
