"""Rows to fit on and rows to judge on, and what each repair says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from calibrant.arguments import check_int
from calibrant.data.engines.reduce import release_memory
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sample import identities_of
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import mix
from calibrant.repair.calibrators.curves import scale_of
from calibrant.repair.fitted import Calibrator, Recipe, fitted_on, overlap
from calibrant.repair.judge.verdict import AS_AUDITED, Summary
from calibrant.repair.regression import EDGE, Floats, Rows, Whole, clusters_of, taken
from calibrant.stats.betting import Clusters, mean_limits
from calibrant.stats.clusters.clusters import Clusters as WholeClusters
from calibrant.stats.decisions.losses import logarithmic, squared, wrong
from calibrant.stats.measures import ranking
from calibrant.views.clusters import cluster_totals
from calibrant.views.points import weights_of

# ---- Rows to fit on and rows to judge on: by hashed identity, whole clusters together ----

SALT = np.uint64(0x7B1D4C9A52E6F083)  # so that the halves are independent of blocks and samples


def hash_split(data: Predictions, parts: int, seed: int, salt: np.uint64 = SALT) -> Whole:
    """The part of each row, 0 to `parts` - 1: equally many rows each, or equally many whole clusters.

    Clusters are dealt by their hashes alone, whatever their sizes: were parts made even in rows, a cluster's size would
    help to decide where it goes, and the clusters that judge would not be independent draws of those that there are.
    """
    cluster = clusters_of(data)
    what, size = ("rows", data.n) if cluster is None else ("clusters", int(cluster.max()) + 1)
    if size < parts:
        raise NotComputable(
            f"{size} {what if size > 1 else what[:-1]} cannot be split into {parts} parts: pass fit_on=, or more {what}"
        )
    order = np.argsort(mix(identities_of(size, seed) ^ salt), kind="stable")
    part = np.empty(size, dtype=np.int64)
    part[order] = ((np.arange(size) + 0.5) * parts / size).astype(np.int64)
    return part if cluster is None else part[cluster]


def clusters_in(data: Predictions) -> int:
    """Return how many clusters rows belong to; 0 where rows are independent."""
    return 0 if data.cluster is None else len(np.unique(data.cluster))


def sampled(data: Predictions, most: int, seed: int) -> Whole:
    """The numbers of about `most` rows at most, uniform by identity; whole clusters, whatever their sizes."""
    return (
        np.arange(data.n) if data.n <= most else np.flatnonzero(hash_split(data, -(-data.n // most), seed, ~SALT) == 0)
    )


def checked_folds(folds: object) -> int:
    """Return the number of folds, or refuse it."""
    return 0 if folds == 0 else check_int("folds", folds, 2, 20, hint="or 0 for two halves")


# ---- Rows to judge repairs on, with every probability to be judged, and paired differences between two ----

Loss = Callable[[Floats], tuple[Floats, Floats]]  # scores -> loss if the outcome is 0, and if it is 1


LOSSES: Mapping[str, Loss] = {"brier": squared, "log_loss": partial(logarithmic, edge=EDGE), "accuracy": wrong}


@dataclass(frozen=True)
class Judged:
    """Rows that no map was fitted on, and their scores under each."""

    data: Predictions
    scores: Mapping[str, Floats]  # each of shape (n,): "as audited" first
    part: Whole  # shape (n,): fold of each row: rows of one fold have their scores from one map
    _alone: dict[str, Predictions] = field(default_factory=dict, repr=False, compare=False)
    _clusters: dict[tuple[str, int], WholeClusters | None] = field(default_factory=dict, repr=False, compare=False)

    def alone(self, name: str) -> Predictions:
        """Return outcomes and one score without covariates, which keep what is counted of them; made once."""
        if name not in self._alone:
            self._alone[name] = Predictions(y=self.data.y, p=self.scores[name])
        return self._alone[name]

    def clusters(self, name: str, seed: int) -> WholeClusters | None:
        """Return the clusters of the rows with one score, split as in `calibrant.certify`; None without clusters."""
        if (name, seed) not in self._clusters:
            self._clusters[name, seed] = cluster_totals(replace(self.data, p=self.scores[name], cache={}), seed)
        return self._clusters[name, seed]

    def forget(self) -> None:
        """Drop what was counted of each score, before what reads rows alone."""
        self._alone.clear()
        self._clusters.clear()
        release_memory()

    @property
    def repairs(self) -> tuple[str, ...]:
        """Names of the repairs."""
        return tuple(name for name in self.scores if name != AS_AUDITED)

    @property
    def folds(self) -> int:
        """Folds; 1 if all rows are judged with the same maps."""
        return int(self.part.max()) + 1

    def each_fold(self, among: Whole | None = None) -> list[tuple[Rows, float]]:
        """Return rows and share of each fold, of all rows or of some."""
        if self.folds == 1:
            return [(slice(None) if among is None else among, 1.0)]
        some = np.arange(self.data.n) if among is None else among
        rows = [some[self.part[some] == k] for k in range(self.folds)]
        return [(r, len(r) / len(some)) for r in rows if len(r)]

    def mean_range(
        self, without: Floats, happened: Floats, delta: float, among: Whole | None = None
    ) -> tuple[float, float, float]:
        """A mean over rows, or some of them, that is linear in the outcomes, and its limits given the scores.

        In folds each fold's limits hold given the others, at its share of `delta`, and are averaged.
        """
        data, folds, out = self.data, self.each_fold(among), np.zeros(3)
        for rows, share in folds:
            weight = None if data.weights is None else data.weights[rows]
            ends = without[rows], happened[rows]
            u = Clusters.of_values(data.y[rows], data.p[rows], ends, weight, clusters_of(data, rows))
            out += share * np.array([u.mean, *mean_limits(u, delta / len(folds))])
        return float(out[0]), float(out[1]), float(out[2])

    def change(self, measure: str, name: str, base: str, delta: float) -> tuple[float, float, float]:
        """The paired change of a score's mean from `base` to `name`, and its range; accuracy counts upward."""
        loss = LOSSES[measure]
        before, after = loss(self.scores[base]), loss(self.scores[name])
        mean, low, high = self.mean_range(after[0] - before[0], after[1] - before[1], delta)
        return (-mean, -high, -low) if measure == "accuracy" else (mean, low, high)

    def summary(self, name: str, fitted: Calibrator | None = None) -> Summary:
        """The row of one probability with its scores, its map, and the outcomes that it called impossible."""
        y, p = self.data.y, self.scores[name]
        weight = weights_of(self.data)
        mean = {
            measure: float(weight @ np.where(y == 1, *loss(p)[::-1]) / weight.sum()) for measure, loss in LOSSES.items()
        }
        two = 0 < self.data.events < self.data.n
        return Summary(
            probability=name,
            recipe="" if fitted is None else fitted.recipe,
            order="kept" if fitted is None else fitted.order,
            scale=None if fitted is None else scale_of(fitted),
            brier=mean["brier"],
            log_loss=mean["log_loss"],
            accuracy=1.0 - mean["accuracy"],
            auroc=ranking(p, y, np.ones(self.data.n), weight).auroc if two else None,
            impossible=int(np.count_nonzero(np.where(y == 1, p == 0.0, p == 1.0))),
        )


