"""Ranges of boxes by units, by summing over every outcome: evidence at the true gap, bounds, ends, saboteurs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.subgroups import cluster_ranges
from calibrant.stats.subgroups.cluster_ranges import ClusterRanges, cluster_rows
from calibrant.stats.subgroups.family import Family
from calibrant.views.boxes import boxed, tables_of
from validity.acceptance import refuted

# the whole file takes seconds: it waits for --rest
pytestmark = pytest.mark.slow

ALPHA = 0.1
CLUSTERS = 6


class Design:
    """Six units of unequal rates, sizes and weights, some with rows at several sites: each has one fate or mixed."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([0x0B0, seed])
        self.sizes = rng.integers(1, 6, CLUSTERS)
        self.cluster = np.repeat(np.arange(CLUSTERS), self.sizes)
        n = len(self.cluster)
        self.p = rng.choice([0.1, 0.3, 0.8], n)
        self.site, self.sex = rng.integers(0, 2, n), rng.integers(0, 2, n)
        self.weight = rng.choice([1.0, 2.5], n)
        self.eta = rng.choice([0.05, 0.3, 0.7, 0.95], CLUSTERS)
        # rows of a unit have its fate, or the opposite of it
        self.turned = rng.random(n) < 0.15
        self.rate = np.where(self.turned, 1.0 - self.eta[self.cluster], self.eta[self.cluster])

    def data(self, y: Any) -> Any:
        attributes = {"site": self.site.astype(str), "sex": self.sex.astype(str)}
        return cal.predictions(y, self.p, attributes, cluster=self.cluster, weights=self.weight)

    def family(self) -> tuple[Any, Family]:
        tables = tables_of(self.data(np.arange(len(self.p)) % 2), None, 2, 0)
        return tables, tables.family(0.0, 1)

    def outcomes(self) -> Iterator[tuple[float, Any]]:
        for fate in product([0, 1], repeat=CLUSTERS):
            chance = float(np.where(fate, self.eta, 1.0 - self.eta).prod())
            yield chance, (np.array(fate)[self.cluster] ^ self.turned).astype(np.int8)

    def ranges(self, y: Any, tables: Any, family: Family, cluster: Any = None) -> ClusterRanges:
        found = ClusterRanges.of(
            family,
            cluster_rows(
                tables.sample_rows.cells, self.cluster if cluster is None else cluster, self.p, y, self.weight
            ),
        )
        assert found is not None
        return found

    def true(self, ranges: ClusterRanges) -> Any:
        order = np.argsort(self.cluster, kind="stable")
        off = (self.weight * (self.rate - self.p))[order]
        w = self.weight[order]
        inside = [ranges.family.inside(b, ranges.rows.cells) for b in range(ranges.family.size)]
        return np.array([off[own].sum() / w[own].sum() for own in inside])


@pytest.fixture(autouse=True)
def few_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_ranges, "FEWEST", 1)


def means(
    design: Design, at: Callable[[ClusterRanges, int, int], Callable[[float], float]], cluster: Any = None
) -> Any:
    """Return the exact mean of e-values at the true gaps, of every box from both sides."""
    tables, family = design.family()
    out: Any = 0.0
    for chance, y in design.outcomes():
        ranges = design.ranges(y, tables, family, cluster)
        true = design.true(ranges)
        logs = [[at(ranges, b, s)((1, -1)[s] * true[b]) for b in range(ranges.family.size)] for s in range(2)]
        out = out + chance * np.exp(np.array(logs))
    return out


def evidence(ranges: ClusterRanges, box: int, side: int) -> Callable[[float], float]:
    return ranges._log_evidence(box, side, ALPHA / 20)


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_of_the_evidence_at_the_true_gap_is_at_most_one(seed: int) -> None:
    found = means(Design(seed), evidence)
    assert found.max() <= 1.0 + 1e-9
    assert found.max() > 0.5


def test_rows_for_units_are_found_out() -> None:
    design = Design(0)
    assert means(design, evidence, np.arange(len(design.p))).max() > 1.2


def test_bets_that_look_at_outcomes_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeking(self: ClusterRanges, side: int, delta: Any, boxes: Any) -> Any:
        own = self._sides[side].of(boxes)
        gain = np.maximum(own.gain, 0.0) / np.maximum(own.square, 1e-9)
        return np.minimum(np.tile(gain, (4, 1)), 0.9 / np.maximum(own.loss, 1e-9))

    monkeypatch.setattr(ClusterRanges, "_bets", peeking)
    assert means(Design(1), evidence).max() > 1.2


