"""Rows a second, CPU time and memory of a sketch from Parquet on one machine, and how they scale.

    python benchmarks/scale/local.py                       # 1e8 rows generated (6 GB), counted, deleted; 1e9 by
    repeating python benchmarks/scale/local.py --rows 1e7 --times 2  # smaller python benchmarks/scale/local.py --data
    DIR            # files made before with --keep DIR

Each measurement is a process of its own: CPU time of `cal.sketch` with its first looks, all threads, and the peak of
the process's memory. 1e9 rows are the same files again under other names (hard links, `allow_same=True`), so every
row's identity is new; how far that run is, is told every 1e8 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from log import LEVELS, VARIABLES, write

FILE = 10_000_000  # rows of a file
RUN = """
import hashlib, json, resource, sys, time
import calibrant as cal
a = json.loads(sys.argv[1])
warm = cal.sketch(a["warm"], label="y", score="p", by=a["by"], variables=a["variables"], tests=a["tests"])
warm.to_bytes()
del warm
cpu, wall = time.process_time(), time.perf_counter()
reported = 0
def progress(event_now):
    global reported
    if a["same"] and (event_now.rows or 0) // 10**8 != reported:
        reported = (event_now.rows or 0) // 10**8
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        used = f"{time.process_time() - cpu:.1f} CPU-s, {peak:.0f} MB"
        print(event_now.step, event_now.rows, used, file=sys.stderr, flush=True)
more = {"allow_same": a["same"], "progress": progress}
if a["spec"]:
    s = cal.sketch(a["files"], spec=cal.Sketch.from_bytes(open(a["spec"], "rb").read()).spec, **more)
else:
    s = cal.sketch(a["files"], label="y", score="p", by=a["by"], variables=a["variables"], tests=a["tests"], **more)
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
start = time.process_time()
raw = s.to_bytes()
written = time.process_time() - start
start = time.process_time()
again = cal.Sketch.from_bytes(raw)
loaded = time.process_time() - start
start = time.process_time()
again.merge(s, allow_same=True)
merged = time.process_time() - start
if a["keep"]:
    open(a["keep"], "wb").write(raw)
print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak, "rows": s.n, "groups": s.spec.group_count, "bytes": len(raw),
                  "written": written, "loaded": loaded, "merged": merged, "fingerprint": s.fingerprint[:12]}))
"""


def measured(files: list[Path], warm: Path, by: list[str], variables: list[str], **more: Any) -> dict[str, Any]:
    """Sketch files in a process of its own."""
    given = {
        "files": [str(f) for f in files],
        "warm": str(warm),
        "by": by,
        "variables": variables,
        "tests": False,
        "same": False,
        "spec": "",
        "keep": "",
    } | more
    run = subprocess.run([sys.executable, "-c", RUN, json.dumps(given)], stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(run.stdout))


def line(name: str, m: dict[str, Any]) -> str:
    """Return a line of the table."""
    per = m["cpu"] / m["rows"] * 1e8
    cells = (
        f"{m['rows']:,}",
        f"{m['cpu']:.1f}",
        f"{per:.1f}",
        f"{m['rows'] / m['wall'] / 1e6:.2f}",
        f"{m['peak']:.0f}",
        f"{m['bytes'] / 1e6:.2f}",
        f"{m['written']:.2f}",
        f"{m['loaded']:.2f}",
        f"{m['merged']:.3f}",
    )
    text = f"| {name} | " + " | ".join(cells) + " |"
    print(text, m["fingerprint"], flush=True)
    return text


HEAD = [
    "| sketch | rows | CPU-s | CPU-s per 1e8 rows | million rows a second | peak MB | file MB | write CPU-s | read "
    "CPU-s | merge CPU-s |",
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
]


def generated(folder: Path, rows: int) -> list[Path]:
    """Write the files, unless they are there."""
    folder.mkdir(exist_ok=True, parents=True)
    files = []
    for k in range(-(-rows // FILE)):
        files.append(folder / f"part-{k}.parquet")
        if not files[-1].exists():
            write(files[-1], min(FILE, rows - k * FILE), k)
    return files


def repeated(files: list[Path], times: int) -> list[Path]:
    """Return the files so many times, under new names."""
    out = list(files)
    for t in range(1, times):
        folder = files[0].parent / f"again-{t}"
        folder.mkdir(exist_ok=True)
        for f in files:
            if not (folder / f.name).exists():
                os.link(f, folder / f.name)
            out.append(folder / f.name)
    return out


def main() -> None:
    """Measure everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--times", type=int, default=10, help="also the same files so many times")
    parser.add_argument("--small", type=float, default=1e7, help="rows at which variables, groups and files are varied")
    parser.add_argument("--data", type=Path, help="use, or make and keep, the files there")
    parser.add_argument("--only", choices=("full", "repeated", "scaling", "tests"), action="append")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = a.data or Path(temporary)
        files = generated(folder, int(a.rows))
        warm = Path(temporary) / "warm.parquet"
        write(warm, 30_000, 10**6)
        wanted = a.only or ["full", "repeated", "scaling", "tests"]
        print(f"{sum(f.stat().st_size for f in files) / 1e9:.2f} GB\n" + "\n".join(HEAD), flush=True)
        every = list(VARIABLES)
        if "full" in wanted:
            line("20 variables, 50 groups", measured(files, warm, ["site"], every))
        if "repeated" in wanted:
            again = measured(repeated(files, a.times), warm, ["site"], every, same=True)
            line(f"the same files {a.times} times", again)
        small = files[: max(int(a.small) // FILE, 1)]
        if "scaling" in wanted:
            scaling(small, warm, every)
        if "tests" in wanted:
            one = Path(temporary) / "one.parquet"
            write(one, 10**6, 77)
            line("20 variables, 50 groups, `tests=True`", measured([one], warm, ["site"], every, tests=True))


def scaling(files: list[Path], warm: Path, every: list[str]) -> None:
    """Vary variables, groups, and passes."""
    for k in (0, 5, 10):
        line(f"{k} variables, 50 groups", measured(files, warm, ["site"], every[6 : 6 + k]))
    line("5 numbers, no group", measured(files, warm, [], every[6:11]))
    line("5 categories, no group", measured(files, warm, [], every[-5:]))
    names = list(LEVELS)
    for by in ([], ["region"], names[:4], ["code"], names):
        line(f"no variable, {', '.join(by) or 'no group'}", measured(files, warm, by, []))
    with tempfile.TemporaryDirectory() as temporary:
        kept = Path(temporary) / "like.sketch"
        measured([warm], warm, ["site"], every, keep=str(kept))
        line(
            "20 variables, 50 groups, `spec=` given (one pass)", measured(files, warm, ["site"], every, spec=str(kept))
        )


if __name__ == "__main__":
    main()
