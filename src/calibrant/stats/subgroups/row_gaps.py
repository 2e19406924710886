"""The gap of the rows at hand: the mean of event rate minus score, over rows that are independent and count alike.

Scores and covariates are given; each outcome is drawn by a rate of its own that nobody knows. The number of events has
tails that the binomial's bound, whatever the rates (Hoeffding 1956, see `betting.rate_evidence`). Where scores are near
0 or 1 outcomes are nearly certain, and bets on the residuals can be narrower; only scores decide which of the two it
is. The gap of a population is another: it moves with who is drawn, and takes `bounds.gap_evidence`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import lower_rates, rate_evidence
from calibrant.stats.cells import Cells, Chords
from calibrant.stats.evidence import Against, Evidence, Gap

Floats = NDArray[np.float64]
MOST = 0.95  # of the stake that could lose everything
LARGE = 0.35  # a stake from which on a smaller one can end nearer: up to there by less than a hundredth
MULTIPLES = (1.0, 0.9, 0.8, 0.7, 0.6)  # of it


def row_gap(cells: Cells, delta: float) -> Gap:
    """Evidence about the gap of the rows, by the method that scores alone say is narrower at `delta`."""
    return bets(cells, delta) if bets_are_narrower(cells, delta) else binomial(cells.events, cells.n, cells.expected)


def drawn_gaps(cells: Cells, delta: float) -> Callable[[np.random.Generator, float], Gap]:
    """What draws the same evidence of outcomes that happen as often as scores say, or by so much more often."""
    (rates, rows), narrower, size = _scored(cells), bets_are_narrower(cells, delta), _bet_size(cells, delta)

    def drawn(rng: np.random.Generator, more: float) -> Gap:
        events = rng.binomial(rows.astype(np.int64), np.clip(rates.score + more, 0.0, 1.0))
        if not narrower:
            return binomial(int(events.sum()), cells.n, cells.expected)
        return _bets(rates, (rows - events, events.astype(np.float64)), size)

    return drawn


def bets_are_narrower(cells: Cells, delta: float) -> bool:
    """Whether bets would give the shorter range at `delta` if outcomes came as scores say."""
    n, k = cells.n, cells.expected
    low, unlikely = lower_rates((k, n - k), n, delta)
    return bool(_expected_width(cells, _bet_size(cells, delta), delta) < 1.0 - unlikely - low)


# ---- The binomial ----


@dataclass(frozen=True)
class Tail(Evidence):
    """Minus the log of a p-value against "the rate is at most so much more than the score", of rows of unequal rates.

    `side` -1: against "at least", which counts what did not happen.
    """

    events: int
    rows: int
    score: float  # mean
    side: float = 1.0

    def at(self, x: float) -> float:
        rate = self._score + self.side * x
        if rate < 0.0:  # no rate is
            return math.inf
        p = float(rate_evidence(self._events, self.rows, rate))
        return -math.log(p) if p > 0.0 else math.inf

    def limit(self, delta: float) -> float:
        return self.side * (float(lower_rates(self._events, self.rows, delta)) - self._score)

    @property
    def _events(self) -> int:
        return self.events if self.side > 0.0 else self.rows - self.events

    @property
    def _score(self) -> float:
        return self.score if self.side > 0.0 else 1.0 - self.score


def binomial(events: int, rows: int, expected: float) -> Gap:
    """The evidence of a number of events, where scores add up to `expected`."""
    score = expected / rows
    return Gap(Tail(events, rows, score), Tail(events, rows, score, -1.0), p_values=True)


# ---- Bets ----


@dataclass(frozen=True, eq=False)
class Rates:
    """Rates whose mean is a gap away from that of scores: scores moved alike, and kept in [0, 1].

    Other rates of this mean would do; these are the nearest. No outcome moves them.
    """

    score: Floats  # shape (k,)
    gap: Floats  # shape (2k + 1,): rising, and linear in the move between
    move: Floats  # shape (2k + 1,): where a rate comes to 0 or to 1, and no move

    @classmethod
    def of(cls, score: Floats, rows: Floats) -> Rates:
        """Rates of scores with so many rows each."""
        order = np.argsort(score, kind="stable")
        s, w = score[order], rows[order]
        below, sums = np.cumsum(w), np.cumsum(w * s)
        n, expected = below[-1], sums[-1]
        lowered, raised = expected - sums - (n - below) * s, sums + below * (1.0 - s) + n - below
        total = np.concatenate([lowered[::-1], [expected], raised[::-1]])
        gap = np.maximum.accumulate((total - expected) / n)
        return cls(score, gap, np.concatenate([-s[::-1], [0.0], 1.0 - s[::-1]]))

    def at(self, gap: float) -> Floats:
        """The rates, shape (k,)."""
        return np.clip(self.score + np.interp(gap, self.gap, self.move), 0.0, 1.0)


def bets(cells: Cells, delta: float) -> Gap:
    """Evidence by one bet on every row, the best at `delta`, and valid at every other.

    With rates ``r_i`` whose mean is m from that of the scores, and a stake that outcomes cannot change, ``E prod (1 +
    kappa (y_i - r_i)) <= exp(kappa sum (e_i - r_i))`` of true rates ``e_i``, and so at most one where the gap is at
    most m.
    """
    chords = cells.nonempty.joined.chords
    return _bets(*_placed(chords), _bet_size(cells, delta))


def _placed(chords: Chords) -> tuple[Rates, tuple[Floats, Floats]]:
    """Rates of rows put at the ends of their cells, between which they are linear, and the rows of either label."""
    rows, label = chords.weight, chords.label
    return Rates.of(label - chords.at, rows), (rows * (1 - label), rows * label)


def _bets(rates: Rates, rows: tuple[Floats, Floats], bet_size: float) -> Gap:
    """The evidence of so many rows of either label at each score.

    The stake is smaller where a row could lose more than what there is at a hypothesis. The evidence still falls in it:
    where a rate is cut by the largest of all, so is its part of that.
    """
    others, events = rows
    least, most = float(rates.gap[0]), float(rates.gap[-1])

    def log_e(m: float, side: float) -> float:
        if m < least if side > 0.0 else m > most:  # no rates are
            return math.inf
        rate = rates.at(m)
        loss = float(rate.max() if side > 0.0 else 1.0 - rate.min())
        kappa = side * min(bet_size, MOST / max(loss, 1e-9))
        return float(events @ np.log1p(kappa * (1.0 - rate)) + others @ np.log1p(-kappa * rate))

    return Gap(Against(lambda m: log_e(m, 1.0), least, most), Against(lambda m: log_e(m, -1.0), most, least))


def _bet_size(cells: Cells, delta: float) -> float:
    """The stake that wins most at `delta` if outcomes came as scores say.

    By the second moment that is the usual one; of a large one, where few outcomes are uncertain, often a little less.
    """
    usual = math.sqrt(2.0 * -math.log(delta) / max(float(cells.variances.sum()), 1e-12))
    if usual <= LARGE:
        return usual
    return min((usual * m for m in MULTIPLES), key=lambda size: _expected_width(cells, size, delta))


def _expected_width(cells: Cells, bet_size: float, delta: float) -> float:
    """The width of the range at `delta` by one stake, if outcomes came as scores say."""
    rates, rows = _scored(cells)
    expected = _bets(rates, (rows * (1.0 - rates.score), rows * rates.score), bet_size)
    return expected.at_least.limit(delta) - expected.at_most.limit(delta)


def _scored(cells: Cells) -> tuple[Rates, Floats]:
    """The rates of the cells that hold rows, by their mean scores, and how many rows each holds."""
    filled = cells.nonempty
    rows = filled.rows.sum(axis=0).astype(np.float64)
    return Rates.of(filled.score_sums.sum(axis=1) / rows, rows), rows
