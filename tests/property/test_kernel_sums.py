"""Tiles, joined rows and interpolation equal a literal sum over pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calibrant.stats.local.kernel_sums import (
    FAMILIES,
    Kernel,
    Rows,
    nodes_of,
    off_diagonal,
    smallest,
    statistics,
    typical_distance,
)
from calibrant.stats.nulls import ranked
from effort import examples


def matrix(k: Kernel) -> Any:
    """The kernel between all rows, one pair at a time; one on the diagonal."""
    out = np.ones((k.rows, k.rows))
    for i in range(k.rows):
        for j in range(i):
            out[i, j] = out[j, i] = pair(k, i, j)
    return out


def pair(k: Kernel, i: int, j: int) -> float:
    """The kernel of two rows, from its formula."""
    differ = k.codes[i] != k.codes[j]
    (u, v), (a, b) = ((w[: k.lead], w[k.lead :]) for w in (k.points[i], k.points[j]))
    penalty = float(k.penalties[differ].sum())
    if k.family == "gaussian":
        return math.exp(-0.5 * float((u - a) @ (u - a) + (v - b) @ (v - b)) - penalty)
    if k.family == "laplace":
        return math.exp(-math.dist(u, a) - math.sqrt(math.dist(v, b) ** 2 + 2.0 * penalty))
    whole = float(k.penalties.sum())
    score, rest = (1 + u @ a) ** k.degree, (1 + v @ b + whole - penalty) ** k.degree
    own = [((1 + s @ s) * (1 + r @ r + whole)) ** k.degree for s, r in ((u, v), (a, b))]
    return float(score * rest / math.sqrt(own[0] * own[1]))


@st.composite
def kernels(draw: Any) -> tuple[Kernel, np.random.Generator]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, c = draw(st.integers(2, 40)), draw(st.integers(1, 4)), draw(st.integers(0, 2))
    family = draw(st.sampled_from(FAMILIES))
    sizes = [0.3, 2.0] if family == "polynomial" else [0.3, 2.0, np.inf]
    penalties = np.array([draw(st.sampled_from(sizes)) for _ in range(c)])
    points = rng.normal(size=(n, d)) * draw(st.sampled_from([0.2, 1.0, 5.0])) + draw(st.sampled_from([0.0, 30.0]))
    how: Any = {"family": family, "lead": draw(st.integers(0, d)), "degree": draw(st.integers(1, 4))}
    return Kernel(points, rng.integers(0, 3, (n, c)).astype(np.int32), penalties, **how), rng


@examples(30)
@given(kernels(), st.integers(1, 30))
def test_tiles_of_any_size_equal_the_loop(made: tuple[Kernel, np.random.Generator], tile: int) -> None:
    kernel, rng = made
    vectors, fixed = rng.normal(size=(kernel.rows, 3)), rng.normal(size=(kernel.rows, 2))
    k = matrix(kernel)
    np.fill_diagonal(k, 0.0)
    want, across = np.einsum("ib,ij,jb->b", vectors, k, vectors), k @ fixed
    for dtype, slack in ((np.float64, 1e-9), (np.float32, 2e-2)):
        found, row_attributes = off_diagonal(kernel, vectors.astype(dtype), fixed, tile)
        scale = slack * max(1.0, float(np.abs(vectors).sum()))
        assert np.abs(found - want).max() < scale
        assert np.abs(row_attributes - across).max() < scale


def outcomes_one_by_one(events: Any, rows: Any) -> Any:
    return np.concatenate([np.r_[np.ones(int(k)), np.zeros(int(n - k))] for k, n in zip(events, rows, strict=True)])


@examples(30)
@given(kernels(), st.booleans(), st.integers(1, 30))
def test_statistics_equal_their_formulas_row_by_row(
    made: tuple[Kernel, np.random.Generator], repeat: bool, tile: int
) -> None:
    kernel, rng = made
    p = rng.choice([0.0, 1.0, *rng.uniform(0.02, 0.98, 30)], kernel.rows)
    count = rng.integers(1, 4, kernel.rows).astype(float) if repeat else np.ones(kernel.rows)
    events = rng.binomial(count.astype(int), p).astype(float)
    rows = Rows(p, count, events, None if repeat else np.arange(kernel.rows, dtype=np.uint64))
    found = statistics(kernel, rows, 4, 7, tile)
    each = np.repeat(np.arange(kernel.rows), count.astype(int))
    k, q = matrix(kernel)[np.ix_(each, each)], p[each]
    v = q * (1 - q)
    inside = np.clip(q, 1e-9, 1 - 1e-9)
    b = np.column_stack([np.ones(len(q)), np.where(v > 0, np.log(inside / (1 - inside)), 0.0)])
    solve = np.linalg.pinv(b.T @ (v[:, None] * b), rcond=1e-12)
    project = np.eye(len(q)) - (v[:, None] * b) @ solve @ b.T
    centred = project.T @ k @ project
    for m in (k, centred):
        np.fill_diagonal(m, 0.0)
    for column, drawn in zip(found.T, rows.with_data(rows.drawn(0, 4, 7)).T, strict=True):
        e = outcomes_one_by_one(drawn, count) - q
        first = e.sum() ** 2 / v.sum() if v.sum() else 0.0
        want = np.array([e @ k @ e, e @ centred @ e, first, e @ b @ solve @ b.T @ e])
        assert np.abs(column - want).max() < 2e-3 * max(1.0, float(e @ e))


@examples(30)
@given(st.integers(0, 2**32), st.sampled_from([0.005, 0.02, 0.1, 1.0, 30.0]), st.sampled_from([1e-3, 0.2, 1.0]))
def test_interpolation_equals_the_kernel(seed: int, width: float, spread: float) -> None:
    p = 0.3 + spread * (np.random.default_rng(seed).random(50) - 0.3)
    nodes = nodes_of(p, width)
    weights = nodes.weights(p)
    assert np.abs(weights @ nodes.kernel @ weights.T - np.exp(-0.5 * ((p[:, None] - p) / width) ** 2)).max() < 1e-11


@examples(30)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 60))
def test_ranks_count_what_is_as_large(seed: int, kinds: int, draws: int) -> None:
    values = np.random.default_rng(seed).integers(0, 6, (kinds, draws + 1)).astype(float)
    ranks = ranked(values)
    for row, got in zip(values, ranks, strict=True):
        assert np.allclose(got, [(row >= v).mean() for v in row])
    keys = [(round(min(c), 9), round(float(np.log(c).sum()), 6)) for c in ranks.T]
    assert smallest(ranks) == np.mean([k <= keys[0] for k in keys])


def test_the_typical_distance_is_the_median_of_those_that_differ() -> None:
    points = np.array([[0.0], [0.0], [3.0], [7.0]])
    kernel = Kernel(points, np.zeros((4, 0), np.int32), np.zeros(0))
    assert typical_distance(kernel, np.arange(4)) == np.median([3, 3, 7, 7, 4])
    assert typical_distance(Kernel(points * 0, kernel.codes, kernel.penalties), np.arange(4)) == 1.0
