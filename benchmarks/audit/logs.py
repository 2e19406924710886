"""The made-up prediction logs of these timings: seven columns of any length, and a wide one as of credit default."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

WIDE_ROWS, WIDE_NUMBERS, WIDE_TEXTS = 60_000, 32, 8


def long(rows: int) -> pa.Table:
    """Return labels, probabilities that are right, three numbers and two texts."""
    rng = np.random.default_rng(rows)
    age, income = rng.integers(18, 96, rows), np.exp(rng.normal(10, 1, rows)).round(0)
    bmi = rng.normal(26, 4, rows).round(1)
    site, sex = rng.choice([f"s{i}" for i in range(8)], rows), rng.choice(["f", "m"], rows)
    logit = -1 + 0.02 * (age - 50) + 0.3 * (sex == "m") + rng.normal(0, 0.7, rows)
    p = (1 / (1 + np.exp(-logit))).round(6)
    y = (rng.random(rows) < p).astype(int)
    return pa.table({"y": y, "p": p, "age": age, "income": income, "bmi": bmi, "site": site, "sex": sex})


def wide(rows: int = WIDE_ROWS) -> pa.Table:
    """Return 42 columns: label, score, bills and payments of months that go together, eight texts of 2 to 30 levels.

    The model says too little where the last payment is late and the bill is large.
    """
    rng = np.random.default_rng([rows, 42])
    person = rng.normal(size=rows)
    numbers = {}
    for j in range(WIDE_NUMBERS):
        own = 0.6 * person + 0.8 * rng.normal(size=rows)
        numbers[f"x{j}"] = np.round(np.exp(own + 7), 0) if j % 2 else np.clip(np.round(own), -2, 6).astype(int)
    texts = {f"c{j}": rng.choice([f"l{i}" for i in range(2 + 4 * j)], rows) for j in range(WIDE_TEXTS)}
    p = (1 / (1 + np.exp(1.5 - 0.8 * person))).round(6)
    late = (numbers["x0"] >= 1) & (numbers["x1"] > 2_000)
    y = (rng.random(rows) < np.clip(p + 0.05 * late, 0, 1)).astype(int)
    return pa.table({"y": y, "p": p, **numbers, **texts})


def written(folder: Path, name: str) -> Path:
    """Return the file of a log, made if it is not there: rows such as ``2000``, or ``wide``."""
    path = folder / f"{name}.csv"
    if not path.exists():
        pc.write_csv(wide() if name == "wide" else long(int(name)), path)
    return path


if __name__ == "__main__":
    written(Path(sys.argv[1]), sys.argv[2])
