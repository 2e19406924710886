"""The evidence of paired bets has mean one at the true mean, by enumeration; broken bets do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from calibrant.stats.decisions import comparison as paired
from calibrant.stats.decisions.comparison import PairedClusters

CLUSTERS = 9
Evidence = Callable[[PairedClusters, float, float], float]


@dataclass(frozen=True)
class Law:
    """What one unit adds, its size, how probable that is, and the largest difference of a row."""

    value: tuple[float, ...]
    size: tuple[float, ...]
    chance: tuple[float, ...]
    reach: float = 1.0

    @property
    def mean(self) -> float:
        return float(np.dot(self.value, self.chance) / np.dot(self.size, self.chance))


LAWS = {
    "coins": Law((-0.2, 0.2), (1.0, 1.0), (0.5, 0.5)),
    "rare and far": Law((-0.02, 1.0), (1.0, 1.0), (0.95, 0.05)),
    "rare and better": Law((0.02, -1.0), (1.0, 1.0), (0.95, 0.05)),
    "at the ends": Law((-1.0, 1.0), (1.0, 1.0), (0.3, 0.7)),
    "large units lose more": Law((-0.02, 1.5), (0.5, 2.0), (0.6, 0.4)),
    "a needless treatment at 0.8": Law((0.0, 4.0), (1.0, 1.0), (0.9, 0.1), 4.0),
    "spared at 0.8, and a case missed": Law((-4.0, 1.0), (1.0, 1.0), (0.15, 0.85), 4.0),
    "hardly any noise": Law((0.1, 0.101), (1.0, 1.0), (0.5, 0.5)),
}


def expected(law: Law, gap: float, sign: float, evidence: Evidence) -> float:
    """Return the mean of the e-value against a mean `gap` below the true one, over all data sets."""
    total = 0.0
    for drawn in product(range(len(law.value)), repeat=CLUSTERS):
        at = list(drawn)
        clusters = PairedClusters(np.array(law.value)[at], np.array(law.size)[at], law.reach, 2.0)
        total += float(np.prod(np.array(law.chance)[at])) * np.exp(evidence(clusters, sign, sign * law.mean - gap))
    return total


def real(clusters: PairedClusters, sign: float, mean: float) -> float:
    return clusters.evidence(sign, mean, 0.025)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("name", LAWS)
def test_evidence_has_mean_one_at_the_true_mean_and_less_below(name: str, sign: float) -> None:
    assert expected(LAWS[name], 0.0, sign, real) == pytest.approx(1.0, abs=1e-9)
    assert expected(LAWS[name], 0.05, sign, real) < 1.0


@pytest.mark.parametrize("name", LAWS)
def test_evidence_rises_with_the_mean(name: str) -> None:
    at = np.arange(CLUSTERS) % 2
    clusters = PairedClusters(np.array(LAWS[name].value)[at], np.array(LAWS[name].size)[at], LAWS[name].reach, 2.0)
    found = [clusters.evidence(1.0, m, 0.025) for m in np.linspace(-1.0, 1.0, 101) * LAWS[name].reach]
    assert (np.diff(found) >= -1e-12).all()
    _, high = clusters.limits(0.05)
    assert clusters.evidence(1.0, high, 0.025) <= -np.log(0.025) + 1e-6 or high == clusters.mean


# ---- saboteurs: their mean is above one ----


def knows_the_cluster(clusters: PairedClusters, sign: float, mean: float) -> float:
    """The noise of a unit counts its own square too."""
    squares = clusters.noise**2 * np.arange(1.0, CLUSTERS + 1.0)
    ahead = np.append(squares[1:], (squares[-1] + clusters.value[-1] ** 2)) / np.arange(1.0, CLUSTERS + 1.0)
    seen = replace(clusters)
    object.__setattr__(seen, "__dict__", {**seen.__dict__, "noise": np.sqrt(ahead)})
    return seen.evidence(sign, mean, 0.025)


def best_bet(clusters: PairedClusters, sign: float, mean: float) -> float:
    """The best of the bets in place of their average."""
    found = []
    for multiple in paired.BETS.multiples:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(paired, "BETS", paired.BetSizes((multiple,), (1.0,), paired.BETS.largest))
            found.append(clusters.evidence(sign, mean, 0.025))
    return max(found)


def mean_per_cluster(clusters: PairedClusters, sign: float, mean: float) -> float:
    """Units count alike, whatever their size."""
    return replace(clusters, value=clusters.value / clusters.size, size=np.ones(CLUSTERS)).evidence(sign, mean, 0.025)


def ordered(clusters: PairedClusters, sign: float, mean: float) -> float:
    """Units stand in the order of what they add, so that the noise of the first is told small."""
    order = np.argsort(np.abs(clusters.value))
    return replace(clusters, value=clusters.value[order], size=clusters.size[order]).evidence(sign, mean, 0.025)


def reach_of_one(clusters: PairedClusters, sign: float, mean: float) -> float:
    """A needless treatment counts its odds, but bets are capped as if it counted one; lost wealth is lost."""
    with np.errstate(invalid="ignore"):
        found = replace(clusters, reach=1.0).evidence(sign, mean, 0.025)
    return found if np.isfinite(found) else -np.inf


@pytest.mark.parametrize(
    "broken",
    [knows_the_cluster, pytest.param(best_bet, marks=pytest.mark.slow), mean_per_cluster, ordered, reach_of_one],
    ids=lambda f: f.__name__,
)
def test_a_saboteur_has_mean_above_one(broken: Evidence) -> None:
    assert max(expected(law, 0.0, sign, broken) for law in LAWS.values() for sign in (1.0, -1.0)) > 1.0 + 1e-6
