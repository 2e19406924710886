"""What is asked of the judge, rows to fit on and rows to judge on, and what each repair says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import Judge, check_int
from calibrant.data.engines.reduce import release_memory
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sample import identities_of
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import mix
from calibrant.repair.calibrators.curves import scale_of
from calibrant.repair.fitted import Calibrator, Recipe, fitted_on, overlap
from calibrant.repair.judge.verdict import AS_AUDITED, Summary
from calibrant.repair.regression import EDGE, Floats, Whole, independent, linear
from calibrant.stats.betting import mean_limits
from calibrant.stats.cells import Cells
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.decisions.comparison import logarithmic, squared, wrong
from calibrant.stats.measures import ranking, rate_interval
from calibrant.stats.subgroups.row_gaps import row_gap
from calibrant.views.people import WeighedPeople, certified, people_of
from calibrant.views.points import Points, points, weights_of
from calibrant.views.population import Population, Target
from calibrant.views.sample import Group, keyed, part_of

if TYPE_CHECKING:
    import pyarrow as pa

# ---- What is asked of the judge ----

Repair = Recipe | Calibrator
LeftOut = tuple[tuple[str, str], ...]  # repairs that could not be fitted, and why
Ends = tuple[float, float]
FEWEST = 20  # people in a group that is judged
EXPECTED = 10.0  # events, and others, below which an ordinary interval of a gap decides nothing


@dataclass(frozen=True, kw_only=True)
class People:
    """A population of the judged rows, fixed by scores and covariates."""

    id: str  # "everyone", or a name that no other has
    who: str  # in words
    kind: Literal["everyone", "group", "subgroup"]
    rows: Whole  # which of the judged rows
    share: float = 1.0  # of alpha, among all of its kind that could be looked at
    # `variable` and `value`: of a group.
    variable: str = ""
    value: str = ""
    shown: bool = True  # it is reported of in any case; others where a repair brings them over the limit
    listed: bool = False  # it stands in the table next to those reported for, and counts for no choice
    pilots: Whole | None = None  # where rows were lost: which of those that give the law of censoring

    @classmethod
    def of_group(cls, name: Group, rows: Whole, share: float, **more: Any) -> People:
        """A group, by the names and values of its variables."""
        who, (variables, values) = keyed(name), zip(*name, strict=True)
        inputs = {"id": who, "variable": " and ".join(variables), "value": " and ".join(values), **more}
        return cls(who=who, kind="group", rows=rows, share=share, **inputs)


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What to compare, and how to judge it."""

    repairs: Mapping[str, Repair] = field(default_factory=dict)
    variables: tuple[str, ...] = ()  # covariates along which error is audited
    left_out: LeftOut = ()  # covariates that cannot be used, and why
    fit_on: Predictions | None = None
    distinct_clusters: bool = False
    folds: int = 0
    by: tuple[str, ...] = ()
    bins: Mapping[str, Sequence[float]] = field(default_factory=dict)
    smallest_group: int = FEWEST
    certify_groups: bool = False
    thresholds: tuple[float, ...] = ()  # at which decisions before and after are compared; none by default
    steps: int = 100  # in which scores of many values are shown
    alpha: float = 0.05
    tests: tuple[str, ...] = ()
    test_rows: int = 20_000
    draws: int = 999
    every: bool = True  # probability is tested; else the one audited and the one recommended
    seed: int = 0
    limit: float | None = None
    judge: Judge = "auto"  # what the limit is about: see `arguments.judged_by`
    target: Target = "rows"  # whose gap: of the rows judged, or for everyone and groups of all rows like these
    # From the fits to who is held against the limit; by default everyone and the groups of `by`.
    people: Callable[[Fits], Sequence[People]] | None = None
    # Given a population, a probability and the ends of its range, the ends as they are reported, moved outward; by
    # default as they are. Verdicts follow these.
    reported: Callable[[People, str, Ends], Ends] | None = None
    # The score as audited takes few values, and is judged as it is; by default the rows judged decide.
    exact: bool | None = None
    fits: Callable[[Predictions, Judging], Fits] = lambda rows, how: fits_of(rows, how)
    unproved: LeftOut = ()  # what was asked for and does not apply to such rows, and why


# ---- Rows to fit on and rows to judge on: by hashed identity, whole clusters together ----

SALT = np.uint64(0x7B1D4C9A52E6F083)  # so that the halves are independent of blocks and samples


