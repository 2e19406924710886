"""Every outcome of short lists, counted: the rate is called too low at some depth with probability at most alpha."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import beta, binom

from calibrant.stats.decisions import acceptance
from calibrant.stats.decisions.acceptance import THETAS, WEIGHTS, log_evidence

# the whole file takes seconds: it waits for --rest
pytestmark = pytest.mark.slow

Floats = np.ndarray
Accepts = Callable[[int, int], bool]
PROFILES = {
    "flat": np.full(200, 0.2),
    "rising": np.linspace(0.0, 0.6, 200),
    "falling": np.linspace(0.9, 0.05, 200),
    "sure or wrong": np.tile([0.0, 0.4], 100),
    "certain at first": np.concatenate([np.zeros(40), np.full(160, 0.5)]),
}


def ever_wrong(rates: np.ndarray, risk: float, accepts: Accepts, over: bool = True) -> float:
    """Return the probability that a depth whose mean rate is at least the risk is accepted, by all paths of errors."""
    alive, lost = np.array([1.0]), 0.0  # probability of each number of errors so far, and of having been wrong
    means = np.cumsum(rates) / np.arange(1, len(rates) + 1)
    for k, e in enumerate(rates, start=1):
        alive = np.append(alive * (1.0 - e), 0.0) + np.append(0.0, alive * e)
        if means[k - 1] >= risk - 1e-12 if over else means[k - 1] <= risk + 1e-12:
            out = np.array([accepts(k, s) for s in range(len(alive))])
            lost, alive = lost + float(alive[out].sum()), np.where(out, 0.0, alive)
    return lost


def ever_accused(rates: np.ndarray, risk: float, accused: Accepts) -> float:
    """The probability that a depth whose mean rate is at most the risk is called above it, by all paths of errors."""
    return ever_wrong(rates, risk, accused, over=False)


def by_evidence(risk: float, alpha: float) -> Accepts:
    return lambda k, s: float(log_evidence(np.array(k), np.array(s), risk)) >= -np.log(alpha)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize("risk", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("name", PROFILES)
def test_wrong_at_any_depth_with_at_most_alpha(name: str, risk: float, alpha: float) -> None:
    assert ever_wrong(PROFILES[name], risk, by_evidence(risk, alpha)) <= alpha


@pytest.mark.slow
def test_the_limit_is_nearly_reached_by_one_bet() -> None:
    """A list that is long enough spends most of alpha, so that a constant that is off shows."""
    assert ever_wrong(np.full(1500, 0.2), 0.2, by_evidence(0.2, 0.3)) > 0.15


@pytest.mark.parametrize(
    "broken",
    [
        lambda k, s: np.log(np.exp(s * np.log1p(-THETAS) - k * np.log1p(-THETAS * 0.2)).sum()),  # weights left out
        lambda k, s: np.log(np.max(np.exp(s * np.log1p(-THETAS) - k * np.log1p(-THETAS * 0.2)))),  # the best bet
        lambda k, s: float(log_evidence(np.array(k), np.array(max(s - 1, 0)), 0.2)),  # an error forgiven
        lambda k, s: float(log_evidence(np.array(k), np.array(s), 0.23)),  # another limit
    ],
)
def test_saboteurs_are_found(broken: Callable[[int, int], float]) -> None:
    assert ever_wrong(np.full(400, 0.2), 0.2, lambda k, s: broken(k, s) >= np.log(20.0)) > 0.05


def test_bets_are_a_mean() -> None:
    assert WEIGHTS.sum() == pytest.approx(1.0)
    assert THETAS.min() > 0.0
    assert THETAS.max() < 1.0


def test_a_sequence_is_wrong_with_at_most_alpha() -> None:
    """The first depth over the limit is one depth, chosen by scores: it is tested once."""
    rng, runs, risk = np.random.default_rng(1), 4000, 0.1
    rates = np.linspace(0.02, 0.25, 400)
    over = int(np.argmax(np.cumsum(rates) / np.arange(1, 401) > risk))
    wrong = 0
    for _ in range(runs):
        ranking = acceptance.Ranking(-np.arange(400.0), np.arange(1, 401), np.cumsum(rng.uniform(size=400) < rates))
        wrong += acceptance.sequence(ranking, risk, 0.05) >= over
    from validity.acceptance import refuted

    assert not refuted(wrong, runs, 0.05)


def passes(rates: list[float], risk: float, alpha: float) -> float:
    """The probability that a sequence of tests accepts all of a short list, by every outcome."""
    total, n = 0.0, len(rates)
    for wrong in itertools.product((0, 1), repeat=n):
        ranking = acceptance.Ranking(-np.arange(float(n)), np.arange(1, n + 1), np.cumsum(wrong))
        if acceptance.sequence(ranking, risk, alpha) == n - 1:
            total += math.prod(e if w else 1.0 - e for e, w in zip(rates, wrong, strict=True))
    return total


EXCEPTIONS = [([1.0, 0.45], 0.72, 0.5), ([1.0, 0.4, 0.4], 0.599, 0.355)]  # mean rates above the risk


@pytest.mark.parametrize(("rates", "risk", "alpha"), EXCEPTIONS)
def test_a_sequence_holds_where_the_binomial_is_no_bound(
    rates: list[float], risk: float, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows of unequal rates the binomial's tail is none where one row is right, and at a large alpha."""
    assert np.mean(rates) > risk
    assert passes(rates, risk, alpha) <= alpha

    def plain(rows: Floats, wrong: Floats, alpha: float) -> Floats:
        return np.where(wrong < rows, beta.ppf(1.0 - alpha, wrong + 1, np.maximum(rows - wrong, 1)), 1.0)

    monkeypatch.setattr(acceptance, "clopper_pearson", plain)
    assert passes(rates, risk, alpha) > alpha


