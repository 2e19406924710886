"""Certificates and confidence limits by betting: stakes, wagers and the e-values that they win.

What an e-value is, and how it is solved for what it excludes: `evidence.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.errors import BadInput
from calibrant.kernels.roots import crossing
from calibrant.stats.cells import summed
from calibrant.stats.evidence import Evidence, limit_of, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# ---- How much is bet: fixed by what the outcomes cannot change, so any numbers are valid, and some waste less ----


@dataclass(frozen=True)
class BetSizes:
    """Bets to average over."""

    # Bets in units of `1 / (sd sqrt(n))`; the best is `sqrt(2 ln(1 / delta))`, 2.4 at 0.05 and 3.7 at 0.001.
    multiples: tuple[float, ...]
    weights: tuple[float, ...] = ()  # of the e-values in their average; equal by default
    # Share of its wealth that a bet may lose on one cluster; below 1, so that no wealth is ever negative.
    largest: float = 0.9

    def bets(self, scale: float, most: float = 1.0) -> Floats:
        """The bets for noise of root sum of squares `scale`, where a cluster may lose `most` times its bet."""
        cap = self.largest / most if most > 0 else np.inf
        return np.minimum(np.array(self.multiples) / max(scale, 1e-300), cap)  # no noise: as much as is safe

    @property
    def shares(self) -> Floats:
        """Weights of the e-values, which add up to one."""
        return np.array(self.weights or (1.0 / len(self.multiples),) * len(self.multiples))


UPPER = BetSizes((5.0, 9.0, 16.0, 28.0), largest=0.95)  # gamma sqrt(n) of Theorem U
SCALED = BetSizes((2.0, 2.8, 4.0, 8.0), largest=0.95)  # gamma sd sqrt(n), where some scores say the sd of outcomes
JITTERED = BetSizes(UPPER.multiples, (0.55, 0.2, 0.15, 0.1), 0.95)  # few effective cells favour the small one
FORWARD = BetSizes((2.0, 4.0, 8.0, 16.0))  # kappa sqrt(n) of Theorem L's forward recursion
RATE = BetSizes(FORWARD.multiples)  # sizes overstate the noise of rare events, so large multiples too
DIFFERENCE = BetSizes((2.0, 4.0, 8.0), (0.25, 0.5, 0.25))  # around the best for several comparisons at once, about 3.5


MOST_LOST = 0.95  # share of its wealth that a bet on a gap may lose on one row or cluster


def sized(best: ArrayLike, hypothesis: float, side: float = 1.0, most: float = 1.0) -> Floats:
    """Stakes against "the gap is at most `hypothesis`" (`side` 1), or at least (-1): `best`, or what is safe.

    A row loses at most ``side r >= -most``, and so ``most + side m`` times its stake: of that the stake may take
    `MOST_LOST`. What it wins falls in m all the same, as ``(r - m) / (most + m)`` does. No residual is read.
    """
    safe = MOST_LOST / max(most + side * hypothesis, 1e-9)
    return np.minimum(np.asarray(best, dtype=np.float64), safe)


def leaning(best: Floats, skewness: Floats) -> Floats:
    """Stakes that are the best to the second order, of winnings with third moment `skewness` times the second.

    With ``-ln(1 - k) = k + k^2 / 2 + k^3 / 3`` of rare losses the best is ``b - 2 b^2 / 3``, of rare wins ``b + 2 b^2 /
    3``, where b is the best without a third moment.
    """
    lean = 2.0 / 3.0 * best * skewness
    bet_sizes: Floats = best * np.where(lean > 0.0, 1.0 + lean, 1.0 / (1.0 + np.abs(lean)))
    return bet_sizes


def gammas(n: int) -> Floats:
    """The bets of Theorem U for `n` rows, shape (4,), each in (0, 1)."""
    return UPPER.bets(np.sqrt(max(n, 1)))


# ---- Theorem 1, the readable reference: what the bets below improve on ----


def bernstein(plug_in: float, moment: float, rows: float, delta: float) -> float:
    """Theorem 1's bound from its plug-in F and empirical second moment w; ``delta`` split 0.8 to 0.2.

    ``CE <= F + sqrt(2 v L1 / N) + L1 / (3 N)`` with ``v = (sqrt(L2 / 2N) + sqrt(w + L2 / 2N))^2``, an upper confidence
    bound on the expected second moment.
    """
    l1, l2 = -np.log(0.8 * delta), -np.log(0.2 * delta)
    v = min(1.0, (np.sqrt(l2 / (2 * rows)) + np.sqrt(moment + l2 / (2 * rows))) ** 2)
    return float(min(1.0, plug_in + np.sqrt(2 * v * l1 / rows) + l1 / (3 * rows)))


# ---- Evidence about the error of independent rows ----


@dataclass(frozen=True)
class Above(Evidence):
    r"""Evidence against "the error is at least x" (Theorem U): ``sum_j w_j exp(-phi_j) (1 - gamma_j x)^(-n)``.

    Its mean is at most one whatever the error is, if at least x: ``(1 - gamma CE)^n / (1 - gamma x)^n <= 1``.
    """

    # `phi`, `gamma` and `weights`, shape (m,): log costs, bets in (0, 1), and weights that add up to one.
    phi: Floats
    gamma: Floats
    weights: Floats
    n: int  # rows

    start, stop = 1.0, 0.0

    def at(self, x: float) -> float:
        """The log e-value, which rises with x."""
        return log_mean_exp(-self.phi - self.n * np.log1p(-self.gamma * x), self.weights)


@dataclass(frozen=True)
class Below(Evidence):
    r"""Evidence against "the error is at most x" (Theorem L).

    ``sum_j w_j exp(growth_j - sum_b rows_jb ln(1 + stakes_jb x))``. Its mean is at most one whatever the error
    is, if at most x.
    """

    growth: Floats  # shape (m,): log wealth of each e-value at `x = 0`
    # `bet_sizes` and `rows`, shape (m, b): bets in [0, 1) and rows per block.
    bet_sizes: Floats
    rows: Floats
    weights: Floats  # shape (m,)

    def at(self, x: float) -> float:
        """The log e-value, which falls with x."""
        return log_mean_exp(self.growth - (self.rows * np.log1p(self.bet_sizes * x)).sum(axis=1), self.weights)


def solve_upper(phi: ArrayLike, gamma: Floats, weights: ArrayLike, n: int, delta: float) -> float:
    """The x at which the evidence of Theorem U reaches ``1 / delta``: the parameters are those of `Above`."""
    return Above(np.asarray(phi, dtype=np.float64), gamma, np.asarray(weights, dtype=np.float64), n).limit(delta)


def log_curvature(b: Floats) -> Floats:
    """``(-ln(1 - b) - b) / b^2`` for b from 0 to 1, the c of ``ln(1 + z) >= z - c z^2`` for z of at least -b."""
    small = b < 1e-4
    safe = np.where(small, 0.5, b)
    out: Floats = np.where(small, 0.5 + 0.34 * b, (-np.log1p(-safe) - safe) / safe**2)
    return out


# ---- Theorem L: bets on signs that were learnt on earlier blocks, or on every path of signs ----
# For any ``|f| <= 1`` chosen before a block is read and any ``kappa in (0, 1)``, a row of the block satisfies
# ``E[1 + kappa f(p)(Y - p) | past] <= 1 + kappa CE``. So the product over rows, divided by
# ``(1 + kappa CE)^n``, is a test supermartingale started at one: whoever could win much more than the error
# allows has shown that the error is larger.

BLOCK_ORDERS = 4  # random orders of the blocks, averaged: the bound then hardly depends on the seed
SWITCH = 0.1  # prior chance that the sign changes from one cell to the next: once in ten equal-mass cells
SOFT = 0.25  # the largest variance of one row, added to a cell's: so few rows have no firm sign
SPLIT = 0xCA11  # stream of random numbers, apart from those of other methods at the same seed

Learn = Callable[[Ints], tuple[Floats, float]]  # past blocks -> signal, its mean square winnings per row
Grow = Callable[[int, Floats], float]  # block, stake times signal -> log wealth gained


class Bet(NamedTuple):
    """Log wealth if the error were zero, stakes per block, rows per block."""

    log_wealth: float
    bet_sizes: Floats
    rows: Floats | Ints


def block_orders(blocks: int, seed: int) -> list[Ints]:
    """Random orders of the blocks; each starts with a different block while there are enough."""
    if blocks < 2:
        raise BadInput(
            "a lower bound learns on some rows and is judged on others, and rows without identity cannot be assigned: "
            "pass key= (columns that identify a row) when sketching"
        )
    rng = np.random.default_rng([seed, SPLIT])
    base = rng.permutation(blocks)
    return [
        np.concatenate(([base[i % blocks]], rng.permutation(np.delete(base, i % blocks)))) for i in range(BLOCK_ORDERS)
    ]


def bet(block_rows: Ints, order: Ints, delta: float, learn: Learn, grow: Grow) -> Bet:
    """Bet on each block of an order but the first, with a signal learnt on the blocks before it."""
    rows = block_rows[order[1:]]
    log_wealth, bet_sizes = 0.0, np.zeros(len(rows))
    for i, block in enumerate(order[1:]):
        signal, moment = learn(order[: i + 1])
        # With mean winnings mu and mean square m a row, a stake of kappa grows by about n (kappa mu - kappa^2 m / 2):
        # ln(1 / delta) is reached from mu = ln(1 / delta) / (n kappa) + kappa m / 2 on, which is least at this kappa.
        # The cap keeps wealth above zero whatever a row brings, and 1e-12 the stake finite for a signal that is zero.
        bet_sizes[i] = min(np.sqrt(2.0 * -np.log(delta) / max(rows.sum() * moment, 1e-12)), FORWARD.largest)
        log_wealth += grow(int(block), bet_sizes[i] * signal)
    return Bet(log_wealth, bet_sizes, rows)


def steady(block_rows: Ints, variances: Floats, order: Ints, delta: float, grow: Grow) -> list[Bet]:
    """Bet on every row that its score underpredicts, and on every row that it overpredicts: a plain shift is shown so.

    The witness is constant, so nothing is learnt of the outcomes, and every block is bet on. Both bets are made and
    both are paid for: the sign that would have won is known afterwards only. `delta` is what stakes are the best for.
    """
    rows = block_rows[order]
    return [
        Bet(sum(grow(int(b), np.array(sign * k)) for b, k in zip(order, bet_sizes, strict=True)), bet_sizes, rows)
        for bet_sizes in steady_bet_sizes(rows, variances[order], delta, FORWARD.largest)
        for sign in (1.0, -1.0)
    ]


def steady_bet_sizes(rows: Ints, variances: Floats, delta: float, largest: float) -> Floats:
    """Stakes on a shift that are the best at `delta`, shape (bets, blocks); valid at every other.

    `variances` are the blocks' sums of ``p (1 - p)``: the stake on a block is the best for the scores of the blocks
    before it, that on the first for the largest variance there is. A single block is bet on with stakes that its size
    fixes.
    """
    n = max(int(rows.sum()), 1)
    if len(rows) == 1:
        return np.minimum(np.array(FORWARD.multiples)[:, None] / np.sqrt(n), largest)
    before, spread = (np.cumsum(v) - v for v in (rows, variances))
    moment = np.minimum((spread + SOFT) / (before + 1.0), SOFT)
    best: Floats = np.minimum(np.sqrt(2.0 * -np.log(delta) / (n * moment)), largest)
    return best[None]


def sign_paths(log_wealth: Floats, switch: float) -> float:
    """The log of the mean, over paths of signs -1, 0 and 1, of the wealth along the path.

    The signs follow a Markov chain with uniform start that keeps its state with probability ``1 - switch``; the
    forward algorithm adds up all ``3^cells`` paths.

    `log_wealth` (cells, 3): what each sign wins in each cell. `switch`: two thirds for independent signs.
    """
    step = (np.full((3, 3), switch / 2.0) + np.eye(3) * (1.0 - 1.5 * switch)).tolist()
    state, total = [1.0 / 3.0] * 3, 0.0
    for c, won in enumerate(log_wealth.tolist()):  # three states are too few for arrays
        top = max(won)
        if c:
            state = [sum(map(operator.mul, state, column)) for column in zip(*step, strict=True)]
        state = [s * math.exp(w - top) for s, w in zip(state, won, strict=True)]
        here = sum(state)
        total += top + math.log(here)
        state = [s / here for s in state]
    return total


def joined(wagers: Sequence[Bet], weights: ArrayLike) -> Below:
    """The average of the wagers' e-values."""
    bet_sizes, rows = np.zeros((2, len(wagers), max(len(bet_sizes) for _, bet_sizes, _ in wagers)))
    for i, (_, k, r) in enumerate(wagers):
        bet_sizes[i, : len(k)], rows[i, : len(r)] = k, r
    return Below(np.array([w for w, _, _ in wagers]), bet_sizes, rows, np.asarray(weights, dtype=np.float64))


