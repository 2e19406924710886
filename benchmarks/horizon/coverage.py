"""How often ranges of the gap by a horizon miss the truth: three ways, seven worlds, four mistakes; Markdown tables.

    OMP_NUM_THREADS=1 python benchmarks/horizon/coverage.py [--sets 1000] [--rows 1500] [--what ways] [--only months]

Truth is a formula: rows have exponential or Weibull times of the event, follow-up that ends at random, at one closing
date, faster at one site or for rows of a higher risk, and a competing event. Every range claims to miss at most 5 in
100 sets. The mistakes are what a hasty analyst does; a table says which worlds refute them. 1,000 sets of 1,500 rows
take fifteen CPU minutes. Kept: benchmarks/horizon/coverage.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

import calibrant as cal
from calibrant.certify.horizon import DRAWN, PILOTS
from calibrant.stats.missing import survival

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from validity.horizon_designs import MONTH, Drawn, World

H, ALPHA = 360.0, 0.05
Floats = NDArray[np.float64]


SCALES = 300.0, 500.0, 900.0, 1500.0
drawn_by = partial(World, scales=SCALES)
WORLDS = {
    "exponential, random": drawn_by(off=0.05),
    "Weibull, random": drawn_by(shape=2.0, lost=600.0),
    "closing date too": drawn_by(admin=True, off=-0.05),
    "lost by site": drawn_by(by_site=3.0),
    "competing event": drawn_by(rival=0.002),
    "whole months": drawn_by(months=True, lost=500.0),
    "lost by risk": drawn_by(by_risk=True, lost=700.0),
}


def rows_of(s: Drawn, way: str, **columns: Floats) -> cal.Predictions:
    """As `at_horizon` makes them."""
    log = {**s.log, **columns}
    rivals = "2" if bool((log["kind"] == 2).any()) else None
    return cal.at_horizon(
        log, score="p", time="t", event="kind", horizon=H, competing=rivals, way=way, by=["site", *columns]
    )


def drawn(world: World, n: int, seed: int) -> Drawn:
    """Draw one."""
    return world.draw(np.random.default_rng([seed, 51]), n, H)


def until(s: Drawn) -> Floats:
    return np.minimum(np.asarray(s.log["t"], dtype=np.float64), H)


# ---- the ways ----


def by_followed(s: Drawn, world: World, seed: int) -> tuple[float, float, float]:
    """Entry and one closing date: rows that entered early enough, nobody else lost."""
    rng = np.random.default_rng([seed, 52])
    entered = rng.integers(0, 800, len(s.truth)).astype(np.float64)
    again = drawn(drawn_by(shape=world.shape, rival=world.rival, off=world.off, lost=1e9), len(s.truth), seed)
    end = 1000.0 - entered
    t, kind = np.asarray(again.log["t"], dtype=np.float64), np.asarray(again.log["kind"])
    log = {**again.log, "t": np.minimum(t, end), "kind": np.where(t <= end, kind, 0), "entered": entered}
    rivals = "2" if bool((log["kind"] == 2).any()) else None
    made = cal.at_horizon(
        log, score="p", time="t", event="kind", horizon=H, competing=rivals, entered="entered", closed=1000
    )
    kept = entered + H <= 1000.0
    q = cal.predictions(made.y, made.p, {"g": ["a"] * made.n})
    ends = cal.certify.groups(q, by="g", judge="gap", alpha=ALPHA)["g = a"].interval
    return ends.low, ends.high, float((again.truth - np.asarray(again.log["p"]))[kept].mean())


def by_weights(s: Drawn, g: Callable[[Floats], Floats]) -> tuple[float, float, float]:
    """By a probability of being followed that somebody states: a function of time, or of time and row as a column."""
    if s.alike:
        table = cal.certify.horizon(rows_of(s, "weights"), censoring_survival=lambda t: g(t), alpha=ALPHA).columns
    else:
        column = np.clip(g(until(s)), 0.05, 1.0)
        table = cal.certify.horizon(rows_of(s, "weights", g=column), censoring_survival="g", alpha=ALPHA).columns
    return float(table["low"][0]), float(table["high"][0]), s.gap


def by_known_law(s: Drawn, _world: World, _seed: int) -> tuple[float, float, float]:
    return by_weights(s, s.followed)


def by_pilots(s: Drawn, world: World, seed: int) -> tuple[float, float, float]:
    """Kaplan-Meier's band from pilot rows, within sites where these are lost at different rates."""
    within = "site" if world.by_site != 1.0 else None
    table = cal.certify.horizon(rows_of(s, "weights"), within=within, alpha=ALPHA, seed=seed).columns
    order = s.order(H)  # rows with an outcome come first
    kept = order[np.random.default_rng([seed, DRAWN]).random(len(order)) >= PILOTS]
    gap = float((s.truth - np.asarray(s.log["p"]))[kept].mean())
    return float(table["low"][0]), float(table["high"][0]), gap


