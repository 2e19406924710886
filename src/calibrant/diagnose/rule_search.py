"""The search for rules in one half of the rows; the outcomes of the other half play no part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.specs.traits import between
from calibrant.search.detectors import Question
from calibrant.search.models import Rows, cross_fit, dealt, predicted
from calibrant.stats.cusum import Boundary, beyond, observed
from calibrant.views.rules import Columns, Condition, Flags, Floats, Rule, extended

# ---- Outcomes of the growing half, by which rules are chosen ----


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
    y: Floats
    edge: Boundary
    weights: Floats | None
    alternative: str
    least: int

    @cached_property
    def sides(self) -> tuple[tuple[float, Floats, Floats], ...]:
        """Each side that the alternative looks at (1 above, -1 below), its scores, and their null variances."""
        w = np.ones(len(self.y)) if self.weights is None else self.weights
        out = []
        for sign, rate in ((1.0, self.edge.high), (-1.0, self.edge.low)):
            if self.alternative != ("less" if sign > 0 else "greater"):
                out.append((sign, sign * w * (self.y - rate), w**2 * rate * (1.0 - rate)))
        return tuple(out)

    def side(self, inside: Flags) -> tuple[float, float]:
        """Return the larger standardised excess of some rows, and on which side; infinitely low for too few rows."""
        best = (-np.inf, self.sides[0][0])
        if int(inside.sum()) < self.least:
            return best
        for sign, score, variance in self.sides:
            spread = float(np.sqrt(variance[inside].sum()))
            if spread > 0:
                best = max(best, (float(score[inside].sum()) / spread, sign))
        return best

    def rows(self, which: NDArray[Any]) -> Ballot:
        """Return the ballot of some rows, with the least number of rows in proportion."""
        return Ballot(
            columns=self.columns.rows(which),
            y=self.y[which],
            edge=self.edge.rows(which),
            weights=None if self.weights is None else self.weights[which],
            alternative=self.alternative,
            least=max(1, round(self.least * len(self.y[which]) / len(self.y))),
        )

    def excess(self, rule: Rule, left: Flags) -> float:
        """Return the standardised excess of the rows in a rule that are left."""
        return self.side(self.columns.matching(rule) & left)[0]


def overlap(a: Flags, b: Flags) -> float:
    """Return Jaccard's index of two sets of rows."""
    either = int((a | b).sum())
    return float((a & b).sum()) / either if either else 0.0


# ---- Rules from shallow trees, grown on what a residual model predicts ----

