"""Every outcome of a few rows and days, counted: bets against the tolerance, e-process, e-detector, ranges, shares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.monitor import state
from calibrant.stats.sequential import bets, ranges
from calibrant.stats.sequential.detector import Detector

P = np.array([0.04, 0.5, 0.5, 0.97])
DIRECTIONS = (
    bets.Levels(np.zeros(4, dtype=np.int32), 1),
    bets.Levels(np.array([0, 0, 1, 1]), 2),
    bets.Function(np.array([1.0, 0.4, -0.7, 0.0])),
)


def outcomes(rates: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Every outcome of independent rows, with its probability."""
    for bits in itertools.product((0.0, 1.0), repeat=len(rates)):
        y = np.array(bits)
        yield y, float(np.prod(np.where(y > 0, rates, 1.0 - rates)))


def within(tolerance: float) -> Iterator[np.ndarray]:
    """Probabilities within the tolerance of the scores, at its ends and in the middle."""
    for signs in itertools.product((-1.0, 0.0, 1.0), repeat=len(P)):
        yield np.clip(P + tolerance * np.array(signs), 0.0, 1.0)


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_bets_on_rows_win_nothing_in_the_mean(tolerance: float) -> None:
    every = [(y, np.exp(bets.row_gains(y, P, DIRECTIONS, tolerance))) for y, _ in outcomes(P)]
    means = [sum(won * np.prod(np.where(y > 0, rates, 1.0 - rates)) for y, won in every) for rates in within(tolerance)]
    assert np.max(means) <= 1.0 + 1e-12
    assert np.allclose(np.max(means, axis=0), 1.0)  # at some probabilities it is a fair game: nothing is given away


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
@pytest.mark.parametrize("cluster", [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]])
def test_bets_on_clusters_win_nothing_in_the_mean_however_rows_depend(tolerance: float, cluster: list[int]) -> None:
    """Rows of a cluster share one uniform number, the strongest dependence there is; or none."""
    codes = np.array(cluster)
    size = max(cluster) + 1

    def won(y: np.ndarray) -> np.ndarray:
        return np.exp(bets.cluster_gains(y, P, DIRECTIONS, tolerance, codes, size))

    def mean(rates: np.ndarray) -> np.ndarray:
        total = 0.0
        for chosen in itertools.product(range(len(P) + 1), repeat=size):
            cuts = [np.sort(np.append(rates[codes == g], (0.0, 1.0))) for g in range(size)]
            ends = [(c[min(k, len(c) - 2)], c[min(k + 1, len(c) - 1)]) for c, k in zip(cuts, chosen, strict=True)]
            if any(k > len(c) - 2 for c, k in zip(cuts, chosen, strict=True)):
                continue
            shared = np.array([(low + high) / 2 for low, high in ends])[codes]
            total = total + np.prod([high - low for low, high in ends]) * won((shared < rates).astype(float))
        return np.asarray(total)

    worst = np.max([mean(rates) for rates in list(within(tolerance))[::8]], axis=0)
    assert worst.max() <= 1.0 + 1e-12
    assert worst.max() > 0.99


def test_evidence_of_every_start_adds_up_to_the_days() -> None:
    """Three days of two rows, the second after three days: an e-process of mean one, an e-detector of mean five."""
    p = np.array([0.2, 0.6])
    directions = (bets.Levels(np.zeros(2, dtype=np.int32), 1), bets.Levels(np.array([0, 1]), 2))
    days = ((10, 1), (13, 3), (14, 1))
    ever = change = 0.0
    prior = np.repeat(np.array([[0.5], [0.25], [0.25]]), 10, axis=1)
    gains = {tuple(y): (bets.row_gains(y, p, directions, 0.0), q) for y, q in outcomes(p)}
    for path in itertools.product(gains.values(), repeat=3):
        d = Detector.fresh(prior)
        for (gain, _), (day, elapsed) in zip(path, days, strict=True):
            d = d.after(gain, day, elapsed)
        weight = float(np.prod([q for _, q in path]))
        ever, change = ever + weight * np.exp(d.log_ever), change + weight * np.exp(d.log_change)
    assert ever == pytest.approx(1.0)
    assert change == pytest.approx(5.0)


