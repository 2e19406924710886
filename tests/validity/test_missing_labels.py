"""Ends certified for people without a label hold whatever their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

import calibrant as cal
from calibrant.stats.missing.unlabelled import Counts, Range, most_likely, stands_to
from validity.acceptance import SETS, check, count, refuted

DELTA = 0.1
ENOUGH = -np.log(DELTA)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """People by cell, their probabilities with a label and without, and the ratio of odds between these."""

    known: NDArray[np.int64]
    unknown: NDArray[np.int64]
    score: Floats
    q: Floats
    absent: Floats
    odds: float

    @property
    def residual(self) -> Floats:
        return self.known * (self.score - self.q) + self.unknown * (self.score - self.absent)

    @property
    def error(self) -> float:
        return float(np.abs(self.residual).sum() / (self.known + self.unknown).sum())

    @property
    def gap(self) -> float:
        return float(-self.residual.sum() / (self.known + self.unknown).sum())

    def draw(self, seed: int) -> Counts:
        events = np.random.default_rng(seed).binomial(self.known, self.q)
        return Counts(self.known, events, self.unknown, self.score)


def design(
    n: int, odds: float, *, side: float = 1.0, off: float = 0.0, rare: bool = False, bank: bool = False
) -> Design:
    """Outcomes of those without a label are `odds` times as likely (`side` 1), or as unlikely, or by turns (0)."""
    score = np.linspace(0.002, 0.05, 12) if rare else np.linspace(0.02, 0.98, 25)
    share = np.linspace(0.97, 0.02, len(score)) if bank else np.full(len(score), 0.25)
    each = np.full(len(score), n // len(score))
    unknown = np.round(each * share).astype(np.int64)
    q = np.clip(score + off, 0.0, 1.0)
    up = np.where(np.arange(len(score)) % 2 == 0, True, False) if side == 0.0 else np.full(len(score), side > 0)
    high, low = most_likely(q, odds), 1.0 - most_likely(1.0 - q, odds)
    return Design(each - unknown, unknown, score, q, np.where(up, high, low), odds)


EVENTS = [  # every end of small tables is enumerated: test_exact_missing_labels.py; here are many cells and rows
    {"n": 20_000, "odds": 4.0, "side": 0.0, "off": 0.02},
    {"n": 20_000, "odds": 2.0, "rare": True},
    {"n": 20_000, "odds": np.inf, "side": -1.0, "bank": True, "off": -0.02},
]
ENDS: dict[str, Callable[[Range, Design], float]] = {  # log evidence against the truth
    "error above": lambda r, d: r.refutes_less(d.error),
    "gap above": lambda r, d: r.refutes_gap(-1.0, d.gap),
    "gap below": lambda r, d: r.refutes_gap(1.0, -d.gap),
    "error below": lambda r, d: r.refutes_more(d.error),
}


@pytest.mark.parametrize("end", ["error above", "error below"])
@pytest.mark.parametrize("case", EVENTS, ids=str)
def test_every_end_has_its_rate(case: dict[str, float], end: str) -> None:
    d = design(**case)  # type: ignore[arg-type]
    check(lambda seed: ENDS[end](Range(d.draw(seed), d.odds), d) > ENOUGH, SETS, DELTA)


# ---- how far a verdict stands ----

HARD = design(20_000, 3.0)


def test_a_verdict_stands_as_far_as_is_told() -> None:
    """Just over the limit at odds of 3: "it stands to 3 or more" is wrong, and said with its probability."""
    limit = HARD.gap - 1e-6

    def certified(c: Counts) -> float:
        return stands_to(lambda odds: Range(c, odds).gap(DELTA)[1] <= limit)

    assert not refuted(count(lambda seed: certified(HARD.draw(seed)) >= 3.0, 100), 100, DELTA)


# ---- the public function, rows in and table out ----


@pytest.mark.parametrize(("n", "runs"), [(200, SETS), pytest.param(20_000, 100, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("ratio", [1.0, 2.0, 4.0])
def test_the_table_holds_the_truth(n: int, runs: int, ratio: float) -> None:
    """Whose label is lost depends on the outcome, so that the odds among the lost are `ratio` times as high."""

    def miss(seed: int) -> bool:
        rng = np.random.default_rng([seed, n])
        p = rng.integers(2, 99, n) / 100
        lost = rng.uniform(size=n) < 0.2
        eta = np.where(lost, most_likely(p, ratio), p)
        y = np.where(lost, np.nan, rng.uniform(size=n) < eta)
        data = cal.predictions(y, p, missing="keep")
        table = cal.certify.missing_labels(data, judge="gap", odds=ratio, alpha=DELTA).columns
        truth = float((eta - p).mean())
        return not all(table["low"][i] <= truth <= table["high"][i] for i in (2, 3))

    check(miss, runs, 2 * DELTA)
