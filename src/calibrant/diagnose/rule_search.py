"""The search for rules in one half of the rows; the outcomes of the other half play no part in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.detect.residual_models import Fitted, Sample, cross_fit, dealt
from calibrant.detect.residual_models import predicted as predictions_of
from calibrant.detect.strong_detectors import Question
from calibrant.diagnose.rule_ballot import Ballot, overlap
from calibrant.diagnose.rule_pairs import chosen
from calibrant.diagnose.rule_trees import grown
from calibrant.diagnose.rules import Columns, Rule
from calibrant.stats.cusum import beyond, observed

FEWEST = 20  # rows that a rule must have in the half that judges it
GROWN = 50_000  # rows that a tree grows on, a uniform sample
FOUND = 0.5  # overlap from which a rule was found again
GROW = 0x62071


@dataclass(frozen=True, kw_only=True)
class Search:
    """Rules, and what was found out about them without the judging half's outcomes.

    Parameters
    ----------
    judges : int array
        Rows of the judging half.
    model : str
        The one whose predictions the tree was grown on.
    threshold : float
        Predicted residual beyond the tolerance at the peak of its path.
    rules : tuple of Rule
    sides : tuple of float
        1 where more happens than the model says, -1 where less.
    stability : tuple of float
        Share of the folds without which the search leads to about the rule as well.
    """

    judges: Any
    model: str
    threshold: float
    rules: tuple[Rule, ...]
    sides: tuple[float, ...]
    stability: tuple[float, ...]


def search(q: Question, columns: Columns, most: int, depth: int, min_share: float) -> Search:
    """Find at most so many rules in the first of two halves."""
    half = dealt(q.n, 2, q.seed, q.cluster)
    mine, judges = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
    own = _part(q, mine)
    g, fitted = cross_fit(own.sample, own.pool, own.fold, own.seed)
    paths = own.paths(g)
    best = int(np.argmax(observed(paths, own.sample.y, own.detector)))
    curve = paths[best].curve(own.sample.y)
    top = int(np.nanargmax(curve)) if np.isfinite(curve).any() else -1
    threshold = float(paths[best].excess[top]) if top >= 0 and curve[top] > 0 else 0.0
    rng = np.random.default_rng([q.seed, GROW])
    fresh, seen = np.sort(_some(rng, judges)), np.sort(_some(rng, np.arange(len(mine))))
    ballot = Ballot(
        columns=columns.rows(mine[seen]),
        y=own.sample.y[seen],
        edge=own.edge.rows(seen),
        weights=own.sample.heft(seen),
        alternative=q.alternative,
        least=max(round(FEWEST * len(seen) / len(mine)), round(min_share * len(seen)), 1),
    )
    trees = _Trees(q=q, columns=columns, threshold=threshold, depth=depth, min_share=min_share)
    folds = _by_fold(q, fitted, best, fresh)
    rows, g_of = np.append(mine[seen], fresh), np.append(g[best, seen], folds.mean(axis=0))
    rules = chosen(trees.nodes(rows, g_of), ballot, most, depth)
    again = [
        chosen(trees.nodes(fresh, one), ballot.rows(own.fold[seen] != f), most, depth) for f, one in enumerate(folds)
    ]
    return Search(
        judges=judges,
        model=q.pool.names[best],
        threshold=threshold,
        rules=tuple(rules),
        sides=tuple(ballot.side(ballot.columns.matching(r))[1] for r in rules),
        stability=tuple(_share_found(rule, again, columns.rows(fresh)) for rule in rules),
    )


def _part(q: Question, rows: Any) -> Question:
    """Return the question of some rows."""
    x = replace(q.sample.x, trees=q.sample.x.trees[rows], flat=q.sample.x.flat[rows])
    weights = None if q.sample.weights is None else q.sample.weights[rows] / q.sample.weights[rows].mean()
    sample = Sample(x, q.sample.y[rows], q.sample.p[rows], weights)
    cluster = None if q.cluster is None else np.unique(q.cluster[rows], return_inverse=True)[1]
    return replace(q, sample=sample, edge=q.edge.rows(rows), cluster=cluster)


def _some(rng: Any, rows: Any) -> Any:
    return rows if len(rows) <= GROWN // 2 else rng.choice(rows, GROWN // 2, replace=False)


def _by_fold(q: Question, fitted: tuple[tuple[Fitted, ...], ...], model: int, rows: Any) -> Any:
    """Return what each fold's learners predict of rows of the judging half, shape (folds, rows)."""
    return np.stack([predictions_of(one, q.sample, q.pool, rows)[model] for one in fitted])


@dataclass(frozen=True, kw_only=True)
class _Trees:
    """How trees are grown."""

    q: Question
    columns: Columns
    threshold: float
    depth: int
    min_share: float

    def nodes(self, rows: Any, g: Any) -> list[Rule]:
        """Grow a tree over the covariates of some rows on predictions beyond tolerance and threshold, signed."""
        excess, upper = beyond(g, self.q.edge.rows(rows), self.q.alternative)
        target = np.where(excess >= self.threshold, np.where(upper, excess, -excess), 0.0)
        least = max(2 * FEWEST * len(rows) // self.q.n, round(self.min_share * len(rows)), 1)
        return grown(self.columns.rows(rows), target, self.q.sample.heft(rows), self.depth, least, self.q.seed)


def _share_found(rule: Rule, again: list[list[Rule]], columns: Columns) -> float:
    inside = columns.matching(rule)
    return float(np.mean([any(overlap(inside, columns.matching(r)) >= FOUND for r in found) for found in again]))
