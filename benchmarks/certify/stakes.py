"""Widths by today's stakes and by earlier ones, on one data set: ``python benchmarks/certify/stakes.py [PART] [SETS]``.

Parts: ``groups`` (gaps of a population of few rows), ``clusters``, ``shift`` (the overall shift beside a variable's
error) and ``upper`` (Theorem U). What it prints is a table in Markdown: mean widths, or ends, in points, of calibrated
scores unless the design says otherwise. Earlier stakes are written out here, so that one run has both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

import calibrant as cal
from calibrant.stats.betting import steady_bet_sizes
from calibrant.stats.bounds import gap_evidence
from calibrant.stats.cells import Cells
from calibrant.stats.clusters.below import BLOCKS, SOFT, gap_of, residuals
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.evidence import Gap, log_mean_exp
from calibrant.views.sample import everyone

Floats = NDArray[np.float64]
DELTAS = 0.025, 0.025 / 60  # an end alone, and of one of sixty groups
SCORES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "all .3": lambda _, n: np.full(n, 0.3),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "beta(2, 8)": lambda rng, n: rng.beta(2, 8, n),
    "1.5 % events": lambda rng, n: rng.beta(0.5, 33, n),
    ".2 % events": lambda rng, n: rng.beta(0.5, 250, n),
    "sharp": lambda rng, n: np.where(rng.uniform(size=n) < 0.5, 0.02, 0.98),
}


def width(gap: Gap, delta: float) -> float:
    """Return the range's width in points, `delta` an end."""
    return 100.0 * (gap.at_least.limit(delta) - gap.at_most.limit(delta))


# ---- Gaps of a population ----


def steady_at_any_hypothesis(cells: Cells, delta: float) -> Gap:
    """Stakes of .45 at most, whatever the hypothesis; a cell's rows at its mean score."""
    block, cell, label = np.nonzero(cells.counts)
    rows = cells.counts[block, cell, label]
    score = cells.sums[block, cell, label] / 2.0**30 / rows
    stakes = steady_bet_sizes(cells.block_rows, cells.variances.sum(axis=1), delta, 0.45)

    def log_e(mean: float, side: float) -> float:
        return log_mean_exp([rows @ np.log1p(k[block] * side * (label - score - mean)) for k in stakes])

    return Gap.of(log_e)


def groups(sets: int) -> Iterator[str]:
    """Yield rows of the table: a group of few rows, by itself and as one of sixty."""
    yield "| scores | rows | delta | before | now | ratio |\n|---|---|---|---|---|---|"
    for name, draw in SCORES.items():
        for n in (20, 50, 100, 300, 1000, 5000):
            for delta in DELTAS:
                found = []
                for k in range(sets):
                    rng = np.random.default_rng([1, n, k])
                    p = draw(rng, n)
                    cells = everyone(cal.predictions(rng.uniform(size=n) < p, p), k).cells
                    found.append([width(of(cells, delta), delta) for of in (steady_at_any_hypothesis, gap_evidence)])
                yield line(name, f"{n:,}", f"{delta:.4f}", *np.mean(found, axis=0))


# ---- Gaps of clusters ----

TAIL = ([1, 2, 5, 20, 100], [0.5, 0.25, 0.15, 0.09, 0.01])


@dataclass(frozen=True)
class Sizes:
    """How many rows clusters have."""

    name: str
    draw: Callable[[np.random.Generator, int], NDArray[np.int64]]


