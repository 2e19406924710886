"""What the plan of the subgroup test promises, and what the tests do: ``python benchmarks/detect/plan.py 200 [ROWS]``.

Simulates 200 data sets a design, or for the design of so many rows only, at the smallest error that is planned for a
power of 0.8. The models are fitted where the scan does not detect the error by itself.
Of 4,000 rows, and scores of mean 0.1, 0.79 were promised, and 0.82 of 200 data sets detected (nine CPU minutes).
"""

from __future__ import annotations

import sys

import numpy as np

import calibrant as cal
from calibrant.detect.rows_needed import SubgroupPlan, moved
from calibrant.detect.subgroup_tests import WEIGHT

DESIGNS = (  # rows, share, attributes, scores
    (1000, 0.2, 1, (1.0, 1.0)),
    (2000, 0.1, 2, (1.0, 1.0)),
    (4000, 0.2, 2, (2.0, 18.0)),
    (8000, 0.05, 2, (2.0, 8.0)),
)


def errors() -> None:
    """Print the smallest errors that rows detect."""
    shares = (0.02, 0.05, 0.1, 0.2, 0.5)
    print(f"| rows | {' | '.join(f'{100 * s:g}% of rows' for s in shares)} |\n|--:|{'--:|' * len(shares)}")
    for n in (1000, 5000, 20_000, 100_000):
        found = [cal.detect.smallest_error(n, share=s).value for s in shares]
        print(f"| {n:,} | {' | '.join(f'{100 * e:.1f}' for e in found)} |", flush=True)


def powers(sets: int, rows: int | None = None) -> None:
    """Print the power that is promised, that of the scan at its part of alpha, and that of the whole test."""
    print("\n| rows | share | attributes | scores | error | promised | the scan | the whole test |")
    print("|--:|--:|--:|---|--:|--:|--:|--:|")
    for n, share, order, beta in (d for d in DESIGNS if rows in (None, d[0])):
        planned = cal.detect.smallest_error(n, share=share, order=order, beta=beta)
        plan = SubgroupPlan.of(None, (share, order, beta), (0.8, 0.05), 0)
        scan, whole = 0, 0
        for seed in range(sets):
            rng = np.random.default_rng([seed, n, 11])
            made = plan._made(n, rng)
            edge = 1.0 - share ** (1.0 / order)
            inside = np.logical_and.reduce([made.covariates[f"x{j}"].to_numpy() > edge for j in range(1, order + 1)])
            y = rng.uniform(size=n) < moved(made.p, inside, planned.value)
            data = cal.predictions(y, made.p, made.covariates)
            detected = cal.detect.scan_test(data, seed=seed).p_value <= WEIGHT * 0.05
            scan += detected
            whole += detected or cal.detect.strong_calibration_test(data, seed=seed).p_value <= (1.0 - WEIGHT) * 0.05
        promised = "{simulated_power:.2f} ± {simulation_error:.2f}".format_map(planned.settings)
        shown = f"| {n:,} | {share:g} | {order} | beta{beta} | {planned.value:.3f} | {promised} |"
        print(f"{shown} {scan / sets:.2f} | {whole / sets:.2f} |", flush=True)


if __name__ == "__main__":
    sets, *rows = map(int, sys.argv[1:] or ["200"])
    if not rows:
        errors()
    powers(sets, *rows)
