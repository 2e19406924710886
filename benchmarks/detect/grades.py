"""The level of the supervisor's tests by grade: exact where it can be counted, simulated where not.

`python benchmarks/detect/grades.py` prints tables of the grades page; `--full` takes more simulations.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import binom, norm

from calibrant.apps.grades import concentration, migrations
from calibrant.apps.grades.defaults import default_tails
from calibrant.stats.classical import posterior_tails
from calibrant.stats.measures import ranking

ALPHA = 0.05
PDS = (0.005, 0.02, 0.1)
CUSTOMERS = (50, 200, 1_000)


def law(n: int, p: float, rho: float) -> np.ndarray:
    """Return the law of the defaults with one factor, by its own quadrature."""
    z, w = np.polynomial.hermite_e.hermegauss(120)
    moved = norm.cdf((norm.ppf(p) + np.sqrt(rho) * z) / np.sqrt(1 - rho))
    return np.asarray(binom.pmf(np.arange(n + 1)[:, None], n, moved) @ (w / w.sum()))


def jeffreys() -> None:
    """Print how often each p-value of one grade is at most 5 %, if the PD is right."""
    print("| N | PD | Jeffreys | exact tail | Jeffreys, correlation .12 | tail with .12 |\n|---|---|---|---|---|---|")
    for n in CUSTOMERS:
        for p in PDS:
            d = np.arange(n + 1)
            alone, moved = law(n, p, 0.0), law(n, p, 0.12)
            jeff, tail, joint = (
                posterior_tails(d, n, p, "greater"),
                default_tails(d, n, p, 0.0),
                default_tails(d, n, p, 0.12),
            )
            cells = [alone[jeff <= ALPHA], alone[tail <= ALPHA], moved[jeff <= ALPHA], moved[joint <= ALPHA]]
            print(f"| {n:,} | {p:g} | " + " | ".join(f"{c.sum():.3f}" for c in cells) + " |")


def area(runs: int) -> None:
    """Print how often the AUC is found to have fallen that has not."""
    print("| customers | defaults expected | level |\n|---|---|---|")
    rng = np.random.default_rng(0)
    share, pd = np.array([0.15, 0.25, 0.25, 0.2, 0.1, 0.05]), np.array([0.0005, 0.002, 0.006, 0.015, 0.05, 0.15])
    case, other = share * pd, share * (1 - pd)
    true = float(case @ (np.cumsum(other) - other / 2) / (case.sum() * other.sum()))
    for n in (500, 2_000, 20_000):
        found = done = 0
        for _ in range(runs):
            k = rng.multinomial(n, np.concatenate([case, other]))
            if k[:6].sum() in (0, n):
                continue
            done += 1
            both = ranking(np.tile(np.arange(6.0), 2), np.repeat([1, 0], 6).astype(np.int8), k * 1.0, np.ones(12))
            found += both.error > 0 and (true - both.auroc) / both.error >= norm.isf(ALPHA)
        print(f"| {n:,} | {n * case.sum():.0f} | {found / done:.3f} |")


def steps(runs: int) -> None:
    """Print how often a cell is found to hold more than its nearer neighbour, if both hold as much."""
    print("| customers of the grade | share of each cell | level |\n|---|---|---|")
    rng = np.random.default_rng(0)
    for n in (50, 200, 2_000):
        for p in (0.02, 0.1, 0.3):
            row = rng.multinomial(n, [1 - 2 * p, p, p], size=runs)
            z = [migrations.steps(np.vstack([r, np.ones((2, 3), int)])).p_value[0, 2] for r in row]
            print(f"| {n:,} | {p:g} | {np.nanmean(np.less_equal(z, ALPHA)):.3f} |")


def herfindahl(runs: int) -> None:
    """Print how often a portfolio like the initial one, and one that is more concentrated, is found to be so."""
    print("| customers | as concentrated | two grades doubled |\n|---|---|---|")
    rng = np.random.default_rng(0)
    share = np.array([0.05, 0.1, 0.15, 0.2, 0.2, 0.15, 0.1, 0.05])
    more = share * np.array([1, 1, 1, 2, 2, 1, 1, 1])
    initial = concentration.variation(share)
    for n in (200, 2_000, 200_000):
        cells = []
        for true in (share, more / more.sum()):
            drawn = (concentration.variation(rng.multinomial(n, true)) for _ in range(runs))
            cells.append(np.mean([concentration.rise(initial, now, 8) <= ALPHA for now in drawn]))
        print(f"| {n:,} | {cells[0]:.3f} | {cells[1]:.3f} |")


if __name__ == "__main__":
    runs = 20_000 if "--full" in sys.argv else 2_000
    jeffreys()
    area(runs)
    steps(runs)
    herfindahl(runs)
