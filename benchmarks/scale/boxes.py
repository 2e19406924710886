"""What the sums of all pairs of traits add to a sketch, and what the questions that read them cost.

    python benchmarks/scale/boxes.py                 # 1e6 rows of 20 covariates, 2e7 and 1e8 of 5: some ten minutes
    python benchmarks/scale/boxes.py --only wide

Rows are drawn a million at a time and counted at once, so that any number of them takes no disk and no memory; only
counting is timed. Each line is a process of its own: its CPU time on one thread, and the peak of its memory. The parts
of a sketch are switched on and off in its spec, here and nowhere else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

WIDE = ("age", "visits", "income", "balance", "opened", "ratio", "tenure", "load", "speed", "heat", "spend", "delay")
TEXTS = ("site", "region", "device", "plan", "weekday", "code", "sex", "browser")
FEW = ("age", "income", "opened", "region", "sex")
PARTS: dict[str, dict[str, Any]] = {
    "curves": {"attributes": (), "local": None, "sample": 0},
    "curves, boxes": {"local": None, "sample": 0},
    "curves, sample, local test": {"attributes": ()},
    "curves, sample, local test, boxes": {},
    "curves, sample, boxes": {"local": None},
}
RUNS = {
    "wide": (10**6, (*WIDE, *TEXTS), tuple(PARTS)),
    "large": (2 * 10**7, FEW, ("curves", "curves, boxes", "curves, sample, boxes")),
    "vast": (10**8, FEW, ("curves", "curves, boxes")),
}
HEAD = (
    "| parts of the sketch | covariates | rows | count CPU-s | of it boxes | peak MB | file MB | bound CPU-s | "
    "certify CPU-s |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def counted(rows: int, names: tuple[str, ...], parts: str) -> dict[str, Any]:
    """Draw and count rows; then ask, if the sums are there."""
    import resource
    import time
    from dataclasses import replace

    import log

    import calibrant as cal
    from calibrant.data.sketches.sums import Boxes

    first = log.rows(log.STEP, 0).select(["y", "p", *names])
    spec = cal.sketch(first.slice(0, 30_000), label="y", score="p", variables=names, tests=True).spec
    spec = replace(spec, **PARTS[parts])
    in_boxes, update = [0.0], Boxes.update

    def timed(self: Boxes, more: Any) -> None:
        start = time.thread_time()
        update(self, more)
        in_boxes[0] += time.thread_time() - start

    warm = cal.Sketch(spec)
    warm.update(first.slice(0, 1000).combine_chunks().to_batches()[0])
    Boxes.update = timed  # type: ignore[assignment, method-assign]
    sketch, cpu = cal.Sketch(spec), 0.0
    for k, at in enumerate(range(0, rows, log.STEP)):
        drawn = log.rows(min(log.STEP, rows - at), k).select(["y", "p", *names])
        start = time.thread_time()
        for j, batch in enumerate(drawn.to_batches(max_chunksize=1 << 17)):
            sketch.update(batch, first_row=at + (j << 17))
        cpu += time.thread_time() - start
    out: dict[str, Any] = {"count": cpu, "boxes": in_boxes[0], "n": sketch.n}
    if spec.attributes:
        for name, ask in (("bound", cal.detect.scan_test), ("certify", cal.certify.subgroups)):
            more: dict[str, Any] = {"null": "bound"} if name == "bound" else {}
            ask(warm, **more)  # compiled, and imported
            start = time.process_time()
            out["boxes_requested"] = ask(sketch, **more).to_dict()["settings"].get("boxes", 0)
            out[name] = time.process_time() - start
    out["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    out["bytes"] = len(sketch.to_bytes())
    return out


def line(parts: str, names: tuple[str, ...], m: dict[str, Any]) -> str:
    """Return a line of the table."""
    asked = (f"{m[k]:.2f}" if k in m else "" for k in ("bound", "certify"))
    own = f"{m['boxes']:.1f}" if m["boxes"] else ""
    sizes = f"{m['peak']:.0f}", f"{m['bytes'] / 1e6:.2f}"
    return "| " + " | ".join((parts, str(len(names)), f"{m['n']:,}", f"{m['count']:.1f}", own, *sizes, *asked)) + " |"


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(RUNS), action="append")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.one:
        rows, names, parts = json.loads(a.one)
        print(json.dumps(counted(rows, tuple(names), parts)))
        return
    print(HEAD, flush=True)
    for run in a.only or RUNS:
        rows, names, wanted = RUNS[run]
        for parts in wanted:
            command = [sys.executable, __file__, "--one", json.dumps([rows, names, parts])]
            alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # threads that wait would count
            stated = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=alone).stdout
            print(line(parts, names, json.loads(stated)), flush=True)


if __name__ == "__main__":
    main()
