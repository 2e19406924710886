"""The map that boosting leaves: a straight line of the log-odds, then trees, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.kernels.strata import locate
from calibrant.kernels.trees import add_trees
from calibrant.kernels.trees_reference import BINS
from calibrant.repair.binned import Edges, binned
from calibrant.repair.boosting import ROUND
from calibrant.repair.fitted import Batch, FittedMap, Order
from calibrant.repair.fitting import logit
from calibrant.repair.soundness import inputs_of, rising, sound


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
        A tree each: the column that a node asks (0 the log-odds, then numbers, then levels), and the bins that go left,
        bit by bit. The children of node k are 2k + 1 and 2k + 2; leaves follow the nodes.
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

    def check(self) -> None:
        """Raise `ValueError` if the trees are not of one shape, or ask for what is not there."""
        x, trees = inputs_of(self.codings), len(self.value)
        sound(len(self.feature) == len(self.left) == trees, "every tree needs features, sides and values")
        if not trees:
            return
        nodes = len(self.feature[0])
        sound(nodes > 0 and nodes & (nodes + 1) == 0, "a tree must be full")
        same = {(len(f), len(m), len(v)) for f, m, v in zip(self.feature, self.left, self.value, strict=True)}
        sound(same == {(nodes, nodes, nodes + 1)}, "trees must be of one shape")
        sound(all(0 <= j <= x.columns for f in self.feature for j in f), "a tree asks for a column that is not there")
        sound(all(0 <= m < 1 << BINS for own in self.left for m in own), "sides must be sets of bins")
        sound(len(self.edges) == x.numbers, "every number needs edges")
        sound(len(self.score_edges) == -(-trees // ROUND), "every ten trees need edges of the score")
        sound(all(len(e) < BINS and rising(e) for e in (*self.edges, *self.score_edges)), "edges must rise, and be few")

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
