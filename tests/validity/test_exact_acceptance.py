"""Theorem 3.6 and Corollary 3.7 with floor(n / 2): tails of the statistic that are formulas, and broken bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.stats.kernel_sums import pair_tail

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


def flat(e: Any, null: str) -> Any:
    """The published test of rows with these residuals, under a kernel of one."""
    p = np.where(e > 0, 0.0, 1.0)
    data = cal.predictions(1 - p, p, {"x": np.zeros(len(e))})
    return cal.detect.local_calibration_test(data, features="published", null=null, score_width=1e6)


@pytest.mark.parametrize("signs", [(1, 1), (1, -1, 1), (1, 1, 1, -1, 1, 1, 1)])
def test_the_public_test_states_this_bound(signs: tuple[int, ...]) -> None:
    e = np.array(signs)
    n, mean = len(e), (e.sum() ** 2 - len(e)) / (len(e) * (len(e) - 1))
    for null, pairs in (("bounded", n // 2), ("printed", n)):
        found = flat(e, null)
        assert found.statistic == pytest.approx(mean, abs=1e-9)
        assert found.p_value == pytest.approx(pair_tail(max(mean, 0.0), pairs))
        for alpha, limit, radius in zip(*(found.parts[k] for k in ("alphas", "limits", "radii")), strict=True):
            assert pair_tail(limit, pairs) == pytest.approx(alpha)
            assert 2 * pair_tail(radius, pairs) == pytest.approx(alpha)


def test_two_rows_that_are_wrong_both_ways_at_random_are_rejected_too_often_as_printed() -> None:
    """``KLCE`` under a flat kernel is 0, and half of the four equally likely pairs of residuals have the mean 1."""
    pairs = [(a, b) for a in (-1, 1) for b in (-1, 1)]
    level = {null: np.mean([flat(np.array(e), null).p_value <= 0.4 for e in pairs]) for null in ("bounded", "printed")}
    assert level == {"bounded": 0.0, "printed": 0.5}
