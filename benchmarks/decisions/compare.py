"""Power of `calibrant.compare` beside the paired t-test and DeLong: ``python benchmarks/decisions/compare.py 200``.

``python benchmarks/decisions/compare.py 1000 wrong``: how often a verdict is wrong, on designs chosen to hurt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import binom, norm, ttest_1samp

import calibrant as cal
from calibrant.stats.measures import placements

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from validity.compare_designs import DESIGNS, Design
from validity.compare_designs import MARGIN as EDGE

MARGIN, ALPHA = 0.005, 0.05
THRESHOLD = 0.3  # of the net benefit
WAYS = ("population", "rows", "paired t")
AREA_MARGIN = 0.01
Made = tuple[dict[str, np.ndarray], np.ndarray]


def moved(n: int, by: float, seed: int) -> Made:
    """Return a model that says too much, one that is right, and outcomes."""
    rng = np.random.default_rng([seed, 21])
    eta = 0.1 + 0.6 * rng.uniform(size=n) ** 2
    return {"old": eta + by, "new": eta}, (rng.uniform(size=n) < eta).astype(int)


def noisy(n: int, gap: float, seed: int) -> Made:
    """Return a model with noise in its score, one with a third of it, and outcomes that are rarer by `gap`."""
    rng = np.random.default_rng([seed, 22])
    x = 1.2 * rng.normal(size=n) - gap
    old, new = (expit(x + s * rng.normal(size=n)) for s in (0.3, 0.1))
    return {"old": old, "new": new}, (rng.uniform(size=n) < expit(x)).astype(int)


def called(made: Made, target: str, measure: str, margin: float, seed: int) -> bool:
    """Tell whether the new model is certified better or no worse."""
    found = cal.compare(*made, measure=measure, margin=margin, target=target, seed=seed)
    return found.verdict in ("better", "no worse", "worse within margin")


def of_losses(made: Made, seed: int) -> tuple[bool, ...]:
    """Tell it by each way, of the Brier score."""
    models, y = made
    d = (models["new"] - y) ** 2 - (models["old"] - y) ** 2
    high = float(ttest_1samp(d, 0.0).confidence_interval(1.0 - ALPHA).high)
    return (*(called(made, t, "brier", MARGIN, seed) for t in WAYS[:2]), high <= MARGIN)


def of_areas(made: Made, seed: int) -> tuple[bool, ...]:
    """Tell it of the AUROC, and by DeLong's interval."""
    models, y = made
    (old, one), (new, two) = (placements(p, y == 1, np.ones(len(y))) for p in models.values())
    error = np.sqrt(sum(np.var((two - one)[rows], ddof=1) / rows.sum() for rows in (y == 1, y == 0)))
    high = old - new + float(norm.ppf(1.0 - ALPHA / 2)) * error
    return called(made, "population", "auroc", AREA_MARGIN, seed), bool(high <= AREA_MARGIN)


def share(found: Callable[[int], tuple[bool, ...]], sets: int) -> str:
    """Return in what share of data sets each way succeeds, as cells of a table."""
    return " | ".join(f"{v:.2f}" for v in np.mean([found(seed) for seed in range(sets)], axis=0))


def of_decisions(made: Made, seed: int) -> tuple[bool, ...]:
    """Tell it of the net benefit at a threshold, which may lose half a true positive in a hundred rows."""
    models, y = made
    how = {"measure": "net_benefit", "threshold": THRESHOLD, "margin": MARGIN, "seed": seed}
    found = [cal.compare(*made, target=t, **how) for t in WAYS[:2]]
    worth = np.where(y == 1, 1.0, -THRESHOLD / (1.0 - THRESHOLD))
    d = worth * ((models["old"] >= THRESHOLD).astype(float) - (models["new"] >= THRESHOLD))
    high = float(ttest_1samp(d, 0.0).confidence_interval(1.0 - ALPHA).high)
    return (*(f.verdict in ("better", "no worse", "worse within margin") for f in found), high <= MARGIN)


def main(sets: int) -> None:
    """Print the tables."""
    print(f"{sets} data sets; share called better or no worse by {MARGIN:g} (Brier) and by {AREA_MARGIN:g} (AUROC)\n")
    by_ways((500, 1000, 2000, 5000), of_losses, sets)
    print("\n| rows | cases | certified | DeLong |\n|--:|--:|--:|--:|")
    for n, (events, rarer) in product((500, 2000, 5000, 10_000, 20_000), (("6 %", 3.5), ("27 %", 1.3), ("50 %", 0.0))):
        print(f"| {n:,} | {events} | {share(lambda s, n=n, a=rarer: of_areas(noisy(n, a, s), s), sets)} |", flush=True)
    print(f"\nNet benefit at {THRESHOLD:g}, by {MARGIN:g}\n")
    by_ways((1000, 2000, 5000, 20_000), of_decisions, sets)


def by_ways(rows: Sequence[int], ways: Callable[[Made, int], tuple[bool, ...]], sets: int) -> None:
    """Print how often each way calls a model that is right better or no worse than one that is too high."""
    print(f"| rows | old too high by | {' | '.join(WAYS)} |\n|--:|--:|--:|--:|--:|")
    for n, by in product(rows, (0.01, 0.05, 0.1)):
        print(f"| {n:,} | {by:g} | {share(lambda s, n=n, by=by: ways(moved(n, by, s), s), sets)} |", flush=True)


def tested(design: Design, seed: int, margin: float) -> bool:
    """Tell whether a paired t-test of the Brier scores says, wrongly, that the new model is no worse."""
    models, y, _ = design.drawn(seed)
    d = (models["new"] - y) ** 2 - (models["old"] - y) ** 2
    high = float(ttest_1samp(d, 0.0).confidence_interval(1.0 - ALPHA).high)
    return high <= margin < design.truth


def wrong(sets: int) -> None:
    """Print how often any verdict is wrong, or any range misses, and how often a model is called no worse that is."""
    print("| design | worse by | margin | any verdict or range | no worse | no worse by paired t |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, design in DESIGNS.items():
        margin = min(EDGE, max(design.truth, 0.0)) * (1.0 - 1e-8)
        any_ = sum(design.wrong(seed, margin) for seed in range(sets))
        assert binom.sf(any_ - 1, sets, ALPHA) > 1e-6, f"{name}: the claim is refuted"
        hurt = design.truth > margin
        calm = (
            [
                design.error_shown(seed, margin).verdict in ("better", "no worse", "worse within margin")
                for seed in range(sets)
            ]
            if hurt
            else None
        )
        alone = design.groups == 1 and design.size == 1 and not design.weighted
        t = [tested(design, seed, margin) for seed in range(sets)] if hurt and alone else None
        reported = (f"{np.mean(v):.3f}" if v is not None else "–" for v in (calm, t))
        print(
            f"| {name} | {design.truth:.4f} | {margin:.4f} | {any_ / sets:.3f} | {' | '.join(reported)} |", flush=True
        )


if __name__ == "__main__":
    (wrong if "wrong" in sys.argv else main)(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
