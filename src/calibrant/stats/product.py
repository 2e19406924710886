r"""Product certificates: solve an average of e-values for the error it excludes (theory: Theorems U and L).

Both certificates have the same form. An *e-value* is a non-negative statistic whose mean is at most one when
the hypothesis is true; by Markov's inequality it exceeds ``1/delta`` with probability at most ``delta``, and an
average of e-values, with weights fixed beforehand, is again an e-value. Here the hypothesis is "the error is
x", the e-values are monotone in x, and the bound is the x at which their average reaches ``1/delta``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STAKES = (5.0, 9.0, 16.0, 28.0)  # gamma * sqrt(n), fixed without looking at any data
JITTER_WEIGHTS = (0.55, 0.2, 0.15, 0.1)  # of the same stakes, where few effective cells favour the small one
LARGEST = 0.95


def gammas(n: int) -> Any:
    """Return the bets of Theorem U for `n` rows, shape (4,), each in (0, 1)."""
    return np.minimum(np.array(STAKES) / np.sqrt(max(n, 1)), LARGEST)


def log_mean_exp(values: Any, weights: Any) -> float:
    """Return ``ln sum weights * exp(values)`` without overflow."""
    shifted = np.asarray(values, dtype=float) + np.log(weights)
    top = float(shifted.max())
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.exp(shifted - top).sum()))


def solve_upper(phi: Any, gamma: Any, weights: Any, n: int, delta: float) -> float:
    r"""Return the x with ``sum_j w_j exp(-phi_j) (1 - gamma_j x)^(-n) = 1 / delta``, in [0, 1].

    Parameters
    ----------
    phi, gamma, weights : arrays of shape (m,)
        Log costs, bets in (0, 1), and weights that add up to one.
    n : int
        Rows.
    delta : float in (0, 1)
    """
    target = -np.log(delta)

    def excess(x: float) -> float:
        return float(log_mean_exp(-np.asarray(phi) - n * np.log1p(-gamma * x), weights) - target)

    return _root(excess, 1.0)


def solve_lower(growth: Any, stakes: Any, rows: Any, weights: Any, delta: float) -> float:
    r"""Return the x with ``sum_j w_j exp(growth_j - sum_b rows_jb ln(1 + stakes_jb x)) = 1 / delta``, in [0, 1].

    Parameters
    ----------
    growth : array of shape (m,)
        Log wealth of each e-value at ``x = 0``.
    stakes, rows : arrays of shape (m, b)
        Bets in [0, 1) and rows per block.
    weights : array of shape (m,)
    delta : float in (0, 1)
    """
    target = -np.log(delta)

    def excess(x: float) -> float:
        return float(target - log_mean_exp(growth - (rows * np.log1p(stakes * x)).sum(axis=1), weights))

    return _root(excess, 1.0)


def _root(increasing: Any, top: float) -> float:
    """Return where an increasing function crosses zero in [0, top], clipped to the ends."""
    from scipy.optimize import brentq

    if increasing(0.0) >= 0.0:
        return 0.0
    if increasing(top) <= 0.0:
        return top
    return float(brentq(increasing, 0.0, top, xtol=1e-12, rtol=1e-10))
