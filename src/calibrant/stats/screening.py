"""How far residuals depart from noise along one covariate: what a screen of many covariates reads, by sums only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.integer]

BINS = 10  # of a number, of about equally many rows
LEAST = (
    2.0  # null variance of a level that is looked at by itself, in expected events; the others are looked at together
)


def departure(cell: Places, residual: Floats, variance: Floats, ordered: int) -> float:
    """Return the largest standardised departure of residual sums from noise, in about standard normal deviations.

    The overall mean residual is taken out. Looked at are the level that stands out most, the sum of squares over all
    cells and, of cells in order, the trend and the bend over their ranks: score statistics of a linear, a quadratic and
    a level-wise term.

    Parameters
    ----------
    cell : int array of shape (n,)
        From 0 on.
    residual, variance : float64 arrays of shape (n,)
        Outcome less probability, and its null variance.
    ordered : int
        How many of the first cells are in order; those after them, such as the one of missing values, are not.

    Notes
    -----
    **Cost.** Two sums over the rows. **Reads.** Labels: use it on rows that are not tested afterwards.
    """
    # (1) Sums of each cell, small cells joined, less the overall mean residual by the share of the variance
    sums, noise = np.bincount(cell, residual), np.bincount(cell, variance)
    total = float(noise.sum())
    if total <= 0.0:
        return 0.0
    left = sums - noise / total * sums.sum()
    # (2) Trend and bend over the ranks of the cells in order
    found = [0.0]
    there = np.flatnonzero(noise[:ordered] > 0.0)
    if len(there) > 1:
        rank = np.cumsum(noise[there]) - 0.5 * noise[there]
        basis = np.ones((len(there), 1))
        for power in (1, 2):
            column = (rank / rank[-1]) ** power
            column = (
                column
                - basis
                @ np.linalg.lstsq(basis * np.sqrt(noise[there])[:, None], column * np.sqrt(noise[there]), rcond=None)[0]
            )
            size = float(column**2 @ noise[there])
            if size > 1e-12 * total:
                found.append(abs(float(column @ left[there])) / np.sqrt(size))
                basis = np.column_stack([basis, column])
    # (3) Cell by cell: the one that stands out most, less what the most of so many do, and all of them together
    few = noise < LEAST
    if few.any():
        left = np.append(left[~few], left[few].sum())
        noise = np.append(noise[~few], noise[few].sum())
    kept = (noise >= LEAST) & (noise < total)
    cells = int(kept.sum())
    if cells > 1:
        squares = left[kept] ** 2 / (noise[kept] * (1.0 - noise[kept] / total))
        found.append(float(np.sqrt(squares.max())) - np.sqrt(2.0 * np.log(cells)) + 1.0)
        mean = float(squares.sum()) / cells  # by Wilson and Hilferty's cube root a chi-square is about normal
        found.append((mean ** (1.0 / 3.0) - (1.0 - 2.0 / (9.0 * cells))) / np.sqrt(2.0 / (9.0 * cells)))
    return float(max(found))
