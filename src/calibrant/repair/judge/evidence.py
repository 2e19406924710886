"""What the judged rows say of each probability: paired changes with their limits, certificates, and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.certify.whole import raw_certificate, shown_certificate
from calibrant.data.columns import require
from calibrant.data.predictions import Predictions
from calibrant.data.profile import LevelCounts
from calibrant.data.read import levels_of, make_spec
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.detect import local_calibration_test, strong_calibration_test
from calibrant.detect.subgroup_tests import scan_test
from calibrant.errors import NotComputable
from calibrant.kernels.strata import Seen, strata_sums
from calibrant.repair.judge.rows import LOSSES, Judged, Judging, People, sampled
from calibrant.repair.judge.verdict import (
    AS_AUDITED,
    PROPER,
    GroupChange,
    ScoreChange,
    Summary,
    VariableChange,
    by_ends,
    ranged,
)
from calibrant.repair.regression import Floats, Rows
from calibrant.results import Outcome
from calibrant.stats.nulls import total_size
from calibrant.stats.strata import Bins, beyond_gap
from calibrant.views.by_variable import by_variable_of
from calibrant.views.people import people_of
from calibrant.views.points import weights_of
from calibrant.views.population import Population
from calibrant.views.sample import group

# ---- Scores before and after ----


Better = dict[str, tuple[str, ...]]  # for each probability, those with a better Brier score


def score_changes(judged: Judged, alpha: float) -> tuple[list[ScoreChange], Better, Better]:
    """The paired change of each score from as audited, and for each probability those with a better Brier score.

    Each of the three scores has a third of alpha, shared by the repairs; that of the Brier score by all pairs. The
    ordinary intervals, which give no guarantee, have twice alpha each, as the level of all shares of a comparison; what
    they show together is at alpha, shared by the repairs and the two proper scores, from one side.
    """
    likely = 2.0 * alpha / (len(PROPER) * max(len(judged.repairs), 1))
    share, names = alpha / len(LOSSES), tuple(judged.scores)
    pairs = len(names) * (len(names) - 1) // 2
    changes = []
    for name in judged.repairs:
        for measure in LOSSES:
            delta = share / (pairs if measure == "brier" else len(judged.repairs))
            change, low, high = judged.change(measure, name, AS_AUDITED, delta)
            ends = ranged(low, high, upward=measure == "accuracy")
            _, *interval = judged.paired(measure, name, AS_AUDITED, 2.0 * alpha)
            _, *joint = judged.paired(measure, name, AS_AUDITED, likely)
            stated = ScoreChange(
                probability=name,
                measure=measure,
                change=change,
                **ends,
                interval_low=interval[0],
                interval_high=interval[1],
                estimated=by_ends(joint[0], joint[1], upward=measure == "accuracy"),
            )
            changes.append(stated)
    worse: dict[str, list[str]] = {name: [] for name in names}
    behind: dict[str, list[str]] = {name: [] for name in names}
    for i, one in enumerate(judged.repairs):
        for other in judged.repairs[i + 1 :]:
            guaranteed = judged.change("brier", one, other, share / pairs)
            ordinary = judged.paired("brier", one, other, likely)
            for lists, (_, low, high) in ((worse, guaranteed), (behind, ordinary)):
                if low > 0.0:
                    lists[one].append(other)
                elif high < 0.0:
                    lists[other].append(one)
    better, estimated = ({name: tuple(others) for name, others in kind.items()} for kind in (worse, behind))
    return changes, better, estimated


# ---- Error along each audited variable, before and after ----

BINS = 10  # as `measure.vece` cuts by default
DRAWS = 200  # of the noise: the value shown then errs by a few percent of its standard error
STREAM = 0xA10F  # of random numbers, apart from those of other methods at the same seed


def bins_along(judged: Judged, variable: str) -> NDArray[np.int32]:
    """Each row's bin along a variable, as `measure.vece` cuts it: ten of equal mass, or the levels."""
    result = by_variable_of(replace(judged.data, cluster=None, cache={}), variable)
    bins: NDArray[np.int32] = result.strata.bin_of(BINS)[result.cell].astype(np.int32)
    return bins


