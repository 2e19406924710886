"""A claim of a paper: whether it holds here, on how many data sets, and within what interval.

Three outcomes: True, False, and None where the interval straddles the bound: cannot tell. Intervals are 95%; of several
that one claim looks at together, give their number as `looks`, and each is as much wider (Bonferroni). A claim that a
level is at most 0.05, of a test whose level is 0.05, cannot be told by any number of data sets: leave room (0.06).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scipy.stats import binomtest, t

LEVEL = 0.05
COUNTS = ("data sets", "repeats", "replicates")  # what rows call the number of data sets that they rest on
FIXED, ONE = "one data set, no chance in it", "one draw: no interval"


@dataclass(frozen=True)
class Claim:
    """Whether a claim holds, the data sets that it rests on, and a number with its interval and bound, if it is one.

    `fixed`: of one data set that is always the same, as the authors' own predictions in their own deal.
    """

    holds: bool | None
    sets: int = 1
    value: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    fixed: bool = False

    def __str__(self) -> str:
        return {True: "yes", False: "no", None: "cannot tell"}[self.holds]

    @property
    def evidence(self) -> str:
        """The number, its interval, and what it is held against; of one data set why there is none."""
        if self.value is None or self.low is None:
            reported = "" if self.value is None else f"{self.value:.3g} against {self.bound:.3g}; "
            one = FIXED if self.fixed else ONE if self.sets == 1 else ""
            return f"{reported}{one}"
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}] against {self.bound:.3g}"

    @property
    def room(self) -> float:
        """Distance of the interval from the bound; less than 0 if the bound is in it."""
        if self.low is None or self.high is None or self.bound is None:
            return float("inf")
        return max(self.low - self.bound, self.bound - self.high)


def of(value: Any, rows: Iterable[Mapping[str, Any]] = ()) -> Claim:
    """Return a claim: as it is, from JSON, or of a plain truth value, resting on the fewest data sets of any row."""
    if isinstance(value, dict):
        return Claim(**value)
    if isinstance(value, Claim):
        return value if value.holds is None else replace(value, holds=bool(value.holds))
    return Claim(bool(value), min((int(r[k]) for r in rows for k in COUNTS if r.get(k)), default=1))


def share(hits: int, sets: int, *, above: float | None = None, below: float | None = None, looks: int = 1) -> Claim:
    """Return whether a rate is above or below a bound: the exact binomial interval."""
    found = binomtest(hits, sets).proportion_ci(1 - LEVEL / looks)
    return row_attributes(hits / sets, found.low, found.high, sets, above, below)


def more(hits: int, than: int, sets: int, *, by: float = 0.0, looks: int = 1) -> Claim:
    """Return whether one rate is above another: the difference of two exact intervals, on the same data sets or not."""
    a, b = (binomtest(k, sets).proportion_ci(1 - LEVEL / (2 * looks)) for k in (hits, than))
    return row_attributes((hits - than) / sets, a.low - b.high, a.high - b.low, sets, by, None)


def oftener(wins: int, losses: int, sets: int, *, looks: int = 1) -> Claim:
    """Return whether one wins oftener than it loses on the same data sets: its exact share of those that decide."""
    decided = share(wins, wins + losses, above=0.5, looks=looks) if wins + losses else Claim(None)
    return replace(decided, sets=sets)


def mean(
    value: float,
    error: float,
    sets: int,
    *,
    above: float | None = None,
    below: float | None = None,
    looks: int = 1,
) -> Claim:
    """Return whether a mean with this standard error is above or below a bound: Student's interval."""
    if sets < 2:
        return Claim(None, sets)
    wide = float(t.ppf(1 - LEVEL / (2 * looks), sets - 1)) * error
    return row_attributes(value, value - wide, value + wide, sets, above, below)


def every(parts: Iterable[Claim]) -> Claim:
    """Return whether all hold, with the number of the one that decides, or is closest to its bound."""
    known = list(parts)
    if not known:
        return Claim(None, 0)
    rank = {False: 0, None: 1, True: 2}
    decides = min(known, key=lambda c: (rank[c.holds], c.room))
    return replace(decides, sets=min(c.sets for c in known))


def row_attributes(value: float, low: float, high: float, sets: int, above: float | None, below: float | None) -> Claim:
    """Return the outcome of an interval that should lie above, or below, a bound."""
    assert (above is None) != (below is None), "give above or below"
    bound = above if above is not None else below
    assert bound is not None
    value, low, high, bound = (float(f"{x:.6g}") for x in (value, low, high, bound))  # as rows are kept
    over, under = low > bound, high < bound
    holds = None if not (over or under) else over == (above is not None)
    return Claim(holds, sets, value, low, high, bound)
