"""One sampler of whole rows: the smallest hashes, the same in any order, any parts and any storage."""

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
from calibrant.data.sketches import sample
from calibrant.data.sketches.sample import HERE, Origin, RawSample, Sample, hashes_of, identities_of, lines_of
from calibrant.data.specs.spec import Spec
from calibrant.data.survey import FirstLook
from effort import examples

NAMES = ("g", "x", "i", "day", "flag", "list", "none")


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, 0x5A])
    texts = np.array(["a", "b", "", "d e", "ç"], dtype=object)[rng.integers(0, 5, n)]
    texts[rng.uniform(size=n) < 0.1] = None
    x = np.round(rng.normal(size=n), 1)
    x[rng.uniform(size=n) < 0.1] = np.nan
    return pa.table(
        {
            "p": np.round(rng.uniform(size=n), 1),
            "y": rng.integers(0, 2, n).astype(np.int8),
            "g": pa.array(texts, pa.string()),
            "x": x,
            "i": rng.integers(0, 9, n),
            "day": pa.array(
                rng.integers(18_000, 18_009, n).astype(np.int32), pa.date32(), mask=rng.uniform(size=n) < 0.1
            ),
            "flag": pa.array(rng.uniform(size=n) < 0.5, mask=rng.uniform(size=n) < 0.1),
            "list": [[1]] * n,
            "none": pa.nulls(n),
        }
    )


def sampled(t: pa.Table, hashes: Any, size: int) -> RawSample:
    made = RawSample(NAMES, size)
    p, y = t["p"].to_numpy(), t["y"].to_numpy()
    made.keep(hashes, p, y, t, p >= 0.0)
    return made


def same(a: RawSample, b: RawSample) -> bool:
    return np.array_equal(a.lines, b.lines) and a.table().equals(b.table())


@examples(40)
@given(
    n=st.integers(1, 300),
    size=st.integers(1, 40),
    seed=st.integers(0, 99),
    apart=st.sampled_from([2, 50, 10**9]),
    cuts=st.lists(st.integers(0, 300), max_size=5),
    order=st.randoms(),
)
def test_any_split_any_order(n: int, size: int, seed: int, apart: int, cuts: list[int], order: Random) -> None:
    """Rows of one hash too: their content says which are kept, and content does not depend on what came before."""
    t = table(n, seed)
    hashes = np.random.default_rng(seed).integers(0, apart, n).astype(np.uint64)
    whole = sampled(t, hashes, size)
    pieces = list(pairwise(sorted({0, n, *(min(c, n) for c in cuts)})))
    order.shuffle(pieces)
    merged = RawSample(NAMES, size)
    for start, stop in pieces:
        merged.merge(sampled(t.slice(start, stop - start), hashes[start:stop], size))
    assert same(merged, whole)
    assert len(whole.lines) == min(n, size)
    np.testing.assert_array_equal(whole.lines[:, 0].view(np.uint64), np.sort(hashes)[:size])


@examples(20)
@given(seed=st.integers(0, 99), many=st.booleans())
def test_rows_come_back_as_they_were(seed: int, many: bool) -> None:
    n = 200
    t = table(n, seed)
    made = sampled(t, hashes_of(identities_of(n, seed)), n if many else 50)
    order = np.argsort(hashes_of(identities_of(n, seed)))[: len(made.lines)]
    there = t.take(pa.array(order))
    assert sample.scores_of(made.lines).tolist() == there["p"].to_pylist()
    assert sample.labels_of(made.lines).tolist() == there["y"].to_pylist()
    back = made.table()
    for name in ("g", "i", "flag"):
        assert back[name].to_pylist() == there[name].to_pylist()
    assert [v and v.date() for v in back["day"].to_pylist()] == there["day"].to_pylist()
    missing = np.isnan(there["x"].to_numpy())
    np.testing.assert_array_equal(back["x"].is_null().to_numpy(), missing)
    np.testing.assert_array_equal(back["x"].drop_null().to_numpy(), there["x"].to_numpy()[~missing])
    assert back["list"].type == t["list"].type
    assert back["list"].null_count == back["none"].null_count == len(back)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "ç"] * 9).dictionary_encode(),
        pa.array(["a", None, "ç"] * 9, pa.large_string()),
        pa.array(["a", None, "ç"] * 9, pa.string_view()),
        pa.chunked_array([["a", None, "ç"], ["a", None, "ç"] * 8]),
    ],
)
def test_storage_does_not_matter(column: Any) -> None:
    hashes = identities_of(27, 0)
    made = []
    for stored in (column, pa.array(["a", None, "ç"] * 9)):
        one = RawSample(["g"], 11)
        one.keep(hashes, np.full(27, 0.5), np.zeros(27, np.int8), pa.table({"g": stored}), np.ones(27, dtype=bool))
        made.append(one)
    assert same(*made)


