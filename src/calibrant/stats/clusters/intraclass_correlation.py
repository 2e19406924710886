"""Whether rows that share a value are more alike than their scores explain, and by how much that widens ranges.

With residuals ``r = y - p``, less their mean among rows of about the same score, the variance of a mean by clusters is
``1 + sum r_i r_j / sum r_i^2`` times that by rows, the first sum over pairs of different rows of one cluster: the same
as ``1 + (m - 1) ICC``, with `m` the mean size of the cluster of a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FEWEST = 20  # rows of about the same score, of which a mean is taken off
BINS = 100
LEAST = 99  # draws that say what chance makes of the design effect
DRAWS = 1999
TINY = 1e-12  # mean square of residuals, under which they are none
MOST = 30_000  # rows of whole clusters that are drawn for
SALT = 0x5EED_0A11


@dataclass(frozen=True, slots=True)
class IntraclassCorrelation:
    """How alike rows of one cluster are."""

    # `clusters` and `rows`: clusters, and rows that belong to one, of all that were given.
    clusters: int
    rows: int
    design_effect: float  # variance of the mean residual by clusters, over that of independent rows; 1 at least
    p_value: float  # of independent outcomes; at most `level` only if they are refuted at that level


def intraclass_correlation(
    cluster: Ints, p: Floats, y: Floats, *, share: float = 1.0, level: float = 0.01, seed: int = 0
) -> IntraclassCorrelation:
    """Return how alike rows of one cluster are, tested against outcomes drawn independently, given the scores.

    `cluster` (n,). `p`, `y` (n,). `share`: of all rows that these are, a uniform sample: of the pairs of one cluster
    only so many are left for each row, in (0, 1]. `level`: draws end where the test can no longer reject at this level,
    in (0, 1).

    **Assumes.** Given the scores, outcomes are independent, with rates that are those of rows of about the same score:
    a score that is wrong in itself makes no rows alike.
    **Guarantee.** Exact where the score of rows of about the same score is right but for one shift; the shift is
    estimated. Rows whose rates differ by what they share, such as a clinic, are alike, and are found.
    **Method.** Simulated outcomes; the statistic is the design effect.
    """
    _, cluster = np.unique(cluster, return_inverse=True)
    cluster = cluster.reshape(-1)
    rng = np.random.default_rng([SALT, seed])
    kept = _some(cluster, rng)
    stored, stated, happened = np.unique(cluster[kept], return_inverse=True)[1].reshape(-1), p[kept], y[kept]
    cell = _cells(stated)
    rows = np.bincount(cell)

    def centred(off: Floats) -> Floats:
        """Take off the mean of rows of about the same score."""
        less: Floats = off - (np.bincount(cell, off) / rows)[cell]
        return less

    def effect(off: Floats) -> float:
        by_rows = float(off @ off)
        return float((np.bincount(stored, off) ** 2).sum()) / by_rows if by_rows > TINY * len(off) else 1.0

    # (1) the rates that rows of about one score have, and how alike rows of one cluster are given these
    off = happened - stated
    rates = np.clip(stated + (off - centred(off)), 0.0, 1.0)
    result = effect(centred(off))
    # (2) the same of outcomes that are independent, until it is clear that this is no more than chance
    drawn: list[float] = []
    beyond, most = 0, level * (DRAWS + 1)
    while len(drawn) < DRAWS and (len(drawn) < LEAST or beyond + 1 <= most):
        drawn.append(effect(centred((rng.random(len(rates)) < rates) - rates)))
        beyond += drawn[-1] >= result - 1e-12
    more = (result - float(np.mean(drawn))) / share
    return IntraclassCorrelation(
        int(cluster.max()) + 1, len(cluster), 1.0 + max(more, 0.0), (1 + beyond) / (1 + len(drawn))
    )


def _some(cluster: Ints, rng: np.random.Generator) -> Ints:
    """The rows of whole clusters, in random order as many as have at most `MOST` rows, at least two."""
    if len(cluster) <= MOST:
        return np.arange(len(cluster))
    place = rng.permutation(int(cluster.max()) + 1)
    sizes = np.bincount(place[cluster])
    clusters = max(int(np.searchsorted(np.cumsum(sizes), MOST, side="right")), 2)
    return np.flatnonzero(place[cluster] < clusters)


def _cells(p: Floats) -> Ints:
    """Return cells of about equally many rows along the score; equal scores share one."""
    cells = min(max(len(p) // FEWEST, 1), BINS)
    place = np.searchsorted(np.sort(p), p, side="left") * cells // len(p)
    return np.unique(place, return_inverse=True)[1].reshape(-1)
