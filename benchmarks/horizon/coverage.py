"""How often ranges of the gap by a horizon miss the truth: three ways, seven worlds, four mistakes; Markdown tables.

    OMP_NUM_THREADS=1 python benchmarks/horizon/coverage.py [--sets 1000] [--rows 1500] [--what ways] [--only months]

Truth is a formula: rows have exponential or Weibull times of the event, follow-up that ends at random, at one closing
date, faster at one site or for rows of a higher risk, and a competing event. Every range claims to miss at most 5 in
100 sets. The mistakes are what a hasty analyst does; a table says which worlds refute them. 1,000 sets of 1,500 rows
take fifteen CPU minutes. Kept: benchmarks/horizon/coverage.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

import calibrant as cal
from calibrant.certify.horizon import DRAWN, PILOTS
from calibrant.stats.missing import survival

H, ALPHA, MONTH = 360.0, 0.05, 30.0
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Times to the event and to the end of follow-up."""

    shape: float = 1.0  # of Weibull times of the event
    lost: float = 900.0  # mean of exponential follow-up
    admin: bool = False  # it also ends at one closing date, after uniform entry
    by_site: float = 1.0  # how many times as fast the rows of the second site are lost
    by_risk: bool = False  # rows of high risk are lost sooner: what nobody accounts for
    rival: float = 0.0  # rate of a competing event
    off: float = 0.0  # what the score says more than the truth
    months: bool = False  # times are whole months, so that events and ends tie


WORLDS = {
    "exponential, random": World(off=0.05),
    "Weibull, random": World(shape=2.0, lost=600.0),
    "closing date too": World(admin=True, off=-0.05),
    "lost by site": World(by_site=3.0),
    "competing event": World(rival=0.002),
    "whole months": World(months=True, lost=500.0),
    "lost by risk": World(by_risk=True, lost=700.0),
}


@dataclass(frozen=True)
class Set:
    """One data set, with what nobody knows."""

    log: dict[str, NDArray[np.generic]]
    truth: Floats
    followed: Callable[[Floats], Floats]  # the probability of still being followed just before a time
    alike: bool  # it is the same for every row

    @property
    def gap(self) -> float:
        return float((self.truth - self.log["p"]).mean())

    def rows(self, way: str, **columns: Floats) -> cal.Predictions:
        """As `at_horizon` makes them."""
        log = {**self.log, **columns}
        rivals = "2" if bool((log["kind"] == 2).any()) else None
        return cal.at_horizon(
            log, score="p", time="t", event="kind", horizon=H, competing=rivals, way=way, by=["site", *columns]
        )


def drawn(world: World, n: int, seed: int) -> Set:
    """Draw one."""
    rng = np.random.default_rng([seed, 51])
    site, scale = rng.integers(0, 2, n), rng.choice([300.0, 500.0, 900.0, 1500.0], n)
    truth = 1.0 - np.exp(-((H / scale) ** world.shape))
    event = scale * rng.weibull(world.shape, n)
    other = rng.exponential(1.0 / world.rival, n) if world.rival else np.full(n, np.inf)
    if world.rival:
        every = 1.0 / scale + world.rival
        truth = (1.0 - np.exp(-every * H)) / (scale * every)
    mean = np.full(n, world.lost) / np.where(site == 1, world.by_site, 1.0)
    mean = mean / np.where((scale < 600.0) & world.by_risk, 3.0, 1.0)
    ends = rng.exponential(mean)
    if world.admin:
        ends = np.minimum(ends, rng.uniform(200.0, 1200.0, n))
    if world.months:
        event, ends = np.ceil(event / MONTH) * MONTH, np.ceil(ends / MONTH) * MONTH
    first = np.minimum(event, other)
    kind = np.where(ends < first, 0, np.where(event <= other, 1, 2))
    late = MONTH if world.months else 0.0

    alike = world.by_site == 1.0 and not world.by_risk

    def followed(t: Floats) -> Floats:
        out = np.exp(-np.maximum(t - late, 0.0) / (mean[0] if alike else mean))
        return out * (np.clip((1200.0 - t) / 1000.0, 0.0, 1.0) if world.admin else 1.0)

    log = {"t": np.minimum(first, ends), "kind": kind, "p": np.clip(truth + world.off, 0.0, 1.0), "site": site}
    return Set(log, truth, followed, alike)


