"""Columns that rows share: named in one log of a hundred where outcomes are independent, and where they are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom, norm

from calibrant.stats.clusters.shared_values import LEVEL, shared_values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Design = Callable[[np.random.Generator], tuple[Ints, Floats, Floats]]
SETS, SURELY = 300, 1e-6


def few(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """90 rows of 40 clusters."""
    p = g.uniform(0.05, 0.95, 90)
    return g.integers(0, 40, 90), p, (g.random(90) < p) * 1.0


def rare(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """1,000 rows, twenty events, one cluster of many rows."""
    p = g.uniform(0.0, 0.04, 1000)
    return np.minimum(g.integers(0, 400, 1000), 300), p, (g.random(1000) < p) * 1.0


def wrong(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """Scores of clusters, a third too low: rows of one cluster err to one side."""
    cluster = g.integers(0, 60, 600)
    p = norm.cdf(-1.0 + 0.9 * g.normal(size=60)[cluster] + 0.1 * g.normal(size=600))
    return cluster, p, (g.random(600) < np.minimum(1.5 * p, 1.0)) * 1.0


def trend(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """A number of 60 values along which the score is off: no cluster, but rows of one value err to one side."""
    number = g.integers(0, 60, 600)
    x = g.normal(size=600)
    return number, expit(x), (g.random(600) < expit(x + 0.05 * (number - 30.0))) * 1.0


def shared(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """150 rows twice."""
    p = np.repeat(g.uniform(size=150), 2)
    return np.repeat(np.arange(150), 2), p, np.repeat((g.random(150) < p[::2]) * 1.0, 2)


def named(design: Design, sets: int = SETS) -> int:
    """Return in how many data sets the column is named."""
    found = 0
    for s in range(sets):
        cluster, p, y = design(np.random.default_rng([s, 0xA11CE]))
        code = np.unique(cluster, return_inverse=True)[1].reshape(-1).astype(np.int64)
        found += bool(shared_values({"k": (code, design is trend)}, y.astype(np.int8), p, seed=s).detected)
    return found


def too_many(found: int) -> bool:
    return bool(binom.sf(found - 1, SETS, LEVEL) < SURELY)


def test_the_level_holds_where_outcomes_are_independent() -> None:
    for design in (few, rare, wrong, trend):
        assert not too_many(named(design)), design.__name__


def test_copies_are_found() -> None:
    assert named(shared, 50) == 50
