"""The error along a variable, of units: exact means over every data set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.variable import Beyond, ByVariable
from validity.cluster_designs import Clusters as Design
from validity.test_exact_clusters import KINDS, means

# the whole file takes seconds: it waits for --all
pytestmark = pytest.mark.slow

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
    gap = sums.sum() / mass.sum()
    return np.abs(sums).sum() / mass.sum(), gap, np.abs(sums - gap * mass).sum() / mass.sum()


def by_variable(clusters: Clusters) -> ByVariable:
    return ByVariable.of(clusters, group(clusters.p), 2, clusters.y - clusters.p, ordered=False)


@pytest.fixture
def largest_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let M be 3, as if the pilot units had shown it, so that every data set has one estimand."""
    monkeypatch.setattr(Clusters, "largest", 3.0)


@pytest.mark.usefixtures("largest_known")
def test_evidence_at_the_true_error() -> None:
    error, _, _ = truth()

    def evidence(clusters: Clusters) -> list[float]:
        a = by_variable(clusters)
        below = a.below(ALPHA, 0)
        each = [replace(below, wagers=[replace(w, share=1.0)]).at(error) for w in below.wagers]
        return [a.above(NONE).at(error), *each]

    found = means(evidence, 3)
    assert found.max() <= 1 + 1e-9
    assert found[1:].max() > 0.8


@pytest.mark.usefixtures("largest_known")
def test_evidence_beyond_the_true_shift() -> None:
    """At limits that hold the shift, wherever in them it is."""
    _, gap, error = truth()

    def evidence(clusters: Clusters) -> list[float]:
        a, out = by_variable(clusters), []
        for gaps in ((gap, gap), (gap - 0.1, gap + 0.02), (gap - 0.01, gap + 0.15)):
            out += [a.above(gaps).at(error), a.below_beyond(ALPHA, 0, gaps).at(error)]
        return out

    found = means(evidence, 3)
    assert found.max() <= 1 + 1e-9
    assert found[:2].min() > 0.4


def test_single_rows_of_one_weight_are_rows() -> None:
    data = Design(clusters=300, size=1).drawn(np.random.default_rng(0))
    rows = cal.predictions(data.y, data.p, data.covariates)
    for beyond in (False, True):
        first, second = (cal.certify.variable(d, "x", beyond_gap=beyond) for d in (data, rows))
        assert first.to_dict() == second.to_dict()


def test_a_worst_shift_is_never_better_than_one_of_them() -> None:
    data = Design(clusters=60, size=5).drawn(np.random.default_rng(1))
    cluster = np.asarray(data.cluster)
    clusters = Clusters(cluster, data.p, data.y, np.ones(data.n), np.arange(60) % 9)
    a = ByVariable.of(clusters, (data.p > 0.3).astype(np.int64), 2, data.y - data.p, ordered=True)
    both = a.above((-0.05, 0.05))
    assert isinstance(both, Beyond)
    assert both.limit(ALPHA) >= max(a.above((m, m)).limit(ALPHA) for m in (-0.05, 0.05)) - 1e-9
    each = [a.lower(ALPHA, 0, (m, m)) for m in (-0.05, 0.05)]
    assert a.lower(ALPHA, 0, (-0.05, 0.05)) <= min(each) + 1e-9


def test_a_shift_is_taken_off_what_is_won() -> None:
    """What a unit wins beyond a shift falls by the shift times what it holds, whatever was learnt."""
    rng = np.random.default_rng(5)
    cluster, p = np.repeat(np.arange(60), 5), np.full(300, 0.5)
    cell = rng.integers(0, 2, 300)
    y = (rng.uniform(size=300) < np.where(cell == 0, 0.7, 0.4)).astype(np.int8)
    a = ByVariable.of(Clusters(cluster, p, y, np.ones(300), np.arange(60) % 9), cell, 2, y - p, ordered=False)
    none, some, more = ([w.gain[0] for w in a.below_beyond(ALPHA, 0, (m, m)).wagers] for m in (0.0, 0.1, 0.3))
    for at, tenth, three in zip(none, some, more, strict=True):
        assert np.abs(at - tenth).max() > 0.0
        assert 3.0 * (at - tenth) == pytest.approx(at - three)


@pytest.mark.parametrize("x", [0.0, 0.2])
def test_no_bet_follows_the_limits_of_the_shift(x: float) -> None:
    """They come from outcomes: a bet is what it is without them, or counts nothing."""
    data = Design(clusters=30, size=5).drawn(np.random.default_rng(2))
    clusters = Clusters(np.asarray(data.cluster), data.p, data.y, np.ones(data.n), np.arange(30) % 9)
    a = ByVariable.of(clusters, (data.p > 0.3).astype(np.int64), 2, data.y - data.p, ordered=False)
    made = a.below_beyond(0.0004, 0, (0.0, 0.0))
    assert max(w.bet.max() for w in made.wagers) * clusters.largest > 1.0  # so that they are cut
    assert replace(made, reach=1.2).at(x) == made.at(x)
    assert replace(made, reach=1.6).at(x) in (made.at(x), -np.inf)