LEVELS = 20  # most frequent levels of a category that a rule may ask for, as in the residual models


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One column that a tree reads: ranks of a number, or whether a category has a level."""

    variable: str
    label: str | None
    values: Floats  # of the ranks; empty for a level


def grown(columns: Columns, target: Floats, weights: Floats | None, depth: int, least: int, seed: int) -> list[Rule]:
    """Grow a tree on the target, and return the rules of its nodes but the root.

    Parameters
    ----------
    columns : Columns
        Of the rows that the tree grows on.
    target : float array of shape (n,)
    weights : float array of shape (n,) or None
    depth, least : int
        Levels of the tree, and rows that a leaf must have.
    seed : int
        Breaks ties between equally good splits.
    """
    from sklearn.tree import DecisionTreeRegressor

    matrix, asked = _matrix(columns)
    if not asked or len(target) < 2 * least:
        return []
    model = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=least, random_state=seed % 2**32)
    tree = model.fit(matrix, target, sample_weight=weights).tree_
    out: list[Rule] = []

    def visit(node: int, rule: Rule) -> None:
        if tree.children_left[node] < 0:
            return
        column = asked[tree.feature[node]]
        cut, left = float(tree.threshold[node]), bool(tree.missing_go_to_left[node])
        for child, low in ((tree.children_left[node], True), (tree.children_right[node], False)):
            step = _condition(columns, column, cut, low, left == low)
            out.append(extended(rule, step, columns))
            visit(child, out[-1])

    visit(0, ())
    return out


def _matrix(columns: Columns) -> tuple[NDArray[np.float32], list[_Asked]]:
    parts: list[NDArray[np.float32]] = []
    asked = []
    for name, values in columns.numbers.items():
        there = ~np.isnan(values)
        distinct, rank = np.unique(values[there], return_inverse=True)
        if len(distinct) < 2 and there.all():
            continue
        column = np.full(len(values), np.nan, dtype=np.float32)
        column[there] = rank
        parts.append(column)
        asked.append(_Asked(variable=name, label=None, values=distinct))
    for name, codes in columns.codes.items():
        labels = columns.labels[name]
        rows = np.bincount(codes, minlength=len(labels))
        kept = [k for k in np.argsort(-rows, kind="stable") if rows[k] > 0][:LEVELS]
        for k in kept[: 1 if (rows > 0).sum() == 2 else None] if len(kept) > 1 else []:
            parts.append((codes == k).astype(np.float32))
            asked.append(_Asked(variable=name, label=labels[k], values=np.zeros(0)))
    return (np.stack(parts, axis=1) if parts else np.empty((0, 0), dtype=np.float32)), asked


def _condition(columns: Columns, column: _Asked, cut: float, low: bool, missing: bool) -> Condition:
    """Return the condition of one side of a split."""
    if column.label is not None:
        one = (column.label,)
        return Condition(
            variable=column.variable, kind="category", levels=() if low else one, others=one if low else ()
        )
    kind, whole = columns.kind(column.variable)
    absent = bool(np.isnan(columns.numbers[column.variable]).any())
    above = up_to = None
    if cut >= len(column.values) - 1:
        above = None if low else np.inf
    else:
        at = int(np.floor(cut))
        t = between(float(column.values[at]), float(column.values[at + 1]), kind, whole)
        above, up_to = (None, t) if low else (t, None)
    return Condition(
        variable=column.variable, kind=kind, whole=whole, missing=missing and absent, above=above, up_to=up_to
    )


# ---- All pairs of simple conditions at once, and what becomes of the best ----

CUTS = 9  # of a number, when pairs are searched: tenths of the rows; the cost grows with the square
FINE = 49  # of a number, when one condition of a rule is improved: fiftieths
MOST = 500  # conditions paired, for cost; of more, those that stand out most by themselves
SAME = 0.8  # overlap from which two rules are one


def conditions_of(columns: Columns, cuts: int, only: str | None = None) -> list[Condition]:
    """Return simple conditions: a number on one side of a cut with few digits, a level or any other."""
    out: list[Condition] = []
    for name, values in columns.numbers.items():
        if only in (None, name):
            out += _sides(columns, name, values, cuts)
    for name, codes in columns.codes.items():
        if only not in (None, name):
            continue
        labels, rows = columns.labels[name], np.bincount(codes, minlength=len(columns.labels[name]))
        kept = [labels[k] for k in np.argsort(-rows, kind="stable") if rows[k] > 0][:LEVELS]
        out += [Condition(variable=name, kind="category", levels=(v,)) for v in kept]
        if len(kept) > 2:
            out += [Condition(variable=name, kind="category", others=(v,)) for v in kept]
    return out


def _sides(columns: Columns, name: str, values: Floats, cuts: int) -> list[Condition]:
    there = values[~np.isnan(values)]
    kind, whole = columns.kind(name)
    absent = (False,) if len(there) == len(values) else (False, True)
    known = Condition(variable=name, kind=kind, whole=whole)
    out = [replace(known, above=np.inf, missing=True), known] if len(absent) > 1 and len(there) else []
    shares = (np.arange(1, cuts + 1)[:, None] + np.array([-0.3, 0.3])) / (cuts + 1)
    if len(there):
        ends = np.quantile(there, shares, method="inverted_cdf")
        top = there.max()
        for t in sorted({between(float(a), float(b), kind, whole) for a, b in ends if a < top}):
            for missing in absent:
                out += [replace(known, above=t, missing=missing), replace(known, up_to=t, missing=missing)]
    return out


def price(terms: int, conditions: int) -> float:
    """Return the square of the excess that the best of all rules of so many conditions reaches by chance, about.

    The largest of m standard normal numbers is about ``sqrt(2 ln m)``; m is twice (two sides) the number of rules.
    """
    return 2.0 * (log(2.0) + terms * log(max(conditions, 2)) - lgamma(terms + 1))


def candidates(ballot: Ballot, conditions: Sequence[Condition]) -> tuple[list[Condition], NDArray[np.bool_]]:
    """Return the conditions that enough rows meet, at most 500, and which rows meet them, shape (conditions, n)."""
    if not conditions:
        return [], np.zeros((0, len(ballot.y)), dtype=bool)
    met = np.stack([ballot.columns.select(c) for c in conditions])
    rows = met.sum(axis=1)
    kept = np.flatnonzero((rows >= ballot.least) & (rows < met.shape[1]))
    if len(kept) > MOST:
        alone = [ballot.side(met[k])[0] for k in kept]
        kept = np.sort(kept[np.argsort(alone, kind="stable")[-MOST:]])
    return [conditions[int(k)] for k in kept], met[kept]


def best_pair(ballot: Ballot, conditions: Sequence[Condition], met: Flags, left: Flags) -> tuple[float, Rule]:
    """Return the single condition or pair with the largest excess over its price, among the rows that are left."""
    open_rows = met[:, left].astype(np.float32)
    rows = open_rows @ open_rows.T
    best: tuple[float, int, int] = (-np.inf, 0, 0)
    for _, score, variance in ballot.sides:
        total, spread = ((open_rows * v[left].astype(np.float32)) @ open_rows.T for v in (score, variance))
        z = np.where((rows >= ballot.least) & (spread > 0), total / np.sqrt(np.maximum(spread, 1e-12)), 0.0)
        value = np.maximum(z, 0.0) ** 2 - price(2, len(conditions))
        value[np.diag_indices_from(value)] += price(2, len(conditions)) - price(1, len(conditions))
        at = int(np.argmax(value))
        best = max(best, (float(value.flat[at]), at // len(conditions), at % len(conditions)))
    value_, a, b = best
    rule = extended((), conditions[a], ballot.columns)
    return value_, rule if a == b else extended(rule, conditions[b], ballot.columns)


def value(ballot: Ballot, rule: Rule, conditions: int, left: Flags) -> float:
    """Return the square of a rule's excess less its price."""
    z = ballot.excess(rule, left)
    terms = sum(1 + (c.above is not None and c.up_to is not None) for c in rule)
    return (z**2 if z > 0 else -1e9) - price(terms, conditions)


