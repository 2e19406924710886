"""The error along a variable, of units: the coverage of every end."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.variable import ByVariable
from validity.acceptance import SETS, check, refuted
from validity.cluster_designs import Clusters as Design

ALPHA = 0.05
NONE = (0.0,)


def test_signs_along_a_variable_are_learnt_ahead() -> None:
    """Calibrated units, along a variable of 24 levels, the shift known to be none: signs fit what they have seen."""

    def miss(k: int) -> bool:
        rng = np.random.default_rng(k)
        cluster, cell = np.repeat(np.arange(100), 4), rng.integers(0, 24, 400)
        y, p = (rng.uniform(size=400) < 0.5).astype(np.int8), np.full(400, 0.5)
        clusters = Clusters(cluster, p, y, np.ones(400), np.arange(100) % 9)
        return ByVariable.of(clusters, cell, 24, y - p, ordered=False).lower(0.05, 0, (1e-12, 1e-12)) > 1e-6

    check(miss, SETS, 0.05)


# ---- The public function: every end at once, over designs chosen to hurt ----

DESIGNS = {
    "many": Design(clusters=200, size=10),
    "few": Design(clusters=30, size=20, intraclass_correlation=0.6),
    "off": Design(clusters=200, size=10, gap=0.15),
    "unequal": Design(clusters=100, size=10, unequal=True, intraclass_correlation=0.5),
    "weights": Design(clusters=100, size=10, unequal=True, weighted=True, gap=0.1),
    "rare": Design(clusters=100, size=20, low=0.005, high=0.03),
}
RUNS = 60  # each takes two certificates


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_ends_hold(name: str) -> None:
    """Every residual has mean `gap`, whatever the variable, the size or the weight."""
    design, wrong = DESIGNS[name], np.zeros(4, dtype=int)
    for k in range(RUNS):
        data = design.drawn(np.random.default_rng([7, k]))
        plain, beyond = (cal.certify.variable(data, "x", beyond_gap=b, alpha=0.2).interval for b in (False, True))
        wrong += [plain.low > design.gap, plain.high < design.gap, beyond.low > 1e-12, beyond.high < 0.0]
    assert not any(refuted(int(w), RUNS, rate) for w, rate in zip(wrong, (0.1, 0.1, 0.11, 0.11), strict=True)), wrong


@pytest.mark.slow
def test_beyond_the_shift_both_ends() -> None:
    """Rates 20 points high on one half of the variable and low on the other."""
    rng = np.random.default_rng(3)
    cluster_code, x = np.repeat(np.arange(400), 5), np.repeat(rng.uniform(size=400), 5)
    p = np.full(2000, 0.5)
    y = (rng.uniform(size=2000) < 0.5 + 0.2 * np.sign(0.5 - x)).astype(np.int8)
    data = cal.predictions(y, p, {"half": np.where(x < 0.5, "low", "high")}, cluster=cluster_code)
    found = cal.certify.variable(data, "half", beyond_gap=True)
    assert 0.1 < found.interval.low < 0.2 < found.interval.high
