"""Rows as a kernel reads them: checked, coded, scaled, and equal ones joined."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import names
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.specs.coding import Coding, Encoded, codings
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.kernel_sums import Kernel, Rows

Floats = NDArray[np.float64]

NULL = "given score and covariates, outcomes are independent with the probabilities stated"
CONTRADICTED = "a row with score 0 or 1 has the other outcome"
SINGLE = "a single row has no pairs: pass two rows or more"
LEAST_DRAWS = 19  # so that a p-value can be 0.05
FLAT = 1e-12  # a deviation below it is rounding: every score is the same


def checked_rows(data: object) -> Predictions:
    """Return rows of two classes, or refuse what is none and what no proof covers."""
    rows = checked_data(data, Predictions)
    if rows.weights is not None:
        raise NotComputable("the kernel test has no null for weighted rows: leave the weights out, and say so")
    if rows.n < 2:
        raise NotComputable(SINGLE)
    return rows


def coded(data: Predictions, variables: Iterable[str] | str | None) -> tuple[Coding, ...]:
    """Return how the covariates asked for are coded; refuse none."""
    how = codings(data.covariates, None if variables is None else names("variables", variables, what="a covariate"))
    if not how:
        raise BadInput("no covariates: pass predictions(..., covariates=...) or use detect.kernel_calibration_test")
    return how


def rows_of(data: Predictions, ids: NDArray[np.uint64]) -> Rows:
    """Return the rows of predictions, with their clusters."""
    clusters = None if data.cluster is None else np.unique(data.cluster, return_inverse=True)[1].astype(np.int64)
    if clusters is not None and not clusters.any():
        raise NotComputable("all rows are one cluster: nothing tells its noise from a bias")
    return Rows(data.p, np.ones(data.n), data.y.astype(np.float64), ids, clusters)


def scaled_kernel(p: Floats, encoded: Encoded) -> Kernel:
    """Return the kernel of width one: standardised score first, then the numbers; categories as penalties.

    A category counts as a standardised coordinate: rows of different levels are at squared distance ``2 / P(differ)``,
    which takes ``1 / P(differ)`` off the exponent. A category of one level is left out.
    """
    spread = float(p.std())
    score = (p - p.mean()) / (spread if spread > FLAT else 1.0)
    differ = np.array([1.0 - np.sum((np.bincount(c) / len(p)) ** 2) for c in encoded.codes.T])
    kept = differ > 0
    return Kernel(np.column_stack([score, encoded.scaled]), encoded.codes[:, kept], 1.0 / differ[kept])


def narrowed(kernel: Kernel, score_width: float, covariate_width: float) -> Kernel:
    """Return a kernel of width one with other widths."""
    widths = np.full(kernel.points.shape[1], covariate_width)
    widths[0] = score_width
    return Kernel(kernel.points / widths, kernel.codes, kernel.penalties / covariate_width**2)


def joined(kernel: Kernel, rows: Rows) -> tuple[Kernel, Rows]:
    """Join equal rows into cells if that leaves at most half as many; rows in clusters stay apart."""
    if rows.clusters is not None:
        return kernel, rows
    table = np.column_stack([rows.rate, kernel.points[:, 1:], kernel.codes])
    order = np.lexsort(table.T)
    ordered = table[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    if len(starts) > len(order) // 2:
        return kernel, rows
    count, cases = (np.add.reduceat(v[order], starts) for v in (rows.rows, rows.cases))
    first = order[starts]
    cells = Kernel(kernel.points[first], kernel.codes[first], kernel.penalties)
    return cells, Rows(rows.rate[first], count, cases)
