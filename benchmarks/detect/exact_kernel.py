"""CPU time of the exact kernel test beside the published algorithm, in one run; prints a Markdown table.

    OPENBLAS_NUM_THREADS=1 python benchmarks/detect/exact_kernel.py [--large]

d = 10. Ours: `exact_local_test` with 999 draws, whole, from rows to result. Algorithm 1: lines 6 to 10 as they are
written, in float64 NumPy: both kernel matrices, their product with the residuals, sum and diagonal, in every one of
1000 bootstraps. Kernels kept: the same, but the two matrices are found once. Loop: one kernel matrix, then one `K @ e`
a bootstrap. Each is timed on a few bootstraps and extrapolated linearly, as the table says. `--large` adds our test
alone at 20,000 and 50,000 rows, with its memory.
"""

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.detect.local_calibration_test import exact_local_test

BOOTSTRAPS, DRAWS, D = 1000, 999, 10


def seconds(call: Callable[[], Any], calls: int = 3) -> float:
    """CPU seconds of the fastest of several calls, the first one left out if there are several."""
    times = []
    for _ in range(calls):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times[1:] or times)


def rows(n: int) -> tuple[Any, Any, Any]:
    """The paper's simulation, calibrated: ten normal covariates, scores a logistic function of their sum."""
    rng = np.random.default_rng([n, 2])
    x = rng.normal(size=(n, D))
    p = 1.0 / (1.0 + np.exp(-x.sum(axis=1) / np.sqrt(D)))
    return x, p, (rng.random(n) < p).astype(np.int64)


def squares(a: Any) -> Any:
    """Squared distances, as scikit-learn's `rbf_kernel` finds them."""
    own = (a * a).sum(axis=1)
    return np.maximum(own[:, None] + own - 2.0 * (a @ a.T), 0.0)


def bootstrap(e: Any, p: Any, x: Any, rng: np.random.Generator) -> float:
    """One turn of Algorithm 1, lines 7 to 9."""
    n = len(e)
    eb = rng.choice(e, n)
    kb = eb[:, None] * np.exp(-squares(p[:, None]) / 25.0) * np.exp(-squares(x) / 25.0) * eb
    return float((kb.sum() - np.diag(kb).sum()) / (n * (n - 1)))


def kept(e: Any, p: Any, x: Any, rng: np.random.Generator, turns: int) -> float:
    """CPU seconds of Algorithm 1 with both kernel matrices held."""
    n, start = len(e), time.process_time()
    k, other = np.exp(-squares(p[:, None]) / 25.0), np.exp(-squares(x) / 25.0)
    built = time.process_time() - start
    start = time.process_time()
    for _ in range(turns):
        eb = rng.choice(e, n)
        kb = eb[:, None] * k * other * eb
        float((kb.sum() - np.diag(kb).sum()) / (n * (n - 1)))
    return built + (time.process_time() - start) / turns * BOOTSTRAPS


def loop(e: Any, p: Any, x: Any, rng: np.random.Generator, turns: int) -> float:
    """CPU seconds of one kernel matrix and a product a bootstrap."""
    start = time.process_time()
    k = np.exp(-squares(p[:, None]) / 25.0) * np.exp(-squares(x) / 25.0)
    np.fill_diagonal(k, 0.0)
    built = time.process_time() - start
    start = time.process_time()
    for _ in range(turns):
        eb = rng.choice(e, len(e))
        float(eb @ (k @ eb))
    return built + (time.process_time() - start) / turns * BOOTSTRAPS


def peak() -> float:
    """CPU seconds of a sgemm multiplication and addition, times 1e9."""
    a = np.random.default_rng(0).random((2048, 2048), dtype=np.float32)
    return seconds(lambda: a @ a, 4) / 2048**3 * 1e9


def compared(n: int, turns: int, sgemm: float) -> str:
    """One row of the table."""
    x, p, y = rows(n)
    e, rng = y - p, np.random.default_rng(1)
    data = cal.predictions(y, p, {f"x{j}": x[:, j] for j in range(D)})
    ours = seconds(lambda: exact_local_test(data, draws=DRAWS), 4)
    start = time.process_time()
    for _ in range(turns):
        bootstrap(e, p, x, rng)
    literal = (time.process_time() - start) / turns * BOOTSTRAPS
    held, looped = kept(e, p, x, rng, turns), loop(e, p, x, rng, 20)
    share = n * n / 2 * DRAWS * 1e-9 * sgemm / ours
    return (
        f"| {n:,} | {ours:.3f} | {literal:.1f} | {literal / ours:.0f}x | {held:.1f} | {held / ours:.0f}x "
        f"| {looped:.2f} | {looped / ours:.0f}x | {share:.2f} | {turns}, {turns}, 20 |"
    )


def large(n: int) -> str:
    """Our test alone, and the most memory NumPy held beyond the data."""
    x, p, y = rows(n)
    data = cal.predictions(y, p, {f"x{j}": x[:, j] for j in range(D)})
    tracemalloc.start()
    cpu = seconds(lambda: exact_local_test(data, draws=DRAWS), 1)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"| {n:,} | {cpu:.1f} | {held / 2**20:,.0f} MB | {process:,.0f} MB | {4 * n * n / 2**20:,.0f} MB |"


def main() -> None:
    """Print the tables."""
    sgemm = peak()
    print(
        "| rows | exact test, 999 draws, CPU-s | Algorithm 1, 1000 bootstraps, CPU-s | ratio | kernels kept | ratio "
        "| `K @ e` loop | ratio | share of sgemm peak | bootstraps timed |\n|" + "---|" * 10
    )
    for n, turns in ((1000, 40), (5000, 3), (10_000, 1)):
        print(compared(n, turns, sgemm), flush=True)
    if "--large" in sys.argv:
        print("\n| rows | CPU-s | held | process | an n x n matrix of float32 |\n|---|---|---|---|---|")
        for n in (20_000, 50_000):
            print(large(n), flush=True)


if __name__ == "__main__":
    main()
