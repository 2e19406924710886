"""Boosting of the residual: small trees on the log-odds and the covariates, as many as other rows ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.errors import BadInput
from calibrant.kernels.strata import locate
from calibrant.kernels.trees import add_trees, grow, slopes
from calibrant.kernels.trees_reference import BINS
from calibrant.repair.binned import edges_of

SALT = 0x7EE5
ROUND = 10  # trees that see the same score, before it is brought up to date
PATIENCE = 3 * ROUND  # trees without a better loss after which no more are tried
SAMPLED = 4000  # rows that a tree sees at least, if there are so many
STEPS = 30


@dataclass(frozen=True, kw_only=True)
class Trees:
    """How `Multicalibrator` boosts.

    Parameters
    ----------
    depth : int
        Splits on the way to a leaf, 1 to 6: how many of the score and the variables can matter together.
    rate : float in (0, 1]
        Share of its Newton step that a tree takes.
    most : int
        Trees at most.
    ridge : float
        Above 0: information (``p (1 - p)`` summed over rows) by which a leaf is drawn towards no change.
    least : float
        Information that each side of a split must hold: 5 is 20 rows at ``p = 0.5``, 500 at ``p = 0.01``.
    folds : int
        Of the cross-validation that chooses how many trees.
    doubt : float
        Standard errors by which the changes must be confirmed on other folds; the scores are left alone otherwise.
    """

    depth: int = 2
    rate: float = 0.1
    most: int = 300
    ridge: float = 10.0
    least: float = 5.0
    folds: int = 5
    doubt: float = 2.5

    def __post_init__(self) -> None:
        for name, few, many in (("depth", 1, 6), ("most", 1, 5000), ("folds", 2, 20)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not few <= value <= many:
                raise BadInput(f"{name}={value!r}: pass a whole number from {few} to {many}")
        for name, low, high in (("rate", 1e-3, 1.0), ("ridge", 1e-3, 1e6), ("least", 1e-3, 1e6), ("doubt", 0.0, 10.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise BadInput(f"{name}={value!r}: pass a number from {low:g} to {high:g}")


@dataclass(frozen=True)
class Problem:
    """Rows to boost on.

    Parameters
    ----------
    codes : uint8 array of shape (n, 1 + d)
        Bins of the covariates from column 1 on.
    ordered : bool array of shape (1 + d,)
    start : float64 array of shape (n,)
        Log-odds of the score.
    y : int8 array of shape (n,)
    weight : float64 array of shape (n,)
        Mean one.
    """

    codes: Any
    ordered: Any
    start: Any
    y: Any
    weight: Any


class Booster:
    """One run of boosting on some rows; every row's log-odds are kept up to date."""

    def __init__(self, problem: Problem, how: Trees, rows: Any, seed: tuple[int, ...]) -> None:
        self.problem, self.how, self.rows = problem, how, rows.astype(np.int32)
        self.rng = np.random.default_rng([*seed, SALT])
        self.codes = problem.codes.copy()
        self.slope, self.intercept = straight(problem, rows)
        self.log_odds = self.intercept + self.slope * problem.start
        self.pull, self.curve = np.empty((2, len(problem.start)))
        self.edges: list[tuple[float, ...]] = []
        self.feature: list[Any] = []
        self.left: list[Any] = []
        self.value: list[Any] = []

    def step(self) -> None:
        """Grow one more tree."""
        if len(self.value) % ROUND == 0:
            self.edges.append(edges_of(self.log_odds, BINS))
            self.codes[:, 0] = locate(self.log_odds, np.array(self.edges[-1]))
        slopes(self.log_odds, self.problem.y, self.problem.weight, self.pull, self.curve)
        share = max(0.5, SAMPLED / len(self.rows))
        rows = self.rows if share >= 1.0 else self.rows[self.rng.random(len(self.rows)) < share]
        how = self.how
        ridge, least = (v * len(rows) / len(self.rows) for v in (how.ridge, how.least))
        feature, left, value = grow(
            self.codes, self.problem.ordered, self.pull, self.curve, rows, how.depth, ridge, least
        )
        value *= how.rate
        add_trees(self.codes, feature[None], left[None], value[None], self.log_odds)
        self.feature.append(feature)
        self.left.append(left)
        self.value.append(value)


def straight(problem: Problem, rows: Any) -> tuple[float, float]:
    """Return slope and intercept of a logistic curve of the log-odds, drawn towards the identity by one row's worth."""
    t, y, w = problem.start[rows], problem.y[rows], problem.weight[rows]
    x = np.stack([t, np.ones(len(t))])
    at, worth = np.array([1.0, 0.0]), np.diag([1.0, 0.25])
    target = np.array([1.0, 0.0])

    def loss(b: Any) -> float:
        return loss_of(b @ x, y, w) + 0.5 * float((b - target) @ worth @ (b - target))

    now = loss(at)
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-(at @ x)))
        pull = x @ (w * (y - p)) - worth @ (at - target)
        move = np.linalg.solve((x * (w * p * (1.0 - p))) @ x.T + worth, pull)
        for _ in range(STEPS):
            if (then := loss(at + move)) <= now:
                break
            move = move / 2.0
        else:
            break
        at, gained, now = at + move, now - then, then
        if gained <= 1e-10 * (1.0 + now):
            break
    return float(at[0]), float(at[1])


def loss_of(log_odds: Any, y: Any, w: Any) -> float:
    """Return the weighted sum of the logarithmic loss."""
    return float(w @ np.logaddexp(0.0, np.where(y == 1, -log_odds, log_odds)))
