"""Local-linear averages of cell totals: the weights, what they rest on, and how wide to look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SPREAD = 2.65  # half-width of the biweight kernel whose standard deviation is one
STEPS = 50  # parts of a half-width to which the score is resolved before smoothing


@dataclass(frozen=True)
class Runs:
    """Neighbouring score cells added together; nothing here depends on a label except `cases`.

    Parameters
    ----------
    x : float array of shape (runs,)
        Position on the axis of smoothing, increasing: the mean score, or its logit.
    rows, cases : float arrays of shape (runs,)
    score : float array of shape (runs,)
        Sum of the scores.
    """

    x: Any
    rows: Any
    cases: Any
    score: Any

    @property
    def rate(self) -> Any:
        """Mean score of each run: the event rate if the model is calibrated."""
        return np.clip(self.score / self.rows, 0.0, 1.0)

    @property
    def noise(self) -> Any:
        """Null variance of the cases of each run, at most: ``n m (1 - m)``."""
        return self.rows * self.rate * (1.0 - self.rate)


def runs_of(x: Any, rows: Any, cases: Any, score: Any, width: float, smallest: int = 1) -> Runs:
    """Join neighbouring cells while they span at most `width`, and further until they hold `smallest` rows.

    Parameters
    ----------
    x : array of shape (cells,)
        Positions of the occupied cells, non-decreasing.
    rows, cases, score : arrays of shape (cells,)
    width : float
        In the unit of `x`.
    smallest : int
        A short last run joins the one before.
    """
    starts, held, first = [0], 0, 0
    for i, n in enumerate(rows.tolist()):
        if i > first and held >= smallest and x[i] - x[first] > width:
            starts.append(i)
            held, first = 0, i
        held += n
    if held < smallest and len(starts) > 1:
        starts.pop()
    n, k, s, at = (np.add.reduceat(np.asarray(v, dtype=float), starts) for v in (rows, cases, score, rows * x))
    return Runs(at / n, n, k, s)


def half_width(x: Any, noise: Any) -> float:
    r"""Choose the half-width of the window from the scores alone: ``2.65 sd V^(-1/5)``.

    `V` is the null variance ``sum p (1 - p)``, the number of rows that carry information times a quarter at most;
    `sd` is the standard deviation of `x`, each row weighted by its share of V.
    """
    total = float(noise.sum())
    if total <= 0.0:
        return 0.0
    middle = float((noise * x).sum() / total)
    spread = float(np.sqrt((noise * (x - middle) ** 2).sum() / total))
    return float(SPREAD * spread * total**-0.2)


def weights(x: Any, rows: Any, grid: Any, half: float) -> Any:
    r"""Return the weight of one row of each run at each point: a local-linear fit with the biweight kernel.

    With ``d = x - t`` and ``K = (1 - (d / half)^2)^2``, the estimate at ``t`` of the mean of what is summed in
    ``z`` is ``weights @ z``; the weights times the rows add up to one. Where the window holds too little spread
    for a slope the fit is a local constant; where it holds nothing the weights are zero.

    Parameters
    ----------
    x, rows : arrays of shape (runs,)
    grid : array of shape (points,)
    half : float

    Returns
    -------
    float array of shape (points, runs)
    """
    d = (x[None, :] - grid[:, None]) / half
    k = np.clip(1.0 - d * d, 0.0, None) ** 2
    s0, s1, s2 = (((k * d**j) @ rows)[:, None] for j in (0, 1, 2))
    spread = s0 * s2 - s1 * s1
    straight = spread > 1e-4 * s0 * s0
    slope = k * (s2 - s1 * d) / np.where(straight, spread, 1.0)
    level = k / np.where(s0 > 0, s0, 1.0)
    return np.where(straight, slope, level)


def effective(weight: Any, rows: Any) -> Any:
    """Return the rows whose plain mean would be as noisy as the weighted mean, shape (points,)."""
    square = (weight * weight) @ rows
    return np.where(square > 0, 1.0 / np.where(square > 0, square, 1.0), 0.0)


def density(x: Any, mass: Any, grid: Any, half: float) -> Any:
    """Return the kernel density at each point: per unit of `x`, of total mass one."""
    d = (x[None, :] - grid[:, None]) / half
    total = float(mass.sum())
    return (np.clip(1.0 - d * d, 0.0, None) ** 2 @ mass) * (15.0 / 16.0) / (half * max(total, 1.0))
