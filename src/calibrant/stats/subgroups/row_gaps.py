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
from calibrant.stats.cells import Cells
from calibrant.stats.evidence import Evidence, Gap

Floats = NDArray[np.float64]
MOST = 0.95  # of the stake that could lose everything
LARGE = 0.35  # a stake from which on a smaller one can end nearer: up to there by less than a hundredth
MULTIPLES = (1.0, 0.9, 0.8, 0.7, 0.6)  # of it


def row_gap(cells: Cells, delta: float) -> Gap:
    """Return evidence about the gap of the rows, by the method that scores alone say is narrower at `delta`."""
    return bets(cells, delta) if bets_are_narrower(cells, delta) else binomial(cells.events, cells.n, cells.expected)


def drawn_gaps(cells: Cells, delta: float) -> Callable[[np.random.Generator, float], Gap]:
    """Return what draws the same evidence of outcomes that happen as often as scores say, or by so much more often."""
    filled, narrower, size = cells.nonempty, bets_are_narrower(cells, delta), _bet_size(cells, delta)
    rows = filled.rows.sum(axis=0)
    p = filled.score_sums.sum(axis=1) / rows

    def drawn(rng: np.random.Generator, more: float) -> Gap:
        events = rng.binomial(rows, np.clip(p + more, 0.0, 1.0))
        if not narrower:
            return binomial(int(events.sum()), cells.n, cells.expected)
        return _bets(np.append(1.0 - p, -p), np.append(events, rows - events).astype(np.float64), size)

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
    """Return the evidence of a number of events, where scores add up to `expected`."""
    score = expected / rows
    return Gap(Tail(events, rows, score), Tail(events, rows, score, -1.0), p_values=True)


# ---- Bets ----


def bets(cells: Cells, delta: float) -> Gap:
    """Return evidence by one bet on every residual, the best at `delta`, and valid at every other.

    For a stake that outcomes cannot change, ``E prod (1 + kappa (y_i - p_i - m)) = prod (1 + kappa (g_i - m))`` with
    the gaps ``g_i`` of the rows, at most ``(1 + kappa (mean g - m))^n`` and so at most one where ``mean g <= m``.
    """
    chords = cells.nonempty.joined.chords
    return _bets(chords.at, chords.weight, _bet_size(cells, delta))


def _bets(residual: Floats, weight: Floats, bet_size: float) -> Gap:
    """Return the evidence of residuals with so many rows each.

    The stake is smaller where a row could lose more than what there is, at a hypothesis m: ``1 + m`` at the most. What
    it wins still falls in m, as ``(r - m) / (1 + m)`` does.
    """

    def log_e(m: float, side: float) -> float:
        kappa = side * min(bet_size, MOST / max(1.0 + side * m, 1e-9))
        return float(weight @ np.log1p(kappa * (residual - m)))

    return Gap.of(log_e)


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
    filled = cells.nonempty
    rows = filled.rows.sum(axis=0)
    p = filled.score_sums.sum(axis=1) / rows
    expected = _bets(np.append(1.0 - p, -p), np.append(rows * p, rows * (1.0 - p)), bet_size)
    return expected.at_least.limit(delta) - expected.at_most.limit(delta)
