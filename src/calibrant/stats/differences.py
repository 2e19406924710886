r"""Finite-sample limits for a mean that is linear in the outcomes, given the scores: paired differences of two repairs.

Whatever two repairs are compared in (Brier score, log loss, accuracy, the residual of a group), a row contributes one
of two numbers, known from its scores: ``z(0)`` if the outcome does not happen and ``z(1)`` if it does. So given the
scores every unit (row, or cluster of rows) is bounded by known numbers, and betting against the mean needs nothing
else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.stats.product import log_mean_exp

STAKES = (2.0, 4.0, 8.0)  # kappa sqrt(n) spread; the best is sqrt(2 ln(2 / delta)), about 3.5
WEIGHTS = (0.25, 0.5, 0.25)
LARGEST = 0.9
CELLS = 1024


@dataclass(frozen=True)
class Units:
    """Independent units whose mean is wanted, with what each could have been.

    Parameters
    ----------
    value, low, high : float64 arrays of shape (u,)
        What each is, and the least and most it could be given the scores.
    spread : float
        Root mean square of the noise to expect, guessed from the scores; any positive number is valid.
    """

    value: Any
    low: Any
    high: Any
    spread: float

    @property
    def mean(self) -> float:
        """The mean seen."""
        return float(self.value.mean())


def units_of(y: Any, p: Any, without: Any, happened: Any, weight: Any = None, cluster: Any = None) -> Units:
    """Return units whose mean is the (weighted) mean over rows.

    Parameters
    ----------
    y, p : arrays of shape (n,)
        Outcomes, and rates from which the noise is guessed.
    without, happened : float64 arrays of shape (n,)
        What a row contributes if the outcome is 0, or 1.
    weight : array of shape (n,), optional
    cluster : int array of shape (n,), optional
        0, 1, ...: whole clusters are the units.
    """
    z0, z1 = without, happened
    if weight is not None:
        scale = weight * (len(y) / weight.sum())
        z0, z1 = z0 * scale, z1 * scale
    value, low, high = np.where(y == 1, z1, z0), np.minimum(z0, z1), np.maximum(z0, z1)
    rate = np.clip(p, 1e-3, 1.0 - 1e-3)
    noise = (z1 - z0) ** 2 * rate * (1.0 - rate)
    if cluster is None:
        return Units(value, low, high, float(np.sqrt(noise.mean())))
    size = int(cluster.max()) + 1
    share = size / len(y)
    value, low, high, noise = (np.bincount(cluster, v, size) for v in (value, low, high, noise))
    spread = np.sqrt(noise.mean()) * share**0.75  # between independent rows and rows of one fate
    return Units(value * share, low * share, high * share, float(spread))


def mean_limits(u: Units, delta: float) -> tuple[float, float]:
    r"""Return limits that hold the mean of ``E[z | scores]`` over the units with probability at least ``1 - delta``.

    For units independent given the scores with means ``mu_u``, and kappa fixed by the scores,
    ``E prod (1 - kappa (z_u - m)) = prod (1 - kappa (mu_u - m)) <= (1 - kappa (mean mu - m))^n`` is at most one
    wherever ``mean mu >= m``; a fixed mixture over kappas that reaches ``2 / delta`` refutes that. The logarithm is
    concave, so that moving each unit to the ends of a cell around it, mean kept, can only lower the evidence.
    """
    floor, top = float(u.low.mean()), float(u.high.mean())
    if not u.spread > 0.0 or not top > floor:
        return floor, top
    at, weight = _spread_out(u.value)
    upper = _upper(at, weight, (floor, top), float(u.high.max()), u.spread, delta / 2)
    lower = -_upper(-at, weight, (-top, -floor), -float(u.low.min()), u.spread, delta / 2)
    return min(lower, u.mean), max(upper, u.mean)


def _spread_out(value: Any) -> tuple[Any, Any]:
    """Return grid points and weights with the same total and mean, every value moved to the ends of its cell."""
    low, high = float(value.min()), float(value.max())
    width = (high - low) / CELLS
    if not width > 0.0:
        return np.array([low]), np.array([float(len(value))])
    place = (value - low) / width
    cell = np.minimum(place.astype(np.int64), CELLS - 1)
    share = place - cell
    rows, part = np.bincount(cell, minlength=CELLS), np.bincount(cell, share, CELLS)
    weight = np.append(rows - part, 0.0) + np.append(0.0, part)
    held = np.flatnonzero(weight > 0)
    return low + width * held, weight[held]


def _upper(at: Any, weight: Any, range_: tuple[float, float], most: float, spread: float, delta: float) -> float:
    from scipy.optimize import brentq

    start, stop = range_
    n, target = float(weight.sum()), -float(np.log(delta))
    kappas = np.minimum(np.array(STAKES) / (spread * np.sqrt(n)), LARGEST / (most - start))

    def excess(m: float) -> float:
        growth = [float(weight @ np.log1p(-k * (at - m))) for k in kappas]
        return log_mean_exp(np.array(growth), np.array(WEIGHTS)) - target

    if excess(stop) <= 0.0:
        return stop
    if excess(start) >= 0.0:
        return start
    return float(brentq(excess, start, stop, xtol=1e-12, rtol=1e-10))
