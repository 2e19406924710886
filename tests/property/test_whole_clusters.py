"""Whole units with the smallest hashes: the same bits in any order, any parts, whatever stands in between."""

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
from calibrant.data.sketches.sample import COVARIATES, HASH, WITH, Sample
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput
from effort import examples

OWN = COVARIATES  # where the row's own hash stands, of lines without covariates


def lines_of(clusters: Any, rng: np.random.Generator) -> Any:
    """Return lines of rows of these units, in which everything else is drawn; some rows are alike in all."""
    out = np.zeros((len(clusters), COVARIATES + WITH), dtype=np.int64)
    out[:, HASH] = clusters.astype(np.int64)
    out[:, 1:] = rng.integers(0, 3, (len(clusters), out.shape[1] - 1))
    return out


def plainly(lines: Any, size: int) -> tuple[Any, int]:
    """Return the lines and the limit of the definition, unit by unit."""
    hashes, kept, rows = lines[:, HASH].view(np.uint64), [], 0
    for cluster in np.unique(hashes):
        rows += int((hashes == cluster).sum())
        if rows > size:
            return lines[np.isin(hashes, kept)], max(int(cluster), 1) - 1
        kept.append(cluster)
    return lines, 2**64 - 1


def in_order(lines: Any) -> Any:
    return lines[np.lexsort((*lines.T[::-1][:-1], lines[:, HASH].view(np.uint64)))]


@examples(60)
@given(
    n=st.integers(0, 120),
    clusters=st.integers(1, 30),
    size=st.integers(1, 60),
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, 120), max_size=6),
    order=st.randoms(),
)
def test_any_split_any_order(n: int, clusters: int, size: int, seed: int, cuts: list[int], order: Random) -> None:
    rng = np.random.default_rng(seed)
    names = rng.integers(0, 2**64, clusters, dtype=np.uint64)  # hashes of either sign as int64
    lines = lines_of(names[rng.integers(0, clusters, n)], rng)
    pieces = list(pairwise(sorted({0, n, *(min(c, n) for c in cuts)})))
    order.shuffle(pieces)
    whole = Sample(size, 0, 0)
    for start, stop in pieces:
        one = Sample(size, 0, 0)
        if order.random() < 0.5:
            one.add(lines[start:stop])
        else:  # as rows come: those beyond the limit are never looked at
            hashes = lines[start:stop, HASH].view(np.uint64)
            whole.add(lines[start:stop][whole.candidates(hashes)])
        if order.random() < 0.5:
            assert len(one.lines) <= size
        whole.merge(one)
    expected, limit = plainly(lines, size)
    np.testing.assert_array_equal(in_order(whole.lines), in_order(expected))
    assert whole.limit == limit
    again = Sample(size, 0, 0)
    again.add(lines)
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, whole.arrays()[name], err_msg=name)


