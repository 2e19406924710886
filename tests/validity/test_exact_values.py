"""A score of few values, exactly: means of e-values over every draw of scores and outcomes, unseen values included."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, xlog1py, xlogy
from scipy.stats import binom

from calibrant.stats.bounds import linear_cost, penalty_cost, pilot_rows, pilot_variance, product_upper, upper_bets
from validity.enumeration import log_choose, log_mean
from validity.test_exact_upper import quadratic_penalty, refined

VALUES = np.array([0.01, 0.5, 0.99])
SHARES = np.array([0.55, 0.4, 0.05])  # of eight rows, the last value is unseen in two samples of three
RATES = ([0.01, 0.5, 0.99], [0.0, 1.0, 0.0], [0.2, 0.4, 0.1], [0.06, 0.55, 0.94], [0.01, 0.5, 0.0])
GAMMAS = (0.2, 0.6, 0.95)


def forms(n: int, gamma: float) -> Iterator[Any]:
    """Yield ``ln q`` by value, rows and cases, of both products; a value without rows contributes a factor of 1."""
    linear, cheaper = np.zeros((3, n + 1, n + 1)), np.zeros((3, n + 1, n + 1))
    for c, m in itertools.product(range(3), range(1, n + 1)):
        k = np.arange(m + 1.0)
        s, rows = np.full(m + 1, VALUES[c]), np.full(m + 1, float(m))
        linear[c, m, : m + 1] = -linear_cost(s, rows, k, gamma)
        cost, better = penalty_cost(s, rows, k, gamma)
        cheaper[c, m, : m + 1] = np.where(better, -cost, linear[c, m, : m + 1])
    yield linear
    yield cheaper


def means(log_q: Any, rates: Any, n: int) -> Any:
    """Return ``E q`` of each value at each number of rows."""
    of = [[np.exp(log_mean(log_q[c, m, : m + 1], m, [rates[c]])[0]) for m in range(n + 1)] for c in range(3)]
    return np.array(of)


def samples(n: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield every number of rows a value, with its probability."""
    for rows in itertools.product(range(n + 1), repeat=3):
        if sum(rows) == n:
            m = np.array(rows)
            yield float(np.exp(gammaln(n + 1) - gammaln(m + 1).sum() + (m * np.log(SHARES)).sum())), rows


@pytest.mark.parametrize("rates", RATES, ids=str)
@pytest.mark.parametrize("n", [1, 4, 8])
def test_no_value_need_be_declared(rates: list[float], n: int) -> None:
    """For the population: the e-value has mean at most 1, values that no row has among those of the error."""
    error = float(SHARES @ np.abs(VALUES - rates))
    for gamma in GAMMAS:
        for log_q in forms(n, gamma):
            mean = means(log_q, rates, n)
            e = sum(w * np.prod([mean[c, m] for c, m in enumerate(rows)]) for w, rows in samples(n))
            assert e <= (1 - gamma * error) ** n * (1 + 1e-9), gamma


@pytest.mark.parametrize("rates", RATES, ids=str)
def test_given_the_scores_their_own_mean_error_is_bounded(rates: list[float]) -> None:
    """Whatever the scores decided: the same, sample by sample, for the error averaged over its rows."""
    n = 8
    for gamma in GAMMAS:
        for log_q in forms(n, gamma):
            mean = means(log_q, rates, n)
            for _, rows in samples(n):
                error = float(np.dot(rows, np.abs(VALUES - rates))) / n
                e = np.prod([mean[c, m] for c, m in enumerate(rows)])
                assert e <= (1 - gamma * error) ** n * (1 + 1e-9), (gamma, rows)


@pytest.mark.parametrize("s", [2.0**-30, 1e-8, 1e-6, 1 - 1e-6, 1 - 2.0**-29])
@pytest.mark.parametrize("n", [1, 2, 7, 60, 400])
def test_the_notch_holds_at_scores_next_to_zero_and_one(s: float, n: int) -> None:
    """A display in steps has no such levels; a score as it is may."""
    for gamma in (0.01, 0.2, 0.6, 0.95):
        assert -1e-7 < refined(quadratic_penalty(s, n, gamma), s, n, gamma) <= 0.0