def variable_changes(judged: Judged, variables: Sequence[str], delta: float, seed: int) -> list[VariableChange]:
    """The change of each probability along each variable; `delta` is shared by variables and repairs.

    ``vece`` is `measure.vece`'s value. What is judged is its square's cousin, ``sum_b P(b) E[Y - p | b]^2``: a repair
    that moves a bin's mean score by d changes it by ``P(b) (d^2 - 2 d E[Y - p | b])``, which is linear in the outcomes.
    """
    changes = []
    share = delta / max(len(variables) * len(judged.repairs), 1)
    for variable in variables:
        bin_ = bins_along(judged, variable)
        for name, q in judged.scores.items():
            vece, beyond = _sizes(judged, bin_, q, seed)
            audited = name == AS_AUDITED
            change, *ends = (0.0, 0.0, 0.0) if audited else _squared_change(judged, bin_, name, share)
            one = VariableChange(
                probability=name,
                variable=variable,
                vece=vece,
                beyond_gap=beyond,
                change_squared=change,
                **ranged(*ends),
            )
            changes.append(one)
    order = {name: i for i, name in enumerate(judged.scores)}
    return sorted(changes, key=lambda change: order[change.probability])


def _sizes(judged: Judged, bin_: NDArray[np.int32], q: Floats, seed: int) -> tuple[float, float]:
    """The error along a variable's bins, and what is left of it beyond a shift of everyone."""
    data, size = judged.data, int(bin_.max()) + 1
    sums = strata_sums(bin_, size, data.y, Seen(np.ascontiguousarray(q), data.weights))
    rows, weight, weight2, events, score, _, resid2 = (sums[:, j] for j in range(7))
    bins = Bins(np.stack([rows, weight, events, score, resid2, weight2], axis=1), size)
    noise = bins.gap_noise(DRAWS, np.random.default_rng([seed, STREAM]))
    left, noise_left = (beyond_gap(v, bins.share) for v in (bins.gap, noise))
    # 0.05 sets the interval's ends, which are not read: the middle is the estimate freed of noise
    return total_size(bins.gap, noise, 0.05), total_size(left, noise_left, 0.05)


def _squared_change(judged: Judged, bin_: NDArray[np.int32], name: str, delta: float) -> tuple[float, float, float]:
    p, q = judged.data.p, judged.scores[name]
    weight = weights_of(judged.data)
    moved = np.empty(judged.data.n)  # d of each row's bin: how far its mean score moves
    for rows, _ in judged.each_fold():
        mass = np.bincount(bin_[rows], weight[rows])
        step = np.bincount(bin_[rows], weight[rows] * (q[rows] - p[rows]))
        moved[rows] = (step / np.where(mass > 0, mass, 1.0))[bin_[rows]]
    # d^2 - 2 d (y - p), of a row without and with the outcome
    return judged.mean_range(moved**2 + 2.0 * moved * p, moved**2 - 2.0 * moved * (1.0 - p), delta)


# ---- Groups of the judged rows: their gaps before and after ----

CLEAR = 0.005  # half a point: a change of a gap that the table counts


@dataclass(frozen=True)
class JudgedGroups:
    """Groups named without looking at outcomes, each of enough people; none where none are named."""

    spec: Spec  # of sketches that count the groups
    codes: Mapping[str, NDArray[np.int32]]  # level of each row
    people: tuple[People, ...]
    index: tuple[int, ...]  # number of each group in a sketch
    sharing: int  # how many groups share alpha, those that follow-up left without an estimate among them

    def some(self, kept: Sequence[int], sharing: int | None = None) -> JudgedGroups:
        """Some of the groups, by their places here; they share alpha, with others that were named where some were."""
        sharing = len(kept) if sharing is None else sharing
        people = tuple(replace(self.people[i], share=1.0 / sharing) for i in kept)
        return replace(self, people=people, index=tuple(self.index[i] for i in kept), sharing=sharing)

    def populations(self, judged: Judged, name: str, seed: int) -> tuple[list[Population], list[list[Population]]]:
        """Everyone under one probability in each fold, and each group in each fold that has some of it."""
        folds = [rows for rows, _ in judged.each_fold()]
        sketches = [self._counted(judged, judged.scores[name], rows) for rows in folds]
        whole, own = [Population(s.cells, s.levels) for s in sketches], list[list[Population]]()
        for i, one in zip(self.index, self.people, strict=True):
            there = [q for q in (group(sketch, i) for sketch in sketches) if q.n]
            parts = zip(there, judged.each_fold(one.rows), strict=True)
            own.append([judged.in_clusters(q, name, rows, seed) for q, (rows, _) in parts])
        return [judged.in_clusters(q, name, rows, seed) for q, rows in zip(whole, folds, strict=True)], own

    def _counted(self, judged: Judged, p: Floats, rows: Rows) -> Sketch:
        out = Sketch(self.spec)
        codes = {k: np.ascontiguousarray(v[rows]) for k, v in self.codes.items()}
        out.update_arrays(p[rows], judged.data.y[rows], codes=codes, covariates={})
        return out.checked()

    def title(self, index: int) -> str:
        return f"{self.people[index].variable} = {self.people[index].value}"


