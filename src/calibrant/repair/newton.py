"""Logistic regression on a few columns, for targets between 0 and 1: what the maps of the score are fitted by."""

from __future__ import annotations

from typing import Any

import numpy as np

WARM = 65_536  # above four times as many rows the start is fitted on about so many of them
STEPS = 100


def newton(
    features: Any, target: Any, weight: Any = None, ridge: float = 0.0, offset: bool = True
) -> tuple[Any, float]:
    """Return coefficients and intercept that minimise the weighted log loss plus ``ridge |coefficients|^2 / 2``.

    Newton's method with halved steps on standardised columns; scikit-learn's `LogisticRegression` minimises the same
    sum, but takes labels 0 and 1 only, so that every row would enter it twice.

    Parameters
    ----------
    features : float64 array of shape (n, d)
    target : float64 array of shape (n,)
        In [0, 1].
    weight : float64 array of shape (n,), optional
    ridge : float
        scikit-learn's 1/C.
    offset : bool
        Fit an intercept; otherwise it is 0.
    """
    n, d = features.shape
    heft = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    centre = np.average(features, axis=0, weights=heft) if offset else np.zeros(d)
    spread = np.sqrt(np.average((features - centre) ** 2, axis=0, weights=heft))
    flat = spread <= 1e-12 * (1.0 + np.abs(centre))
    scale = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, spread))
    x = np.empty((d + offset, n))
    x[:d] = ((features - centre) * scale).T
    x[d:] = 1.0
    penalty = np.concatenate([ridge * scale**2, np.zeros(int(offset))])
    start = np.zeros(d + offset)
    stride = n // WARM
    if stride > 4:
        part = np.ascontiguousarray(x[:, ::stride])
        start = _descend(part, target[::stride], heft[::stride], penalty, start)
    solved = _descend(x, target, heft, penalty, start)
    slopes = solved[:d] * scale
    return slopes, float(solved[d] - slopes @ centre) if offset else 0.0


def _descend(x: Any, target: Any, heft: Any, penalty: Any, at: Any) -> Any:
    """Newton's iteration from `at`; one column of x a row of data."""
    from scipy.special import expit

    total, before = float(heft.sum()), np.inf
    step = np.zeros_like(at)
    for _ in range(STEPS):
        z = at @ x
        loss = _loss(z, target, heft) + 0.5 * float(penalty @ at**2)
        if not loss <= before + 1e-12 * (total + abs(before)):
            step *= 0.5
            at = at - step
            if np.abs(step).max() < 1e-12:
                break
            continue
        before = loss
        mean = expit(z)
        slope = x @ (heft * (mean - target)) + penalty * at
        bend = (x * (heft * mean * (1.0 - mean))) @ x.T
        bend[np.diag_indices_from(bend)] += penalty
        step = -np.linalg.lstsq(bend, slope, rcond=1e-10)[0]
        at = at + step
        if -float(step @ slope) <= 1e-14 * total:  # the error left is of the order of its square
            break
    return at


def _loss(z: Any, target: Any, heft: Any) -> float:
    return float(heft @ (np.logaddexp(0.0, z) - target * z))
