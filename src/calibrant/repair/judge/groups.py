"""Groups and variables of the judged rows: gaps, certificates and tests before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.certify.groups import Group
from calibrant.certify.raw_lower import raw_lower_of
from calibrant.certify.rounded import rounded_of
from calibrant.data.columns import require
from calibrant.data.predictions import Predictions
from calibrant.data.read import make_spec
from calibrant.data.sketch import Sketch
from calibrant.data.spec import Spec
from calibrant.data.survey import Profile
from calibrant.errors import NotComputable
from calibrant.kernels.strata import strata_sums
from calibrant.repair.judge.rows import Judged, clusters_of, sampled, taken
from calibrant.stats.betting import mean_limits
from calibrant.stats.betting import paired_units_of as units_of
from calibrant.stats.nulls import total_interval
from calibrant.stats.strata import Bins, beyond_shift
from calibrant.views.along import along_of
from calibrant.views.population import Population, group

# ---- Groups of the judged rows: their gaps before and after, and certificates of their error ----

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
    codes = {v.name: v.codes(table.column(v.name)) for v in variables}
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
        for named, rows, (gap, low, high) in zip(groups.names, groups.rows, limits, strict=True):
            moved = float(np.average(step[rows], weights=None if data.weights is None else data.weights[rows]))
            ends = gap_change(moved, low, high)
            shown = "better" if ends[1] < 0 else "worse" if ends[0] > 0 else "undecided"
            out.append(
                {
                    "probability": name,
                    "variable": named[0][0],
                    "level": named[0][1],
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


# ---- Certificates and tests of one probability on the judged rows ----

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
    what = "weights" if data.weights is not None else "clusters" if data.cluster is not None else ""
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
    from calibrant.stats.jitter import distance_upper

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


# ---- Error along each audited variable, before and after ----

BINS = 10
DRAWS = 200
STREAM = 0xA10F


def bins_along(judged: Judged, variable: str) -> Any:
    """Return each row's bin along a variable, as `measure.vece` cuts it: ten of equal mass, or the levels."""
    from dataclasses import replace

    found = along_of(replace(judged.data, cluster=None, cache={}), variable)
    return found.strata.bin_of(BINS)[found.cell].astype(np.int32)


def variable_rows(judged: Judged, variables: Sequence[str], delta: float, seed: int) -> list[dict[str, Any]]:
    """Return one row for each probability and variable; `delta` is shared by variables and repairs.

    ``vece`` is `measure.vece`'s value. What is judged is its square's cousin, ``sum_b P(b) E[Y - p | b]^2``: a repair
    that moves a bin's mean score by d changes it by ``P(b) (d^2 - 2 d E[Y - p | b])``, which is linear in the outcomes.
    """
    out = []
    share = delta / max(len(variables) * len(judged.repairs), 1)
    for variable in variables:
        bin_ = bins_along(judged, variable)
        for name, q in judged.scores.items():
            vece, beyond = _sizes(judged, bin_, q, seed)
            change = _squared_change(judged, bin_, name, share) if name in judged.repairs else (0.0, 0.0, 0.0)
            shown = "better" if change[2] < 0 else "worse" if change[1] > 0 else "undecided"
            out.append(
                {
                    "probability": name,
                    "variable": variable,
                    "vece": vece,
                    "beyond_shift": beyond,
                    "change_squared": change[0],
                    "change_low": change[1],
                    "change_high": change[2],
                    "shown": shown,
                }
            )
    order = {name: i for i, name in enumerate(judged.scores)}
    return sorted(out, key=lambda row: order[row["probability"]])


def _sizes(judged: Judged, bin_: Any, q: Any, seed: int) -> tuple[float, float]:
    data, size = judged.data, int(bin_.max()) + 1
    sums = strata_sums(bin_, None, data.y, np.ascontiguousarray(q), data.weights, size, False)
    rows, weight, weight2, cases, score, _, resid2 = (sums[:, j] for j in range(7))
    bins = Bins(np.stack([rows, weight, cases, score, resid2, weight2], axis=1), size)
    noise = bins.gap_noise(DRAWS, np.random.default_rng([seed, STREAM]))
    left = [beyond_shift(v, bins.share) for v in (bins.gap, noise)]
    return tuple(total_interval(g, z, _total, 0.05).middle for g, z in ((bins.gap, noise), left))  # type: ignore[return-value]


def _total(gap: Any) -> Any:
    return np.abs(gap).sum(axis=-1)


def _squared_change(judged: Judged, bin_: Any, name: str, delta: float) -> tuple[float, float, float]:
    p, q = judged.data.p, judged.scores[name]
    weight = np.ones(judged.data.n) if judged.data.weights is None else judged.data.weights
    moved = np.empty(judged.data.n)
    for rows, _ in judged.each_fold():
        mass = np.bincount(bin_[rows], weight[rows])
        step = np.bincount(bin_[rows], weight[rows] * (q[rows] - p[rows]))
        moved[rows] = (step / np.where(mass > 0, mass, 1.0))[bin_[rows]]
    return judged.mean_range(moved**2 + 2.0 * moved * p, moved**2 - 2.0 * moved * (1.0 - p), delta)
