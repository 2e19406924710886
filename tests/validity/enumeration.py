"""Probabilities by summing over every outcome: no simulation, no normal approximation."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp, xlog1py, xlogy
from scipy.stats import binom

from calibrant.stats.cells import Cells


def log_choose(n: int) -> Any:
    k = np.arange(n + 1)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def log_mean(log_q: Any, n: int, rates: Any) -> Any:
    """Return ``ln E q(k)``, ``k ~ Binomial(n, e)``, for each rate e, from ``ln q(0) ... ln q(n)``."""
    k, e = np.arange(n + 1), np.asarray(rates)[:, None]
    return logsumexp(log_choose(n) + log_q + xlogy(k, e) + xlog1py(n - k, -e), axis=1)


def miss_probability(bounds: Any, rates: Any, truth: Callable[[Any], Any], upper: bool = True) -> float:
    """Largest probability, over the rates, that the bound at k cases of n lies on the wrong side of the truth."""
    e = np.asarray(rates)[:, None]
    n = len(bounds) - 1
    wrong = np.asarray(bounds) < truth(e) - 1e-9 if upper else np.asarray(bounds) > truth(e) + 1e-9
    return float((binom.pmf(np.arange(n + 1), n, e) * wrong).sum(axis=1).max())


def just_beyond(bounds: Any, s: float) -> Any:
    """Event rates at which the upper bound of some count has just become too small, and some between."""
    edge = np.concatenate([s + np.asarray(bounds) + 1e-8, s - np.asarray(bounds) - 1e-8, np.linspace(0, 1, 41)])
    return edge[(edge >= 0) & (edge <= 1)]


def blocked_labels(rows: Any, rates: Any) -> Iterator[tuple[float, Any]]:
    """Every table of cases per block and level with its probability; `rows` has shape (blocks, levels)."""
    shape, flat = rows.shape, rows.reshape(-1)
    chance = np.broadcast_to(rates, shape).reshape(-1)
    tables = [binom.pmf(np.arange(n + 1), n, e) for n, e in zip(flat, chance, strict=True)]
    for events in itertools.product(*(range(n + 1) for n in flat)):
        probability = float(np.prod([t[k] for t, k in zip(tables, events, strict=True)]))
        k = np.array(events).reshape(shape)
        yield probability, np.stack([rows - k, k], axis=-1)


def level_cells(counts: Any, values: Any) -> Cells:
    """Cells of a score that takes only these values, from counts of shape (blocks, levels, 2)."""
    return Cells.levels(np.asarray(counts, dtype=np.int64), np.asarray(values, dtype=float))


def grid_cells(counts: Any, where: Any, size: int) -> Cells:
    """Cells of a grid that holds rows, at the middles of the cells `where` only."""
    full = np.zeros((counts.shape[0], size, 2), dtype=np.int64)
    full[:, where] = counts
    return Cells.grid(full, full * ((np.arange(size) + 0.5) / size * 2.0**30)[None, :, None])
