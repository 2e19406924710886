"""Gaps of rows: what is said of them is wrong as often as it may be, over every outcome that could have been."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats.betting import lower_rates
from calibrant.stats.cells import SCALE, Cells
from calibrant.stats.subgroups import row_gaps
from calibrant.stats.subgroups.row_gaps import bets, bets_are_narrower, binomial, row_gap
from validity.subgroup_saboteurs import plain_lower_rates

DELTAS = (0.24, 0.1, 0.025, 0.0004)


def worst_miss(lower: Any, n: int, delta: float) -> float:
    """The largest probability, over all rates that n rows may have, that a limit of their mean is above it.

    With a given mean, k events are likeliest, and unlikeliest, where some rows are sure, some impossible and all others
    alike (Hoeffding 1956): so all rates are enumerated. Limits rise with k: where the mean is just below the k-th, what
    is missed is k events and more.
    """
    low = np.array([float(lower(k, n, delta)) for k in range(n + 1)])
    assert (np.diff(low) >= 0).all()
    assert (low <= np.arange(n + 1) / n).all()  # rows all sure or impossible
    k, sure, free = np.meshgrid(np.arange(1, n + 1), np.arange(n), np.arange(1, n + 1), indexing="ij")
    rate = (n * low[k] * (1.0 - 1e-12) - sure) / free
    chance = binom.sf(k - 1 - sure, free, np.clip(rate, 0.0, 1.0))
    return float(chance[(rate >= 0.0) & (rate <= 1.0) & (sure + free <= n)].max())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 10, 14, 19, 25])
@pytest.mark.parametrize("delta", DELTAS)
def test_a_limit_is_wrong_as_often_as_it_may_be(n: int, delta: float) -> None:
    """And not less often: delta is what the worst rates take."""
    assert worst_miss(lower_rates, n, delta) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("delta", [0.1, 0.025])
def test_without_hoeffdings_exception_it_would_be_wrong_more_often(delta: float) -> None:
    """One event, and all rows but one impossible: the enumeration alone sees it."""
    assert worst_miss(plain_lower_rates, 25, delta) > delta * 1.01


GAPS = (
    (0.0, 0.0, 0.0),
    (0.3, -0.2, 0.1),
    (-0.1, -0.1, -0.1),
    (0.05, 0.4, -0.5),
    (0.6, 0.2, 0.2),  # so large that scores moved by it are cut at 1, and at 0
    (-0.1, -0.3, -0.7),
)


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("method", ["binomial", "bets", "bets on a coarse grid"])
def test_evidence_holds_for_rows_of_unequal_gaps(gaps: Any, method: str) -> None:
    """A p-value is at most a level as often as that; an e-value has a mean of at most one, wherever it is true."""
    exact, make = method == "binomial", cells_of if method == "bets" else partial(grid, cells=4)
    score = np.repeat([0.1, 0.5, 0.8], 3)
    rate = np.repeat(np.array([0.1, 0.5, 0.8]) + gaps, 3)
    off = float((rate - score).mean())
    values = {(k.sum(), *np.add.reduceat(k, (0, 3, 6))): k for k in map(np.array, product([0, 1], repeat=9))}
    found: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for key, y in values.items():
        chance = float(np.prod([binom.pmf(k, 3, r) for k, r in zip(key[1:], rate[::3], strict=True)]))
        evidence = binomial(int(y.sum()), 9, float(score.sum())) if exact else bets(make(score, y), 0.05)
        for away in (0.0, 0.05, 0.3):
            found.setdefault((1.0, away), []).append((chance, evidence.at_most.at(off + away)))
            found.setdefault((-1.0, away), []).append((chance, evidence.at_least.at(off - away)))
    for reported in found.values():
        chance, log_e = np.array(reported).T
        if exact:
            p = np.exp(-log_e)
            for level in np.unique(p):
                assert chance[p <= level].sum() <= level + 1e-9
        else:
            assert chance @ np.exp(log_e) <= 1.0 + 1e-9


def cells_of(score: Any, y: Any) -> Cells:
    """Rows, each block one of two in turn, by value of the score."""
    values, at = np.unique(score, return_inverse=True)
    counts = np.zeros((2, len(values), 2), dtype=np.int64)
    np.add.at(counts, (np.arange(len(y)) % 2, at, np.asarray(y, dtype=np.int64)), 1)
    return Cells.levels(counts, values)


@pytest.mark.parametrize("events", [0, 1, 2, 11, 19, 20])
@pytest.mark.parametrize("delta", [0.3, 0.025, 1e-5])
def test_limits_and_evidence_agree(events: int, delta: float) -> None:
    """What a limit excludes is what the evidence refutes, at the same price; of a rate below 0 all is refuted."""
    found = binomial(events, 20, 20 * 0.3)
    for one, side in ((found.at_most, 1.0), (found.at_least, -1.0)):
        limit = one.limit(delta)
        assert one.at(limit - side * 1e-9) >= -np.log(delta)
        assert one.at(limit + side * 1e-9) <= -np.log(delta)
    assert found.at_most.at(-0.31) == np.inf
    assert found.at_least.at(0.71) == np.inf


def sharp(rng: Any, n: int) -> Any:
    return np.where(rng.random(n) < 0.5, 0.02, 0.98)


def grid(p: Any, y: Any, cells: int = 1024) -> Cells:
    counts, sums = np.zeros((8, cells, 2), dtype=np.int64), np.zeros((8, cells, 2), dtype=np.int64)
    read = np.minimum((p * SCALE).astype(np.int64), int(SCALE) - 1)
    where = np.arange(len(p)) % 8, read * cells >> 30, np.asarray(y, dtype=np.int64)
    np.add.at(counts, where, 1)
    np.add.at(sums, where, read)
    return Cells.grid(counts, sums)


@pytest.mark.parametrize("n", [60, 400, 5000])
@pytest.mark.parametrize(
    ("draw", "narrower"),
    [(lambda rng, n: rng.random(n), False), (lambda rng, n: rng.beta(0.6, 40, n), False), (sharp, True)],
    ids=["uniform", "rare", "sharp"],
)
def test_scores_alone_choose_the_narrower_method(n: int, draw: Any, narrower: bool) -> None:
    """Right where it matters, and the same whatever the outcomes are."""
    rng = np.random.default_rng(n)
    p = draw(rng, n)
    y = rng.random(n) < p
    said = {bets_are_narrower(grid(p, labels), 0.025) for labels in (y, ~y, np.zeros(n), rng.random(n) < 0.5)}
    assert said == {narrower}
    cells = grid(p, y)
    width = {
        name: of.at_least.limit(0.025) - of.at_most.limit(0.025)
        for name, of in {"bets": bets(cells, 0.025), "binomial": binomial(cells.events, n, cells.expected)}.items()
    }
    assert (width["bets"] < width["binomial"]) == narrower
    assert row_gap(cells, 0.025).p_values is not narrower


def test_bets_read_of_outcomes_no_stake() -> None:
    """A stake that outcomes moved would not be fixed given the scores."""
    rng = np.random.default_rng(1)
    for p in (rng.random(500), sharp(rng, 100)):  # of the usual stake, and of one picked from several
        y = rng.random(len(p)) < p
        said = {row_gaps._bet_size(grid(p, labels), 0.05) for labels in (y, np.ones(len(p)), np.zeros(len(p)))}
        assert len(said) == 1
    assert said.pop() > row_gaps.LARGE


def test_bets_of_few_rows_may_lose_all_they_have() -> None:
    """Twenty rows, at a share of sixty groups: the stake follows the hypothesis, and evidence keeps its order."""
    score = np.full(20, 0.3)
    found = bets(cells_of(score, np.arange(20) < 6), 0.0004)
    m = np.linspace(-0.299, 0.699, 400)
    assert (np.diff([found.at_most.at(x) for x in m]) <= 1e-12).all()
    assert (np.diff([found.at_least.at(x) for x in m]) >= -1e-12).all()
    assert found.at_least.limit(0.0004) - found.at_most.limit(0.0004) < 0.75
    assert found.at_most.at(-0.301) == found.at_least.at(0.701) == np.inf  # no rates have such a mean


@pytest.mark.parametrize("cells", [4, 1024])
def test_rates_of_a_hypothesis_have_its_mean(cells: int) -> None:
    """Scores of every kind, next to 0 and 1 too: rates stand in [0, 1], and add up to scores and gap."""
    rng = np.random.default_rng(3)
    p = np.concatenate([rng.beta(0.3, 0.3, 200), [0.0, 1.0]])
    chords = grid(p, rng.random(len(p)) < p, cells).joined.chords
    rates, rows = row_gaps._placed(chords)
    assert rates.score @ chords.weight == pytest.approx(p.sum(), abs=1e-6)
    assert sum(rows) == pytest.approx(chords.weight)
    mean = float(rates.score @ chords.weight) / len(p)
    for m in (*np.linspace(-mean, 1.0 - mean, 41), 0.0, 1e-9):
        at = rates.at(m)
        assert at.min() >= 0.0
        assert at.max() <= 1.0
        assert at @ chords.weight == pytest.approx((mean + m) * len(p), abs=1e-10)


def test_bets_know_that_no_rate_is_over_one() -> None:
    """Sharp scores of few rows: shorter than where the hypothesis is added to each score, .2267 on average."""
    widths = []
    for seed in range(40):
        rng = np.random.default_rng([60, seed])
        p = rng.beta(0.3, 0.3, 60)
        widths.append(np.ptp(bets(cells_of(p, rng.random(60) < p), 0.025).limits(0.05)))
    assert np.mean(widths) < 0.225
