"""Ends certified for rows without a label hold by units and by weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

import calibrant as cal
from calibrant.stats.missing.unlabelled import ClusterCounts, ClusterRange, most_likely, of_rows
from validity.acceptance import SETS, check

DELTA = 0.1
ENOUGH = -np.log(DELTA)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """Rows of units, whose outcomes hang together; of some the outcome is lost.

    `eta` is the probability of each row's outcome, given whether it is lost. A unit's rows share one uniform number
    with probability `intraclass_correlation`, and have their own otherwise.
    """

    cluster: Ints
    step: Ints
    p: Floats
    weight: Floats
    lost: NDArray[np.bool_]
    eta: Floats
    intraclass_correlation: float

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
        shared = rng.uniform(size=int(self.cluster.max()) + 1)[self.cluster]
        own = rng.uniform(size=len(self.cluster))
        return (np.where(rng.uniform(size=len(own)) < self.intraclass_correlation, shared, own) < self.eta).astype(
            float
        )

    def draw(self, seed: int) -> ClusterCounts:
        y = self.outcomes(np.random.default_rng(seed))
        return self.counts(np.where(self.lost, np.nan, y))

    def counts(self, y: Floats) -> ClusterCounts:
        return of_rows(self.cluster, self.step, y, self.p, self.weight)


def design(
    clusters: int,
    each: int,
    odds: float,
    *,
    side: float = 1.0,
    off: float = 0.0,
    intraclass_correlation: float = 1.0,
    heavy: bool = False,
) -> Design:
    """The lost are `odds` times as likely (`side` 1) as the others of their step, or as unlikely, or by turns (0)."""
    rng = np.random.default_rng([clusters, each])
    n = clusters * each
    cluster, step = np.repeat(np.arange(clusters), each), rng.integers(0, 12, n)
    step[:12] = np.arange(12)
    score = np.linspace(0.04, 0.96, 12)
    lost = rng.uniform(size=n) < np.linspace(0.5, 0.05, 12)[step]
    q = np.clip(score + off, 0.0, 1.0)
    up = np.arange(12) % 2 == 0 if side == 0.0 else np.full(12, side > 0)
    far = np.where(up, most_likely(q, odds), 1.0 - most_likely(1.0 - q, odds))
    weight = rng.uniform(0.2, 4.0, n) if heavy else np.ones(n)
    return Design(cluster, step, score[step], weight, lost, np.where(lost, far[step], q[step]), intraclass_correlation)


ENDS: dict[str, Callable[[ClusterRange, Design], float]] = {  # log evidence against the truth
    "error above": lambda r, d: r.refutes_less(d.error),
    "gap above": lambda r, d: r.refutes_gap(-1.0, d.gap),
    "gap below": lambda r, d: r.refutes_gap(1.0, -d.gap),
    "error below": lambda r, d: r.refutes_more(d.error),
}
EVENTS = [  # every end of few units is enumerated: test_exact_missing_labels.py; here are many
    ({"clusters": 120, "each": 10, "odds": 4.0, "side": 0.0, "off": 0.02, "heavy": True}, 4.0),
    ({"clusters": 1500, "each": 1, "odds": np.inf, "side": -1.0, "heavy": True}, np.inf),
]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["error above", "error below"])
@pytest.mark.parametrize(("case", "odds"), EVENTS, ids=str)
def test_every_end_has_its_rate(case: dict[str, float], odds: float, end: str) -> None:
    d = design(**case)  # type: ignore[arg-type]
    check(lambda seed: ENDS[end](ClusterRange(d.draw(seed), odds), d) > ENOUGH, SETS, DELTA)


# ---- the public function, rows in and table out ----


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_the_table_holds_the_truth(ratio: float) -> None:
    d = design(100, 10, ratio, heavy=True)

    def miss(seed: int) -> bool:
        y = np.where(d.lost, np.nan, d.outcomes(np.random.default_rng(seed)))
        data = cal.predictions(y, d.p, missing="keep", cluster=d.cluster, weights=d.weight)
        table = cal.certify.missing_labels(data, judge="gap", odds=ratio, alpha=DELTA).columns
        return not all(table["low"][i] <= d.gap <= table["high"][i] for i in (2, 3))

    check(miss, 400, DELTA)
