"""Time and balance of weights to a named population: ``python benchmarks/certify/weights_to.py [ROWS]``.

Six columns, the population older and more often in the south, `ROWS` rows of each (50,000 by default). Prints a line of
a Markdown table for each method: CPU seconds, the largest difference in any share or mean that is left, in standard
deviations of the population, that of pairs of columns, which were not all asked for, and what the weights cost.
"""

from __future__ import annotations

import sys
import time
from itertools import combinations

import numpy as np

import calibrant as cal

ROWS = 50_000
SIX = ["band", "region", "sex", "visits", "weight", "smokes"]
METHODS: dict[str, dict[str, object]] = {
    "cells of two columns": {"columns": ["band", "region"], "method": "cells"},
    "rake": {"columns": SIX, "method": "rake"},
    "classifier, logistic": {"columns": SIX, "method": "classifier"},
    "classifier, trees": {"columns": SIX, "method": "classifier", "learner": "trees"},
}


def people(rng: np.random.Generator, n: int, gap: float) -> dict[str, np.ndarray]:
    """Return columns that go together: with `gap` people are older, and the old more often in the south."""
    age = np.clip(rng.normal(42 + 8 * gap, 14, n), 18, 90)
    south = rng.uniform(size=n) < 1 / (1 + np.exp(1 - gap - 0.03 * gap * (age - 42)))
    return {
        "band": np.array(["18-39", "40-59", "60 or over"])[np.searchsorted([40, 60], age)],
        "region": np.where(south, "south", rng.choice(["north", "east", "west"], n)),
        "sex": np.where(rng.uniform(size=n) < 0.5, "f", "m"),
        "visits": rng.poisson(2 + 0.02 * age).astype(float),
        "weight": rng.normal(70 + 0.1 * age, 12, n),
        "smokes": np.where(rng.uniform(size=n) < 0.3 - 0.002 * (age - 42), "yes", "no"),
    }


def pairs(rows: dict[str, np.ndarray], then: dict[str, np.ndarray], weight: np.ndarray) -> float:
    """Return the largest difference left in any share of two levels at once, in standard deviations."""
    worst = 0.0
    for a, b in combinations(("band", "region", "sex", "smokes"), 2):
        own, other = (np.char.add(np.char.add(x[a], "|"), x[b]) for x in (rows, then))
        for level in np.unique(other):
            share = float((other == level).mean())
            found = float(np.average(own == level, weights=weight))
            worst = max(worst, abs(found - share) / np.sqrt(share * (1 - share)))
    return worst


def main(n: int) -> None:
    rng = np.random.default_rng(0)
    here, there = people(rng, n, 0.0), people(rng, n, 1.0)
    score = rng.uniform(size=n)
    data, then = (cal.predictions(rng.uniform(size=n) < score, score, x) for x in (here, there))
    print("| method | CPU s | largest difference left | of pairs | effective share of rows |\n|---|---|---|---|---|")
    for name, how in METHODS.items():
        start = time.process_time()
        w = cal.weights.to(data, then, **how)  # type: ignore[arg-type]
        took = time.process_time() - start
        weight = np.asarray(w.weights)
        left = max(abs(b.difference_after) for b in w.balance)
        share = float(weight.sum() ** 2 / (weight**2).sum() / n)
        print(f"| {name} | {took:.2f} | {left:.3f} | {pairs(here, there, weight):.3f} | {share:.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