def test_a_choice_by_scores_costs_at_most_what_both_bounds_may_err() -> None:
    """Values where two of three occur at most, else all shown as one: wrong at most twice as often."""
    n, delta, rates = 5, 0.3, [0.3, 0.75, 0.2]
    error = float(SHARES @ np.abs(VALUES - rates))
    shown = float(abs(SHARES @ VALUES - SHARES @ np.array(rates)))
    wrong = 0.0
    for w, rows in samples(n):
        for events in itertools.product(*(range(m + 1) for m in rows)):
            chance = w * float(np.prod(binom.pmf(events, rows, rates)))
            if min(rows) == 0:
                wrong += chance * (product_upper(VALUES, rows, events, delta) < error)
            else:
                mean = float(SHARES @ VALUES)
                wrong += chance * (product_upper([mean], [n], [sum(events)], delta) < shown)
    assert wrong <= 2 * delta


# ---- many values, off by 2.5 points each, whatever the signs: what an alternating error would hide in a display ----

OFF = 0.025
SIGNS = {
    "odd and even": lambda k: np.where(k % 2, 1.0, -1.0),
    "even and odd": lambda k: np.where(k % 2, -1.0, 1.0),
    "pairs": lambda k: np.where(k // 2 % 2, 1.0, -1.0),
    "fives": lambda k: np.where(k // 5 % 2, 1.0, -1.0),
    "any": lambda k: np.random.default_rng(11).choice([-1.0, 1.0], len(k)),
    "one sign": lambda k: np.ones(len(k)),
    "halves": lambda k: np.where(2 * k < len(k), 1.0, -1.0),
}
GRIDS = {"whole per cent": np.arange(5, 96) / 100, "half steps": np.arange(10, 191) / 200}


def log_factors(values: Any, n: int, rates: Any, gamma: float) -> Any:
    """Return ``ln E q`` of each value's n rows in both products, which take the notch where it should be cheaper."""
    k = np.arange(n + 1.0)
    linear = -linear_cost(values[:, None], np.full((1, 1), float(n)), k, gamma)
    # The notch is a parabola in the cases: its height at two of them tells it all
    rows = np.full(len(values), float(n))
    (least, better), (row_attributes, _) = (penalty_cost(values, rows, values * n + by, gamma) for by in (0.0, 1.0))
    quadratic_penalty = -(least[:, None] + (row_attributes - least)[:, None] * (k - values[:, None] * n) ** 2)
    law = log_choose(n) + xlogy(k, rates[:, None]) + xlog1py(n - k, -rates[:, None])
    return [logsumexp(law + log_q, axis=1) for log_q in (linear, np.where(better[:, None], quadratic_penalty, linear))]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("n", [10, 110, 1100])
def test_what_is_off_by_so_much_is_not_met(grid: str, n: int) -> None:
    """Values are independent, so that a product's mean is that of its factors: at most one for every pattern of signs.

    So `product_upper`, where the mean of the eight products reaches one over alpha, is below the error with
    probability at most alpha, at every alpha; n rows have each value.
    """
    values = GRIDS[grid]
    for gamma in upper_bets(n * len(values), float((values * (1.0 - values)).mean())).gamma.tolist():
        each = np.array([log_factors(values, n, values + sign * OFF, gamma) for sign in (1.0, -1.0)])
        price = n * np.log1p(-gamma * OFF)
        assert (each <= price + 1e-9).all()
        for pattern in SIGNS.values():
            up = pattern(np.arange(len(values))) > 0
            total = np.where(up, each[0], each[1]).sum(axis=1)  # of both products
            assert (total <= len(values) * price + 1e-9).all(), (gamma, pattern)


def test_the_bound_is_where_the_mean_of_these_products_reaches_the_price() -> None:
    """What was summed is what is certified: costs added up by hand at one table, solved, and held against the bound."""
    values, rng = GRIDS["whole per cent"], np.random.default_rng(3)
    n = rng.integers(1, 60, len(values)).astype(float)
    k = rng.binomial(n.astype(int), values + 0.05 * np.where(np.arange(len(values)) % 2, 1.0, -1.0)).astype(float)
    products = []
    gammas, weights, paid = upper_bets(int(n.sum()), pilot_variance(values, n))
    assert paid == n.sum() - pilot_rows(int(n.sum()))
    for gamma in gammas:
        linear = linear_cost(values, n, k, gamma)
        quadratic_penalty, better = penalty_cost(values, n, k, gamma)
        products += [(gamma, linear.sum()), (gamma, np.where(better, quadratic_penalty, linear).sum())]

    def mean(x: float) -> float:
        logs = [-phi - paid * np.log1p(-gamma * x) for gamma, phi in products]
        return float(np.logaddexp.reduce(logs + np.log(weights)))

    for delta in (0.3, 0.05, 1e-4):
        assert mean(product_upper(values, n, k, delta)) == pytest.approx(-np.log(delta), abs=1e-6)