def hash_split(data: Predictions, parts: int, seed: int, salt: np.uint64 = SALT) -> Whole:
    """The part of each row, 0 to `parts` - 1: equally many rows each, or equally many whole clusters.

    Clusters are dealt by their hashes alone, whatever their sizes: were parts made even in rows, a cluster's size would
    help to decide where it goes, and the clusters that judge would not be independent draws of those that there are.
    """
    what, own = independent(data)
    size = int(own.max()) + 1
    if size < parts:
        raise NotComputable(
            f"{size} {what if size > 1 else what[:-1]} cannot be split into {parts} parts: pass fit_on=, or more {what}"
        )
    order = np.argsort(mix(identities_of(size, seed) ^ salt), kind="stable")
    part = np.empty(size, dtype=np.int64)
    part[order] = ((np.arange(size) + 0.5) * parts / size).astype(np.int64)
    return part[own]


def clusters_in(data: Predictions) -> int:
    """How many clusters rows belong to; 0 where rows are independent, or clusters of two columns cross."""
    who = people_of(data)
    return 0 if who.are_rows or who.columns else int(who.codes.max(initial=-1)) + 1


def sampled(data: Predictions, most: int, seed: int) -> Whole:
    """The numbers of about `most` rows at most, uniform by identity; whole clusters, whatever their sizes."""
    return (
        np.arange(data.n) if data.n <= most else np.flatnonzero(hash_split(data, -(-data.n // most), seed, ~SALT) == 0)
    )


# ---- Rows to judge repairs on, with every probability to be judged, and paired differences between two ----

# Scores -> loss if the outcome is 0, and if it is 1.
LOSSES: Mapping[str, Callable[[Floats], tuple[Floats, Floats]]] = {
    "brier": squared,
    "log_loss": partial(logarithmic, edge=EDGE),
    "accuracy": wrong,
}


@dataclass(frozen=True)
class Judged:
    """Rows that no map was fitted on, and their scores under each."""

    data: Predictions
    scores: Mapping[str, Floats]  # each of shape (n,): "as audited" first
    part: Whole  # shape (n,): fold of each row: rows of one fold have their scores from one map
    _under: dict[str, Predictions] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, data: Predictions, scores: Mapping[str, Floats], part: Whole) -> Judged:
        """Those of rows that are independent and count alike, or of others."""
        return (JudgedClusters if isinstance(people_of(data), WeighedPeople) else Judged)(data, scores, part)

    def under(self, name: str) -> Predictions:
        """The rows with one score and without covariates, which keep what is counted of them; made once."""
        if name not in self._under:
            self._under[name] = replace(self.data, p=self.scores[name], covariates=None, cache={})
        return self._under[name]

    def clusters(self, name: str, seed: int) -> Clusters | None:
        """The clusters of the rows with one score, split as in `calibrant.certify`; None without clusters."""
        return people_of(self.under(name)).clusters(seed)

    def population(self, name: str, rows: Whole, values: Whole, seed: int) -> Population:
        """Some of the rows under one probability, with their clusters; certified as it is in `values`, if any."""
        data, whole = people_of(self.under(name)).alone, len(rows) == self.data.n
        part = data if whole else Predictions(y=data.y[rows], p=data.p[rows])
        return self.in_clusters(part_of(part, values, seed), name, rows, seed)

    def in_clusters(self, counts: Population, name: str, rows: Whole, seed: int) -> Population:
        """The population of some rows, of their counts: with the clusters of rows that are not independent."""
        clusters = self.clusters(name, seed)
        return counts if clusters is None else certified(counts, (clusters.of_rows(rows),))

    def forget(self) -> None:
        """Drop what was counted of each score, before what reads rows alone."""
        self._under.clear()
        release_memory()

    @property
    def repairs(self) -> tuple[str, ...]:
        return tuple(name for name in self.scores if name != AS_AUDITED)

    @property
    def folds(self) -> int:
        """Folds; 1 if all rows are judged with the same maps."""
        return int(self.part.max()) + 1

    def each_fold(self, among: Whole | None = None) -> list[tuple[Whole, float]]:
        """Rows and share of each fold that has any, of all rows or of some."""
        some = np.arange(self.data.n) if among is None else among
        rows = [some[self.part[some] == k] for k in range(self.folds)] if self.folds > 1 else [some]
        return [(r, len(r) / len(some)) for r in rows if len(r)]

    def mean_range(
        self, without: Floats, happened: Floats, delta: float, among: Whole | None = None, _pilots: Whole | None = None
    ) -> tuple[float, float, float]:
        """A mean over rows, or some of them, that is linear in the outcomes, and its limits given the scores.

        In folds each fold's limits hold given the others, at its share of `delta`, and are averaged.
        """
        data, folds, out = self.data, self.each_fold(among), np.zeros(3)
        for rows, share in folds:
            at = rows if len(rows) < data.n else slice(None)
            u = linear(data, at, data.p[at], (without[at], happened[at]))
            out += share * np.array([u.mean, *mean_limits(u, delta / len(folds))])
        return float(out[0]), float(out[1]), float(out[2])

    def gap_range(self, delta: float, among: Whole, _pilots: Whole | None = None) -> tuple[float, float, float]:
        """The gap as audited of some rows, and its limits given the scores, whatever folds they are in."""
        cells = Cells.of_rows(self.data.y[among], self.data.p[among])
        low, high = row_gap(cells, delta / 2.0).limits(delta)
        return (cells.events - cells.expected) / cells.n, low, high

    def ordinary(self, values: Floats, delta: float, among: Whole | None = None) -> tuple[float, float, float]:
        """A mean over rows, or some of them, and its ordinary interval: of large samples, cluster-robust, Student's."""
        from scipy.special import stdtrit

        some = np.arange(self.data.n) if among is None else among
        weight, own = weights_of(self.data)[some], independent(self.data)[1][some]
        mean = float(np.average(values[some], weights=weight))
        sums = np.bincount(np.unique(own, return_inverse=True)[1], weight * (values[some] - mean))
        if (clusters := len(sums)) < 2:
            return mean, -math.inf, math.inf
        error = math.sqrt(clusters / (clusters - 1.0) * float(sums @ sums)) / float(weight.sum())
        half = float(stdtrit(clusters - 1.0, 1.0 - delta / 2.0)) * error
        return mean, mean - half, mean + half

    @property
    def pilots(self) -> Whole | None:
        """Where rows were lost: which of all rows give the law of censoring."""
        return None

    @property
    def others(self) -> pa.Table | None:
        """The covariates of these."""
        return None

    @property
    def reported(self) -> dict[str, object]:
        """What a comparison says of how rows were judged."""
        return {}

    def reaches(self, _among: Whole) -> bool:
        """Whether the outcomes of some of the rows can be estimated."""
        return True

    def events_of(self, among: Whole) -> float:
        """How many of some rows are events."""
        return int(self.data.y[among].sum())

    def gap(self, name: str, among: Whole) -> float:
        """The gap of some rows under one probability, as it is estimated."""
        return float(np.average((self.data.y - self.scores[name])[among], weights=weights_of(self.data)[among]))

    def near_gap(self, among: Whole, delta: float) -> Ends | None:
        """The ordinary interval of the gap as audited of some rows; None where the score expects few events, or others.

        It has to hold where events are few: with none, residuals vary as little as scores do. So it is exact.
        """
        try:
            rows = points(self.under(AS_AUDITED).part(among))
        except NotComputable:  # a single cluster shows nothing
            return None
        expected = rows.weighed.mean(rows.p)
        if rows.weighed.rows * min(expected, 1.0 - expected) < EXPECTED:
            return None
        return self._near_gap(rows, expected, among, delta)

    def _near_gap(self, _rows: Points, _expected: float, among: Whole, delta: float) -> Ends:
        """The same of rows enough, whose scores expect so much."""
        return self.gap_range(delta, among)[1:]

    @property
    def outcomes(self) -> tuple[NDArray[np.generic], NDArray[np.bool_], Floats]:
        """Outcomes, which of them are known, and how much each row counts in a mean."""
        return self.data.y, np.ones(self.data.n, dtype=np.bool_), weights_of(self.data)

    def standing(self, values: Floats) -> Floats:
        """Values of rows as an ordinary interval of their mean over all rows takes them."""
        return values

    def change(self, measure: str, name: str, base: str, delta: float) -> tuple[float, float, float]:
        """The paired change of a score's mean from `base` to `name`, and its range; accuracy counts upward."""
        loss = LOSSES[measure]
        before, after = loss(self.scores[base]), loss(self.scores[name])
        mean, low, high = self.mean_range(after[0] - before[0], after[1] - before[1], delta)
        return (-mean, -high, -low) if measure == "accuracy" else (mean, low, high)

    def paired(self, measure: str, name: str, base: str, delta: float) -> tuple[float, float, float]:
        """The same change with the ordinary interval of its paired differences."""
        loss, (y, _, _) = LOSSES[measure], self.outcomes
        lost = [np.where(y == 1, *loss(self.scores[one])[::-1]) for one in (name, base)]
        mean, low, high = self.ordinary(self.standing(lost[0] - lost[1]), delta)
        return (-mean, -high, -low) if measure == "accuracy" else (mean, low, high)

    def summary(self, name: str, fitted: Calibrator | None = None) -> Summary:
        """The row of one probability with its scores, its map, and the outcomes that it called impossible."""
        p, (y, known, weight) = self.scores[name], self.outcomes
        mean = {
            measure: float(weight @ np.where(y == 1, *loss(p)[::-1]) / weight.sum()) for measure, loss in LOSSES.items()
        }
        area = p[known], y[known].astype(np.int8), np.ones(int(known.sum())), weight[known]
        return Summary(
            probability=name,
            recipe="" if fitted is None else fitted.recipe,
            order="kept" if fitted is None else fitted.order,
            scale=None if fitted is None else scale_of(fitted),
            brier=mean["brier"],
            log_loss=mean["log_loss"],
            accuracy=1.0 - mean["accuracy"],
            auroc=ranking(*area).auroc if len(np.unique(y[known])) == 2 else None,
            impossible=int(np.count_nonzero(known & np.where(y == 1, p == 0.0, p == 1.0))),
        )


class JudgedClusters(Judged):
    """The same of rows in clusters, or that do not count alike."""

    def gap_range(self, delta: float, among: Whole, _pilots: Whole | None = None) -> tuple[float, float, float]:
        """The gap as audited of some rows, and its limits by bets, as of any mean over rows."""
        p = self.data.p[among]
        u = linear(self.data, among, p, (-p, 1.0 - p))
        low, high = mean_limits(u, delta)
        return u.mean, low, high

    def _near_gap(self, rows: Points, expected: float, _among: Whole, delta: float) -> Ends:
        """That of `measure.observed_expected`."""
        q, p = rows.weighed, rows.p
        return rate_interval(q, q.mean(q.y) - expected, lambda t: p + t, lambda r, _: r - expected, q.level(delta))


# ---- From recipes and fitted maps to scores of rows that no map was fitted on ----


@dataclass(frozen=True)
class Fits:
    """Judged rows, the maps, and how rows were dealt."""

    judged: Judged
    calibrators: Mapping[str, Calibrator]  # in folds: fitted on all rows, after the folds' own maps were judged
    how: str  # "halves", "fit_on", "folds" or "fitted"
    rows_fit: int
    clusters_fit: int  # of independent rows 0
    left_out: LeftOut
    at: Whole  # which rows of the data the judged ones are


def named(repairs: object) -> dict[str, Repair]:
    """Recipes and fitted maps by name, of one, several or a mapping; refuse all else."""
    if isinstance(repairs, Mapping):
        out = {str(k): v for k, v in repairs.items()}
    else:
        out = {}
        for one in repairs if isinstance(repairs, (list, tuple)) else (repairs,):
            name = one.recipe if isinstance(one, Calibrator) else type(one).__name__
            out[name if name not in out else f"{name} {sum(k.split()[0] == name for k in out) + 1}"] = one
    for name, one in out.items():
        if not (isinstance(one, Calibrator) or callable(getattr(one, "fit", None))) or isinstance(one, type):
            kind = one.__name__ if isinstance(one, type) else type(one).__name__
            raise BadInput(
                f"repair {name!r} is a {kind}: pass a recipe such as cal.repair.Platt(), or a fitted calibrator"
            )
    if not out:
        raise BadInput("repairs is empty: pass recipes such as [cal.repair.Platt()], or leave it out")
    if AS_AUDITED in out:
        raise BadInput(f"a repair cannot be named {AS_AUDITED!r}: that is what repairs are compared with")
    return out


def checked_folds(folds: object) -> int:
    return 0 if folds == 0 else check_int("folds", folds, 2, 20, hint="or 0 for two halves")


def fits_of(data: Predictions, judging: Judging) -> Fits:
    """Fit the recipes on other rows than they are judged on; a repair that fails, in a fold too, is left out."""
    repairs, fit_on, folds = judging.repairs, judging.fit_on, judging.folds
    if judging.distinct_clusters and (fit_on is None or data.cluster is None):
        raise BadInput("distinct_clusters= is about clusters of fit_on=, by cluster=: leave it out")
    own = {k: v for k, v in repairs.items() if isinstance(v, Calibrator)}
    recipes = {k: v for k, v in repairs.items() if not isinstance(v, Calibrator)}
    if not recipes and (fit_on is not None or folds):
        raise BadInput("every repair is fitted already: leave fit_on and folds out")
    if fit_on is not None and folds:
        raise BadInput("fit_on= and folds= are two ways to keep fit and judgement apart: pass one")
    fit, judge, how, at = fit_on, data, "fit_on" if recipes else "fitted", np.arange(data.n)
    part = np.zeros(data.n, dtype=np.int64)
    if folds:
        fit, how, part = data, "folds", hash_split(data, folds, judging.seed)
    elif recipes and fit_on is None:
        half = hash_split(data, 2, judging.seed) == 0
        at = np.flatnonzero(~half)
        fit, judge, how = data.part(np.flatnonzero(half)), data.part(at), "halves"
        part = part[at]
    elif fit_on is not None:
        refuse_overlap(fit_on, judge, judging.distinct_clusters)
    if not folds:
        refuse_own_rows(own, judge)
    fitted, gone = ({}, {}) if fit is None else fitted_maps(recipes, fit)
    calibrators = {k: (fitted | own)[k] for k in repairs if k not in gone}
    if folds:
        scores, failed = _cross_fitted(data, {k: repairs[k] for k in calibrators}, own, part)
        gone |= failed
        calibrators = {k: m for k, m in calibrators.items() if k not in gone}
        if not calibrators:
            raise NotComputable(f"no repair could be fitted: {next(iter(gone.values()))}")
    else:
        scores = {k: m(judge).p for k, m in calibrators.items()}
    judged = Judged.of(judge, {AS_AUDITED: judge.p, **{k: scores[k] for k in calibrators}}, part)
    n, clusters = (0, 0) if fit is None else (fit.n, clusters_in(fit))
    return Fits(judged, calibrators, how, n, clusters, tuple(gone.items()), at)


def fitted_maps(recipes: Mapping[str, Recipe], rows: Predictions) -> tuple[dict[str, Calibrator], dict[str, str]]:
    """The maps of recipes, and why others have none."""
    calibrators, gone = {}, {}
    for name, recipe in recipes.items():
        try:
            calibrators[name] = recipe.fit(rows)
        except NotComputable as e:
            gone[name] = e.reason
    if gone and not calibrators:
        raise NotComputable(f"no repair could be fitted: {next(iter(gone.values()))}")
    return calibrators, gone


def _cross_fitted(
    data: Predictions, repairs: Mapping[str, Repair], own: Mapping[str, Calibrator], part: Whole
) -> tuple[dict[str, Floats], dict[str, str]]:
    """Scores of each fold by maps fitted on the others, and why a repair has none."""
    scores: dict[str, Floats] = {name: np.empty(data.n) for name in repairs}
    gone = {}
    for k in range(int(part.max()) + 1):
        rows = np.flatnonzero(part == k)
        inside, outside = data.part(rows), data.part(np.flatnonzero(part != k))
        refuse_own_rows(own, inside)
        for name, one in repairs.items():
            try:
                fitted = one if isinstance(one, Calibrator) else one.fit(outside)
                scores[name][rows] = fitted(inside).p
            except NotComputable as e:
                gone[name] = e.reason
    return scores, gone


def refuse_own_rows(fitted: Mapping[str, Calibrator], rows: Predictions) -> None:
    """Refuse to judge maps on rows they were fitted on."""
    for name, one in fitted.items():
        if result := overlap(one.fitted_on, rows):
            raise BadInput(
                f"repair {name!r} would be judged on {result}: pass other rows, or the recipe instead of the calibrator"
            )


def refuse_overlap(fit_on: Predictions, rows: Predictions, distinct_clusters: bool = False) -> None:
    """Refuse rows to fit on that are among those to judge on, or of their clusters, unless names mean others there."""
    if not isinstance(fit_on, Predictions) or fit_on.followed is None:  # a fit weighs what was lost, or refuses it
        fit_on = checked_data(fit_on, Predictions, name="fit_on")
    if result := overlap(fitted_on(fit_on), rows):
        what = result.replace("it was fitted on", "of fit_on")
        raise BadInput(f"data holds {what}: pass other rows, or leave fit_on out to split data in halves")
    if distinct_clusters or fit_on.cluster is None or rows.cluster is None:
        return
    fitted, judged = (set(np.unique(names).tolist()) for names in (fit_on.cluster, rows.cluster))
    if shared := len(fitted & judged):
        raise BadInput(
            f"{shared:,} of {len(judged):,} clusters to judge on have rows to fit on too: leave these clusters out of "
            "one of the two, or do without the rows to fit on, and whole clusters are split into halves; or say that "
            "names mean other clusters there: distinct_clusters=True, on the command --distinct-clusters"
        )
