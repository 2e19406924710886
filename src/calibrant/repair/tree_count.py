"""How many trees, and whether any: decided on rows that did not grow them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.repair.boosting import PATIENCE, Booster, Problem, Trees, loss_of


@dataclass(frozen=True)
class Choice:
    """What cross-validation chose.

    Parameters
    ----------
    used : bool
        Whether the scores are changed at all.
    trees : int
    scale : float
        What the whole change is multiplied by.
    before, after : float
        Mean logarithmic loss on other folds, of the scores as they came and of the chosen repair.
    standard : float
        By how many standard errors the change points the right way on other folds.
    """

    used: bool
    trees: int
    scale: float
    before: float
    after: float
    standard: float


def choose(problem: Problem, how: Trees, fold: Any, p: Any, clusters: Any, seed: int) -> Choice:
    """Grow trees on all folds but one, in step, and watch the loss on the one."""
    held = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]
    runs = [Booster(problem, how, np.flatnonzero(fold != k), (seed, k + 1)) for k in range(len(held))]
    best, at, kept, trees = np.inf, 0, problem.start.copy(), 0
    while True:
        loss = sum(loss_of(r.log_odds[h], problem.y[h], problem.weight[h]) for r, h in zip(runs, held, strict=True))
        if loss < best:
            best, at = loss, trees
            for r, h in zip(runs, held, strict=True):
                kept[h] = r.log_odds[h]
        if trees >= how.most or trees - at >= PATIENCE:
            break
        for r in runs:
            r.step()
        trees += 1
    change = kept - problem.start
    before = loss_of(problem.start, problem.y, problem.weight)
    standard = _standard(problem, p, change, clusters)
    n = len(p)
    used = best < before and standard > how.doubt
    return Choice(used, at, _scale(problem, change), before / n, best / n, standard)


def _standard(problem: Problem, p: Any, change: Any, clusters: Any) -> float:
    """Return the score test of the change: its product with the residual, in standard errors of calibrated scores."""
    product = problem.weight * change * (problem.y - p)
    if clusters is None:
        spread = float(np.sum((problem.weight * change) ** 2 * p * (1.0 - p)))
    else:
        spread = float(np.sum(np.bincount(clusters, product) ** 2))
    return float(product.sum()) / spread**0.5 if spread > 0.0 else 0.0


def _scale(problem: Problem, change: Any) -> float:
    """Return the multiple of the change that fits other folds best, from 0 to 2."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda c: loss_of(problem.start + c * change, problem.y, problem.weight),
        bounds=(0.0, 2.0),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return float(found.x)
