"""Outcomes of the growing half, by which rules are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.diagnose.rules import Columns, Rule
from calibrant.stats.cusum import Boundary


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """Outcomes, and the rates that they are held against.

    Parameters
    ----------
    columns : Columns
    y : float array of shape (n,)
    edge : Boundary
    weights : float array of shape (n,) or None
    alternative : {"two-sided", "greater", "less"}
    least : int
        Rows that a rule must have.
    """

    columns: Columns
    y: Any
    edge: Boundary
    weights: Any
    alternative: str
    least: int

    @cached_property
    def sides(self) -> tuple[tuple[float, Any, Any], ...]:
        """Each side that the alternative looks at (1 above, -1 below), its scores, and their null variances."""
        w = np.ones(len(self.y)) if self.weights is None else self.weights
        out = []
        for sign, rate in ((1.0, self.edge.high), (-1.0, self.edge.low)):
            if self.alternative != ("less" if sign > 0 else "greater"):
                out.append((sign, sign * w * (self.y - rate), w**2 * rate * (1.0 - rate)))
        return tuple(out)

    def side(self, inside: Any) -> tuple[float, float]:
        """Return the larger standardised excess of some rows, and on which side; infinitely low for too few rows."""
        best = (-np.inf, self.sides[0][0])
        if int(inside.sum()) < self.least:
            return best
        for sign, score, variance in self.sides:
            spread = float(np.sqrt(variance[inside].sum()))
            if spread > 0:
                best = max(best, (float(score[inside].sum()) / spread, sign))
        return best

    def rows(self, which: Any) -> Ballot:
        """Return the ballot of some rows, with the least number of rows in proportion."""
        return Ballot(
            columns=self.columns.rows(which),
            y=self.y[which],
            edge=self.edge.rows(which),
            weights=None if self.weights is None else self.weights[which],
            alternative=self.alternative,
            least=max(1, round(self.least * len(self.y[which]) / len(self.y))),
        )

    def excess(self, rule: Rule, left: Any) -> float:
        """Return the standardised excess of the rows in a rule that are left."""
        return self.side(self.columns.matching(rule) & left)[0]


def overlap(a: Any, b: Any) -> float:
    """Return Jaccard's index of two sets of rows."""
    either = int((a | b).sum())
    return float((a & b).sum()) / either if either else 0.0
