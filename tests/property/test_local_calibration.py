"""Sums of the local test are exact: kernels equal their twins, and neither split, order nor threads matter."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import oracles.draws
import oracles.features
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import Rows, codings, encode
from calibrant.data.specs.local import Features, LocalSums, local_spec, part_of, salt_of
from calibrant.kernels import features
from calibrant.kernels.features import HALF, SCORE_STEPS, variances
from calibrant.kernels.runtime import one_thread
from effort import examples


def rows(n: int, seed: int) -> tuple[Rows, Any]:
    rng = np.random.default_rng([seed, 0x51])
    t = pa.table(
        {
            "x": pa.array(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)), from_pandas=True),
            "w": rng.integers(0, 4, n),
            "g": np.array([f"g{k}" for k in rng.integers(0, 300, n)]),
        }
    )
    how = tuple(c for c in codings(t) if c.kind != "constant")
    p = rng.beta(0.4, 2.0, n)
    spec = local_spec(p, t, how, 7, seed)
    y = (rng.random(n) < p).astype(np.int8)
    return Rows(p, y, identities_of(n, seed), encode(t, how, n)), spec


def some(r: Rows, at: Any) -> Rows:
    return Rows(r.p[at], r.y[at], r.ids[at], part_of(r.encoded, at))


def summed(spec: Any, pieces: list[Rows]) -> dict[str, Any]:
    whole = LocalSums(spec)
    for piece in pieces:
        one = LocalSums(spec)
        one.update(piece)
        whole.merge(one)
    return whole.arrays()


@examples(15)
@given(
    n=st.integers(2, 400), seed=st.integers(0, 99), cuts=st.lists(st.integers(1, 400), max_size=4), order=st.randoms()
)
def test_neither_split_nor_order_matters(n: int, seed: int, cuts: list[int], order: Any) -> None:
    r, spec = rows(n, seed)
    shuffled = np.random.default_rng(order.randrange(1 << 30)).permutation(n)
    pieces = [some(r, shuffled[a:b]) for a, b in pairwise(sorted({0, n, *(min(c, n) for c in cuts)}))]
    together = summed(spec, [r])
    for name, values in summed(spec, pieces).items():
        np.testing.assert_array_equal(values, together[name])


def test_sums_equal_integer_arithmetic_over_several_chunks_and_threads() -> None:
    r, spec = rows(5000, 3)
    whole = LocalSums(spec)
    whole.update(r)
    with one_thread():
        alone = LocalSums(spec)
        alone.update(r)
    for name, values in alone.arrays().items():
        np.testing.assert_array_equal(values, whole.arrays()[name])
    f = np.empty((5000, spec.columns))
    Features(spec).of(r.p, r.encoded, f)
    assert np.abs(f).max() <= 8192
    np.testing.assert_array_equal(f, np.rint(f))
    whole_f = f.astype(np.int64)
    drawn = oracles.draws.outcomes(r.ids, r.p, 0, 7, salt_of(3))
    seen = np.column_stack([r.y, drawn]).astype(np.int64)
    np.testing.assert_array_equal(whole.hits, whole_f.T @ seen)
    steps = np.rint(r.p * SCORE_STEPS).astype(np.int64)
    np.testing.assert_array_equal((whole.means[:, 0] << HALF) + whole.means[:, 1], whole_f.T @ steps)
    gram = whole_f.T @ (whole_f * variances(r.p, r.ids).astype(np.int64)[:, None])
    upper = np.triu_indices(spec.columns)
    np.testing.assert_array_equal(((whole.gram[1] << 20) + whole.gram[0])[upper], gram[upper])


@examples(40)
@given(
    n=st.integers(0, 40),
    m=st.integers(1, 20),
    k=st.integers(1, 6),
    seed=st.integers(0, 999),
    scale=st.floats(1e-12, 1e-3),
)
def test_bells_equal_their_twin(n: int, m: int, k: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-32768, 32768, (rows, k)).astype(float) for rows in (n, m))
    np.testing.assert_array_equal(features.bells(a, b, scale), oracles.features.bells(a, b, scale))


@examples(40)
@given(
    n=st.integers(0, 40),
    widths=st.lists(st.integers(1, 9), max_size=5),
    start=st.integers(0, 3),
    seed=st.integers(0, 999),
)
def test_tables_equal_their_twin(n: int, widths: list[int], start: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [rng.integers(-8192, 8193, (4096, w)).astype(np.int16) for w in widths]
    cells = rng.integers(0, 4096, (n, len(widths)))
    mine, theirs = np.zeros((2, n, start + sum(widths)))
    features.Tables(tables, start).write(cells, mine)
    oracles.features.looked_up(cells, tables, start + np.cumsum([0, *widths]), theirs)
    np.testing.assert_array_equal(mine, theirs)


def test_rounded_variances_add_up_for_rare_events() -> None:
    p, ids = np.full(200_000, 2e-6), np.arange(200_000, dtype=np.uint64)
    total = variances(p, ids).sum() / features.VARIANCE
    assert abs(total / (p * (1 - p)).sum() - 1) < 0.02


def test_draws_of_the_sums_do_not_depend_on_how_many_there_are() -> None:
    r, spec = rows(300, 5)
    few, many = LocalSums(replace(spec, draws=3)), LocalSums(spec)
    few.update(r)
    many.update(r)
    np.testing.assert_array_equal(few.hits, many.hits[:, :4])
