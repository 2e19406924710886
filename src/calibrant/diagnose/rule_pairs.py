"""All pairs of simple conditions at once, and what becomes of the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import lgamma, log
from typing import Any

import numpy as np

from calibrant.diagnose.rule_ballot import Ballot, overlap
from calibrant.diagnose.rule_trees import LEVELS
from calibrant.diagnose.rules import Columns, Condition, Rule, between, extended

CUTS = 9  # of a number, when pairs are searched
FINE = 49  # of a number, when one condition of a rule is improved
MOST = 500  # conditions paired; of more, those that stand out most by themselves
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


def _sides(columns: Columns, name: str, values: Any, cuts: int) -> list[Condition]:
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
    """Return the square of the excess that the best of all rules of so many conditions reaches by chance, about."""
    return 2.0 * (log(2.0) + terms * log(max(conditions, 2)) - lgamma(terms + 1))


def candidates(ballot: Ballot, conditions: Sequence[Condition]) -> tuple[list[Condition], Any]:
    """Return the conditions that enough rows meet, at most 500, and which rows meet them, shape (conditions, n)."""
    met = np.stack([ballot.columns.select(c) for c in conditions])
    rows = met.sum(axis=1)
    kept = np.flatnonzero((rows >= ballot.least) & (rows < met.shape[1]))
    if len(kept) > MOST:
        alone = [ballot.side(met[k])[0] for k in kept]
        kept = np.sort(kept[np.argsort(alone, kind="stable")[-MOST:]])
    return [conditions[int(k)] for k in kept], met[kept]


def best_pair(ballot: Ballot, conditions: Sequence[Condition], met: Any, left: Any) -> tuple[float, Rule]:
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


def value(ballot: Ballot, rule: Rule, conditions: int, left: Any) -> float:
    """Return the square of a rule's excess less its price."""
    z = ballot.excess(rule, left)
    terms = sum(1 + (c.above is not None and c.up_to is not None) for c in rule)
    return (z**2 if z > 0 else -1e9) - price(terms, conditions)


def improved(ballot: Ballot, rule: Rule, conditions: Sequence[Condition], left: Any, depth: int) -> tuple[float, Rule]:
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
    """Return rules, each the best over the rows that the earlier ones left; from the second on, only if worth its price.

    Parameters
    ----------
    nodes : sequence of Rule
        Tried beside the pairs.
    ballot : Ballot
    most, depth : int
        Rules, and conditions of a rule, at most.
    """
    every = conditions_of(ballot.columns, CUTS)
    conditions, met = candidates(ballot, every) if every else ([], None)
    out: list[Rule] = []
    taken: list[Any] = []
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
