"""Migrations between grades: how far customers move, and whether they move far more often than near."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Steps:
    """Tests of each cell off the diagonal against its neighbour nearer to it; NaN where neither holds a customer."""

    frequency: Floats
    statistic: Floats
    p_value: Floats


def bandwidth(counts: Ints) -> tuple[float, float]:
    r"""The matrix weighted bandwidths above and below the diagonal, NaN where nobody is there.

    ``MWB = sum |i - j| N_i p_ij / sum max(|i - K|, |i - 1|) N_i p_ij`` over ``j > i`` (upper) or ``j < i`` (lower): how
    far those moved who moved, as a share of the farthest that they could.
    """
    k = len(counts)
    i, j = np.indices((k, k)) + 1
    far = np.maximum(np.abs(i - k), np.abs(i - 1))
    ends = []
    for side in (j > i, j < i):
        most = float((far * counts)[side].sum())
        ends.append(float((np.abs(i - j) * counts)[side].sum()) / most if most else float("nan"))
    return ends[0], ends[1]


def steps(counts: Ints) -> Steps:
    r"""For each cell off the diagonal, whether it holds more than its neighbour one step nearer.

    ``z_ij = (p_near - p_ij) / sqrt((p_ij (1 - p_ij) + p_near (1 - p_near) + 2 p_ij p_near) / N_i)``, the difference of
    two shares of one multinomial row over its standard error; p-value ``Phi(z_ij)``, small where the farther cell holds
    more.
    """
    from scipy.special import ndtr

    k, row = len(counts), counts.sum(axis=1, keepdims=True).astype(float)
    i, j = np.indices((k, k))
    near = np.where(j < i, np.minimum(j + 1, k - 1), np.maximum(j - 1, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        p = counts / row
        q = np.take_along_axis(p, near, axis=1)
        z = (q - p) / np.sqrt((p * (1 - p) + q * (1 - q) + 2 * p * q) / row)
    z[(i == j) | ~np.isfinite(z)] = np.nan
    return Steps(p, z, np.where(np.isnan(z), np.nan, ndtr(z)))