def solve(wagers: Sequence[Bet], weights: ArrayLike, delta: float) -> float:
    """Average the wagers' e-values and return the error at which they reach ``1 / delta``."""
    return joined(wagers, weights).limit(delta)


# ---- Independent units: rows, or whole clusters, each bounded by known numbers given the scores ----


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """What clusters add to a sum, and what they could have added."""

    # `value`, `least` and `most`, shape (units,): what each adds, and the least and most it could have added, given the
    # scores.
    value: Floats
    least: Floats
    most: Floats
    size: Floats  # shape (units,): what the sum is divided by, in all, to be a mean
    # Root of the summed squares of the noise to expect, which bets are measured in; any positive number is valid.
    scale: float

    @classmethod
    def of_residuals(cls, y: ArrayLike, p: Floats, weights: Floats, cluster: NDArray[np.intp]) -> Clusters:
        """Add up ``w (y - p)`` and w over the rows of each cluster (0 to U - 1)."""
        value, least, most = (summed(cluster, weights * (v - p)) for v in (np.asarray(y), 0.0, 1.0))
        size = summed(cluster, weights)
        return cls(value=value, least=least, most=most, size=size, scale=float(np.sqrt((size**2).sum())))

    @classmethod
    def of_values(
        cls,
        y: ArrayLike,
        p: Floats,
        ends: tuple[Floats, Floats],
        weight: Floats,
        cluster: NDArray[np.intp] | None = None,
    ) -> Clusters:
        """Clusters whose mean is the weighted mean over rows of one of two numbers each.

        Whatever two repairs are compared in (Brier score, log loss, accuracy, the residual of a group), a row
        contributes one of two numbers, known from its scores.

        `y`, `p` (n,): outcomes, and rates from which the noise is guessed. `ends` (n,): what a row contributes if the
        outcome is 0, and if it is 1. `weight` (n,). `cluster` (n,): 0, 1, ...: whole clusters are the clusters.
        """
        n = len(weight)
        scale = weight * (n / weight.sum())
        z0, z1 = (end * scale for end in ends)
        value: Floats = np.where(np.asarray(y) == 1, z1, z0)
        least, most = np.minimum(z0, z1), np.maximum(z0, z1)
        rate = np.clip(p, 1e-3, 1.0 - 1e-3)  # so that scores of 0 and 1 do not promise to be noiseless
        noise = (z1 - z0) ** 2 * rate * (1.0 - rate)
        if cluster is None:
            return cls(value=value, least=least, most=most, size=np.ones(n), scale=float(np.sqrt(noise.mean() * n)))
        clusters = int(cluster.max()) + 1
        share = clusters / n
        value, least, most, noise = (summed(cluster, v) for v in (value, least, most, noise))
        spread = np.sqrt(noise.mean()) * share**0.75  # between independent rows and rows of one fate
        return cls(
            value=value * share,
            least=least * share,
            most=most * share,
            size=np.ones(clusters),
            scale=float(spread * np.sqrt(clusters)),
        )

    @property
    def mean(self) -> float:
        """The mean seen."""
        return float(self.value.sum() / self.size.sum())


