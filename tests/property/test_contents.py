"""What rows hold: hashes equal their twin, and what is kept does not depend on splits, order or storage."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
import oracles.contents as oracle
from calibrant.data.sketches import contents as module
from calibrant.data.sketches.contents import Smallest
from calibrant.data.sketches.sketch import Sketch
from calibrant.kernels import contents as kernels
from effort import examples

SCORES = st.floats(0, 1, allow_subnormal=True)
VALUES = st.floats(allow_nan=True, allow_infinity=True)


@examples(60)
@given(st.lists(st.tuples(SCORES, VALUES, st.integers(0, 2**31 - 1), st.integers(0, 2**64 - 1)), max_size=30))
def test_hashes_equal_their_twin(rows: list[tuple[float, float, int, int]]) -> None:
    p = np.array([*(row[0] for row in rows), 0.0, -0.0, 1.0])
    columns = (
        np.array([*(row[1] for row in rows), 0.0, -0.0, np.nan]),
        np.array([*(row[2] for row in rows), 0, 0, 7], dtype=np.int32),
        np.array([*(row[3] for row in rows), 0, 0, 0], dtype=np.uint64),
    )
    words = kernels.tags_of(p)
    slow = oracle.tags_of(p)
    assert words.tolist() == slow
    for column in columns:
        kernels.fold(words, column)
        slow = oracle.fold(slow, column)
    assert words.tolist() == slow
    assert words[-2] == words[-3]


@examples(60)
@given(
    words=st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1)), max_size=60),
    seed=st.integers(0, 99),
    limit=st.one_of(st.integers(0, 50), st.just(2**64 - 1)),
)
def test_counts_equal_their_twin(words: list[int], seed: int, limit: int) -> None:
    """The table fills up after 16 words: what was counted until then is as it should be."""
    y = np.random.default_rng(seed).integers(0, 2, len(words)).astype(np.int8)
    rows = np.array(words, dtype=np.uint64)
    tags = rows >> np.uint64(3)
    table = np.zeros((33, 4), dtype=np.uint64)
    done = kernels.count(rows, tags, y, np.uint64(limit), table)
    slow = oracle.count(words[:done], tags.tolist()[:done], y[:done], limit)
    assert {line[0]: line[1:] for line in table[:-1].tolist() if line[0]} == slow
    assert table[-1].tolist() == [len(slow), 0, 0, 0]
    assert kernels.total(rows, y) == oracle.total(words, y)
    assert done == len(words) or (len(slow) == 16 and max(words[done], 1) not in slow)


@examples(30)
@given(
    n=st.integers(1, 300),
    different=st.sampled_from([3, 40, 10**6]),
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, 300), max_size=6),
    order=st.randoms(),
)
def test_the_smallest_are_kept_whatever_the_parts(
    n: int, different: int, seed: int, cuts: list[int], order: Random
) -> None:
    rng = np.random.default_rng([seed, 7])
    words = rng.integers(1, 2**63, different).astype(np.uint64)[rng.integers(0, different, n)]
    tags, y = words >> np.uint64(3), rng.integers(0, 2, n).astype(np.int8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEPT", 8)
        patch.setattr(module, "PLACES", 32)
        whole = Smallest()
        whole.add(words, tags, y)
        pieces = list(pairwise(sorted({0, n, *(min(c, n) for c in cuts)})))
        order.shuffle(pieces)
        merged = Smallest()
        for start, stop in pieces:
            if order.random() < 0.5:
                merged.add(words[start:stop], tags[start:stop], y[start:stop])
                continue
            one = Smallest()
            one.add(words[start:stop], tags[start:stop], y[start:stop])
            merged.merge(one.lines)
        held = oracle.count(words.tolist(), tags.tolist(), y, 2**64 - 1)
        expected = [[w, *held[w]] for w in sorted(held)[:8]]
        assert whole.lines.view(np.uint64).tolist() == expected
        assert merged.lines.view(np.uint64).tolist() == expected
        assert whole.limit == merged.limit


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, 0xC0])
    return pa.table(
        {
            "y": rng.integers(0, 2, n).astype(np.int8),
            "p": np.round(rng.uniform(size=n), 1),
            "g": pa.array(np.array(["a", "b", None], dtype=object)[rng.integers(0, 3, n)], pa.string()),
            "x": pa.array(rng.integers(-2, 3, n), mask=rng.uniform(size=n) < 0.2),
            "k": rng.integers(0, n, n),
        }
    )


@pytest.mark.slow
@examples(25)
@given(
    n=st.integers(1, 200),
    seed=st.integers(0, 99),
    key=st.sampled_from([None, "k"]),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    order=st.randoms(),
)
def test_a_sketch_counts_repeated_rows_in_any_parts(
    n: int, seed: int, key: str | None, cuts: list[int], order: Random
) -> None:
    t = table(n, seed)
    whole = cal.sketch(t, label="y", score="p", by="g", variables=["g", "x"], key=key)
    pieces = list(pairwise(sorted({0, n, *(min(c, n) for c in cuts)})))
    order.shuffle(pieces)
    merged = Sketch(whole.spec)
    merged.name = whole.name
    for start, stop in pieces:
        one = Sketch(whole.spec)
        one.update(t.slice(start, stop - start).combine_chunks().to_batches()[0], first_row=start)
        merged.merge(one, allow_same=True)
    assert merged.to_bytes() == whole.to_bytes()
    assert merged.repeats == whole.repeats == Sketch.from_bytes(whole.to_bytes()).repeats
    columns = ["k"] if key else ["y", "p", "g", "x"]
    assert whole.repeats.rows == n - len(set(zip(*(t[c].to_pylist() for c in columns), strict=True)))
    assert whole.repeats.exact
    assert whole.repeats.by == ("key" if key else "row")


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.set_column(2, "g", t["g"].dictionary_encode()),
        lambda t: t.set_column(2, "g", t["g"].cast(pa.large_string())),
        lambda t: t.set_column(2, "g", t["g"].cast(pa.string_view())),
        lambda t: t.set_column(3, "x", t["x"].cast(pa.int32())),
        lambda t: t.set_column(3, "x", t["x"].cast(pa.float64())),
        lambda t: t.set_column(0, "y", t["y"].cast(pa.bool_())),
        lambda t: t.take(np.random.default_rng(1).permutation(len(t))),
        lambda t: pa.concat_tables([t.slice(0, 70), t.slice(70)]),
    ],
)
def test_storage_and_order_do_not_matter(change: Any) -> None:
    t = table(200, 4)
    whole = cal.sketch(t, label="y", score="p", by="g", variables=["g", "x"])
    other = cal.sketch(change(t), spec=whole.spec)
    for name, values in whole.parts["contents"].arrays().items():
        np.testing.assert_array_equal(values, other.parts["contents"].arrays()[name])
