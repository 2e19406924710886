"""Upper certificates, exactly: means of e-values and miss probabilities by summing over every outcome."""

import numpy as np
import pytest
from scipy.special import xlogy
from scipy.stats import binom, hypergeom

from calibrant.stats import bounds
from calibrant.stats.betting import Above, gammas, solve_upper
from calibrant.stats.bounds import (
    bernstein_upper,
    distance_upper,
    linear_cost,
    penalty_cost,
    penalty_normaliser,
    penalty_width,
    product_upper,
    upper_bets,
)
from calibrant.stats.jitter import jitter, jittered_bernstein_upper, jittered_upper, mean_displacement
from validity.enumeration import grid_cells, just_beyond, log_mean, miss_probability

GAMMAS = (0.01, 0.2, 0.6, 0.95)
SCORES = (1e-5, 1 / 1024, 0.01, 0.1, 0.3, 0.5, 0.77, 0.99, 1 - 1 / 1024)
GRID = np.linspace(0, 1, 201)


def excess(cost, s, n, gamma, rates=GRID):
    """Largest ``ln E q - n ln(1 - gamma |e - s|)``; a valid form of Theorem U never exceeds zero."""
    return float((log_mean(-cost, n, rates) - n * np.log1p(-gamma * np.abs(rates - s))).max())


def refined(cost, s, n, gamma):
    """The same over a grid that closes in on the worst rate of each side."""
    worst = -np.inf
    for low, high in ((0.0, s), (s, 1.0)):
        for _ in range(4):
            e = np.linspace(low, high, 101)
            gap = log_mean(-cost, n, e) - n * np.log1p(-gamma * np.abs(e - s))
            i = int(np.argmax(gap))
            worst, low, high = max(worst, gap[i]), e[max(i - 1, 0)], e[min(i + 1, 100)]
    return worst


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 30])
def test_linear_form_has_the_mean_the_theorem_needs(n, gamma):
    k = np.arange(n + 1.0)
    for s in (0.0, *SCORES, 1.0):
        assert excess(linear_cost(s, float(n), k, gamma), s, n, gamma) <= 1e-9


def quadratic_penalty(s, n, gamma):
    full = np.full(n + 1, float(s)), np.full(n + 1, float(n)), np.arange(n + 1.0)
    return penalty_cost(*full, gamma)[0]


@pytest.mark.parametrize("n", [1, 2, 4, 7, 8, 9, 20, 60, 150, 400])
def test_notch_is_neither_understated_nor_loose(n):
    for gamma in GAMMAS:
        for s in SCORES:
            assert -1e-7 < refined(quadratic_penalty(s, n, gamma), s, n, gamma) <= 0.0, (s, gamma)


@pytest.mark.parametrize("width", [0.2, 5.0])
def test_notch_normaliser_serves_any_width(width):
    for n, s, gamma in ((3, 0.4, 0.9), (25, 0.02, 0.5), (25, 0.97, 0.95), (200, 0.6, 0.3)):
        variance = n * s * (1 - s)
        alpha = width * penalty_width(gamma * np.sqrt(np.array([variance]))) / variance
        normaliser = penalty_normaliser(np.array([s]), np.array([n]), gamma, alpha)
        cost = 0.5 * alpha * (np.arange(n + 1) - n * s) ** 2 + normaliser
        assert -1e-7 < refined(cost, s, n, gamma) <= 0.0


def test_levels_zero_and_one_have_no_notch():
    cost, better = penalty_cost(np.array([0.0, 1.0]), np.array([50.0, 50.0]), np.array([0.0, 50.0]), 0.5)
    assert np.isinf(cost).all()
    assert not better.any()


