r"""Ranges of the gap and the error of some days' rows that hold at every look, from a few sums of each day.

A range at a look has an error probability of its own, ``6 alpha / (pi^2 k^2)`` at the k-th, and these add up to alpha
over all looks; so a verdict that follows from a range is never wrong, at any look, with probability at least ``1 -
alpha``, whatever decides when one looks.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import Above, gammas, log_curvature
from calibrant.stats.bounds import linear_cost
from calibrant.stats.cells import summed
from calibrant.stats.evidence import Gap, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.integer]

# What is kept of one population and day, in this order. A cluster is a row by itself where rows are independent; its
# residual is the sum of ``y - p`` over its rows, its size how many they are.
CLUSTERS, ROWS, RESIDUAL, SQUARES, CROSS, SIZES, LARGEST, PREDICTED, NOISE, SHARED = range(10)
SUMS = 10
LEVELS = 100  # rounding steps of the score: whole percent
LARGEST_BET = 0.45  # of the wealth that a cluster may lose by each point of difference to the hypothesis
WIDER = 1.5  # how far beyond the noise of independent, and of equal, rows the bets reach


def look_alpha(alpha: float, look: int) -> float:
    """The error probability of the k-th look; over all looks they add up to alpha."""
    return 6.0 * alpha / (math.pi**2 * look**2)


def day_sums(y: Floats, p: Floats, codes: Codes, size: int, cluster: Codes | None) -> Floats:
    """The sums of a day by population, shape (size, SUMS): `codes` says which population each row is of."""
    if cluster is None:
        of, residual, rows, variance = codes, y - p, np.ones(len(p)), p * (1.0 - p)
    else:
        at, row = np.unique(codes.astype(np.int64) * (int(cluster.max()) + 1) + cluster, return_inverse=True)
        of = at // (int(cluster.max()) + 1)
        residual, rows, variance = (summed(row, v) for v in (y - p, np.ones(len(p)), p * (1.0 - p)))
    out = np.zeros((size, SUMS))
    columns = (
        np.ones(len(of)),
        rows,
        residual,
        residual**2,
        residual * rows,
        rows**2,
        None,
        None,
        variance,
        variance * rows,
    )
    for i, values in enumerate(columns):
        if values is not None:
            out[:, i] = summed(of, values, size)
    out[:, PREDICTED] = summed(codes, p, size)
    np.maximum.at(out[:, LARGEST], of, rows)
    return out


def added(sums: Floats) -> Floats:
    """The sums of several days (days, ..., SUMS) as those of all of them."""
    total: Floats = sums.sum(axis=0)
    total[..., LARGEST] = sums[..., LARGEST].max(axis=0, initial=0.0)
    return total


def gap_limits(sums: Floats, delta: float) -> tuple[float, float]:
    r"""Limits that hold the mean of ``E[y | features] - p`` over the rows with probability at least ``1 - delta``.

    For independent clusters with residuals s of size w, ``prod (1 + kappa (s - m w))`` has mean at most one if the mean
    is at most m (the geometric mean is at most the arithmetic one); with ``ln(1 + z) >= z - c(b) z^2`` for ``z >= -b``
    its logarithm is at least ``kappa (S - m W) - c kappa^2 sum (s - m w)^2``, which the sums of days give. The bound is
    a parabola in m, and the product falls in m: left of the parabola's top its top is a bound, too.
    """
    if not sums[ROWS]:
        return -1.0, 1.0
    bets = _bets(sums, delta)
    curvature = log_curvature(2.0 * bets * sums[LARGEST]) * bets**2  # s - m w is at least -2 w, for every m up to 1

    def log_e(mean: float, side: float) -> float:
        slope = bets * sums[ROWS] - 2.0 * curvature * side * sums[CROSS]
        m = np.minimum(np.maximum(side * mean, -slope / (2.0 * curvature * sums[SIZES])), 1.0)
        growth = bets * side * sums[RESIDUAL] - curvature * sums[SQUARES] - slope * m - curvature * sums[SIZES] * m**2
        return log_mean_exp(growth)

    return Gap.of(log_e).limits(delta)


def _bets(sums: Floats, delta: float) -> Floats:
    """The bets, which scores and clusters fix: the best for noise of independent rows, of equal ones, and between."""
    least, most = max(sums[NOISE], 0.25), max(sums[SHARED], sums[NOISE], 0.25)
    noise = np.geomspace(least / WIDER, most * WIDER, 3 if most < 2.0 * least else 5)
    best: Floats = np.sqrt(2.0 * math.log(2.0 / delta) / noise)
    return np.minimum(best, LARGEST_BET / sums[LARGEST])


def cell_sums(y: Floats, p: Floats, cell: Codes, cells: int) -> Floats:
    """Sums of a day's independent rows by range of the score, shape (cells, 3): residuals, their squares and noise."""
    values = y - p, (y - p) ** 2, p * (1.0 - p)
    return np.stack([summed(cell, v, cells) for v in values], axis=1)


def error_floor(sums: Floats, cells: Floats, before: Floats, delta: float) -> float:
    r"""A lower limit of the calibration error of independent rows; it fails with probability at most delta.

    With signs ``s`` of ranges of the score that rows `before` fix, the mean of ``s (E[y | features] - p)`` is at most
    the calibration error, and `gap_limits` bounds it. A range counts where its residuals before exceed their noise.
    """
    signs = np.where(before[:, 0] ** 2 > before[:, 2], np.sign(before[:, 0]), 0.0)
    if not signs.any():
        return 0.0
    signed = sums.copy()
    signed[[RESIDUAL, CROSS]] = signs @ cells[:, 0]
    signed[SQUARES] = np.abs(signs) @ cells[:, 1]
    signed[[NOISE, SHARED]] = np.abs(signs) @ cells[:, 2]
    return max(gap_limits(signed, 2.0 * delta)[0], 0.0)


def level_counts(y: Floats, p: Floats) -> Ints:
    """Rows without and with the event by the score in whole percent, halves up, shape (101, 2)."""
    level = np.floor(p * LEVELS + 0.5).astype(np.int64)
    return np.bincount(2 * level + (y > 0.5), minlength=2 * (LEVELS + 1)).reshape(-1, 2)


def error_limit(counts: Ints, delta: float) -> float:
    """An upper limit of the calibration error of the score in whole percent; it fails with probability at most delta.

    Theorem U in its linear form with bets that the number of rows fixes: rows may differ in their probabilities.
    """
    rows = counts.sum(axis=1)
    there = rows > 0
    if not there.any():
        return 1.0
    s, n, k = (np.arange(LEVELS + 1) / LEVELS)[there], rows[there].astype(float), counts[there, 1].astype(float)
    gamma = gammas(int(n.sum()))
    cost = linear_cost(s, n, k, gamma[:, None]).sum(axis=1)
    return Above(cost, gamma, np.full(len(gamma), 1.0 / len(gamma)), int(n.sum())).limit(delta)
