"""The compiled score CUSUM equals its twin, and its paths say what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import oracles.draws
from calibrant.kernels import draws
from calibrant.stats.cusum import Boundary, Path, observed, path, simulated
from effort import examples
from oracles.draws import outcomes


@examples(60)
@given(n=st.integers(0, 40), first=st.integers(0, 10**6), salt=st.integers(0, 2**64 - 1), seed=st.integers(0, 10**6))
def test_words(n: int, first: int, salt: int, seed: int) -> None:
    rng = np.random.default_rng([0xA, seed])
    ids = rng.integers(0, 2**64, n, dtype=np.uint64)
    low, high = np.sort(rng.choice([0.0, 1.0, 0.3, *rng.random(4)], (2, n)), axis=0)
    fast = draws.words(ids, low, high, first, salt)
    np.testing.assert_array_equal(fast, oracles.draws.words(ids, low, high, first, salt))
    assert not (fast[:, 0] & ~fast[:, 1]).any()  # an event at the lower rate is one at the higher: common uniforms


@examples(100)
@given(steps=st.integers(0, 60), words=st.integers(1, 20), seed=st.integers(0, 10**6), empty=st.booleans())
def test_peaks(steps: int, words: int, seed: int, empty: bool) -> None:
    rng = np.random.default_rng([0xB, seed])
    word = rng.integers(0, 2**64, words, dtype=np.uint64)
    at = rng.integers(0, words, steps).astype(np.uint64)
    gain, drift = rng.normal(size=(2, steps))
    scale = rng.choice([0.0, 1.0, 0.5], steps)
    floor = 0.0 if empty else -np.inf
    fast, slow = (m.peaks(word, at, gain, drift, scale, floor) for m in (draws, oracles.draws))
    np.testing.assert_allclose(fast, slow, atol=1e-12, rtol=0)


def drawn(seed: int, n: int, digits: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng([0xC, seed])
    p = np.round(rng.random(n), digits)
    return p, (rng.random(n) < p).astype(np.int8), np.round(rng.normal(0, 0.2, n), digits)


def plain(q: Path, y: Any, n: int) -> float:
    """The default statistic from its formula, a threshold at a time."""
    best = 0.0
    for cut in np.unique(q.excess):
        inside = q.excess >= cut
        rate, h = q.rate[inside], np.abs(q.weight[inside])
        if (rate * (1 - rate)).sum() < 2 - 1e-12:
            continue
        score = (np.where(q.upper[inside], 1, -1) * h * (y[q.rows[inside]] - rate)).sum()
        all_of_it = (q.weight**2 * q.rate * (1 - q.rate)).sum()
        best = max(best, score / ((h**2 * rate * (1 - rate)).sum() * all_of_it) ** 0.25)
    return best


@example(seed=63, n=63, digits=1, tolerance=0.0, alternative="less")  # exactly two expected events
@examples(80)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 120),
    digits=st.integers(1, 6),
    tolerance=st.sampled_from([0.0, 0.05]),
    alternative=st.sampled_from(["two-sided", "greater", "less"]),
)
def test_statistic_is_its_formula_and_ignores_the_order_of_rows(
    seed: int, n: int, digits: int, tolerance: float, alternative: Any
) -> None:
    p, y, g = drawn(seed, n, digits)
    q = path(g, Boundary.of(p, tolerance), alternative)
    found = observed([q], y)[0]
    assert np.isclose(found, plain(q, y, n), atol=1e-9)
    order = np.random.default_rng(seed).permutation(n)
    again = observed([path(g[order], Boundary.of(p[order], tolerance), alternative)], y[order])[0]
    assert np.isclose(found, again, atol=1e-9)


@examples(40)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 80), tolerance=st.sampled_from([0.0, 0.1]))
def test_simulated_statistics_are_those_of_the_outcomes_drawn(seed: int, n: int, tolerance: float) -> None:
    p, _, g = drawn(seed, n, 3)
    edge = Boundary.of(p, tolerance)
    ids = np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)
    paths = [path(g, edge), path(-g, edge), path(g**2, edge, min_size=0.1)]
    null = simulated(paths, edge, ids, 70, 5)
    high, low = (outcomes(ids, rate, 0, 70, 5) for rate in (edge.high, edge.low))
    for b in (0, 63, 64, 69):
        for m, q in enumerate(paths):
            upper = np.zeros(n, dtype=bool)
            upper[q.rows] = q.upper
            y = np.where(upper, high[:, b], low[:, b])
            assert np.isclose(null[b, m], observed([q], y)[0], atol=1e-9)
