"""Coverage of the intervals of `inferred_mean` and `inferred_gap`, and their cost: the numbers of docs/measures.md.

    python benchmarks/measure/inferred.py                  # 400 samples of each design, two minutes of one processor
    python benchmarks/measure/inferred.py --samples 1000
    python benchmarks/measure/inferred.py --cost           # seconds for 280,000 rows

Prints, for each quantity and size, the lowest and the highest share of samples whose 95 % interval held the truth, over
the mean of a number, the share of a group of 12 % among the cases and the gap of that group. The truth is that of four
million draws. Samples without an interval (fewer than two cases) are left out and counted.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.errors import NotComputable
from calibrant.measure.inferred import compared, described, inferring

RARE = ("rare", "rare, twice too high", "rare, scores of another spread")  # about four cases in 200 rows
DESIGNS = ("calibrated", "blind to x", "1.3 times too high", *RARE, "heavy tails")
QUANTITIES = ("bias", "observed", "inferred")
NAMES = ("mean", "share", "gap")
SIZES = (200, 2_000)
TRUTH = 4_000_000


def law(design: str, n: int, seed: int) -> tuple[Any, ...]:
    """Draw x, group, probability, true rate and what outcomes are drawn with."""
    rng = np.random.default_rng([seed, n, DESIGNS.index(design), 0xC07E])
    x = rng.standard_t(3, n) if design == "heavy tails" else rng.uniform(-1.7, 1.7, n)  # t(3): no fourth moment
    group, z = rng.uniform(size=n) < 0.12, rng.normal(size=n)
    known, by_variable = 0.7 * z - 0.7 * group, 0.6 * x
    eta = known + by_variable - (4.4 if design in RARE else 0.3)
    rate = _expit(eta)
    p = {
        "blind to x": _expit(known - 0.3),
        "1.3 times too high": np.minimum(1.3 * rate, 1.0),
        "rare, twice too high": np.minimum(2.0 * rate, 1.0),
        "rare, scores of another spread": _expit(2.0 * eta + 4.4),
    }.get(design, rate)
    return x, group, p, rate, rng


def _expit(eta: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-eta))


def truths(design: str) -> dict[tuple[str, str], float]:
    """Return the three quantities of what is described, from many draws."""
    x, group, p, rate, _ = law(design, TRUTH, 1 << 40)
    out: dict[tuple[str, str], float] = {}
    for quantity, v in (("inferred", p), ("observed", rate)):
        out["mean", quantity] = float(v @ x / v.sum())
        out["share", quantity] = float(v[group].sum() / v.sum())
        out["gap", quantity] = float(v[group].mean() - v[~group].mean())
    return out | {(k, "bias"): out[k, "inferred"] - out[k, "observed"] for k in NAMES}


def coverage(design: str, n: int, samples: int, truth: Any) -> dict[tuple[str, str], tuple[float, int]]:
    """Return the share of intervals that held the truth, and how many samples had none, by name and quantity."""
    held: dict[tuple[str, str], list[bool]] = {k: [] for k in truth}
    for seed in range(samples):
        x, group, p, rate, rng = law(design, n, seed)
        data = cal.predictions(rng.uniform(size=n) < rate, p, {"x": x, "group": group})
        by_variable, among = inferring(data, "x"), inferring(data, "group")
        for name, quantity in truth:
            try:
                ends = _interval(by_variable, among, name, quantity)
            except NotComputable:
                continue
            held[name, quantity].append(ends.low <= truth[name, quantity] <= ends.high)
    return {k: (float(np.mean(v)), samples - len(v)) for k, v in held.items()}


def _interval(by_variable: Any, among: Any, name: str, quantity: Any) -> Any:
    if name == "mean":
        return described(by_variable, None, quantity, 0.05).interval
    if name == "share":
        return described(among, True, quantity, 0.05).interval
    return compared(among, True, None, quantity, 0.05).interval


def table(samples: int) -> None:
    """Print the lowest and highest coverage of each quantity and size, and every one below 0.93."""
    found: dict[tuple[int, str, str, str], tuple[float, int]] = {}
    for design in DESIGNS:
        truth = truths(design)
        for n in SIZES:
            for (name, quantity), v in coverage(design, n, samples, truth).items():
                found[n, quantity, name, design] = v
    print("| quantity | rows | lowest | highest | where lowest |\n|---|---|---|---|---|")
    for quantity in QUANTITIES:
        for n in SIZES:
            here = {k: v for k, v in found.items() if k[:2] == (n, quantity)}
            least = min(here, key=lambda k: here[k][0])
            most = max(v[0] for v in here.values())
            print(f"| {quantity} | {n:,} | {here[least][0]:.3f} | {most:.3f} | {least[3]}, {least[2]} |")
    for (n, quantity, name, design), (share, none) in found.items():
        if share < 0.93:
            print(f"{design}, {n:,} rows, {name}, {quantity}: {share:.3f}")
        if none and quantity == "bias":
            print(f"{design}, {n:,} rows, {name}: {none} of {samples} without an interval")


def cost(n: int = 280_000) -> None:
    """Print the least time of five calls."""
    x, group, p, rate, rng = law("calibrated", n, 0)
    data = cal.predictions(rng.uniform(size=n) < rate, p, {"x": x, "group": group})
    calls = {
        "inferred_mean": lambda: cal.measure.inferred_mean(data, "x"),
        "inferred_gap": lambda: cal.measure.inferred_gap(data, "group", True),
    }
    for name, call in calls.items():
        spent = []
        for _ in range(5):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
        print(f"{name}: {min(spent):.3f} s for {n:,} rows")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--cost", action="store_true")
    requested = parser.parse_args()
    if requested.cost:
        cost()
    else:
        table(requested.samples)