# ---- of a population: a rate that is fixed, and one that follows the rate at each threshold ----


def bursts(growth: float, right: float, first: float, rows: float, steps: int) -> tuple[Floats, Floats]:
    """Mean numbers of wrong and of right rows along the score, best first: bursts of wrong ones, each larger."""
    wrong, others, size = list[float](), list[float](), first
    while sum(wrong) + sum(others) < rows:
        wrong += [size / steps] * steps + [0.0] * steps
        others += [1e-4] * steps + [size * right / steps] * steps
        size *= growth
    return np.array(wrong), np.array(others)


def best_stop(n: int, wrong: Floats, right: Floats, rate: Floats) -> float:
    """The largest mean of the evidence at any stopping time, of n rows, by backward induction.

    `wrong` and `right`: probabilities of a row along the score; the others come below. `rate`: what the evidence is
    against at each threshold; NaN where one may not stop. More than 1 says that the evidence lies under no
    supermartingale that starts at 1.
    """
    each = np.arange(n + 1)
    s, k = np.meshgrid(each, each, indexing="ij")
    value, below = np.zeros((n + 1, n + 1)), np.maximum(1.0 - np.cumsum(wrong + right), 0.0)
    for w, g, x, rest in zip(wrong[::-1], right[::-1], rate[::-1], below[::-1], strict=True):
        if not np.isnan(x):
            value = np.maximum(value, np.exp(log_evidence(np.maximum(s, k), s, x)))
        # of m rows that come now, each is wrong with probability w / (w + g)
        come = [binom.pmf(each[None, :] - each[:, None], m, w / (w + g)) for m in each]
        many = binom.pmf(each[None, :], n - each[:, None], (w + g) / (rest + w + g))
        value = np.stack(
            [sum(many[seen, m] * (come[m] @ value[:, seen + m]) for m in range(n + 1 - seen)) for seen in each], axis=1
        )
    return float(value[0, 0])


def burst_of(n: int, design: tuple[float, float, float, float, int], left: float) -> tuple[Floats, Floats]:
    """Probabilities of bursts, of which n rows hold as many as lists of Poisson numbers do, or all but `left`."""
    wrong, right = bursts(*design)
    total = max(float((wrong + right).sum()) / (1.0 - left), n)
    return wrong / total, right / total


DESIGNS = {
    "bursts": burst_of(40, (1.15, 5.0, 0.7, 15.0, 10), 0.1),
    "large bursts": burst_of(40, (3.0, 5.0, 0.5, 20.0, 20), 0.1),
    "bursts of all rows": burst_of(12, (1.6, 3.0, 0.7, 20.0, 4), 0.0),
    "flat": (np.full(20, 0.01), np.full(20, 0.04)),
    "wrong first": (np.array([0.06] * 2 + [0.005] * 18), np.array([0.03] * 2 + [0.04] * 18)),
    "right first": (np.array([0.002] * 10 + [0.03] * 10), np.array([0.05] * 10 + [0.018] * 10)),
}


