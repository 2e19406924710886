r"""The jittered classifier on a grid: its exact kernel, certificate and cost (theory, section 1).

A score is rounded to the middle ``c`` of one of ``G`` cells; the classifier then shows a grid middle ``t`` with
probability ``K(t|c) = sech((t - c) / h) / Z(c)``. All expectations over the jitter are finite sums, computed
as convolutions; nothing is sampled and no integral is approximated.
"""

from __future__ import annotations

from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from calibrant.stats.betting import JITTERED, gammas, solve_upper
from calibrant.stats.bounds import DEALS, bernstein, deals, product_upper, solve, wager
from calibrant.stats.cells import SCALE, Cells


class Jitter:
    """The transition kernel K of one bandwidth on one grid.

    Parameters
    ----------
    size : int
        Grid points G.
    bandwidth : float
        h, in units of probability.
    """

    def __init__(self, size: int, bandwidth: float) -> None:
        self.size, self.bandwidth = size, bandwidth
        self.points = (np.arange(size) + 0.5) / size
        self._distance = np.arange(-(size - 1), size) / size
        x = np.abs(self._distance) / bandwidth
        self._sech = 2.0 * np.exp(-x) / (1.0 + np.exp(-2.0 * x))
        self._plain = self._transform(self._sech)
        self.mass = np.maximum(self._convolve(self._plain, np.ones(size)), 1e-300)

    def _transform(self, kernel: Any) -> Any:
        from scipy.fft import next_fast_len, rfft

        return rfft(kernel, next_fast_len(3 * self.size, real=True))

    def _convolve(self, transformed: Any, x: Any) -> Any:
        from scipy.fft import irfft, next_fast_len, rfft

        length = next_fast_len(3 * self.size, real=True)
        return irfft(transformed * rfft(x, length), length)[self.size - 1 : 2 * self.size - 1]

    def spread(self, rows: Any) -> Any:
        """Return ``sum_c rows_c K(t|c)`` for each grid point t."""
        return np.maximum(self._convolve(self._plain, rows / self.mass), 0.0)

    def gather(self, f: Any) -> Any:
        """Return ``sum_t K(t|c) f(t)`` for each cell c."""
        return self._convolve(self._plain, f) / self.mass

    def spread_square(self, rows: Any) -> Any:
        """Return ``sum_c rows_c K(t|c)^2``, the scale of sampling noise."""
        return np.maximum(self._convolve(self._square, rows / self.mass**2), 0.0)

    def draw(self, cells: Any, uniform: Any) -> Any:
        """Return a grid point for each cell c, drawn from ``K(.|c)`` by exact inversion of uniform numbers."""
        start = self.size - 1 - cells
        low, high = self._below[start], self._below[start + self.size]
        found = np.searchsorted(self._below, low + uniform * (high - low), side="right") - 1
        return (np.clip(found - start, 0, self.size - 1) + 0.5) / self.size

    @cached_property
    def _below(self) -> Any:
        return np.concatenate([[0.0], np.cumsum(self._sech)])

    @cached_property
    def _square(self) -> Any:
        return self._transform(self._sech**2)

    @cached_property
    def displacement(self) -> Any:
        """Return ``sum_t K(t|c) |t - c|`` for each cell c: how far the jitter moves a score on average."""
        return self._convolve(self._transform(self._sech * np.abs(self._distance)), np.ones(self.size)) / self.mass


@lru_cache(maxsize=32)
def jitter(size: int, bandwidth: float) -> Jitter:
    """Return the kernel, built once per grid and bandwidth."""
    return Jitter(size, bandwidth)