def groups_of(
    data: Predictions,
    by: Sequence[str],
    bins: Mapping[str, Sequence[float]],
    fewest: int,
    seed: int,
    others: pa.Table | None = None,
) -> JudgedGroups:
    """Groups of rows, each of enough people; of `others`, which give the law of censoring, which are of each."""
    table = data.covariates
    require(by, () if table is None else tuple(table.schema.names), "group")
    profiles = [LevelCounts(name) for name in by]
    for profile in profiles:
        profile.update(table.column(profile.name))
    variables = levels_of(profiles, bins)
    spec = make_spec("y_true", "y_prob", variables, False, seed=seed)
    codes = {v.name: v.codes(table.column(v.name)) for v in variables}
    people: list[People] = []
    sizes: list[int] = []
    for g, ((name,), size) in enumerate(zip(spec.groupings, spec.sizes, strict=True)):
        order = np.argsort(codes[name], kind="stable")
        sizes += people_of(data).among(codes[name], size).tolist()
        every = np.split(order, np.cumsum(np.bincount(codes[name], minlength=size))[:-1])
        apart = None if others is None else spec.by_name[name].codes(others.column(name))
        for level, (title, rows) in enumerate(zip(spec.group_names(g), every, strict=True)):
            pilots = None if apart is None else np.flatnonzero(apart == level)
            people.append(People.of_group(title, rows, 1.0, shown=False, pilots=pilots))
    kept = tuple(i for i, n in enumerate(sizes) if n >= fewest)
    return JudgedGroups(spec, codes, tuple(people), tuple(range(len(people))), len(people)).some(kept)


def gap_change(moved: float, low: float, high: float) -> tuple[float, float]:
    """The range of ``|G - moved| - |G|``, monotone in G, for a gap G between `low` and `high`."""
    ends = sorted(abs(g - moved) - abs(g) for g in (low, high))
    return ends[0], ends[1]


def group_changes(judged: Judged, groups: JudgedGroups, delta: float) -> list[GroupChange]:
    """The change of each probability in each group; `delta` is shared by the groups, and serves all repairs.

    Each repair moves a group's mean score by a known amount, so that one range for its gap as audited holds the change
    of every repair.
    """
    data = judged.data
    limits = [judged.gap_range(delta / groups.sharing, one.rows, one.pilots) for one in groups.people]
    about = [judged.near_gap(one.rows, 2.0 * delta / groups.sharing) for one in groups.people]
    changes = []
    for name, q in judged.scores.items():
        step = q - data.p
        for one, (gap, low, high), near in zip(groups.people, limits, about, strict=True):
            moved = float(np.average(step[one.rows], weights=weights_of(data)[one.rows]))
            left, ends = gap - moved, gap_change(moved, low, high)
            estimated = "undecided" if near is None else by_ends(*gap_change(moved, *near))
            change = GroupChange(
                probability=name,
                variable=one.variable,
                level=one.value,
                rows=len(one.rows),
                gap=left,
                change=abs(left) - abs(gap),
                **ranged(*ends),
                estimated=estimated,
            )
            changes.append(change)
    return changes


# ---- Certificates of each probability: everyone's and the worst group's, by rows or by whole clusters ----
# Where the rows name clusters or weights, whole clusters certify (Theorems CL, CU and CD), as in `calibrant.certify`.
# Which clusters are pilots, and into which block the others go, hashes of their names decide, the same for every
# probability and fold; a group or a fold has those of its clusters. In folds the largest size known is that of all
# pilot clusters: clusters of other folds, independent of those that certify here.

