"""What the tests of the score alone share: rows or cells, room for a tolerance, and how statistics become outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


# ---- How far off the event rate may be, and which way is looked at ----


@dataclass(frozen=True)
class Room:
    """The null hypothesis: exact calibration, or rates within a tolerance on one side or both."""

    tolerance: float = 0.0  # in [0, 1)
    alternative: Alternative = "two-sided"

    @property
    def none(self) -> bool:
        """Whether exact calibration is tested."""
        return self.tolerance == 0.0 and self.alternative == "two-sided"

    @property
    def null(self) -> str:
        """The null hypothesis."""
        return CALIBRATED if self.none else within(self.tolerance, self.alternative, "p")

    @property
    def looks_for(self) -> str:
        """The alternative, where there is room."""
        return f"the event rate is {off_by(self.tolerance, self.alternative, 'the score somewhere')}"

    def impossible(self, q: Scored) -> int:
        """Count outcomes that have probability zero under every rate in the null hypothesis."""
        return Boundary.of(q.p, self.tolerance).impossible(q.events, q.times - q.events, self.alternative)


EXACTLY = Room()


# ---- The rows or cells of a test with its settings ----


@dataclass(frozen=True)
class Finding:
    """A statistic with its p-value."""

    statistic: float
    p_value: float
    speaks_for: str  # the alternative, if there is no room for a tolerance
    impossible: int | None = None  # outcomes that the null hypothesis rules out; by default as many as the room says


@dataclass(frozen=True)
class Tested:
    """Scored rows with the settings of a test."""

    q: Scored
    draws: int
    null: Null
    seed: int
    reads: str  # "rows", or the cells of the sketch
    room: Room = EXACTLY

    @property
    def simulates(self) -> bool:
        """Whether the p-value comes from simulated outcomes."""
        return self.null == "simulated"

    @property
    def drawing(self) -> Drawing:
        """What data are simulated with."""
        return Drawing(identities_of(len(self.q.p), self.seed), self.draws, self.seed)

    @property
    def mass(self) -> float:
        """Rows, or their weight."""
        return float((self.q.each_weighs * self.q.times).sum())

    def of(self, q: Scored) -> Tested:
        """The same settings with other entries."""
        return Tested(q, self.draws, self.null, self.seed, self.reads, self.room)

    def judge(self, statistic: float, simulated: Floats, tail: float) -> float:
        """The p-value by the null asked for: a rank among simulated statistics, or the tail of a law."""
        return p_value(statistic, simulated) if self.simulates else tail

    def outcome(self, name: str, result: Finding, settings: Mapping[str, Any], parts: Mapping[str, Any]) -> Outcome:
        """Wrap a result; outcomes of probability zero refute the null hypothesis whatever the statistic says."""
        impossible = self.room.impossible(self.q) if result.impossible is None else result.impossible
        law = ASYMPTOTIC if not self.simulates else EXACT if self.reads == "rows" else FROM_CELLS
        room = {} if self.room.none else {"tolerance": self.room.tolerance, "alternative": self.room.alternative}
        known = {
            "draws": self.draws if self.simulates else 0,
            "null": self.null,
            "reads": self.reads,
            "seed": self.seed,
            "weights": self.q.weight is not None,
            **self.q.facts,
        }
        return Outcome(
            method=f"detect.{name}",
            statistic=float(result.statistic),
            p_value=0.0 if impossible else float(result.p_value),
            alternative=result.speaks_for if self.room.none else self.room.looks_for,
            null=self.q.null or self.room.null,
            law=IMPOSSIBLE if impossible else self.q.law or law,
            settings={**known, **settings, **room},
            parts={"rows": self.q.n, "impossible": impossible, **parts},
        )


@dataclass(frozen=True)
class ScoreTestOptions:
    """The settings of a test as they are given; `tested` checks them."""

    draws: int
    null: Null
    seed: int
    tolerance: float = 0.0
    alternative: Alternative = "two-sided"
    sandwich: bool = False  # clusters have a law of their own, and need no random signs

    def checked(self) -> ScoreTestOptions:
        """Return the settings as they will be used, or say in one line which cannot be."""
        return ScoreTestOptions(
            check_int("draws", self.draws, LEAST_DRAWS, MOST_DRAWS, hint="such as 999"),
            choice("null", self.null, NULLS),
            checked_seed(self.seed),
            number("tolerance", self.tolerance, least=0, below=1, hint="such as 0.05"),
            choice("alternative", self.alternative, ALTERNATIVES),
            self.sandwich,
        )


def tested(data: Predictions | Sketch, options: ScoreTestOptions, what: str) -> Tested:
    """Check everything once; read rows, or the cells of a sketch at their mean score."""
    a, p = options.checked(), points(data)
    q = p.entries
    room = Room(a.tolerance, a.alternative)
    if q.clusters and not a.sandwich and not (room.none and a.null == "simulated"):
        why = "an asymptotic law" if room.none else "room for a tolerance or one side"
        raise NotComputable(f"{what} of clusters has random signs as its null, not {why}: use strong_calibration_test")
    if a.null == "asymptotic" and not room.none:
        raise NotComputable("a tolerance, or one side alone, has no asymptotic law here: pass null='simulated'")
    return Tested(q, a.draws, a.null, a.seed, p.reads, room)


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
