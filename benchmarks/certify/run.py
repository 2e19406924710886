"""Rows needed, tightness, time and memory of the certificates against the published procedures.

    python benchmarks/certify/run.py            # a few minutes; writes docs/evidence/certify-*.csv
    python benchmarks/certify/run.py --full     # also published_kernel at 1e7 rows without its subsampling

Ratios are of CPU time measured in one run. Gaps are bound minus truth, one-sided at alpha = 0.05.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.stats.bounds import bernstein_upper
from calibrant.stats.jitter import jitter, jittered_bernstein_upper
from calibrant.views.sample import everyone

OUT = Path(__file__).parents[2] / "docs" / "evidence"
H = 2.0**-6
CURVES: dict[str, Callable[[Any], Any]] = {"s": lambda s: s, "s²": lambda s: s * s}


def draw(curve: str, n: int, seed: int) -> cal.Predictions:
    """Uniform scores with event rate `curve`."""
    rng = np.random.default_rng([seed, 0xBE7C])
    p = rng.uniform(size=n)
    return cal.predictions((rng.uniform(size=n) < CURVES[curve](p)).astype(np.int8), p)


def raw_truth(curve: str) -> float:
    return {"s": 0.0, "s²": 1.0 / 6.0}[curve]


def jittered_truth(curve: str, size: int = 1 << 13) -> float:
    """Error of the jittered classifier, by the exact kernel on a grid."""
    kernel = jitter(size, H)
    c = np.full(size, 1.0 / size)
    t = kernel.points
    return float(np.abs(t * kernel.spread(c) - kernel.spread(c * CURVES[curve](kernel.points))).sum())


def rounded_truth(curve: str, levels: int) -> float:
    s = (np.arange(1_000_000) + 0.5) / 1_000_000
    level = np.floor(s * levels + 0.5).astype(int)
    mass = np.bincount(level, minlength=levels + 1)
    rate = np.bincount(level, CURVES[curve](s), levels + 1) / np.maximum(mass, 1)
    return float((mass * np.abs(np.arange(levels + 1) / levels - rate)).sum() / len(s))


def levels_of(data: Any, k: int) -> tuple[Any, Any, Any]:
    shown = everyone(data).levels(k)
    return shown.low, shown.totals.sum(axis=1), shown.totals[:, 1]


def high(estimate: Any) -> float:
    return float(estimate.interval.high)


METHODS: list[tuple[str, Callable[[Any], float], Callable[[str], float]]] = [
    ("jittered", lambda d: high(cal.certify.jittered(d, bandwidth=H, side="upper")), jittered_truth),
    ("jittered, Theorem 1", lambda d: jittered_bernstein_upper(everyone(d).cells, H, 0.05), jittered_truth),
    ("published_kernel", lambda d: high(cal.papers.published_kernel(d, bandwidth=H)), jittered_truth),
    ("published_lipschitz", lambda d: high(cal.papers.published_lipschitz(d, bandwidth=H)), jittered_truth),
    (
        "rounded, 50 levels",
        lambda d: high(cal.certify.rounded(d, steps=50, side="upper")),
        lambda c: rounded_truth(c, 50),
    ),
    ("rounded 50, Theorem 1", lambda d: bernstein_upper(*levels_of(d, 50), 0.05), lambda c: rounded_truth(c, 50)),
    (
        "rounded, 100 levels",
        lambda d: high(cal.certify.rounded(d, steps=100, side="upper")),
        lambda c: rounded_truth(c, 100),
    ),
    ("bounded_variation, V = 1", lambda d: high(cal.certify.bounded_variation(d, side="upper")), raw_truth),
    ("published_total_variation", lambda d: high(cal.papers.published_total_variation(d)), raw_truth),
    ("distance", lambda d: high(cal.certify.distance(d, side="upper")), raw_truth),
]


def tightness(runs: int) -> list[str]:
    """Mean gap of every upper bound, by rows."""
    sizes = (10**3, 10**4, 10**5, 10**6)
    lines = [
        "| upper bound | event rate | " + " | ".join(f"{n:.0e} rows" for n in sizes) + " |",
        "|---|---|" + "--:|" * len(sizes),
    ]
    for name, bound, truth in METHODS:
        for curve in CURVES:
            cells = []
            for n in sizes:
                reps = runs if n < 10**6 else max(runs // 5, 2)
                reps = 2 if "published" in name and n >= 10**6 else reps
                cells.append(float(np.mean([bound(draw(curve, n, r)) - truth(curve) for r in range(reps)])))
            lines.append(f"| {name} | η(s) = {curve} | " + " | ".join(f"{g:.4f}" for g in cells) + " |")
            print(lines[-1], flush=True)
    return lines


def rows_for(bound: Callable[[Any], float], truth: float, gap: float, start: int, runs: int) -> str:
    """Least row count on a grid of quarter-octaves-of-ten whose mean gap is at most `gap`."""
    n = start
    while n <= 10**7:
        if np.mean([bound(draw("s", n, r)) - truth for r in range(runs)]) <= gap:
            return f"{n:,}"
        n = int(float(f"{n * 10**0.125:.2g}"))
    return "over 10,000,000"


def rows_needed(runs: int) -> list[str]:
    truth = jittered_truth("s")
    ours = rows_for(lambda d: high(cal.certify.jittered(d, bandwidth=H, side="upper")), truth, 0.02, 5_000, runs)
    theirs = rows_for(
        lambda d: high(cal.papers.published_kernel(d, bandwidth=H, subsample=True)), truth, 0.02, 1_000_000, 1
    )
    print(ours, theirs, flush=True)
    return [
        "| procedure | rows for a gap of 0.02 (h = 2⁻⁶, uniform scores, η(s) = s) |",
        "|---|--:|",
        f"| `jittered` | {ours} |",
        f"| `published_kernel` (validation subsampling) | {theirs} |",
    ]


def cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def memory_speed(full: bool) -> list[str]:
    """CPU time at 1e7 rows in memory: data validated beforehand, everything else counted."""
    data = draw("s", 10**7, 0)
    small = draw("s", 1000, 1)
    for warm in (cal.certify.rounded, cal.certify.jittered, cal.certify.distance, cal.certify.raw_lower):
        warm(small)
    cal.papers.published_kernel(small, bandwidth=H, subsample=True)

    def fresh(f: Callable[[Any], Any]) -> Callable[[], Any]:
        def run() -> Any:
            data.cache.clear()
            return f(data)

        return run

    slow = cpu(lambda: cal.papers.published_kernel(data, bandwidth=H, subsample=True))
    rows = [("`published_kernel`, validation subsampling", slow)]
    if full:
        rows.append(("`published_kernel`, every row", cpu(lambda: cal.papers.published_kernel(data, bandwidth=H))))
    ours = {
        "`rounded`, upper": lambda d: cal.certify.rounded(d, side="upper"),
        "`jittered`, upper": lambda d: cal.certify.jittered(d, side="upper"),
        "`distance`, upper": lambda d: cal.certify.distance(d, side="upper"),
        "`raw_lower`": lambda d: cal.certify.raw_lower(d),
    }
    rows += [(f"{name} (with its pass over the rows)", cpu(fresh(f))) for name, f in ours.items()]
    together = fresh(lambda d: [f(d) for f in ours.values()])
    rows.append(("all four, one pass over the rows", cpu(together)))
    lines = ["| at 1e7 rows in memory | CPU s | times faster than published |", "|---|--:|--:|"]
    lines += [f"| {name} | {t:.2f} | {slow / t:.3g} |" for name, t in rows]
    print("\n".join(lines), flush=True)
    return lines


STREAM = """
import json, resource, sys, time
import calibrant as cal
from calibrant.certify.groups import certified_range
    from calibrant.views.sample import named_groups
