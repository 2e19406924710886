"""CPU time, memory and rate of `calibrant apply` on ten million rows.

Run: python benchmarks/repair/apply.py [rows]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal
from calibrant.data.sources.source import ROWS


def written(path: Path, rows: int) -> None:
    """Write labels, scores, a number and a category."""
    rng = np.random.default_rng(5)
    writer = None
    for start in range(0, rows, 1 << 20):
        n = min(1 << 20, rows - start)
        p = rng.uniform(size=n)
        columns = {
            "y": (rng.uniform(size=n) < p**1.5).astype(np.int8),
            "p": p,
            "age": rng.integers(18, 90, n),
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
        }
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def main() -> None:
    """Measure each kind of map."""
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    rng = np.random.default_rng(6)
    p = rng.uniform(size=20_000)
    data = cal.predictions(
        rng.uniform(size=20_000) < p**1.5,
        p,
        {"age": rng.integers(18, 90, 20_000), "sex": np.array(["f", "m"])[rng.integers(0, 2, 20_000)]},
    )
    recipes = {
        "Platt": cal.repair.Platt(),
        "Beta": cal.repair.Beta(),
        "Isotonic": cal.repair.Isotonic(),
        "AugmentedLogistic (age, sex)": cal.repair.AugmentedLogistic(variables=("age", "sex")),
    }
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        written(where / "in.parquet", rows)
        print(f"{rows:,} rows, batches of {ROWS:,}; CPU seconds and peak memory of the whole command")
        for name, recipe in recipes.items():
            (where / "calibrator.json").write_text(recipe.fit(data).to_json())
            command = [
                sys.executable,
                "-m",
                "calibrant",
                "apply",
                str(where / "calibrator.json"),
                str(where / "in.parquet"),
                "--score",
                "p",
                "--out",
                str(where / "out.parquet"),
            ]
            code = (
                "import resource, subprocess, sys; s = subprocess.run(sys.argv[1:], "
                "stdout=subprocess.DEVNULL).returncode;"
                "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(s, u.ru_utime + u.ru_stime, u.ru_maxrss / "
                "1024)"
            )
            stated = subprocess.run(
                [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
            ).stdout
            status, seconds, peak = stated.split()
            assert status == "0"
            print(f"{name:<30} {float(seconds):6.1f} s  {float(peak):6.0f} MB")


if __name__ == "__main__":
    main()
