"""What a day costs a monitor, and how large its file becomes with age.

    python benchmarks/watch/size.py               a day of 1,000,000 rows and 20 variables; a year of days
    python benchmarks/watch/size.py --days 3650   ten years

The day is `calibrant watch update` on a Parquet file, in a process of its own (CPU seconds, with starting Python). The
file of the monitor depends on directions, groups, window and age, not on rows: days here have 500. *Usual* has 12
variables of five levels and 8 numbers, two of them groups. *Most* has two columns
of 21 levels, whose pairs are nearly as many directions as are allowed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal

GROUPS = "c0", "c1"


def table(rows: int, seed: int, texts: int = 12, numbers: int = 8, levels: int = 5) -> pa.Table:
    """Rows whose outcomes follow their scores."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 5, rows)
    names = np.array([f"level {j}" for j in range(levels)])
    columns = {f"c{i}": names[rng.integers(0, levels, rows)] for i in range(texts)}
    columns |= {f"x{i}": rng.normal(size=rows).round(3) for i in range(numbers)}
    return pa.table({"y": (rng.uniform(size=rows) < p).astype(np.int8), "p": p, **columns})


def command(*arguments: object) -> float:
    """CPU seconds of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "calibrant", "watch", *map(str, arguments)], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def days(rows: int, reference: bool) -> None:
    """CPU seconds of two days: the first, or a reference, fixes what is watched."""
    with tempfile.TemporaryDirectory() as folder:
        home, path = Path(folder) / "monitor", Path(folder) / "day.parquet"
        others = [c for c in table(10, 0).column_names if c not in ("y", "p", *GROUPS)]
        columns = ("--label", "y", "--score", "p", "--by", ",".join(GROUPS), "--variables", ",".join(others))
        more = ()
        if reference:
            pq.write_table(table(rows, 0), Path(folder) / "reference.parquet")
            more = ("--reference", Path(folder) / "reference.parquet")
        print(
            f"start{' with a reference' * reference}: {command('start', home, *columns, '--limit', '0.02', *more):.1f}"
        )
        for day in (1, 2):
            pq.write_table(table(rows, day), path)
            print(
                f"day {day} of {rows:,} rows and 20 variables: {command('update', home, path, '--at', day):.1f} CPU s"
            )


def ages(name: str, watch: cal.Monitor, until: int, **more: int) -> None:
    """Size of the file by age."""
    day_of = [table(500, seed, **more) for seed in range(8)]
    columns = [c for c in day_of[0].column_names if c not in ("y", "p")]
    rows = [cal.predictions(t.column("y").to_numpy(), t.column("p").to_numpy(), t.select(columns)) for t in day_of]
    marks = [d for d in (28, 365, 1095, 3650) if d <= until]
    for day in range(1, until + 1):
        watch.update(rows[day % len(rows)], at=day)
        if day in marks:
            kinds = len(watch.plan.watched), len(watch.plan.populations) - 1
            print(
                f"{name}: {kinds[0]} directions, {kinds[1]} groups, {day:,} days: {len(watch.to_json()) / 1e6:.2f} MB"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=365)
    a = parser.parse_args()
    days(a.rows, reference=False)
    days(a.rows, reference=True)
    usual = [c for c in table(10, 0).column_names if c not in ("y", "p", *GROUPS)]
    ages("usual", cal.Monitor(label="y", score="p", limit=0.02, by=GROUPS, variables=usual), a.days)
    watch = cal.Monitor(table(5000, 9), label="y", score="p", limit=0.02, by=GROUPS, variables=usual)
    ages("usual, with a reference", watch, a.days)
    # 21 levels with "other" and "missing" are 23, and 23 x 23 pairs with all else nearly 600 directions.
    ages("most", cal.Monitor(label="y", score="p", limit=0.02, by=GROUPS), a.days, texts=2, numbers=0, levels=21)


if __name__ == "__main__":
    main()
