"""Integer features in plain NumPy: slow, short, and meant to be read first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.features import PER_UNIT, bell_table

Array = NDArray[Any]


def bells(points: Array, marks: Array, scale: float) -> Array:
    """Squared distances, looked up."""
    table = bell_table()
    squared = (points**2).sum(axis=1)[:, None] + (marks**2).sum(axis=1)[None, :] - 2.0 * (points @ marks.T)
    return table[np.minimum(squared * (scale * PER_UNIT), len(table) - 1.0).astype(np.int64)]


def looked_up(cells: Array, tables: Sequence[Array], starts: Array, out: Array) -> None:
    """Write functions of single coordinates into the columns of `out` from ``starts[j]``."""
    for j, table in enumerate(tables):
        out[:, starts[j] : starts[j] + table.shape[1]] = table[cells[:, j]]
