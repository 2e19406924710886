"""Outcomes simulated under calibration, p-values of one statistic and of many, and intervals for noisy sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# ---- Outcomes of a calibrated model, simulated given the scores, and what they say about a statistic ----

CHUNK = 1 << 20  # numbers held at once
STREAM = 0x5EED


def null_cases(rows: Any, rate: Any, draws: int, seed: int, stream: int = 0) -> Iterator[Any]:
    """Yield arrays of simulated cases, ``Binomial(rows, rate)``, a draw a row; the same for any chunk size.

    Parameters
    ----------
    rows, rate : arrays of shape (cells,)
        Rows of each cell, and the event rate of each if the model is calibrated.
    draws : int
        Draws in all.
    seed, stream : int
        Two streams of one seed are independent.

    Yields
    ------
    float array of shape (some draws, cells)
    """
    rng = np.random.default_rng([STREAM, stream, seed])
    n, p = np.asarray(rows).astype(np.int64), np.clip(np.asarray(rate, dtype=float), 0.0, 1.0)
    step = max(1, CHUNK // max(len(n), 1))
    for start in range(0, draws, step):
        yield rng.binomial(n, p, size=(min(step, draws - start), len(n))).astype(float)


def p_value(statistic: float, simulated: Any) -> float:
    """Return ``(1 + #{simulated >= statistic}) / (draws + 1)``; ties are told from rounding at 1e-9 relative."""
    at_least = simulated >= statistic - 1e-9 * max(1.0, abs(statistic))
    return float((1 + int(np.sum(at_least))) / (len(simulated) + 1))


def critical(simulated: Any, alpha: float) -> Any:
    """Return the value that a statistic exceeds exactly when its p-value is at most `alpha`.

    The ``ceil((1 - alpha) (draws + 1))``-th smallest along the first axis; infinite where there are too few
    draws for any p-value to be so small.
    """
    draws = simulated.shape[0]
    rank = int(np.ceil(round((1.0 - alpha) * (draws + 1), 9)))
    if rank > draws:
        return np.full(simulated.shape[1:], np.inf)[()]
    return np.partition(simulated, rank - 1, axis=0)[rank - 1]


# ---- p-values of several tests that are looked at together ----


def step_down(observed: Any, simulated: Any) -> Any:
    """Return Westfall and Young's step-down adjusted p-values of statistics simulated together.

    The largest statistic is held against the largest of all in each draw, the next against the largest of the rest,
    and so on; an adjusted p-value is never below that of a larger statistic.

    Parameters
    ----------
    observed : array of shape (tests,)
    simulated : array of shape (tests, draws)

    Returns
    -------
    float array of shape (tests,)
    """
    order = np.argsort(-observed, kind="stable")
    top = np.maximum.accumulate(simulated[order[::-1]], axis=0)[::-1]
    slack = 1e-9 * np.maximum(1.0, np.abs(observed[order]))
    at_least = (top >= (observed[order] - slack)[:, None]).sum(axis=1)
    out = np.empty(len(order))
    out[order] = np.maximum.accumulate((1.0 + at_least) / (simulated.shape[1] + 1.0))
    return out


def holm(p: Any) -> Any:
    """Return Holm's adjusted p-values, shape (tests,): valid whatever the dependence."""
    order = np.argsort(p, kind="stable")
    size = len(order)
    out = np.empty(size)
    out[order] = np.minimum(np.maximum.accumulate(np.asarray(p)[order] * (size - np.arange(size))), 1.0)
    return out


# ---- Intervals for the size of a noisy vector: a parametric bootstrap, inverted along the observed direction ----

CLEAR = 4.0  # squared signal over variance below which an entry may be noise only
Size = Callable[[Any], Any]  # a norm over the last axis


def noise(second: Any, mean: Any, rows: float, shocks: Any) -> Any:
    """Give unit shocks the covariance ``(diag(second) - mean mean') / rows`` of a mean over rows.

    Parameters
    ----------
    second, mean : arrays of shape (m,)
        Second moments and means of disjointly supported variables, so that the covariance is of this form.
    rows : float
        Rows, or effective rows, averaged.
    shocks : array of shape (draws, m)
        Independent, with mean 0 and variance 1.

    Returns
    -------
    array of shape (draws, m)
    """
    root = np.sqrt(second)
    lean = np.divide(mean, root, out=np.zeros(len(root)), where=root > 0)
    square = min(float(lean @ lean), 1.0)
    pull = (1 - np.sqrt(1 - square)) / square if square > 1e-12 else 0.5
    return (shocks * root - pull * (shocks @ lean)[:, None] * mean) / np.sqrt(rows)


def shrunken(signal: Any, variance: Any, cut: float = 1.0) -> Any:
    """Return the positive-part James-Stein rule per entry: ``signal (1 - cut variance / signal^2)+``."""
    square = signal**2
    keep = np.divide(square - cut * variance, square, out=np.zeros(len(square)), where=square > cut * variance)
    return signal * keep


@dataclass(frozen=True)
class Sizes:
    """Point estimate and interval of the size of a vector seen with noise.

    Parameters
    ----------
    plug_in, middle, low, high : float
        Size of what was seen; size without the noise; ends of the interval.
    """

    plug_in: float
    middle: float
    low: float
    high: float


def size_interval(signal: Any, draws: Any, size: Size, alpha: float, plain: Any, hidden: Any) -> Sizes:
    r"""Invert a parametric bootstrap of ``T = size(mu + Z)`` for ``size(mu)``.

    Along a direction u, ``T*(c) = size(c u + Z*)`` is stochastically increasing in c (Anderson's lemma). The low
    end is the c at which the observed size is the upper ``alpha / 2`` quantile of ``T*``, along the direction in
    which error of a given size is plainest; the high end that at which it is the lower one, along the direction in
    which error hides best; the middle the c at which it is the mean, along the shrunken signal. The high end is at
    least what was seen. If even noise alone would be seen larger, the noise is not to be trusted, and the high end
    is what was seen plus the upper quantile of the noise (the triangle inequality).

    Parameters
    ----------
    signal : array of shape (m,)
    draws : array of shape (draws, m)
    size : callable
        A norm over the last axis.
    alpha : float
    plain, hidden : arrays of shape (m,)
        The two directions; `plain` may be all zero, and is then the signal.
    """
    seen = float(size(signal))

    def at(direction: Any, summary: Callable[[Any], float]) -> float:
        u = direction if np.any(direction) else signal if np.any(signal) else hidden
        return float(size(_rising(lambda c: summary(size(c * u + draws)) - seen) * u))

    low = at(plain, lambda t: float(np.quantile(t, 1 - alpha / 2)))
    high = at(hidden, lambda t: float(np.quantile(t, alpha / 2)))
    high = max(high, seen) if high > 0 else seen + float(np.quantile(size(draws), 1 - alpha / 2))
    middle = at(shrunken(signal, draws.var(axis=0)), lambda t: float(t.mean()))
    return Sizes(seen, min(max(middle, low), high), min(low, high), high)


def total_interval(signal: Any, draws: Any, size: Size, alpha: float) -> Sizes:
    """Interval for a size that adds up over entries.

    Error is plainest where it sits in few clear entries, and hides best spread in proportion to the noise.
    """
    spread = draws.var(axis=0)
    hidden = np.sqrt(spread) * np.where(signal < 0, -1.0, 1.0)
    return size_interval(signal, draws, size, alpha, shrunken(signal, spread, CLEAR), hidden)


def peak_interval(signal: Any, draws: Any, alpha: float) -> Sizes:
    """Interval for the largest entry.

    Error is plainest where every entry has it, and hides best in the noisiest entry alone.
    """
    spread = draws.var(axis=0)
    sign = np.where(signal < 0, -1.0, 1.0)
    hidden = np.where(np.arange(len(signal)) == int(np.argmax(spread)), sign, 0.0)
    return size_interval(signal, draws, lambda x: np.abs(x).max(axis=-1), alpha, sign, hidden)


def _rising(excess: Callable[[float], float]) -> float:
    """Return the root of an increasing function on [0, inf), or 0 if it starts above zero."""
    from scipy.optimize import brentq

    if excess(0.0) >= 0.0:
        return 0.0
    top = 1.25
    while excess(top) < 0.0:
        top *= 2.0
        if top > 1e9:
            return top
    return float(brentq(excess, 0.0, top, xtol=1e-5, rtol=1e-5))
