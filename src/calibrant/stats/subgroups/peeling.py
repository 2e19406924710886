"""What is left of every box once some people are taken out, and which box then stands out most.

Boxes overlap: an error of one corner shows in every box that cuts it. So the corner is reported, its people are taken
out, and what is reported next is what the people left still show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import rate_evidence
from calibrant.stats.subgroups.family import EVENTS, ROWS, SCORES, STEPS, VARIANCES, Family, sums_of
from calibrant.stats.subgroups.scan import EXTRA

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEARLY = 3.0  # of the evidence: a box twenty times less likely is still nearly as good, if it is simpler
FAR = 3.0  # squared, in null standard deviations: nearer, even no case at all has a probability of over 0.03


def sums_in(family: Family, tables: Sequence[Ints]) -> Ints:
    """The sums of every box of a family, from tables of some rows, shape (4, boxes)."""
    out = np.empty((4, family.size), dtype=tables[0].dtype)
    for same_cuts in family.same_cuts:
        result = sums_of(np.stack([tables[t] for t in same_cuts.tables]), same_cuts.sets, 1)
        out[:, same_cuts.boxes] = result.reshape(-1, 4)[same_cuts.at].T
    return out


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left of the boxes of a family."""

    weight: Floats  # shape (boxes,): share of alpha of each box
    # `rows`, `events` and `expected`, shape (boxes,): of the people left.
    rows: Floats
    events: Floats
    expected: Floats
    variance: Floats  # shape (boxes,): null variance of the events left
    noise: Floats  # shape (boxes,): what is added to it where the people taken out were counted in a sample

    @classmethod
    def of(cls, family: Family, sums: Ints | Floats) -> Left:
        """Return what some rows hold of the boxes of a family, given their sums in each, shape (4, boxes)."""
        return cls(
            weight=family.weight,
            rows=sums[ROWS].astype(np.float64),
            events=sums[EVENTS].astype(np.float64),
            expected=sums[SCORES] / STEPS,
            variance=sums[VARIANCES] / STEPS,
            noise=np.zeros(family.size),
        )

    def without(self, taken: Ints, times: float = 1.0) -> Left:
        """Take people out.

        `taken` (4, boxes): sums over these people in every box; of those in a sample, if there is only one. `times`:
        for how many rows each of the sample stands.

        With ``S`` the residual of a box, ``T`` that of the people taken and ``t`` that of those of them in the sample,
        ``S - times t`` has the mean of ``S - T``, and the null variance of ``S - T`` plus ``times (times - 1)`` that
        of ``t``: those of the sample count ``times - 1`` too often, the others once.
        """
        variance = taken[VARIANCES] * (times / STEPS)
        return Left(
            weight=self.weight,
            rows=np.maximum(self.rows - taken[ROWS] * times, 0.0),
            events=np.maximum(self.events - taken[EVENTS] * times, 0.0),
            expected=np.maximum(self.expected - taken[SCORES] * (times / STEPS), 0.0),
            variance=np.maximum(self.variance - variance, 0.0),
            noise=np.maximum(self.noise + (times - 1.0) * variance, 0.0),
        )

    def noisier(self, times: Floats) -> Left:
        """The same with so many times the null variance, at least once: of clusters, whose rows are alike."""
        return replace(self, noise=self.noise + (np.maximum(times, 1.0) - 1.0) * self.variance)

    @cached_property
    def residual(self) -> Floats:
        """Events beyond those expected."""
        return self.events - self.expected

    @cached_property
    def score(self) -> Floats:
        """The scan's statistic: the residual in null standard deviations, in which a few events count for less."""
        out: Floats = np.abs(self.residual) / np.sqrt(self.variance + self.noise + EXTRA)
        return out

    def gap(self, box: int) -> float:
        """The observed minus the predicted rate of those left in a box."""
        return float(self.residual[box] / self.rows[box])

    def beyond_chance(self, alpha: float, among: Flags) -> Flags:
        """Return which boxes are further off than any would be by chance: by exact tails, at shares of alpha."""
        # (1) No tail is so small that is nearer to what is expected.
        spread = self.variance + self.noise
        far = (np.abs(self.residual) >= 1.0) & (self.residual**2 >= FAR * spread)
        boxes = np.flatnonzero(among & far & (self.rows > 0.0))
        # (2) The tail on the side where a box errs; the noise of a sample is that of so many fewer rows.
        part = np.divide(self.variance[boxes], spread[boxes], out=np.ones(len(boxes)), where=spread[boxes] > 0.0)
        rows, events = part * self.rows[boxes], part * self.events[boxes]
        more = self.residual[boxes] > 0.0
        score = self.expected[boxes] / self.rows[boxes] + more / STEPS  # scores are read rounded down
        tail = rate_evidence(np.where(more, events, rows - events), rows, np.where(more, score, 1.0 - score))
        out = np.zeros(len(self.weight), dtype=bool)
        out[boxes] = tail <= alpha / 2.0 * self.weight[boxes]
        return out


def nearly_best(score: Floats, weight: Floats, among: Flags) -> Ints:
    """The box with the most evidence and, before it, simpler ones with nearly as much, the simplest first.

    Evidence is about the log likelihood ratio of an error, half the squared score, plus the log of the share of alpha.
    Simpler is what has a larger share: fewer attributes, then fewer conditions.
    """
    boxes = np.flatnonzero(among)
    if not len(boxes):
        return boxes
    evidence = score[boxes] ** 2 / 2.0 + np.log(weight[boxes])
    near = np.flatnonzero(evidence >= evidence.max() - NEARLY)
    ordered = near[np.lexsort((-evidence[near], -weight[boxes[near]]))]
    return boxes[ordered[: int(np.argmax(evidence[ordered])) + 1]]


def both(left: Left, full: Left) -> tuple[Floats, Flags]:
    """Return how far off boxes are at least, of those left and of all their people, and which may be reported next.

    One that lost half of its people was reported in part; one that errs on the other side as a whole would be misread.
    """
    same = left.residual * full.residual > 0.0
    return np.minimum(left.score, full.score), same & (2.0 * left.rows > full.rows)