LOOKED = 5  # groups whose error is certified from below: those with the plainest error
NO_VALUES = np.zeros(0, dtype=np.int64)


def everyone(judged: Judged, name: str, seed: int) -> list[Population]:
    """All rows under one probability, in each fold."""
    return [judged.population(name, rows, NO_VALUES, seed) for rows, _ in judged.each_fold()]


def certified(row: Summary, judged: Judged, groups: JudgedGroups, how: Judging) -> Summary:
    """The row with the certificates of its probability: each family shares alpha over all probabilities.

    In folds each fold is certified at its share of alpha, given the others, and bounds are averaged by size: they are
    about the average over the folds' maps.
    """
    name, delta, own = row.probability, how.alpha / len(judged.scores), list[list[Population]]()
    if groups.people and how.certify_groups:
        whole, own = groups.populations(judged, name, how.seed)
    else:
        whole = everyone(judged, name, how.seed)
    low = shown_low = shown_high = distance = 0.0
    for q, (_, share) in zip(whole, judged.each_fold(), strict=True):
        each = delta / len(whole)
        shown = shown_certificate(q, q.as_shown(how.steps))
        low += share * raw_certificate(q).below(each / 2, how.seed)
        shown_low += share * shown.below(each / 2, how.seed)
        shown_high += share * shown.above(each / 2)[0]
        distance += share * q.distance_above(each)[0]
    row = replace(
        row,
        error_low=float(low),
        error_high=float(shown_high),
        error_shown_low=float(shown_low),
        distance_high=float(distance),
    )
    return _worst_group(row, groups, own, delta, how) if own else row


def _worst_group(
    row: Summary, groups: JudgedGroups, parts_of: Sequence[list[Population]], delta: float, how: Judging
) -> Summary:
    """Certify the worst group: from below raw, from above and from below as shown in steps.

    All groups have their share of the error probability, so that the lower bounds of only those with the plainest error
    need to be found.
    """
    each = delta / (2 * len(parts_of))
    upper, plain = [], []
    for parts in parts_of:
        spend = 0.0, each / len(parts)
        ends = [shown_certificate(q, q.as_shown(how.steps)).run(spend, 1.0, how.seed) for q in parts]
        upper.append(_averaged(parts, [e.interval.high for e in ends]))
        plain.append(_averaged(parts, [e.value for e in ends]) - 1.0 / np.sqrt(sum(q.n for q in parts)))
    lower: dict[int, float] = {}
    shown = 0.0
    for i in np.argsort(-np.array(plain), kind="stable")[:LOOKED].tolist():
        parts = parts_of[i]
        spent = each / len(parts)
        lower[i] = _averaged(parts, [raw_certificate(q).below(spent, how.seed) for q in parts])
        steps = [shown_certificate(q, q.as_shown(how.steps)).below(spent, how.seed) for q in parts]
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


# ---- Tests of each probability ----

TESTS: Mapping[str, Callable[..., Outcome]] = {
    "local": local_calibration_test,
    "strong": strong_calibration_test,
    "scan": scan_test,
}


def tested(
    rows: Mapping[str, Summary], judged: Judged, how: Judging, names: Sequence[str]
) -> tuple[dict[str, Summary], int, tuple[tuple[str, str], ...]]:
    """The rows with p-values of some probabilities, how many people were tested, and what did not apply and why.

    All are tested on the same people. Folds' p-values are joined by Bonferroni: the smallest times their
    number.
    """
    out, refused = dict(rows), {}
    people = sampled(judged.data, how.test_rows, how.seed)
    folds = [people[judged.part[people] == k] for k in range(judged.folds)]
    data = [judged.data.part(at) for at in folds]
    settings = {"variables": how.variables, "draws": how.draws, "seed": how.seed}
    for test in how.tests:
        for name in names:
            q = judged.scores[name]
            try:
                results = [
                    TESTS[test](replace(d, p=q[at], cache={}), **settings).p_value
                    for d, at in zip(data, folds, strict=True)
                ]
            except NotComputable as e:
                refused[f"{test}_p"] = e.reason
                continue
            p = min(1.0, len(results) * min(results))
            out[name] = out[name].with_p(test, p)
    return out, len(people) if how.tests else 0, tuple(refused.items())
