r"""The jittered classifier on a grid: its exact kernel, certificate and cost.

A score is rounded to the middle ``c`` of one of ``G`` cells; the classifier then shows a grid middle ``t`` with
probability ``K(t|c) = sech((t - c) / h) / Z(c)``. All expectations over the jitter are finite sums, computed
as convolutions; nothing is sampled and no integral is approximated.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BLOCK_ORDERS, JITTERED, bernstein, bet, block_orders, gammas, solve, solve_upper
from calibrant.stats.cells import Cells

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Waves = NDArray[np.complex128]

FAINT = 1e-3  # variance added to a grid point's, of which a row adds a little to many: no sign where nothing is near
LEAST = -0.999  # of a signal times its bet, which rounding of the convolutions could take to -1


class Jitter:
    """The transition kernel K of one bandwidth on one grid.

    `size`: grid points G. `bandwidth`: h, in units of probability.
    """

    def __init__(self, size: int, bandwidth: float) -> None:
        self.size, self.bandwidth = size, bandwidth
        self.points = (np.arange(size) + 0.5) / size
        self._distance = np.arange(-(size - 1), size) / size
        x = np.abs(self._distance) / bandwidth
        self._sech = 2.0 * np.exp(-x) / (1.0 + np.exp(-2.0 * x))
        self._plain = self._transform(self._sech)
        self.mass = np.maximum(self._convolve(self._plain, np.ones(size)), 1e-300)

    def _transform(self, kernel: Floats) -> Waves:
        from scipy.fft import next_fast_len, rfft

        return rfft(kernel, next_fast_len(3 * self.size, real=True))

    def _convolve(self, transformed: Waves, x: Floats) -> Floats:
        from scipy.fft import irfft, next_fast_len, rfft

        length = next_fast_len(3 * self.size, real=True)
        return irfft(transformed * rfft(x, length), length)[self.size - 1 : 2 * self.size - 1]

    def spread(self, rows: Floats | Ints) -> Floats:
        """``sum_c rows_c K(t|c)`` for each grid point t."""
        return np.maximum(self._convolve(self._plain, rows / self.mass), 0.0)

    def gather(self, f: Floats) -> Floats:
        """``sum_t K(t|c) f(t)`` for each cell c."""
        return self._convolve(self._plain, f) / self.mass

    def spread_square(self, rows: Floats | Ints) -> Floats:
        """``sum_c rows_c K(t|c)^2``, the scale of sampling noise."""
        return np.maximum(self._convolve(self._square, rows / self.mass**2), 0.0)

    def draw(self, cells: Ints, uniform: Floats) -> Floats:
        """A grid point for each cell c, drawn from ``K(.|c)`` by exact inversion of uniform numbers."""
        start = self.size - 1 - cells
        low, high = self._below[start], self._below[start + self.size]
        result = np.searchsorted(self._below, low + uniform * (high - low), side="right") - 1
        return (np.clip(result - start, 0, self.size - 1) + 0.5) / self.size

    @cached_property
    def _below(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self._sech)])

    @cached_property
    def _square(self) -> Waves:
        return self._transform(self._sech**2)

    @cached_property
    def displacement(self) -> Floats:
        """``sum_t K(t|c) |t - c|`` for each cell c: how far the jitter moves a score on average."""
        return self._convolve(self._transform(self._sech * np.abs(self._distance)), np.ones(self.size)) / self.mass


@lru_cache(maxsize=32)
def jitter(size: int, bandwidth: float) -> Jitter:
    """The kernel, built once per grid and bandwidth."""
    return Jitter(size, bandwidth)


def jittered_upper(cells: Cells, bandwidth: float, delta: float) -> float:
    r"""Theorem U for the jittered classifier.

    ``Phi = sum_t max_(+-) [-sum_i K(t|p_i) ln(1 -+ gamma (t - y_i))]``; by concavity of the logarithm
    ``exp(-Phi)`` is at most the product in Theorem U's proof.
    """
    kernel = jitter(cells.size, bandwidth)
    # (1) Rows of each label by grid point: everything is linear in the counts, so two convolutions serve all bets.
    negative, positive = kernel.spread(cells.totals[:, 0]), kernel.spread(cells.totals[:, 1])
    bets, tables = gammas(cells.n), _log_bets(cells.size, cells.n)
    # (2) The smaller product of each grid point, and Phi of each bet. The grid is its own mirror image: what a bet on
    #     a case wins at t, one on the other outcome wins at 1 - t.
    phi = [
        -np.minimum(positive * won[::-1] + negative * lost, positive * lost[::-1] + negative * won).sum()
        for won, lost in tables
    ]
    return solve_upper(np.array(phi), bets, JITTERED.shares, cells.n, delta)


@lru_cache(maxsize=4)
def _log_bets(size: int, rows: int) -> tuple[tuple[Floats, Floats], ...]:
    """``ln(1 + g t)`` and ``ln(1 - g t)`` on a grid for each bet of so many rows."""
    t = (np.arange(size) + 0.5) / size
    return tuple((np.log1p(g * t), np.log1p(-g * t)) for g in gammas(rows))


def jittered_bernstein_upper(cells: Cells, bandwidth: float, delta: float) -> float:
    """Theorem 1 for the jittered classifier, the readable reference; ``delta`` split 0.8 to 0.2."""
    kernel, n = jitter(cells.size, bandwidth), cells.n
    negative, positive = kernel.spread(cells.totals[:, 0]), kernel.spread(cells.totals[:, 1])
    t = kernel.points
    plug_in = np.abs(t * negative - (1 - t) * positive).sum() / n
    away = kernel.gather(t)
    moment = (cells.totals[:, 0] * away**2 + cells.totals[:, 1] * (1 - away) ** 2).sum() / n
    return bernstein(float(plug_in), float(moment), n, delta)


def jittered_lower(cells: Cells, bandwidth: float, delta: float, seed: int = 0) -> float:
    """Theorem L for the jittered classifier: signs per grid point, learnt on earlier blocks."""
    from scipy.special import ndtr

    kernel = jitter(cells.size, bandwidth)
    t = kernel.points

    def table(signal: Floats) -> Floats:
        first, second = kernel.gather(signal * t), kernel.gather(signal)
        return np.stack([first, first - second], axis=1)

    def learn(past: Ints) -> tuple[Floats, float]:
        n = cells.counts[past].sum(axis=0)
        mean = t * kernel.spread(n[:, 0]) - (1 - t) * kernel.spread(n[:, 1])
        noise = t * (1 - t) * kernel.spread_square(n.sum(axis=1))
        gains = table(2.0 * ndtr(mean / np.sqrt(noise + FAINT)) - 1.0)
        return gains, float((n * gains**2).sum()) / max(int(n.sum()), 1)

    def grow(block: int, tilt: Floats) -> float:
        return float((cells.counts[block] * np.log1p(np.clip(tilt, LEAST, None))).sum())

    wagers = [bet(cells.block_rows, order, delta, learn, grow) for order in block_orders(cells.blocks, seed)]
    return solve(wagers, np.full(BLOCK_ORDERS, 1 / BLOCK_ORDERS), delta)


def jittered_estimate(cells: Cells, bandwidth: float) -> float:
    """The plug-in error of the jittered classifier without the noise a calibrated one would show."""
    kernel = jitter(cells.size, bandwidth)
    t = kernel.points
    mean = t * kernel.spread(cells.totals[:, 0]) - (1 - t) * kernel.spread(cells.totals[:, 1])
    noise = t * (1 - t) * kernel.spread_square(cells.totals.sum(axis=1))
    return float(np.sqrt(np.maximum(mean**2 - noise, 0.0)).sum() / cells.n)


def jitter_scores(cells: Cells, bandwidth: float) -> dict[str, float]:
    """The exact expected AUROC, Brier score and log loss of the jittered classifier."""
    kernel, n = jitter(cells.size, bandwidth), cells.totals
    t = kernel.points
    brier = (n[:, 0] * kernel.gather(t**2) + n[:, 1] * kernel.gather((1 - t) ** 2)).sum()
    loss = -(n[:, 0] * kernel.gather(np.log1p(-t)) + n[:, 1] * kernel.gather(np.log(t))).sum()
    return {
        "auroc": auroc(kernel.spread(n[:, 0]), kernel.spread(n[:, 1])),
        "brier": float(brier / cells.n),
        "log_loss": float(loss / cells.n),
    }


def level_scores(cells: Cells) -> dict[str, float]:
    """AUROC, Brier score and log loss of the score itself, each row at its cell's mean score.

    Exact where a cell holds one value. Otherwise the AUROC counts pairs within a cell as ties, and Brier score
    and log loss are too small by at most a quarter of the squared width of a cell, and to the same order.
    """
    n, s = cells.totals, cells.totals.sum(axis=1)
    mean = np.divide(cells.score_sums.sum(axis=1), s, out=cells.middle.copy(), where=s > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(n > 0, n * np.log(np.stack([1 - mean, mean], axis=1)), 0.0)
    return {
        "auroc": auroc(n[:, 0], n[:, 1]),
        "brier": float((n[:, 0] * mean**2 + n[:, 1] * (1 - mean) ** 2).sum() / cells.n),
        "log_loss": float(-terms.sum() / cells.n) + 0.0,
    }


def auroc(negative: Floats | Ints, positive: Floats | Ints) -> float:
    """The chance that an event outscores a non-event, ties half, from masses per increasing score."""
    below = np.cumsum(negative) - 0.5 * negative
    total = float(np.sum(negative) * np.sum(positive))
    return float((positive * below).sum() / total) if total > 0 else float("nan")


def mean_displacement(cells: Cells, bandwidth: float) -> tuple[float, float]:
    """A bound on the sample mean of ``E|shown - p|``, and the largest value it can take for any row."""
    kernel = jitter(cells.size, bandwidth)
    half = 0.5 / cells.size
    rows = cells.totals.sum(axis=1)
    return float((rows * kernel.displacement).sum() / cells.n) + half, float(kernel.displacement.max()) + half
