"""Boxes of traits: compiled equals reference, and the best subset of levels is the best of all."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oracles.boxes
from calibrant.data.sketches.sums import Layout
from calibrant.data.specs.attributes import Attribute
from calibrant.kernels import boxes
from calibrant.stats.subgroups.family import runs, singles_and_pairs, sums_of
from effort import examples

BOTH = boxes, oracles.boxes
SEEDS = st.integers(0, 2**32)


def laid_out(sizes: Any, order: int) -> Layout:
    attributes = [Attribute(name=str(j), kind="number", edges=tuple(range(k - 2))) for j, k in enumerate(sizes)]
    return Layout(attributes, order)


@examples(60)
@given(SEEDS, st.integers(0, 60), st.lists(st.integers(2, 22), min_size=1, max_size=4), st.integers(1, 3))
def test_box_sums(seed: int, n: int, sizes: list[int], order: int) -> None:
    g = np.random.default_rng([0xB0C5, seed])
    layout = laid_out(sizes, min(order, len(sizes)))
    cells = np.stack([g.integers(0, k, n, dtype=np.uint8) for k in sizes])
    p = g.choice([0.0, 1.0, 0.5, 2.0**-30, 2.0**-31, 1.0 - 2.0**-53, *g.random(8)], n)
    y = g.integers(0, 2, n, dtype=np.int8)
    sums = [np.full((layout.cells, boxes.SUMS), 7, dtype=np.int64) for _ in BOTH]
    for m, out in zip(BOTH, sums, strict=True):
        m.box_sums(cells, p, y, layout.tables, layout.sizes, out)
    np.testing.assert_array_equal(*sums)
    tables = [layout.of(sums[0] - 7, t) for t in range(len(layout.combined))]
    assert {t[..., :2].sum(axis=tuple(range(t.ndim - 1))).tobytes() for t in tables} == {
        np.array([n, y.sum()], dtype=np.int64).tobytes()
    }


def test_box_sums_of_more_rows_than_one_turn_takes() -> None:
    g = np.random.default_rng(0xB0C6)
    layout = laid_out([3, 4], 2)
    n = 2 * boxes._TURN + 1
    cells, p, y = g.integers(0, 3, (2, n), dtype=np.uint8), g.random(n), g.integers(0, 2, n, dtype=np.int8)
    sums = [np.zeros((layout.cells, boxes.SUMS), dtype=np.int64) for _ in BOTH]
    for m, out in zip(BOTH, sums, strict=True):
        m.box_sums(cells, p, y, layout.tables, layout.sizes, out)
    np.testing.assert_array_equal(*sums)


@examples(60)
@given(SEEDS, st.integers(0, 300), st.integers(1, 5), st.integers(1, 9), st.booleans())
@example(1, 300, 2, 1, True)
def test_lane_sums(seed: int, n: int, wide: int, cells: int, together: bool) -> None:
    """Any number of rows a cell, none among them, and every bit of every word."""
    g = np.random.default_rng([0xB0C7, seed])
    words = g.integers(0, 2**64, (wide, n), dtype=np.uint64)
    words[:, g.random(n) < 0.3] = g.choice(np.array([0, 2**64 - 1, 1, 2**63], dtype=np.uint64))
    cell = np.minimum(g.integers(0, cells, n), g.integers(0, cells))  # some hold many rows, some none
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(cells + 1))
    given_so = np.ascontiguousarray(words.T).T if together else words
    fast, slow = (m.lane_sums(given_so, order, starts) for m in BOTH)
    assert fast.dtype == slow.dtype == np.int32
    np.testing.assert_array_equal(fast, slow)


@pytest.mark.parametrize("n", [*range(18), 63, 64, 65, 4095, 4096, 70_001])
def test_lane_sums_count_up_to_every_plane(n: int) -> None:
    words = np.full((1, n), 2**64 - 1, dtype=np.uint64)
    assert (boxes.lane_sums(words, np.arange(n), [0, n]) == n).all()


@examples(60)
@given(SEEDS, st.integers(1, 6), st.integers(1, 6), st.booleans(), st.integers(1, 5))
def test_box_peaks(seed: int, a: int, b: int, category: bool, draws: int) -> None:
    g = np.random.default_rng([0xB0C8, seed])
    events = g.integers(0, 50, (a, b, draws), dtype=np.int32)
    first, second = singles_and_pairs(range(a)) if category else runs(0, a), runs(0, b)
    shape = len(first), len(second)
    mean, scale = g.uniform(0, 100, (2, *shape)), g.choice([0.0, 1.0, 0.3], shape)
    before = np.full((2, draws), g.choice([-np.inf, 0.0, 5.0]))
    peaks = [before.copy() for _ in BOTH]
    for m, out in zip(BOTH, peaks, strict=True):
        m.box_peaks(events, first, second, mean, scale, out)
    np.testing.assert_allclose(*peaks, rtol=1e-13, atol=1e-12)
    # and so say the sums of all boxes at once
    z = scale[..., None] * (sums_of(events.astype(np.int64), (first, second)) - mean[0, ..., None])
    up = np.where(scale[..., None] > 0.0, z, -np.inf).max(axis=(0, 1))
    assert (peaks[0][0] >= up - 1e-9).all()


def levels_of(g: Any, size: int, ties: bool) -> tuple[Any, Any]:
    """Cases of three draws, and expected cases, variances and rows of levels, one of them without variance at times."""
    rows = g.integers(1, 40, size).astype(np.float64)
    p = g.choice([0.0, 0.25, 0.5], size) if ties else g.uniform(0.01, 0.99, size)
    levels = np.stack([rows * p, rows * p * (1 - p), rows], axis=1)
    return g.binomial(rows.astype(np.int64)[:, None], 0.4, (size, 3)).astype(np.int32), levels


@examples(80)
@given(SEEDS, st.integers(1, 12), st.booleans(), st.sampled_from([0.0, 4.0]), st.sampled_from([0.0, 20.0, 60.0, 1e9]))
def test_subset_peaks(seed: int, size: int, ties: bool, extra: float, fewest: float) -> None:
    g = np.random.default_rng([0xB0C9, seed])
    events, levels = levels_of(g, size, ties)
    peaks = [np.full((2, 3), -np.inf) for _ in BOTH]
    for m, out in zip(BOTH, peaks, strict=True):
        m.subset_peaks(events, levels, extra, fewest, out)
    np.testing.assert_allclose(*peaks, rtol=1e-12, atol=1e-12)


@examples(100)
@given(SEEDS, st.integers(1, 8), st.booleans(), st.sampled_from([0.0, 1e-3, 4.0, 1e4]))
def test_the_best_subset_is_the_best_of_all(seed: int, size: int, ties: bool, extra: float) -> None:
    """Over all subsets of levels with variance: only all of them together, which are not looked at, may be better."""
    g = np.random.default_rng([0xB0CA, seed])
    events, levels = levels_of(g, size, ties)
    held = np.flatnonzero(levels[:, 1] > 0.0)
    peaks = np.zeros((2, 3))
    boxes.subset_peaks(events, levels, extra, 0.0, peaks)
    best = np.zeros((2, 3))
    for k in range(1, len(held) + 1):
        for own in map(list, combinations(held, k)):
            z = (events[own].sum(axis=0) - levels[own, 0].sum()) / np.sqrt(levels[own, 1].sum() + extra)
            best = np.maximum(best, [z, -z])
            if k == len(held):
                peaks = np.maximum(peaks, [z, -z])
    np.testing.assert_allclose(peaks, best, rtol=1e-12, atol=1e-12)
