"""Outcomes of a calibrated model, simulated given the scores, and what they say about a statistic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

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
