"""Every number of defaults of a grade, and every row of migrations, counted: how often a right PD is called too low."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, multinomial, norm

from calibrant.apps.grades import migrations
from calibrant.apps.grades.defaults import default_tails
from calibrant.apps.grades.validation import Customers, How, _tested

Tails = Callable[[np.ndarray, int, float, float], np.ndarray]
EVENTS = [(5, 0.3, 0.24), (40, 0.02, 0.12), (40, 0.1, 0.9), (150, 0.005, 0.04), (150, 0.1, 0.24), (150, 0.02, 0.0)]
LEVELS = np.array([0.001, 0.01, 0.05, 0.2])


@cache
def law(n: int, p: float, rho: float) -> np.ndarray:
    """Return the law of the defaults under one factor, from SciPy's masses on a grid of its own."""
    z = np.linspace(-9, 9, 1801)
    moved = norm.cdf((norm.ppf(p) + np.sqrt(rho) * z) / np.sqrt(1 - rho))
    return np.array([binom.pmf(d, n, moved) @ norm.pdf(z) * 0.01 for d in range(n + 1)])


def missed(tails: Tails, n: int, p: float, rho: float) -> np.ndarray:
    """Return by how much the probability of a p-value of at most each level exceeds it."""
    found, true = tails(np.arange(n + 1), n, p, rho), law(n, p, rho)
    return np.array([true[found <= a].sum() for a in LEVELS]) - LEVELS


@pytest.mark.parametrize(("n", "p", "rho"), EVENTS)
def test_the_tail_of_correlated_defaults_has_its_level_at_every_number_of_customers(
    n: int, p: float, rho: float
) -> None:
    assert missed(default_tails, n, p, rho).max() <= 1e-6
    assert np.cumsum(law(n, p, rho)[::-1])[::-1] == pytest.approx(default_tails(np.arange(n + 1), n, p, rho), abs=1e-6)


SABOTEURS: dict[str, Tails] = {
    "correlation left out": lambda d, n, p, rho: default_tails(d, n, p, 0.0),
    "rho for its root": lambda d, n, p, rho: default_tails(d, n, p, rho**2),
    "more than so many, and not so many or more": lambda d, n, p, rho: np.where(
        d < n, default_tails(np.minimum(d + 1, n), n, p, rho), 0.0
    ),
    "a state of the factor in the middle": lambda d, n, p, rho: binom.sf(
        d - 1, n, norm.cdf(norm.ppf(p) / (1 - rho) ** 0.5)
    ),
}


@pytest.mark.parametrize("name", SABOTEURS)
def test_a_tail_with_a_fault_is_rejected(name: str) -> None:
    assert max(missed(SABOTEURS[name], n, p, rho).max() for n, p, rho in EVENTS) > 0.005


# ---- a cell against its nearer neighbour, if both hold as many ----


def level(n: int, share: float, covariance: float = 2.0) -> float:
    """Return the probability that z_ij finds more in the farther of two equal cells, over all rows of n customers."""
    near, far = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    keep = near + far <= n
    near, far = near[keep], far[keep]
    prob = multinomial.pmf(np.stack([n - near - far, near, far], axis=1), n, [1 - 2 * share, share, share])
    p, q = far / n, near / n
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (q - p) / np.sqrt((p * (1 - p) + q * (1 - q) + covariance * p * q) / n)
    for a, b in ((3, 1), (5, 9), (0, 2)):  # the formula here is the library's
        own = migrations.steps(np.array([[n - a - b, a, b], [1, 1, 1], [1, 1, 1]])).statistic[0, 2]
        if covariance == 2.0:
            assert own == pytest.approx(z[(near == a) & (far == b)][0])
    return float(prob[norm.cdf(z) <= 0.05].sum())


@pytest.mark.parametrize(
    ("n", "share", "most"), [(20, 0.3, 0.075), (60, 0.1, 0.065), (200, 0.3, 0.056), (200, 0.05, 0.06)]
)
def test_a_step_of_a_migration_has_about_its_level(n: int, share: float, most: float) -> None:
    assert level(n, share) <= most


def test_a_step_without_the_covariance_of_two_cells_is_rejected() -> None:
    assert level(200, 0.3, covariance=0.0) > 0.056


# ---- a relative limit: both wrong verdicts, counted over every number of defaults of two grades ----

LIMITED = [(30, 0.1, 0.2), (200, 0.05, 0.5), (1500, 0.02, 0.3)]  # customers of each grade, PD, limit
WRONG = 0.1


def verdicts(n: int, pd: float, limit: float) -> dict[str, np.ndarray]:
    """Which numbers of defaults of one of two equal grades have which verdict."""
    how = How(0.0, (0.05, 0.001), (19, 0), limit, WRONG)
    found = []
    for d in range(n + 1):
        defaulted = np.concatenate([np.arange(n) < d, np.arange(n) < round(n * pd)])
        rows = Customers(np.repeat([0, 1], n), np.full(2 * n, pd), defaulted, None, None)
        found.append(_tested(rows, rows.grade, [("", "A"), ("", "B")], how)[0].verdict)
    return {name: np.array([v == name for v in found]) for name in ("over", "within")}


@pytest.mark.slow
@pytest.mark.parametrize(("n", "pd", "limit"), LIMITED[:2])
def test_no_verdict_of_two_grades_is_wrong_with_more_than_alpha(n: int, pd: float, limit: float) -> None:
    found = verdicts(n, pd, limit)
    for rate, wrong in ((1 + limit, "over"), (1 - limit, "over"), (1 + limit + 1e-9, "within"), (1 - limit, "within")):
        one = binom.pmf(np.arange(n + 1), n, pd * rate)[found[wrong]].sum()
        assert 1 - (1 - one) ** 2 <= WRONG  # both grades at the limit, independent
