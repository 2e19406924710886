"""What the tests of the score alone share: rows or cells, room for a tolerance, and how statistics become outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice, number
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Outcome
from calibrant.stats.classical import Drawing, Scored
from calibrant.stats.cusum import Alternative, Boundary, off_by, within
from calibrant.stats.nulls import p_value
from calibrant.views.points import points, refuse_rows

Floats = NDArray[np.float64]
Null = Literal["simulated", "asymptotic"]
NULLS: tuple[Null, ...] = ("simulated", "asymptotic")
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")
CALIBRATED = "the outcomes are independent and happen with the probabilities given"
EXACT = "exact simulation"
FROM_CELLS = "simulation from cells"
ASYMPTOTIC = "asymptotic"
IMPOSSIBLE = "exact: outcomes happened that have probability zero"
LEAST_DRAWS, MOST_DRAWS = 19, 1_000_000  # so that a p-value can be 0.05, and that a slip of the keyboard is seen


# ---- The settings of a test: how far off the event rate may be, which way is looked at, and the null ----


@dataclass(frozen=True)
class ScoreTestOptions:
    """The settings of a test as they are passed, until `checked`; exact calibration is tested by default."""

    draws: int
    null: Null
    seed: int
    tolerance: float = 0.0  # in [0, 1): rates within it, on one side or both, are the null hypothesis
    alternative: Alternative = "two-sided"
    sandwich: bool = False  # clusters have a law of their own, and need no random signs

    def checked(self) -> ScoreTestOptions:
        """The settings as they will be used; refuse those that cannot be."""
        return replace(
            self,
            draws=check_int("draws", self.draws, LEAST_DRAWS, MOST_DRAWS, hint="such as 999"),
            null=choice("null", self.null, NULLS),
            seed=checked_seed(self.seed),
            tolerance=number("tolerance", self.tolerance, least=0, below=1, hint="such as 0.05"),
            alternative=choice("alternative", self.alternative, ALTERNATIVES),
        )

    @property
    def exact(self) -> bool:
        """Whether exact calibration is tested."""
        return self.tolerance == 0.0 and self.alternative == "two-sided"

    def impossible(self, q: Scored) -> int:
        """Count outcomes that have probability zero under every rate in the null hypothesis."""
        return Boundary.of(q.p, self.tolerance).impossible(q.events, q.times - q.events, self.alternative)


# ---- The rows or cells of a test with its settings ----


@dataclass(frozen=True)
class Finding:
    """A statistic with its p-value."""

    statistic: float
    p_value: float
    speaks_for: str  # the alternative, if there is no room for a tolerance
    impossible: int | None = None  # outcomes that the null hypothesis rules out; by default as many as the options say


@dataclass(frozen=True)
class Tested:
    """Scored rows with the settings of a test."""

    q: Scored
    options: ScoreTestOptions
    reads: str  # "rows", or the cells of the sketch

    @property
    def simulates(self) -> bool:
        """Whether the p-value comes from simulated outcomes."""
        return self.options.null == "simulated"

    @property
    def drawing(self) -> Drawing:
        """What data are simulated with."""
        return Drawing(identities_of(len(self.q.p), self.options.seed), self.options.draws, self.options.seed)

    @property
    def mass(self) -> float:
        """Rows, or their weight."""
        return float((self.q.each_weighs * self.q.times).sum())

    def judge(self, statistic: float, simulated: Floats, tail: float) -> float:
        """The p-value by the null asked for: a rank among simulated statistics, or the tail of a law."""
        return p_value(statistic, simulated) if self.simulates else tail

    def outcome(self, name: str, result: Finding, settings: Mapping[str, Any], parts: Mapping[str, Any]) -> Outcome:
        """Wrap a result; outcomes of probability zero refute the null hypothesis whatever the statistic says."""
        a = self.options
        impossible = a.impossible(self.q) if result.impossible is None else result.impossible
        law = ASYMPTOTIC if not self.simulates else EXACT if self.reads == "rows" else FROM_CELLS
        known = {
            "draws": a.draws if self.simulates else 0,
            "null": a.null,
            "reads": self.reads,
            "seed": a.seed,
            "weights": self.q.weight is not None,
            **self.q.facts,
            **settings,
        }
        null, speaks_for = CALIBRATED, result.speaks_for
        if not a.exact:
            known |= {"tolerance": a.tolerance, "alternative": a.alternative}
            null = within(a.tolerance, a.alternative, "p")
            speaks_for = f"the event rate is {off_by(a.tolerance, a.alternative, 'the score somewhere')}"
        return Outcome(
            method=f"detect.{name}",
            statistic=float(result.statistic),
            p_value=0.0 if impossible else float(result.p_value),
            alternative=speaks_for,
            null=self.q.null or null,
            law=IMPOSSIBLE if impossible else self.q.law or law,
            settings=known,
            parts={"rows": self.q.n, "impossible": impossible, **parts},
        )


def tested(data: Predictions | Sketch, options: ScoreTestOptions, what: str) -> Tested:
    """Check everything once; read rows, or the cells of a sketch at their mean score."""
    a, p = options.checked(), points(data)
    q = p.entries
    if q.clusters and not a.sandwich and not (a.exact and a.null == "simulated"):
        why = "an asymptotic law" if a.exact else "room for a tolerance or one side"
        raise NotComputable(f"{what} of clusters has random signs as its null, not {why}: use strong_calibration_test")
    if a.null == "asymptotic" and not a.exact:
        raise NotComputable("a tolerance, or one side alone, has no asymptotic law here: pass null='simulated'")
    return Tested(q, a, p.reads)


def covered(rows: Predictions, what: str) -> Predictions:
    """Return predictions of independent rows of equal weight, or say why the test is not defined for them."""
    refuse_rows(
        rows,
        cluster=f"{what} takes rows as independent; those of one cluster are not: use score_test",
        weights=f"{what} counts rows and has no form for weights: use score_test",
    )
    if rows.n == 0:
        raise NotComputable("there are no rows")
    return rows


def chi_square(statistic: float, degrees: int) -> float:
    """The upper tail of the chi-square law."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, statistic))
