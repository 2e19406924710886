"""Is it fixed? The same people before and after a repair, on rows that no repair was fitted on, against a limit.

Every population that could be looked at has its share of alpha from the start, and so has every repair. So it does not
matter which populations are reported, nor which repair is taken, nor that both were chosen with the outcomes judged
here:

    Let maps be fitted on other rows. Let the populations of one kind (everyone; groups; subgroups) be fixed by scores
    and covariates, with shares of at most one in all. Each range *now* misses with probability at most its share of
    alpha, and each range *after*, of one population under one repair, with at most that divided by the number of
    repairs. By Boole's inequality all ranges now of a kind hold simultaneously with probability at least ``1 - alpha``,
    and so do all ranges after, under every repair. Where all hold, no population picked from them, under a repair
    picked from them, is "within" though it is over the limit, or "over" though it is not. []

Ranges of a *gap* of the rows judged need no share for a repair: given the scores a repair moves their mean score by a
known amount, so that one range of the gap now gives the range under every repair. The gap of all rows like these has a
range of its own under each repair, and shares as errors do.

The other way to pay for the choice is to choose by cross-validation on the rows of the fit and to judge one repair. It
was not taken: five repairs make ends at most a fifth wider for everyone (the root of ln(200) over ln(40), at alpha =
0.05) and a tenth among sixty groups, while choosing without the judged rows costs every fit five times, and chooses by
fewer rows and not by the verdicts that are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from calibrant.arguments import By, judged_by
from calibrant.certify.closed import SignedEvidence
from calibrant.certify.whole import lower_of, raw_certificate, shown_certificate
from calibrant.repair.catalogue import recipes
from calibrant.repair.fitted import Calibrator
from calibrant.repair.judge.rows import Ends, Judged, Judging, People
from calibrant.repair.judge.verdict import AS_AUDITED, METHOD
from calibrant.repair.regression import Whole
from calibrant.results import Curve
from calibrant.views.points import weights_of
from calibrant.views.population import are_few, fixed_scores
from calibrant.views.sample import Dealing

Verdict = Literal["within", "undecided", "over", "not_checked"]
COLUMNS = (
    *("id", "who", "kind", "variable", "value", "rows", "measure"),
    *("now_low", "now_high", "now", "after_low", "after_high", "after", "now_gap", "after_gap"),
)
OF_TARGET = {"rows": "the rows judged", "population": "all rows like these"}


def verdict_on(ends: Ends, limit: float | None) -> Verdict:
    """Judge a range of a calibration error, or of a gap, which has a sign."""
    if limit is None:
        return "not_checked"
    low, high = ends
    if max(low, -high) > limit:
        return "over"
    return "within" if max(-low, high) <= limit else "undecided"


@dataclass(frozen=True)
class Fixed:
    """Ranges and verdicts of populations, as audited and under each repair."""

    judged: Judged
    people: tuple[People, ...]
    how: Judging
    _stored: dict[tuple[str, str], Ends] = field(default_factory=dict)
    _gaps: dict[str, Ends] = field(default_factory=dict)
    _lows: dict[tuple[str, str], float] = field(default_factory=dict)
    _scores: dict[str, Whole] = field(default_factory=dict)
    _whole: dict[str, Whole] = field(default_factory=dict)

    @classmethod
    def of(cls, judged: Judged, people: Sequence[People], how: Judging) -> Fixed:
        """Take the populations to judge; refuse rows whose clusters certify nothing of an error: a single one."""
        if how.judge != "gap" or how.target == "population":
            judged.clusters(AS_AUDITED, how.seed)
        return cls(judged, tuple(people), how)

    def measure(self, one: People) -> By:
        return judged_by(self.how.judge, one.kind)

    def ends(self, one: People, name: str) -> Ends:
        """The range of a population's error or gap under one probability, as it is reported."""
        if (one.id, name) not in self._stored:
            result = self._gap(one, name) if self.measure(one) == "gap" else self._error(one, name)
            self._stored[one.id, name] = self.how.reported(one, name, result) if self.how.reported else result
        return self._stored[one.id, name]

    def verdict(self, one: People, name: str) -> Verdict:
        return verdict_on(self.ends(one, name), self.how.limit)

    def lines(self, name: str) -> tuple[People, ...]:
        """Who is reported with a probability: those shown, and others over the limit now or under it."""
        both = dict.fromkeys((AS_AUDITED, name))
        return tuple(p for p in self.people if p.shown or any(self._broken(p, one) for one in both))

    def counts(self, name: str) -> dict[str, int]:
        """How many of those reported for are over the limit, undecided and within it."""
        results = [self.verdict(one, name) for one in self.lines(name)]
        return {kind: results.count(kind) for kind in ("over", "undecided", "within")}

    def left(self, name: str) -> dict[str, float]:
        """How many of those reported are not within the limit, and how far off one of them may be at most."""
        results = [self.ends(one, name) for one in self.lines(name)]
        return {**self.counts(name), "worst": max((max(-low, high) for low, high in results), default=0.0)}

    def estimated(self, one: People, name: str) -> float:
        """The gap of a population under one probability, as it is estimated."""
        return self.judged.gap(name, one.rows)

    # ---- ranges ----

    def _gap(self, one: People, name: str) -> Ends:
        if self.how.target == "population" and one.kind != "subgroup":
            return self._population_gap(one, name)
        p, q, folds = self.judged.data.p, self.judged.scores[name], self.judged.each_fold(one.rows)
        if one.id not in self._gaps:
            _, *ends = self.judged.gap_range(self.how.alpha * one.share, one.rows, one.pilots)
            self._gaps[one.id] = ends[0], ends[1]
        weight = weights_of(self.judged.data)
        moved = sum(share * float(np.average(q[rows] - p[rows], weights=weight[rows])) for rows, share in folds)
        low, high = self._gaps[one.id]
        return low - moved, high - moved

    def _population_gap(self, one: People, name: str) -> Ends:
        folds = self.judged.each_fold(one.rows)
        delta, low, high = self._share(one, name) / (2 * len(folds)), 0.0, 0.0
        for rows, share in folds:
            q = self.judged.population(name, rows, self._values(name), self.how.seed)
            ends = SignedEvidence.of(q, delta, "population").ends(delta, delta)
            low, high = low + share * ends[0], high + share * ends[1]
        return low, high

    def _error(self, one: People, name: str) -> Ends:
        folds = self.judged.each_fold(one.rows)
        delta, high = self._share(one, name) / (2 * len(folds)), 0.0
        for rows, share in folds:
            q = self.judged.population(name, rows, self._values(name), self.how.seed)
            high += share * shown_certificate(q, q.judged(self.how.steps)).above(delta)[0]
        return self._low(one, name), high

    def _low(self, one: People, name: str) -> float:
        if (one.id, name) not in self._lows:
            folds = self.judged.each_fold(one.rows)
            delta = self._share(one, name) / (2 * len(folds))
            self._lows[one.id, name] = sum(share * self._low_of(rows, name, delta) for rows, share in folds)
        return self._lows[one.id, name]

    def _low_of(self, rows: Whole, name: str, delta: float) -> float:
        values, seed = self._values(name), self.how.seed
        if self.judged.clusters(name, seed) is not None:
            return raw_certificate(self.judged.population(name, rows, values, seed)).below(delta, seed)
        cells = self._dealing.cells(self._fixed(name)[rows], self.judged.data.y[rows], bool(len(values)))
        return lower_of(cells, delta, seed)

    def _share(self, one: People, name: str) -> float:
        """The error probability of a range: of those after every repair has its part."""
        alpha = self.how.alpha * one.share
        return alpha if name == AS_AUDITED else alpha / max(len(self.judged.repairs), 1)

    @cached_property
    def _dealing(self) -> Dealing:
        return Dealing.of(self.judged.data.n, self.how.seed)

    # ---- which score is judged ----

    def about(self, name: str) -> str:
        """Say which score the ends of a probability's ranges are about."""
        if self.how.judge == "gap":
            return f"the raw score, of {OF_TARGET[self.how.target]}"
        every, values = np.arange(self.judged.data.n), self._values(name)
        return self.judged.population(name, every, values, self.how.seed).judged(self.how.steps).about

    def _values(self, name: str) -> Whole:
        """The values of a probability that is judged as it is; none where it is judged as shown.

        That is decided once, by the scores of all rows judged, for every population and fold alike: a group's own few
        rows would decide otherwise. A repair that makes no more values than the score as audited has is judged like it.
        """
        if name not in self._scores:
            values = np.unique(self._fixed(name))
            exact = are_few(len(values), self.judged.data.n)
            if name == AS_AUDITED:
                exact = exact if self.how.exact is None else self.how.exact
            elif len(audited := self._values(AS_AUDITED)):
                exact = exact or len(values) <= len(audited)
            self._scores[name] = values if exact else values[:0]
        return self._scores[name]

    def _fixed(self, name: str) -> Whole:
        """The scores of one probability out of ``2^30``."""
        if name not in self._whole:
            self._whole[name] = fixed_scores(self.judged.scores[name])
        return self._whole[name]

    # ---- who else is over the limit ----

    def _broken(self, one: People, name: str) -> bool:
        """Whether a population is over the limit; its upper end is not looked for where the lower is not."""
        limit = self.how.limit
        if limit is None or (self.measure(one) == "error" and self._low(one, name) <= limit):
            return False
        return self.verdict(one, name) == "over"

    # ---- reported ----

    def curve(self, chosen: str, calibrators: Mapping[str, Calibrator]) -> Curve:
        """A line for each population, before and after one repair; ``"as audited"`` for none."""
        after, lines, reported = chosen != AS_AUDITED, [], self.lines(chosen)
        for one in (p for p in self.people if p.listed or p in reported):
            now, then = self.ends(one, AS_AUDITED), self.ends(one, chosen) if after else (None, None)
            lines.append(
                (
                    *(one.id, one.who, one.kind, one.variable, one.value, len(one.rows), self.measure(one)),
                    *(*now, self.verdict(one, AS_AUDITED), *then, self.verdict(one, chosen) if after else None),
                    *(self.estimated(one, AS_AUDITED), self.estimated(one, chosen) if after else None),
                )
            )
        kinds = [one.kind for one in self.people]
        entry = recipes().get(calibrators[chosen].recipe) if after else None
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
                **({"target": self.how.target} if self.how.judge == "gap" else {}),
                "about": {"now": self.about(AS_AUDITED), "after": self.about(chosen) if after else None},
                "groups": kinds.count("group"),
                "candidates": tuple(self._candidate(name, calibrators.get(name)) for name in self.judged.scores),
            },
        )

    def _candidate(self, name: str, one: Calibrator | None) -> dict[str, Any]:
        """What one probability comes to: for whom it is over the limit, and the range of everyone."""
        counts = self.counts(name)
        whole = next((p for p in self.people if p.kind == "everyone"), None)
        low, high = (None, None) if whole is None else self.ends(whole, name)
        entry = None if one is None else recipes().get(one.recipe)
        return {
            "name": name,
            "command": "" if entry is None else entry.command,
            **counts,
            "low": low,
            "high": high,
        }
