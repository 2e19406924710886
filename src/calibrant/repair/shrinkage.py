"""A penalised logistic correction of log-odds, and how much of it survives on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions

FOLDS = 5
PENALTIES = tuple(10.0 ** (k / 2.0) for k in range(-2, 9))
JOINT = (0.0, 0.3, 3.0)  # prior variance of the joint features, in that of the others; 0: without them
STEPS = 12  # of Newton's method, at most
SETTLED = 1e-6  # log-odds


@dataclass(frozen=True)
class Trial:
    """Rows of a correction ``log-odds = base + features @ beta``.

    Parameters
    ----------
    y, weight, base : float arrays of shape (n,)
    features : float array of shape (n, k)
        The first `free` columns are not penalised, the last `joint` less or more than the others.
    free, joint : int
    fold, unit : int arrays of shape (n,)
        The fold of each row, and the independent unit (row or cluster) that it belongs to.
    """

    y: Any
    weight: Any
    base: Any
    features: Any
    free: int
    joint: int
    fold: Any
    unit: Any

    def penalty(self, strength: float, joint: float) -> Any:
        """Return the diagonal of the penalty; infinite where a feature is left out."""
        k = self.features.shape[1]
        out = np.full(k, strength)
        out[: self.free] = 1e-9
        out[k - self.joint :] = strength / joint if joint > 0 else np.inf
        return out


@dataclass(frozen=True)
class Choice:
    """How much to correct.

    Parameters
    ----------
    penalty : array of shape (k,) or None
        None: not at all.
    strength, joint : float
    gain, error : float
        Log loss that cross-fitting gained over the base, by row, and its standard error.
    """

    penalty: Any
    strength: float
    joint: float
    gain: float
    error: float


def chosen(t: Trial, strengths: Sequence[float] = PENALTIES, shares: Sequence[float] = JOINT) -> Choice:
    """Choose a penalty by the log loss of one Newton step from the base, on the folds left out of it.

    The correction must gain more than a standard error of its gain, or there is none.
    """
    p = expit(t.base)
    steps = _fold_sums(t, t.weight * (t.y - p), t.weight * p * (1.0 - p))
    before, best = losses(t.y, t.base), Choice(None, 0.0, 0.0, 0.0, 0.0)
    for share in shares:
        if share > 0 and not t.joint:
            continue
        for strength in strengths:
            penalty = t.penalty(strength, share)
            after = losses(t.y, t.base + _held_out(t, steps, penalty))
            gain, error = paired(t.weight * (before - after), t.unit)
            if gain > max(error, best.gain):
                best = Choice(penalty, strength, share, gain, error)
    return best


def folds_of(rows: Predictions, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the independent unit of each row (its cluster, or itself), and a fold that keeps units whole."""
    names = np.arange(rows.n) if rows.clusters is None else rows.clusters
    unit = np.unique(names, return_inverse=True)[1].reshape(-1)
    return unit, rng.permutation(np.arange(unit.max() + 1) % FOLDS)[unit]


def paired(gains: Any, unit: Any) -> tuple[float, float]:
    """Return the mean gain of the rows, and its standard error over independent units."""
    sums, n = np.bincount(unit, gains), len(gains)
    return float(gains.sum()) / n, float(sums.std() * np.sqrt(len(sums)) / n)


def losses(y: Any, eta: Any) -> Any:
    """Return the log loss of each row."""
    return np.logaddexp(0.0, eta) - y * eta


def expit(eta: Any) -> Any:
    """Return the probability of log-odds."""
    from scipy.special import expit as curve

    return curve(eta)


def _fold_sums(t: Trial, residual: Any, variance: Any) -> list[tuple[Any, Any]]:
    """Return score and information of the rows outside each fold."""
    parts = []
    for k in range(FOLDS):
        x = t.features[t.fold == k]
        parts.append((x.T @ residual[t.fold == k], (x * variance[t.fold == k, None]).T @ x))
    score, gram = (sum(part[i] for part in parts) for i in (0, 1))
    return [(score - s, gram - g) for s, g in parts]


def _held_out(t: Trial, steps: Sequence[tuple[Any, Any]], penalty: Any) -> Any:
    out = np.empty(len(t.y))
    for k, (score, gram) in enumerate(steps):
        out[t.fold == k] = t.features[t.fold == k] @ solved(gram, score, penalty)
    return out


def solved(gram: Any, score: Any, penalty: Any) -> Any:
    """Return ``(gram + diag(penalty))^-1 score``, zero where the penalty is infinite."""
    from scipy.linalg import cho_factor, cho_solve

    out, used = np.zeros(len(score)), np.flatnonzero(np.isfinite(penalty))
    matrix = gram[np.ix_(used, used)]
    matrix[np.diag_indices(len(used))] += penalty[used] + 1e-10 * max(float(np.trace(matrix)) / max(len(used), 1), 1e-3)
    out[used] = cho_solve(cho_factor(matrix), score[used])
    return out


def fitted(t: Trial, penalty: Any) -> Any:
    """Return the penalised maximum likelihood coefficients, by Newton's method with halved steps."""
    finite = np.where(np.isfinite(penalty), penalty, 0.0)
    beta, eta = np.zeros(len(penalty)), t.base

    def objective(b: Any, at: Any) -> float:
        return float(t.weight @ losses(t.y, at)) + 0.5 * float(finite @ (b * b))

    now = objective(beta, eta)
    for _ in range(STEPS):
        p = expit(eta)
        gram = (t.features * (t.weight * p * (1.0 - p))[:, None]).T @ t.features
        step = solved(gram, t.features.T @ (t.weight * (t.y - p)) - finite * beta, penalty)
        move = t.features @ step
        scale = 1.0
        while (then := objective(beta + scale * step, eta + scale * move)) > now and scale > 1e-4:
            scale /= 2.0
        if then > now:
            break
        beta, eta, now = beta + scale * step, eta + scale * move, then
        if np.abs(scale * move).max() < SETTLED:
            break
    return beta