def precise_objective(e, s, n, gamma, alpha):
    """``ln E exp(-alpha (k - ns)^2 / 2) - n ln(1 - gamma |e - s|)`` at one e: Loader's expansion, 64-bit mantissa."""
    wide = np.longdouble
    e, spread = wide(e), float(np.sqrt(n * e * (1 - e)))
    low, high = n * min(e, s) - 12 * spread, n * max(e, s) + 12 * spread
    k = np.arange(max(int(low), 20), min(int(high), n - 20)).astype(wide)

    def stirling(x):
        return (wide(1) / 12 - (wide(1) / 360 - wide(1) / 1260 / (x * x)) / (x * x)) / x

    def deviance(x, m):
        d = (x - m) / m
        return m * ((1 + d) * np.log1p(d) - d)

    size = wide(n)
    log = stirling(size) - stirling(k) - stirling(size - k) - np.log(2 * wide(np.pi) * k * (size - k) / size) / 2
    log -= deviance(k, size * e) + deviance(size - k, size * (1 - e)) + wide(alpha) * (k - size * wide(s)) ** 2 / 2
    top = log.max()
    return float(top + np.log(np.exp(log - top).sum()) - size * np.log1p(-wide(gamma) * abs(e - wide(s))))


def precise_peak(s, n, gamma, alpha):
    """Largest objective over e near the rate that the change of variable points at, on each side."""
    best = -np.inf
    for sign in (1.0, -1.0):
        gap = (np.log1p(sign * gamma * s) - np.log1p(-sign * gamma * (1 - s))) / alpha
        t = s + gap / n
        e = t * (1 + sign * gamma * s) / (1 - sign * gamma * (1 - s) + sign * gamma * t)
        half = np.sqrt(s * (1 - s) / n)
        low, high = max(e - half, 1e-9), min(e + half, 1 - 1e-9)
        for _ in range(6):
            grid = np.linspace(low, high, 9)
            values = [precise_objective(x, s, n, gamma, alpha) for x in grid]
            i = int(np.argmax(values))
            best, low, high = max(best, values[i]), grid[max(i - 1, 0)], grid[min(i + 1, 8)]
    return best


def surplus(s, n, gamma):
    """Return the notch constant used less its value in high precision: never negative in exact arithmetic."""
    variance = np.array([n * s * (1 - s)])
    alpha = penalty_width(gamma * np.sqrt(variance)) / variance
    return penalty_normaliser(np.array([s]), np.array([float(n)]), gamma, alpha)[0] - precise_peak(
        s, n, gamma, alpha[0]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "n", [10**5, pytest.param(10**6, marks=pytest.mark.slow), pytest.param(10**7, marks=pytest.mark.nightly)]
)
def test_notch_is_right_for_many_rows(n):
    for s in (0.003, 0.07, 0.5, 0.9, 0.999):
        for gamma in gammas(n)[[0, 3]]:
            assert -1e-6 < surplus(s, n, gamma) < 1e-4, (s, gamma)


def test_notch_slack_covers_rounding():
    assert surplus(0.99, 10**6, gammas(10**6)[3]) >= 0.0


@pytest.mark.parametrize("bound", [product_upper, bernstein_upper])
@pytest.mark.parametrize("s", [0.0, 0.02, 0.3, 0.5, 0.93, 1.0])
@pytest.mark.parametrize("rows", [(1, 4, 20, 100), pytest.param((400, 1000), marks=pytest.mark.slow)])
def test_rounded_upper_miss_probability_of_one_level(bound, s, rows):
    for n in rows:
        for delta in (0.05, 0.3):
            bounds = [bound(np.array([s]), np.array([n]), np.array([k]), delta) for k in range(n + 1)]
            missed = miss_probability(bounds, just_beyond(bounds, s), lambda e: np.abs(e - s))
            assert missed <= delta


