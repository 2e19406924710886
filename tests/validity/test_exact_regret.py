"""The evidence about regret has mean at most one at the true regret, by enumeration; broken evidence does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest

from calibrant.stats.decisions import regret
from calibrant.stats.decisions.regret import Above, Lots, below

# the whole file takes seconds: it waits for --rest
pytestmark = pytest.mark.slow

DELTA = 0.3  # so that bets are large
BLOCK, BLOCKS = np.array([0, 0, 1, 1]), np.array([0, 1])
Evidence = Callable[[Lots, float], float]


@dataclass(frozen=True)
class Law:
    """What a unit can be: the weights of its rows by cell and outcome, shape (kinds, cells, 2), and how probable."""

    kinds: np.ndarray
    chance: np.ndarray
    cut: int
    threshold: float

    @property
    def tallies(self) -> np.ndarray:
        """``t_c`` of each kind."""
        return self.kinds @ np.array([-self.threshold, 1.0 - self.threshold])

    @property
    def loss(self) -> float:
        """The regret, times 1 - t: what the steps on the wrong side lose."""
        mean = self.chance @ self.tallies
        side = np.where(np.arange(len(mean)) < self.cut, 1.0, -1.0)
        return float(np.maximum(side * mean, 0.0).sum() / (self.chance @ self.kinds.sum(axis=(1, 2))))

    def lots(self, drawn: tuple[int, ...]) -> Lots:
        tallies = self.tallies[list(drawn)]
        cluster, cell = np.nonzero(self.kinds[list(drawn)].sum(axis=2))
        size = self.kinds[list(drawn)].sum(axis=(1, 2))
        low, ones = np.array([0.0, 0.5]), np.ones(len(drawn))
        most = float(self.kinds.sum(axis=(1, 2)).max())
        return Lots(cluster, cell, tallies[cluster, cell], size, ones, BLOCK, most, low, self.cut, self.threshold)

    def expected(self, evidence: Evidence, beyond: float = 0.0) -> float:
        """Return the mean of an e-value over all data sets, at the true loss or beyond."""
        every = product(range(len(self.kinds)), repeat=len(BLOCK))
        x = self.loss + beyond
        return sum(float(np.prod(self.chance[list(d)])) * np.exp(evidence(self.lots(d), x)) for d in every)


ROWS = np.eye(4).reshape(4, 2, 2)  # one row: cell 0 or 1, outcome 0 or 1
PAIRS = np.array([[[2, 0], [0, 0]], [[0, 2], [0, 0]], [[0, 0], [1, 0]], [[1, 0], [0, 1]], [[0, 1], [0, 1]]])
LAWS = {
    "right side": Law(ROWS, np.array([0.4, 0.1, 0.2, 0.3]), 1, 0.3),
    "at the threshold": Law(ROWS, np.array([0.35, 0.15, 0.35, 0.15]), 1, 0.3),
    "too low": Law(ROWS, np.array([0.2, 0.5, 0.1, 0.2]), 1, 0.3),
    "too high": Law(ROWS, np.array([0.3, 0.1, 0.55, 0.05]), 1, 0.3),
    "both": Law(ROWS, np.array([0.2, 0.3, 0.4, 0.1]), 1, 0.4),
    "rare": Law(ROWS, np.array([0.9, 0.02, 0.06, 0.02]), 1, 0.1),
    "all are acted on": Law(ROWS, np.array([0.5, 0.1, 0.3, 0.1]), 0, 0.4),
    "clusters": Law(PAIRS.astype(float), np.array([0.3, 0.2, 0.2, 0.1, 0.2]), 1, 0.3),
    "units at the threshold": Law(PAIRS.astype(float), np.array([0.48, 0.2, 0.2, 0.06, 0.06]), 1, 0.3),
}


def from_below(lots: Lots, x: float) -> float:
    return below(lots, DELTA, 0).at(x)


def from_above(lots: Lots, x: float) -> float:
    return Above.of(lots, DELTA).at(x)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n if n == "both" else pytest.param(n, marks=pytest.mark.slow) for n in LAWS])
def test_evidence_has_mean_one_at_most(name: str) -> None:
    law = LAWS[name]
    assert law.expected(from_below) <= 1.0 + 1e-9
    assert law.expected(from_above) <= 1.0 + 1e-9
    assert law.expected(from_below, 0.05) <= 1.0 + 1e-9  # "at most x" is true of every larger x too
    if law.loss > 0.05:
        assert law.expected(from_above, -0.05) <= 1.0 + 1e-9  # and "at least x" of every smaller


@pytest.mark.parametrize("name", LAWS)
def test_evidence_is_monotone_and_the_limits_are_where_it_refutes(name: str) -> None:
    law = LAWS[name]
    lots = law.lots((0, 1, 2, 3))
    grid = np.linspace(0.0, lots.reach, 30)
    assert (np.diff([from_below(lots, x) for x in grid]) <= 1e-12).all()
    assert (np.diff([from_above(lots, x) for x in grid]) >= -1e-12).all()
    many = replace(lots, times=50.0 * lots.times)
    low, high = below(many, DELTA, 0).limit(DELTA), Above.of(many, DELTA).limit(DELTA)
    assert 0.0 <= low <= high <= many.reach
    if high < many.reach:
        assert Above.of(many, DELTA).at(high) == pytest.approx(-np.log(DELTA), abs=1e-6)


def test_the_bound_over_all_uses_is_below_each_of_them() -> None:
    law, x = LAWS["clusters"], 0.1
    lots = law.lots((1, 3, 4, 2))
    above = Above.of(lots, DELTA)
    uses = [np.array(f) * lots.side for f in product((0.0, 0.5, 1.0), repeat=2)]
    for f in uses:
        logs = [np.log1p(-k * (lots.won(f) - x * lots.size)).sum() for k in above.bets]
        assert above.at(x) <= np.log(np.mean(np.exp(logs))) + 1e-12


# ---- saboteurs: their mean is above one ----


def knows_its_block(lots: Lots, x: float) -> float:
    """What is learnt of the block that is bet on is bet on it."""
    firm, other = regret._firm, regret._threshold
    with (
        patch.object(regret, "_firm", lambda lots, _: firm(lots, BLOCKS)),
        patch.object(regret, "_threshold", lambda lots, _: other(lots, BLOCKS)),
    ):
        return from_below(lots, x)


def moves_either_way(lots: Lots, x: float) -> float:
    """Cells that are on the right side are moved too: what is won is no loss."""
    with patch.object(regret, "_firm", lambda lots, past: np.sign(lots.totals(past))):
        return from_below(lots, x)


def the_best_in_place_of_the_mean(lots: Lots, x: float) -> float:
    made = below(lots, DELTA, 0)
    return max(replace(made, wagers=[w]).at(x) - np.log(w[2]) for w in made.wagers)


def every_cell_is_moved(lots: Lots, x: float) -> float:
    """A cell that had better be left is moved, as if that were the best use."""
    with patch.object(np, "minimum", lambda left, across: across):
        return from_above(lots, x)


def each_cell_at_its_best(lots: Lots, x: float) -> float:
    with patch.object(np, "minimum", np.maximum):
        return from_above(lots, x)


def clusters_of_one_row(lots: Lots, x: float) -> float:
    """Units are as heavy as one row."""
    return from_below(replace(lots, size=np.ones(len(lots.size))), x)


HARD = {
    "right side for certain": Law(ROWS, np.array([0.6, 0.0, 0.0, 0.4]), 1, 0.3),
    "large units are cases": Law(PAIRS.astype(float), np.array([0.1, 0.7, 0.2, 0.0, 0.0]), 1, 0.3),
}
SABOTEURS: dict[Evidence, str] = {
    knows_its_block: "at the threshold",
    moves_either_way: "right side for certain",
    the_best_in_place_of_the_mean: "both",
    every_cell_is_moved: "right side",
    each_cell_at_its_best: "both",
    clusters_of_one_row: "large units are cases",
}


QUICK = (knows_its_block, every_cell_is_moved)


@pytest.mark.parametrize("broken", [b if b in QUICK else pytest.param(b, marks=pytest.mark.slow) for b in SABOTEURS])
def test_saboteurs_are_found(broken: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regret, "FIXED", 1e-9)  # so that what is learnt counts
    law = (LAWS | HARD)[SABOTEURS[broken]]
    assert law.expected(broken) > 1.0 + 1e-6
