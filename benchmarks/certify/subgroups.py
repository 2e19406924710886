"""Certified pockets: the corner that nobody named, what is cleared where nothing is wrong, and CPU seconds.

    OMP_NUM_THREADS=1 python benchmarks/certify/subgroups.py [--sets 20] [--traits 8,20] [--rows 60000]

Planted: a truth 7 points above the score where x2 and x3 are both over 0.8, 4 % of the people, among uniform traits;
and a score that is right for all. Prints a table of the subgroups evidence.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

import calibrant as cal
from calibrant.stats.subgroups.ranges import floor, together
from calibrant.views.boxes import tables_of

ALPHA = 0.05


def planted(seed: int, n: int, gap: float, attributes: int = 8) -> cal.Predictions:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, attributes))
    p = expit(-0.9 + 0.8 * (x[:, 0] - 0.5) + 0.6 * (x[:, 1] - 0.5) + 0.5 * rng.normal(size=n))
    rate = p + gap * ((x[:, 1] > 0.8) & (x[:, 2] > 0.8))
    return cal.predictions(rng.random(n) < rate, p, {f"x{j + 1}": x[:, j] for j in range(attributes)})


def certified(seed: int, n: int, gap: float, attributes: int, side: Any) -> tuple[float, Any, float]:
    """Return the end asked for, the settings, and CPU seconds, tables included."""
    data = planted(seed, n, gap, attributes)
    start = time.process_time()
    found = cal.certify.subgroups(data, side=side, limit=0.02, alpha=ALPHA)
    took = time.process_time() - start
    return found.interval.low if side == "lower" else found.interval.high, found.settings, took


def shared_ceiling(seed: int, n: int, attributes: int) -> float:
    """Return the ceiling of a right score, had its boxes to share alpha."""
    family = tables_of(planted(seed, n, 0.0, attributes), None, 2, 0).family(0.01)
    low, high = together(family, ALPHA)
    return float(np.maximum(high, -low)[family.rows >= 0.05 * n].max())


def equal_floor(seed: int, n: int, attributes: int) -> float:
    """Return the floor of the planted corner, had all boxes the same share of alpha."""
    family = tables_of(planted(seed, n, 0.07, attributes), None, 2, 0).family(0.01)
    return floor(replace(family, weight=np.full(family.size, 1.0 / family.size)), ALPHA)[0]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sets", type=int, default=20)
    asked.add_argument("--first", type=int, default=0)
    asked.add_argument("--rows", type=int, default=60_000)
    asked.add_argument("--traits", type=lambda text: [int(v) for v in text.split(",")], default=[8, 20])
    a = asked.parse_args()
    certified(0, 2000, 0.0, 3, "lower")  # compiles
    columns = (
        "attributes",
        "subgroups",
        "above 0",
        "above 2 points",
        "mean floor",
        "shares equal",
        "mean ceiling",
        "shared",
    )
    print(f"| {' | '.join(columns)} | CPU s |\n|{'--:|' * 9}")
    for attributes in a.attributes:
        seeds = range(a.first, a.first + a.sets)
        lows = [certified(s, a.rows, 0.07, attributes, "lower") for s in seeds]
        highs = [certified(s, a.rows, 0.0, attributes, "upper") for s in seeds]
        low, high = (np.array([v for v, _, _ in found]) for found in (lows, highs))
        shared = np.array([shared_ceiling(s, a.rows, attributes) for s in seeds])
        equal = np.array([equal_floor(s, a.rows, attributes) for s in seeds])
        cells = (
            f"{attributes}",
            f"{lows[0][1]['subgroups']:,}",
            f"{(low > 0).sum()} of {a.sets}",
            f"{(low > 0.02).sum()}",
            f"{100 * low.mean():.2f}",
            f"{100 * equal.mean():.2f} ({(equal > 0.02).sum()})",
            f"{100 * high.mean():.2f}",
            f"{100 * shared.mean():.2f}",
            f"{np.median([took for _, _, took in lows + highs]):.2f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
