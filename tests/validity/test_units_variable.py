"""The error along a variable, of units: exact means over every data set, coverage, and broken copies that are seen."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.units.along import Along, Beyond
from calibrant.stats.units.units import Units
from validity.acceptance import refuted
from validity.unit_designs import Units as Design

ALPHA = 0.05
NONE = (0.0,)


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


@pytest.mark.all
@pytest.mark.parametrize("name", DESIGNS)
def test_ends_hold(name: str) -> None:
    """Every residual has mean `shift`, whatever the variable, the size or the weight."""
    design, wrong = DESIGNS[name], np.zeros(4, dtype=int)
    for k in range(SETS):
        data = design.drawn(np.random.default_rng([7, k]))
        plain, beyond = (cal.certify.variable(data, "x", beyond_shift=b, alpha=0.2).interval for b in (False, True))
        wrong += [plain.low > design.shift, plain.high < design.shift, beyond.low > 1e-12, beyond.high < 0.0]
    assert not any(refuted(int(w), SETS, rate) for w, rate in zip(wrong, (0.1, 0.1, 0.11, 0.11), strict=True)), wrong


@pytest.mark.all
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
