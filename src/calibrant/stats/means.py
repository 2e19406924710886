"""Finite-sample confidence limits for the mean of a bounded residual, by betting (Waudby-Smith & Ramdas 2024)."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.stats.product import log_mean_exp

STAKES = (0.5, 1.0, 2.0, 4.0, 8.0)  # kappa * sqrt(n), over the largest standard deviation one half
LARGEST = 0.45


def residual_mean_limits(counts: Any, score_sums: Any, low: Any, high: Any, delta: float) -> tuple[float, float]:
    r"""Return limits that hold ``E[Y - p]`` with probability at least ``1 - delta``.

    For a true mean m, ``prod_i (1 + kappa (y_i - p_i - m))`` has mean one; its average over fixed kappas is an
    e-value, and each limit is the m at which it reaches ``2 / delta``. Per cell the product is bounded below by
    the chord through the cell's ends at the exact mean score, so sums of scores are enough.

    Parameters
    ----------
    counts, score_sums : arrays of shape (cells, 2)
        Rows per label, and the sums of their scores.
    low, high : arrays of shape (cells,)
        Ends of the cells.
    delta : float
    """
    n = float(np.sum(counts))
    kappas = np.minimum(2.0 * np.array(STAKES) / np.sqrt(n), LARGEST)
    width = np.where(high > low, high - low, 1.0)[:, None]
    share = np.clip((score_sums / np.maximum(counts, 1) - low[:, None]) / width, 0.0, 1.0)
    ends = np.stack([low, high])[:, :, None]
    residual = np.array([0.0, 1.0])[None, None, :] - ends
    weight = counts * np.stack([1.0 - share, share])

    def excess(m: float, sign: float) -> float:
        growth = [(weight * np.log1p(sign * k * (residual - m))).sum() for k in kappas]
        return log_mean_exp(np.array(growth), np.full(len(kappas), 1.0 / len(kappas))) - float(np.log(2.0 / delta))

    return _limit(lambda m: excess(m, 1.0), -1.0, 1.0), _limit(lambda m: excess(m, -1.0), 1.0, -1.0)


def _limit(excess: Any, start: float, stop: float) -> float:
    """Return where `excess`, largest at `start`, falls to zero on the way to `stop`."""
    from scipy.optimize import brentq

    if excess(start) <= 0.0:
        return start
    if excess(stop) >= 0.0:
        return stop
    return float(brentq(excess, start, stop, xtol=1e-12))