def mean_of_evidence(n: int, share: float, bets=upper_bets) -> float:
    """The exact mean of the evidence at the error itself, of rows of which only the scores are random.

    Scores of 0 are right and those of 1/2 never happen, so that a level's cost is no more than it must be; the bets go
    with the error, for few scores of 1/2 among the pilot rows say that outcomes hardly vary.
    """
    s, total, pilot = np.array([0.0, 0.5]), 0.0, bounds.pilot_rows(n)
    for off in range(n + 1):
        chance = float(binom.pmf(off, n, share))
        for seen in range(pilot + 1):
            both = chance * float(hypergeom.pmf(seen, n, off, pilot))
            if both > 1e-12:
                rows, paid = np.array([n - off, off], dtype=float), bets(n, (seen / 4.0 + 0.05) / (pilot + 0.2))
                phi = linear_cost(s, rows, np.zeros(2), paid.gamma[:, None]).sum(axis=1)
                weights = paid.weights.reshape(-1, 2).sum(axis=1)
                total += both * np.exp(Above(phi, paid.gamma, weights, paid.rows).at(0.5 * share))
    return total


def all_paid_for(rows: int, variance: float) -> bounds.UpperBets:
    """Saboteur: the rows that choose the bets are paid for too."""
    return upper_bets(rows, variance)._replace(rows=rows)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_bets_that_some_scores_choose(share):
    assert mean_of_evidence(1000, share) <= 1.0 + 1e-9


@pytest.mark.slow
def test_rows_that_choose_the_bets_may_not_be_paid_for():
    assert mean_of_evidence(1000, 0.1, all_paid_for) > 1.0