# ---- Event rates, and ratios of sums, one-sided or two-sided, at any number of rows ----

GRID = 201  # hypotheses scanned from the far end, so that every one beyond a limit is refuted


def rate_evidence(events: ArrayLike, rows: ArrayLike, rate: ArrayLike) -> Floats:
    """P-values against "the mean event rate is at most `rate`", for independent rows of unequal rates.

    The binomial tail bounds that of unequal rates from ``rows x rate + 1`` events on (Hoeffding 1956); below, the
    p-value is 1, and for a single case it is the expected number.
    """
    from scipy.special import betainc

    k, n, r = (np.asarray(v, dtype=np.float64) for v in (events, rows, rate))
    tail = betainc(np.maximum(k, 1.0), n - k + 1.0, np.minimum(r, 1.0))
    out: Floats = np.where(k == 1.0, np.minimum(n * r, 1.0), np.where(k < n * r + 1.0, 1.0, tail))
    return out


def lower_rates(events: ArrayLike, rows: ArrayLike, delta: ArrayLike) -> Floats:
    """Limits that the mean event rate of independent rows reaches with probability at least ``1 - delta``.

    Clopper and Pearson's, but for a single case, whose limit is that of the expected number; and never above
    ``(events - 1) / rows``, from where on the binomial tail bounds that of unequal rates (Hoeffding 1956). Up to a
    delta of 1/4 no limit is that high.
    """
    from scipy.special import betaincinv

    k, n, d = (np.asarray(v, dtype=np.float64) for v in (events, rows, delta))
    exact = betaincinv(np.maximum(k, 1.0), n - k + 1.0, d)
    out: Floats = np.where(k <= 1.0, k * d / n, np.minimum(exact, (k - 1.0) / n))
    return out