def test_texts_of_rows_that_were_thrown_out_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "AT_ONCE", 8)
    made = RawSample(["id"], 5)
    rng = np.random.default_rng(0)
    for part in range(40):
        hashes = rng.integers(0, 2**63, 50).astype(np.uint64)
        column = pa.table({"id": [f"{part}-{i}" for i in range(50)]})
        made.keep(hashes, np.full(50, 0.5), np.zeros(50, np.int8), column, np.ones(50, dtype=bool))
        assert len(made.texts) < 200
    assert set(made.table()["id"].to_pylist()) <= set(made.texts.values())


def test_types_that_do_not_go_together_are_refused() -> None:
    def kept(values: Any) -> RawSample:
        made = RawSample(["g"], 5)
        made.keep(identities_of(2, 0), np.full(2, 0.5), np.zeros(2, np.int8), pa.table({"g": values}), np.ones(2, bool))
        return made

    whole = kept(pa.nulls(2))
    whole.merge(kept([1, 2]))
    whole.merge(kept([0.5, None]))
    assert whole.types == [pa.float64()]
    with pytest.raises(cal.BadInput, match="covariate 'g' is stored as different types in different files"):
        whole.merge(kept(["a", "b"]))


def test_a_first_look_travels() -> None:
    t = table(300, 5)
    look = FirstLook(Spec(label="y", score="p"), ["g", "i", "x", "day", "flag"], NAMES)
    look.update(t.combine_chunks().to_batches()[0])
    again = FirstLook(look.spec, [q.name for q in look.profiles], NAMES).load(look.to_bytes())
    assert same(again.look, look.look)
    assert again.profiles == look.profiles
    assert (again.rows_read, again.look.n, again.look.expected) == (300, 300, look.look.expected)
    assert again.to_bytes() == look.to_bytes()


def test_one_share_of_the_rows_is_as_likely_as_any_other() -> None:
    """Inclusion of each row over seeds: binomial, whatever the row's number."""
    n, size, seeds = 40, 10, 2000
    counts = np.zeros(n)
    for seed in range(seeds):
        made = Sample(size, 1)
        ids = HERE.identities(n, Spec(label="y", score="p", seed=seed))
        made.add(lines_of(hashes_of(ids), np.full(n, 0.5), np.zeros(n, np.int8), [np.arange(n)]))
        counts[made.lines[:, 3]] += 1
    z = (counts - seeds * size / n) / np.sqrt(seeds * size / n * (1 - size / n))
    assert np.abs(z).max() < 4.8


def test_a_key_is_an_identity_wherever_the_row_stands() -> None:
    spec = Spec(label="y", score="p", key=("k",))
    batch = pa.record_batch({"k": ["u", "v", None]})
    here, there = (Origin.of(batch, spec, part, row).identities(3, spec) for part, row in (("a", 0), ("b", 7)))
    np.testing.assert_array_equal(here, there)
    plain = Spec(label="y", score="p")
    here, there = (Origin.of(batch, plain, part, row).identities(3, plain) for part, row in (("a", 0), ("b", 0)))
    assert not set(here.tolist()) & set(there.tolist())
