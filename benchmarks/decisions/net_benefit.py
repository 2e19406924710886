"""How often bands of decision curves miss: ``python benchmarks/decisions/net_benefit.py [SETS]``.

``python benchmarks/decisions/net_benefit.py 1000 certified``: how often the certified range of one threshold does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.stats import binom, norm

import calibrant as cal
from calibrant.decisions import net_benefit
from calibrant.decisions.ladder import ladder

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from validity.test_decision_curve import ALLOWED, DESIGNS, times
from validity.test_net_benefit import DESIGNS as ALONE
from validity.test_net_benefit import Design

BANDS = net_benefit.widths


def normal(_: object, found: float, *__: object) -> tuple[float, float]:
    """Return the quantile of normal numbers alone."""
    return found, found


def main(sets: int) -> None:
    """Print the table of net benefit."""
    print("| design | rows | units | net benefit | over all | by normal quantiles alone |\n|---|--:|--:|--:|--:|--:|")
    for name, (n, _, size, _) in DESIGNS.items():
        reported = []
        for way in (BANDS, normal):
            net_benefit.widths = way  # type: ignore[assignment]
            found = times(name, sets)
            if way is BANDS:
                assert min(binom.sf(k - 1, sets, ALLOWED) for k in found) > 1e-6, f"{name}: the claim is refuted"
            reported.append([f"{k / sets:.3f}" for k in found])
        (own, over), alone = reported
        clusters = f"{n // size:,}" if size else "–"
        print(f"| {name} | {n:,} | {clusters} | {own} | {over} | {', '.join(alone)} |", flush=True)


def normal_range(design: Design, data: cal.Predictions | cal.Sketch, alpha: float) -> tuple[float, float]:
    """Return the mean, by clusters where there are any, with so many standard errors."""
    at, _ = ladder(data, design.t)
    gains = at.gains(False, 0)
    won, size = gains.value, gains.size
    own = gains.times if at.clusters is None else np.ones(len(won))
    mean = float(own @ won / (own @ size))
    half = float(norm.isf(alpha / 2.0) * np.sqrt(own @ (won - mean * size) ** 2) / (own @ size))
    return (mean - half) / (1.0 - design.t), (mean + half) / (1.0 - design.t)


def one(design: Design, seed: int) -> tuple[bool, bool, float] | None:
    """Return whether the certified and the normal range miss, and how many times as wide the first is."""
    data = design.drawn(seed)
    try:
        found = cal.measure.net_benefit(data, threshold=design.t, seed=seed)
    except cal.NotComputable:  # nobody is acted on
        return None
    low, high = normal_range(design, data, ALLOWED)
    ratio = (found.high - found.low) / (high - low) if high > low else np.inf
    return not found.low <= design.truth <= found.high, not low <= design.truth <= high, ratio


def certified(sets: int) -> None:
    """Print the table of certified ranges."""
    print("| design | rows | threshold | certified | normal | times as wide |\n|---|--:|--:|--:|--:|--:|")
    for name, design in ALONE.items():
        found = [v for v in (one(design, seed) for seed in range(sets)) if v is not None]
        off = [sum(v[k] for v in found) for k in (0, 1)]
        assert binom.sf(off[0] - 1, sets, ALLOWED) > 1e-6, f"{name}: the claim is refuted"
        reported = " | ".join(f"{k / len(found):.3f}" for k in off)
        print(
            f"| {name} | {design.n:,} | {design.t:g} | {reported} | {np.median([v[2] for v in found]):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    (certified if "certified" in sys.argv else main)(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
