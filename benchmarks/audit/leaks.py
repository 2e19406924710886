"""How often a column is named as known only with the outcome: honest ones, and those that reproduce it.

    python benchmarks/audit/leaks.py [DESIGNS]

Each design has its own number of rows, base rate, and score, from nearly useless to nearly perfect (area under the ROC
curve .6 to .98), and 23 honest columns: parts of the logit and all of it, grades, counts, codes, sites, missing values.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant.data.leaks import SMALL, Column, Leak, coded, leaks

Columns = dict[str, NDArray[Any]]
ENOUGH = 35  # rows of the rarer label, from which on copies are always named


def texts(codes: NDArray[np.int64], prefix: str) -> NDArray[np.object_]:
    """Names of codes; None for negative ones."""
    return np.array([None if c < 0 else f"{prefix}{c}" for c in codes], dtype=object)


def steps(x: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    return np.argsort(np.argsort(x)) * k // len(x)


def design(seed: int) -> tuple[NDArray[np.int8], NDArray[np.float64], Columns, list[Columns]]:
    """Labels, scores, honest columns, and sets of columns that reproduce the outcome."""
    rng = np.random.default_rng([9, seed])
    n, rate = int(rng.choice([200, 600, 2000, 6000, 20000])), rng.choice([0.03, 0.1, 0.3, 0.5])
    strength, part = rng.uniform(0.5, 6.0), rng.uniform(0.2, 1.0)
    z = rng.normal(size=(n, 3))
    full = strength * (z @ rng.dirichlet(np.ones(3)) ** 0.5) + logit(rate) * (1.0 + 0.1 * strength)
    y = (rng.random(n) < expit(full)).astype(np.int8)
    p = expit(logit(rate) + part * (full - full.mean()) + (1.0 - part) * rng.normal(size=n))

    def levels(k: int) -> NDArray[np.int64]:
        return rng.integers(0, k, n)

    def wrong(share: float) -> NDArray[np.float64]:
        return np.where(rng.random(n) < share, 1 - y, y).astype(np.float64)

    whole = np.round(40.0 + 12.0 * z[:, 2])
    honest: Columns = {
        "noise": rng.normal(size=n),
        "part": z[:, 0],
        "logit": full,
        "score": p,
        "rounded": np.round(p, 2),
        "decile": steps(p, 10) * 1.0,
        "near": full + 0.3 * rng.normal(size=n),
        "tenth": steps(full, 10) * 1.0,
        "grade": texts(steps(full, int(rng.integers(3, 9))), "g"),
        "flag": (full > np.quantile(full, 1.0 - y.mean())) * 1.0,
        "three": texts(levels(3), "L"),
        "forty": texts(levels(40), "L"),
        "many": texts(levels(400), "L"),
        "row": np.arange(n) * 1.0,
        "id": texts(np.arange(n), "i"),
        "site": texts(steps(z[:, 1] + rng.normal(size=n), 12), "s"),
        "count": rng.poisson(np.exp(0.4 * z[:, 2])) * 1.0,
        "gone": np.where(rng.random(n) < expit(full), np.nan, rng.exponential(1.0, n)),
        "cut": np.where(z[:, 0] > 1.0, np.nan, rng.normal(size=n)),
        "rare": texts((rng.random(n) < 0.01).astype(np.int64), "L"),
        "heavy": rng.standard_cauchy(n) + z[:, 1],
        "whole": whole,
        "twin": whole + rng.integers(-1, 2, n),
    }
    home, fora = levels(2), np.round(rng.gamma(4.0, 20.0, n))
    margin = np.where(y == 1, 1 + rng.poisson(5, n), -rng.poisson(5, n)) * 1.0
    leaking: list[Columns] = [
        {"copy": y * 1.0},
        {"mirror": 1.0 - y},
        {"text": texts(y.astype(np.int64), "out")},
        {"1 % noise": wrong(0.01)},
        {"3 % noise": wrong(0.03)},
        {"margin": margin},
        {"days to the event": np.where(y == 1, rng.exponential(30.0, n), np.nan)},
        {"reason of the event": texts(np.where(y == 1, levels(4), -1), "r")},
        {"home": texts(home, "t"), "winner": texts(np.where(y == 1, home, 1 - home), "t")},
        {"points": fora, "points against": fora - np.where(y == 1, 1, -1) * (1 + rng.poisson(8, n))},
    ]
    return y, p, honest, leaking


def read(columns: Mapping[str, NDArray[Any]]) -> dict[str, Column]:
    named = [k for k, v in columns.items() if v.dtype == object]
    codes = dict(zip(named, coded([columns[k] for k in named]), strict=True))
    return {k: Column.of_text(codes[k]) if k in codes else Column.of_number(v) for k, v in columns.items()}


def main(designs: int) -> None:
    asked, honest, falsely, seconds, used = Counter[str](), 0, Counter[str](), 0.0, 0
    found, many = Counter[tuple[str, str, bool]](), Counter[tuple[str, bool]]()
    for seed in range(designs):
        y, p, columns, leaking = design(seed)
        rarer = int(min(y.sum(), len(y) - y.sum()))
        if rarer < SMALL:
            continue
        used, honest = used + 1, honest + len(columns)
        start = time.process_time()
        named: list[Leak] = leaks(read(columns), y, p)
        seconds += time.process_time() - start
        for one in named:
            falsely[one.kind] += 1
            asked[" and ".join(one.columns)] += 1
        for some in leaking:
            key = (" and ".join(some), rarer >= ENOUGH)
            many[key] += 1
            kinds = {one.kind for one in leaks(read(some), y, p)}
            for kind in kinds:
                found[key[0], kind, key[1]] += 1
    print(f"{used} designs, {honest:,} honest columns, {seconds / used:.2f} CPU s a design")
    print(f"honest columns named: {falsely['leak']} as leaks, {falsely['ask']} asked about {dict(asked)}\n")
    print(f"| column | leak, {ENOUGH} and more of the rarer label | asked about | leak, fewer | asked about |")
    print("|---|--:|--:|--:|--:|")
    for name in dict.fromkeys(name for name, _ in many):
        cells = [
            f"{found[name, kind, enough] / many[name, enough]:.3f}" if many[name, enough] else "–"
            for enough in (True, False)
            for kind in ("leak", "ask")
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