from calibrant.stats.bounds import distance_upper
from calibrant.stats.jitter import jittered_upper
from calibrant.views.sample import group
warm = cal.sketch({"y": [0, 1], "p": [0.1, 0.2], "site": ["a", "b"]}, label="y", score="p", by="site")
for f in (cal.certify.rounded, cal.certify.jittered, cal.certify.distance):
    f(warm, side="upper")
start = time.process_time()
s = cal.sketch(sys.argv[1], label="y", score="p", by=["site"])
read = time.process_time() - start
for f in (cal.certify.rounded, cal.certify.jittered, cal.certify.distance):
    f(s, side="upper")
cal.certify.raw_lower(s)
n = 0
for name, i in named_groups(s):
    q = group(s, i)
    certified_range(q, 100, (0.05 / 400,) * 2, 0.95, 0)
    jittered_upper(q.cells, 2**-6, 0.05 / 400)
    distance_upper(q.cells, 0.05 / 400)
    n += 1
total = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"read": read, "total": total, "peak": peak / 1024, "groups": n, "rows": s.n}))
"""


def streamed() -> list[str]:
    """CPU time and peak memory of a 1e7-row Parquet log, rounded + jittered + distance + raw_lower, 50 groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        rng = np.random.default_rng([1, 0xBE7C])
        writer = None
        for _ in range(10):
            p = rng.uniform(size=10**6)
            site = pa.DictionaryArray.from_arrays(
                rng.integers(0, 50, 10**6).astype(np.int8), [f"site {i}" for i in range(50)]
            )
            t = pa.table({"y": (rng.uniform(size=10**6) < p).astype(np.int8), "p": p, "site": site.dictionary_decode()})
            writer = writer or pq.ParquetWriter(path, t.schema)
            writer.write_table(t)
        assert writer is not None
        writer.close()
        runs = [
            subprocess.run([sys.executable, "-c", STREAM, str(path)], capture_output=True, text=True, check=True)
            for _ in range(2)
        ]
    got = json.loads(runs[1].stdout)
    lines = [
        "| 1e7-row Parquet log, everyone and 50 groups | |",
        "|---|--:|",
        f"| CPU s, reading and counting (two passes) | {got['read']:.2f} |",
        f"| CPU s, with rounded + jittered + distance + raw_lower for all 51 populations | {got['total']:.2f} |",
        f"| peak memory of the process, MB | {got['peak']:.0f} |",
    ]
    print("\n".join(lines), flush=True)
    return lines


def write(name: str, lines: list[str]) -> None:
    """Write a printed table as CSV, where the documentation reads it."""
    cells = [[c.strip().replace("`", "") for c in line.strip("|").split("|")] for line in lines if line[:2] == "| "]
    with (OUT / f"certify-{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(cells)


def main() -> None:
    """Run everything and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", choices=("speed", "stream", "rows", "gaps"))
    a = parser.parse_args()
    parts = {
        "rows": ("rows-needed", lambda: rows_needed(min(a.runs, 10))),
        "stream": ("larger-than-memory", streamed),
        "speed": ("in-memory", lambda: memory_speed(a.full)),
        "gaps": ("tightness", lambda: tightness(a.runs)),
    }
    for key, (name, make) in parts.items():
        if a.only in (None, key):
            write(name, make())
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
