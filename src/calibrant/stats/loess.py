"""Local regression along a variable, from sums by cell: LOESS with tricube weights and the Gaussian family."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.quadratic import operator

MARGIN, LEAF = 0.005, 0.2  # of the range beyond its ends; and the share of a window below which a cell is not cut


def smoother(x: Any, rows: Any, mass: Any, grid: Any, span: float, degree: int) -> Any:
    """Return the matrix that turns sums by cell into the local fit at each point.

    Parameters
    ----------
    x : array of shape (cells,)
        Increasing.
    rows, mass : arrays of shape (cells,)
        Rows, which the span counts; and their weights.
    grid : array of shape (points,)
    span : float in (0, 1]
        Share of the rows in a window.
    degree : int from 0 to 2

    Returns
    -------
    float array of shape (points, cells)
        The same matrix smooths outcomes, scores and residuals, so that the smoothed residual is the difference of
        the two curves, with the variance of a difference.
    """
    return operator(x, rows, mass, grid, _needed(rows, span), degree)[0]


def interpolated(x: Any, rows: Any, mass: Any, grid: Any, span: float, degree: int) -> Any:
    """Return the matrix of the published surface: exact at a few vertices, cubic in between.

    Cleveland and Grosse's k-d tree cuts the values at medians until a leaf holds under a fifth of a window, fits value
    and slope at the cuts, and joins them by cubic Hermite pieces. Programs that call LOESS with its default surface
    draw this; it differs from `smoother` by up to a hundredth of the range. Equal to scikit-misc's to rounding where no
    cut falls on a value that many rows share; there the order of equal rows decides in theirs, and does not here.
    """
    knots = _knots(x, rows, int(np.floor(rows.sum() * span * LEAF)))
    value, slope = operator(x, rows, mass, knots, _needed(rows, span), degree)
    left = np.clip(np.searchsorted(knots, grid, side="right") - 1, 0, len(knots) - 2)
    width = (knots[left + 1] - knots[left])[:, None]
    h = (np.asarray(grid) - knots[left])[:, None] / width
    ends = (1 - h) ** 2 * (1 + 2 * h) * value[left] + h * h * (3 - 2 * h) * value[left + 1]
    return ends + width * h * (1 - h) * ((1 - h) * slope[left] - h * slope[left + 1])


def _needed(rows: Any, span: float) -> float:
    return float(max(np.floor(rows.sum() * span + 1e-5), 1.0))


def _knots(x: Any, rows: Any, least: int) -> Any:
    """Return the ends, and the cuts of the k-d tree at the rows' medians, each a value of the data."""
    upto = np.cumsum(rows)
    gap = MARGIN * max(x[-1] - x[0], 1e-10 * max(abs(x[0]), abs(x[-1])) + 1e-30)
    found = {float(x[0] - gap), float(x[-1] + gap)}
    todo = [(0, int(upto[-1]) - 1)]
    while todo:
        first, last = todo.pop()
        middle = (first + last) // 2
        cut = float(x[int(np.searchsorted(upto, middle, side="right"))])
        if last - first + 1 > least and cut not in found:
            found.add(cut)
            todo += [(first, middle), (middle + 1, last)]
    return np.array(sorted(found))
