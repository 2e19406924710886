"""Every outcome of a few rows and days, counted: bets on a tolerance, e-process, e-detector, ranges, shares, drift."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import ndtr

import calibrant as cal
from calibrant.audit.monitor import state
from calibrant.audit.monitor.drift import Drift, DriftDay, DriftState, Reference
from calibrant.audit.monitor.plan import Plan, Settings
from calibrant.stats.sequential import bets, exchange, ranges
from calibrant.stats.sequential.detector import Detector

from .acceptance import refuted

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


def floor_misses(rng: np.random.Generator, *, seen: bool) -> bool:
    """Whether calibrated scores in twenty ranges are found off, by signs of rows before; `seen`: of the same rows."""
    p, cell = np.tile(np.linspace(0.1, 0.9, 20), 40), np.tile(np.arange(20), 40)
    before, now = (ranges.cell_sums((rng.uniform(size=800) < p).astype(float), p, cell, 20) for _ in range(2))
    sums = ranges.day_sums(p, p, np.zeros(800, dtype=np.int64), 1, None)[0]  # of which residuals and squares are reset
    return ranges.error_floor(sums, now, now if seen else before, 0.3) > 0.0


def test_the_floor_of_the_error_misses_as_seldom_as_it_says() -> None:
    """And the saboteur, signs that have seen the rows, is seen to fail."""
    rng = np.random.default_rng(0)
    assert not refuted(sum(floor_misses(rng, seen=False) for _ in range(300)), 300, 0.3)
    assert refuted(sum(floor_misses(rng, seen=True) for _ in range(60)), 60, 0.3)


def test_the_floor_of_the_error_finds_what_the_gap_hides() -> None:
    """Ranges of the score that are off by ten points, half of them up: the gap is zero."""
    p, cell = np.tile([0.2, 0.4, 0.6, 0.8], 1000), np.tile(np.arange(4), 1000)
    off, rng = np.tile([0.1, -0.1, 0.1, -0.1], 1000), np.random.default_rng(0)
    old, new = ((rng.uniform(size=4000) < p + off).astype(float) for _ in range(2))
    sums, own = ranges.day_sums(new, p, np.zeros(4000, dtype=int), 1, None)[0], ranges.cell_sums(new, p, cell, 4)
    low, high = ranges.gap_limits(sums, 0.1)
    floor = ranges.error_floor(sums, own, ranges.cell_sums(old, p, cell, 4), 0.05)
    assert low < 0 < high
    assert 0.07 < floor < 0.1
    assert ranges.error_floor(sums, own, np.zeros((4, 3)), 0.05) == 0.0  # no rows before: no signs
    half = np.array([[5.0, 9.0, 26.0]] * 4)  # residuals before that are within their noise
    assert ranges.error_floor(sums, own, half, 0.05) == 0.0


def test_signs_come_from_the_window_before_and_bound_everyones_error() -> None:
    watch, before, now = cal.Monitor(label="y", score="p", limit=0.03, alpha=0.5, window=3), [], []
    rng = np.random.default_rng(1)
    for day in range(6):
        p = rng.choice([0.2, 0.4, 0.6, 0.8], 3000)
        rows = cal.predictions(rng.uniform(size=3000) < p + np.where((p == 0.2) | (p == 0.6), 0.1, -0.1), p)
        (before if day < 3 else now).append(watch.plan.day(rows) if day else None)
        state = watch.update(rows, at=day)
        before[0] = before[0] or watch.plan.day(rows)
    sums = ranges.added(np.stack([k.sums[0] for k in now]))
    own, old = (sum(k.cells for k in some) for some in (now, before))
    spent = 0.8 * ranges.look_alpha(0.5, 6) * 0.5 * 0.2
    assert state.window[0].error_low == pytest.approx(ranges.error_floor(sums, own, old, spent))
    assert state.window[0].error_low > 0.06
    assert state.window[0].verdict == "over"
    assert max(-state.window[0].low, state.window[0].high) < 0.03  # by its gap it would be within
    assert state.all_days[0].error_low < 0.02  # since the start there is no window before


def test_alpha_is_spent_once_over_all_looks_and_ranges() -> None:
    looks = np.arange(1, 200_001)
    assert float(sum(ranges.look_alpha(0.05, 1.0) / looks**2)) == pytest.approx(0.05, rel=1e-4)
    assert ranges.look_alpha(0.05, 7) == pytest.approx(ranges.look_alpha(0.05, 1) / 49)
    assert ranges.look_alpha(0.05, 1) <= 0.05 * 6 / np.pi**2 + 1e-15


@pytest.mark.parametrize("more", [{}, {"by": "g"}, {"by": "g", "shared_shocks": True}, {"by": ["g", "h"]}])
@pytest.mark.parametrize("window", [1, 28])
def test_the_ranges_of_a_look_share_its_alpha(more: dict[str, object], window: int) -> None:
    """What is spent on every range of the third look, added up; on the floor only where a window came before."""
    spent: list[float] = []

    def gap(_: np.ndarray, delta: float) -> tuple[float, float]:
        spent.append(delta)
        return -1.0, 1.0

    def error(_: np.ndarray, delta: float) -> float:
        spent.append(delta)
        return 1.0

    def floor(*_: np.ndarray) -> float:
        return error(_[0], float(_[-1]))

    watch = cal.Monitor(label="y", score="p", limit=0.1, alpha=0.2, window=window, **more)
    rows = cal.predictions([0, 1, 0, 1], [0.2, 0.6, 0.3, 0.4], {"g": list("aabb"), "h": list("abab")})
    with (
        patch.object(state.ranges, "gap_limits", gap),
        patch.object(state.ranges, "error_limit", error),
        patch.object(state.ranges, "error_floor", floor),
    ):
        for day in range(3):
            spent.clear()
            watch.update(rows, at=day)
    independent = "shared_shocks" not in more
    present = 1 + 2 * len(np.atleast_1d(more.get("by", [])))  # "other" and "missing" have no rows, and no share
    assert len(spent) == 2 * (present + independent) + (independent and window == 1)
    assert watch.plan.day(rows).cells.size == (3 * (len(watch.plan._edges) + 1) if independent else 0)
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


# ---- drift: every way in which rows can be dealt to a reference and days ----

DRAWS = (np.arange(200) + 0.5) / 200  # of the ties: the mean over them is that over all, up to 1 / 400
AT = np.linspace(0.05, 0.95, 19)
REFERENCE, DAY = 2, 2  # rows of the reference, and of each of two days


def uniform(count: int, rows: int, before: int, rows_before: int) -> np.ndarray:
    """Ranks of a count as numbers between 0 and 1, one for each draw."""
    same = np.full(len(DRAWS), count), rows, np.full(len(DRAWS), before), rows_before
    return np.asarray(ndtr(exchange.ranks(*same, DRAWS)))


def joint(ones: int, *, joins: bool) -> np.ndarray:
    """How probable it is that the ranks of two days are at most a and b, if `ones` of all six rows have the level.

    `joins`: the first day's rows are compared with later, as the library has it; else the reference alone is.
    """
    total, rows = np.zeros((len(AT), len(AT))), REFERENCE + 2 * DAY
    places = list(itertools.combinations(range(rows), ones))
    for place in places:
        has = np.isin(np.arange(rows), place)
        old, first, second = (int(c.sum()) for c in np.split(has, [REFERENCE, REFERENCE + DAY]))
        a = uniform(first, DAY, old, REFERENCE)
        more = (old + first, REFERENCE + DAY) if joins else (old, REFERENCE)
        b = uniform(second, DAY, *more)
        total += np.outer((a[:, None] <= AT).mean(axis=0), (b[:, None] <= AT).mean(axis=0))
    return total / len(places)


@pytest.mark.parametrize("ones", range(REFERENCE + 2 * DAY + 1))
def test_ranks_of_days_are_uniform_and_independent_whatever_the_share(ones: int) -> None:
    assert np.abs(joint(ones, joins=True) - np.outer(AT, AT)).max() < 0.01


@pytest.mark.parametrize("ones", [2, 3])
def test_a_reference_that_is_used_again_is_seen_to_fail(ones: int) -> None:
    """The saboteur: each day against the reference alone, which is wrong by the same chance every day."""
    assert np.abs(joint(ones, joins=False) - np.outer(AT, AT)).max() > 0.05


def test_bets_on_a_rank_win_nothing_in_the_mean() -> None:
    z, step = np.linspace(-12.0, 12.0, 20_001, retstep=True)
    density = np.exp(-(z**2) / 2.0) / np.sqrt(2.0 * np.pi) * step
    means = density @ np.exp(exchange.gains(z))
    assert means == pytest.approx(np.ones(len(means)))
    up = exchange.gains(np.array([2.0]))[0]
    assert up[: len(exchange.SIZES)].max() > 0 > up[len(exchange.SIZES) :].max()


def test_starts_and_shares_spend_alpha_once() -> None:
    assert sum(exchange.start_share(k) for k in range(1, 5001)) == pytest.approx(1.0, abs=1e-3)
    blocks = np.array([4, 2, 1])
    shares = np.array([exchange.start_share(k) for k in range(1, 8)])
    means = [shares[:4].mean(), shares[4:6].mean(), shares[6]]
    assert np.exp(exchange.start_weights(blocks)) == pytest.approx(means)
    rng = np.random.default_rng(0)
    data = cal.predictions(rng.uniform(size=500) < 0.5, rng.uniform(size=500), {"g": rng.choice(list("abc"), 500)})
    s = Settings(label="y", score="p", by=("g",), drift_alpha=0.2)
    r = Reference.of(s, Plan.of(s, data), data)
    assert r.prior.sum() == pytest.approx(1.0)
    assert r.spent == pytest.approx(0.2)
    sums = [r.prior[: len(r.thresholds)].sum(), r.prior[len(r.thresholds) :].sum()]
    assert sums == pytest.approx([0.5, 0.5])
    assert r.rows == 400  # a fifth fixes the levels, and is not compared with
    thin = Reference.of(s, Plan.of(s, data), cal.predictions(data.y, data.p, {"g": [None] * 500}))
    assert (thin.attributes, thin.spent) == ((), pytest.approx(0.1))  # the column's part is nobody else's


def test_a_share_has_changed_where_its_own_evidence_says_so_and_nowhere_else() -> None:
    """By what each share has won by itself over every start since it was named, against its part of alpha.

    The second share changes back: its rows since it was named are what it is compared with, and the first of these
    days with nothing.
    """
    rng = np.random.default_rng(1)
    prior = np.array([0.5, 0.3, 0.2]) / 8
    start = Reference(alpha=0.2, unwatched=(), attributes=(), thresholds=(0.2, 0.5, 0.8), rows=80, counts=(60, 40, 20))
    with patch.object(Reference, "prior", np.repeat(prior[:, None], 8, axis=1)):
        now = DriftState.fresh(start)
    found: list[tuple[int, int, int]] = []  # the share, the day, and how often before
    base = [(80, 60), (80, 40), (80, 20)]  # rows that the next are compared with, and how many have the share
    won: list[list[np.ndarray]] = [[], [], []]
    for day in range(90):
        rates = np.array([0.75, 0.5, 0.25]) + 0.16 * (day > 20) * np.array([1, day < 50, 1])
        new = rng.binomial(30, rates)
        draws = np.random.default_rng([45, 1, day]).uniform(size=3)
        evidence = np.zeros(3)
        for i, (rows, having) in enumerate(base):
            if rows:
                z = exchange.ranks(new[[i]], 30, np.array([having]), rows, draws[[i]])
                won[i].append(exchange.gains(z)[0])
                since = np.cumsum(np.array(won[i])[::-1], axis=0)[::-1]
                weight = 1.0 / (np.arange(1, len(since) + 1) * np.arange(2, len(since) + 2))
                evidence[i] = (np.exp(since) * weight[:, None] * prior[i]).sum()
            base[i] = rows + 30, having + new[i]
        times = np.array([sum(f[0] == i for f in found) for i in range(3)])
        part = 6.0 / (np.pi * (times + 1)) ** 2
        now = now.after(DriftDay(day, 30, new), 10, start)
        assert now.history[-1] == pytest.approx(np.log(np.maximum(evidence * part, np.exp(-30.0))).max())
        for i in np.flatnonzero(evidence * part >= 5.0):
            found.append((int(i), day, int(times[i])))
            base[i], won[i] = (0, 0), []
        assert {(f.share, f.day, f.earlier) for f in now.detected} == set(found)
    assert sorted({(i, k) for i, _, k in found}) == [(0, 0), (1, 0), (1, 1), (2, 0)]
    by = {(f.share, f.earlier): f for f in now.detected}
    assert all(15 <= f.onset[0] <= f.day for f in by.values())
    back = by[1, 1]
    assert by[1, 0].day < 50 <= back.day
    assert 45 <= back.onset[0] <= back.day
    assert back.before[0] / back.before[1] == pytest.approx(0.66, abs=0.05)
    assert now.counts.shape == (10, 3)


def test_the_parts_of_alpha_of_a_share_that_is_named_again_add_up_to_one() -> None:
    assert exchange.part(np.arange(1, 5001)).sum() == pytest.approx(1.0, abs=1e-3)
    blocks = np.array([4, 2, 1])
    shares = np.array([1 / 2, 1 / 6, 1 / 12, 1 / 20, 1 / 30])
    means = [shares[:2].mean(), shares[2:4].mean(), shares[4]]
    assert np.exp(exchange.start_weights(blocks, 2)) == pytest.approx(means)
    assert np.exp(exchange.start_weights(blocks, 5)) == pytest.approx([1.0, 1 / 2, 1 / 6])


def test_levels_come_from_rows_that_are_not_compared_with() -> None:
    rng = np.random.default_rng(2)
    p, g = rng.uniform(size=1000), rng.choice(list("ab"), 1000)
    s = Settings(label="y", score="p", by=("g",))
    data = cal.predictions(rng.uniform(size=1000) < p, p, {"g": g})
    drift = Drift.of(s, Plan.of(s, data), data)
    used = np.random.default_rng([45, 0, 0]).permutation(1000)[:200]
    rest = np.setdiff1d(np.arange(1000), used)
    r = drift.reference
    assert r.thresholds == pytest.approx(np.quantile(p[used], np.arange(1, 10) / 10))
    direct = [*(int(np.sum(p[rest] >= t)) for t in r.thresholds), *(int(np.sum(g[rest] == v)) for v in "ab"), 0, 0]
    assert list(r.counts) == direct
