"""How often the accepted risk is broken, and the rows it takes.

``python benchmarks/decisions/accept.py [SETS] [designs | rows | plan]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.special import pdtri
from scipy.stats import binom

import calibrant as cal
from calibrant.stats.decisions.acceptance import Ranking, deepest

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


# ---- all rows, or a Poisson number of them, whose proof is that of Poisson processes ----

LISTS = {
    "falling": (0.1, lambda s: 0.35 * (1.0 - s) ** 1.5 + 0.005),
    "falling, rarer": (0.02, lambda s: 0.15 * (1.0 - s) ** 2 + 0.001),
    "at the limit": (0.1, lambda s: np.full_like(s, 0.1001)),
    "wrong first, all at the limit": (0.1, lambda s: np.where(s > 0.9, 0.5, (0.1001 - 0.05) / 0.9)),
}
LEFT_OUT = 0.02  # of alpha, for fewer rows than a Poisson number


def poisson_number(score: np.ndarray, wrong: np.ndarray, risk: float, seed: int) -> float:
    """The share accepted if a Poisson number of the rows certifies; it is over n with probability .02 alpha."""
    rng, n = np.random.default_rng([seed, 1]), len(score)
    kept = min(int(rng.poisson(pdtri(n, 1.0 - LEFT_OUT * ALPHA))), n)
    some = Ranking.of(score[:kept], wrong[:kept], True)
    at = deepest(some, risk, (1.0 - LEFT_OUT) * ALPHA)
    return float(np.mean(score >= some.threshold[at])) if at >= 0 else 0.0


def at_fixed_n(sets: int) -> None:
    """Print what all rows accept, and a Poisson number of them; and how often the risk is broken."""
    grid = (np.arange(200_000) + 0.5) / 200_000
    print("\n| errors | risk | rows | all rows | broken | a Poisson number of them |\n|---|--:|--:|--:|--:|--:|")
    for name, (risk, error) in LISTS.items():
        rate = np.cumsum(error(grid[::-1])) / np.arange(1, len(grid) + 1)  # of a share of the best
        for n in (300, 600, 5000):
            shares, broken = np.zeros((sets, 2)), 0
            for seed in range(sets):
                rng = np.random.default_rng([seed, n])
                score = rng.uniform(size=n)
                wrong = rng.uniform(size=n) < error(score)
                data = cal.predictions(~wrong, score)
                reported = cal.certify.accept(data, risk=risk).settings["groups"]["everyone"]
                shares[seed] = reported["share"], poisson_number(score, wrong, risk, seed)
                if reported["threshold"] is not None:
                    broken += rate[min(int((1.0 - reported["threshold"]) * len(grid)), len(grid) - 1)] > risk
            both = [f"{100 * share:.1f} %" for share in shares.mean(axis=0)]
            print(f"| {name} | {risk:g} | {n:,} | {both[0]} | {broken / sets:.3f} | {both[1]} |", flush=True)
            assert binom.sf(broken - 1, sets, ALPHA) > 1e-6, f"{name}: the claim is refuted"


def on_designs(sets: int) -> None:
    """Print what three ways to choose a threshold accept, and how often the risk is broken."""
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


def plans(_: int) -> None:
    """Print how many rows it takes."""
    print("\n| risk, rate | power | fixed beforehand | accept | ratio |\n|---|--:|--:|--:|--:|")
    for risk, error in ((0.01, 0.005), (0.02, 0.01), (0.05, 0.02), (0.01, 0.0)):
        for power in (0.5, 0.8, 0.95):
            plan = cal.certify.rows_to_accept(risk=risk, error=error, power=power)
            fixed = plan.settings["threshold_fixed_beforehand"]
            print(f"| {risk:g}, {error:g} | {power:g} | {fixed:,} | {plan.value:,.0f} | {plan.value / fixed:.2f} |")


TABLES = {"designs": on_designs, "rows": at_fixed_n, "plan": plans}


if __name__ == "__main__":
    for name in sys.argv[2:] or TABLES:
        TABLES[name](int(sys.argv[1]) if len(sys.argv) > 1 else 100)
