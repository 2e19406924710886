r"""Theorem L: lower confidence bounds on calibration error by betting on learnt signs (theory 1.4).

For any ``|f| <= 1`` chosen before a block is read and any ``kappa in (0, 1)``, a row of the block satisfies
``E[1 + kappa f(p)(Y - p) | past] <= 1 + kappa CE``. So the product over rows, divided by
``(1 + kappa CE)^n``, is a test supermartingale started at one: whoever could win much more than the error
allows has shown that the error is larger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.errors import BadInput
from calibrant.stats.cells import Cells, log_growth
from calibrant.stats.product import solve_lower

BINS = 10
DEALS = 4
GRID = (2.0, 4.0, 8.0, 16.0)  # kappa * sqrt(n) of the forward recursion
LARGEST = 0.9
SWITCH = 0.1  # prior chance that the sign changes from one bin to the next
Wager = tuple[float, Any, Any]  # log wealth at zero error, stakes per block, rows per block
Learn = Callable[[Any], tuple[Any, float]]  # past blocks -> signal, its mean square winnings per row
Grow = Callable[[int, Any], float]  # block, stake times signal -> log wealth gained


def lower_bound(cells: Cells, delta: float, seed: int = 0) -> float:
    """Return a lower bound on ``E|p - E[Y|p]|`` that fails with probability at most `delta`.

    Half of the evidence comes from `DEALS` random orders of the blocks, in which signs are learnt on earlier
    blocks and bet on later ones; half from a forward recursion over all rows that learns nothing.
    """
    cells = cells.thinned()
    where = cells.occupied()

    def learner(order: Any) -> Learn:
        bins = cells.equal_mass(BINS, order[:1])
        return lambda past: _learn_signs(cells, past, bins, where)

    def grow(block: int, tilt: Any) -> float:
        return float(log_growth(cells, block, tilt, where).sum())

    wagers = [wager(cells.block_rows, order, delta, learner(order), grow) for order in deals(cells.blocks, seed)]
    wagers += [_forward(cells, stake) for stake in GRID]
    return solve(wagers, np.repeat([0.5 / DEALS, 0.5 / len(GRID)], [DEALS, len(GRID)]), delta)


def deals(blocks: int, seed: int) -> list[Any]:
    """Random orders of the blocks; each starts with a different block while there are enough."""
    if blocks < 2:
        raise BadInput(
            "a lower bound learns on some rows and is judged on others, and rows without identity cannot be dealt: "
            "pass key= (columns that identify a row) when sketching"
        )
    rng = np.random.default_rng([seed, 0xCA11])
    base = rng.permutation(blocks)
    return [np.concatenate(([base[i % blocks]], rng.permutation(np.delete(base, i % blocks)))) for i in range(DEALS)]


def wager(block_rows: Any, order: Any, delta: float, learn: Learn, grow: Grow) -> Wager:
    """Bet on each block of an order but the first, with a signal learnt on the blocks before it."""
    rows = block_rows[order[1:]]
    log_wealth, stakes = 0.0, np.zeros(len(rows))
    for i, block in enumerate(order[1:]):
        signal, moment = learn(order[: i + 1])
        stakes[i] = min(np.sqrt(2.0 * -np.log(delta) / max(rows.sum() * moment, 1e-12)), LARGEST)
        log_wealth += grow(int(block), stakes[i] * signal)
    return log_wealth, stakes, rows


def solve(wagers: list[Wager], weights: Any, delta: float) -> float:
    """Average the wagers' e-values and return the error at which they reach ``1 / delta``."""
    width = max(len(stakes) for _, stakes, _ in wagers)
    stakes = np.array([np.pad(k, (0, width - len(k))) for _, k, _ in wagers])
    rows = np.array([np.pad(r, (0, width - len(r))) for _, _, r in wagers])
    return solve_lower(np.array([w for w, _, _ in wagers]), stakes, rows, weights, delta)


def _learn_signs(cells: Cells, past: Any, bins: Any, where: Any) -> tuple[Any, float]:
    """Soft signs ``2 Phi(z) - 1`` of the standardised residual, per occupied cell, and their mean square winnings."""
    from scipy.special import ndtr

    residual, variance = (np.bincount(bins, v[past].sum(axis=0), BINS) for v in (cells.residuals, cells.variances))
    signal = 2.0 * ndtr(residual / np.sqrt(variance + 0.25)) - 1.0
    moment = float((signal**2 * variance).sum()) / max(int(cells.block_rows[past].sum()), 1)
    return signal[bins[where]], moment


def _forward(cells: Cells, stake: float) -> Wager:
    """Average, over paths of signs in {-1, 0, 1} along the score, of the wealth over all rows.

    The signs follow a Markov chain with uniform start that keeps its state with probability ``1 - SWITCH``;
    the forward algorithm adds up all ``3^10`` paths. Signs and stake are fixed given the scores alone.
    """
    kappa = min(stake / np.sqrt(max(cells.n, 1)), LARGEST)
    bins, where = cells.equal_mass(BINS), cells.occupied()
    log_wealth = np.zeros((BINS, 3))
    for column, sign in ((0, -1.0), (2, 1.0)):
        gain = log_growth(cells, None, np.full(len(where), sign * kappa), where)
        log_wealth[:, column] = np.bincount(bins[where], gain, BINS)
    step = np.full((3, 3), SWITCH / 2.0) + np.eye(3) * (1.0 - 1.5 * SWITCH)
    state, total = np.full(3, 1.0 / 3.0), 0.0
    for b in range(BINS):
        top = log_wealth[b].max()
        state = (state @ step if b else state) * np.exp(log_wealth[b] - top)
        total += top + float(np.log(state.sum()))
        state = state / state.sum()
    return total, np.array([kappa]), np.array([cells.n])