# ---- From recipes and fitted maps to scores of rows that no map was fitted on ----

Repair = Recipe | Calibrator
LeftOut = tuple[tuple[str, str], ...]  # repairs that could not be fitted, and why


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
    """Return recipes and fitted maps by name, given one, several or a mapping; or refuse them."""
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


def fits_of(
    data: Predictions,
    repairs: Mapping[str, Repair],
    fit_on: Predictions | None,
    folds: int,
    seed: int,
    distinct_clusters: bool = False,
) -> Fits:
    """Fit the recipes on other rows than they are judged on; clusters of `fit_on` are others if they are `distinct`."""
    if distinct_clusters and (fit_on is None or data.cluster is None):
        raise BadInput("distinct_clusters= is about clusters of fit_on=, by cluster=: leave it out")
    inputs = {k: v for k, v in repairs.items() if isinstance(v, Calibrator)}
    recipes = {k: v for k, v in repairs.items() if not isinstance(v, Calibrator)}
    if not recipes and (fit_on is not None or folds):
        raise BadInput("every repair is fitted already: leave fit_on and folds out")
    if fit_on is not None and folds:
        raise BadInput("fit_on= and folds= are two ways to keep fit and judgement apart: pass one")
    if folds:
        return _cross_fitted(data, repairs, folds, seed)
    fit, judge, how, at = fit_on, data, "fit_on" if recipes else "fitted", np.arange(data.n)
    if recipes and fit_on is None:
        half = hash_split(data, 2, seed) == 0
        at = np.flatnonzero(~half)
        fit, judge, how = taken(data, np.flatnonzero(half)), taken(data, at), "halves"
    elif fit_on is not None:
        refuse_overlap(fit_on, judge, distinct_clusters)
    for name, one in inputs.items():
        refuse_own_rows(name, one, judge)
    fitted, left_out = ({}, ()) if fit is None else _fitted(recipes, fit)
    both = {**fitted, **inputs}
    calibrators = {name: both[name] for name in repairs if name in both}
    scores = {AS_AUDITED: judge.p, **{k: m(judge).p for k, m in calibrators.items()}}
    judged = Judged(judge, scores, np.zeros(judge.n, dtype=np.int64))
    n, clusters = (0, 0) if fit is None else (fit.n, clusters_in(fit))
    return Fits(judged, calibrators, how, n, clusters, left_out, at)