def until(s: Set) -> Floats:
    return np.minimum(np.asarray(s.log["t"], dtype=np.float64), H)


# ---- the ways ----


def known(s: Set) -> NDArray[np.bool_]:
    return np.asarray((s.log["kind"] != 0) | (s.log["t"] >= H))


def by_followed(s: Set, world: World, seed: int) -> tuple[float, float, float]:
    """Entry and one closing date: rows that entered early enough, nobody else lost."""
    rng = np.random.default_rng([seed, 52])
    entered = rng.integers(0, 800, len(s.truth)).astype(np.float64)
    again = drawn(World(shape=world.shape, rival=world.rival, off=world.off, lost=1e9), len(s.truth), seed)
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


def by_weights(s: Set, g: Callable[[Floats], Floats]) -> tuple[float, float, float]:
    """By a probability of being followed that somebody states: a function of time, or of time and row as a column."""
    if s.alike:
        table = cal.certify.horizon(s.rows("weights"), censoring_survival=lambda t: g(t), alpha=ALPHA).columns
    else:
        column = np.clip(g(until(s)), 0.05, 1.0)
        table = cal.certify.horizon(s.rows("weights", g=column), censoring_survival="g", alpha=ALPHA).columns
    return float(table["low"][0]), float(table["high"][0]), s.gap


def by_known_law(s: Set, _world: World, _seed: int) -> tuple[float, float, float]:
    return by_weights(s, s.followed)


def by_pilots(s: Set, world: World, seed: int) -> tuple[float, float, float]:
    """Kaplan-Meier's band from pilot rows, within sites where these are lost at different rates."""
    within = "site" if world.by_site != 1.0 else None
    table = cal.certify.horizon(s.rows("weights"), within=within, alpha=ALPHA, seed=seed).columns
    order = np.argsort(~known(s), kind="stable")  # rows with an outcome come first
    kept = order[np.random.default_rng([seed, DRAWN]).random(len(order)) >= PILOTS]
    gap = float((s.truth - np.asarray(s.log["p"]))[kept].mean())
    return float(table["low"][0]), float(table["high"][0]), gap


def by_nothing(s: Set, _world: World, _seed: int) -> tuple[float, float, float]:
    table = cal.certify.missing_labels(s.rows("unknown"), judge="gap", alpha=ALPHA).columns
    return float(table["low"][3]), float(table["high"][3]), s.gap


# ---- the mistakes ----


def no_event(s: Set, _world: World, _seed: int) -> tuple[float, float, float]:
    """Who was lost had no event."""
    return as_labels((s.log["kind"] == 1) & (s.log["t"] <= H), s)


def known_alone(s: Set, _world: World, _seed: int) -> tuple[float, float, float]:
    """Those known are a fair sample."""
    at = known(s)
    y = (s.log["kind"][at] == 1) & (s.log["t"][at] <= H)
    return as_labels(y, s, np.asarray(s.log["p"])[at])


def as_labels(y: NDArray[np.generic], s: Set, p: NDArray[np.generic] | None = None) -> tuple[float, float, float]:
    p = s.log["p"] if p is None else p
    ends = cal.certify.groups(cal.predictions(y, p, {"g": ["a"] * len(p)}), by="g", judge="gap", alpha=ALPHA)
    return ends["g = a"].interval.low, ends["g = a"].interval.high, s.gap


def at_the_event(s: Set, world: World, _seed: int) -> tuple[float, float, float]:
    """The probability of being followed beyond the event, in place of to it."""
    return by_weights(s, lambda t: s.followed(np.where(t < H, t + (MONTH if world.months else 0.0), t)))


def from_all_rows(s: Set, _world: World, _seed: int) -> tuple[float, float, float]:
    """Kaplan-Meier's estimate from the rows that are certified, taken as known."""
    g = survival.censoring(np.asarray(s.log["t"], dtype=np.float64), s.log["kind"].astype(np.int8))
    return by_weights(replace(s, alike=True), g.before)


def rivals_are_lost(s: Set, _world: World, _seed: int) -> tuple[float, float, float]:
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
