"""Deliberately broken certificates. Each differs from the library in one step, and a named design must reject it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from calibrant.stats import bounds
from calibrant.stats.betting import solve_upper
from calibrant.stats.cells import Cells


def captured(module: ModuleType, run: Callable[[], Any]) -> tuple[Any, Any]:
    """Return the wagers a lower certificate averages, and its result."""
    seen: list[Any] = []
    real = bounds.solve

    def spy(wagers: Any, weights: Any, delta: float) -> float:
        seen.extend(wagers)
        return real(wagers, weights, delta)

    with patch.object(module, "solve", spy):
        result = run()
    return seen, result


# ---- Theorem 1 and Theorem U ----


def moment_without_its_event(s: Any, n: Any, k: Any, delta: float) -> float:
    """Theorem 1 with ``v = w``, the sample moment, as if it were the population's."""
    rows = float(np.sum(n))
    plug_in = float(np.abs(n * s - k).sum()) / rows
    moment = float((k * (1.0 - s) ** 2 + (n - k) * s**2).sum()) / rows
    l1 = -np.log(0.8 * delta)
    return min(1.0, plug_in + float(np.sqrt(2 * moment * l1 / rows)) + l1 / (3 * rows))


def half_a_normaliser(s: Any, n: Any, gamma: float, alpha: Any) -> Any:
    """The notch constant from event rates above s only."""
    from calibrant.kernels.quadratic_penalty import penalty_peaks

    up, down = np.log1p(-gamma * (1 - s)), np.log1p(gamma * s)
    gap = (down - up) / alpha
    return -n * down + 0.5 * alpha * gap * (2 * n * s + gap) + penalty_peaks(n, n * s + gap, alpha)


def slightly_low_normaliser(s: Any, n: Any, gamma: float, alpha: Any, by: float = 0.01) -> Any:
    """The notch constant, understated by a hundredth."""
    return NORMALISER(s, n, gamma, alpha) - by


NORMALISER = bounds.penalty_normaliser


@contextmanager
def normaliser(broken: Callable[..., Any]) -> Iterator[None]:
    """Put a broken notch constant into the library."""
    with patch.object(bounds, "penalty_normaliser", broken):
        yield


def linear_upper(s: Any, n: Any, k: Any, gamma: float, delta: float) -> float:
    """Theorem U with one bet."""
    return solve_upper(bounds.linear_cost(s, n, k, gamma), np.array([gamma]), np.ones(1), int(n.sum()), delta)


# ---- Theorem L ----


def stake_from_the_same_block(block_rows: Any, order: Any, delta: float, learn: Any, grow: Any) -> Any:
    """A wager that picks, for each block, the stake that would have won most on it."""
    rows, won = block_rows[order[1:]], 0.0
    bet_sizes = np.zeros(len(rows))
    for i, block in enumerate(order[1:]):
        signal, _ = learn(order[: i + 1])
        gains = {k: grow(int(block), k * signal) for k in (0.0, 0.1, 0.3, 0.9)}
        bet_sizes[i] = max(gains, key=gains.__getitem__)
        won += gains[bet_sizes[i]]
    return won, bet_sizes, rows


REAL_BET = bounds.bet


@contextmanager
def bet(broken: Callable[..., Any]) -> Iterator[None]:
    """Put a broken way of betting into the raw lower bound."""
    with patch.object(bounds, "bet", broken):
        yield


def leaky_forward(cells: Cells, bet_size: float) -> Any:
    """The forward recursion with switching weights that add up to 1.2."""
    too_much = (1 - 0.5 * bounds.SWITCH) / (1 - 1.5 * bounds.SWITCH)
    with patch.object(np, "eye", lambda k: np.diag(np.full(k, too_much))):
        return REAL_FORWARD(cells, bet_size)


def sign_chosen_afterwards(block_rows: Any, variances: Any, order: Any, delta: float, grow: Any) -> Any:
    """The bets on a plain shift, both with the sign that has won: the other is not paid for."""
    bets = REAL_STEADY(block_rows, variances, order, delta, grow)
    return [max(bets, key=lambda bet: bet.log_wealth)] * len(bets)


REAL_STEADY = bounds.steady


@contextmanager
def steady(broken: Callable[..., Any]) -> Iterator[None]:
    """Put a broken way of betting on a plain shift into the raw lower bound."""
    with patch.object(bounds, "steady", broken):
        yield


REAL_FORWARD = bounds._forward


@contextmanager
def forward(broken: Callable[..., Any]) -> Iterator[None]:
    """Put a broken forward recursion into the raw lower bound."""
    with patch.object(bounds, "_forward", broken):
        yield
