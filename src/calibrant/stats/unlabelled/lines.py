r"""What people whose outcome is not known could do to a certified error, or gap, of everyone.

Scores, and whose outcome is known, are taken as they are; outcomes are independent. In a cell (a step of the score) are
n people with an outcome, of whom k are events, and m without; their probabilities are q among the first and q' among
the second, and s is the mean score of all n + m. The error is ``sum |n (s - q) + m (s - q')| / N`` over the cells, the
gap ``sum n (q - s) + m (q' - s) / N``.

Assumed is ``odds(q) / Gamma <= odds(q') <= Gamma odds(q)``: Gamma = 1 says that outcomes are missing at random given
the score, and Gamma = infinity says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HEAVIEST = 10.0  # weight, at most, of a person with an outcome, who stands for others without; the rest count as worst


class Steps(Protocol):
    """How many people, or how much weight, each step of the score has."""

    @property
    def known(self) -> NDArray[np.integer | np.floating]:
        """Those with an outcome."""

    @property
    def unknown(self) -> NDArray[np.integer | np.floating]:
        """Those without."""

    @property
    def score(self) -> Floats:
        """Mean score of all of them."""


@dataclass(frozen=True)
class Counts:
    """People by step of the score."""

    # `known`, `events` and `unknown`, shape (cells,): people with an outcome, those of them to whom it happened, and
    # people without.
    known: Ints
    events: Ints
    unknown: Ints
    score: Floats  # shape (cells,): mean score of all of them

    @cached_property
    def n(self) -> int:
        """People."""
        return int(self.known.sum() + self.unknown.sum())


# ---- a line above the largest probability that the odds allow ----


def most_likely(q: Floats, odds: float) -> Floats:
    """The largest probability whose odds are at most so many times those of q."""
    return np.where(q > 0.0, 1.0, 0.0) if np.isinf(odds) else odds * q / (1.0 + (odds - 1.0) * q)


def line_above(counts: Steps, score: Floats, odds: float) -> tuple[Floats, Floats]:
    r"""Return ``c`` and ``b`` of a line ``c + b q`` nowhere below `most_likely`, by cell.

    It touches at the score, unless its slope would give someone more than `HEAVIEST`: then at the place where it does
    not, or at 1. Outcomes play no part in it.
    """
    n, m = counts.known, counts.unknown
    # (1) the slope: of the tangent at the score, no steeper than weights allow, level where nobody's outcome is known
    steepest = np.where(n > 0, (HEAVIEST - 1.0) * n / np.maximum(m, 1), 0.0)
    at_score = np.zeros(len(score)) if np.isinf(odds) else odds / (1.0 + (odds - 1.0) * score) ** 2
    b = np.minimum(at_score, steepest)
    # (2) the least c for this slope: the largest ``most_likely(q) - b q``, at q = 1 where the slope is under 1 / odds
    if odds == 1.0 or np.isinf(odds):
        return np.maximum(1.0 - b, 0.0), b
    touch = np.clip((np.sqrt(odds / np.maximum(b, 1e-300)) - 1.0) / (odds - 1.0), 0.0, 1.0)
    return np.asarray(most_likely(touch, odds) - b * touch), b
