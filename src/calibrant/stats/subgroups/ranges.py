"""Certified ranges of the gaps of boxes: of all at once, of the worst, and what it takes to decide a limit.

The *gap* of a box is the mean, over its rows, of the event rate minus the score. Scores and covariates are given,
outcomes are independent, each with a rate of its own that nobody knows. The tails of the number of events are bounded
by the binomial's, whatever the rates (Hoeffding 1956), so that limits of the mean rate minus the mean score hold the
gap.

A box is looked at from two *sides*: events next to scores, and non-events next to one minus the score.
What holds for one side from below holds for the other from above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.stats.betting import lower_rates, rate_evidence
from calibrant.stats.subgroups.family import STEPS, Family

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEP = 1.0 / STEPS  # scores are read rounded down to so many steps; ends move out by one, arithmetic included
SHORT = 64  # boxes whose ends are computed first: those that an approximation puts first
ROUNDING = 1e-6  # of a log probability, when it is asked whether a box can be passed over
CLEAR = 2.0  # standard errors from the limit, beyond which an estimate is taken to be on its side
MOST_ROWS = 10**12


class _Sides(NamedTuple):
    """Boxes from both sides: first all of one side, then all of the other."""

    box: Ints
    events: Floats
    rows: Floats
    score: Floats
    delta: Floats

    def of(self, kept: Ints) -> _Sides:
        return _Sides(self.box[kept], self.events[kept], self.rows[kept], self.score[kept], self.delta[kept])

    @property
    def gap(self) -> Floats:
        return self.events / self.rows - self.score

    @property
    def width(self) -> Floats:
        """About how far limits are from the gaps seen: says where to look first."""
        from scipy.special import ndtri

        out: Floats = -ndtri(self.delta) * errors(self.events, self.rows)
        return out

    def least(self) -> Floats:
        """Limits of the gaps from below."""
        low: Floats = lower_rates(self.events, self.rows, self.delta) - self.score - STEP
        return low


def _sides(family: Family, delta: ArrayLike, boxes: Ints | None = None) -> _Sides:
    """Look at boxes, each end at its own error probability."""
    own = np.arange(family.size) if boxes is None else np.asarray(boxes, dtype=np.int64)
    k, n, score = family.events[own], family.rows[own], family.expected[own] / family.rows[own]
    return _Sides(
        box=np.tile(own, 2),
        events=np.concatenate([k, n - k]),
        rows=np.tile(n, 2),
        score=np.concatenate([score, 1.0 - score]),
        delta=np.tile(np.broadcast_to(np.asarray(delta, dtype=np.float64), own.shape), 2),
    )


def errors(events: Floats, rows: Floats) -> Floats:
    """Standard errors of rates, never zero."""
    out: Floats = np.sqrt((events + 0.5) * (rows - events + 0.5) / rows) / (rows + 1.0)
    return out


# ---- Ends of each box ----


def ends(family: Family, low: ArrayLike, high: ArrayLike, boxes: Ints | None = None) -> tuple[Floats, Floats]:
    """One-sided limits of gaps.

    `low`, `high` (boxes,): probability, at most, that the lower limit of a box is above its gap; that the upper limit
    is below it. `boxes`: which; all by default. The result has shape (boxes,).
    """
    below, above = _sides(family, low, boxes), _sides(family, high, boxes)
    first, second = np.split(np.arange(len(below.box)), 2)
    return below.of(first).least(), -above.of(second).least()


def together(family: Family, alpha: float, boxes: Ints | None = None) -> tuple[Floats, Floats]:
    """Ranges that hold the gaps of all boxes of the family together, with probability at least ``1 - alpha``."""
    each = alpha / 2.0 * (family.weight if boxes is None else family.weight[boxes])
    return ends(family, each, each, boxes)


def floors(low: Floats, high: Floats) -> Floats:
    """What sizes of gaps are at least, given their ranges."""
    return np.maximum(np.maximum(low, -high), 0.0)


# ---- The worst of the family: few boxes can be, and only those are computed ----


def floor(family: Family, alpha: float) -> tuple[float, int]:
    """The largest floor of ranges that hold simultaneously, and its box: some gap is at least so large.

    It is 0 if no box has a floor above it; the box is then the one that comes nearest.
    """
    sides = _sides(family, alpha / 2.0 * family.weight)
    first = _largest(sides.gap - sides.width)
    worst = float(sides.of(first).least().max())

    # (1) A limit above `worst` means a binomial tail of less than delta at a mean rate of score + worst: not where the
    # tail is provably larger.
    at = sides.score + max(worst, 0.0)
    kept = np.flatnonzero(_log_tail_least(sides, at) <= np.log(sides.delta) + ROUNDING)
    # (2) The others exactly
    left = sides.of(np.union1d(first, kept))
    low = left.least()
    top = int(np.argmax(low))
    return max(float(low[top]), 0.0), int(left.box[top])


def ceiling(family: Family, alpha: float, least_rows: float) -> tuple[float, int]:
    """What no gap of a box with at least so many rows exceeds, and the box with the largest limit.

    Right with probability at least ``1 - alpha``. The box whose gap is truly the largest is one box, fixed before
    outcomes are read, and its gap has one sign: its own one-sided limit covers it, and the largest of all limits is no
    smaller. So nothing is shared.
    """
    large = np.flatnonzero(family.rows >= least_rows)
    if not len(large):
        return 0.0, -1
    sides = _sides(family, alpha, large)
    first = _largest(sides.width - sides.gap)
    worst = float(-sides.of(first).least().min())

    # (1) A limit of at most `worst` on this side: see `lower_rates`. Chernoff's bound is above the binomial tail.
    at = sides.score + STEP - worst
    inside = (at > 0.0) & (sides.events - 1.0 < sides.rows * at + ROUNDING)
    inside |= (at > 0.0) & (-_divergence(sides, at) > np.log(sides.delta) - ROUNDING)
    # (2) The others exactly
    left = sides.of(np.union1d(first, np.flatnonzero(inside)))
    low = left.least()
    top = int(np.argmin(low))
    return min(max(float(-low[top]), 0.0), 1.0), int(left.box[top])


def _largest(values: Floats) -> Ints:
    """Where the largest values are."""
    few = min(SHORT, len(values))
    return np.argpartition(values, len(values) - few)[-few:]


def _divergence(sides: _Sides, rate: Floats) -> Floats:
    """``n KL(k / n, rate)``: Chernoff's bound of either tail is ``exp`` of its negative."""
    from scipy.special import kl_div

    k, n, r = sides.events, sides.rows, np.clip(rate, 0.0, 1.0)
    out: Floats = kl_div(k, n * r) + kl_div(n - k, n * (1.0 - r))
    return out


