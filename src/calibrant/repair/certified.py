"""Certificates and tests of one probability on the judged rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.certify.population import Population, group
from calibrant.certify.raw_lower import raw_lower_of
from calibrant.certify.rounded import rounded_of
from calibrant.data.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.repair.grouped import Groups, groups_of, worst_group
from calibrant.repair.judged import Judged
from calibrant.repair.split import sampled, taken

NONE: dict[str, Any] = {
    "error_low": None,
    "error_high": None,
    "error_shown_low": None,
    "distance_high": None,
    "worst_group_low": None,
    "worst_group_low_group": None,
    "worst_group_high": None,
    "worst_group_high_group": None,
    "worst_group_shown_low": None,
}
UNPROVED = "certificates are proved for independent rows of equal weight, not for {}="


def unproved(judged: Judged) -> str:
    """Return why the rows cannot be certified; empty if they can."""
    data = judged.data
    what = "weights" if data.weights is not None else "clusters" if data.clusters is not None else ""
    return UNPROVED.format(what) if what else ""


def certificates(
    judged: Judged, groups: Groups | None, levels: int, alpha: float, by_group: bool, seed: int
) -> dict[str, dict[str, Any]]:
    """Return the certificates of each probability; each family shares alpha over all probabilities.

    In folds each fold is certified at its share of alpha, given the others, and bounds are averaged by size: they are
    about the average over the folds' maps.
    """
    if unproved(judged):
        return {name: dict(NONE) for name in judged.scores}
    counted = groups or groups_of(judged.data, (), {}, 1, seed)
    share = alpha / len(judged.scores)
    out = {}
    for name, q in judged.scores.items():
        folds = [(counted.sketch(judged.data.y, q, rows), part) for rows, part in judged.each_fold()]
        out[name] = {**NONE, **_everyone(folds, levels, share, seed)}
        if groups is not None and groups.names and by_group:
            out[name] |= _groups(folds, groups, levels, share, seed)
    return out


def _everyone(folds: list[tuple[Sketch, float]], levels: int, delta: float, seed: int) -> dict[str, Any]:
    from calibrant.stats.distance import distance_upper

    ends = np.zeros(4)
    for sketch, share in folds:
        q, each = Population(sketch.cells, sketch.levels), delta / len(folds)
        low = raw_lower_of(q, each / 2, 1.0, seed).interval.low
        shown = rounded_of(q, levels, (each / 2, each / 2), 1.0, seed).interval
        ends += share * np.array([low, shown.high, shown.low, distance_upper(q.cells, each)[0]])
    return dict(zip(("error_low", "error_high", "error_shown_low", "distance_high"), ends.tolist(), strict=True))


def _groups(folds: list[tuple[Sketch, float]], groups: Groups, levels: int, delta: float, seed: int) -> dict[str, Any]:
    populations = []
    for i in groups.index:
        held = [q for q in (group(sketch, i) for sketch, _ in folds) if q.n]
        populations.append((held, [q.n / sum(h.n for h in held) for q in held]))
    at, low, top, high, shown = worst_group(populations, levels, delta / (2 * len(groups.index)), seed)
    return {
        "worst_group_low": low,
        "worst_group_low_group": title(groups, at),
        "worst_group_high": high,
        "worst_group_high_group": title(groups, top),
        "worst_group_shown_low": shown,
    }


def title(groups: Groups, index: int) -> str:
    """Return ``variable=level`` of a group."""
    return " and ".join(f"{variable}={level}" for variable, level in groups.names[index])


def p_values(
    judged: Judged, variables: tuple[str, ...], tests: tuple[str, ...], most: int, draws: int, seed: int
) -> tuple[dict[str, dict[str, float | None]], int, tuple[tuple[str, str], ...]]:
    """Return p-values of each probability, the rows tested, and which tests did not apply and why.

    All probabilities are tested on the same rows. Folds' p-values are joined by Bonferroni: the smallest times their
    number.
    """
    out: dict[str, dict[str, float | None]] = {n: dict.fromkeys(("local_p", "strong_p")) for n in judged.scores}
    refused: dict[str, str] = {}
    rows = sampled(judged.data, most, seed)
    folds = [rows[judged.part[rows] == k] for k in range(judged.folds)]
    data = [taken(judged.data, at) for at in folds]
    for test in tests:
        for name, q in judged.scores.items():
            try:
                found = [
                    _test(test, replace(d, p=q[at], cache={}), variables, draws, seed)
                    for d, at in zip(data, folds, strict=True)
                ]
                out[name][f"{test}_p"] = min(1.0, len(found) * min(found))
            except NotComputable as e:
                refused[f"{test}_p"] = e.reason
    return out, len(rows) if tests else 0, tuple(refused.items())


def _test(test: str, rows: Any, variables: tuple[str, ...], draws: int, seed: int) -> float:
    from calibrant.detect import local_calibration_test, strong_calibration_test

    if test == "local":
        return local_calibration_test(rows, variables=variables, draws=draws, seed=seed).p_value
    return strong_calibration_test(rows, variables=variables, draws=draws, seed=seed).p_value
