"""The scores themselves, where they are few: counted as their twin counts, and the same however the rows were split."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
import oracles.tally as oracle
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.sums import Values
from calibrant.errors import BadInput
from calibrant.kernels import tally as kernels
from calibrant.kernels.tally import MOST, Table, fixed_point
from effort import examples

SCORES = st.one_of(st.integers(0, 40).map(lambda k: k / 40), st.floats(0, 1, allow_subnormal=True))

NOTHING = np.zeros(0, dtype=np.int64)


@examples(60)
@given(p=st.lists(SCORES, max_size=60), room=st.sampled_from([1, 3, 20, MOST]), seed=st.integers(0, 99))
def test_counts_equal_their_twin(p: list[float], room: int, seed: int) -> None:
    rng, n = np.random.default_rng(seed), len(p)
    table = Table.empty(7)
    table = table._replace(scores=table.scores[:room])
    known: list[int] = []
    for half in (p[: n // 2], p[n // 2 :]):
        numbers = kernels.numbers_of(np.array(half), table)
        assert numbers.tolist() == oracle.numbers_of(half, known, room)
        assert table.scores[: table.size[0]].tolist() == known
        sound = numbers[numbers >= 0]
        y, groups = rng.integers(0, 2, len(sound)), rng.integers(0, 3, (2, len(sound)))
        slow = table.counts.copy()
        kernels.count_numbers(sound, y, groups, np.array([0, 4]), table.counts)
        oracle.count_numbers(sound, y, groups, np.array([0, 4]), slow)
        np.testing.assert_array_equal(table.counts, slow)


def test_scores_that_fall_into_one_place_are_told_apart() -> None:
    """A table as full as it may be, of scores next to each other and far apart."""
    q = np.unique(np.concatenate([np.arange(500), np.random.default_rng(0).integers(0, 2**30, 524)]))[:MOST]
    table = Table.empty(0)
    assert kernels.numbers_of(q / 2**30, table).tolist() == list(range(len(q)))
    assert kernels.numbers_of(q[::-1] / 2**30, table).tolist() == list(range(len(q)))[::-1]
    np.testing.assert_array_equal(table.scores[: len(q)], q)


def rows(n: int, different: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    p = rng.integers(0, different, n) / max(different - 1, 1)
    columns = {
        "y": rng.integers(0, 2, n).astype(np.int8),
        "p": p,
        "g": np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
    }
    return pa.table({**columns, "h": np.array(["u", "v"])[rng.integers(0, 2, n)]})


def part_of(spec: Any, t: pa.Table, first_row: int = 0) -> Values:
    one = Sketch(spec)
    for batch in t.combine_chunks().to_batches():
        one.update(batch, first_row=first_row)
    return one.parts["values"]


def state(part: Values) -> dict[str, list[int]]:
    return {name: array.tolist() for name, array in part.arrays().items()}


@pytest.mark.slow
@examples(30)
@given(
    n=st.integers(1, 3000),
    different=st.sampled_from([1, 11, 101, 1024, 1025, 10**6]),
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, 3000), max_size=5),
    order=st.randoms(),
)
def test_merge_laws(n: int, different: int, seed: int, cuts: list[int], order: Random) -> None:
    """Any cut, any order, any brackets: the same bits, beyond the limit as below it."""
    t = rows(n, different, seed)
    whole = cal.sketch(t, label="y", score="p", by=["g", "h"], intersections=True)
    pieces = list(pairwise(sorted({0, n, *(min(c, n) for c in cuts)})))
    order.shuffle(pieces)
    parts = [(lambda a=a, b=b: part_of(whole.spec, t.slice(a, b - a))) for a, b in pieces]

    def added(a: Values, b: Values) -> Values:
        a.merge(b)
        return a

    left = reduce(added, (make() for make in parts), Values(whole.spec))
    right = reduce(lambda a, b: added(b, a), (make() for make in reversed(parts)), Values(whole.spec))
    held = whole.parts["values"]
    assert state(left) == state(right) == state(held)
    scores = np.unique(fixed_point(t["p"].to_numpy()))
    assert held.many == (len(scores) > MOST)
    assert state(Sketch.from_bytes(whole.to_bytes()).parts["values"]) == state(held)
    if not held.many:
        np.testing.assert_array_equal(held.scores, scores)
        y, g = t["y"].to_numpy(), t["g"].to_numpy()
        at = np.searchsorted(scores, fixed_point(t["p"].to_numpy()))
        for name, index in (("a", 0), ("b", 1), ("c", 2)):
            slow = np.zeros((len(scores), 2), dtype=np.int64)
            np.add.at(slow, (at[g == name], y[g == name]), 1)
            labels = [n[0][1] for n in whole.spec.group_names(0)]
            if name in labels:
                np.testing.assert_array_equal(held.counts([labels.index(name)]), slow, err_msg=str(index))
        np.testing.assert_array_equal(held.counts().sum(axis=0), [n - y.sum(), y.sum()])


def test_faulty_rows_are_not_counted() -> None:
    t = pa.table({"y": pa.array([0, 1, None, 1]), "p": pa.array([0.5, None, 0.25, 0.75]), "g": ["a", "b", "a", "b"]})
    held = cal.sketch(t, label="y", score="p", by="g", drop_missing=True).parts["values"]
    assert (held.scores / 2**30).tolist() == [0.5, 0.75]
    assert held.counts().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "lie",
    [
        {"many": np.array([1])},
        {"many": np.array([2])},
        {"many": np.array([1]), "scores": NOTHING, "where": NOTHING, "rows": NOTHING},
        {"scores": lambda s: s[::-1]},
        {"scores": lambda s: s + 1},
        {"scores": lambda s: s + (1 << 20)},
        {"where": lambda w: w + 1},
        {"rows": lambda r: np.append(r[1:], r[0])},
        {"rows": lambda r: np.append(-r[:1], r[1:])},
    ],
    ids=["many and there", "two flags", "few and not there", "order", "score", "cell", "place", "swapped", "negative"],
)  # fmt: skip
def test_what_no_rows_can_have_is_refused(lie: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cal.sketch(rows(200, 11, 0), label="y", score="p", by="g")
    reported = whole.parts["values"].arrays()
    reported |= {k: v(reported[k]) if callable(v) else v for k, v in lie.items()}
    monkeypatch.setattr(whole.parts["values"], "arrays", lambda: reported)
    raw = whole.to_bytes()
    with pytest.raises(BadInput, match="damaged"):
        Sketch.from_bytes(raw)


def test_a_sketch_of_few_values_takes_few_bytes() -> None:
    """Only counts that are not zero are stored."""
    whole = cal.sketch(rows(3000, 11, 0), label="y", score="p", by="g")
    shapes = {name: array.shape for name, array in whole.parts["values"].arrays().items()}
    assert shapes["scores"] == (11,)
    assert shapes["rows"] <= (11 * 2 * 4,)
    many = cal.sketch(rows(3000, 10**6, 0), label="y", score="p", by="g").parts["values"].arrays()
    assert sum(array.size for array in many.values()) == 1


def test_specs_with_other_groups_have_their_own_parts() -> None:
    whole = cal.sketch(rows(50, 11, 0), label="y", score="p", by="g")
    bare = Sketch(replace(whole.spec, variables=(), groupings=()))
    assert not bare.parts["values"].many
    assert bare.parts["values"].counts().shape == (0, 2)