def test_the_bets_are_those_of_the_pilot_rows_and_no_others():
    """Drawn without a look at outcomes; of few rows there is none, and their number alone chooses."""
    s, n = np.array([0.0, 0.5]), np.array([990.0, 10.0])
    for rows in (1, 999, 1000, 20_000, 10**12):
        pilot = bounds.pilot_rows(rows)
        assert pilot == (0 if rows < 1000 else min(max(rows // 200, 10), 50))
        assert upper_bets(rows, 0.1).rows == rows - pilot
        for variance in (1e-6, 0.1, 0.25):
            bets = upper_bets(rows, variance)
            assert bets.weights.sum() == pytest.approx(1.0)
            assert ((bets.gamma > 0.0) & (bets.gamma < 1.0)).all()
        of = bounds.pilot_variance(s, n * (rows / 1000.0) // 1)
        assert 0.0 < of <= 0.25
    assert bounds.pilot_variance(s, np.array([0.0, 5000.0])) == pytest.approx(0.25)
    assert bounds.pilot_variance(s, np.array([10_000.0, 10_000.0])) == pytest.approx(0.125, abs=0.07)  # 4 sd


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(0.2, 0.7), (0.5, 0.4), (0.0, 1.0), (0.9, 0.1)])
def test_rounded_upper_miss_probability_of_two_levels(rates):
    """Rows fall on either level at random: both the split and the labels are summed over."""
    n, share, s, e = 12, 0.35, np.array([0.2, 0.7]), np.array(rates)
    truth = float(np.dot([share, 1 - share], np.abs(s - e)))
    for delta in (0.1, 0.5):
        missed = 0.0
        for first in range(n + 1):
            rows = np.array([first, n - first])
            for k in range(first + 1):
                for j in range(n - first + 1):
                    if product_upper(s, rows, np.array([k, j]), delta) < truth:
                        chance = binom.pmf(k, first, e[0]) * binom.pmf(j, n - first, e[1])
                        missed += binom.pmf(first, n, share) * chance
        assert missed <= delta


def tight_probe(delta, spent, n=1000, gamma=0.999):
    """Miss probability of Theorem U with one bet, score 0, and an event rate just above its bound at no case."""
    k = np.arange(6.0)
    bounds = [
        solve_upper(
            linear_cost(np.zeros(1), np.array([n]), np.array([c]), gamma), np.array([gamma]), np.ones(1), n, spent
        )
        for c in k
    ]
    eta = max(bounds[0], 1 - delta ** (1 / n)) + 1e-7
    return float(binom.pmf(k, n, eta)[np.array(bounds) < eta].sum())


def test_tight_probe_comes_close_to_delta():
    assert 0.0495 < tight_probe(0.05, 0.05) <= 0.05


@pytest.mark.parametrize("bound", [jittered_upper, jittered_bernstein_upper])
@pytest.mark.parametrize("cell", [0, 5, 31, 60])
def test_jittered_upper_miss_probability_of_one_score(bound, cell):
    size, h = 64, 1 / 16
    kernel = jitter(size, h)
    weight = 1 / np.cosh((kernel.points - kernel.points[cell]) / h)
    weight /= weight.sum()

    def truth(e):
        return (np.abs(kernel.points - e[..., None]) * weight).sum(axis=-1)

    for n in (3, 30, 200):
        bounds = [bound(grid_cells(np.array([[[n - k, k]]]), [cell], size), h, 0.2) for k in range(n + 1)]
        assert miss_probability(bounds, np.linspace(0, 1, 101), truth) <= 0.2


@pytest.mark.parametrize("bandwidth", [1 / 8, 1 / 32])
def test_jitter_kernel_equals_its_definition(bandwidth):
    size = 128
    kernel, rng = jitter(size, bandwidth), np.random.default_rng([0x1268, 5])
    t = (np.arange(size) + 0.5) / size
    dense = 1 / np.cosh((t[:, None] - t) / bandwidth)
    dense /= dense.sum(axis=0)  # dense[t, c] = K(t | c)
    rows = rng.integers(0, 50, size)
    assert np.allclose(kernel.spread(rows), dense @ rows, atol=1e-10)
    assert np.allclose(kernel.spread_square(rows), dense**2 @ rows, atol=1e-10)
    assert np.allclose(kernel.gather(t), dense.T @ t, atol=1e-12)
    assert np.allclose(kernel.displacement, (dense * np.abs(t[:, None] - t)).sum(axis=0), atol=1e-12)


def test_displacement_of_the_jitter_is_bounded_as_claimed():
    cells = grid_cells(np.array([[[3, 1], [0, 4]]]), [2, 60], 128)
    kernel = jitter(128, 1 / 16)
    mean, largest = mean_displacement(cells, 1 / 16)
    assert mean >= 0.5 * (kernel.displacement[2] + kernel.displacement[60])
    assert largest >= kernel.displacement.max()


@pytest.mark.parametrize("n", [5, 60])
def test_jitter_product_has_the_mean_the_theorem_needs(n):
    size, h = 32, 1 / 8
    kernel, k = jitter(size, h), np.arange(n + 1.0)[:, None]
    for cell in (0, 9, 31):
        weight = 1 / np.cosh((kernel.points - kernel.points[cell]) / h)
        weight /= weight.sum()
        for g in (0.1, 0.95):
            up, down = np.log1p(g * (1 - kernel.points)), np.log1p(-g * kernel.points)
            over, under = np.log1p(-g * (1 - kernel.points)), np.log1p(g * kernel.points)
            log_q = (weight * np.minimum(k * up + (n - k) * down, k * over + (n - k) * under)).sum(axis=1)
            error = (np.abs(kernel.points - GRID[:, None]) * weight).sum(axis=1)
            assert (log_mean(log_q, n, GRID) <= n * np.log1p(-g * error) + 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("cell", [0, 40, 128, 255])
def test_distance_upper_miss_probability_of_one_score(cell):
    """A constant score p with event rate e is at distance |p - e|: the mean of a calibrated u is e."""
    size, n, p = 256, 80, (cell + 0.5) / 256
    bounds = [distance_upper(grid_cells(np.array([[[n - k, k]]]), [cell], size), 0.3)[0] for k in range(n + 1)]
    assert miss_probability(bounds, just_beyond(bounds, p), lambda e: np.abs(e - p)) <= 0.3


def test_expectations_used_here():
    assert np.allclose(log_mean(xlogy(np.arange(6), 2.0), 5, np.array([0.0, 0.3, 1.0])), 5 * np.log([1, 1.3, 2]))
