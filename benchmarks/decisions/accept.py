"""How often the accepted risk is broken, and the rows it takes: ``python benchmarks/decisions/accept.py [SETS]``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.stats import binom

import calibrant as cal

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from validity.accept_designs import DESIGNS, Design

ALPHA = 0.05
WAYS = ("accept", "sequence", "picked")


def one(design: Design, seed: int) -> dict[str, tuple[float, bool]]:
    """Return, for each way to choose a threshold, the share that it accepts and whether the risk is broken."""
    data = design.drawn(seed)
    found = cal.certify.accept(data, seed=seed, **design.asks())  # type: ignore[arg-type]
    out = {"accept": (found.low, design.broken(found))}
    if design.groups == 1 and not design.size and not design.weighted:
        curve = cal.diagnose.acceptance_curve(data, risk=design.risk, seed=seed)
        score = np.sort(data.p)[::-1]
        for way in WAYS[1:]:
            share = curve.settings["groups"]["everyone"][way]
            k = round(share * data.n)
            out[way] = (share, bool(k) and design.rate(float(score[k - 1])) > design.risk)
    return out


def main(sets: int) -> None:
    """Print the two tables."""
    print(f"{sets} data sets a design; broken: share of them in which the accepted risk is above the one asked for\n")
    print("| design | accepted, broken | fixed sequence | picked by Clopper-Pearson |\n|---|---|---|---|")
    for name, design in DESIGNS.items():
        found = [one(design, seed) for seed in range(sets)]
        reported = []
        for way in WAYS:
            if way not in found[0]:
                reported.append("–")
                continue
            share, broken = (np.mean([f[way][i] for f in found]) for i in (0, 1))
            reported.append(f"{100 * share:.1f} %, {broken:.3f}")
        worst = binom.sf(sum(f["accept"][1] for f in found) - 1, sets, ALPHA)
        assert worst > 1e-6, f"{name}: the claim is refuted"
        print(f"| {name} | {' | '.join(reported)} |", flush=True)
    print("\n| risk, rate | power | fixed beforehand | accept | ratio |\n|---|--:|--:|--:|--:|")
    for risk, error in ((0.01, 0.005), (0.02, 0.01), (0.05, 0.02), (0.01, 0.0)):
        for power in (0.5, 0.8, 0.95):
            plan = cal.certify.rows_to_accept(risk=risk, error=error, power=power)
            fixed = plan.settings["threshold_fixed_beforehand"]
            print(f"| {risk:g}, {error:g} | {power:g} | {fixed:,} | {plan.value:,.0f} | {plan.value / fixed:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
