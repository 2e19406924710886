"""A sketch does not depend on how its rows were split, ordered over threads, stored, or merged."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.read import sketch
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.sketch_file import FORMAT
from effort import examples


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    p = np.round(rng.uniform(size=n), int(rng.integers(1, 12)))
    return pa.table(
        {
            "y": rng.integers(0, 2, n).astype(np.int8),
            "p": p,
            "g": np.array(["a", "b", "ç", "d e"])[rng.integers(0, 4, n)],
            "x": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n)),
            "id": np.arange(n),
        }
    )


def same(a: Sketch, b: Sketch) -> bool:
    return a.fingerprint == b.fingerprint and a.to_bytes() == b.to_bytes()


@pytest.mark.slow
@examples(25, quick=5)
@given(
    n=st.integers(1, 300), seed=st.integers(0, 99), cuts=st.lists(st.integers(0, 300), max_size=6), order=st.randoms()
)
def test_any_split_any_order(n: int, seed: int, cuts: list[int], order: object) -> None:
    t = table(n, seed)
    whole = sketch(t, label="y", score="p", by=["g", "x"], intersections=True)
    ends = sorted({0, n, *(min(c, n) for c in cuts)})
    pieces = list(pairwise(ends))
    order.shuffle(pieces)  # type: ignore[attr-defined]
    parts = []
    for start, stop in pieces:
        one = Sketch(whole.spec)
        for batch in t.slice(start, stop - start).to_batches():
            one.update(batch, first_row=start)
        parts.append(one)
    merged = Sketch(whole.spec)
    merged.name = whole.name
    for one in parts:
        merged.merge(one, allow_same=True)
    assert same(merged, whole)
    assert same(Sketch.from_bytes(whole.to_bytes()), whole)
    assert whole.n == n


@pytest.mark.slow
@examples(20, quick=8)
@given(n=st.integers(2, 200), seed=st.integers(0, 99))
def test_a_key_makes_row_order_irrelevant(n: int, seed: int) -> None:
    t = table(n, seed)
    shuffled = t.take(np.random.default_rng(seed).permutation(n))
    read = {"label": "y", "score": "p", "by": "g", "key": "id"}
    assert same(sketch(t, **read), sketch(shuffled, **read))


@pytest.mark.slow
def test_every_source_gives_the_same_sketch(tmp_path: Path) -> None:
    duckdb, pandas, polars = (pytest.importorskip(m) for m in ("duckdb", "pandas", "polars"))
    t = table(5000, 3)
    files = {"parquet": tmp_path / "a.parquet", "csv": tmp_path / "a.csv", "arrow": tmp_path / "a.arrow"}
    pq.write_table(t, files["parquet"], row_group_size=700)
    frame = t.to_pandas()
    frame.to_csv(files["csv"], index=False)
    with pa.OSFile(str(files["arrow"]), "wb") as sink, pa.ipc.new_file(sink, t.schema) as writer:
        writer.write_table(t)
    relation = duckdb.from_arrow(t)
    sources = [*files.values(), t, frame, polars.from_arrow(t), polars.from_arrow(t).lazy(), relation]
    sources += [frame.assign(g=pandas.Categorical(frame["g"]))]
    prints = {sketch(s, label="y", score="p", by=["g", "x"]).fingerprint for s in map(str_if_path, sources)}
    rows = cal.read(t, label="y", score="p", by=["g", "x"])
    counted = sketch(rows, by=["g", "x"])
    assert len(prints) == 1
    np.testing.assert_array_equal(counted.group_cells, sketch(t, label="y", score="p", by=["g", "x"]).group_cells)


def str_if_path(source: object) -> object:
    return str(source) if isinstance(source, Path) else source


def test_a_glob_counts_every_file_once(tmp_path: Path) -> None:
    t = table(900, 1)
    for i in range(3):
        (tmp_path / f"day={i}").mkdir()
        pq.write_table(t.slice(300 * i, 300), tmp_path / f"day={i}" / "log.parquet")
    whole = sketch(str(tmp_path / "**" / "*.parquet"), label="y", score="p", by="g")
    assert whole.n == 900
    assert (
        same(whole, sketch(str(tmp_path), label="y", score="p", by="g"))
        or whole.fingerprint == sketch(str(tmp_path), label="y", score="p", by="g").fingerprint
    )
    one_file = sketch(t, label="y", score="p", by="g")
    np.testing.assert_array_equal(whole.cells.sum(axis=0)[..., :4], one_file.cells.sum(axis=0)[..., :4])


@pytest.mark.parametrize("damage", ["cut", "flip", "foreign", "newer"])
def test_damaged_sketches_are_refused(damage: str) -> None:
    raw = sketch(table(50, 0), label="y", score="p").to_bytes()
    broken = {
        "cut": raw[:-10],
        "flip": raw[:-5] + bytes([raw[-5] ^ 1]) + raw[-4:],
        "foreign": b"PK" + raw,
        "newer": raw.replace(b'"format":%d' % FORMAT, b'"format":%d' % (FORMAT + 1)),
    }[damage]
    with pytest.raises(cal.BadInput, match="sketch"):
        Sketch.from_bytes(broken)


def test_different_specs_do_not_merge() -> None:
    with pytest.raises(cal.BadInput, match="spec"):
        sketch(table(50, 0), label="y", score="p").merge(sketch(table(50, 0), label="y", score="p", seed=1))


# ---- batches of a metric ----


def stream() -> list[tuple[Any, Any]]:
    """Return batches of unequal sizes, each sorted by the label, so that a row's place in its batch tells it."""
    rng = np.random.default_rng(5)
    p = np.round(rng.uniform(size=3_000), 3)
    y = (rng.uniform(size=3_000) < p**1.4).astype(int)
    cuts = np.cumsum(rng.integers(1, 90, size=80))
    batches = zip(np.split(p, cuts), np.split(y, cuts), strict=True)
    return [(a[np.argsort(b, kind="stable")], np.sort(b)) for a, b in batches]


def counted(batches: Any, **settings: Any) -> cal.tracking.CalibrationMetric:
    metric = cal.tracking.CalibrationMetric(**settings)
    for p, y in batches:
        metric.update(p, y)
    return metric


def test_batches_are_counted_as_all_rows_at_once() -> None:
    p, y = (np.concatenate(column) for column in zip(*stream(), strict=True))
    metric, whole = counted(stream()), cal.sketch({"y": y, "p": p}, label="y", score="p")
    assert metric.n == len(p) == whole.n
    assert (metric.sketch.cells == whole.cells).all()  # by block: rows go where they would go
    assert (metric.sketch.levels == whole.levels).all()


@pytest.mark.slow
def test_processes_in_any_order_are_one_stream() -> None:
    parts = {name: stream()[k::3] for k, name in enumerate("abc")}
    made = []
    for order in ("abc", "cab"):
        metric = counted([], part=order[0])
        for name in order:
            other = counted(parts[name], part=name)
            metric.add_bytes(other.to_bytes())
        made.append(metric)
    assert made[0].sketch.fingerprint == made[1].sketch.fingerprint
    assert made[0].n == sum(len(p) for p, _ in stream())
    assert made[0].compute() == made[1].compute()
