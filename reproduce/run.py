"""Make tables and figures of the four papers again.

    python reproduce/run.py --list
    python reproduce/run.py all                         # --quick: everything, 15 CPU minutes on two cores
    python reproduce/run.py trustworthy/figure_3 --full --seed 1
    python reproduce/run.py strong                      # all of one paper
    python reproduce/run.py all --judge                 # claims anew, from the rows that are checked in: nothing is run

Each run writes its rows to reproduce/results and its chart to docs/img/reproduce; `python reproduce/page.py` then
writes the pages of the documentation from them. Linear algebra has one thread (OpenMP, OpenBLAS, MKL, PyTorch), so that
a network trained twice on one machine is the same to the last bit.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reproduce import experiment, sources


def chosen(wanted: str) -> list[str]:
    """Names that a name, a paper or "all" stands for."""
    known = experiment.names()
    found = [n for n in known if wanted in ("all", n, n.split("/")[0])]
    if not found:
        raise SystemExit(
            f"no experiment is called {wanted!r}: give 'all', a paper ({', '.join(experiment.PAPERS)}) "
            f"or one of {', '.join(known)}"
        )
    return found


def one(name: str, size: str, seed: int) -> int:
    """Run one experiment here and say what came out; return the exit status."""
    try:
        sources.require(experiment.find(name).needs)
        result = experiment.carry_out(name, size, seed)
    except sources.Missing as e:
        print(f"{name}: skipped: {e}", flush=True)
        return 4
    result.save()
    experiment.draw(name, result.rows)
    for words, c in result.claims.items():
        print(f"{name}: {c!s:<11} {words} ({c.sets} data sets{', ' if c.evidence else ''}{c.evidence})", flush=True)
    print(f"{name}: {len(result.rows)} rows, {result.cpu_seconds:g} CPU seconds", flush=True)
    return 0


def apart(name: str, size: str, seed: int) -> int:
    """Run one experiment in a process of its own, with one thread for linear algebra."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
    command = [sys.executable, __file__, name, f"--{size}", "--seed", str(seed), "--here"]
    return subprocess.run(command, env={**os.environ, **threads}, check=False).returncode


def main() -> int:
    """Run what is asked for; the status is 0 if all ran or was skipped for want of data, 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="all")
    size = parser.add_mutually_exclusive_group()
    for width in experiment.WIDTHS:
        size.add_argument(f"--{width}", dest="size", action="store_const", const=width, default="quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="experiments at a time")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--judge", action="store_true", help="claims anew from the rows that are checked in")
    parser.add_argument("--here", action="store_true", help="run in this process")
    a = parser.parse_args()
    found = chosen(a.name)
    if a.list:
        print("\n".join(f"{n}: {', '.join(experiment.find(n).items)}: {experiment.find(n).title}" for n in found))
        return 0
    if a.judge:
        for n in found:
            experiment.judged_anew(n).save()
        return 0
    if a.here:
        return max(one(n, a.size, a.seed) for n in found)
    start = time.perf_counter()
    with ThreadPoolExecutor(a.jobs) as pool:
        codes = list(pool.map(lambda n: apart(n, a.size, a.seed), found))
    failed = [n for n, code in zip(found, codes, strict=True) if code not in (0, 4)]
    print(
        f"{codes.count(0)} ran, {codes.count(4)} skipped, {len(failed)} failed {failed or ''}, "
        f"{time.perf_counter() - start:.0f} s"
    )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
