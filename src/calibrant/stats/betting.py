"""Product certificates and confidence limits by betting: averages of e-values solved for what they exclude."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# ---- Product certificates: solve an average of e-values for the error it excludes (theory: Theorems U and L) ----
# Both certificates have the same form. An *e-value* is a non-negative statistic whose mean is at most one when
# the hypothesis is true; by Markov's inequality it exceeds ``1/delta`` with probability at most ``delta``, and an
# average of e-values, with weights fixed beforehand, is again an e-value. Here the hypothesis is "the error is
# x", the e-values are monotone in x, and the bound is the x at which their average reaches ``1/delta``.

STAKES = (5.0, 9.0, 16.0, 28.0)  # gamma * sqrt(n), fixed without looking at any data
JITTER_WEIGHTS = (0.55, 0.2, 0.15, 0.1)  # of the same stakes, where few effective cells favour the small one
LARGEST = 0.95


def gammas(n: int) -> Any:
    """Return the bets of Theorem U for `n` rows, shape (4,), each in (0, 1)."""
    return np.minimum(np.array(STAKES) / np.sqrt(max(n, 1)), LARGEST)


def log_mean_exp(values: Any, weights: Any) -> float:
    """Return ``ln sum weights * exp(values)`` without overflow."""
    shifted = np.asarray(values, dtype=float) + np.log(weights)
    top = float(shifted.max())
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.exp(shifted - top).sum()))


def solve_upper(phi: Any, gamma: Any, weights: Any, n: int, delta: float) -> float:
    r"""Return the x with ``sum_j w_j exp(-phi_j) (1 - gamma_j x)^(-n) = 1 / delta``, in [0, 1].

    Parameters
    ----------
    phi, gamma, weights : arrays of shape (m,)
        Log costs, bets in (0, 1), and weights that add up to one.
    n : int
        Rows.
    delta : float in (0, 1)
    """
    target = -np.log(delta)

    def excess(x: float) -> float:
        return float(log_mean_exp(-np.asarray(phi) - n * np.log1p(-gamma * x), weights) - target)

    return _root(excess, 1.0)


def solve_lower(growth: Any, stakes: Any, rows: Any, weights: Any, delta: float) -> float:
    r"""Return the x with ``sum_j w_j exp(growth_j - sum_b rows_jb ln(1 + stakes_jb x)) = 1 / delta``, in [0, 1].

    Parameters
    ----------
    growth : array of shape (m,)
        Log wealth of each e-value at ``x = 0``.
    stakes, rows : arrays of shape (m, b)
        Bets in [0, 1) and rows per block.
    weights : array of shape (m,)
    delta : float in (0, 1)
    """
    target = -np.log(delta)

    def excess(x: float) -> float:
        return float(target - log_mean_exp(growth - (rows * np.log1p(stakes * x)).sum(axis=1), weights))

    return _root(excess, 1.0)


def _root(increasing: Any, top: float) -> float:
    """Return where an increasing function crosses zero in [0, top], clipped to the ends."""
    from scipy.optimize import brentq

    if increasing(0.0) >= 0.0:
        return 0.0
    if increasing(top) <= 0.0:
        return top
    return float(brentq(increasing, 0.0, top, xtol=1e-12, rtol=1e-10))


# ---- Finite-sample confidence limits for the mean of a bounded residual, by betting (Waudby-Smith & Ramdas ----

MEAN_STAKES = (0.5, 1.0, 2.0, 4.0, 8.0)  # kappa * sqrt(n), over the largest standard deviation one half
LARGEST_MEAN_STAKE = 0.45


def residual_mean_limits(counts: Any, score_sums: Any, low: Any, high: Any, delta: float) -> tuple[float, float]:
    r"""Return limits that hold ``E[Y - p]`` with probability at least ``1 - delta``.

    For a true mean m, ``prod_i (1 + kappa (y_i - p_i - m))`` has mean one; its average over fixed kappas is an
    e-value, and each limit is the m at which it reaches ``2 / delta``. Per cell the product is bounded below by
    the chord through the cell's ends at the exact mean score, so sums of scores are enough.

    Parameters
    ----------
    counts, score_sums : arrays of shape (cells, 2)
        Rows per label, and the sums of their scores.
    low, high : arrays of shape (cells,)
        Ends of the cells.
    delta : float
    """
    n = float(np.sum(counts))
    kappas = np.minimum(2.0 * np.array(MEAN_STAKES) / np.sqrt(n), LARGEST_MEAN_STAKE)
    width = np.where(high > low, high - low, 1.0)[:, None]
    share = np.clip((score_sums / np.maximum(counts, 1) - low[:, None]) / width, 0.0, 1.0)
    ends = np.stack([low, high])[:, :, None]
    residual = np.array([0.0, 1.0])[None, None, :] - ends
    weight = counts * np.stack([1.0 - share, share])

    def excess(m: float, sign: float) -> float:
        growth = [(weight * np.log1p(sign * k * (residual - m))).sum() for k in kappas]
        return log_mean_exp(np.array(growth), np.full(len(kappas), 1.0 / len(kappas))) - float(np.log(2.0 / delta))

    return _limit(lambda m: excess(m, 1.0), -1.0, 1.0), _limit(lambda m: excess(m, -1.0), 1.0, -1.0)


def _limit(excess: Any, start: float, stop: float) -> float:
    """Return where `excess`, largest at `start`, falls to zero on the way to `stop`."""
    from scipy.optimize import brentq

    if excess(start) <= 0.0:
        return start
    if excess(stop) >= 0.0:
        return stop
    return float(brentq(excess, start, stop, xtol=1e-12))


# ---- Event rates of a group: one-sided evidence and limits that hold at any number of rows, weights and ----

RATE_STAKES = (2.0, 4.0, 8.0, 16.0)  # bets times the root of the units and their size
LARGEST_RATE_STAKE = 0.9  # share of its wealth that a bet may lose on one unit
GRID = 201  # hypotheses scanned from the far end, so that every one beyond a limit is refuted


@dataclass(frozen=True, kw_only=True)
class Units:
    """Independent units: rows, or whole clusters.

    Parameters
    ----------
    excess, size : float arrays of shape (units,)
        Sums of weighted residuals ``w (y - p)``, and of weights.
    least, most : float arrays of shape (units,)
        What `excess` would be without a case, and with cases only.
    """

    excess: Any
    size: Any
    least: Any
    most: Any

    @classmethod
    def of(cls, y: Any, p: Any, weights: Any, unit: Any) -> Units:
        """Add up the rows of each unit (0 to U - 1)."""
        residual = (np.bincount(unit, weights * (v - p)) for v in (y, 0.0, 1.0))
        excess, least, most = residual
        return cls(excess=excess, size=np.bincount(unit, weights), least=least, most=most)


def rate_evidence(cases: int, rows: int, rate: float) -> float:
    """Return a p-value against "the mean event rate is at most `rate`", for independent rows of unequal rates.

    The binomial tail bounds that of unequal rates from ``rows x rate + 1`` cases on (Hoeffding 1956); below, the
    p-value is 1, and for a single case it is the expected number.
    """
    from scipy.special import bdtrc

    expected = rows * rate
    if cases == 1:
        return min(1.0, expected)
    if cases < expected + 1.0:
        return 1.0
    return float(bdtrc(cases - 1, rows, min(rate, 1.0)))


def rate_limits(cases: int, rows: int, delta: float) -> tuple[float, float]:
    """Return limits that hold the mean event rate of independent rows with probability at least ``1 - delta``.

    Clopper and Pearson's, which hold for unequal rates too where they exclude something (Hoeffding 1956), but for a
    single case, or non-case, whose limit is that of the expected number.
    """
    from scipy.special import betaincinv

    def lower(k: int) -> float:
        if k <= 1:
            return k * delta / (2.0 * rows)
        return float(betaincinv(k, rows - k + 1, delta / 2.0))

    return lower(cases), 1.0 - lower(rows - cases)


def ratio_evidence(units: Units, mean: float, side: float) -> float:
    """Return a p-value against "expected excess over size is at most `mean`" (`side` 1), or at least it (-1).

    Notes
    -----
    For a bet k fixed by what the outcomes cannot change, ``prod (1 + k (a_u - m b_u))`` has mean at most one if
    ``E sum a = m sum b``, whatever each unit's own mean; so has an average over bets.
    """
    return float(min(1.0, np.exp(-_log_wealth(units, mean, side))))


def ratio_limits(units: Units, delta: float) -> tuple[float, float]:
    """Return limits that hold ``E sum excess / sum size`` with probability at least ``1 - delta``."""
    from scipy.optimize import brentq

    target = float(np.log(2.0 / delta))

    def limit(side: float) -> float:
        means = np.linspace(-side, side, GRID)
        before = float(means[0])
        for m in map(float, means):
            if _log_wealth(units, m, side) <= target:
                return m if m == before else brentq(lambda v: _log_wealth(units, v, side) - target, before, m)
            before = m
        return before

    return float(limit(1.0)), float(limit(-1.0))


def _log_wealth(units: Units, mean: float, side: float) -> float:
    """Return the logarithm of the mean, over bets, of what they make of the units."""
    worst = float((side * mean * units.size - np.minimum(side * units.least, side * units.most)).max())
    stakes = np.array(RATE_STAKES) / np.sqrt(float((units.size**2).sum()))
    stakes = np.minimum(stakes, LARGEST_RATE_STAKE / worst) if worst > 0 else stakes
    gain = np.log1p(stakes[:, None] * side * (units.excess - mean * units.size)[None, :]).sum(axis=1)
    top = float(gain.max())
    return top + float(np.log(np.exp(gain - top).mean()))


# ---- Finite-sample limits for a mean that is linear in the outcomes, given the scores: paired differences of ----
# Whatever two repairs are compared in (Brier score, log loss, accuracy, the residual of a group), a row contributes one
# of two numbers, known from its scores: ``z(0)`` if the outcome does not happen and ``z(1)`` if it does. So given the
# scores every unit (row, or cluster of rows) is bounded by known numbers, and betting against the mean needs nothing
# else.

DIFFERENCE_STAKES = (2.0, 4.0, 8.0)  # kappa sqrt(n) spread; the best is sqrt(2 ln(2 / delta)), about 3.5
WEIGHTS = (0.25, 0.5, 0.25)
LARGEST_DIFFERENCE_STAKE = 0.9
CELLS = 1024


@dataclass(frozen=True)
class PairedUnits:
    """Independent units whose mean is wanted, with what each could have been.

    Parameters
    ----------
    value, low, high : float64 arrays of shape (u,)
        What each is, and the least and most it could be given the scores.
    spread : float
        Root mean square of the noise to expect, guessed from the scores; any positive number is valid.
    """

    value: Any
    low: Any
    high: Any
    spread: float

    @property
    def mean(self) -> float:
        """The mean seen."""
        return float(self.value.mean())


def paired_units_of(
    y: Any, p: Any, without: Any, happened: Any, weight: Any = None, cluster: Any = None
) -> PairedUnits:
    """Return units whose mean is the (weighted) mean over rows.

    Parameters
    ----------
    y, p : arrays of shape (n,)
        Outcomes, and rates from which the noise is guessed.
    without, happened : float64 arrays of shape (n,)
        What a row contributes if the outcome is 0, or 1.
    weight : array of shape (n,), optional
    cluster : int array of shape (n,), optional
        0, 1, ...: whole clusters are the units.
    """
    z0, z1 = without, happened
    if weight is not None:
        scale = weight * (len(y) / weight.sum())
        z0, z1 = z0 * scale, z1 * scale
    value, low, high = np.where(y == 1, z1, z0), np.minimum(z0, z1), np.maximum(z0, z1)
    rate = np.clip(p, 1e-3, 1.0 - 1e-3)
    noise = (z1 - z0) ** 2 * rate * (1.0 - rate)
    if cluster is None:
        return PairedUnits(value, low, high, float(np.sqrt(noise.mean())))
    size = int(cluster.max()) + 1
    share = size / len(y)
    value, low, high, noise = (np.bincount(cluster, v, size) for v in (value, low, high, noise))
    spread = np.sqrt(noise.mean()) * share**0.75  # between independent rows and rows of one fate
    return PairedUnits(value * share, low * share, high * share, float(spread))


def mean_limits(u: PairedUnits, delta: float) -> tuple[float, float]:
    r"""Return limits that hold the mean of ``E[z | scores]`` over the units with probability at least ``1 - delta``.

    For units independent given the scores with means ``mu_u``, and kappa fixed by the scores,
    ``E prod (1 - kappa (z_u - m)) = prod (1 - kappa (mu_u - m)) <= (1 - kappa (mean mu - m))^n`` is at most one
    wherever ``mean mu >= m``; a fixed mixture over kappas that reaches ``2 / delta`` refutes that. The logarithm is
    concave, so that moving each unit to the ends of a cell around it, mean kept, can only lower the evidence.
    """
    floor, top = float(u.low.mean()), float(u.high.mean())
    if not u.spread > 0.0 or not top > floor:
        return floor, top
    at, weight = _spread_out(u.value)
    upper = _upper(at, weight, (floor, top), float(u.high.max()), u.spread, delta / 2)
    lower = -_upper(-at, weight, (-top, -floor), -float(u.low.min()), u.spread, delta / 2)
    return min(lower, u.mean), max(upper, u.mean)


def _spread_out(value: Any) -> tuple[Any, Any]:
    """Return grid points and weights with the same total and mean, every value moved to the ends of its cell."""
    low, high = float(value.min()), float(value.max())
    width = (high - low) / CELLS
    if not width > 0.0:
        return np.array([low]), np.array([float(len(value))])
    place = (value - low) / width
    cell = np.minimum(place.astype(np.int64), CELLS - 1)
    share = place - cell
    rows, part = np.bincount(cell, minlength=CELLS), np.bincount(cell, share, CELLS)
    weight = np.append(rows - part, 0.0) + np.append(0.0, part)
    held = np.flatnonzero(weight > 0)
    return low + width * held, weight[held]


def _upper(at: Any, weight: Any, range_: tuple[float, float], most: float, spread: float, delta: float) -> float:
    from scipy.optimize import brentq

    start, stop = range_
    n, target = float(weight.sum()), -float(np.log(delta))
    kappas = np.minimum(np.array(DIFFERENCE_STAKES) / (spread * np.sqrt(n)), LARGEST_DIFFERENCE_STAKE / (most - start))

    def excess(m: float) -> float:
        growth = [float(weight @ np.log1p(-k * (at - m))) for k in kappas]
        return log_mean_exp(np.array(growth), np.array(WEIGHTS)) - target

    if excess(stop) <= 0.0:
        return stop
    if excess(start) >= 0.0:
        return start
    return float(brentq(excess, start, stop, xtol=1e-12, rtol=1e-10))
