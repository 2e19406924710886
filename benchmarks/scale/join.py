"""Sizes of what a cluster sends, and what joining costs: parts, groups of parts, the driver; no cluster is needed.

    python benchmarks/scale/join.py                        # 16 parts of 1e6 rows, groups of 4
    python benchmarks/scale/join.py --parts 64 --rows 1e5 --group 16

Each part is counted by the function that a worker runs, and joined by the function that its task runs. Whether one
stage or two: the bytes of the sketch are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

from log import VARIABLES, rows

import calibrant as cal
from calibrant.data.engines.work import Task, join, joined, summarise
from calibrant.data.read import fixed_spec
from calibrant.data.reading import Reading
from calibrant.data.sources.files import open_source


def timed(call: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    """Return what a call returns, and its CPU seconds."""
    start = time.process_time()
    return call(*given), time.process_time() - start


def sent(task: Task, parts: int, n: int) -> list[bytes]:
    """Return the message of each part."""

    def batches(part: int) -> Iterator[tuple[str, int, Any]]:
        at = 0
        for batch in rows(n, part).to_batches(max_chunksize=1 << 17):
            yield f"part-{part}", at, batch
            at += batch.num_rows

    return [summarise(task.to_bytes(), i, batches(i), in_files=True) for i in range(parts)]


def reported(name: str, messages: list[bytes], cpu: float) -> None:
    """Print a line of the table."""
    sizes = sorted(map(len, messages))
    middle = sizes[len(sizes) // 2]
    print(
        f"| {name} | {len(sizes)} | {middle / 1e6:.2f} | {sum(sizes) / 1e6:.1f} | {cpu / len(sizes):.2f} |", flush=True
    )


def main() -> None:
    """Measure both passes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--group", type=int, default=4)
    parser.add_argument("--tests", action="store_true")
    a = parser.parse_args()
    first = open_source(rows(100_000, 10**6))
    asked = Reading.of(label="y", score="p", by=["site"], variables=VARIABLES, tests=a.tests)
    spec, _ = fixed_spec(first, asked)
    plain = asked.plain_spec(first)
    tasks = {
        "look": Task(kind="look", spec=plain, by=("site",), covariates=VARIABLES),
        "count": Task(kind="count", spec=spec, rows=int(a.parts * a.rows)),
    }
    print("| pass, stage | messages | MB each | MB in all | CPU-s each |\n|---|--:|--:|--:|--:|")
    for kind, task in tasks.items():
        raw = task.to_bytes()
        messages, cpu = timed(sent, task, a.parts, int(a.rows))
        reported(f"{kind}: parts (rows drawn too)", messages, cpu)
        one, alone = timed(join, raw, messages)
        reported(f"{kind}: one stage", [one], alone)
        runs = [messages[i : i + a.group] for i in range(0, a.parts, a.group)]
        groups, cpu = timed(lambda runs=runs, raw=raw: [join(raw, run) for run in runs])
        reported(f"{kind}: groups of {a.group}", groups, cpu)
        two, cpu = timed(join, raw, groups)
        reported(f"{kind}: what the groups gave", [two], cpu)
        own, other = (joined(task, [message])[0].to_bytes() for message in (one, two))
        print(f"same bytes: {own == other}", flush=True)


if __name__ == "__main__":
    print(cal.__version__)
    main()
