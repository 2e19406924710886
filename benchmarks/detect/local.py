"""Level, power and speed of the local calibration test; prints Markdown tables.

    python benchmarks/detect/local.py level [--runs 2000]
    python benchmarks/detect/local.py power [--runs 200]
    python benchmarks/detect/local.py speed [--quick]

Power and level are shares of runs with p <= 0.05; beside the default test stand the paper's Algorithm 1 and its
authors' permutation (kernels of width 5, as in their simulations), on the same data. Times are CPU seconds of the
process.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal

ALPHA = 0.05
PUBLISHED = {"score_width": 5.0, "covariate_gamma": 1 / 25, "draws": 199}


def logistic(z: Any) -> Any:
    """Inverse of the logit."""
    return 1.0 / (1.0 + np.exp(-z))


def normal(rng: Any, n: int, d: int) -> Any:
    """Independent standard normal covariates."""
    return rng.normal(size=(n, d))


def figure_3(rng: Any, n: int, d: int) -> tuple[Any, Any, Any]:
    """The paper's Figure 3: the model leaves the last covariate out."""
    x = normal(rng, n, d)
    return logistic(x[:, :-1].sum(axis=1)), x, logistic(x.sum(axis=1))


def shifted(rng: Any, n: int, d: int = 10, by: float = 0.06) -> tuple[Any, Any, Any]:
    """Everyone is off by the same."""
    x = normal(rng, n, d)
    p = logistic(x[:, 0] + 0.5 * x[:, 1])
    return p, x, np.clip(p + by, 0, 1)


def tail(rng: Any, n: int, d: int = 10, by: float = 0.2) -> tuple[Any, Any, Any]:
    """A tenth of the rows, with the largest values of one covariate, is off."""
    x = normal(rng, n, d)
    p = logistic(0.8 * x[:, 0] + 0.5 * x[:, 1])
    return p, x, np.clip(p + by * (x[:, 2] > 1.2816), 0, 1)


def calibrated(scores: Callable[[Any, Any], Any], d: int) -> Callable[[Any, int], tuple[Any, Any, Any]]:
    """A model that is right, by its scores given covariates."""

    def draw(rng: Any, n: int) -> tuple[Any, Any, Any]:
        x = normal(rng, n, d)
        p = scores(rng, x)
        return p, x, p

    return draw


def clumped(rng: Any, n: int) -> tuple[Any, Any, Any]:
    """Few heavy clumps of covariates, in which the scores are near one half and elsewhere extreme."""
    x = rng.choice([-3.0, 0.0, 0.2, 8.0], (n, 3), p=[0.1, 0.4, 0.4, 0.1]) + 0.01 * normal(rng, n, 3)
    p = np.where(x[:, 0] > 4, 0.5, 0.03 + 0.02 * (x[:, 1] > 0.1))
    return p, x, p


def discrete(rng: Any, n: int) -> tuple[Any, Any, Any]:
    """Few distinct rows."""
    x = rng.integers(0, 3, (n, 3)).astype(float)
    p = 0.1 + 0.2 * x[:, 0]
    return p, x, p


LEVEL: dict[str, tuple[Callable[[Any, int], tuple[Any, Any, Any]], int]] = {
    "one score, d=2, n=100": (calibrated(lambda _, x: np.full(len(x), 0.3), 2), 100),
    "uniform, d=1, n=300": (calibrated(lambda rng, x: rng.random(len(x)), 1), 300),
    "Beta(.5, .5), d=5, n=500": (calibrated(lambda rng, x: rng.beta(0.5, 0.5, len(x)), 5), 500),
    "1 % positives, x with p, d=3, n=1000": (calibrated(lambda _, x: 0.01 * np.exp(x[:, 0] - 0.5).clip(0, 9), 3), 1000),
    "paper's null, d=10, n=500": (calibrated(lambda _, x: logistic(x.sum(axis=1)), 10), 500),
    "clumped, n=300": (clumped, 300),
    "discrete, n=400": (discrete, 400),
    "paper's null, d=50, n=200": (calibrated(lambda _, x: logistic(x.sum(axis=1)), 50), 200),
    "logistic, d=4, n=5000": (calibrated(lambda _, x: logistic(x[:, 0] - 1), 4), 5000),
}
POWER: dict[str, tuple[Callable[[Any, int], tuple[Any, Any, Any]], int, float]] = {
    "Figure 3, d=10, n=500": (lambda rng, n: figure_3(rng, n, 10), 500, 0.97),
    "Figure 3, d=50, n=500": (lambda rng, n: figure_3(rng, n, 50), 500, 0.50),
    "Figure 3, d=6, n=200": (lambda rng, n: figure_3(rng, n, 6), 200, 0.85),
    "all off by 0.06, d=10, n=500": (shifted, 500, 0.65),
    "a tenth off by 0.2, d=10, n=500": (tail, 500, 0.28),
    "a tenth off by 0.2, d=5, n=500": (lambda rng, n: tail(rng, n, 5), 500, 0.28),
    "a tenth off by 0.2, d=10, n=2000": (tail, 2000, 0.85),
}


