"""Rules from shallow trees, grown on what a residual model predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.diagnose.rules import Columns, Condition, Rule, between, extended

LEVELS = 20  # most frequent levels of a category that a rule may ask for


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One column that a tree reads: ranks of a number, or whether a category has a level."""

    variable: str
    label: str | None
    values: Any  # of the ranks


def grown(columns: Columns, target: Any, weights: Any, depth: int, least: int, seed: int) -> list[Rule]:
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