def rate_limits(events: int, rows: int, delta: float) -> tuple[float, float]:
    """Limits that hold the mean event rate of independent rows with probability at least ``1 - delta``."""
    low, high = lower_rates((events, rows - events), rows, delta / 2.0)
    return float(low), 1.0 - float(high)


def ratio_evidence(clusters: Clusters, mean: float, side: float) -> float:
    """A p-value against "expected value over size is at most `mean`" (`side` 1), or at least it (-1).

    Notes
    -----
    For a bet k fixed by what the outcomes cannot change, ``prod (1 + k (a_u - m b_u))`` has mean at most one if ``E sum
    a = m sum b``, whatever each cluster's own mean; so has an average over bets.
    """
    return float(min(1.0, np.exp(-_log_wealth(clusters, mean, side))))


def ratio_limits(clusters: Clusters, delta: float) -> tuple[float, float]:
    """Limits that hold ``E sum value / sum size`` with probability at least ``1 - delta``."""
    target = float(np.log(2.0 / delta))

    def limit(side: float) -> float:
        means = np.linspace(-side, side, GRID)
        before = float(means[0])
        for m in map(float, means):
            if _log_wealth(clusters, m, side) <= target:
                return m if m == before else crossing(lambda v: _log_wealth(clusters, v, side) - target, before, m)
            before = m
        return before

    return float(limit(1.0)), float(limit(-1.0))


