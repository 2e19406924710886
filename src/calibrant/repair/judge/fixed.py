"""Is it fixed? The same people before and after a repair, on rows that no repair was fitted on, against a limit.

Every population that could be looked at has its share of alpha from the start, and so has every repair. So it does not
matter which populations are told, nor which repair is taken, nor that both were chosen with the outcomes judged here:

    Let maps be fitted on other rows. Let the populations of one kind (everyone; groups; pockets) be fixed by scores and
    covariates, with shares of at most one in all. Each range *now* misses with probability at most its share of alpha,
    and each range *after*, of one population under one repair, with at most that divided by the number of repairs. By
    Boole's inequality all ranges now of a kind hold together with probability at least ``1 - alpha``, and so do all
    ranges after, under every repair. Where all hold, no population picked from them, under a repair picked from them,
    is "met" though it is over the limit, or "broken" though it is not. []

Ranges of a *gap* need no share for a repair: given the scores a repair moves the mean score of a population by a known
amount, so that one range of its gap now gives the range under every repair.

The other way to pay for the choice is to choose by cross-validation on the rows of the fit and to judge one repair. It
was not taken: five repairs make ends at most a fifth wider for everyone (the root of ln(200) over ln(40), at alpha =
0.05) and a tenth among sixty groups, while choosing without the judged rows costs every fit five times, and chooses by
fewer rows and not by the verdicts that are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from calibrant.certify.judged import judged_of
from calibrant.certify.raw_lower import raw_lower_of
from calibrant.data.predictions import Predictions
from calibrant.errors import NotComputable
from calibrant.repair.catalogue import recipes
from calibrant.repair.fitted import FittedMap
from calibrant.repair.judge.evidence import residual_limits, unproved
from calibrant.repair.judge.rows import Judged
from calibrant.repair.judge.verdict import AS_AUDITED, METHOD
from calibrant.repair.regression import Floats, Whole
from calibrant.results import Curve
from calibrant.stats.bounds import debiased_error
from calibrant.views.population import Population, everyone

Kind = Literal["everyone", "group", "pocket"]
Measure = Literal["error", "gap"]
Verdict = Literal["met", "undecided", "broken", "none"]
Ends = tuple[float, float]
COLUMNS = (
    *("id", "who", "kind", "variable", "value", "rows", "measure"),
    *("now_low", "now_high", "now", "after_low", "after_high", "after"),
)


@dataclass(frozen=True, kw_only=True)
class People:
    """A population of the judged rows, fixed by scores and covariates.

    Parameters
    ----------
    id : str
        ``"everyone"``, or a name that no other has.
    who : str
        In words.
    kind : {"everyone", "group", "pocket"}
    rows : int array
        Which of the judged rows.
    share : float
        Of alpha, among all of its kind that could be looked at.
    variable, value : str
        Of a group.
    shown : bool
        It is told of in any case; others where a repair brings them over the limit.
    """

    id: str
    who: str
    kind: Kind
    rows: Whole
    share: float = 1.0
    variable: str = ""
    value: str = ""
    shown: bool = True


def as_found(_: People, __: str, ends: Ends) -> Ends:
    """Tell the ends of a range as they are."""
    return ends


@dataclass(frozen=True, kw_only=True)
class Against:
    """What populations are held against.

    Parameters
    ----------
    limit : float or None
    judge : {"error", "gap"}
        What the limit is about for everyone and groups; for pockets it is the gap.
    levels : int
        Steps in which scores of many values are shown.
    alpha : float
        Of each kind of population.
    seed : int
    told : callable
        Given a population, a probability and the ends of its range, the ends as they are told, moved outward. Verdicts
        follow these.
    """

    limit: float | None
    judge: Measure
    levels: int
    alpha: float
    seed: int
    told: Callable[[People, str, Ends], Ends] = as_found


def verdict_on(ends: Ends, limit: float | None) -> Verdict:
    """Judge a range of an average error, or of a gap, which has a sign."""
    if limit is None:
        return "none"
    low, high = ends
    if max(low, -high) > limit:
        return "broken"
    return "met" if max(-low, high) <= limit else "undecided"


@dataclass(frozen=True)
class Fixed:
    """Ranges and verdicts of populations, as audited and under each repair.

    Parameters
    ----------
    judged : Judged
    people : tuple of People
    how : Against
    """

    judged: Judged
    people: tuple[People, ...]
    how: Against
    _held: dict[tuple[str, str], Ends] = field(default_factory=dict)
    _gaps: dict[str, Ends] = field(default_factory=dict)

    @classmethod
    def of(cls, judged: Judged, people: Sequence[People], how: Against) -> Fixed:
        """Take the populations that can be judged; weights and clusters leave the error without a proof."""
        if how.judge == "error" and (why := unproved(judged.data)):
            raise NotComputable(why)
        return cls(judged, tuple(people), how)

    def measure(self, one: People) -> Measure:
        """Return what is judged of a population."""
        return "gap" if one.kind == "pocket" else self.how.judge

    def ends(self, one: People, name: str) -> Ends:
        """Return the range of a population's error or gap under one probability, as it is told."""
        if (one.id, name) not in self._held:
            found = self._gap(one, name) if self.measure(one) == "gap" else self._error(one, name)
            self._held[one.id, name] = self.how.told(one, name, found)
        return self._held[one.id, name]

    def verdict(self, one: People, name: str) -> Verdict:
        """Return the verdict on a population under one probability."""
        return verdict_on(self.ends(one, name), self.how.limit)

    def lines(self, name: str) -> tuple[People, ...]:
        """Return who is told of beside a probability: those shown, and others over the limit now or under it."""
        both = dict.fromkeys((AS_AUDITED, name))
        return tuple(p for p in self.people if p.shown or any(self._broken(p, one) for one in both))

    def counts(self, name: str) -> dict[str, int]:
        """Return how many of those told of are over the limit, undecided and within it."""
        found = [self.verdict(one, name) for one in self.lines(name)]
        return {kind: found.count(kind) for kind in ("broken", "undecided", "met")}

    # ---- ranges ----

    def _folds(self, one: People) -> list[tuple[Whole, float]]:
        """Return the rows of a population in each fold, and their share."""
        part = self.judged.part[one.rows]
        own = [one.rows[part == k] for k in range(self.judged.folds)]
        return [(rows, len(rows) / len(one.rows)) for rows in own if len(rows)]

    def _gap(self, one: People, name: str) -> Ends:
        data, folds = self.judged.data, self._folds(one)
        if one.id not in self._gaps:
            delta = self.how.alpha * one.share / len(folds)
            every = np.array([residual_limits(data, rows, delta)[1:] for rows, _ in folds])
            low, high = np.array([share for _, share in folds]) @ every
            self._gaps[one.id] = float(low), float(high)
        q = self.judged.scores[name]
        moved = sum(share * _mean(q[rows] - data.p[rows], data, rows) for rows, share in folds)
        low, high = self._gaps[one.id]
        return low - moved, high - moved

    def _error(self, one: People, name: str) -> Ends:
        folds = self._folds(one)
        delta = self._share(one, name) / (2 * len(folds))
        low = high = 0.0
        for rows, share in folds:
            q = self._population(rows, name)
            high += share * judged_of(q, self.how.levels, (0.0, delta), 1.0, self.how.seed).interval.high
            low += share * raw_lower_of(q, delta, 1.0, self.how.seed).interval.low
        return low, high

    def _share(self, one: People, name: str) -> float:
        """Return the error probability of a range: of those after every repair has its part."""
        alpha = self.how.alpha * one.share
        return alpha if name == AS_AUDITED else alpha / max(len(self.judged.repairs), 1)

    def _population(self, rows: Whole, name: str) -> Population:
        q = self.judged.scores[name][rows]
        return everyone(Predictions(y=self.judged.data.y[rows], p=q), self.how.seed)

    # ---- who else is over the limit ----

    def _broken(self, one: People, name: str) -> bool:
        return self._suspect(one, name) and self.verdict(one, name) == "broken"

    def _suspect(self, one: People, name: str) -> bool:
        """Tell whether a population looks as if it could be shown to be over the limit; others are not certified.

        No lower end is nearer to the error seen than two of its standard errors: this saves time, and no "broken".
        """
        if self.how.limit is None:
            return False
        if self.measure(one) == "gap":
            return True
        y, q = self.judged.data.y[one.rows], self.judged.scores[name][one.rows]
        level = np.floor(q * self.how.levels + 0.5).astype(np.int64)
        rows, cases = np.bincount(level), np.bincount(level, y)
        noise = 2.0 * float(np.sqrt((q * (1.0 - q)).mean() / len(q)))
        return debiased_error(np.arange(len(rows)) / self.how.levels, rows, cases) - noise > self.how.limit

    # ---- told ----

    def curve(self, chosen: str, maps: Mapping[str, FittedMap], **settings: Any) -> Curve:
        """Return a line for each population, before and after one repair; ``"as audited"`` for none."""
        after, lines = chosen != AS_AUDITED, []
        for one in self.lines(chosen):
            now, then = self.ends(one, AS_AUDITED), self.ends(one, chosen) if after else (None, None)
            lines.append(
                (
                    *(one.id, one.who, one.kind, one.variable, one.value, len(one.rows), self.measure(one)),
                    *(*now, self.verdict(one, AS_AUDITED), *then, self.verdict(one, chosen) if after else None),
                )
            )
        kinds = [one.kind for one in self.people]
        entry = recipes().get(maps[chosen].recipe) if after else None
        return Curve(
            method=f"{METHOD}.fixed",
            columns={k: tuple(line[i] for line in lines) for i, k in enumerate(COLUMNS)},
            settings={
                "candidate": chosen if after else "",
                "command": "" if entry is None else entry.command,
                "rows_judged": self.judged.data.n,
                "alpha": self.how.alpha,
                "limit": self.how.limit,
                "judge": self.how.judge,
                "groups": kinds.count("group"),
                "candidates": tuple(self._candidate(name, maps.get(name)) for name in self.judged.scores),
                **settings,
            },
        )

    def _candidate(self, name: str, one: FittedMap | None) -> dict[str, Any]:
        """Return what one probability comes to: for whom it is over the limit, and the range of everyone."""
        counts = self.counts(name)
        whole = next((p for p in self.people if p.kind == "everyone"), None)
        low, high = (None, None) if whole is None else self.ends(whole, name)
        entry = None if one is None else recipes().get(one.recipe)
        return {
            "name": name,
            "command": "" if entry is None else entry.command,
            "over": counts["broken"],
            "undecided": counts["undecided"],
            "met": counts["met"],
            "low": low,
            "high": high,
        }


def _mean(values: Floats, data: Predictions, rows: Whole) -> float:
    return float(np.average(values, weights=None if data.weights is None else data.weights[rows]))