def jittered_upper(cells: Cells, bandwidth: float, delta: float) -> float:
    r"""Theorem U for the jittered classifier.

    ``Phi = sum_t max_(+-) [-sum_i K(t|p_i) ln(1 -+ gamma (t - y_i))]``; by concavity of the logarithm
    ``exp(-Phi)`` is at most the product in Theorem U's proof.
    """
    kernel = jitter(cells.size, bandwidth)
    negative, positive = kernel.spread(cells.totals[:, 0]), kernel.spread(cells.totals[:, 1])
    t, bets = kernel.points, gammas(cells.n)
    phi = [
        -np.minimum(
            positive * np.log1p(g * (1 - t)) + negative * np.log1p(-g * t),
            positive * np.log1p(-g * (1 - t)) + negative * np.log1p(g * t),
        ).sum()
        for g in bets
    ]
    return solve_upper(np.array(phi), bets, JITTERED.shares, cells.n, delta)


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

    def table(signal: Any) -> Any:
        first, second = kernel.gather(signal * t), kernel.gather(signal)
        return np.stack([first, first - second], axis=1)

    def learn(past: Any) -> tuple[Any, float]:
        n = cells.counts[past].sum(axis=0)
        mean = t * kernel.spread(n[:, 0]) - (1 - t) * kernel.spread(n[:, 1])
        noise = t * (1 - t) * kernel.spread_square(n.sum(axis=1))
        gains = table(2.0 * ndtr(mean / np.sqrt(noise + 1e-3)) - 1.0)
        return gains, float((n * gains**2).sum()) / max(int(n.sum()), 1)

    def grow(block: int, tilt: Any) -> float:
        return float((cells.counts[block] * np.log1p(np.clip(tilt, -0.999, None))).sum())

    wagers = [wager(cells.block_rows, order, delta, learn, grow) for order in deals(cells.blocks, seed)]
    return solve(wagers, np.full(DEALS, 1 / DEALS), delta)


def jittered_estimate(cells: Cells, bandwidth: float) -> float:
    """Return the plug-in error of the jittered classifier without the noise a calibrated one would show."""
    kernel = jitter(cells.size, bandwidth)
    t = kernel.points
    mean = t * kernel.spread(cells.totals[:, 0]) - (1 - t) * kernel.spread(cells.totals[:, 1])
    noise = t * (1 - t) * kernel.spread_square(cells.totals.sum(axis=1))
    return float(np.sqrt(np.maximum(mean**2 - noise, 0.0)).sum() / cells.n)


