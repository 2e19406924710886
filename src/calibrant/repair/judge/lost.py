"""Repairs judged where rows were lost before a horizon: by weights of censoring, on rows that no repair was fitted on.

Rows are split at random. One part fits the repairs, and its follow-up gives the law of censoring; the other part judges
them and gives neither. So, given the first part, repairs and limits of the law are fixed, and Theorem S holds as it
stands for each row's gap times what its score fixes: see documentation, Proofs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.certify.horizon import BAND, Reach, Strata, certified, learned, pilots
from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput, NotComputable
from calibrant.repair.catalogue import recipes
from calibrant.repair.fitted import Calibrator, fitted_on, overlap
from calibrant.repair.judge.rows import (
    EXPECTED,
    Fits,
    Judged,
    Judging,
    fitted_maps,
    hash_split,
    refuse_own_rows,
)
from calibrant.repair.judge.verdict import AS_AUDITED
from calibrant.repair.regression import Floats, Whole
from calibrant.stats.measures import normal_quantile
from calibrant.views.population import Population
from calibrant.views.unlabelled import FollowedRows, taken_with_lost, without_outcomes

Flags = NDArray[np.bool_]
CHECKED = 0.01  # with which limits of everyone's law are wrong where it is seen whether they bound the weights
COVARIATES = "it reads covariates, and weights of censoring take being lost as independent of score and outcome alone"
ALONG = "weights of censoring take being lost as independent of score and outcome alone, not of covariates too"
NO_ERROR = "by weights of censoring gaps and paired changes alone are certified"
UNTESTED = "it is proved for known outcomes alone, and some by the horizon are unknown"
NO_FOLDS = (
    "folds= is of known outcomes: by weights of censoring one half is fitted on and the other judged; leave it out"
)
GAPS_ALONE = {
    "judge": "judge='error' (--judge error): by weights of censoring the gap alone is certified: leave it out",
    "target": "target='population' (--target population): by weights of censoring the gap of the rows judged is "
    "certified: leave it out",
}


@dataclass(frozen=True, kw_only=True)
class JudgedByWeights(Judged):
    """Rows that no map was fitted on, some of them lost; `data` holds their scores and covariates, and no outcome."""

    q: FollowedRows  # every row, those that give the law of censoring among them
    strata: Strata  # levels with a law of their own each
    at: Whole  # which of them are judged; all others give the law
    covariates: pa.Table | None  # of every row
    # By whose it is, a bit a row, and by how often limits may be wrong.
    _laws: dict[tuple[bytes, float], Reach] = field(default_factory=dict, repr=False, compare=False)

    # ---- who gives the law ----

    @cached_property
    def pilots(self) -> Whole:
        """Which of all rows give the law."""
        return np.setdiff1d(np.arange(len(self.q.p)), self.at)

    def law(self, people: Flags, delta: float) -> Reach:
        """Limits of the law of censoring of some of all rows, wrong with probability at most `delta`."""
        key = np.packbits(people).tobytes(), delta
        if key not in self._laws:
            pilot = np.ones(len(people), dtype=np.bool_)
            pilot[self.at] = False
            self._laws[key] = learned(self.q, self.strata, people, delta, pilot)
        return self._laws[key]

    def people(self, among: Whole | None, pilots: Whole | None) -> Flags:
        """Of all rows those of a population: some of the judged rows, and those that give its law; or everyone."""
        if (among is None) != (pilots is None):
            raise ValueError("a population by weights of censoring is some judged rows and some pilot rows")
        out = np.ones(len(self.q.p), dtype=np.bool_)
        if among is not None and pilots is not None:
            out[:] = False
            out[self.at[among]] = out[self.pilots[pilots]] = True
        return out

    @property
    def others(self) -> pa.Table | None:
        """The covariates of these."""
        return None if self.covariates is None else self.covariates.take(pa.array(self.pilots))

    # ---- what is certified ----

    def mean_range(
        self, without: Floats, happened: Floats, delta: float, among: Whole | None = None, pilots: Whole | None = None
    ) -> tuple[float, float, float]:
        """A mean over rows, or some of them, that is linear in the outcomes, and its limits: those of Theorem S.

        A fifth of `delta` is spent on the law of censoring. Where that has no bound, limits are those of any outcomes.
        """
        some = np.arange(self.data.n) if among is None else among
        z0, z1, p = without[some], happened[some], self.data.p[some]
        least, most = float(np.minimum(z0, z1).mean()), float(np.maximum(z0, z1).mean())
        seen = self.seen(some)
        value = float(np.average(np.where(seen.y == 1.0, z1, z0), weights=seen.weights))
        people = self.people(among, pilots)
        try:
            law = self.law(people, delta * BAND)
        except NotComputable:
            return value, least, most
        judged = people.copy()
        judged[self.pilots] = False
        order = np.argsort(self.at[some])  # `certified` reads rows in the order of all
        _, low, high = certified(self.q, law, judged, delta * (1.0 - BAND), (z1 - z0)[order])
        known = float((z0 + (z1 - z0) * p).mean())  # what the scores say the mean is
        return value, max(known + low, least), min(known + high, most)

    def gap_range(self, delta: float, among: Whole, pilots: Whole | None = None) -> tuple[float, float, float]:
        """The gap as audited of some rows, and its limits."""
        p = self.data.p
        whole = len(among) == self.data.n and pilots is None
        _, low, high = self.mean_range(-p, 1.0 - p, delta, None if whole else among, pilots)
        return self.gap(AS_AUDITED, among), low, high

    # ---- what is estimated ----

    def seen(self, among: Whole) -> FollowedRows:
        """What is known of some of the judged rows, in their order."""
        at = self.at[among]
        if len(among) == self.data.n and (np.diff(among) == 1).all():
            return self._every
        return self.q.some(at)

    @cached_property
    def _every(self) -> FollowedRows:
        return self.q.some(self.at)

    def reaches(self, among: Whole) -> bool:
        """Whether somebody of these was followed to the horizon, so that there is an estimate."""
        return self.seen(among).reaches

    def gap(self, name: str, among: Whole) -> float:
        """The estimate of Aalen and Johansen less the mean score."""
        return self.seen(among).risk - float(self.scores[name][among].mean())

    def events_of(self, among: Whole) -> float:
        """Events, as estimated."""
        return self.seen(among).risk * len(among)

    def near_gap(self, among: Whole, delta: float) -> tuple[float, float] | None:
        """The ordinary interval of the gap as audited; None where the score expects few events, or others."""
        p, seen = self.data.p[among], self.seen(among)
        expected = float(p.mean())
        if len(p) * min(expected, 1.0 - expected) < EXPECTED:
            return None
        reach = normal_quantile(delta) * seen.risk_error
        return seen.risk - expected - reach, seen.risk - expected + reach

    @property
    def outcomes(self) -> tuple[Floats, Flags, Floats]:
        """Outcomes, NaN where unknown; which are known; and inverse weights of censoring, which are taken as known."""
        seen = self._every
        return seen.y, seen.known, seen.weights

    def standing(self, values: Floats) -> Floats:
        """Values of known rows in place of all of them."""
        weights = self._every.weights
        return len(weights) / float(weights.sum()) * weights * values

    # ---- what has no proof ----

    def population(self, _name: str, _rows: Whole, _values: Whole, _seed: int) -> Population:
        """Refuse: errors are not certified by weights."""
        raise NotComputable(NO_ERROR)

    @property
    def reported(self) -> dict[str, object]:
        """What a comparison says of the way."""
        return {
            "way": "weights",
            "horizon": self.q.horizon,
            "unknown": int((~self._every.known).sum()),
            "pilots": len(self.pilots),
            "assumes": self.law(self.people(None, None), CHECKED).assumes,
        }


def by_weights(how: Judging) -> Judging:
    """What can be judged by weights of censoring; refuse what was asked for and has no proof."""
    if how.folds:
        raise BadInput(NO_FOLDS)
    for name, wrong in (("judge", how.judge == "error"), ("target", how.target == "population")):
        if wrong:
            raise BadInput(GAPS_ALONE[name])
    unproved = (("variables", ALONG),) * bool(how.variables) + tuple((f"{test}_p", UNTESTED) for test in how.tests)
    only = replace(how, judge="gap", variables=(), tests=(), certify_groups=False)
    return replace(only, fits=fits_by_weights, unproved=unproved)


def fits_by_weights(data: Predictions, how: Judging) -> Fits:
    """Fit recipes by weights of censoring on other rows than they are judged on."""
    q = FollowedRows.of(data)
    own = {k: v for k, v in how.repairs.items() if isinstance(v, Calibrator)}
    tried = {k: v for k, v in how.repairs.items() if not isinstance(v, Calibrator)}
    declared = {k: recipes().get(type(v).__name__) for k, v in tried.items()}
    wider = [k for k, entry in declared.items() if entry is not None and entry.covariates]
    if not tried and how.fit_on is not None:
        raise BadInput("every repair is fitted already: leave fit_on out")
    every, fit, way = without_outcomes(data), how.fit_on, "fit_on" if tried else "fitted"
    if tried and fit is None:
        pilot, way = (hash_split(every, 2, how.seed) == 0)[q.rank], "halves"  # known rows stand first in `every`
        fit = taken_with_lost(data, np.flatnonzero(pilot))
    else:
        pilot = pilots(q, how.seed)
    at = np.flatnonzero(~pilot)
    known = taken_with_lost(data, at)
    judged_rows = Predictions(y=known.y, p=known.p)
    if way == "fit_on" and fit is not None:
        _refuse_other(fit, data, every.p[at])
    refuse_own_rows(own, judged_rows)
    fitted, gone = ({}, {}) if fit is None else fitted_maps({k: v for k, v in tried.items() if k not in wider}, fit)
    maps = {k: (fitted | own)[k] for k in how.repairs if k in fitted or k in own}
    gone |= dict.fromkeys(wider, COVARIATES) | {k: COVARIATES for k, one in maps.items() if one.reads}
    if not (maps := {k: one for k, one in maps.items() if k not in gone}):
        raise NotComputable(f"no repair could be fitted: {next(iter(gone.values()))}")
    covariates = None if every.covariates is None else every.covariates.take(at)
    blank = Predictions(y=every.y[at], p=every.p[at], covariates=covariates, name=data.name)
    scores: Mapping[str, Floats] = {AS_AUDITED: blank.p, **{k: one(blank).p for k, one in maps.items()}}
    judged = JudgedByWeights(blank, scores, np.zeros(len(at), dtype=np.int64), q=q, strata=Strata.by(data, ()), at=at,
                             covariates=every.covariates)  # fmt: skip
    judged.law(judged.people(None, None), CHECKED)  # where the law has no bound nothing is judged
    judged.seen(np.arange(len(at))).needs_reach()
    rows = 0 if fit is None else len(_every_score(fit))
    return Fits(judged, maps, way, rows, 0, tuple(gone.items()), at)


def _every_score(fit: Predictions) -> Floats:
    """The scores of rows to fit on, those of unknown outcome too."""
    return fit.p if fit.unlabelled is None else np.concatenate([fit.p, fit.unlabelled.p])


def _refuse_other(fit: Predictions, data: Predictions, judged: Floats) -> None:
    """Refuse rows to fit on that are among those judged, lost ones too, or by another horizon."""
    if fit.followed is not None and data.followed is not None and fit.followed.horizon != data.followed.horizon:
        raise BadInput(
            f"fit_on has outcomes by {fit.followed.horizon:g} and data by {data.followed.horizon:g}: make both by one"
        )
    own, other = (Predictions(y=np.zeros(len(p), np.int8), p=p) for p in (_every_score(fit), judged))
    if result := overlap(fitted_on(own), other):
        what = result.replace("it was fitted on", "of fit_on")
        raise BadInput(f"data holds {what}: pass other rows, or leave fit_on out to split data in halves")
