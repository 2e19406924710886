"""Ends certified for rows without a label hold by units and by weights, and copies that forget either do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

import calibrant as cal
from calibrant.stats.unlabelled.lines import Counts, most_likely
from calibrant.stats.unlabelled.ranges import Range
from calibrant.stats.unlabelled.units import UnitBets, UnitCounts, UnitRange, of_rows
from validity.acceptance import check, count, refuted

DELTA = 0.1
ENOUGH = -np.log(DELTA)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """Rows of units, whose outcomes hang together; of some the outcome is lost.

    `eta` is the probability of each row's outcome, given whether it is lost. A unit's rows share one uniform number
    with probability `alike`, and have their own otherwise.
    """

    unit: Ints
    step: Ints
    p: Floats
    weight: Floats
    lost: NDArray[np.bool_]
    eta: Floats
    alike: float

    @property
    def residual(self) -> Floats:
        """Weighted sums of score less probability, by step."""
        return np.bincount(self.step, self.weight * (self.p - self.eta))

    @property
    def error(self) -> float:
        return float(np.abs(self.residual).sum() / self.weight.sum())

    @property
    def gap(self) -> float:
        return float(-self.residual.sum() / self.weight.sum())

    def outcomes(self, rng: np.random.Generator) -> Floats:
        shared = rng.uniform(size=int(self.unit.max()) + 1)[self.unit]
        own = rng.uniform(size=len(self.unit))
        return (np.where(rng.uniform(size=len(own)) < self.alike, shared, own) < self.eta).astype(float)

    def draw(self, seed: int) -> UnitCounts:
        y = self.outcomes(np.random.default_rng(seed))
        return self.counts(np.where(self.lost, np.nan, y))

    def counts(self, y: Floats) -> UnitCounts:
        return of_rows(self.unit, self.step, y, self.p, self.weight)


def design(
    units: int, each: int, odds: float, *, side: float = 1.0, off: float = 0.0, alike: float = 1.0, heavy: bool = False
) -> Design:
    """The lost are `odds` times as likely (`side` 1) as the others of their step, or as unlikely, or by turns (0)."""
    rng = np.random.default_rng([units, each])
    n = units * each
    unit, step = np.repeat(np.arange(units), each), rng.integers(0, 12, n)
    step[:12] = np.arange(12)
    score = np.linspace(0.04, 0.96, 12)
    lost = rng.uniform(size=n) < np.linspace(0.5, 0.05, 12)[step]
    q = np.clip(score + off, 0.0, 1.0)
    up = np.arange(12) % 2 == 0 if side == 0.0 else np.full(12, side > 0)
    far = np.where(up, most_likely(q, odds), 1.0 - most_likely(1.0 - q, odds))
    weight = rng.uniform(0.2, 4.0, n) if heavy else np.ones(n)
    return Design(unit, step, score[step], weight, lost, np.where(lost, far[step], q[step]), alike)


ENDS: dict[str, Callable[[UnitRange, Design], float]] = {  # log evidence against the truth
    "error above": lambda r, d: r.refutes_less(d.error),
    "gap above": lambda r, d: r.refutes_gap(-1.0, d.gap),
    "gap below": lambda r, d: r.refutes_gap(1.0, -d.gap),
    "error below": lambda r, d: r.refutes_more(d.error),
}
CASES = [
    ({"units": 120, "each": 10, "odds": 1.0}, 1.0),
    ({"units": 120, "each": 10, "odds": 2.0, "heavy": True}, 2.0),
    ({"units": 120, "each": 10, "odds": 4.0, "side": -1.0, "alike": 0.6}, 4.0),
    ({"units": 120, "each": 10, "odds": 4.0, "side": 0.0, "off": 0.02, "heavy": True}, 4.0),
    ({"units": 120, "each": 10, "odds": np.inf}, np.inf),
    ({"units": 1500, "each": 1, "odds": np.inf, "side": -1.0, "heavy": True}, np.inf),
]


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("case", "odds"), CASES, ids=str)
def test_every_end_has_its_rate(case: dict[str, float], odds: float, end: str) -> None:
    d = design(**case)  # type: ignore[arg-type]
    check(lambda seed: ENDS[end](UnitRange(d.draw(seed), odds), d) > ENOUGH, 100, DELTA)


@pytest.mark.parametrize("odds", [1.0, 2.0, 7.0, np.inf])
@pytest.mark.parametrize("end", ENDS)
def test_the_mean_of_the_evidence_is_at_most_one_over_every_outcome(odds: float, end: str) -> None:
    """Exactly: four units of three rows in three steps, rows of one fate, weights that differ, one step all lost."""
    unit, step = np.repeat(np.arange(4), 3), np.array([0, 1, 2, 0, 0, 1, 1, 1, 2, 0, 1, 2])
    weight = np.array([1.0, 0.5, 2.0, 1.0, 3.0, 0.2, 1.0, 1.0, 1.0, 0.7, 2.0, 1.5])
    lost = np.array([0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1], dtype=bool)
    score = np.array([0.1, 0.55, 0.8])
    for first, second in product((0.0, 0.08, 0.6, 1.0), (0.2, 0.7)):
        q = np.array([first, second, 0.5])
        for far in (most_likely(q, odds), 1.0 - most_likely(1.0 - q, odds)):
            far = np.array([*far[:2], 1.0])
            d = Design(unit, step, score[step], weight, lost, np.where(lost, far[step], q[step]), 1.0)
            fates = [unit_fates(d.eta[unit == g]) for g in range(4)]
            mean = 0.0
            for each in product(*fates):
                chance = float(np.prod([c for c, _ in each]))
                y = np.concatenate([v for _, v in each])
                evidence = ENDS[end](UnitRange(d.counts(np.where(lost, np.nan, y)), odds), d)
                mean += chance * float(np.exp(evidence))
            assert mean <= 1.0 + 1e-9


def unit_fates(eta: Floats) -> list[tuple[float, Floats]]:
    """Return what may happen to rows that share one uniform number, with its chance."""
    cuts = np.unique([0.0, *eta, 1.0])
    return [(b - a, (eta > a).astype(float)) for a, b in pairwise(cuts)]


@pytest.mark.parametrize("odds", [1.0, 2.0, np.inf])
def test_units_of_one_row_that_weigh_alike_are_people(odds: float) -> None:
    d = design(1500, 1, 2.0, alike=0.0)
    found = d.draw(0)
    held = np.isnan(found.y)
    known, unknown = (np.bincount(found.step[at], minlength=12) for at in (~held, held))
    counts = Counts(known, np.bincount(found.step, found.y == 1.0, 12).astype(int), unknown, found.score)
    people, units = Range(counts, odds), UnitRange(found, odds)
    assert units.gap(DELTA) == pytest.approx(people.gap(DELTA), abs=1e-3)
    assert units.error_above(DELTA) == pytest.approx(people.error_above(DELTA), abs=1e-3)


# ---- broken copies ----

HARD = design(40, 100, 1.0)
RUNS = 200


def misses(evidence: Callable[[UnitCounts], float], of: Design = HARD) -> int:
    return count(lambda seed: evidence(of.draw(seed)) > ENOUGH, RUNS)


def test_rows_taken_as_independent_are_found() -> None:
    def alone(c: UnitCounts) -> float:
        return UnitRange(replace(c, unit=np.arange(c.n), cache={}), 1.0).refutes_gap(-1.0, HARD.gap)

    assert refuted(misses(alone), RUNS, DELTA)
    assert not refuted(misses(lambda c: UnitRange(c, 1.0).refutes_gap(-1.0, HARD.gap)), RUNS, DELTA)


def test_weights_that_are_passed_over_are_found() -> None:
    """Rows of the upper half of the score weigh ten times as much, and are lost more often."""
    d = design(800, 1, np.inf)
    d = replace(d, weight=np.where(d.lost, 10.0, 1.0))

    def unweighted(c: UnitCounts) -> float:
        return UnitRange(of_rows(c.unit, c.step, c.y, c.p, np.ones(c.n)), np.inf).refutes_gap(-1.0, d.gap)

    assert refuted(misses(unweighted, d), RUNS, DELTA)


def test_units_without_any_label_left_out_are_found() -> None:
    """A unit all of whose labels are lost is a unit of the people in the data."""
    d = design(300, 4, np.inf)
    d = replace(d, lost=d.unit % 2 == 0)
    d = replace(d, eta=np.where(d.lost, 1.0, d.p))

    def without(c: UnitCounts) -> float:
        some = np.isin(c.unit, c.unit[~np.isnan(c.y)])
        part = of_rows(c.unit[some], c.step[some], c.y[some], c.p[some], c.weight[some])
        return UnitRange(part, np.inf).refutes_gap(-1.0, d.gap)

    assert refuted(misses(without, d), RUNS, DELTA)
    assert not refuted(misses(lambda c: UnitRange(c, np.inf).refutes_gap(-1.0, d.gap), d), RUNS, DELTA)


def test_one_sign_in_place_of_all_patterns_is_found() -> None:
    """From above: where the error turns along the score, what cancels is no small error."""
    d = design(300, 10, 1.0, alike=0.3)
    d = replace(d, eta=np.clip(d.p + np.where(d.step % 2 == 0, 0.15, -0.15), 0.0, 1.0))
    assert refuted(misses(lambda c: UnitBets(c, 1.0).refute_mean(1.0, d.error), d), RUNS, DELTA)
    assert not refuted(misses(lambda c: UnitBets(c, 1.0).refute_less(d.error), d), RUNS, DELTA)


# ---- the public function, rows in and table out ----


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_the_table_holds_the_truth(ratio: float) -> None:
    d = design(100, 10, ratio, heavy=True)

    def miss(seed: int) -> bool:
        y = np.where(d.lost, np.nan, d.outcomes(np.random.default_rng(seed)))
        data = cal.predictions(y, d.p, missing="keep", cluster=d.unit, weights=d.weight)
        table = cal.certify.missing_labels(data, judge="gap", odds=ratio, alpha=DELTA).columns
        return not all(table["low"][i] <= d.gap <= table["high"][i] for i in (2, 3))

    check(miss, 100, DELTA)
