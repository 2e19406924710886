"""The map that boosting leaves: a straight line of the log-odds, then trees, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.kernels.strata import locate
from calibrant.kernels.trees import add_trees
from calibrant.repair.binned import Edges, binned
from calibrant.repair.boosting import ROUND
from calibrant.repair.fitted import Batch, FittedMap, Order
from calibrant.repair.fitting import logit


@dataclass(frozen=True, kw_only=True)
class BoostedTrees(FittedMap):
    """A line of the score's log-odds, and a sum of small trees of the score and the covariates.

    Parameters
    ----------
    slope, intercept : float
        Of the line.
    scale : float
        What the whole change of the log-odds is multiplied by.
    edges : tuple of tuple of float
        Where the bins of each number begin.
    score_edges : tuple of tuple of float
        The same for the log-odds as they stand before trees 0, 10, 20 and so on.
    feature, left : tuple of tuple of int
        A tree each: the column that a node asks (0 the log-odds, then numbers, then levels), and the bins that go left, bit
        by bit. The children of node k are 2k + 1 and 2k + 2; leaves follow the nodes.
    value : tuple of tuple of float
        The leaves.
    """

    slope: float = 1.0
    intercept: float = 0.0
    scale: float = 1.0
    edges: Edges = ()
    score_edges: Edges = ()
    feature: tuple[tuple[int, ...], ...] = ()
    left: tuple[tuple[int, ...], ...] = ()
    value: tuple[tuple[float, ...], ...] = ()

    @property
    def trees(self) -> int:
        """How many trees."""
        return len(self.value)

    @property
    def order(self) -> Order:
        """Kept if there is no tree and the slope is above 0."""
        return "kept" if not self.value and 1.0 + self.scale * (self.slope - 1.0) > 0 else "may change"

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        from scipy.special import expit

        if not self.value and self.slope == 1.0 and self.intercept == 0.0:
            return np.array(rows.p, dtype=np.float64)
        start = logit(rows.p)
        log_odds = self.intercept + self.slope * start
        if self.value:
            codes = binned(rows.covariates, self.codings, self.edges, len(start))
            feature, left, value = np.array(self.feature), np.array(self.left, dtype=np.uint64), np.array(self.value)
            for k, cuts in enumerate(self.score_edges):
                codes[:, 0] = locate(log_odds, np.array(cuts))
                part = slice(k * ROUND, (k + 1) * ROUND)
                add_trees(codes, feature[part], left[part], value[part], log_odds)
        return expit(start + self.scale * (log_odds - start))