def _log_tail_least(sides: _Sides, rate: Floats) -> Floats:
    """A bound from below of ``ln P(at least k cases)`` at a rate: ``ln P(k cases)``, as Ash (1965) bounds it."""
    k, n = sides.events, sides.rows
    log_mass = -_divergence(sides, rate) - 0.5 * np.log(np.maximum(8.0 * k * (1.0 - k / n), 1.0))
    out: Floats = np.where(k <= n * rate, 0.0, log_mass)
    return out


# ---- Which boxes are over a limit ----


def p_values(family: Family, limit: float, boxes: Ints | None = None) -> Floats:
    """A p-value for each box against "its gap is between -limit and limit"."""
    sides = _sides(family, 1.0, boxes)
    each = rate_evidence(sides.events, sides.rows, np.minimum(sides.score + limit + STEP, 1.0))
    return _doubled(each)


def _doubled(each: Floats) -> Floats:
    """Twice the smaller of both sides' p-values."""
    first, second = np.split(each, 2)
    return np.minimum(2.0 * np.minimum(first, second), 1.0)


def over(family: Family, limit: float, alpha: float) -> Flags:
    """Which gaps are larger than a limit, all of these right together with probability at least ``1 - alpha``.

    Holm's procedure with weights: whatever the ranges that hold simultaneously show to be over the limit, and perhaps
    more.
    """
    # (1) With p-values that are too small, too many are found; the others are not found with the p-values either.
    sides = _sides(family, 1.0)
    low = _doubled(np.exp(_log_tail_least(sides, sides.score + limit + STEP) - ROUNDING))
    some = np.flatnonzero(holm(low, family.weight, alpha))
    # (2) The others exactly
    level = np.ones(family.size)
    level[some] = p_values(family, limit, some)
    return holm(level, family.weight, alpha)


def holm(level: Floats, weight: Floats, alpha: float) -> Flags:
    """What is found: p-values of at most alpha times the box's part of the weight that is not found yet."""
    result = np.zeros(len(level), dtype=bool)
    while True:
        more: Flags = level * (1.0 - weight[result].sum()) <= alpha * weight
        more &= level < 1.0
        if not (more & ~result).any():
            return result
        result |= more


# ---- One face of the ranges of rows, and of clusters ----


class Ranges(Protocol):
    """Ranges of the gaps of a family of boxes."""

    @property
    def family(self) -> Family:
        """The boxes."""

    @property
    def count(self) -> int:
        """Rows, or clusters."""

    @property
    def gap(self) -> Floats:
        """Of each box, as seen."""

    @property
    def predicted(self) -> Floats:
        """Mean score of each box."""

    @property
    def error(self) -> Floats:
        """Standard errors of the gaps."""

    @property
    def times(self) -> Floats:
        """Variance of each box's residual over that of independent rows."""

    def observed(self, box: int) -> float:
        """The event rate of a box."""

    def reported(self, box: int) -> Mapping[str, tuple[int, int]]:
        """How many clusters have rows in a box, and how many outside."""

    def ends(self, low: ArrayLike, high: ArrayLike, boxes: Ints | None = None) -> tuple[Floats, Floats]:
        """One-sided limits."""

    def together(self, alpha: float, boxes: Ints | None = None) -> tuple[Floats, Floats]:
        """Ranges that hold simultaneously."""

    def floor(self, alpha: float) -> tuple[float, int]:
        """The largest floor, and its box."""

    def ceiling(self, alpha: float, least_rows: float) -> tuple[float, int]:
        """What no gap exceeds, and the box with the largest limit."""

    def over(self, limit: float, alpha: float) -> Flags:
        """Which gaps are larger than a limit."""


