"""Ranges of boxes by enumeration: unequal event rates, all boxes together, the worst from above, boxes over a limit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats.betting import lower_rates, rate_evidence
from calibrant.stats.subgroups.ranges import ceiling, ends, floor, floors, over, p_values, together
from validity import subgroup_saboteurs as saboteurs
from validity.subgroup_designs import flat, poisson_binomial

ALPHA = 0.05

# ---- One box: every mixture of rows that are certain and rows that are not ----


def mixtures(n: int, mean: float) -> Any:
    """Yield rates of n rows with a given mean: some 1, some 0, the others equal. Hoeffding's extremes are such."""
    for ones in range(int(np.floor(n * mean)) + 1):
        for zeros in range(n - ones):
            rate = (n * mean - ones) / (n - ones - zeros)
            if 0.0 <= rate <= 1.0:
                yield np.array([1.0] * ones + [0.0] * zeros + [rate] * (n - ones - zeros))


def worst_miss(limits: Any, n: int, delta: float) -> float:
    """Return the largest probability, as a multiple of delta, that a lower limit is above the mean rate."""
    k = np.arange(n + 1)
    low = limits(k, n, delta)
    worst = 0.0
    for mean in np.unique(np.clip(np.concatenate([low - 1e-9, np.linspace(0, 1, 9)]), 0.0, 1.0)):
        for rates in mixtures(n, float(mean)):
            chance = poisson_binomial(rates)
            worst = max(worst, float(chance[low > mean].sum()) / delta)
    return worst


@pytest.mark.parametrize("delta", [1e-6, 0.025, 0.05, 0.25, 0.5, 0.9])
def test_one_sided_limits_hold_whatever_the_rates(delta: float) -> None:
    for n in (1, 2, 3, 5, 8, 13):
        assert worst_miss(lower_rates, n, delta) <= 1.0 + 1e-6


def test_a_single_case_has_the_limit_of_the_expected_number() -> None:
    """One row of rate 0.3 among rows of none: a case has chance 0.3, and a binomial tail of less."""
    assert worst_miss(saboteurs.plain_lower_rates, 3, 0.25) > 1.05


def test_limits_at_a_large_delta_stay_below_one_case_less() -> None:
    for n in (3, 5):
        assert worst_miss(saboteurs.plain_lower_rates, n, 0.5) > 1.2


def test_a_tail_that_begins_one_case_late() -> None:
    assert worst_miss(saboteurs.one_event_short, 8, 0.05) > 2.0


@pytest.mark.parametrize("seed", range(6))
def test_every_outcome_of_a_few_rows(seed: int) -> None:
    """All 2^n outcomes of rows that lie in overlapping boxes, at rates of every kind: no range misses too often."""
    rng = np.random.default_rng([0xE1, seed])
    n, alpha = 10, 0.4
    eta = np.where(rng.random(n) < 0.5, rng.integers(0, 2, n), rng.uniform(0, 1, n))
    p = np.floor(rng.uniform(0, 1, n) * 2.0**30) / 2.0**30
    inside = np.array([np.arange(n) % 2 == 0, np.arange(n) < 5, np.arange(n) >= 5, np.arange(n) < 7]).astype(float)
    rows, weight = inside.sum(axis=1), np.array([0.4, 0.3, 0.2, 0.1])
    true = inside @ (eta - p) / rows
    missed = wrong_floor = wrong_ceiling = wrong_over = 0.0
    limit = float(np.sort(np.abs(true))[1])
    for y in product([0, 1], repeat=n):
        chance = float(np.where(y, eta, 1.0 - eta).prod())
        if chance == 0.0:
            continue
        family = flat(rows, inside @ np.array(y), inside @ p / rows, weight)
        low, high = together(family, alpha)
        missed += chance * bool(((true < low) | (true > high)).any())
        wrong_floor += chance * (floor(family, alpha)[0] > np.abs(true).max())
        wrong_ceiling += chance * (ceiling(family, alpha, 5.0)[0] < np.abs(true).max())
        wrong_over += chance * bool(over(family, limit, alpha)[np.abs(true) <= limit].any())
    assert max(missed, wrong_floor, wrong_ceiling, wrong_over) <= alpha


# ---- Few boxes, many rows: as tight as it gets, so that mistakes show ----


def outcomes(rows: Any, eta: Any) -> Any:
    """Yield numbers of cases of two boxes that share no row, with probabilities; the unlikely are left out."""
    parts = []
    for n, rate in zip(rows, eta, strict=True):
        k = np.arange(n + 1)
        chance = binom.pmf(k, n, rate)
        parts.append([(int(i), float(chance[i])) for i in np.flatnonzero(chance > 1e-4)])
    for (a, first), (b, second) in product(*parts):
        yield np.array([a, b]), first * second


def missed_together(ranges_of: Any, rows: Any, eta: Any, score: Any) -> float:
    """Return the probability that the ranges of two boxes do not both hold."""
    total = 0.0
    true = np.asarray(eta) - np.asarray(score)
    for k, chance in outcomes(rows, eta):
        low, high = ranges_of(flat(rows, k, score), ALPHA)
        total += chance * bool(((low > true) | (high < true)).any())
    return total


LARGE = (300, 200), (0.3, 0.4), (0.35, 0.3)
RARE = (60, 40), (0.03, 0.03), (0.03, 0.03)


@pytest.mark.slow
def test_ranges_hold_together() -> None:
    assert 0.6 * ALPHA < missed_together(together, *LARGE) <= ALPHA
    assert missed_together(together, *RARE) <= ALPHA


