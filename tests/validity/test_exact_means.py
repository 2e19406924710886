"""Means: exact miss probabilities and the inequalities they rest on, of Theorem 3 and of a covariate among events."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats import measures
from calibrant.stats.bounds import _plug_in, _runs, variation_upper
from calibrant.stats.cells import SCALE, Cells
from calibrant.views.population import Population
from validity.enumeration import just_beyond, level_cells


@pytest.mark.parametrize("s", [0.0, 0.2, 0.5, 1.0])
def test_bounded_variation_miss_probability_of_one_score(s):
    for n in (2, 20, 300):
        for variation in (0.05, 1.0):
            cells = [level_cells([[[n - k, k]]], [s]) for k in range(n + 1)]
            bounds = np.array([variation_upper(c, variation, 0.3, np.array([True]))[0] for c in cells])
            at = just_beyond(bounds, s)
            missed = (binom.pmf(np.arange(n + 1), n, at[:, None]) * (bounds < np.abs(at - s)[:, None] - 1e-9)).sum(
                axis=1
            )
            assert missed.max() <= 0.3


def population(q, y, size=64):
    counts, sums = np.zeros((1, size, 2), dtype=np.int64), np.zeros((1, size, 2))
    np.add.at(counts, (0, q * size >> 30, y), 1)
    np.add.at(sums, (0, q * size >> 30, y), q)
    return Cells.grid(counts, sums)


@pytest.mark.parametrize("seed", range(20))
def test_plug_in_of_cells_is_at_least_the_plug_in_of_rows(seed):
    rng = np.random.default_rng([52, seed])
    n, m = 200, int(rng.integers(1, 80))
    q = np.sort((rng.beta(0.5, 0.5, n) * SCALE * (1 - 1e-9)).astype(np.int64))
    y = rng.integers(0, 2, n)
    cells = population(q, y)
    plug_in, longest = _plug_in(cells, m, np.zeros(cells.size, dtype=bool))
    where = cells.occupied()
    rows = cells.totals[where].sum(axis=1)
    run = np.repeat(_runs(rows, m), rows)
    mean = np.bincount(run, y) / np.bincount(run)
    assert plug_in >= np.abs(mean[run] - q / SCALE).mean() - 1e-9
    assert longest == np.bincount(run).max()


@pytest.mark.parametrize("seed", range(20))
def test_run_means_of_a_monotone_rate_are_near_it(seed):
    """``sum |eta_i - run mean| <= longest V / 2``, whatever the runs."""
    rng = np.random.default_rng([53, seed])
    rows = rng.integers(1, 15, 40)
    run = np.repeat(_runs(rows, int(rng.integers(1, 60))), rows)
    jumps = rng.random(len(run)) * (rng.random(len(run)) < rng.choice([0.02, 0.5]))
    eta = np.cumsum(jumps)
    mean = np.bincount(run, eta) / np.bincount(run)
    assert np.abs(eta - mean[run]).sum() <= np.bincount(run).max() * (eta[-1] - eta[0]) / 2 + 1e-9


def test_runs_never_exceed_their_size_unless_one_cell_does():
    rng = np.random.default_rng(54)
    for m in (1, 5, 30):
        rows = rng.integers(1, 12, 100)
        size = np.bincount(_runs(rows, m), rows)
        cells = np.bincount(_runs(rows, m))
        assert ((size <= m) | (cells == 1)).all()


def test_only_a_cell_of_one_score_escapes_the_oscillation_term():
    raw = np.zeros((2, 1 << 14, 6), dtype=np.int64)
    for cell, block, rest in ((3, 0, 7), (3, 1, 7), (9, 0, 7), (9, 1, 8), (11, 0, 0)):
        raw[block, cell, 0] += 1
        raw[block, cell, 2] += rest
        raw[block, cell, 4] += rest * rest
    single = Population(raw, None).single
    assert single[[3, 11]].all()
    assert not single[9]
    assert not Population(raw[..., :4], None).single.any()


# ---- the mean of a covariate among the events, of these rows ----

HOSTILE = ("right", "half of the rate", "says nothing", "the wrong way round", "never and always", "sure of the few")


def few_rows(seed, n, score):
    """Draw a covariate with one value far off, true rates that follow it, weights, and a score."""
    rng = np.random.default_rng([54, seed])
    if score == "sure of the few":  # events are at the least value, and all that is expected at the largest
        x = np.where(np.arange(n) < n - 1, 1.0, 0.0)
        return x, np.where(x, 0.02, 0.9), np.where(x, 0.9, 0.99), np.ones(n)
    x, rate = rng.normal(size=n), rng.uniform(0.02, 0.98, n)
    x[0], rate[x > np.median(x)] = 6.0, rng.uniform(0.6, 0.99, int((x > np.median(x)).sum()))
    p = {
        "right": rate,
        "half of the rate": rate / 2,
        "says nothing": np.full(n, 0.5),
        "the wrong way round": 1 - rate,
        "never and always": (rng.random(n) < 0.5).astype(float),
    }[score]
    p[1] = max(p[1], 0.1)
    return x, rate, p, rng.choice([0.5, 1.0, 3.0], n)


def outcomes(rate, cluster):
    """Every outcome that can be with its probability: rows of one cluster have one uniform number."""
    each = []
    for c in np.unique(cluster):
        mine = np.flatnonzero(cluster == c)
        steps = np.concatenate([[0.0], np.sort(rate[mine]), [1.0]])
        each.append([(b - a, mine[rate[mine] > (a + b) / 2]) for a, b in pairwise(steps) if b > a])
    for choice in product(*each):
        y = np.zeros(len(rate), dtype=int)
        for _, events in choice:
            y[events] = 1
        yield float(np.prod([q for q, _ in choice])), y


def read(x, p, y, weights, cluster, alone):
    columns = np.ones(len(y)), p, y.astype(float), p**2, p * y, weights
    return measures.Sums(*columns) if alone else measures.SumsByCluster(*columns, cluster)


@pytest.mark.parametrize("score", HOSTILE)
@pytest.mark.parametrize("size", [1, 3])
def test_wealth_of_bets_on_the_mean_of_the_events_grows_by_nothing_on_average(score, size):
    """``E exp(k sum w p a) prod (1 + k w a (y - p)) <= exp(k sum w r a)``, whatever p is; and it never runs out."""
    n = 6 if size == 1 else 9
    x, rate, p, weights = few_rows(size, n, score)
    cluster = np.arange(n) // size
    place = (x - x.min()) / np.ptp(x)
    truth = (weights * rate) @ place / (weights @ rate)
    every = [(q, read(x, p, y, weights, cluster, size == 1)) for q, y in outcomes(rate, cluster)]
    assert sum(q for q, _ in every) == pytest.approx(1.0)
    for m in (truth, truth + 0.1, 0.9):
        a = place - m
        safest = 0.999 / max(sums.loss(a) for _, sums in every)
        for bet in safest * np.array([0.1, 0.5, 1.0]):
            log_e = np.array([bet * float((weights * p) @ a) + sums.wealth(bet, a) for _, sums in every])
            assert np.isfinite(log_e).all()
            mean = float(np.array([q for q, _ in every]) @ np.exp(log_e))
            assert mean <= np.exp(bet * float((weights * rate) @ a)) * (1 + 1e-12)


@pytest.mark.parametrize("score", HOSTILE)
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_mean_of_the_events_miss_probability(score, size, seed):
    n, delta = 6 if size == 1 else 9, 0.4
    x, rate, p, weights = few_rows(10 * seed + size, n, score)
    cluster = np.arange(n) // size
    truth = float((weights * rate) @ x / (weights @ rate))
    missed = {"low": 0.0, "high": 0.0}
    for q, y in outcomes(rate, cluster):
        low, high = measures.mean_of_events_limits(read(x, p, y, weights, cluster, size == 1), x, delta)
        missed["low"] += q * (low > truth)
        missed["high"] += q * (high < truth)
    assert max(missed.values()) <= delta / 2 + 1e-12, missed


def test_limits_of_the_mean_of_the_events_read_no_outcome_before_they_are_tested(monkeypatch):
    """Ends, places and bets are those of other outcomes too, and what is spent adds up to alpha."""
    n, delta, spent, bets = 20_000, 0.1, [], set()
    limit_of, wealth = measures.limit_of, measures.Sums.wealth

    def spy(log_e, share, start, stop):
        spent.append(share)
        return limit_of(log_e, share, start, stop)

    def staked(sums, bet, a):
        bets.add(bet)
        return wealth(sums, bet, a)

    rng = np.random.default_rng(55)
    x, p, cluster = rng.normal(size=n), rng.uniform(0.05, 0.6, n), np.arange(n) // 5
    y = (rng.random(n) < p).astype(int)
    monkeypatch.setattr(measures, "limit_of", spy)
    measures.mean_of_events_limits(read(x, p, y, np.ones(n), cluster, False), x, delta)
    assert set(spent) == {delta / 2 / 2}  # two bets of clusters, and two ends
    spent.clear()
    monkeypatch.setattr(measures.Sums, "wealth", staked)
    measures.mean_of_events_limits(read(x, p, y, np.ones(n), cluster, True), x, delta)
    assert set(spent) == {delta / 2}
    seen = set(bets)
    measures.mean_of_events_limits(read(x, p, y ^ (rng.random(n) < 0.1), np.ones(n), cluster, True), x, delta)
    assert len(seen) == 3  # the best, and at either end the one that is safe everywhere
    assert bets == seen


def test_a_wide_margin_is_not_what_keeps_it(monkeypatch):
    """Many rows of a model that is right: the truth is missed about as seldom as the price says, and ends are near."""
    rng, n, runs, missed, width = np.random.default_rng(56), 500, 200, 0, 0.0
    x, p = rng.normal(size=n), rng.uniform(0.05, 0.6, n)
    truth = p @ x / p.sum()
    for _ in range(runs):
        y = (rng.random(n) < p).astype(int)
        low, high = measures.mean_of_events_limits(read(x, p, y, np.ones(n), np.arange(n), True), x, 0.5)
        missed += not low <= truth <= high
        width += (high - low) / runs
    assert 3 <= missed <= 100  # of 200 at 50%: most of what an e-value costs is not used
    assert width < 4 * np.sqrt((p * (1 - p)) @ (x - truth) ** 2) / p.sum()
