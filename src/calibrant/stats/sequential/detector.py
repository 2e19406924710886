"""Evidence over days, of every direction and every day on which an error may have begun: e-process and e-detector.

An *e-process* starts at one and, while the scores are right, exceeds ``1 / alpha`` ever with probability at most alpha.
An *e-detector* adds up e-processes that start on every day; while the scores are right, its mean is at most the days so
far, so that it takes at least A days in the mean to reach A (Shin, Ramdas and Rinaldo, arXiv:2203.03532).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OF_A_SIZE = 3  # blocks of one size that are kept apart: of the oldest two one is made when there is another


@dataclass(frozen=True, eq=False)
class Detector:
    """The evidence so far; immutable.

    Starts that are far back share a block, whose evidence is the sum of theirs: they have met the same days since, so
    that the sum goes on as each of them would, and nothing is lost but when in the block an error began.
    """

    log_prior: Floats  # shape (directions, bets): adds up to one, exponentiated
    ever: Floats  # shape (directions, bets): the log wealth of every bet since the first day
    # Of the blocks of starts, oldest first. `starts`, shape (blocks, directions, bets): log sums of wealth. `first`,
    # `last` and `days`, shape (blocks,): the first and last day of each, and on how many days it has starts.
    starts: Floats
    first: Ints
    last: Ints
    days: Ints

    @classmethod
    def fresh(cls, prior: Floats) -> Detector:
        """No evidence yet; `prior` is how much each direction counts, and is shared by its bets."""
        return cls(np.log(prior / prior.sum()), np.zeros(prior.shape), *_no_starts(prior.shape))

    def after(self, gains: Floats, day: int, elapsed: Floats | float) -> Detector:
        """The evidence after a day's `gains` (directions, bets); `elapsed` days after the last one, or the first: 1.

        The start on this day counts once for every day elapsed, so that time is counted in days, whatever the schedule.
        Where they are shares, which add up to one over all days, the evidence of a direction is an e-process; each
        direction may have its own, shape (directions, 1).
        """
        with np.errstate(divide="ignore"):  # a direction whose share of the day is 0 has no start on it
            start = np.full((1, *gains.shape), np.log(elapsed))
        starts = np.concatenate([self.starts, start]) + gains
        first, last, days = (np.append(v, n) for v, n in ((self.first, day), (self.last, day), (self.days, 1)))
        after = replace(self, ever=self.ever + gains, starts=starts, first=first, last=last, days=days)
        return after._merged()

    def _merged(self) -> Detector:
        """This with at most `OF_A_SIZE` blocks of each size: of n days, about ``OF_A_SIZE log2(n)`` in all."""
        starts, first, last, days = list(self.starts), list(self.first), list(self.last), list(self.days)
        size = 1
        while (of_size := [i for i, n in enumerate(days) if n == size]) and len(of_size) > OF_A_SIZE:
            i = of_size[0]  # sizes fall from the oldest to the newest, so that its neighbour has its size
            starts[i : i + 2] = [np.logaddexp(starts[i], starts[i + 1])]
            first[i : i + 2], last[i : i + 2], days[i : i + 2] = [first[i]], [last[i + 1]], [2 * size]
            size *= 2
        return replace(self, starts=np.array(starts), first=np.array(first), last=np.array(last), days=np.array(days))

    def restarted(self) -> Detector:
        """This after an alarm of the e-detector: changes are looked for from the next day on."""
        return Detector(self.log_prior, self.ever, *_no_starts(self.ever.shape))

    def without_starts(self, directions: Ints) -> Detector:
        """This after an alarm of some directions alone: no start so far is one of theirs."""
        starts = self.starts.copy()
        starts[:, directions] = -np.inf
        return replace(self, starts=starts)

    @property
    def log_ever(self) -> float:
        """The log of the e-process: the mean over directions and bets, never the largest."""
        return float(np.logaddexp.reduce((self.ever + self.log_prior).ravel()))

    @property
    def log_change(self) -> float:
        """The log of the e-detector; minus infinity before the first day, and after an alarm."""
        return float(np.logaddexp.reduce((self.starts + self.log_prior).ravel(), initial=-np.inf))

    @property
    def log_directions(self) -> Floats:
        """The log of the evidence of every start by direction, with its prior: shape (directions,)."""
        log: Floats = np.logaddexp.reduce(self.starts + self.log_prior, axis=(0, 2), initial=-np.inf)
        return log

    def directions(self, *, change: bool) -> Floats:
        """The share of the evidence by direction and sign, shape (directions, 2): outcomes above the scores first."""
        log = np.logaddexp.reduce(self.starts, axis=0) if change else self.ever
        share = _shares(log + self.log_prior)
        return share.reshape(len(share), 2, -1).sum(axis=2)

    def onset(
        self, level: float, direction: int | None = None, log_weight: Floats | float = 0.0
    ) -> tuple[int, int, int]:
        """The day that has most of the evidence, and the first and last of the days that have the share `level`.

        A tail of ``(1 - level) / 2`` is left out on either side, by whole blocks of days. Of one direction, or of all;
        what a block's starts have counted more than others is taken off by its `log_weight`, shape (blocks,).
        """
        log = self.starts + self.log_prior - np.reshape(log_weight, (-1, 1, 1))
        share = _shares((log if direction is None else log[:, direction]).reshape(len(log), -1)).sum(axis=1)
        before, tail = np.cumsum(share), (1.0 - level) / 2.0
        low = int(np.searchsorted(before, tail, side="right"))
        high = int(np.searchsorted(before, 1.0 - tail, side="left"))
        most = int(np.argmax(share))
        low, high = min(low, most), max(min(high, len(share) - 1), most)
        return int(self.first[most]), int(self.first[low]), int(self.last[high])


def _no_starts(shape: tuple[int, ...]) -> tuple[Floats, Ints, Ints, Ints]:
    none = np.zeros(0, dtype=np.int64)
    return np.zeros((0, *shape)), none, none, none


def _shares(log: Floats) -> Floats:
    share: Floats = np.exp(log - log.max())
    return share / share.sum()