def _fitted(recipes: Mapping[str, Recipe], rows: Predictions) -> tuple[dict[str, Calibrator], LeftOut]:
    calibrators, left_out = {}, []
    for name, recipe in recipes.items():
        try:
            calibrators[name] = recipe.fit(rows)
        except NotComputable as e:
            left_out.append((name, e.reason))
    if left_out and not calibrators:
        raise NotComputable(f"no repair could be fitted: {left_out[0][1]}")
    return calibrators, tuple(left_out)


def _cross_fitted(data: Predictions, repairs: Mapping[str, Repair], folds: int, seed: int) -> Fits:
    """Judge each fold with maps fitted on the others; a repair that fails in one fold is left out."""
    part = hash_split(data, folds, seed)
    inputs = {k: v for k, v in repairs.items() if isinstance(v, Calibrator)}
    whole, left = _fitted({k: v for k, v in repairs.items() if not isinstance(v, Calibrator)}, data)
    both, gone = {**whole, **inputs}, dict(left)
    calibrators = {name: both[name] for name in repairs if name in both}
    scores = {name: np.empty(data.n) for name in calibrators}
    for k in range(folds):
        rows = np.flatnonzero(part == k)
        inside, outside = taken(data, rows), taken(data, np.flatnonzero(part != k))
        for name in calibrators:
            one = repairs[name]
            if isinstance(one, Calibrator):
                refuse_own_rows(name, one, inside)
                scores[name][rows] = one(inside).p
                continue
            try:
                scores[name][rows] = one.fit(outside)(inside).p
            except NotComputable as e:
                gone[name] = e.reason
    kept = [name for name in calibrators if name not in gone]
    if not kept:
        raise NotComputable(f"no repair could be fitted: {next(iter(gone.values()))}")
    judged = Judged(data, {AS_AUDITED: data.p, **{k: scores[k] for k in kept}}, part)
    return Fits(
        judged,
        {k: calibrators[k] for k in kept},
        "folds",
        data.n,
        clusters_in(data),
        tuple(gone.items()),
        np.arange(data.n),
    )


def refuse_own_rows(name: str, one: Calibrator, rows: Predictions) -> None:
    """Refuse to judge a map on rows it was fitted on."""
    if result := overlap(one.fitted_on, rows):
        raise BadInput(
            f"repair {name!r} would be judged on {result}: pass other rows, or the recipe instead of the calibrator"
        )


def refuse_overlap(fit_on: Predictions, rows: Predictions, distinct_clusters: bool = False) -> None:
    """Refuse rows to fit on that are among those to judge on, or of their clusters, unless names mean others there."""
    fit_on = checked_data(fit_on, Predictions, name="fit_on")
    if result := overlap(fitted_on(fit_on), rows):
        what = result.replace("it was fitted on", "of fit_on")
        raise BadInput(f"data holds {what}: pass other rows, or leave fit_on out to split data in halves")
    if not distinct_clusters:
        refuse_shared_clusters(fit_on, rows)


def refuse_shared_clusters(fit_on: Predictions, rows: Predictions) -> None:
    """Refuse rows to fit on of clusters that are judged too: their rows are not independent of what is judged."""
    if fit_on.cluster is None or rows.cluster is None:
        return
    fitted, judged = (set(np.unique(names).tolist()) for names in (fit_on.cluster, rows.cluster))
    if shared := len(fitted & judged):
        raise BadInput(
            f"{shared:,} of {len(judged):,} clusters to judge on have rows to fit on too: leave these clusters out of "
            "one of the two, or do without the rows to fit on, and whole clusters are split into halves; or say that "
            "names mean other clusters there: distinct_clusters=True, on the command --distinct-clusters"
        )
