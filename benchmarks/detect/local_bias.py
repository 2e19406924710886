"""CPU time and power of the bias map; prints Markdown tables.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/detect/local_bias.py [--quick]

Times are CPU seconds of the process, all in one run: the map of one variable (101 points, 999 simulated data sets),
the same by the literal loop (a kernel row a point, a product a simulated data set), and the bias at every row.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.report.by_variable import regions

QUICK = "--quick" in sys.argv
RUNS = 50 if QUICK else 400


def shifted(n: int, replicate: int, by: float = 0.2) -> Any:
    """Five covariates; more happens than the model says where the first exceeds one."""
    rng = np.random.default_rng([0xBE, n, replicate])
    x = rng.normal(size=(n, 5))
    p = 0.1 + 0.7 / (1 + np.exp(-x.sum(1) / 2))
    y = rng.random(n) < p + by * (x[:, 0] > 1)
    return cal.predictions(y, p, {f"x{j + 1}": x[:, j] for j in range(5)})


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def literal(data: Any, points: int = 101, draws: int = 999) -> Any:
    """Eq. 7 point by point, for the outcomes and for each simulated data set."""
    x, rng = data.covariates.column("x1").to_numpy(), np.random.default_rng(1)
    grid = np.linspace(*np.quantile(x, [0.01, 0.99]), points)
    out = np.empty((draws + 1, points))
    for b in range(draws + 1):
        e = data.y - data.p if not b else (rng.random(data.n) < data.p) - data.p
        for g, t in enumerate(grid):
            k = np.exp(-0.5 * ((x - t) / 0.25) ** 2)
            out[b, g] = k @ e / k.sum()
    return out


def times() -> None:
    cal.diagnose.local_bias(shifted(200, 0), "x1")
    print("| rows | one variable | literal loop | ratio | pair 21 x 21 | at rows |\n|---|---|---|---|---|---|")
    for n in (1000, 5000, 50_000, 1_000_000):
        data = shifted(n, 0)
        one = min(seconds(lambda d=data: cal.diagnose.local_bias(d, "x1")) for _ in range(3 if n < 1e5 else 1))
        slow = seconds(lambda d=data: literal(d, draws=19)) * 50 if n <= 5000 else float("nan")
        pair = seconds(lambda d=data: cal.diagnose.local_bias(d, ("x1", "x2"))) if n < 1e6 or not QUICK else np.nan
        rows = (
            seconds(lambda d=data: cal.diagnose.local_bias(d, "x1", at="rows", by_score=True)) if n <= 5000 else np.nan
        )
        if n == 50_000 and not QUICK:
            rows = seconds(lambda d=data: cal.diagnose.local_bias(d, "x1", at="rows", by_score=True))
        print(f"| {n:,} | {one:.3f} | {slow:.1f} | {slow / one:.0f} | {pair:.2f} | {rows:.2f} |", flush=True)


def power() -> None:
    print("\n| rows | shift | found | false point over a bandwidth away | a region apart | any point below 1 |")
    print("|---|---|---|---|---|---|")
    for n, by in ((1000, 0.1), (1000, 0.2), (2000, 0.1), (2000, 0.2)):
        out = []
        for r in range(RUNS):
            c = cal.diagnose.local_bias(shifted(n, r, by), "x1", draws=499, seed=r)
            x, h = np.array(c.columns["x"]), c.settings["bandwidths"]["everyone"]["x1"]
            off = np.array(c.columns["p_adjusted"]) <= 0.05
            apart = any(q["span"][0]["high"] < 1 for q in regions(c))
            out.append((off[x > 1].any(), off[x < 1 - h].any(), apart, off[x < 1].any()))
        found = " | ".join(f"{v:.3f}" for v in np.mean(out, axis=0))
        print(f"| {n:,} | {by} | {found} |", flush=True)


if __name__ == "__main__":
    times()
    power()
