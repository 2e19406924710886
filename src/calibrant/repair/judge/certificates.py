"""Certificates of each probability on the judged rows: everyone's and the worst group's, by rows or by whole clusters.

Where the rows name clusters or weights, whole clusters certify (Theorems CL, CU and CD), as in `calibrant.certify`.
Which clusters are pilots, and into which block the others go, hashes of their names decide, the same for every
probability and fold; a group or a fold has those of its clusters. In folds the largest size known is that of all pilot
clusters: clusters of other folds, independent of those that certify here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.certify.raw_lower import raw_certificate
from calibrant.certify.shown import shown_certificate
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.repair.judge.evidence import JudgedGroups, groups_of
from calibrant.repair.judge.rows import Judged
from calibrant.repair.judge.verdict import Summary
from calibrant.repair.regression import Whole
from calibrant.views.population import Clustering, Population, group, part_of, sketch_of

LOOKED = 5  # groups whose error is certified from below: those with the plainest error
Folds = list[tuple[Population, float]]  # what each fold counts, and its share of the rows
NO_VALUES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Certifying:
    """How to certify."""

    steps: int  # steps in which probabilities are shown
    delta: float  # error probability of each family (everyone, distance, groups) of one probability
    by_group: bool
    seed: int


def population(judged: Judged, name: str, rows: Whole, values: Whole, seed: int) -> Population:
    """Return some judged rows under one probability, with their clusters; certified as it is in `values`, if any."""
    data = judged.alone(name)
    if len(rows) < data.n:
        data = Predictions(y=data.y[rows], p=data.p[rows])
    result, clusters = part_of(data, values, seed), judged.clusters(name, seed)
    if clusters is None:
        return result
    if len(rows) < judged.data.n:
        here = np.zeros(judged.data.n, dtype=bool)
        here[rows] = True
        clusters = clusters.within(here)
    return Clustering((clusters,)).population(result, (clusters,))


def certified(row: Summary, judged: Judged, groups: JudgedGroups | None, how: Certifying) -> Summary:
    """The row with the certificates of its probability.

    In folds each fold is certified at its share of alpha, given the others, and bounds are averaged by size: they are
    about the average over the folds' maps.
    """
    name, by = row.probability, groups if how.by_group else None
    if judged.data.weights is not None or judged.data.cluster is not None:
        return _by_clusters(row, judged, by, how)
    if by is None and judged.folds == 1:
        return _whole(row, [(_counted(sketch_of(judged.alone(name), how.seed)), 1.0)], how)
    counted = by or groups_of(judged.data, (), {}, 1, how.seed)
    folds = [(counted.sketch(judged, judged.scores[name], rows), share) for rows, share in judged.each_fold()]
    row = _whole(row, [(_counted(sketch), share) for sketch, share in folds], how)
    if by is None:
        return row
    return _groups(row, by, lambda i: [group(sketch, by.index[i]) for sketch, _ in folds], how)


def _counted(sketch: Sketch) -> Population:
    return Population(sketch.cells, sketch.levels)


def _by_clusters(row: Summary, judged: Judged, groups: JudgedGroups | None, how: Certifying) -> Summary:
    name, every = row.probability, np.arange(judged.data.n)
    folds = [every[judged.part == k] for k in range(judged.folds)]
    row = _whole(row, [(population(judged, name, at, NO_VALUES, how.seed), len(at) / len(every)) for at in folds], how)
    if groups is None:
        return row

    def parts(i: int) -> list[Population]:
        rows = groups.rows[i]
        own = (rows[judged.part[rows] == k] for k in range(judged.folds))
        return [population(judged, name, at, NO_VALUES, how.seed) for at in own if len(at)]

    return _groups(row, groups, parts, how)


def _whole(row: Summary, folds: Folds, how: Certifying) -> Summary:
    low = shown_low = shown_high = distance = 0.0
    for q, share in folds:
        each = how.delta / len(folds)
        shown = shown_certificate(q, q.as_shown(how.steps))
        low += share * raw_certificate(q).below(each / 2, how.seed)
        shown_low += share * shown.below(each / 2, how.seed)
        shown_high += share * shown.above(each / 2)[0]
        distance += share * q.distance_above(each)[0]
    return replace(
        row,
        error_low=float(low),
        error_high=float(shown_high),
        error_shown_low=float(shown_low),
        distance_high=float(distance),
    )


def _groups(
    row: Summary, groups: JudgedGroups, parts_of: Callable[[int], Sequence[Population]], how: Certifying
) -> Summary:
    """Certify the worst group: from below raw, from above and from below as shown in steps.

    All groups have their share of the error probability, so that the lower bounds of only those with the plainest error
    need to be found.
    """
    each = how.delta / (2 * len(groups.index))
    values: list[list[Population]] = []
    upper, plain = [], []
    for i in range(len(groups.index)):
        parts = [q for q in parts_of(i) if q.n]
        spend = 0.0, each / len(parts)
        ends = [shown_certificate(q, q.as_shown(how.steps)).run(spend, 1.0, how.seed) for q in parts]
        values.append(parts)
        upper.append(_averaged(parts, [e.interval.high for e in ends]))
        plain.append(_averaged(parts, [e.value for e in ends]) - 1.0 / np.sqrt(sum(q.n for q in parts)))
    lower: dict[int, float] = {}
    shown = 0.0
    for i in np.argsort(-np.array(plain), kind="stable")[:LOOKED].tolist():
        parts = values[i]
        delta = each / len(parts)
        lower[i] = _averaged(parts, [raw_certificate(q).below(delta, how.seed) for q in parts])
        steps = [shown_certificate(q, q.as_shown(how.steps)).below(delta, how.seed) for q in parts]
        shown = max(shown, _averaged(parts, steps))
    worst, top = max(lower, key=lambda i: lower[i]), int(np.argmax(upper))
    return replace(
        row,
        worst_group_low=lower[worst],
        worst_group_low_group=groups.title(worst),
        worst_group_high=upper[top],
        worst_group_high_group=groups.title(top),
        worst_group_shown_low=shown,
    )


def _averaged(folds: Sequence[Population], values: Sequence[float]) -> float:
    """The mean of a group's bounds over folds, by its rows in each."""
    n = sum(q.n for q in folds)
    return float(np.dot([q.n / n for q in folds], values))