def test_starts_that_share_a_block_lose_no_evidence() -> None:
    rng = np.random.default_rng(3)
    prior = np.full((4, 10), 1 / 40)
    d, gains = Detector.fresh(prior), []
    for day in range(90):
        gains.append(rng.normal(-0.01, 0.2, (4, 10)))
        d = d.after(gains[-1], day, 1)
    after = np.cumsum(np.array(gains)[::-1], axis=0)[::-1]  # of each start, what its bets have won
    assert d.log_change == pytest.approx(float(np.log((np.exp(after) * prior).sum())))
    assert len(d.days) < 25
    assert d.days.sum() == 90
    direct = (np.exp(after) * prior).sum(axis=(1, 2))
    most, first, last = d.onset(0.9)
    share = direct[first : last + 1].sum() / direct.sum()
    assert share >= 0.9
    assert first <= most <= last
    assert d.directions(change=True).sum() == pytest.approx(1.0)
    assert d.restarted().log_change == -np.inf
    assert d.restarted().log_ever == d.log_ever  # any error is looked for once, from the first day on


RATES = {
    "alike": np.full(8, 0.3),
    "unlike": np.array([0.0, 0.0, 0.1, 0.2, 0.5, 0.6, 0.9, 1.0]),
    "rare": np.array([0.02, 0.02, 0.05, 0.05, 0.1, 0.1, 0.2, 0.3]),
}
TRUE = RATES["unlike"]


@pytest.mark.parametrize("clusters", [None, np.array([0, 0, 0, 1, 1, 2, 3, 4])])
@pytest.mark.parametrize("name", RATES)
def test_the_range_of_a_gap_misses_as_seldom_as_it_says(name: str, clusters: np.ndarray | None) -> None:
    rates, p, delta = RATES[name], np.full(8, 0.2), 0.4
    gap, missed = float((rates - p).mean()), 0.0
    codes = np.zeros(8, dtype=np.int64)
    for y, q in outcomes(rates):
        sums = ranges.day_sums(y, p, codes, 1, clusters)[0]
        low, high = ranges.gap_limits(sums, delta)
        assert -1.0 <= low <= high <= 1.0
        missed += q * (not low - 1e-9 <= gap <= high + 1e-9)
    assert missed <= delta


def test_the_evidence_behind_a_range_has_mean_one_at_most() -> None:
    """At the true gap, of bets as large as they may be: its bound is an e-value by itself, of either side."""
    p, codes = np.full(8, 0.3), np.zeros(8, dtype=np.int64)
    for rates in (np.full(8, 0.05), np.full(8, 0.9), RATES["unlike"]):
        for side in (1.0, -1.0):
            mean = 0.0
            for y, q in outcomes(rates):
                sums, seen = ranges.day_sums(y, p, codes, 1, None)[0], []
                with (
                    patch.object(ranges, "_bets", lambda *_: np.array([0.45])),
                    patch.object(ranges.Gap, "of", lambda log_e, seen=seen: seen.append(log_e) or NOTHING),
                ):
                    ranges.gap_limits(sums, 0.1)
                mean += q * np.exp(seen[0](float((rates - p).mean()), side))
            assert mean <= 1.0 + 1e-12
            assert mean > 0.2


class Nothing:
    def limits(self, _: float) -> tuple[float, float]:
        return -1.0, 1.0


NOTHING = Nothing()


@pytest.mark.parametrize("rates", [np.full(8, 0.5), np.array([0.0, 0.2, 0.2, 0.5, 0.6, 0.9, 1.0, 1.0])])
def test_the_limit_of_the_error_misses_as_seldom_as_it_says(rates: np.ndarray) -> None:
    p, delta, missed = np.repeat([0.1, 0.8], 4), 0.4, 0.0
    error = abs((rates - p)[:4].sum()) / 8 + abs((rates - p)[4:].sum()) / 8
    for y, q in outcomes(rates):
        missed += q * (ranges.error_limit(ranges.level_counts(y, p), delta) < error - 1e-9)
    assert missed <= delta


def test_alpha_is_spent_once_over_all_looks_and_ranges() -> None:
    looks = np.arange(1, 200_001)
    assert float(sum(ranges.look_alpha(0.05, 1.0) / looks**2)) == pytest.approx(0.05, rel=1e-4)
    assert ranges.look_alpha(0.05, 7) == pytest.approx(ranges.look_alpha(0.05, 1) / 49)
    assert ranges.look_alpha(0.05, 1) <= 0.05 * 6 / np.pi**2 + 1e-15


