"""Rows to fit on and rows to judge on, and what each repair says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.data.sample import identities_of
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.reference import mix
from calibrant.repair.fitted import FittedMap, overlap
from calibrant.repair.judge.verdict import AS_AUDITED
from calibrant.repair.regression import EDGE
from calibrant.stats.betting import mean_limits
from calibrant.stats.betting import paired_units_of as units_of
from calibrant.stats.scoring import ranking

# ---- Rows to fit on and rows to judge on: by hashed identity, whole clusters together ----

SALT = np.uint64(0x7B1D4C9A52E6F083)  # so that the halves are independent of blocks and samples


def dealt(data: Predictions, parts: int, seed: int, salt: np.uint64 = SALT) -> Any:
    """Return the part of each row, 0 to `parts` - 1: equally many rows each, or as nearly as whole clusters allow."""
    if data.cluster is None:
        unit, size = np.arange(data.n), np.ones(data.n, dtype=np.int64)
    else:
        unit = clusters_of(data)
        size = np.bincount(unit)
    if len(size) < parts:
        what = "rows" if data.cluster is None else "clusters"
        raise NotComputable(f"{len(size)} {what} cannot be dealt into {parts} parts: pass fit_on=, or more {what}")
    order = np.argsort(mix(identities_of(len(size), seed) ^ salt), kind="stable")
    before = np.cumsum(size[order]) - 0.5 * size[order]
    part = np.empty(len(size), dtype=np.int64)
    part[order] = np.minimum((before * parts / data.n).astype(np.int64), parts - 1)
    out = part[unit]
    if len(np.unique(out)) < parts:
        raise NotComputable("one cluster holds most of the rows: pass fit_on= with other clusters")
    return out


def clusters_of(data: Predictions) -> Any:
    """Return each row's cluster as a number counted from 0, or None."""
    return None if data.cluster is None else np.unique(data.cluster, return_inverse=True)[1].reshape(-1)


def taken(data: Predictions, rows: Any) -> Predictions:
    """Return some of the rows, given by their numbers in increasing order."""
    import pyarrow as pa

    def some(v: Any) -> Any:
        return None if v is None else v[rows]

    table = None if data.covariates is None else data.covariates.take(pa.array(rows))
    y, p = data.y[rows], data.p[rows]
    y.flags.writeable = p.flags.writeable = False
    return replace(
        data, y=y, p=p, covariates=table, weights=some(data.weights), cluster=some(data.cluster), dropped=0, cache={}
    )


