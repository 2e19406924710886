"""Rules from shallow trees: grown on what a residual model predicts, chosen by the outcomes of the growing half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.diagnose.rules import Columns, Condition, between
from calibrant.stats.cusum import Boundary

LEVELS = 20  # most frequent levels of a category that a tree may ask for
WORTH = 1.0  # standardised excess on the growing half from which a rule is judged
SAME = 0.8  # overlap from which two rules are one
Rule = tuple[Condition, ...]


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """Outcomes by which rules are chosen, with the rates that they are held against.

    Parameters
    ----------
    columns : Columns
    y : float array of shape (n,)
    edge : Boundary
    weights : float array of shape (n,) or None
    alternative : {"two-sided", "greater", "less"}
    """

    columns: Columns
    y: Any
    edge: Boundary
    weights: Any
    alternative: str

    def side(self, inside: Any) -> tuple[float, float]:
        """Return the larger standardised excess of the rows in a rule, and on which side (1 above, -1 below)."""
        w = np.ones(int(inside.sum())) if self.weights is None else self.weights[inside]
        y = self.y[inside]
        best = (-np.inf, 1.0)
        for sign, rate in ((1.0, self.edge.high[inside]), (-1.0, self.edge.low[inside])):
            if self.alternative == ("less" if sign > 0 else "greater"):
                continue
            spread = float(np.sqrt((w**2 * rate * (1.0 - rate)).sum()))
            z = sign * float(w @ (y - rate)) / spread if spread > 0 else -np.inf
            best = max(best, (z, sign))
        return best

    def excess(self, rule: Rule) -> float:
        """Return the standardised excess of a rule; infinitely low without rows."""
        inside = self.columns.matching(rule)
        return self.side(inside)[0] if inside.any() else -np.inf


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One column that a tree reads: ranks of a number, or whether a category has a level."""

    variable: str
    label: str | None
    values: Any  # of the ranks


def grown(columns: Columns, target: Any, weights: Any, depth: int, least: int, seed: int) -> list[tuple[Rule, int]]:
    """Grow a tree on the target, and return the rules of its nodes but the root, each with its parent's place (-1: none).

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
    out: list[tuple[Rule, int]] = []

    def visit(node: int, rule: Rule, place: int) -> None:
        if tree.children_left[node] < 0:
            return
        column = asked[tree.feature[node]]
        cut, left = float(tree.threshold[node]), bool(tree.missing_go_to_left[node])
        for child, low in ((tree.children_left[node], True), (tree.children_right[node], False)):
            step = _condition(columns, column, cut, low, left == low)
            out.append((_with(rule, step, columns), place))
            visit(child, out[-1][0], len(out) - 1)

    visit(0, (), -1)
    return out


def _matrix(columns: Columns) -> tuple[Any, list[_Asked]]:
    parts, asked = [], []
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
            asked.append(_Asked(variable=name, label=labels[k], values=None))
    return (np.stack(parts, axis=1) if parts else np.empty((0, 0))), asked


def _condition(columns: Columns, column: _Asked, cut: float, low: bool, missing: bool) -> Condition:
    """Return the condition of one side of a split."""
    if column.label is not None:
        one = {"others": (column.label,)} if low else {"levels": (column.label,)}
        return Condition(variable=column.variable, kind="category", **one)
    kind, whole = columns.kind(column.variable)
    absent = bool(np.isnan(columns.numbers[column.variable]).any())
    place = {"variable": column.variable, "kind": kind, "whole": whole, "missing": missing and absent}
    if cut >= len(column.values) - 1:
        return Condition(**place) if low else Condition(**place | {"above": np.inf})
    at = int(np.floor(cut))
    t = between(float(column.values[at]), float(column.values[at + 1]), kind, whole)
    return Condition(**place, up_to=t) if low else Condition(**place, above=t)


def _with(rule: Rule, step: Condition, columns: Columns) -> Rule:
    """Add a condition to a rule, joined with what the rule asks of the same variable already."""
    present: tuple[str, ...] = ()
    if step.kind == "category":
        rows = np.bincount(columns.codes[step.variable], minlength=len(columns.labels[step.variable]))
        present = tuple(v for v, n in zip(columns.labels[step.variable], rows, strict=True) if n)
    same = [c for c in rule if c.variable == step.variable]
    merged = same[0].joined(step, present) if same else step.joined(step, present)
    return (*(c for c in rule if c.variable != step.variable), merged)


def chosen(nodes: Sequence[tuple[Rule, int]], ballot: Ballot, most: int) -> list[Rule]:
    """Return the rules with the largest excess on the growing half, at most one of each branch, simplified."""
    scores = [ballot.excess(rule) for rule, _ in nodes]
    taken: list[int] = []
    out: list[Rule] = []
    for j in sorted(range(len(nodes)), key=lambda j: (-scores[j], j)):
        if scores[j] < WORTH or len(out) == most:
            break
        if any(j in _line(nodes, k) or k in _line(nodes, j) for k in taken):
            continue
        taken.append(j)
        rule = simplified(nodes[j][0], ballot, scores[j])
        inside = ballot.columns.matching(rule)
        if all(overlap(inside, ballot.columns.matching(other)) < SAME for other in out):
            out.append(rule)
    return out


def _line(nodes: Sequence[tuple[Rule, int]], j: int) -> Iterator[int]:
    """Yield a node's ancestors."""
    while (j := nodes[j][1]) >= 0:
        yield j


def simplified(rule: Rule, ballot: Ballot, score: float) -> Rule:
    """Leave out conditions one at a time as long as the excess on the growing half does not fall."""
    while len(rule) > 1:
        shorter = [rule[:k] + rule[k + 1 :] for k in range(len(rule))]
        best = max(shorter, key=ballot.excess)
        if ballot.excess(best) < score:
            return rule
        rule, score = best, ballot.excess(best)
    return rule


def overlap(a: Any, b: Any) -> float:
    """Return Jaccard's index of two sets of rows."""
    either = int((a | b).sum())
    return float((a & b).sum()) / either if either else 0.0
