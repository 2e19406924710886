"""From recipes and fitted maps to scores of rows that no map was fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput, NotComputable
from calibrant.repair.comparison import AS_AUDITED
from calibrant.repair.fitted import FittedMap
from calibrant.repair.judged import Judged
from calibrant.repair.provenance import overlap
from calibrant.repair.split import dealt, taken


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
    from calibrant.repair.provenance import fitted_on

    if not isinstance(fit_on, Predictions):
        raise BadInput(f"fit_on is a {type(fit_on).__name__}: pass calibrant.predictions(...) or calibrant.read(...)")
    if found := overlap(fitted_on(fit_on), rows):
        what = found.replace("it was fitted on", "of fit_on")
        raise BadInput(f"data holds {what}: pass other rows, or leave fit_on out to split data in halves")


def default_repairs(variables: Sequence[str]) -> dict[str, Any]:
    """Return the repairs that are compared if none are named: maps of the score, and with variables maps of them too."""
    from calibrant import repair

    score = {name: getattr(repair, name)() for name in ("Platt", "Beta", "Isotonic") if hasattr(repair, name)}
    return score | ({"AugmentedLogistic": repair.AugmentedLogistic(variables=tuple(variables))} if variables else {})
