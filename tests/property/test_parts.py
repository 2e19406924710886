"""What a sketch holds for curves and tests does not depend on how its rows were split, ordered or stored."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
import oracles.draws
from calibrant.data.sketches.sketch import Sketch
from calibrant.kernels import draws
from effort import examples


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, 41])
    return pa.table(
        {
            "y": rng.integers(0, 2, n).astype(np.int8),
            "p": rng.uniform(size=n),
            "g": np.array(["a", "b", "", "d e"])[rng.integers(0, 4, n)],
            "x": pa.array(np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n)), from_pandas=True),
            "day": pa.array(rng.integers(18_000, 19_000, n).astype(np.int32), pa.date32()),
            "id": [f"person {i}" for i in range(n)],
        }
    )


@pytest.mark.slow
@examples(20, quick=5)
@given(
    n=st.integers(30, 300), seed=st.integers(0, 99), cuts=st.lists(st.integers(1, 300), max_size=5), order=st.randoms()
)
def test_any_split_any_order(n: int, seed: int, cuts: list[int], order: object) -> None:
    t = table(n, seed)
    spec = replace(cal.sketch(t, label="y", score="p", by="g", variables="*", tests=True).spec, sample=20)
    whole = cal.sketch(t, spec=spec)
    pieces = list(pairwise(sorted({0, n, *(min(c, n) for c in cuts)})))
    order.shuffle(pieces)  # type: ignore[attr-defined]
    merged = Sketch(spec)
    merged.name = whole.name
    for start, stop in pieces:
        one = Sketch(spec)
        one.update(t.slice(start, stop - start).combine_chunks().to_batches()[0], first_row=start)
        merged.merge(one, allow_same=True)
    assert merged.to_bytes() == whole.to_bytes()
    assert Sketch.from_bytes(whole.to_bytes()).to_bytes() == whole.to_bytes()
    assert whole.parts["sample"].predictions().n == 20


@pytest.mark.slow
def test_files_frames_and_rows_in_memory_agree(tmp_path: Path) -> None:
    t = table(3000, 7).drop_columns(["id"])
    pq.write_table(t, tmp_path / "a.parquet", row_group_size=700)
    asked = {"by": "g", "variables": "*", "tests": True}
    frame = cal.sketch(t, label="y", score="p", **asked)
    file = cal.sketch(tmp_path / "a.parquet", label="y", score="p", **asked)
    rows = cal.sketch(cal.predictions(t["y"].to_numpy(), t["p"].to_numpy(), t.select(["g", "x", "day"])), **asked)
    assert file.spec == frame.spec
    assert file.spec.codings == rows.spec.codings
    for name, part in file.parts.items():
        for key, values in part.arrays().items():
            np.testing.assert_array_equal(values, frame.parts[name].arrays()[key])
            np.testing.assert_array_equal(values, rows.parts[name].arrays()[key])


def test_the_sample_is_the_rows() -> None:
    t = table(500, 3)
    sample = cal.sketch(t, label="y", score="p", variables=["g", "x", "day"], tests=True).parts["sample"].predictions()
    there = sorted(
        zip(sample.p.tolist(), sample.y.tolist(), sample.covariates.to_pylist(), strict=True), key=lambda r: r[0]
    )
    order = np.argsort(t["p"].to_numpy())
    for (p, y, covariates), i in zip(there, order.tolist(), strict=True):
        row = t.slice(i, 1).to_pylist()[0]
        assert (p, y) == (row["p"], row["y"])
        assert (covariates["g"] or "") == row["g"]
        assert covariates["x"] == row["x"]
        assert covariates["day"].date() == row["day"]


def test_every_column_leaves_out_what_cannot_be_used_and_says_so() -> None:
    t = table(500, 3).append_column("one", pa.array([1.0] * 500)).append_column("none", pa.nulls(500))
    spec = cal.sketch(t, label="y", score="p", variables="*").spec
    assert [c.name for c in spec.codings] == ["g", "x", "day"]
    assert {name for name, _ in spec.left_out} == {"id", "one", "none"}


@examples(50)
@given(
    ids=st.lists(st.integers(0, 2**64 - 1), max_size=20),
    seed=st.integers(0, 99),
    first=st.integers(0, 5000),
    count=st.integers(0, 20),
    salt=st.integers(0, 2**64 - 1),
)
def test_simulated_outcomes_equal_their_twin_and_no_chunk_matters(
    ids: list[int], seed: int, first: int, count: int, salt: int
) -> None:
    who, p = np.array(ids, dtype=np.uint64), np.random.default_rng(seed).uniform(-0.1, 1.1, len(ids)).clip(0, 1)
    whole = draws.outcomes(who, p, first, count, salt)
    np.testing.assert_array_equal(whole, oracles.draws.outcomes(who, p, first, count, salt))
    cut = count // 2
    pieces = [draws.outcomes(who, p, first, cut, salt), draws.outcomes(who, p, first + cut, count - cut, salt)]
    np.testing.assert_array_equal(whole, np.concatenate(pieces, axis=1))
    if len(ids):
        np.testing.assert_array_equal(whole[-1:], draws.outcomes(who[-1:], p[-1:], first, count, salt))
    assert not whole[p == 0].any()
    assert whole[p == 1].all()


def test_simulated_outcomes_are_independent_coins() -> None:
    rng = np.random.default_rng(12)
    p = rng.uniform(0.05, 0.95, 400)
    z = (draws.outcomes(np.arange(400, dtype=np.uint64), p, 0, 4000, 99) - p[:, None]) / np.sqrt(p * (1 - p))[:, None]
    assert np.abs(z.mean(axis=1) * 4000**0.5).max() < 4.8
    assert np.abs(z.mean(axis=0) * 400**0.5).max() < 4.8
    between = z @ z.T / 4000**0.5
    assert np.abs(between[np.triu_indices(400, 1)]).max() < 6.0
    by_variable = (z[:, :-1] * z[:, 1:]).sum() / z[:, 1:].size ** 0.5
    assert abs(by_variable) < 4.8
