"""Groups of the judged rows: their gaps before and after, and certificates of their error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.certify.groups import Group
from calibrant.certify.population import Population
from calibrant.certify.raw_lower import raw_lower_of
from calibrant.certify.rounded import rounded_of
from calibrant.data.columns import level_codes, require
from calibrant.data.predictions import Predictions
from calibrant.data.profile import Profile
from calibrant.data.read import make_spec
from calibrant.data.sketch import Sketch
from calibrant.data.spec import Spec
from calibrant.repair.split import clusters_of
from calibrant.stats.differences import mean_limits, units_of

FEWEST = 20  # people in a group that is judged
LOOKED = 5  # groups whose error is certified from below: those with the plainest error
CLEAR = 0.005  # half a point


@dataclass(frozen=True)
class Groups:
    """Groups named without looking at outcomes, each of enough people.

    Parameters
    ----------
    spec : Spec
        Of sketches that count the groups.
    codes : Mapping of str to int array
        Level of each row.
    names : tuple of Group
    index : tuple of int
        Number of each group in a sketch.
    rows : tuple of int arrays
    """

    spec: Spec
    codes: Mapping[str, Any]
    names: tuple[Group, ...]
    index: tuple[int, ...]
    rows: tuple[Any, ...]

    def sketch(self, y: Any, p: Any, rows: Any) -> Sketch:
        """Count some rows with the scores given."""
        out = Sketch(self.spec)
        out.update_arrays(p[rows], y[rows], {k: np.ascontiguousarray(v[rows]) for k, v in self.codes.items()}, {})
        return out.checked()


def groups_of(
    data: Predictions, by: Sequence[str], bins: Mapping[str, Sequence[float]], fewest: int, seed: int
) -> Groups:
    """Return the groups that the levels of columns make."""
    table = data.covariates
    require(by, () if table is None else tuple(table.schema.names), "group")
    variables = []
    for name in by:
        profile = Profile(name)
        profile.update(table.column(name))
        variables.append(profile.variable(tuple(map(float, bins[name])) if name in bins else None))
    spec = make_spec("y_true", "y_prob", tuple(variables), False, seed=seed)
    codes = {v.name: level_codes(table.column(v.name), v) for v in variables}
    names: list[Group] = []
    index, rows, base = [], [], 0
    for g, grouping in enumerate(spec.groupings):
        code = codes[grouping[0]]
        order = np.argsort(code, kind="stable")
        ends = np.searchsorted(code[order], np.arange(spec.sizes[g] + 1))
        for level, title in enumerate(spec.group_names(g)):
            if ends[level + 1] - ends[level] >= fewest:
                names.append(title)
                index.append(base + level)
                rows.append(np.sort(order[ends[level] : ends[level + 1]]))
        base += spec.sizes[g]
    return Groups(spec, codes, tuple(names), tuple(index), tuple(rows))


def residual_limits(data: Predictions, rows: Any, delta: float) -> tuple[float, float, float]:
    """Return a group's mean residual as audited, and its limits given the scores."""
    y, p = data.y[rows], data.p[rows]
    cluster = clusters_of(data)
    unit = None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1].reshape(-1)
    u = units_of(y, p, -p, 1.0 - p, None if data.weights is None else data.weights[rows], unit)
    return u.mean, *mean_limits(u, delta)


def gap_change(moved: float, low: float, high: float) -> tuple[float, float]:
    """Return the range of ``|G - moved| - |G|``, monotone in G, for a gap G between `low` and `high`."""
    ends = sorted(abs(g - moved) - abs(g) for g in (low, high))
    return ends[0], ends[1]


def group_rows(data: Predictions, groups: Groups, scores: Mapping[str, Any], delta: float) -> list[dict[str, Any]]:
    """Return one row for each probability and group; `delta` is shared by the groups, and serves all repairs at once.

    Each repair moves a group's mean score by a known amount, so that one range for its gap as audited holds the change
    of every repair.
    """
    limits = [residual_limits(data, r, delta / len(groups.rows)) for r in groups.rows]
    out = []
    for name, q in scores.items():
        step = q - data.p
        for group, rows, (gap, low, high) in zip(groups.names, groups.rows, limits, strict=True):
            moved = float(np.average(step[rows], weights=None if data.weights is None else data.weights[rows]))
            ends = gap_change(moved, low, high)
            shown = "better" if ends[1] < 0 else "worse" if ends[0] > 0 else "undecided"
            out.append(
                {
                    "probability": name,
                    "variable": group[0][0],
                    "level": group[0][1],
                    "rows": len(rows),
                    "gap": gap - moved,
                    "change": abs(gap - moved) - abs(gap),
                    "change_low": ends[0],
                    "change_high": ends[1],
                    "shown": shown,
                }
            )
    return out


def worst_group(
    populations: Sequence[tuple[Sequence[Population], Sequence[float]]], levels: int, delta: float, seed: int
) -> tuple[int, float, int, float, float]:
    """Return the group of the largest lower bound, the bound, the same from above, and the largest lower bound in steps.

    Lower bounds are of the raw scores, upper bounds and the last one of the scores shown in steps.

    Parameters
    ----------
    populations : sequence of (populations, shares)
        Each group's counts in every fold, and the folds' shares of its rows.
    levels : int
    delta : float
        Error probability of each end of each group. All groups have their share of it, so that the lower bounds of only
        those with the plainest error need to be found.
    seed : int
    """
    upper, plain = [], []
    for folds, share in populations:
        ends = [rounded_of(q, levels, (0.0, delta / len(folds)), 1.0, seed) for q in folds]
        upper.append(float(np.dot(share, [e.interval.high for e in ends])))
        plain.append(float(np.dot(share, [e.value for e in ends])) - 1.0 / np.sqrt(sum(q.n for q in folds)))
    looked = np.argsort(-np.array(plain), kind="stable")[:LOOKED]
    lower, shown = {}, 0.0
    for i in looked:
        folds, share = populations[int(i)]
        found = [raw_lower_of(q, delta / len(folds), 1.0, seed).interval.low for q in folds]
        steps = [rounded_of(q, levels, (delta / len(folds), 0.0), 1.0, seed).interval.low for q in folds]
        lower[int(i)], shown = float(np.dot(share, found)), max(shown, float(np.dot(share, steps)))
    best, top = max(lower, key=lambda i: lower[i]), int(np.argmax(upper))
    return best, lower[best], top, upper[top], shown
