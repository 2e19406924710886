"""The test for columns that join rows: its level where outcomes are independent, and that copies are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from calibrant.stats.clusters.intraclass_correlation import intraclass_correlation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Design = Callable[[np.random.Generator], tuple[Ints, Floats, Floats]]
SETS, LEVEL, SURELY = 300, 0.05, 1e-6


def few(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """80 rows of 30 units."""
    p = g.uniform(0.05, 0.95, 80)
    return g.integers(0, 30, 80), p, (g.random(80) < p) * 1.0


def rare(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """1,000 rows, ten cases, one unit of many rows."""
    p = g.uniform(0.0, 0.02, 1000)
    return np.minimum(g.integers(0, 400, 1000), 300), p, (g.random(1000) < p) * 1.0


def wrong(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """Scores of units, a third too low: rows of one unit err to one side."""
    cluster = g.integers(0, 60, 600)
    p = norm.cdf(-1.0 + 0.9 * g.normal(size=60)[cluster] + 0.1 * g.normal(size=600))
    return cluster, p, (g.random(600) < np.minimum(1.5 * p, 1.0)) * 1.0


def shared(g: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """150 rows twice."""
    p = np.repeat(g.uniform(size=150), 2)
    return np.repeat(np.arange(150), 2), p, np.repeat((g.random(150) < p[::2]) * 1.0, 2)


def rejected(design: Design) -> int:
    """Return how many data sets are rejected."""
    made = [design(np.random.default_rng([s, 0xA11CE])) for s in range(SETS)]
    return sum(intraclass_correlation(*one, level=LEVEL, seed=s).p_value <= LEVEL for s, one in enumerate(made))


def too_many(found: int) -> bool:
    return bool(binom.sf(found - 1, SETS, LEVEL) < SURELY)


def test_the_level_holds_where_outcomes_are_independent() -> None:
    for design in (few, rare, wrong):
        assert not too_many(rejected(design)), design.__name__


def test_copies_are_found() -> None:
    assert rejected(shared) == SETS