@pytest.mark.parametrize("n", [1, 8, 40])
@pytest.mark.parametrize("name", DESIGNS)
def test_evidence_of_a_population_holds_at_a_rate_that_is_fixed(name: str, n: int) -> None:
    wrong, right = DESIGNS[name]
    rate = np.cumsum(wrong) / np.cumsum(wrong + right)
    for x in (0.1, 0.2, 0.5):
        assert best_stop(n, wrong, right, np.where(rate >= x, x, np.nan)) <= 1.0 + 1e-12


def test_evidence_of_a_population_at_its_rate_is_nearly_one() -> None:
    """A constant that is off shows: of one rate everywhere the evidence is the likelihood ratio itself."""
    wrong, right = DESIGNS["flat"]
    assert best_stop(40, wrong, right, np.full(20, 0.2)) == pytest.approx(1.0)


def test_evidence_at_a_rate_that_follows_the_threshold_is_found() -> None:
    """Saboteur: all rates at once, as of rows at hand, for a population whose wrong rows come in bursts."""
    wrong, right = DESIGNS["large bursts"]
    assert best_stop(40, wrong, right, np.cumsum(wrong) / np.cumsum(wrong + right)) > 1.2


def test_another_rate_than_the_one_that_is_claimed_is_found() -> None:
    """Saboteur: the evidence is against a rate of .22, and thresholds count from .2 on."""
    wrong, right = DESIGNS["flat"]
    assert best_stop(40, wrong, right, np.full(20, 0.22)) > 1.05


@pytest.mark.nightly
def test_rates_that_share_alpha_hold_where_all_rates_at_once_do_not() -> None:
    wrong, right = bursts(1.2, 6.0, 1.0, 60_000.0, 50)
    rate, rng = np.cumsum(wrong) / np.cumsum(wrong + right), np.random.default_rng(2024)
    alpha, risk, sets, at_once, shared = 0.2, 0.2, 40_000, 0, 0
    for _ in range(0, sets, 500):
        s = np.cumsum(rng.poisson(wrong, (500, len(wrong))), axis=1)
        k = s + np.cumsum(rng.poisson(right, (500, len(right))), axis=1)
        at_once += int((log_evidence(k, s, np.broadcast_to(rate, k.shape)).max(axis=1) >= -np.log(alpha)).sum())
        for rows, errors in zip(k[:20], s[:20], strict=True):  # the inversion takes longer
            some = acceptance.Ranking(-np.arange(len(rows)), rows, errors)
            shared += bool((acceptance.highest_of_rates(some, risk, alpha) < rate).any())
    from validity.acceptance import refuted

    assert refuted(at_once, sets, alpha)
    assert not refuted(shared, sets // 25, alpha)


# ---- a group in the pool that is above the risk ----


@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize("risk", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("name", PROFILES)
def test_called_above_the_risk_at_any_depth_with_at_most_alpha(name: str, risk: float, alpha: float) -> None:
    def accused(k: int, s: int) -> bool:
        return acceptance.log_evidence_above(k, s, risk) >= -np.log(alpha)

    assert ever_accused(PROFILES[name], risk, accused) <= alpha


def test_a_group_at_the_risk_is_nearly_called_above_it_as_often_as_allowed() -> None:
    spent = ever_accused(np.full(400, 0.2), 0.2, lambda k, s: acceptance.log_evidence_above(k, s, 0.2) >= -np.log(0.3))
    assert 0.08 < spent <= 0.3


@pytest.mark.parametrize(
    "broken",
    [
        lambda k, s: acceptance.log_evidence_above(k, s + 1, 0.2),  # an error too many
        lambda k, s: acceptance.log_evidence_above(k, s, 0.16),  # another limit
        lambda k, s: acceptance.log_evidence_above(k, s, 0.2) + np.log(7),  # bets added
        lambda k, s: -np.log(max(binom.sf(s - 1, k, 0.2), 1e-300)),  # the exact test of one depth fixed beforehand
    ],
)
def test_saboteurs_that_accuse_are_found(broken: Callable[[int, int], float]) -> None:
    assert ever_accused(np.full(300, 0.2), 0.2, lambda k, s: broken(k, s) >= np.log(20.0)) > 0.05