def jitter_scores(cells: Cells, bandwidth: float) -> dict[str, float]:
    """Return the exact expected AUROC, Brier score and log loss of the jittered classifier."""
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
    """Return AUROC, Brier score and log loss of the score itself, each row at its cell's mean score.

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


def auroc(negative: Any, positive: Any) -> float:
    """Return the chance that a case outscores a non-case, ties half, from masses per increasing score."""
    below = np.cumsum(negative) - 0.5 * negative
    total = float(np.sum(negative) * np.sum(positive))
    return float((positive * below).sum() / total) if total > 0 else float("nan")


def mean_displacement(cells: Cells, bandwidth: float) -> tuple[float, float]:
    """Return a bound on the sample mean of ``E|shown - p|``, and the largest value it can take for any row."""
    kernel = jitter(cells.size, bandwidth)
    half = 0.5 / cells.size
    rows = cells.totals.sum(axis=1)
    return float((rows * kernel.displacement).sum() / cells.n) + half, float(kernel.displacement.max()) + half


STEPS = (8, 16, 32, 64, 128)

BANDWIDTHS = (2.0**-5, 2.0**-6, 2.0**-7, 2.0**-8)

KNOTS = 16


def distance_upper(cells: Cells, delta: float) -> tuple[float, str]:
    r"""Return an upper bound and the route that gave it.

    ``d <= CE(shown) + E|shown - p|`` for the score rounded to dyadic steps or jittered, because the event rate
    given the score shown is itself calibrated. ``delta`` is shared equally over all routes; each spends nine
    tenths on the certificate and one on Hoeffding's inequality for the mean displacement.
    """
    share = delta / (len(STEPS) + len(BANDWIDTHS))
    routes = []
    for k in STEPS:
        values, rows, cases, moved = dyadic_levels(cells, k)
        moved += np.sqrt(-np.log(0.1 * share) / (2 * cells.n)) / (2 * k)
        routes.append((moved, f"rounded to {k} steps", partial(product_upper, values, rows, cases, 0.9 * share)))
    for h in BANDWIDTHS:
        mean, largest = mean_displacement(cells, h)
        moved = mean + largest * np.sqrt(-np.log(0.1 * share) / (2 * cells.n))
        routes.append((moved, f"jittered by {h:g}", partial(jittered_upper, cells, h, 0.9 * share)))
    best = (1.0, "none")
    for moved, route, certificate in routes[::-1]:
        if moved < best[0]:  # otherwise it cannot win, whatever its certificate
            best = min(best, (float(certificate() + moved), route))
    return best


def dyadic_levels(cells: Cells, steps: int) -> tuple[Any, Any, Any, float]:
    """Levels, rows, cases and mean ``|p - shown|`` of the score rounded to a power of two of steps.

    Exact from the cells: a dyadic level's boundaries, and the level itself, are ends of cells.
    """
    level = np.floor(cells.middle * steps + 0.5).astype(np.int64)
    values = np.arange(steps + 1) / steps
    rows = np.bincount(level, cells.totals.sum(axis=1), steps + 1)
    cases = np.bincount(level, cells.totals[:, 1], steps + 1)
    score = cells.sums.sum(axis=(0, 2)) / SCALE
    moved = np.abs(score - cells.totals.sum(axis=1) * values[level]).sum() / cells.n
    return values, rows, cases, float(moved)


def distance_lower(cells: Cells, delta: float, seed: int = 0) -> float:
    r"""Return a lower bound: ``d >= E[w(p)(Y - p)]`` whenever ``sup|w| + Lip(w) <= 1``.

    The witness w is piecewise linear on `KNOTS` intervals and solves a linear programme on earlier blocks. It
    is evaluated at cell middles, which moves a score, and so the distance, by at most half a cell.
    """
    middle, where = cells.middle, cells.occupied()
    basis = np.stack([np.interp(middle, np.linspace(0, 1, KNOTS + 1), row) for row in np.eye(KNOTS + 1)], axis=1)

    def learn(past: Any) -> tuple[Any, float]:
        residual, variance = cells.residuals[past].sum(axis=0), cells.variances[past].sum(axis=0)
        noise = np.sqrt(basis.T @ variance)
        pull = basis.T @ residual
        w = basis @ _witness(np.sign(pull) * np.maximum(np.abs(pull) - noise, 0.0))
        moment = float((w**2 * variance).sum()) / max(int(cells.block_rows[past].sum()), 1)
        return w[where], moment

    def grow(block: int, tilt: Any) -> float:
        n = cells.counts[block, where]
        return float((n[:, 0] * np.log1p(-tilt * middle[where]) + n[:, 1] * np.log1p(tilt * (1 - middle[where]))).sum())

    wagers = [wager(cells.block_rows, order, delta, learn, grow) for order in deals(cells.blocks, seed)]
    return max(solve(wagers, np.full(DEALS, 1 / DEALS), delta) - 0.5 / cells.size, 0.0)


def _witness(pull: Any) -> Any:
    """Return knot values w that maximise ``pull . w`` subject to ``sup|w| + Lip(w) <= 1``."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    k = len(pull)
    if not np.any(pull):
        return np.zeros(k)
    eye, step = np.eye(k), np.diff(np.eye(k), axis=0) * KNOTS
    height = np.concatenate([np.full(2 * k, -1.0), np.full(2 * (k - 1), 1.0)])
    a = np.column_stack([np.concatenate([eye, -eye, step, -step]), height])
    b = np.concatenate([np.zeros(2 * k), np.ones(2 * (k - 1))])
    bounds = [(-1.0, 1.0)] * k + [(0.0, 1.0)]
    found = linprog(np.append(-pull, 0.0), A_ub=csr_array(a), b_ub=b, bounds=bounds, method="highs")
    return np.clip(found.x[:k], -1.0, 1.0) if found.status == 0 else np.zeros(k)