def log(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng([seed, 0xD1])
    who = rng.integers(0, max(n // 5, 1), n)
    return pa.table(
        {
            "y": rng.integers(0, 2, n),
            "p": np.round(rng.uniform(size=n), 2),
            "who": [f"w{i}" for i in who],
            "w": np.round(rng.exponential(size=n) + 0.1, 2),
            "site": [["a", "b", None][i % 3] for i in who],
            "x": np.round(rng.normal(size=n), 1),
            "id": np.arange(n),
        }
    )


WAYS = [{"cluster": "who"}, {"weights": "w"}, {"cluster": "who", "weights": "w"}]


@pytest.mark.slow
@examples(30, quick=8)
@given(
    n=st.integers(2, 200),
    seed=st.integers(0, 9),
    room=st.sampled_from([7, 40, 1000]),
    way=st.sampled_from(WAYS),
    cuts=st.lists(st.integers(0, 200), max_size=4),
    order=st.randoms(),
)
def test_sketches_of_units_are_the_same_however_split(
    n: int, seed: int, room: int, way: dict[str, str], cuts: list[int], order: Random
) -> None:
    t, more = log(n, seed), {"key": "id"} if seed % 2 else {}
    spec = cal.sketch(t, label="y", score="p", by="site", variables="x", **way, **more).spec
    spec = Spec(**{f: getattr(spec, f) for f in spec.__dataclass_fields__} | {"sample": room})
    whole = Sketch(spec)
    whole.update(t.combine_chunks().to_batches()[0])
    pieces = list(pairwise(sorted({0, n, *(min(c, n) for c in cuts)})))
    order.shuffle(pieces)
    merged = Sketch(spec)
    for start, stop in pieces:
        part = Sketch(spec)
        if stop > start:
            part.update(t.slice(start, stop - start).combine_chunks().to_batches()[0], first_row=start)
        merged.merge(Sketch.from_bytes(part.to_bytes()), allow_same=True)
    assert merged.to_bytes() == whole.to_bytes()
    held = whole.parts["sample"]
    clusters = np.unique(t["who"].to_pylist()).size if "cluster" in way else n
    assert held.of_clusters == clusters or held.cut
    assert held.cut or len(held.lines) == n


@pytest.mark.parametrize("way", WAYS)
def test_rows_of_units_are_those_that_were_read(way: dict[str, str]) -> None:
    t = log(400)
    whole = cal.sketch(t, label="y", score="p", by="site", variables="x", **way)
    rows, held = whole.rows(), whole.parts["sample"]
    assert rows.p.tolist() == t["p"].to_pylist()
    assert rows.y.tolist() == t["y"].to_pylist()
    assert rows.covariates["x"].to_pylist() == t["x"].to_pylist()
    if "weights" in way:
        assert rows.weights.tolist() == t["w"].to_pylist()
    else:
        assert rows.weights is None
    if "cluster" in way:
        pairs = set(zip(rows.cluster.tolist(), t["who"].to_pylist(), strict=True))
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    names = [level for ((_, level),) in whole.spec.group_names(0)]
    assert [names[k] for k in held.levels(0)] == [v or "missing" for v in t["site"].to_pylist()]
    read = cal.read(t, label="y", score="p", by=["site"], **way)
    own = cal.sketch(read)
    assert own.parts["sample"].of_clusters == held.of_clusters
    if "cluster" in way:  # the same hashes, so the same units: of rows in memory as of a file
        ours, theirs = (s.parts["sample"].lines[:, [0, 1, 2]] for s in (own, whole))
        np.testing.assert_array_equal(ours, theirs)


def test_units_are_about_as_many_as_there_are() -> None:
    rng = np.random.default_rng(3)
    n, clusters = 40_000, 8_000
    t = pa.table({"y": rng.integers(0, 2, n), "p": rng.uniform(size=n), "who": rng.integers(0, clusters, n)})
    spec = cal.sketch(t, label="y", score="p", cluster="who").spec
    there = len(np.unique(t["who"].to_numpy()))
    for room in (2_000, 10_000):
        whole = Sketch(Spec(**{f: getattr(spec, f) for f in spec.__dataclass_fields__} | {"sample": room}))
        whole.update(t.to_batches()[0])
        held = whole.parts["sample"]
        assert held.cut
        assert len(held.lines) <= room
        assert abs(held.of_clusters / there - 1) < 5 / held.clusters**0.5  # five standard errors
        sizes = np.unique(held.lines[:, HASH], return_counts=True)[1]
        assert sizes.sum() == len(held.lines)


def test_a_unit_that_is_too_large_is_said() -> None:
    t = pa.table({"y": [0, 1] * 20, "p": [0.5] * 40, "who": ["a"] * 40})
    spec = cal.sketch(t, label="y", score="p", cluster="who").spec
    whole = Sketch(Spec(**{f: getattr(spec, f) for f in spec.__dataclass_fields__} | {"sample": 30}))
    whole.update(t.to_batches()[0])
    assert whole.n == 40
    with pytest.raises(cal.NotComputable, match="one cluster of 'who' has more than the 30 rows"):
        whole.rows()


def test_blocks_hold_whole_units() -> None:
    """Rows of a unit are dealt together: what is learnt on some blocks knows nothing of the units of the others."""
    n = 600
    t = pa.table({"y": [0] * n, "p": [((i % 20) + 0.5) / 20 for i in range(n)], "who": [i % 20 for i in range(n)]})
    cells = cal.sketch(t, label="y", score="p", cluster="who").cells[..., 0]
    assert ((cells > 0).sum(axis=0) <= 1).all()  # a unit has one score here: each score lies in one block
    assert ((cal.sketch(t, label="y", score="p").cells[..., 0] > 0).sum(axis=0).max()) > 1


def test_what_was_tampered_with_is_refused() -> None:
    t = log(200)
    whole = cal.sketch(t, label="y", score="p", by="site", cluster="who", weights="w")
    for change in ("weight", "limit", "total", "unit", "group"):
        other = Sketch.from_bytes(whole.to_bytes())
        held = other.parts["sample"]
        lines = held.lines.copy()
        if change == "weight":
            lines[3, held.own + 1] = np.float64(-1.0).view(np.int64)
        if change == "unit":
            lines[-1, HASH] = lines[0, HASH]
        if change == "group":
            lines[0, held.own + WITH] = 99
        state = held.arrays() | {"lines": lines}
        if change == "limit":
            state["limit"] = np.array([7], dtype=np.int64)
        if change == "total":
            state["total"] = np.array([7], dtype=np.int64)
        held.load(state)
        with pytest.raises(BadInput, match="damaged"):
            Sketch.from_bytes(other.to_bytes())


def test_weights_are_in_the_fingerprint() -> None:
    t = log(200)
    other = t.set_column(t.column_names.index("w"), "w", pa.array(np.ones(200)))
    one, two = (cal.sketch(x, label="y", score="p", weights="w") for x in (t, other))
    assert one.fingerprint != two.fingerprint
    assert one.fingerprint == cal.sketch(t, label="y", score="p", weights="w", variables="x").fingerprint
    with pytest.raises(BadInput, match="different specs"):
        one.merge(cal.sketch(log(100, 5), label="y", score="p"))