SIZES = (
    Sizes("5 rows each", lambda _, m: np.full(m, 5)),
    Sizes("heavy-tailed, 1 to 100", lambda rng, m: rng.choice(TAIL[0], m, p=TAIL[1])),
    Sizes("Pareto, mean 5", lambda rng, m: 1 + np.minimum(3.0 * rng.pareto(1.5, m), 50.0 * m).astype(np.int64)),
    Sizes("one of a fifth of all rows", lambda _, m: np.append(np.full(m - 1, 5), max(5 * m // 4, 5))),
)


def left_to_bet_on(clusters: Clusters, delta: float) -> Gap:
    """Bets that are the best on the clusters left, three of them, which count nothing where they could lose all."""
    gain, largest = residuals(clusters), clusters.largest
    bets = np.zeros((3, clusters.count))
    past = clusters.block == 0
    for block in range(1, BLOCKS + 1):
        here, left = clusters.block == block, int(np.count_nonzero(clusters.certified & ~past))
        g, size = gain[past], clusters.size[past]
        soft = float(clusters.squares[past].mean()) if len(g) else largest**2
        square = float(((g - g.sum() / max(size.sum(), 1e-300) * size) ** 2).sum()) + SOFT * soft
        best = np.sqrt(-2.0 * np.log(delta) * (len(g) + 1) / (max(left, 1) * square))
        bets[:, here] = np.minimum(best * np.array([0.5, 1.0, 2.0]), np.array([0.45, 0.75, 0.95]) / largest)[:, None]
        past = past | here
    own = clusters.certified
    bets, gain, size = bets[:, own], gain[own], clusters.size[own]

    def log_e(mean: float, side: float) -> float:
        sound = bets.max(axis=1) * largest * (1.0 + side * mean) < 1.0
        logs = np.full(3, -np.inf)
        logs[sound] = np.log1p(bets[sound] * side * (gain - mean * size)).sum(axis=1)
        return log_mean_exp(logs, np.array([0.25, 0.5, 0.25]))

    return Gap.of(log_e)


def clustered(sizes: Sizes, m: int, seed: int, correlation: float = 0.3) -> Clusters:
    """Clusters whose outcomes have a Gaussian copula, of calibrated scores."""
    rng = np.random.default_rng([2, m, seed])
    cluster = np.repeat(np.arange(m), rng.permutation(sizes.draw(rng, m)))
    p = rng.integers(2, 19, len(cluster)) / 20
    latent = np.sqrt(correlation) * rng.normal(size=m)[cluster]
    y = ndtr(latent + np.sqrt(1.0 - correlation) * rng.normal(size=len(cluster))) < p
    found = everyone(cal.predictions(y, p, cluster=cluster), seed).clusters
    assert found is not None
    return found


def clusters(sets: int) -> Iterator[str]:
    """Yield rows of the table, beside the normal interval of all clusters as they are, pilot ones included."""
    yield "| clusters | number | before | now | ratio | normal | now, of normal |\n|---|---|---|---|---|---|---|"
    for sizes in SIZES:
        for m in (20, 100, 300, 1000, 3000, 10_000):
            found = []
            for k in range(sets if m < 10_000 else max(sets // 4, 2)):
                q = clustered(sizes, m, k)
                sums = np.bincount(q.cluster, q.y - q.p)
                normal = 200.0 * 1.959964 * np.sqrt((sums**2).sum()) / len(q.p)
                found.append([*(width(of(q, 0.025), 0.025) for of in (left_to_bet_on, gap_of)), normal])
            before, now, normal = np.mean(found, axis=0)
            cells = (f"{before:.2f}", f"{now:.2f}", f"{now / before:.2f}", f"{normal:.2f}", f"{now / normal:.2f}")
            yield f"| {sizes.name} | {m:,} | {' | '.join(cells)} |"


def line(*cells: object) -> str:
    """Return a line of a table whose last two cells are numbers, and their ratio."""
    *first, before, now = cells
    return f"| {' | '.join(map(str, first))} | {before:.2f} | {now:.2f} | {now / before:.2f} |"  # type: ignore[str-format]


PARTS = {"groups": groups, "clusters": clusters}

if __name__ == "__main__":
    chosen = [a for a in sys.argv[1:] if a in PARTS] or list(PARTS)
    many = next((int(a) for a in sys.argv[1:] if a.isdigit()), 20)
    for part in chosen:
        print(f"\n{part}\n")
        for text in PARTS[part](many):
            print(text, flush=True)