def sampled(data: Predictions, most: int, seed: int) -> Any:
    """Return the numbers of at most about `most` rows, uniform by identity; whole clusters."""
    return np.arange(data.n) if data.n <= most else np.flatnonzero(dealt(data, -(-data.n // most), seed, ~SALT) == 0)


def checked_folds(folds: Any) -> int:
    """Return the number of folds, or refuse it."""
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds not in (0, *range(2, 21)):
        raise BadInput(f"folds={folds!r}: pass a whole number from 2 to 20, or 0 for two halves")
    return int(folds)


# ---- Rows to judge repairs on, with every probability to be judged, and the paired differences between two of ----

Loss = Callable[[Any], tuple[Any, Any]]  # scores -> loss if the outcome is 0, and if it is 1


def brier_loss(p: Any) -> tuple[Any, Any]:
    """Return the squared error for either outcome."""
    return p**2, (1.0 - p) ** 2


def log_loss(p: Any) -> tuple[Any, Any]:
    """Return the logarithmic loss for either outcome, scores kept `EDGE` from 0 and 1."""
    inside = np.clip(p, EDGE, 1.0 - EDGE)
    return -np.log1p(-inside), -np.log(inside)


def wrong_loss(p: Any) -> tuple[Any, Any]:
    """Return whether the more probable class (1 from 0.5) is wrong, for either outcome."""
    says = (p >= 0.5).astype(np.float64)
    return says, 1.0 - says


LOSSES: Mapping[str, Loss] = {"brier": brier_loss, "log_loss": log_loss, "accuracy": wrong_loss}


@dataclass(frozen=True)
class Judged:
    """Rows that no map was fitted on, and their scores under each.

    Parameters
    ----------
    data : Predictions
    scores : Mapping of str to float64 array of shape (n,)
        ``"as audited"`` first.
    part : int64 array of shape (n,)
        Fold of each row: rows of one fold have their scores from one map.
    """

    data: Predictions
    scores: Mapping[str, Any]
    part: Any

    @property
    def repairs(self) -> tuple[str, ...]:
        """Names of the repairs."""
        return tuple(name for name in self.scores if name != AS_AUDITED)

    @property
    def folds(self) -> int:
        """Folds; 1 if all rows are judged with the same maps."""
        return int(self.part.max()) + 1

    def each_fold(self) -> list[tuple[Any, float]]:
        """Return rows and share of each fold."""
        rows = [np.flatnonzero(self.part == k) for k in range(self.folds)] if self.folds > 1 else [slice(None)]
        size = [self.data.n if isinstance(r, slice) else len(r) for r in rows]
        return [(r, s / self.data.n) for r, s in zip(rows, size, strict=True)]

    def mean_range(self, without: Any, happened: Any, delta: float) -> tuple[float, float, float]:
        """Return a mean over rows that is linear in the outcomes, and its limits given the scores.

        In folds each fold's limits hold given the others, at its share of `delta`, and are averaged.
        """
        data, cluster = self.data, clusters_of(self.data)
        out, folds = np.zeros(3), self.each_fold()
        for rows, share in folds:
            weight = None if data.weights is None else data.weights[rows]
            unit = None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1].reshape(-1)
            u = units_of(data.y[rows], data.p[rows], without[rows], happened[rows], weight, unit)
            out += share * np.array([u.mean, *mean_limits(u, delta / len(folds))])
        return float(out[0]), float(out[1]), float(out[2])

    def change(self, measure: str, name: str, base: str, delta: float) -> tuple[float, float, float]:
        """Return the paired change of a score's mean from `base` to `name`, and its range; accuracy counts upward."""
        loss = LOSSES[measure]
        before, after = loss(self.scores[base]), loss(self.scores[name])
        mean, low, high = self.mean_range(after[0] - before[0], after[1] - before[1], delta)
        return (-mean, -high, -low) if measure == "accuracy" else (mean, low, high)

    def plain_scores(self, name: str) -> dict[str, float | None]:
        """Return Brier score, log loss, accuracy and AUROC of one probability, and how many outcomes it called impossible."""
        y, p = self.data.y, self.scores[name]
        weight = np.ones(self.data.n) if self.data.weights is None else self.data.weights
        out: dict[str, float | None] = {}
        for measure, loss in LOSSES.items():
            mean = float(weight @ np.where(y == 1, *loss(p)[::-1]) / weight.sum())
            out[measure] = 1.0 - mean if measure == "accuracy" else mean
        out["impossible"] = int(np.count_nonzero(np.where(y == 1, p == 0.0, p == 1.0)))
        two = 0 < self.data.cases < self.data.n
        out["auroc"] = ranking(p, y, np.ones(self.data.n), weight).auroc if two else None
        return out


# ---- From recipes and fitted maps to scores of rows that no map was fitted on ----


@dataclass(frozen=True)
class Fits:
    """Judged rows, the maps, and how rows were dealt.

    Parameters
    ----------
    judged : Judged
    maps : Mapping of str to FittedMap
        In folds: fitted on all rows, after the folds' own maps were judged.
    how : {"halves", "fit_on", "folds", "fitted"}
    rows_fit : int
    left_out : tuple of (str, str)
        Repairs that could not be fitted, and why.
    fitted_rows : bool array over the rows given, or None
        Rows of `data` that the maps were fitted on.
    """

    judged: Judged
    maps: Mapping[str, FittedMap]
    how: str
    rows_fit: int
    left_out: tuple[tuple[str, str], ...]
    fitted_rows: Any = None


def named(repairs: Any) -> dict[str, Any]:
    """Return recipes and fitted maps by name, or refuse them."""
    if isinstance(repairs, Mapping):
        out = {str(k): v for k, v in repairs.items()}
    elif isinstance(repairs, (list, tuple)):
        out = {}
        for one in repairs:
            name = one.recipe if isinstance(one, FittedMap) else type(one).__name__
            out[name if name not in out else f"{name} {sum(k.split()[0] == name for k in out) + 1}"] = one
    else:
        out = named([repairs])
    for name, one in out.items():
        if not (isinstance(one, FittedMap) or callable(getattr(one, "fit", None))) or isinstance(one, type):
            kind = one.__name__ if isinstance(one, type) else type(one).__name__
            raise BadInput(f"repair {name!r} is a {kind}: pass a recipe such as cal.repair.Platt(), or a fitted map")
    if not out:
        raise BadInput("repairs is empty: pass recipes such as [cal.repair.Platt()], or leave it out")
    if AS_AUDITED in out:
        raise BadInput(f"a repair cannot be named {AS_AUDITED!r}: that is what repairs are compared with")
    return out


def fits_of(data: Predictions, repairs: Mapping[str, Any], fit_on: Predictions | None, folds: int, seed: int) -> Fits:
    """Fit the recipes on other rows than they are judged on."""
    recipes = {k: v for k, v in repairs.items() if not isinstance(v, FittedMap)}
    given = {k: v for k, v in repairs.items() if isinstance(v, FittedMap)}
    if not recipes and (fit_on is not None or folds):
        raise BadInput("every repair is fitted already: leave fit_on and folds out")
    if fit_on is not None and folds:
        raise BadInput("fit_on= and folds= are two ways to keep fit and judgement apart: pass one")
    if folds:
        return _cross_fitted(data, repairs, folds, seed)
    fit, judge, how, half = fit_on, data, "fit_on" if recipes else "fitted", None
    if recipes and fit_on is None:
        half = dealt(data, 2, seed) == 0
        fit, judge, how = taken(data, np.flatnonzero(half)), taken(data, np.flatnonzero(~half)), "halves"
    elif fit_on is not None:
        refuse_overlap(fit_on, judge)
    for name, one in given.items():
        refuse(name, one, judge)
    fitted, left_out = _fitted(recipes, fit)
    both = {**fitted, **given}
    maps = {name: both[name] for name in repairs if name in both}
    scores = {AS_AUDITED: judge.p, **{k: np.asarray(m(judge).p) for k, m in maps.items()}}
    judged = Judged(judge, scores, np.zeros(judge.n, dtype=np.int64))
    return Fits(judged, maps, how, 0 if fit is None else fit.n, left_out, half)


def _fitted(recipes: Mapping[str, Any], rows: Any) -> tuple[dict[str, FittedMap], tuple[tuple[str, str], ...]]:
    maps, left_out = {}, []
    for name, recipe in recipes.items():
        try:
            maps[name] = recipe.fit(rows)
        except NotComputable as e:
            left_out.append((name, e.reason))
    if left_out and not maps:
        raise NotComputable(f"no repair could be fitted: {left_out[0][1]}")
    return maps, tuple(left_out)


def _cross_fitted(data: Predictions, repairs: Mapping[str, Any], folds: int, seed: int) -> Fits:
    part = dealt(data, folds, seed)
    whole, left = _fitted({k: v for k, v in repairs.items() if not isinstance(v, FittedMap)}, data)
    maps = {
        k: v if isinstance(v, FittedMap) else whole[k] for k, v in repairs.items() if k in whole or k not in dict(left)
    }
    scores = {name: np.empty(data.n) for name in maps}
    gone = dict(left)
    for k in range(folds):
        rows, rest = np.flatnonzero(part == k), np.flatnonzero(part != k)
        inside, outside = taken(data, rows), taken(data, rest)
        for name in maps:
            one = repairs[name]
            try:
                fitted = one if isinstance(one, FittedMap) else one.fit(outside)
            except NotComputable as e:
                gone[name] = e.reason
                continue
            if isinstance(one, FittedMap):
                refuse(name, one, inside)
            scores[name][rows] = fitted(inside).p
    kept = [name for name in maps if name not in gone]
    if not kept:
        raise NotComputable(f"no repair could be fitted: {next(iter(gone.values()))}")
    judged = Judged(data, {AS_AUDITED: data.p, **{k: scores[k] for k in kept}}, part)
    return Fits(judged, {k: maps[k] for k in kept}, "folds", data.n, tuple(gone.items()))


def refuse(name: str, one: FittedMap, rows: Predictions) -> None:
    """Refuse to judge a map on rows it was fitted on."""
    if found := overlap(one.fitted_on, rows):
        raise BadInput(f"repair {name!r} would be judged on {found}: pass other rows, or the recipe instead of the map")


def refuse_overlap(fit_on: Predictions, rows: Predictions) -> None:
    """Refuse rows to fit on that are among those to judge on."""
    from calibrant.repair.fitted import fitted_on

    if not isinstance(fit_on, Predictions):
        raise BadInput(f"fit_on is a {type(fit_on).__name__}: pass calibrant.predictions(...) or calibrant.read(...)")
    if found := overlap(fitted_on(fit_on), rows):
        what = found.replace("it was fitted on", "of fit_on")
        raise BadInput(f"data holds {what}: pass other rows, or leave fit_on out to split data in halves")
