"""How often the audit says that rows share clusters: where they are independent, and where they do not.

    python benchmarks/audit/dependence.py [LOGS]

Every log has columns that say nothing beside those of its design: codes, identifiers, counts, dates, ages, in random
number and under random names. "named" is the share of logs in which columns are named, "as a cluster" that in which
many of their values make the correlation, "withheld" that in which nothing is decided.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

import calibrant as cal
from calibrant.audit.context import AuditContext
from calibrant.audit.judging import Judging
from calibrant.data.read import summarised
from calibrant.data.reading import Reading

Rng = np.random.Generator
Floats = NDArray[np.float64]
Log = Mapping[str, Any]
Columns = dict[str, Any]
LOGS, COPIED = 20, 20
ROWS = 300, 1000, 2000, 6000


def name(rng: Rng) -> str:
    return "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 6))


def beside(rng: Rng, n: int, most: int = 40) -> Columns:
    """Columns that say nothing: at least four."""
    made: list[Any] = []
    for _ in range(int(rng.integers(4, most))):
        k = int(rng.choice([2, 5, 12, 40, 90, 400, n // 4 + 2, n // 2 + 2, n]))
        values = rng.integers(0, k, n)
        day = np.datetime64("2024-01-01") + rng.integers(0, 365, n)
        kinds = [values, [f"{v:x}" for v in values], rng.poisson(3.0 + k % 50, n), np.round(rng.normal(50, 12, n)), day]
        made.append(kinds[int(rng.integers(len(kinds)))])
    return {name(rng): column for column in made}


def drawn(rng: Rng, rate: Floats) -> NDArray[np.int64]:
    return (rng.random(len(rate)) < rate).astype(np.int64)


# ---- outcomes that are independent, given scores and columns ----


def independent(kind: str, rng: Rng) -> Log:  # noqa: C901 - a design a branch
    """Rows whose outcomes are independent: the score may be wrong along itself, a trend, a group, a site."""
    n = int(rng.choice(ROWS))
    x = rng.normal(size=n)
    made, score, rate = beside(rng, n), expit(x - 1.0), expit(x - 1.0)
    number, few, site, day = rng.normal(50, 12, n).round(), rng.integers(0, 3, n), rng.integers(0, 60, n), np.arange(n)
    own: Columns = {}
    if kind == "slope":
        rate = expit(1.6 * x - 1.0)
    elif kind == "shift":
        rate = expit(x - 0.4)
    elif kind == "waves along the score":
        rate = np.clip(score + 0.1 * np.sin(9.0 * score), 0.0, 1.0)
    elif kind == "rare events":
        score = rate = expit(x - 4.0)
    elif kind == "trend of a number":
        own, rate = {"number": number}, expit(x - 1.0 + 0.03 * (number - 50.0))
    elif kind == "curve of a number":
        own, rate = {"number": number}, expit(x - 1.0 + 0.6 * np.cos((number - 50.0) / 8.0))
    elif kind == "one of 3 groups off":
        own, rate = {"few": few}, np.clip(score + 0.12 * (few == 1), 0.0, 1.0)
    elif kind == "two groups together off":
        other = rng.integers(0, 4, n)
        own, rate = {"few": few, "other": other}, np.clip(score + 0.2 * (few == 1) * (other == 2), 0.0, 1.0)
    elif kind == "one of 60 sites off":
        own, rate = {"site": site}, np.clip(score + 0.09 * (site == 7), 0.0, 1.0)
    elif kind == "two of 60 sites off":
        own, rate = {"site": site}, np.clip(score + 0.15 * (site < 2), 0.0, 1.0)
    elif kind == "25 sites that differ":
        site = site % 25
        own, rate = {"site": site}, expit(x - 1.0 + 0.4 * rng.normal(size=25)[site])
    elif kind == "tenths":
        score = np.round(score, 1)
    elif kind == "five values":
        score = rate = np.array([0.05, 0.2, 0.4, 0.7, 0.9])[rng.integers(0, 5, n)]
    elif kind == "one score":
        score = rate = np.full(n, 0.3)
    elif kind == "scores by cluster":
        who = rng.integers(0, n // 6 + 2, n)
        score = rate = norm.cdf(-1.0 + 0.8 * rng.normal(size=n)[who] + 0.2 * x)
        own = {"who": who}
    elif kind == "scores by cluster, too low":
        who = rng.integers(0, n // 6 + 2, n)
        score = norm.cdf(-1.0 + 0.8 * rng.normal(size=n)[who] + 0.2 * x)
        own, rate = {"who": who}, np.minimum(1.3 * score, 1.0)
    elif kind == "drift in time":
        own, rate = {"day": day * 200 // n}, expit(x - 1.0 + 0.8 * day / n)
    elif kind == "identifiers that drift":
        own, rate = {"code": day // 2}, expit(x - 1.0 + 0.8 * day / n)
    elif kind == "half missing":
        who = rng.integers(0, n // 5 + 2, n)
        own = {"who": np.where(rng.random(n) < 0.5, np.nan, who)}
    return {"y": drawn(rng, rate), "p": score, **made, **{name(rng): column for column in own.values()}}


KINDS = (
    *("right", "slope", "shift", "waves along the score", "rare events", "trend of a number", "curve of a number"),
    *("one of 3 groups off", "two groups together off", "one of 60 sites off", "two of 60 sites off"),
    *("25 sites that differ", "tenths", "five values", "one score", "scores by cluster", "scores by cluster, too low"),
    *("drift in time", "identifiers that drift", "half missing"),
)


# ---- outcomes that are not ----


def games(rng: Rng, *, together: bool) -> Log:
    """120 games of one outcome each, looked at 60 times; an identifier names them, or three columns do together."""
    game = np.repeat(np.arange(120), 60)
    rate = rng.uniform(0.2, 0.8, 120)
    own = [game % 6, game // 6 % 5, game // 30] if together else [game]
    score = np.clip(rate[game] + rng.normal(0, 0.05, len(game)), 0.01, 0.99)
    return {"y": drawn(rng, rate)[game], "p": score, **beside(rng, len(game), 8), **{name(rng): c for c in own}}


def visits(rng: Rng, clusters: int, each: int, correlation: float) -> Log:
    """Visits whose outcomes share a normal copula; calibrated."""
    who = np.repeat(np.arange(clusters), each)
    score = rng.beta(1.0, 3.0, len(who))
    z = np.sqrt(correlation) * rng.normal(size=clusters)[who] + np.sqrt(1.0 - correlation) * rng.normal(size=len(who))
    return {"y": (norm.cdf(z) < score) * 1, "p": score, **beside(rng, len(who), 8), name(rng): who}


def states(rng: Rng, spread: float) -> Log:
    """51 states of 350 rows each, whose rates differ by so much, a standard deviation."""
    who = np.repeat(np.arange(51), 350)
    score = rng.beta(2.0, 5.0, len(who))
    rate = np.clip(score + spread * rng.normal(size=51)[who], 0.0, 1.0)
    return {"y": drawn(rng, rate), "p": score, **beside(rng, len(who), 8), name(rng): who}


SHARED: dict[str, Callable[[Rng], Log]] = {
    "120 games, 60 looks at one outcome": lambda rng: games(rng, together=False),
    "the same, named by three columns together": lambda rng: games(rng, together=True),
    "300 patients, 3 visits, correlation .2": lambda rng: visits(rng, 300, 3, 0.2),
    "300 patients, 3 visits, correlation .5": lambda rng: visits(rng, 300, 3, 0.5),
    "400 devices, 10 rows, correlation .1": lambda rng: visits(rng, 400, 10, 0.1),
    "400 devices, 10 rows, correlation .4": lambda rng: visits(rng, 400, 10, 0.4),
    "51 states, 350 rows, spread 2 points": lambda rng: states(rng, 0.02),
    "51 states, 350 rows, spread 4 points": lambda rng: states(rng, 0.04),
}


def copies(n: int, share: float, times: int, decimals: int | None = None) -> Callable[[Rng], Log]:
    def make(rng: Rng) -> Log:
        p = rng.beta(1.0, 3.0, n)
        p = p if decimals is None else np.round(p, decimals)
        log = {"y": drawn(rng, p), "p": p, "age": rng.normal(size=n), "sex": rng.integers(0, 2, n)}
        again = np.concatenate([np.arange(n), np.repeat(np.arange(int(share * n)), times - 1)])
        return {name: column[again] for name, column in log.items()}

    return make


COPIES: dict[str, Callable[[Rng], Log]] = {
    "independent, whole per cents, 2,000 rows": copies(2000, 0.0, 2, 2),
    "independent, tenths, 2,000 rows": copies(2000, 0.0, 2, 1),
    "150 rows five times": copies(150, 1.0, 5),
    "150 rows five times, whole per cents": copies(150, 1.0, 5, 2),
    "1,000 rows, half of them once more": copies(1000, 0.5, 2),
    "5,000 rows, half of them once more, whole per cents": copies(5000, 0.5, 2, 2),
}


def read(log: Log, seed: int) -> AuditContext:
    options = Reading.of(label="y", score="p", variables="*", seed=seed).with_candidates()
    return AuditContext(summarised(log, options), Judging.of(gates=()))


def reported(log: Log, seed: int) -> tuple[bool, bool, bool, float]:
    """Return whether columns are named, as a cluster, whether nothing is decided, and the largest design effect."""
    case = read(log, seed)
    looked = case.clusters_sought
    detected = () if looked is None else looked.detected
    effect = max((one.design_effect for one in detected), default=1.0)
    return bool(detected), any(one.kind == "cluster" for one in detected), bool(case.suppressed_for), effect


def table(designs: Mapping[str, Callable[[Rng], Log]], logs: int) -> list[NDArray[np.float64]]:
    print(f"| {logs} logs each | named | as a cluster | withheld | median design effect |\n|---|--:|--:|--:|--:|")
    out = []
    for i, (design, make) in enumerate(designs.items()):
        found = np.array([reported(make(np.random.default_rng([i, s])), s) for s in range(logs)])
        out.append(found)
        shares = " | ".join(f"{v:.3f}" for v in found[:, :3].mean(axis=0))
        print(f"| {design} | {shares} | {np.median(found[:, 3]):.1f} |", flush=True)
    return out


def cost(n: int, columns: int) -> str:
    rng = np.random.default_rng(n)
    log: Columns = {"y": rng.integers(0, 2, n), "p": rng.random(n)}
    for j in range(columns):
        k = int(rng.choice([3, 12, 40, 400, n // 10, n // 4, n // 2]))
        log[f"c{j}"] = rng.integers(0, k, n)
    case = read(log, 0)
    start = time.process_time()
    looked = case.clusters_sought
    seconds = time.process_time() - start
    pairs = 0 if looked is None else looked.joint
    return f"{n:,} rows, {columns} columns: {seconds:.2f} CPU s, {pairs} pairs and triples"


def main(logs: int) -> None:
    cal.predictions([0, 1], [0.5, 0.5])  # what is imported once is not timed
    print("Independent rows\n")
    kinds = {kind: lambda rng, kind=kind: independent(kind, rng) for kind in KINDS}
    every = np.concatenate(table(kinds, logs))  # type: ignore[arg-type]
    print(f"\n{len(every):,} logs: named {every[:, 0].mean():.4f}, withheld {every[:, 2].mean():.4f}\n\nClusters\n")
    table(SHARED, logs)
    print("\nCopies\n")
    table(COPIES, min(logs, COPIED))
    print("", *(cost(n, columns) for n, columns in ((2000, 10), (100_000, 40))), sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else LOGS)
