"""The evidence about net benefit has mean at most one at the truth, by enumeration; broken evidence does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest

from calibrant.stats.decisions import net_benefit as gains
from calibrant.stats.decisions.net_benefit import Gains

DELTA = 0.3  # so that bets are large
BLOCK = (1, 2, 3, 3, 4)  # of five units, in the order in which they come


@dataclass(frozen=True)
class Law:
    """What a unit can add, its size, and how probable that is; `block` is of each unit, 0 of pilot units."""

    value: tuple[float, ...]
    size: tuple[float, ...]
    chance: tuple[float, ...]
    span: tuple[float, float]
    block: tuple[int, ...] = BLOCK

    @property
    def mean(self) -> float:
        return float(np.dot(self.chance, self.value) / np.dot(self.chance, self.size))

    def drawn(self, kinds: tuple[int, ...]) -> Gains:
        value, size = (np.array(v)[list(kinds)] for v in (self.value, self.size))
        return Gains(value, size, np.ones(len(kinds)), np.array(self.block), *self.span, max(self.size))

    def expected(self, sign: float, beyond: float = 0.0) -> float:
        """Return the mean of an e-value over all data sets, at the true mean or so much less than it."""
        every = product(range(len(self.value)), repeat=len(self.block))
        chance, mean = np.array(self.chance), sign * self.mean - beyond
        return sum(float(np.prod(chance[list(d)])) * np.exp(self.drawn(d).evidence(sign, mean, DELTA)) for d in every)


def rows(t: float, events: float, others: float) -> Law:
    """Return the law of independent rows: a case acted on, another acted on, anybody who is not."""
    return Law((1 - t, -t, 0.0), (1.0,) * 3, (events, others, 1 - events - others), (-t, 1 - t))


PILOT = (0, 1, 2, 3, 3)
LAWS = {
    "rows": rows(0.3, 0.3, 0.3),
    "worth nothing": rows(0.3, 0.15, 0.35),
    "rare": rows(0.05, 0.02, 0.3),
    "threshold near 1": rows(0.95, 0.4, 0.02),
    "over acting on all": Law((0.3, -0.7, 0.0), (1.0,) * 3, (0.5, 0.1, 0.4), (-0.7, 0.3)),
    "clusters": Law((1.4, -0.6, 0.7, 0.0), (2.0, 2.0, 1.0, 1.5), (0.3, 0.3, 0.1, 0.3), (-0.3, 0.7), PILOT),
    "a rate of units, some without a row there": Law(
        (1.0, 0.0, 2.0, 0.0, 0.0), (1.0, 1.0, 2.0, 2.0, 0.0), (0.2, 0.2, 0.1, 0.2, 0.3), (0.0, 1.0), PILOT
    ),
    "units of one fate": Law((2.1, -0.9, 0.0), (3.0, 3.0, 1.0), (0.1, 0.3, 0.6), (-0.3, 0.7), PILOT),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_evidence_has_mean_one_at_most(name: str, sign: float) -> None:
    law = LAWS[name]
    assert law.expected(sign) <= 1.0 + 1e-9
    assert law.expected(sign, 0.05) <= 1.0 + 1e-9  # "at least m" is true of every smaller m too


@pytest.mark.parametrize("name", LAWS)
def test_evidence_is_monotone_and_the_limits_are_where_it_refutes(name: str) -> None:
    law = LAWS[name]
    found = law.drawn((0, 1, 2, 0, 1))
    for sign, (low, high) in ((1.0, law.span), (-1.0, (-law.span[1], -law.span[0]))):
        reported = [found.evidence(sign, m, DELTA) for m in np.linspace(low, high, 30)]
        assert (np.diff(reported) >= -1e-12).all()
    low, high = found.limits(DELTA)
    assert law.span[0] <= low <= found.mean <= high <= law.span[1]
    if high < law.span[1]:
        assert found.evidence(1.0, high, DELTA) == pytest.approx(-np.log(DELTA), abs=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_are_dealt_whole_whatever_the_seed(sign: float) -> None:
    hash_split = [Gains.of_counts((0.7, -0.3, 0.0), (40, 30, 130), seed) for seed in range(200)]
    for one in hash_split:
        assert [one.times[one.value == v].sum() for v in (0.7, -0.3, 0.0)] == [40, 30, 130]
    first = [one.times[(one.block <= 12) & (one.value == 0.7)].sum() for one in hash_split]  # a quarter of the rows
    assert np.mean(first) == pytest.approx(10, abs=5 * np.sqrt(40 * 0.25 * 0.75 * 160 / 199 / 200))
    limits = [one.limits(0.025) for one in hash_split[:20]]
    assert np.std(limits, axis=0).max() < 0.02  # the order matters little


# ---- saboteurs ----


def test_bets_that_know_their_own_block_are_found_out() -> None:
    """Nothing staked on a block that loses: the best of two bets, seen before they are placed."""
    alone = Gains.evidence

    def knowing(self: Gains, sign: float, mean: float, delta: float) -> float:
        lost = sign * self.value - mean * self.size
        return alone(replace(self, times=np.where(lost > 0.0, 0.0, self.times) + 1e-9), sign, mean, delta)

    with patch.object(gains.Gains, "evidence", knowing):
        assert LAWS["rows"].expected(1.0) > 1.001


@pytest.mark.slow
def test_the_best_bet_in_place_of_the_mean_is_found_out() -> None:
    with patch.object(gains, "log_mean_exp", lambda values, weights: float(np.max(values))):
        assert max(law.expected(s) for law in LAWS.values() for s in (1.0, -1.0)) > 1.001


def test_bets_over_the_cap_are_found_out() -> None:
    """A size larger than M loses more than there is."""
    law = LAWS["units of one fate"]
    small = replace(law, size=(1.0, 1.0, 1.0))  # units taken as heavy as one row, and what they add as it is
    with np.errstate(invalid="ignore"):
        found = [small.expected(s) for s in (1.0, -1.0)]
    assert any(not np.isfinite(v) or v > 1.001 for v in found)
