"""Rows to judge repairs on, with every probability to be judged, and the paired differences between two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.repair.comparison import AS_AUDITED
from calibrant.repair.fitting import EDGE
from calibrant.repair.split import clusters_of
from calibrant.stats.differences import mean_limits, units_of
from calibrant.stats.scoring import ranking

Loss = Callable[[Any], tuple[Any, Any]]  # scores -> loss if the outcome is 0, and if it is 1


def brier_loss(p: Any) -> tuple[Any, Any]:
    """Return the squared error for either outcome."""
    return p**2, (1.0 - p) ** 2


def log_loss(p: Any) -> tuple[Any, Any]:
    """Return the logarithmic loss for either outcome, scores kept `EDGE` from 0 and 1."""
    inside = np.clip(p, EDGE, 1.0 - EDGE)
    return -np.log1p(-inside), -np.log(inside)


def wrong_loss(p: Any) -> tuple[Any, Any]:
    """Return whether the more probable class (1 from 0.5) is wrong, for either outcome."""
    says = (p >= 0.5).astype(np.float64)
    return says, 1.0 - says


LOSSES: Mapping[str, Loss] = {"brier": brier_loss, "log_loss": log_loss, "accuracy": wrong_loss}


@dataclass(frozen=True)
class Judged:
    """Rows that no map was fitted on, and their scores under each.

    Parameters
    ----------
    data : Predictions
    scores : Mapping of str to float64 array of shape (n,)
        ``"as audited"`` first.
    part : int64 array of shape (n,)
        Fold of each row: rows of one fold have their scores from one map.
    """

    data: Predictions
    scores: Mapping[str, Any]
    part: Any

    @property
    def repairs(self) -> tuple[str, ...]:
        """Names of the repairs."""
        return tuple(name for name in self.scores if name != AS_AUDITED)

    @property
    def folds(self) -> int:
        """Folds; 1 if all rows are judged with the same maps."""
        return int(self.part.max()) + 1

    def each_fold(self) -> list[tuple[Any, float]]:
        """Return rows and share of each fold."""
        rows = [np.flatnonzero(self.part == k) for k in range(self.folds)] if self.folds > 1 else [slice(None)]
        size = [self.data.n if isinstance(r, slice) else len(r) for r in rows]
        return [(r, s / self.data.n) for r, s in zip(rows, size, strict=True)]

    def mean_range(self, without: Any, happened: Any, delta: float) -> tuple[float, float, float]:
        """Return a mean over rows that is linear in the outcomes, and its limits given the scores.

        In folds each fold's limits hold given the others, at its share of `delta`, and are averaged.
        """
        data, cluster = self.data, clusters_of(self.data)
        out, folds = np.zeros(3), self.each_fold()
        for rows, share in folds:
            weight = None if data.weights is None else data.weights[rows]
            unit = None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1].reshape(-1)
            u = units_of(data.y[rows], data.p[rows], without[rows], happened[rows], weight, unit)
            out += share * np.array([u.mean, *mean_limits(u, delta / len(folds))])
        return float(out[0]), float(out[1]), float(out[2])

    def change(self, measure: str, name: str, base: str, delta: float) -> tuple[float, float, float]:
        """Return the paired change of a score's mean from `base` to `name`, and its range; accuracy counts upward."""
        loss = LOSSES[measure]
        before, after = loss(self.scores[base]), loss(self.scores[name])
        mean, low, high = self.mean_range(after[0] - before[0], after[1] - before[1], delta)
        return (-mean, -high, -low) if measure == "accuracy" else (mean, low, high)

    def plain_scores(self, name: str) -> dict[str, float | None]:
        """Return Brier score, log loss, accuracy and AUROC of one probability, and how many outcomes it called impossible."""
        y, p = self.data.y, self.scores[name]
        weight = np.ones(self.data.n) if self.data.weights is None else self.data.weights
        out: dict[str, float | None] = {}
        for measure, loss in LOSSES.items():
            mean = float(weight @ np.where(y == 1, *loss(p)[::-1]) / weight.sum())
            out[measure] = 1.0 - mean if measure == "accuracy" else mean
        out["impossible"] = int(np.count_nonzero(np.where(y == 1, p == 0.0, p == 1.0)))
        two = 0 < self.data.cases < self.data.n
        out["auroc"] = ranking(p, y, np.ones(self.data.n), weight).auroc if two else None
        return out