@pytest.mark.parametrize("seed", range(3))
def test_quick_bounds_hold_the_evidence_between_them(seed: int) -> None:
    design = Design(seed)
    tables, family = design.family()
    for _, y in list(design.outcomes())[::9]:
        ranges = design.ranges(y, tables, family)
        every = np.arange(ranges.family.size)
        delta = np.full(len(every), ALPHA / 20)
        for side, own in enumerate(ranges._sides):
            bets = ranges._bets(side, delta, every)
            for mean in (-0.3, 0.0, 0.02, 0.4):
                exact = np.array([ranges._log_evidence(b, side, ALPHA / 20)(mean) for b in every])
                at = np.full(len(every), mean)
                assert (own.at_least(bets, at) <= np.maximum(exact, -1e6) + 1e-9).all()  # far below, neither counts
                if mean >= 0.0:
                    assert (own.at_most(bets, at) >= exact - 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_every_outcome_keeps_the_promises_of_ends(seed: int) -> None:
    design = Design(seed)
    tables, family = design.family()
    missed = wrong_floor = wrong_ceiling = wrong_over = 0.0
    for chance, y in design.outcomes():
        ranges = design.ranges(y, tables, family)
        true = design.true(ranges)
        low, high = ranges.together(0.5)
        floor, _ = ranges.floor(0.5)
        worst, _ = ranges.ceiling(0.5, 1.0)
        limit = float(np.median(np.abs(true)))
        missed += chance * ((low > true) | (high < true)).any()
        wrong_floor += chance * (floor > np.abs(true).max())
        wrong_ceiling += chance * (worst < np.abs(true).max())
        wrong_over += chance * (ranges.over(limit, 0.5) & (np.abs(true) <= limit)).any()
        exact = max(np.maximum(low, -high).max(), 0.0)
        assert floor == pytest.approx(exact, abs=1e-9)
        below, above = ranges.ends(0.5, 0.5)
        assert worst == pytest.approx(min(max(np.maximum(above, -below).max(), 0.0), 1.0), abs=1e-9)
    assert max(missed, wrong_floor, wrong_ceiling, wrong_over) <= 0.5


def people(clusters: int, size: int, rng: Any, rate: float = 0.3) -> tuple[Any, ...]:
    """Units of all-or-none fates at two sites and of two ages, each half of its rows at either."""
    cluster = np.repeat(np.arange(clusters), size)
    y = (rng.random(clusters) < rate)[cluster]
    return y, np.full(len(cluster), rate), {"site": rng.integers(0, 3, len(cluster)).astype(str)}, cluster


@pytest.mark.parametrize(("clusters", "size"), [(60, 8), (400, 3)])
def test_the_public_function_over_data_sets(clusters: int, size: int) -> None:
    monkey_fewest = cluster_ranges.FEWEST
    cluster_ranges.FEWEST = 20
    rng = np.random.default_rng([0x0B1, clusters])
    low, rows_low, times = 0, 0, 60
    for _ in range(times):
        y, p, attributes, cluster_code = people(clusters, size, rng)
        found = cal.certify.subgroups(cal.predictions(y, p, attributes, cluster=cluster_code), alpha=0.2, side="lower")
        low += found.interval.low > 0.0
        rows_low += cal.certify.subgroups(cal.predictions(y, p, attributes), alpha=0.2, side="lower").interval.low > 0.0
    cluster_ranges.FEWEST = monkey_fewest
    assert not refuted(low, times, 0.2)
    assert rows_low > 0.4 * times or size < 8


def test_rows_alone_are_certified_as_before() -> None:
    rng = np.random.default_rng(5)
    n = 600
    p, x = rng.uniform(0.1, 0.9, n), {"x": rng.normal(size=n)}
    y = rng.random(n) < p
    plain, alone = cal.predictions(y, p, x), cal.predictions(y, p, x, cluster=np.arange(n), weights=np.full(n, 2.0))
    assert cal.certify.subgroups(plain).to_dict() == cal.certify.subgroups(alone).to_dict()
    assert cal.diagnose.subgroups(plain).to_dict() == cal.diagnose.subgroups(alone).to_dict()


def test_few_units_are_refused_by_name() -> None:
    rng = np.random.default_rng(6)
    cluster_code = np.repeat(np.arange(15), 20)
    y, p, attributes, _ = people(15, 20, rng)
    cluster_ranges.FEWEST = 20
    with pytest.raises(cal.NotComputable, match="15 clusters: no subgroup of at least 1% of the rows has 20 of them"):
        cal.certify.subgroups(cal.predictions(y, p, attributes, cluster=cluster_code))
    tables = tables_of(cal.predictions(y, p, attributes, cluster=cluster_code), None, 2, 0)
    with pytest.raises(cal.NotComputable):
        boxed(cal.predictions(y, p, attributes, cluster=cluster_code), tables).ranges(0.01)
