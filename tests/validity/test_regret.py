"""The interval of regret holds the truth as often as it says: steps at the threshold, few rows, units of one fate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import ndtr

import calibrant as cal
from calibrant.decisions.ladder import ladder
from calibrant.stats.decisions.regret import below
from validity.acceptance import count, refuted

RUNS, ALPHA = 1000, 0.2  # at a level that is missed often enough to be seen


@dataclass(frozen=True)
class Design:
    """A score of few values, the rate of cases at each, and rows; of units all rows have one score."""

    values: tuple[float, ...]
    rate: tuple[float, ...]
    rows: int
    threshold: float
    cluster: int = 1

    @property
    def regret(self) -> float:
        v, e, t = np.array(self.values), np.array(self.rate), self.threshold
        return float(np.mean(np.abs(e - t) * ((v >= t) != (e >= t))) / (1.0 - t))

    def drawn(self, seed: int, by_clusters: bool = True) -> cal.Predictions:
        rng = np.random.default_rng([0x7E57, seed])
        cluster_code = np.arange(self.rows) // self.cluster
        at = rng.integers(0, len(self.values), cluster_code[-1] + 1)[cluster_code]
        shared, own = rng.normal(size=cluster_code[-1] + 1)[cluster_code], rng.normal(size=self.rows)
        fate = ndtr(np.sqrt(0.9) * shared + np.sqrt(0.1) * own) if self.cluster > 1 else ndtr(own)
        y = fate < np.array(self.rate)[at]
        return cal.predictions(
            y, np.array(self.values)[at], cluster=cluster_code if self.cluster > 1 and by_clusters else None
        )


AT = tuple(np.arange(1, 11) / 20)
DESIGNS = {
    "every value is at the threshold": Design(AT, (0.2,) * 10, 2000, 0.2),
    "calibrated": Design(AT, AT, 1000, 0.2),
    "too low": Design(AT, tuple(v + 0.1 for v in AT), 2000, 0.22),
    "one value crosses": Design((0.1, 0.3), (0.25, 0.4), 300, 0.2),
    "both ways": Design((0.1, 0.15, 0.25, 0.3), (0.1, 0.3, 0.1, 0.3), 800, 0.2),
    "few rows": Design((0.1, 0.3), (0.4, 0.1), 30, 0.2),
    "rare": Design((0.001, 0.02), (0.012, 0.03), 3000, 0.01),
    "units that share a fate": Design((0.1, 0.3), (0.2, 0.2), 3000, 0.2, cluster=15),
}


def missed(design: Design, seed: int, by_clusters: bool = True) -> bool:
    found = cal.measure.regret(design.drawn(seed, by_clusters), threshold=design.threshold, alpha=ALPHA, seed=seed)
    return not found.low <= design.regret + 1e-8 or not found.high >= design.regret - 1e-8


@pytest.mark.parametrize("name", DESIGNS)
def test_the_interval_holds_the_regret(name: str) -> None:
    assert not refuted(count(lambda seed: missed(DESIGNS[name], seed), RUNS), RUNS, ALPHA)


def test_the_lower_end_of_steps_holds_for_the_raw_score() -> None:
    """Steps lose what happens inside them: regret of the raw score is no less."""

    def missed_below(seed: int) -> bool:
        rng = np.random.default_rng([0x7E58, seed])
        p = rng.uniform(size=1500)
        eta = np.where(np.floor(p * 200) % 2 == 0, 0.15, 0.25)  # crosses the threshold inside each step
        truth = 0.05 / 2.0  # half of all people are on the wrong side, each by 0.05
        lots = ladder(cal.predictions(rng.uniform(size=1500) < eta, p), 0.2)[0].lots
        return bool(below(lots, ALPHA, seed).limit(ALPHA) > truth)

    assert not refuted(count(missed_below, RUNS), RUNS, ALPHA)
