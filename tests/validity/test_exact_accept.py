"""Every outcome of short lists, counted: the rate is called too low at some depth with probability at most alpha."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from calibrant.stats.decisions import acceptance
from calibrant.stats.decisions.acceptance import THETAS, WEIGHTS, log_evidence

# the whole file takes seconds: it waits for --rest
pytestmark = pytest.mark.slow

Accepts = Callable[[int, int], bool]
PROFILES = {
    "flat": np.full(200, 0.2),
    "rising": np.linspace(0.0, 0.6, 200),
    "falling": np.linspace(0.9, 0.05, 200),
    "sure or wrong": np.tile([0.0, 0.4], 100),
    "certain at first": np.concatenate([np.zeros(40), np.full(160, 0.5)]),
}


def ever_wrong(rates: np.ndarray, risk: float, accepts: Accepts) -> float:
    """Return the probability that a depth whose mean rate is at least the risk is accepted, by all paths of errors."""
    alive, lost = np.array([1.0]), 0.0  # probability of each number of errors so far, and of having been wrong
    means = np.cumsum(rates) / np.arange(1, len(rates) + 1)
    for k, e in enumerate(rates, start=1):
        alive = np.append(alive * (1.0 - e), 0.0) + np.append(0.0, alive * e)
        if means[k - 1] >= risk:
            out = np.array([accepts(k, s) for s in range(len(alive))])
            lost, alive = lost + float(alive[out].sum()), np.where(out, 0.0, alive)
    return lost


def by_evidence(risk: float, alpha: float) -> Accepts:
    return lambda k, s: float(log_evidence(np.array(k), np.array(s), risk)) >= -np.log(alpha)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize("risk", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("name", PROFILES)
def test_wrong_at_any_depth_with_at_most_alpha(name: str, risk: float, alpha: float) -> None:
    assert ever_wrong(PROFILES[name], risk, by_evidence(risk, alpha)) <= alpha


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