def by_nothing(s: Drawn, _world: World, _seed: int) -> tuple[float, float, float]:
    table = cal.certify.missing_labels(rows_of(s, "unknown"), judge="gap", alpha=ALPHA).columns
    return float(table["low"][3]), float(table["high"][3]), s.gap


# ---- the mistakes ----


def no_event(s: Drawn, _world: World, _seed: int) -> tuple[float, float, float]:
    """Who was lost had no event."""
    return as_labels((s.log["kind"] == 1) & (s.log["t"] <= H), s)


def known_alone(s: Drawn, _world: World, _seed: int) -> tuple[float, float, float]:
    """Those known are a fair sample."""
    at = s.known(H)
    y = (s.log["kind"][at] == 1) & (s.log["t"][at] <= H)
    return as_labels(y, s, np.asarray(s.log["p"])[at])


def as_labels(y: NDArray[np.generic], s: Drawn, p: NDArray[np.generic] | None = None) -> tuple[float, float, float]:
    p = s.log["p"] if p is None else p
    ends = cal.certify.groups(cal.predictions(y, p, {"g": ["a"] * len(p)}), by="g", judge="gap", alpha=ALPHA)
    return ends["g = a"].interval.low, ends["g = a"].interval.high, s.gap


def at_the_event(s: Drawn, world: World, _seed: int) -> tuple[float, float, float]:
    """The probability of being followed beyond the event, in place of to it."""
    return by_weights(s, lambda t: s.followed(np.where(t < H, t + (MONTH if world.months else 0.0), t)))


def from_all_rows(s: Drawn, _world: World, _seed: int) -> tuple[float, float, float]:
    """Kaplan-Meier's estimate from the rows that are certified, taken as known."""
    g = survival.censoring(np.asarray(s.log["t"], dtype=np.float64), s.log["kind"].astype(np.int8))
    return by_weights(replace(s, alike=True), g.before)


def rivals_are_lost(s: Drawn, _world: World, _seed: int) -> tuple[float, float, float]:
    """A competing event ends follow-up, as one minus Kaplan-Meier has it."""
    kind = np.where(s.log["kind"] == 1, 1, 0)
    g = survival.censoring(np.asarray(s.log["t"], dtype=np.float64), kind.astype(np.int8))
    return by_weights(replace(s, log={**s.log, "kind": kind}, alike=True), g.before)


WAYS = {
    "followed long enough": by_followed,
    "weights, law known": by_known_law,
    "weights, pilot rows": by_pilots,
    "no assumption": by_nothing,
}
MISTAKES = {
    "lost is no event": no_event,
    "known are all": known_alone,
    "G behind the event": at_the_event,
    "G from certified rows": from_all_rows,
    "rivals are lost": rivals_are_lost,
}


def cell(of: Callable[..., tuple[float, float, float]], world: World, sets: int, n: int) -> str:
    """Misses in percent, and the mean width in points."""
    missed, width = 0, []
    for seed in range(sets):
        try:
            low, high, gap = of(drawn(world, n, seed), world, seed)
        except cal.NotComputable:
            return "refused"
        missed += not low <= gap <= high
        width.append(high - low)
    bold = "**" if binom.sf(missed - 1, sets, ALPHA) < 1e-6 else ""
    return f"{bold}{100.0 * missed / sets:.1f}{bold} ({100.0 * np.mean(width):.1f})"


def table(kinds: dict[str, Callable[..., tuple[float, float, float]]], a: argparse.Namespace) -> None:
    print(f"| world | {' | '.join(kinds)} |", flush=True)
    print(f"|---|{'--:|' * len(kinds)}", flush=True)
    for name, world in WORLDS.items():
        if not a.only or any(word in name for word in a.only.split(",")):
            cells = (cell(of, world, a.sets, a.rows) for of in kinds.values())
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--only", default="", help="worlds whose names hold one of these words")
    parser.add_argument("--what", choices=("both", "ways", "mistakes"), default="both")
    a = parser.parse_args()
    print(f"Misses in percent of {a.sets:,} sets of {a.rows:,} rows (mean width, points); bold: more than 5 allows\n")
    for kind, kinds in {"ways": WAYS, "mistakes": MISTAKES}.items():
        if a.what in ("both", kind):
            table(kinds, a)


if __name__ == "__main__":
    main()
