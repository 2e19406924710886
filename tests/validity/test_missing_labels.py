"""Ends certified for people without a label hold whatever their outcomes, and broken copies of them do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import calibrant as cal
from calibrant.stats.unlabelled import lines, ranges
from calibrant.stats.unlabelled.lines import Counts, most_likely
from calibrant.stats.unlabelled.ranges import Range, stands_to
from validity.acceptance import check, count, refuted

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
        cases = np.random.default_rng(seed).binomial(self.known, self.q)
        return Counts(self.known, cases, self.unknown, self.score)


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


CASES = [
    dict(n=n, odds=odds, **more)
    for n in (200, 20_000)
    for odds, more in (
        (1.0, {}),
        (2.0, {}),
        (4.0, {"side": -1.0}),
        (4.0, {"side": 0.0, "off": 0.02}),
        (2.0, {"rare": True}),
        (2.0, {"bank": True}),
        (np.inf, {}),
        (np.inf, {"side": -1.0, "bank": True, "off": -0.02}),
    )
]
ENDS: dict[str, Callable[[Range, Design], float]] = {  # log evidence against the truth
    "error above": lambda r, d: r.refutes_less(d.error),
    "gap above": lambda r, d: r.refutes_gap(-1.0, d.gap),
    "gap below": lambda r, d: r.refutes_gap(1.0, -d.gap),
    "error below": lambda r, d: r.refutes_more(d.error),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_end_has_its_rate(case: dict[str, float], end: str) -> None:
    d = design(**case)  # type: ignore[arg-type]
    runs = 150 if end == "error below" else 600
    check(lambda seed: ENDS[end](Range(d.draw(seed), d.odds), d) > ENOUGH, runs, DELTA)


@pytest.mark.parametrize("odds", [1.0, 2.0, 7.0, np.inf])
@pytest.mark.parametrize("end", ENDS)
def test_the_mean_of_the_evidence_is_at_most_one_in_every_small_table(odds: float, end: str) -> None:
    """Exactly: over every outcome of ten people in three cells, one of which has nobody with a label."""
    known, unknown, score = np.array([5, 5, 0]), np.array([2, 0, 3]), np.array([0.1, 0.55, 0.8])
    for q in product((0.0, 0.08, 0.4, 1.0), (0.2, 0.6)):
        own = np.array([*q, 0.5])
        for absent in (most_likely(own, odds), 1.0 - most_likely(1.0 - own, odds)):
            d = Design(known, unknown, score, own, np.array([*absent[:2], 1.0]), odds)
            mean = 0.0
            for cases in product(range(6), range(6)):
                counts = Counts(known, np.array([*cases, 0]), unknown, score)
                chance = float(np.prod(binom.pmf(cases, 5, own[:2])))
                mean += chance * float(np.exp(ENDS[end](Range(counts, odds), d))) if chance else 0.0
            assert mean <= 1.0 + 1e-9


@pytest.mark.parametrize("odds", [1.0, 1.05, 2.0, 30.0, 1e6, np.inf])
def test_a_line_lies_above_every_probability_that_the_odds_allow(odds: float) -> None:
    q = np.linspace(0.0, 1.0, 2001)
    for known, unknown in ((100, 1), (10, 10), (1, 500), (0, 3)):
        score = np.linspace(0.0, 1.0, 41)
        counts = Counts(*(np.full(41, v) for v in (known, 0, unknown)), score)
        c, b = lines.line_above(counts, score, odds)
        assert (c[:, None] + b[:, None] * q >= most_likely(q, odds) - 1e-12).all()
        assert (known == 0) <= (b == 0.0).all()
        assert (1.0 + unknown / max(known, 1) * b <= lines.HEAVIEST + 1e-9).all()


# ---- broken copies ----

HARD = design(20_000, 3.0)


def misses(evidence: Callable[[Counts], float], runs: int = 200) -> int:
    return count(lambda seed: evidence(HARD.draw(seed)) > ENOUGH, runs)


def test_the_unknown_counted_as_fewer_is_found() -> None:
    def fewer(c: Counts) -> float:
        return Range(replace(c, unknown=c.unknown // 2), 3.0).refutes_gap(-1.0, HARD.gap)

    assert refuted(misses(fewer), 200, DELTA)


def test_odds_of_everyone_in_place_of_those_without_a_label_are_found() -> None:
    assert refuted(misses(lambda c: Range(c, 3.0**0.5).refutes_gap(-1.0, HARD.gap)), 200, DELTA)


def test_the_score_in_place_of_the_probability_of_those_with_a_label_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    d = design(20_000, 2.0, off=0.05)

    def level(counts: Counts, score: Floats, odds: float) -> tuple[Floats, Floats]:
        return most_likely(score, odds), np.zeros(len(score))

    monkeypatch.setattr(ranges, "line_above", level)
    found = count(lambda seed: Range(d.draw(seed), 2.0).refutes_gap(-1.0, d.gap) > ENOUGH, 200)
    assert refuted(found, 200, DELTA)


def plug_in(c: Counts, odds: float) -> float:
    """The gap as estimated, with the unknown as high as the odds allow: no noise."""
    q = np.divide(c.cases, c.known, out=c.score.copy(), where=c.known > 0)
    high = most_likely(q, odds)
    return float((c.known * (q - c.score) + c.unknown * (high - c.score)).sum() / c.n)


def test_the_worst_case_of_the_estimate_is_found() -> None:
    d = design(20_000, np.inf)
    assert refuted(count(lambda seed: plug_in(d.draw(seed), np.inf) < d.gap, 200), 200, DELTA)


def test_a_verdict_stands_as_far_as_is_told_and_no_estimate_tells_it() -> None:
    """Just over the limit at odds of 3: "it stands to 3 or more" is wrong, and said with its probability."""
    limit = HARD.gap - 1e-6

    def certified(c: Counts) -> float:
        return stands_to(lambda odds: Range(c, odds).gap(DELTA)[1] <= limit)

    def estimated(c: Counts) -> float:
        return stands_to(lambda odds: plug_in(c, odds) <= limit)

    assert not refuted(count(lambda seed: certified(HARD.draw(seed)) >= 3.0, 40), 40, DELTA)
    assert refuted(count(lambda seed: estimated(HARD.draw(seed)) * 1.05 >= 3.0, 200), 200, DELTA)


# ---- the public function, rows in and table out ----


@pytest.mark.parametrize(("n", "runs"), [(200, 100), pytest.param(20_000, 100, marks=pytest.mark.nightly)])
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
