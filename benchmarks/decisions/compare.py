"""Power of `calibrant.compare` beside the paired t-test: ``python benchmarks/decisions/compare.py [SETS]``."""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import ttest_1samp

import calibrant as cal

MARGIN, ALPHA = 0.005, 0.05
WAYS = ("population", "rows", "paired t")


def one(n: int, moved: float, seed: int) -> tuple[bool, ...]:
    """Tell whether each way calls a model that is right no worse than one that is `moved` too high."""
    rng = np.random.default_rng([seed, 21])
    eta = 0.1 + 0.6 * rng.uniform(size=n) ** 2
    y = (rng.uniform(size=n) < eta).astype(int)
    models = {"old": eta + moved, "new": eta}
    found = [cal.compare(models, y, margin=MARGIN, target=t, seed=seed) for t in WAYS[:2]]
    d = (models["new"] - y) ** 2 - (models["old"] - y) ** 2
    high = float(ttest_1samp(d, 0.0).confidence_interval(1.0 - ALPHA).high)
    return (*(f.verdict in ("better", "no worse") for f in found), high <= MARGIN)


def main(sets: int) -> None:
    """Print the table."""
    print(f"{sets} data sets; share called better or no worse by {MARGIN:g}\n")
    print(f"| rows | old too high by | {' | '.join(WAYS)} |\n|--:|--:|--:|--:|--:|")
    for n in (500, 1000, 2000, 5000):
        for moved in (0.01, 0.05, 0.1):
            shares = np.mean([one(n, moved, seed) for seed in range(sets)], axis=0)
            print(f"| {n:,} | {moved:g} | {' | '.join(f'{v:.2f}' for v in shares)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
