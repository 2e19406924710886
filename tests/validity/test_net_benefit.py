"""The certified range of the net benefit misses the truth as seldom as it says, at every number of rows and units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import calibrant as cal
from validity.acceptance import count, refuted


@dataclass(frozen=True)
class Design:
    """Rows of kinds, each with a score and a rate.

    Parameters
    ----------
    n : int
    t : float
    share, score, rate : tuple of float
        Of each kind.
    size : int
        Rows of a unit, which are copies of its first; sizes from 1 to twice as many where `uneven`.
    uneven, weighted, sketched : bool
    """

    n: int
    t: float
    share: tuple[float, ...]
    score: tuple[float, ...]
    rate: tuple[float, ...]
    size: int = 1
    uneven: bool = False
    weighted: bool = False
    sketched: bool = False

    @property
    def truth(self) -> float:
        share, score, rate = map(np.array, (self.share, self.score, self.rate))
        return float(share @ np.where(score >= self.t, rate - (1 - rate) * self.t / (1 - self.t), 0.0))

    def drawn(self, seed: int, by_clusters: bool = True) -> cal.Predictions | cal.Sketch:
        rng = np.random.default_rng([seed, 71])
        m = max(self.n // self.size, 1)
        size = rng.integers(1, 2 * self.size, m) if self.uneven else np.full(m, self.size)
        kind = rng.choice(len(self.share), m, p=self.share)
        y = rng.uniform(size=m) < np.array(self.rate)[kind]
        weight = rng.uniform(0.5, 1.5, m)
        cluster_code = np.repeat(np.arange(m), size)
        p, label = np.array(self.score)[kind][cluster_code], y[cluster_code].astype(int)
        if self.sketched:
            return cal.sketch({"y": label, "p": p}, label="y", score="p", variables=())
        return cal.predictions(
            label,
            p,
            weights=weight[cluster_code] if self.weighted else None,
            cluster=cluster_code if self.size > 1 and by_clusters else None,
        )

    def missed(self, seed: int, alpha: float, by_clusters: bool = True) -> bool:
        data = self.drawn(seed, by_clusters)
        try:
            found = cal.measure.net_benefit(data, threshold=self.t, alpha=alpha, seed=seed)
        except cal.NotComputable:  # nobody is acted on
            return False
        return not found.low <= self.truth <= found.high


MIXED = {"share": (0.4, 0.3, 0.3), "score": (0.05, 0.3, 0.7), "rate": (0.05, 0.4, 0.5)}
RARE = {"share": (0.9, 0.08, 0.02), "score": (0.002, 0.02, 0.2), "rate": (0.004, 0.04, 0.16)}  # one in a hundred
DESIGNS = {
    "twenty rows": Design(20, 0.2, **MIXED),
    "rows": Design(2000, 0.2, **MIXED),
    "many rows": Design(200_000, 0.2, **MIXED),
    "a sketch": Design(3000, 0.2, sketched=True, **MIXED),
    "rare, few rows": Design(300, 0.01, **RARE),
    "rare": Design(20_000, 0.01, **RARE),
    "threshold near 1": Design(500, 0.98, (0.9, 0.1), (0.1, 0.99), (0.1, 0.97)),
    "worth nothing": Design(500, 0.5, (0.5, 0.5), (0.2, 0.6), (0.2, 0.5)),
    "units of ten alike": Design(2000, 0.2, size=10, **MIXED),
    "twelve units": Design(240, 0.2, size=20, **MIXED),
    "uneven units": Design(3000, 0.2, size=6, weighted=True, **MIXED),
    "rare, by units": Design(6000, 0.01, size=5, **RARE),
    "weights": Design(800, 0.2, weighted=True, **MIXED),
}
LOUD = 0.4  # at which misses are seen often enough


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_it_misses_no_more_often_than_it_says(name: str) -> None:
    for alpha, runs in ((LOUD, 300), (0.05, 300)):
        found = count(lambda seed, a=alpha: DESIGNS[name].missed(seed, a), runs)
        assert not refuted(found, runs, alpha), f"{found} of {runs}"


@pytest.mark.nightly
@pytest.mark.parametrize("name", DESIGNS)
def test_it_misses_no_more_often_at_size(name: str) -> None:
    for alpha in (LOUD, 0.05):
        found = count(lambda seed, a=alpha: DESIGNS[name].missed(seed, a), 2000)
        assert not refuted(found, 2000, alpha), f"{found} of 2000"