def _log_wealth(clusters: Clusters, mean: float, side: float) -> float:
    """The logarithm of the mean, over bets, of what they make of the clusters."""
    worst = float((side * mean * clusters.size - np.minimum(side * clusters.least, side * clusters.most)).max())
    bet_sizes = RATE.bets(clusters.scale, worst)
    gain = np.log1p(bet_sizes[:, None] * side * (clusters.value - mean * clusters.size)[None, :]).sum(axis=1)
    return log_mean_exp(gain, RATE.shares)


# ---- The mean of units of any size, seen many times (once a repair, a measure and a fold): from a grid of values ----

CELLS = 1024  # of the values' range; what the log evidence loses is about 2e-6 (range / sd)^2


def mean_limits(u: Clusters, delta: float) -> tuple[float, float]:
    r"""Limits that hold the mean of ``E[z | scores]`` over the clusters with probability at least ``1 - delta``.

    For clusters independent given the scores with means ``mu_u``, and kappa fixed by the scores, ``E prod (1 - kappa
    (z_u - m)) = prod (1 - kappa (mu_u - m)) <= (1 - kappa (mean mu - m))^n`` is at most one wherever ``mean mu >= m``;
    a fixed mixture over kappas that reaches ``2 / delta`` refutes that. The logarithm is concave, so that moving each
    cluster to the ends of a cell around it, mean kept, can only lower the evidence.
    """
    floor, top = float(u.least.mean()), float(u.most.mean())
    if not u.scale > 0.0 or not top > floor:
        return floor, top
    at, weight = _spread_out(u.value)
    upper = _upper(at, weight, (floor, top), DIFFERENCE.bets(u.scale, float(u.most.max()) - floor), delta / 2)
    lower = -_upper(-at, weight, (-top, -floor), DIFFERENCE.bets(u.scale, top - float(u.least.min())), delta / 2)
    return min(lower, u.mean), max(upper, u.mean)


def _spread_out(value: Floats) -> tuple[Floats, Floats]:
    """Grid points and weights with the same total and mean, every value moved to the ends of its cell."""
    low, high = float(value.min()), float(value.max())
    width = (high - low) / CELLS
    if width < np.finfo(float).tiny:  # all alike, or so near that the width has lost its digits
        return np.array([low]), np.array([float(len(value))])
    place: Floats = (value - low) / width
    cell = np.minimum(place.astype(np.int64), CELLS - 1)
    share = place - cell
    rows, part = np.bincount(cell, minlength=CELLS), np.bincount(cell, share, CELLS)
    weight: Floats = np.append(rows - part, 0.0) + np.append(0.0, part)
    kept = np.flatnonzero(weight > 0)
    return np.asarray(low + width * kept, dtype=np.float64), weight[kept]


def _upper(at: Floats, weight: Floats, ends: tuple[float, float], kappas: Floats, delta: float) -> float:
    """The upper limit of a mean within `ends`."""
    start, stop = ends

    def log_e(m: float) -> float:
        """Evidence against a mean of at least m; it grows with m."""
        growth = [float(weight @ np.log1p(-k * (at - m))) for k in kappas]
        return log_mean_exp(growth, DIFFERENCE.shares)

    return limit_of(log_e, delta, stop, start)