def drawn(design: Callable[[Any, int], tuple[Any, Any, Any]], n: int, run: int) -> Any:
    """Rows of one run."""
    rng = np.random.default_rng([0xBE7C4, n, run])
    p, x, eta = design(rng, n)
    return cal.predictions(rng.random(n) < eta, p, {f"x{j}": x[:, j] for j in range(x.shape[1])})


def level(runs: int) -> None:
    """Print how often a right model is rejected."""
    print("| design | overall | global | local | a variable |\n|---|---|---|---|---|")
    for name, (design, n) in LEVEL.items():
        found = [cal.detect.local_calibration_test(drawn(design, n, r), draws=199, seed=r) for r in range(runs)]
        least = [min(o.parts["variable_adjusted_p"], default=1.0) for o in found]
        each = [
            [o.p_value for o in found],
            [o.parts["p_global"] for o in found],
            [o.parts["p_local"] for o in found],
            least,
        ]
        print(f"| {name} | " + " | ".join(f"{np.mean(np.array(p) <= ALPHA):.4f}" for p in each) + " |", flush=True)


def power(runs: int) -> None:
    """Print how often a wrong model is rejected, beside the published procedures."""
    print("| design | default | target | Algorithm 1 | authors' permutation |\n|---|---|---|---|---|")
    test = cal.detect.local_calibration_test
    for name, (design, n, target) in POWER.items():
        hits = np.zeros(3)
        for run in range(runs):
            data = drawn(design, n, run)
            ours = test(data, seed=run)
            theirs = [
                cal.papers.published_local_test(data, seed=run, null=null, **PUBLISHED)
                for null in ("resampled", "permuted")
            ]
            hits += [o.p_value <= ALPHA for o in (ours, *theirs)]
        share = hits / runs
        print(f"| {name} | {share[0]:.3f} | {target} | {share[1]:.3f} | {share[2]:.3f} |", flush=True)


def timed(call: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def speed(quick: bool) -> None:
    """Print CPU seconds and peak memory; the last line streams ten million rows from a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    cal.detect.local_calibration_test(drawn(shifted, 3000, 0))
    print("| rows | null | CPU seconds | peak memory so far, MB |\n|---|---|---|---|")
    sizes = [(10_000, 999), (100_000, 999), (200_000, 999), (300_000, 0), (1_000_000, 0)]
    for n, draws in sizes[: 2 if quick else None]:
        data = drawn(shifted, n, 1)
        law = "simulated, 999 draws" if draws else "Gaussian"
        spent = timed(lambda data=data: cal.detect.local_calibration_test(data))
        print(f"| {n:,} | {law} | {spent:.2f} | {peak():.0f} |", flush=True)
        del data
    with tempfile.TemporaryDirectory() as room:
        n, step = (100_000 if quick else 10_000_000), 500_000
        path = Path(room) / "rows.parquet"
        writer = None
        for start in range(0, n, step):
            rng = np.random.default_rng([3, start])
            p, x, eta = shifted(rng, min(step, n))
            table = pa.table(
                {"y": (rng.random(len(p)) < eta).astype(np.int8), "p": p, **{f"x{j}": x[:, j] for j in range(10)}}
            )
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        writer.close()
        del p, x, eta, table

        def stream() -> None:
            whole = cal.sketch(path, label="y", score="p", variables="*", tests=True)
            cal.detect.local_calibration_test(whole)

        print(f"| {n:,} streamed | Gaussian | {timed(stream):.2f} | {peak():.0f} |", flush=True)


def peak() -> float:
    """Largest memory of the process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["level", "power", "speed"])
    parser.add_argument("--runs", type=int)
    parser.add_argument("--quick", action="store_true")
    requested = parser.parse_args()
    if requested.what == "level":
        level(requested.runs or 2000)
    elif requested.what == "power":
        power(requested.runs or 200)
    else:
        speed(requested.quick)
