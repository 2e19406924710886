"""Theorem 3.6 and Corollary 3.7 with floor(n / 2): tails of the statistic that are formulas, and broken bounds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.apps.papers import local_test
from calibrant.stats.local.kernel_sums import pair_tail

SIZES = (*range(2, 13), 100, 200, 2000)
MEANS = np.linspace(0.0, 1.0, 21)
Bound = Callable[[float, int], float]  # of a deviation and the rows


def proved(over: float, n: int) -> float:
    return pair_tail(over, n // 2)


def broken(n: int, chance: float, bound: Bound) -> bool:
    """Whether a bound is below an exact tail, either side: residuals of 1 (with this chance) and -1, a flat kernel.

    The mean over pairs is then ``(s^2 - n) / (n (n - 1))`` of the sum s, and its mean ``(2 chance - 1)^2``.
    """
    k = np.arange(n + 1)
    value, at = np.unique((2 * k - n) ** 2, return_inverse=True)
    mass = np.bincount(at, binom.pmf(k, n, chance))
    over = (value - n) / (n * (n - 1)) - (2 * chance - 1) ** 2
    tails = np.where(over > 0, np.cumsum(mass[::-1])[::-1], np.cumsum(mass))
    return any(t > 1e-290 and t > (1 + 1e-9) * bound(abs(float(o)), n) for o, t in zip(over, tails, strict=True))


def where(bound: Bound) -> set[int]:
    return {n for n in SIZES if any(broken(n, float(q), bound) for q in MEANS)}


def test_the_bound_holds_at_every_number_of_rows() -> None:
    assert where(proved) == set()


def test_the_printed_bound_fails_at_few_rows_and_at_many() -> None:
    assert where(lambda over, n: pair_tail(over, n)) == {2, 3, 4, 100, 200, 2000}


@pytest.mark.parametrize(
    ("saboteur", "small", "large"),
    [
        (lambda over, n: pair_tail(over, n // 2, 0.5), True, True),  # half of the largest pair
        (lambda over, n: pair_tail(over, 2 * n), True, True),  # every row twice
        (lambda over, n: pair_tail(over, n * (n - 1) // 2), True, True),  # all pairs, as if they were independent
    ],
)
def test_saboteurs_are_refuted(saboteur: Bound, small: bool, large: bool) -> None:
    found = where(saboteur)
    assert bool(found & {2, 3, 4}) is small
    assert (2000 in found) is large


# ---- The acceptance region: of a model that is right ----


def accepted(over: float, n: int, half: float = local_test.RIGHT) -> float:
    return pair_tail(over, n // 2, half)


def loose(n: int, rate: float, bound: Bound) -> bool:
    """Whether a bound is below an exact tail of a right model: one score for everyone, a flat kernel."""
    k = np.arange(n + 1)
    over = ((k - n * rate) ** 2 - k * (1 - rate) ** 2 - (n - k) * rate**2) / (n * (n - 1))
    order = np.argsort(-over)
    tails = np.cumsum(binom.pmf(k, n, rate)[order])  # of equal values the last has all
    return any(
        t > 1e-290 and o > 0 and t > (1 + 1e-6) * bound(float(o), n) for o, t in zip(over[order], tails, strict=True)
    )


@pytest.mark.parametrize("bound", [accepted, lambda over, n: pair_tail(over, n)])
def test_the_region_holds_for_right_models_as_proved_and_as_printed(bound: Bound) -> None:
    assert not [(n, q) for n in SIZES for q in np.linspace(0.02, 0.98, 49) if loose(n, float(q), bound)]


def test_a_region_of_half_of_it_is_refuted_at_few_rows_and_at_many() -> None:
    for n in (2, 200):
        assert any(loose(n, float(q), lambda o, n: accepted(o, n, 0.25)) for q in np.linspace(0.02, 0.98, 49))


def test_terms_of_a_pair_lie_within_one_of_each_other_and_no_less() -> None:
    grid = np.linspace(0.0, 1.0, 21)
    apart = [np.ptp(np.outer([-p, 1 - p], [-q, 1 - q])) for p, q in product(grid, grid)]
    assert max(apart) == pytest.approx(2 * local_test.RIGHT)


def level(p: Any, null: str, share: float) -> float:
    """The most that the public test rejects too often, over all error probabilities: every outcome there is."""
    x = {"x": np.arange(len(p)) / 4.0}
    outcomes = np.array(list(product([0, 1], repeat=len(p))))
    mass = np.where(outcomes == 1, p, 1 - p).prod(axis=1)
    with patch.object(local_test, "RIGHT", share):
        found = np.array(
            [
                cal.papers.published_local_test(
                    cal.predictions(y, p, x), null=null, score_width=2.0, covariate_gamma=0.1
                ).p_value
                for y in outcomes
            ]
        )
    return max(float(mass[found <= a + 1e-12].sum() - a) for a in found)


@pytest.mark.parametrize("p", [[0.1, 0.1], [0.05, 0.1, 0.15], [0.8, 0.85, 0.9, 0.95], [0.1, 0.5, 0.9, 0.2]])
def test_the_public_test_of_a_right_model_has_its_level(p: list[float]) -> None:
    for null in ("bounded", "printed"):
        assert level(np.array(p), null, local_test.RIGHT) <= 1e-9


def test_the_public_test_with_half_of_its_region_has_not() -> None:
    assert level(np.array([0.1, 0.1]), "bounded", 0.25) > 0


def flat(e: Any, null: str) -> Any:
    """The published test of rows with these residuals, under a kernel of one."""
    p = np.where(e > 0, 0.0, 1.0)
    data = cal.predictions(1 - p, p, {"x": np.zeros(len(e))})
    return cal.papers.published_local_test(data, null=null, score_width=1e6)


@pytest.mark.parametrize("signs", [(1, 1), (1, -1, 1), (1, 1, 1, -1, 1, 1, 1)])
def test_the_public_test_states_these_bounds(signs: tuple[int, ...]) -> None:
    e = np.array(signs)
    n, mean = len(e), (e.sum() ** 2 - len(e)) / (len(e) * (len(e) - 1))
    for null, pairs, half in (("bounded", n // 2, 0.5), ("printed", n, 1.0)):
        found = flat(e, null)
        assert found.statistic == pytest.approx(mean, abs=1e-9)
        assert found.p_value == pytest.approx(pair_tail(max(mean, 0.0), pairs, half))
        for alpha, limit, radius in zip(*(found.parts[k] for k in ("alphas", "limits", "radii")), strict=True):
            assert pair_tail(limit, pairs, half) == pytest.approx(alpha)
            assert 2 * pair_tail(radius, pairs) == pytest.approx(alpha)