def improved(
    ballot: Ballot, rule: Rule, conditions: Sequence[Condition], left: Flags, depth: int
) -> tuple[float, Rule]:
    """Drop, add and move conditions as long as that pays its price."""
    worth = value(ballot, rule, len(conditions), left)
    for _ in range(2 * depth):
        shorter = [rule[:k] + rule[k + 1 :] for k in range(len(rule))] if len(rule) > 1 else []
        longer = [extended(rule, c, ballot.columns) for c in conditions]
        longer = [r for r in longer if len(r) <= depth]
        moved = []
        for k, old in enumerate(rule):
            if old.kind != "category" and (old.above is None) != (old.up_to is None) and old.above != np.inf:
                finer = conditions_of(ballot.columns, FINE, old.variable)
                same = [c for c in finer if (c.above is None, c.missing) == (old.above is None, old.missing)]
                moved += [(*rule[:k], c, *rule[k + 1 :]) for c in same if (c.up_to is None) == (old.up_to is None)]
        tried = [(value(ballot, r, len(conditions), left), r) for r in (*shorter, *longer, *moved)]
        best = max(tried, key=lambda v: v[0], default=(worth, rule))
        if best[0] <= worth:
            break
        worth, rule = best
    return worth, rule


def chosen(nodes: Sequence[Rule], ballot: Ballot, most: int, depth: int) -> list[Rule]:
    """Return rules, each the best over the rows that earlier ones left; from the second on, only if worth its price.

    Parameters
    ----------
    nodes : sequence of Rule
        Tried beside the pairs.
    ballot : Ballot
    most, depth : int
        Rules, and conditions of a rule, at most.
    """
    conditions, met = candidates(ballot, conditions_of(ballot.columns, CUTS))
    out: list[Rule] = []
    taken: list[Flags] = []
    left = np.ones(len(ballot.y), dtype=bool)
    while len(conditions) > 1 and len(out) < most and left.any():
        rival = [(value(ballot, rule, len(conditions), left), rule) for rule in nodes]
        _, start = max([best_pair(ballot, conditions, met, left), *rival], key=lambda v: v[0])
        worth, rule = improved(ballot, start, conditions, left, depth)
        inside = ballot.columns.matching(rule)
        if ballot.side(inside & left)[0] <= 0 or (out and worth <= 0) or not (inside & left).any():
            break
        left &= ~inside
        if all(overlap(inside, other) < SAME for other in taken):
            out.append(rule)
            taken.append(inside)
    return out


