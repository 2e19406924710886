"""CPU time of errors along a variable: cells, estimate, p-value, certificate, and a family of 100 variables.

Run ``python benchmarks/variables/vece.py [--rows 1000000] [--variables 100]``; one thread, CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.diagnose.rank_variables import certified_ranges
from calibrant.views.by_variable import strata_of


def timed(name: str, run: Callable[[], Any]) -> Any:
    """Print the CPU time of a second call."""
    run()
    start = time.process_time()
    found = run()
    print(f"| {name} | {time.process_time() - start:.3f} |", flush=True)
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--variables", type=int, default=100)
    asked = parser.parse_args()
    rng = np.random.default_rng([0xBE9C, asked.rows])
    n = asked.rows
    p = rng.uniform(size=n)
    table = {f"v{i}": rng.normal(size=n) if i % 2 else rng.integers(0, 90, n) for i in range(asked.variables)}
    table["level"] = np.array(["a", "b", "c", "d"])[rng.integers(0, 4, n)]
    data = cal.predictions(rng.uniform(size=n) < p, p, table)
    print(f"{n:,} rows\n\n| what | CPU seconds |\n|---|---:|")
    timed("cells along a continuous number", lambda: strata_of(data, "v1"))
    timed("cells along a whole number", lambda: strata_of(data, "v0"))
    timed("cells along a category", lambda: strata_of(data, "level"))
    timed("measure.vece, 99 draws", lambda: cal.measure.vece(data, "v1", draws=99))
    timed("measure.vece, 999 draws", lambda: cal.measure.vece(data, "v1"))
    timed("certify.variable", lambda: cal.certify.variable(data, "v1"))
    timed("certify.variable, beyond the shift", lambda: cal.certify.variable(data, "v1", beyond_gap=True))
    names = [f"v{i}" for i in range(asked.variables)]
    start = time.process_time()
    for name in names:
        strata_of(data, name)
    print(f"| cells along {len(names)} variables | {time.process_time() - start:.3f} |")
    start = time.process_time()
    certified_ranges(data, names, bins=10, view="probability", alpha=0.05, seed=0)
    took = time.process_time() - start
    print(f"| {len(names)} certificates that share alpha, as they are and beyond the shift | {took:.3f} |")
    kept = cal.sketch(data, variables=["v0", "v1", "level"])
    timed("measure.vece from a sketch", lambda: cal.measure.vece(kept, "v1"))
    timed("certify.variable from a sketch", lambda: cal.certify.variable(kept, "v1"))


if __name__ == "__main__":
    main()