@dataclass(frozen=True)
class RowRanges:
    """Those of independent rows that count alike."""

    family: Family

    @property
    def count(self) -> int:
        return self.family.n

    @property
    def gap(self) -> Floats:
        return self.family.gap

    @property
    def predicted(self) -> Floats:
        return self.family.expected / self.family.rows

    @property
    def error(self) -> Floats:
        return errors(self.family.events, self.family.rows)

    @property
    def times(self) -> Floats:
        return np.ones(self.family.size)

    def observed(self, box: int) -> float:
        return float(self.family.events[box] / self.family.rows[box])

    def reported(self, _box: int) -> Mapping[str, tuple[int, int]]:
        return {}

    def ends(self, low: ArrayLike, high: ArrayLike, boxes: Ints | None = None) -> tuple[Floats, Floats]:
        return ends(self.family, low, high, boxes)

    def together(self, alpha: float, boxes: Ints | None = None) -> tuple[Floats, Floats]:
        return together(self.family, alpha, boxes)

    def floor(self, alpha: float) -> tuple[float, int]:
        return floor(self.family, alpha)

    def ceiling(self, alpha: float, least_rows: float) -> tuple[float, int]:
        return ceiling(self.family, alpha, least_rows)

    def over(self, limit: float, alpha: float) -> Flags:
        return over(self.family, limit, alpha)


# ---- Estimates, for planning only: what is behind the gaps seen, and how many rows would decide ----


def shrunken(of: Ranges, alpha: float) -> Floats:
    """Estimates of all gaps: what was seen, less the luck that the search has found.

    A gap inside its range is interpreted as nothing; of one w times as wide as the half range, ``1 - w^-4`` is kept.
    Between the garrote (Breiman 1995) and a hard threshold: the largest gap seen is hardly biased where it is real.
    """
    from scipy.special import ndtri

    gap = of.gap
    half = -ndtri(alpha / 2.0 * of.family.weight) * of.error
    out: Floats = gap * (1.0 - (half / np.maximum(np.abs(gap), half)) ** 4)
    return out


def rows_needed(
    of: Ranges, estimate: Floats, limit: float, spend: tuple[float, float], least_rows: float
) -> tuple[int, bool] | None:
    """How many rows, of people like these, or clusters, would decide whether the worst gap is over a limit.

    `estimate` (boxes,): of the gaps. `spend`: error probabilities of the floor of the worst gap and of its ceiling; 0
    where there is none. `least_rows`: of the boxes under the ceiling. Returns about so many, if gaps are as estimated;
    or, with True, at least so many, which would clear a calibrated score, where the estimates are not clear of the
    limit by two standard errors. More than there are. None if it is too close to say, if the end that would decide is
    not asked for, or beyond 1e12.
    """
    from scipy.special import ndtri

    family, gap, size, error = of.family, of.gap, np.abs(estimate), of.error
    large = family.rows >= least_rows
    clear = np.abs(size - limit) > CLEAR * error
    at_least = False
    # Noise and widths, taken as they are now of the boxes that an approximation puts first, fall with the root of the
    # rows. Over the limit, one box has to show it, half its luck gone; else every large box has to come under it, with
    # as much luck, for or against, as it has now.
    if size.max() > limit and (off := clear & (size > limit)).any():
        if not spend[0]:
            return None
        some, each = np.flatnonzero(off), spend[0] / 2.0 * family.weight
        left = (size + np.abs(gap)) / 2.0 - limit
        some = some[_largest(left[some] / (-ndtri(each[some]) * error[some]))]
        below, above = of.ends(each[some], each[some], some)
        width = np.abs(gap[some]) - np.maximum(below, -above)
        times = float((width / left[some]).min()) ** 2
    elif not spend[1]:
        return None
    elif size.max() <= limit and clear[large].all():
        room = limit - size
        some = np.flatnonzero(large)
        some = some[_largest((np.abs(gap) - ndtri(spend[1]) * error - limit)[some] / room[some])]
        below, above = of.ends(spend[1], spend[1], some)
        times = float(((np.maximum(above, -below) - size[some]) / room[some]).max()) ** 2
    else:
        times, at_least = float((-ndtri(spend[1]) * error[large] / limit).max(initial=0.0)) ** 2, True
    result = np.ceil(of.count * times)
    return (int(result), at_least) if of.count < result <= MOST_ROWS else None
