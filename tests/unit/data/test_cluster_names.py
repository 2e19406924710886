"""A unit is known by its name alone: whichever others there are, wherever and in whatever order its rows stand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.views.people import people_of

CLUSTERS, SIZE = 150, 4
DAY = date(2024, 1, 31)
KINDS: dict[str, Any] = {
    "text": [f"patient {i}" for i in range(CLUSTERS)],
    "long text": [f"{i}" * 3000 for i in range(CLUSTERS)],
    "int64": list(range(-5, CLUSTERS - 5)),
    "beyond doubles": [2**60 + i for i in range(CLUSTERS)],
    "int32": pa.array(range(CLUSTERS), pa.int32()),
    "uint8": pa.array(range(CLUSTERS), pa.uint8()),
    "floats": [i / 8 - 3 for i in range(CLUSTERS)],
    "float32": pa.array([np.float32(i / 10) for i in range(CLUSTERS)], pa.float32()),
    "dates": [DAY + timedelta(days=i) for i in range(CLUSTERS)],
    "times": [datetime(2024, 1, 31) + timedelta(seconds=i, microseconds=i) for i in range(CLUSTERS)],
    "seconds": pa.array(range(CLUSTERS), pa.timestamp("s")),
    "nanoseconds": pa.array(range(CLUSTERS), pa.timestamp("ns")),
    "in a zone": pa.array(range(CLUSTERS), pa.timestamp("us", "UTC")),
    "decimals": [Decimal(i) / 4 for i in range(CLUSTERS)],
    "coded": pa.array([f"{i}" for i in range(CLUSTERS)]).dictionary_encode(),
    "bytes": [f"{i}".encode() for i in range(CLUSTERS)],
}


def log(names: Any, seed: int = 0) -> pa.Table:
    """Return units of four rows whose weights add up without rounding, in no order."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(CLUSTERS), SIZE))
    p = rng.integers(1, 16, len(who)) / 16
    column = names if isinstance(names, pa.Array) else pa.array(names)
    y = (rng.uniform(size=len(who)) < p).astype(np.int8)
    return pa.table({"y": y, "p": p, "who": column.take(pa.array(who)), "w": rng.integers(1, 5, len(who)) / 4})


def hash_split(given: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the block of each row, 0 of a pilot, and its unit's number."""
    clusters = people_of(given).clusters(seed)
    return clusters.block[clusters.cluster], people_of(given).ids(seed)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_sketch_and_file_know_a_unit_alike(kind: str, tmp_path: Path) -> None:
    table, named = log(KINDS[kind]), {"label": "y", "score": "p", "cluster": "who", "weights": "w"}
    pq.write_table(table, tmp_path / "log.parquet")
    rows = cal.read(table, **named)
    ways = (
        cal.predictions(table["y"], table["p"], cluster=table["who"], weights=table["w"]),
        cal.read(tmp_path / "log.parquet", **named),
        cal.sketch(table, **named),
        cal.sketch(tmp_path / "log.parquet", **named),
        cal.sketch(table, **named).rows(),
    )
    block, ids = hash_split(rows)
    assert len(np.unique(ids)) == CLUSTERS
    for other in ways:
        for a, b in zip((block, ids), hash_split(other), strict=True):
            np.testing.assert_array_equal(a, b)
    if kind in ("text", "dates"):
        assert len({tuple(cal.certify.values(d).to_dict()["interval"].values()) for d in (rows, *ways)}) == 1
    if kind == "text":
        assert len({cal.certify.distance(d, side="upper").interval.high for d in (rows, *ways)}) == 1


def test_neither_order_nor_other_units_choose_a_pilot() -> None:
    table = log(KINDS["text"])
    rows = cal.predictions(table["y"], table["p"], cluster=table["who"], weights=table["w"])
    order = np.random.default_rng(1).permutation(rows.n)
    other = rows.part(order)
    for a, b in zip(hash_split(rows), hash_split(other), strict=True):
        np.testing.assert_array_equal(a[order], b)
    assert cal.certify.values(rows).interval == cal.certify.values(other).interval
    named = [f"{'z' if i % 2 else 'a'}{i}" for i in range(CLUSTERS)]  # others, among which these stand elsewhere
    both = pa.concat_tables([table, log(named, 1)])
    more = cal.predictions(both["y"], both["p"], cluster=both["who"], weights=both["w"])
    (block, ids), (blocks, all_ids) = hash_split(rows), hash_split(more)
    np.testing.assert_array_equal(all_ids[: rows.n], ids)
    stays = (block > 0) & (blocks[: rows.n] > 0)
    np.testing.assert_array_equal(blocks[: rows.n][stays], block[stays])
    assert np.unique(ids[block == 0]).max() < np.unique(ids[block > 0]).min()  # the pilots are the smallest
    assert np.unique(all_ids[blocks == 0]).max() < np.unique(all_ids[blocks > 0]).min()


def test_seeds_choose_other_pilots_and_blocks_are_even() -> None:
    rows = cal.predictions(np.tile([0, 1], 8000), np.full(16000, 0.5), cluster=np.repeat(np.arange(8000), 2))
    first, second = (hash_split(rows, seed)[0] for seed in (0, 1))
    assert not np.array_equal(first == 0, second == 0)
    counts = np.bincount(people_of(rows).clusters(0).block)
    assert counts[0] == 800
    assert np.all(np.abs(counts[1:] - 900) < 150)  # five standard deviations
    low = np.argsort(people_of(rows).ids(0))[: rows.n // 2]  # units with small identities are in all blocks alike
    assert np.all(np.abs(np.bincount(first[low])[1:] / 2 - 400) < 110)


def test_units_that_a_small_sketch_holds_have_the_pilots_of_all() -> None:
    table = log(KINDS["int64"])
    whole = cal.sketch(table, label="y", score="p", cluster="who")
    small = cal.Sketch(replace(whole.spec, sample=300))
    small.update(table.combine_chunks().to_batches()[0])
    held, everyone = people_of(small).clusters(0), people_of(whole).clusters(0)
    ids = np.unique(people_of(whole.rows()).ids(0))
    np.testing.assert_array_equal(np.unique(people_of(small.rows()).ids(0)), ids[:75])
    assert (held.pilots, everyone.pilots) == (7, 15)
    assert not held.block[:7].any()
    assert not everyone.block[:15].any()
    np.testing.assert_array_equal(held.block[15:], everyone.block[15:75])
    assert len(set(held.block[15:])) == 8


def test_weighted_rows_are_known_as_a_sketch_knows_them() -> None:
    table = log(KINDS["text"])
    rows = cal.read(table, label="y", score="p", weights="w")
    whole = cal.sketch(table, label="y", score="p", weights="w")
    for a, b in zip(hash_split(rows), hash_split(whole), strict=True):
        np.testing.assert_array_equal(a, b)
    keyed = table.append_column("id", pa.array(range(table.num_rows)))
    order = pa.array(np.random.default_rng(2).permutation(table.num_rows))
    one, other = (
        cal.certify.values(cal.sketch(t, label="y", score="p", weights="w", key="id")).interval
        for t in (keyed, keyed.take(order))
    )
    assert one == other
