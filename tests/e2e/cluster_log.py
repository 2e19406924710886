"""A small prediction log with every kind of column that engines store in their own way, and its sketch's bytes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal

ROWS, GROUP = 12_000, 700
COLUMNS = {
    "label": "y",
    "score": "p",
    "by": ["site", "age", "month", "price", "flag"],
    "key": ["id", "at"],
    "variables": ["age", "ratio", "price", "month", "site", "day"],
    "tests": True,
    "intersections": False,
}


def table(n: int = ROWS) -> pa.Table:
    """Return rows with nulls, NaN, both zeros, decimals, dictionaries, views, dates, times with and without a zone."""
    rng = np.random.default_rng([2026, 0xC1])
    p = rng.beta(2.0, 4.0, n)
    p[:40] = np.repeat([0.0, -0.0, 1.0, 0.5], 10)
    y = rng.random(n) < p
    ratio = rng.standard_normal(n)
    ratio[::50], ratio[1::50], ratio[2::50] = np.nan, 0.0, -0.0
    ratio[4::50] = -np.abs(np.array([np.nan]))
    micro = rng.integers(1_600_000_000, 1_640_000_000, n) * 1_000_000 + rng.integers(0, 1_000_000, n)
    sites = pa.array([["north", "south", "ça", "d e", None][i] for i in rng.integers(0, 5, n)], pa.string())
    cents = [None if i % 97 == 0 else Decimal(int(v)) / 4 for i, v in enumerate(rng.integers(0, 60, n))]
    return pa.table(
        {
            "id": pa.array(rng.permutation(n) // 2, pa.int64()),
            "at": pa.array(micro, pa.timestamp("us", tz="UTC")),
            "y": y.astype(np.int8),
            "p": p,
            "site": sites.dictionary_encode(),
            "age": pa.array(rng.integers(18, 90, n).astype(np.int16)),
            "ratio": pa.array(ratio, mask=rng.random(n) < 0.03),
            "price": pa.array(cents, pa.decimal128(12, 2)),
            "day": pa.array((micro // 86_400_000_000).astype(np.int32), pa.date32()),
            "month": pa.array(micro, pa.timestamp("us", tz="UTC")),
            "flag": pa.array(rng.random(n) < 0.3, mask=rng.random(n) < 0.01),
        }
    )


def write(path: Path, rows: pa.Table | None = None) -> Path:
    """Write the log as one Parquet file of many row groups."""
    pq.write_table(table() if rows is None else rows, path, row_group_size=GROUP)
    return path


def bits(sketch: Any) -> bytes:
    """Return everything a sketch holds, but for where it came from."""
    own = sketch.copy()
    own.name, own.files = "log", ()
    return bytes(own.to_bytes())


def sketched(source: Any, **more: Any) -> Any:
    """Return the sketch of the log with groups, covariates and tests."""
    return cal.sketch(source, **(COLUMNS | more))