@pytest.mark.slow
def test_ranges_that_do_not_share_alpha() -> None:
    assert missed_together(saboteurs.unshared, *LARGE) > 1.5 * ALPHA
    assert missed_together(saboteurs.unshared_ends, *LARGE) > 1.4 * ALPHA


def test_ranges_by_the_normal_approximation() -> None:
    def normal(family: Any, alpha: float) -> Any:
        return saboteurs.normal_ends(family, alpha / 2 * family.weight, alpha / 2 * family.weight)

    assert missed_together(normal, *RARE) > 5 * ALPHA


def missed_above(bound: Any, rows: Any, eta: Any, score: Any) -> float:
    """Return the probability that a bound of the worst of two gaps is below it."""
    worst = float(np.abs(np.asarray(eta) - np.asarray(score)).max())
    return sum(chance for k, chance in outcomes(rows, eta) if bound(flat(rows, k, score)) < worst - 1e-9)


WORST_IS_ONE = (60, 400), (0.45, 0.3), (0.3, 0.3)  # the small box, by far
WORST_IS_BELOW = (60, 400), (0.3, 0.3), (0.45, 0.31)
NEAR = (60, 400), (0.4, 0.39), (0.3, 0.3)  # the small box, by a little


@pytest.mark.slow
def test_the_worst_from_above() -> None:
    def ours(family: Any) -> float:
        return ceiling(family, ALPHA, 0.0)[0]

    for design in (WORST_IS_ONE, WORST_IS_BELOW):
        assert 0.6 * ALPHA < missed_above(ours, *design) <= ALPHA
    assert missed_above(ours, *NEAR) <= ALPHA


@pytest.mark.parametrize(
    ("broken", "design"),
    [
        (lambda f: saboteurs.one_sign(f, ALPHA, 0.0), WORST_IS_BELOW),
        (lambda f: ceiling(f, 2 * ALPHA, 0.0)[0], WORST_IS_ONE),
    ],
)
def test_broken_bounds_of_the_worst(broken: Any, design: Any) -> None:
    assert missed_above(broken, *design) > 1.4 * ALPHA


@pytest.mark.slow
def test_the_limit_of_the_worst_box_seen() -> None:
    """The worst box is small, and a large one nearly as bad: where that is seen to be the worst, its limit is short."""
    design = (30, 300), (0.5, 0.45), (0.3, 0.3)
    assert missed_above(lambda f: ceiling(f, ALPHA, 0.0)[0], *design) <= ALPHA
    assert missed_above(lambda f: saboteurs.worst_seen(f, ALPHA, 0.0), *design) > 2 * ALPHA


@pytest.mark.slow
def test_the_worst_from_below() -> None:
    rows, rate = (200, 200), (0.3, 0.3)
    wrong = {"ours": 0.0, "found and told": 0.0}
    for k, chance in outcomes(rows, rate):
        family = flat(rows, k, rate)
        wrong["ours"] += chance * (floor(family, ALPHA)[0] > 0.0)
        wrong["found and told"] += chance * (saboteurs.found_and_reported(family, ALPHA) > 0.0)
    assert 0.6 * ALPHA < wrong["ours"] <= ALPHA
    assert wrong["found and told"] > 2.5 * ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("eta", [(0.4, 0.4), (0.4, 0.2), (0.4, 0.7)])
def test_boxes_over_a_limit(eta: Any) -> None:
    """Both on the limit, from one side or two; or one far over it, which Holm lets go first."""
    rows, score, limit = (150, 200), 0.3, 0.1
    at = np.abs(np.array(eta) - score) <= limit + 1e-12
    wrong = {"ours": 0.0, "unshared": 0.0}
    for k, chance in outcomes(rows, eta):
        family = flat(rows, k, score)
        wrong["ours"] += chance * bool(over(family, limit, ALPHA)[at].any())
        alone = saboteurs.holm_without_shares(p_values(family, limit) / 2, ALPHA)
        wrong["unshared"] += chance * bool(alone[at].any())
    assert wrong["ours"] <= ALPHA
    if at.all():
        assert wrong["unshared"] > 1.4 * ALPHA


def test_holm_finds_what_the_ranges_find() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        rows = rng.integers(20, 2000, 40)
        family = flat(rows, rng.binomial(rows, rng.uniform(0.2, 0.6, 40)), 0.4, rng.dirichlet(np.ones(40)))
        shown = floors(*together(family, ALPHA)) > 0.1
        assert (over(family, 0.1, ALPHA) | ~shown).all()
        assert (floor(family, ALPHA)[0] > 0.1) == shown.any()


@pytest.mark.parametrize("p", [0.75, 0.25 + 2.0**-30 - 2.0**-40, 0.5 + 2.0**-31])
def test_scores_are_read_to_their_last_step(p: float) -> None:
    """Limits are exact at some rates, which the score may lie on, and is then read a little lower."""
    k = np.arange(17)
    low, high = ends(flat(np.full(17, 16), k, p), 0.05, 0.05)
    assert (low <= lower_rates(k, 16, 0.05) - p).all()
    assert (high >= 1.0 - lower_rates(16 - k, 16, 0.05) - p).all()
    exact = 2.0 * np.minimum(rate_evidence(k, 16, p + 0.1), rate_evidence(16 - k, 16, 1.0 - (p - 0.1)))
    assert (p_values(flat(np.full(17, 16), k, p), 0.1) >= np.minimum(exact, 1.0) - 1e-15).all()
