"""The error along a variable, of units: exact means over every data set, coverage, and broken copies that are seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.units.along import Along, Beyond
from calibrant.stats.units.units import Units
from validity.acceptance import refuted
from validity.test_exact_units import KINDS, means
from validity.unit_designs import Units as Design
from validity.unit_designs import alone

ALPHA = 0.05
NONE = (0.0,)


def group(p: np.ndarray) -> np.ndarray:
    """The variable of the enumerated units: it tells their two scores apart."""
    return (p == 0.6).astype(np.int64)


def truth() -> tuple[float, float, float]:
    """Return the error along the variable, the mean residual, and the error beyond it."""
    sums, mass = np.zeros(2), np.zeros(2)
    for chance, p, w, y in KINDS:
        for score, weight, event in zip(p, w, y, strict=True):
            sums[int(score == 0.6)] += chance * weight * (event - score)
            mass[int(score == 0.6)] += chance * weight
    shift = sums.sum() / mass.sum()
    return np.abs(sums).sum() / mass.sum(), shift, np.abs(sums - shift * mass).sum() / mass.sum()


def along(units: Units) -> Along:
    return Along.of(units, group(units.p), 2, units.y - units.p, ordered=False)


@pytest.fixture
def largest_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let M be 3, as if the pilot units had shown it, so that every data set has one estimand."""
    monkeypatch.setattr(Units, "largest", 3.0)


@pytest.mark.usefixtures("largest_known")
def test_evidence_at_the_true_error() -> None:
    error, _, _ = truth()

    def evidence(units: Units) -> list[float]:
        a = along(units)
        below = a.below(ALPHA, 0)
        each = [replace(below, wagers=[replace(w, share=1.0)]).at(error) for w in below.wagers]
        return [a.above(NONE).at(error), *each]

    found = means(evidence, 3)
    assert found.max() <= 1 + 1e-9
    assert found[1:].max() > 0.8


@pytest.mark.usefixtures("largest_known")
def test_evidence_beyond_the_true_shift() -> None:
    """At limits that hold the shift, wherever in them it is."""
    _, shift, error = truth()

    def evidence(units: Units) -> list[float]:
        a, out = along(units), []
        for shifts in ((shift, shift), (shift - 0.1, shift + 0.02), (shift - 0.01, shift + 0.15)):
            out += [a.above(shifts).at(error), a.below_beyond(ALPHA, 0, shifts).at(error)]
        return out

    found = means(evidence, 3)
    assert found.max() <= 1 + 1e-9
    assert found[:2].min() > 0.4


class Ahead(Along):
    """Signs that have seen the units they are bet on."""

    def _signs(self, past: np.ndarray) -> tuple[np.ndarray, float]:
        return super()._signs(np.ones_like(past))


def test_saboteur_signs_that_look_ahead() -> None:
    """Calibrated units, along a variable of 24 levels: the shift is known to be none."""
    wrong = [0, 0]
    for k in range(60):
        rng = np.random.default_rng(k)
        unit, cell = np.repeat(np.arange(100), 4), rng.integers(0, 24, 400)
        y, p = (rng.uniform(size=400) < 0.5).astype(np.int8), np.full(400, 0.5)
        units = Units(unit, p, y, np.ones(400), np.arange(100) % 9)
        for i, kind in enumerate((Along, Ahead)):
            wrong[i] += kind.of(units, cell, 24, y - p, ordered=False).lower(0.05, 0, (1e-12, 1e-12)) > 1e-6
    assert not refuted(wrong[0], 60, 0.05)
    assert refuted(wrong[1], 60, 0.05), wrong


# ---- The public function: every end at once, over designs chosen to hurt ----

DESIGNS = {
    "many": Design(units=200, size=10),
    "few": Design(units=30, size=20, alike=0.6),
    "off": Design(units=200, size=10, shift=0.15),
    "unequal": Design(units=100, size=10, unequal=True, alike=0.5),
    "weights": Design(units=100, size=10, unequal=True, weighted=True, shift=0.1),
    "rare": Design(units=100, size=20, low=0.005, high=0.03),
}
SETS = 60


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_ends_hold(name: str) -> None:
    """Every residual has mean `shift`, whatever the variable, the size or the weight."""
    design, wrong = DESIGNS[name], np.zeros(4, dtype=int)
    for k in range(SETS):
        data = design.drawn(np.random.default_rng([7, k]))
        plain, beyond = (cal.certify.variable(data, "x", beyond_shift=b, alpha=0.2).interval for b in (False, True))
        wrong += [plain.low > design.shift, plain.high < design.shift, beyond.low > 1e-12, beyond.high < 0.0]
    assert not any(refuted(int(w), SETS, rate) for w, rate in zip(wrong, (0.1, 0.1, 0.11, 0.11), strict=True)), wrong


@pytest.mark.slow
def test_saboteur_rows_without_their_units() -> None:
    design = Design(units=60, size=40, alike=0.9)
    wrong = [0, 0]
    for k in range(SETS):
        data = design.drawn(np.random.default_rng([8, k]))
        for i, given in enumerate((data, alone(data))):
            wrong[i] += cal.certify.variable(given, "x", alpha=0.1, side="lower").interval.low > 0.0
    assert not refuted(wrong[0], SETS, 0.1)
    assert refuted(wrong[1], SETS, 0.1)


@pytest.mark.slow
def test_beyond_the_shift_both_ends() -> None:
    """Rates 20 points high on one half of the variable and low on the other."""
    rng = np.random.default_rng(3)
    unit, x = np.repeat(np.arange(400), 5), np.repeat(rng.uniform(size=400), 5)
    p = np.full(2000, 0.5)
    y = (rng.uniform(size=2000) < 0.5 + 0.2 * np.sign(0.5 - x)).astype(np.int8)
    data = cal.predictions(y, p, {"half": np.where(x < 0.5, "low", "high")}, cluster=unit)
    found = cal.certify.variable(data, "half", beyond_shift=True)
    assert 0.1 < found.interval.low < 0.2 < found.interval.high


def test_single_rows_of_one_weight_are_rows() -> None:
    data = Design(units=300, size=1).drawn(np.random.default_rng(0))
    rows = cal.predictions(data.y, data.p, data.covariates)
    for beyond in (False, True):
        first, second = (cal.certify.variable(d, "x", beyond_shift=beyond) for d in (data, rows))
        assert first.to_dict() == second.to_dict()


def test_a_worst_shift_is_never_better_than_one_of_them() -> None:
    data = Design(units=60, size=5).drawn(np.random.default_rng(1))
    unit = np.asarray(data.cluster)
    units = Units(unit, data.p, data.y, np.ones(data.n), np.arange(60) % 9)
    a = Along.of(units, (data.p > 0.3).astype(np.int64), 2, data.y - data.p, ordered=True)
    both = a.above((-0.05, 0.05))
    assert isinstance(both, Beyond)
    assert both.limit(ALPHA) >= max(a.above((m, m)).limit(ALPHA) for m in (-0.05, 0.05)) - 1e-9
    each = [a.lower(ALPHA, 0, (m, m)) for m in (-0.05, 0.05)]
    assert a.lower(ALPHA, 0, (-0.05, 0.05)) <= min(each) + 1e-9
