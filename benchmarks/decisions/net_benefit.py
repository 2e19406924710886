"""How often bands of decision curves miss: ``python benchmarks/decisions/net_benefit.py [SETS]``."""

from __future__ import annotations

import sys
from pathlib import Path

from scipy.stats import binom

from calibrant.decisions import net_benefit

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from validity.test_decision_curve import ALLOWED, DESIGNS, times

BANDS = net_benefit.widths


def normal(_: object, found: float, *__: object) -> tuple[float, float]:
    """Return the quantile of normal numbers alone."""
    return found, found


def main(sets: int) -> None:
    """Print the table of docs/net-benefit.md."""
    print("| design | rows | units | net benefit | over all | by normal quantiles alone |\n|---|--:|--:|--:|--:|--:|")
    for name, (n, _, size, _) in DESIGNS.items():
        told = []
        for way in (BANDS, normal):
            net_benefit.widths = way  # type: ignore[assignment]
            found = times(name, sets)
            if way is BANDS:
                assert min(binom.sf(k - 1, sets, ALLOWED) for k in found) > 1e-6, f"{name}: the claim is refuted"
            told.append([f"{k / sets:.3f}" for k in found])
        (own, over), alone = told
        units = f"{n // size:,}" if size else "–"
        print(f"| {name} | {n:,} | {units} | {own} | {over} | {', '.join(alone)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
