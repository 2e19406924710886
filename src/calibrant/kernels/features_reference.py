"""Integer features of score and covariates, so that sums over rows are exact: NumPy twin of `features`, meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.reference import mix

COORDINATE = 4096  # steps of a coordinate in one standard deviation
REACH = 8  # standard deviations within which coordinates are kept
CELLS = 4096  # of the table of a function of one coordinate, 16 steps each
UNIT = 8192  # steps of a feature in one
LOGIT = 512  # steps of the logit in one
PER_UNIT = 1024  # entries of the bell's table per unit of the exponent
VARIANCE = 1 << 18  # steps of p (1 - p) in one
SCORE_STEPS = 1 << 30  # steps of the score in one
HALF = 15  # bits of the lower half of a score's steps
ROWS = 2048  # rows whose sums are exact: features times outcomes in float32, times features and variances in float64
DITHER = np.uint64(0x8D12A95E3B6C70F4)


def bell_table() -> Any:
    """Return ``exp(-t)`` in feature steps at the middles of intervals of t; the last entry is zero."""
    last = int(np.log(2.0 * UNIT) * PER_UNIT) + 1
    table = np.rint(UNIT * np.exp(-(np.arange(last + 1) + 0.5) / PER_UNIT))
    table[-1] = 0.0
    return table


def bells(points: Any, marks: Any, scale: float) -> Any:
    """Return ``exp(-scale |a - b|^2)`` for rows a, b of whole coordinates, in feature steps (float64, whole)."""
    table = bell_table()
    squared = (points**2).sum(axis=1)[:, None] + (marks**2).sum(axis=1)[None, :] - 2.0 * (points @ marks.T)
    return table[np.minimum(squared * (scale * PER_UNIT), len(table) - 1.0).astype(np.int64)]


def looked_up(cells: Any, tables: Any, starts: Any, out: Any) -> None:
    """Write functions of single coordinates, ``tables[j][cells[:, j]]``, into the columns of `out` from ``starts[j]``."""
    for j, table in enumerate(tables):
        out[:, starts[j] : starts[j] + table.shape[1]] = table[cells[:, j]]


def flagged(columns: Any, starts: Any, out: Any) -> None:
    """Write ones into the columns ``starts[j] + columns[:, j]`` of `out`, which holds zeros there."""
    rows = np.arange(len(columns))
    for j in range(columns.shape[1]):
        out[rows, starts[j] + columns[:, j]] = 1.0


def coordinates(z: Any) -> Any:
    """Return standardised values as whole steps (float64), kept within reach."""
    return np.clip(np.rint(z * COORDINATE), -REACH * COORDINATE, REACH * COORDINATE - 1)


def variances(p: Any, ids: Any) -> Any:
    """Return ``p (1 - p)`` in whole steps, rounded up or down at random by identity, so that rare events add up."""
    u = (mix(np.asarray(ids, dtype=np.uint64) ^ DITHER) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.floor(p * (1.0 - p) * VARIANCE + u)


def logits(p: Any) -> Any:
    """Return the logit of the score in whole steps, kept within plus and minus 16."""
    with np.errstate(divide="ignore"):
        return np.rint(np.clip(np.log(p) - np.log1p(-p), -UNIT / LOGIT, UNIT / LOGIT) * LOGIT)