# ---- The search in one half of the rows; the outcomes of the other half play no part in it ----

FEWEST = 20  # rows that a rule must have in the half that judges it: a rate of 20 rows is known within about 20 points
GROWN = 50_000  # rows that a tree grows on, a uniform sample: beyond it rules gain little and searches take minutes
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

    judges: Rows
    model: str
    threshold: float
    rules: tuple[Rule, ...]
    sides: tuple[float, ...]
    stability: tuple[float, ...]


def search(q: Question, columns: Columns, most: int, depth: int, min_share: float) -> Search:
    """Find at most so many rules in the first of two halves."""
    half = dealt(q.n, 2, q.settings.seed, q.cluster)
    mine, judges = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
    own = q.part(mine)
    # (1) Residual models cross-fitted in this half; the best one's threshold is where its path peaks.
    g, fitted = cross_fit(own.sample, own.pool, own.fold, own.settings.seed)
    best, threshold = _peak(own, g)
    # (2) Rows that trees and pairs read: of this half with their outcomes, and of the other with predictions alone.
    rng = np.random.default_rng([q.settings.seed, GROW])
    fresh, seen = np.sort(_some(rng, judges)), np.sort(_some(rng, np.arange(len(mine))))
    ballot = Ballot(
        columns=columns.rows(mine[seen]),
        y=own.sample.y[seen],
        edge=own.edge.rows(seen),
        weights=own.sample.weights_of(seen),
        alternative=q.settings.alternative,
        least=max(round(FEWEST * len(seen) / len(mine)), round(min_share * len(seen)), 1),
    )
    trees = _Trees(q=q, columns=columns, threshold=threshold, depth=depth, min_share=min_share)
    folds = np.stack([predicted(one, q.sample, q.pool, fresh)[best] for one in fitted])
    # (3) Rules from a tree over both halves' covariates and from all pairs, chosen by this half's outcomes.
    nodes = trees.nodes(np.append(mine[seen], fresh), np.append(g[best, seen], folds.mean(axis=0)))
    rules = chosen(nodes, ballot, most, depth)
    # (4) The same without each fold: how often the search leads to about the same rules.
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


def _peak(q: Question, g: Floats) -> tuple[int, float]:
    """Return the model with the largest statistic, and its predicted residual beyond the tolerance at its peak."""
    paths = q.paths(g)
    best = int(np.argmax(observed(paths, q.sample.y, q.settings.detector)))
    curve = paths[best].curve(q.sample.y)
    top = int(np.nanargmax(curve)) if np.isfinite(curve).any() else -1
    return best, float(paths[best].excess[top]) if top >= 0 and curve[top] > 0 else 0.0


def _some(rng: np.random.Generator, rows: Rows) -> Rows:
    return rows if len(rows) <= GROWN // 2 else rng.choice(rows, GROWN // 2, replace=False)


@dataclass(frozen=True, kw_only=True)
class _Trees:
    """How trees are grown."""

    q: Question
    columns: Columns
    threshold: float
    depth: int
    min_share: float

    def nodes(self, rows: Rows, g: Floats) -> list[Rule]:
        """Grow a tree over the covariates of some rows on predictions beyond tolerance and threshold, signed."""
        s = self.q.settings
        excess, upper = beyond(g, self.q.edge.rows(rows), s.alternative)
        target = np.where(excess >= self.threshold, np.where(upper, excess, -excess), 0.0)
        least = max(2 * FEWEST * len(rows) // self.q.n, round(self.min_share * len(rows)), 1)
        return grown(self.columns.rows(rows), target, self.q.sample.weights_of(rows), self.depth, least, s.seed)


def _share_found(rule: Rule, again: Sequence[Sequence[Rule]], columns: Columns) -> float:
    inside = columns.matching(rule)
    return float(np.mean([any(overlap(inside, columns.matching(r)) >= FOUND for r in found) for found in again]))