@pytest.mark.parametrize("more", [{}, {"by": "g"}, {"by": "g", "shared_shocks": True}, {"by": ["g", "h"]}])
def test_the_ranges_of_a_look_share_its_alpha(more: dict[str, object]) -> None:
    """What is spent on every range of the third look, added up."""
    spent: list[float] = []

    def gap(_: np.ndarray, delta: float) -> tuple[float, float]:
        spent.append(delta)
        return -1.0, 1.0

    def error(_: np.ndarray, delta: float) -> float:
        spent.append(delta)
        return 1.0

    watch = cal.Monitor(label="y", score="p", limit=0.1, alpha=0.2, **more)
    rows = cal.predictions([0, 1, 0, 1], [0.2, 0.6, 0.3, 0.4], {"g": list("aabb"), "h": list("abab")})
    with patch.object(state.ranges, "gap_limits", gap), patch.object(state.ranges, "error_limit", error):
        for day in range(3):
            spent.clear()
            watch.update(rows, at=day)
    assert len(spent) == 2 * (len(watch.plan.populations) + ("shared_shocks" not in more))
    assert sum(spent) == pytest.approx(ranges.look_alpha(0.2, 3))


def watching(seed: int, n: int, off: float = 0.0, clusters: int = 0) -> cal.Predictions:
    rng = np.random.default_rng(seed)
    p, g = rng.uniform(0.2, 0.7, n), rng.choice(["a", "b"], n)
    y = rng.uniform(size=n) < p + np.where(g == "a", off, 0.0)
    return cal.predictions(y, p, {"g": g}, cluster=np.arange(n) % clusters if clusters else None)


def test_alarms_are_where_the_evidence_says_and_nowhere_else() -> None:
    """Any error: the first look at 1 / alpha. A change: every look at the days between false alarms."""
    watch = cal.Monitor(label="y", score="p", by="g", alpha=0.2, days_between_false_alarms=20)
    for day in range(40):
        state = watch.update(watching(day, 60, 0.1 * (day > 15)), at=day)
    looks = state.history
    changed = [k.day for k in looks if k.log_change >= np.log(20)]
    first = next(k.day for k in looks if k.log_ever >= -np.log(0.2))
    assert [a.day for a in state.alarms if a.kind == "changed"] == changed
    assert [a.day for a in state.alarms if a.kind == "ever"] == [first]
    # What would tell a price from half of it is among these looks.
    assert any(np.log(10) <= k.log_change < np.log(20) for k in looks)
    assert any(-np.log(0.4) <= k.log_ever < -np.log(0.2) for k in looks)


def test_the_window_holds_its_days_whatever_came_of_them() -> None:
    watch, days = cal.Monitor(label="y", score="p", by="g", limit=0.1, window=4), []
    for day in (0, 1, 2, 5, 6, 7, 12):
        days.append((day, watching(day, 30)))
        state = watch.update(days[-1][1], at=day)
        there = [rows for d, rows in days if d > day - 4]
        y, p = (np.concatenate([getattr(rows, name) for rows in there]) for name in ("y", "p"))
        assert state.window[0].rows == len(y)
        assert state.window[0].gap == pytest.approx((y - p).mean())
        assert state.all_days[0].rows == 30 * len(days)


@pytest.mark.parametrize(
    ("more", "clusters", "independent"), [({"cluster": "c"}, 5, 5), ({"shared_shocks": True}, 0, 1), ({}, 0, 40)]
)
def test_everyones_range_and_bets_count_clusters(more: dict[str, object], clusters: int, independent: int) -> None:
    watch, rows = cal.Monitor(label="y", score="p", **more), watching(0, 40, clusters=clusters)
    watch.update(rows, at=0)
    gains, sums, *_ = watch.plan.day(rows)
    assert sums[0, ranges.CLUSTERS] == independent
    assert sums[0, ranges.LARGEST] == 40 / independent
    if more:
        of = np.arange(40) % independent
        direct = bets.cluster_gains(rows.y.astype(float), rows.p, watch.plan.directions(rows), 0.0, of, independent)
        assert np.allclose(gains, direct)


def test_a_gap_that_is_seen_within_the_limit_is_not_certified_by_it() -> None:
    watch = cal.Monitor(label="y", score="p", limit=0.2, judge="gap")
    state = watch.update(cal.predictions([0, 1] * 15, [0.5] * 30), at=0)
    assert state.window[0].gap == 0.0
    assert max(-state.window[0].low, state.window[0].high) > 0.2
    assert state.verdict == "undecided"
