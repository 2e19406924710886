"""Units that cross, exactly: means of the evidence over every table of three persons and three questions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from calibrant.stats.clusters.bounds import gap_of
from calibrant.stats.clusters.clusters import Design
from calibrant.stats.evidence import Gap

# the whole file takes seconds: it waits for --all
pytestmark = pytest.mark.slow

# ---- ranges of the score: a shift without rows in one counts as evidence of 1 ----


def means_in_a_range(rare=0.3, delta=0.0025):
    """Return mean e-values of a gap of 0 in a range, over all 3 x 3 tables: all told, and empty shifts left out.

    Persons and questions have a trait each, `rare`; rows where both or neither have it are in the range. With both
    the outcome always happens. Of tables without rows in the range nothing is told.
    """
    other = 0.5 - 0.5 * rare**2 / (1.0 - rare) ** 2  # the rate with neither, so that half of all in the range happen
    codes = np.array([np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)])
    every, dropped, reported = 0.0, 0.0, 0.0
    for attributes in itertools.product((0, 1), repeat=6):
        of = np.array(attributes)[codes + np.array([[0], [3]])]
        inside, both = of[0] == of[1], of.min(axis=0) == 1
        free = np.flatnonzero(inside & ~both)
        chance = rare ** sum(attributes) * (1.0 - rare) ** (6 - sum(attributes))
        for happened in itertools.product((0, 1), repeat=len(free)):
            y = both.astype(np.int8)
            y[free] = happened
            weight = chance * other ** sum(happened) * (1.0 - other) ** (len(free) - sum(happened))
            mean_gaps = Design(codes, 0).diagonal_blocks(np.where(inside, 0.5, 0.9), y, np.ones(len(y)))
            held = [replace(s.clusters.within(inside[s.rows]), most=s.clusters.largest) for s in mean_gaps]
            gaps = [gap_of(u, delta) for u in held if u.count]
            every += weight * (np.exp(Gap.mean(gaps, len(mean_gaps)).at_most.at(0.0)) if gaps else 1.0)
            dropped += weight * np.exp(Gap.mean(gaps).at_most.at(0.0)) if gaps else 0.0
            reported += weight if gaps else 0.0
    return every, dropped / reported


def test_shifts_without_rows_count_as_one():
    every, dropped = means_in_a_range()
    assert every == pytest.approx(1.0, abs=1e-9)
    assert dropped > 1.005  # the saboteur that leaves them out: scores decide which
