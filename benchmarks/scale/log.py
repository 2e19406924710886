"""A made-up prediction log of any size: labels, probabilities, 20 covariates of the usual kinds, in Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STEP = 1 << 20  # rows drawn at once, and rows of a row group
SITES = 50
LEVELS = {"site": SITES, "region": 10, "device": 5, "plan": 4, "weekday": 7, "code": 300, "sex": 2, "browser": 12}
NUMBERS = ("age", "visits", "income", "balance", "opened", "ratio", "tenure", "load", "speed", "heat", "spend", "delay")
VARIABLES = (*NUMBERS, *LEVELS)


def rows(n: int, seed: int) -> pa.Table:
    """Return n rows: twelve numbers and dates (three whole, one heavy tailed, one missing at times), eight texts."""
    rng = np.random.default_rng([seed, 0x5CA1E])
    p = rng.beta(2.0, 5.0, n)
    columns: dict[str, Any] = {"y": (rng.random(n) < p).astype(np.int8), "p": p}
    columns["age"] = rng.integers(18, 96, n, dtype=np.int16)
    columns["visits"] = rng.poisson(4.0, n).astype(np.int32)
    columns["income"] = np.exp(rng.standard_normal(n, dtype=np.float32) * 1.5 + 10.0)
    columns["balance"] = np.round(rng.standard_normal(n) * 1000.0, 2)
    columns["opened"] = pa.array(rng.integers(16_000, 20_000, n, dtype=np.int32), pa.date32())
    columns["ratio"] = pa.array(rng.random(n, dtype=np.float32), mask=rng.random(n, dtype=np.float32) < 0.05)
    for name in NUMBERS[6:]:
        columns[name] = rng.standard_normal(n, dtype=np.float32)
    for name, size in LEVELS.items():
        codes = rng.integers(0, size, n, dtype=np.int16)
        columns[name] = pa.DictionaryArray.from_arrays(codes, [f"{name} {i}" for i in range(size)])
    return pa.table(columns)


def write(path: Path, n: int, seed: int) -> int:
    """Write one file of n rows and return its bytes."""
    writer = None
    for k, start in enumerate(range(0, n, STEP)):
        table = rows(min(STEP, n - start), seed * 1_000_003 + k)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path.stat().st_size
