"""Widths by today's stakes and by earlier ones, on one data set: ``python benchmarks/certify/stakes.py [PART] [SETS]``.

Parts: ``groups`` (gaps of a population of few rows), ``clusters``, ``shift`` (the overall shift beside a variable's
error), ``upper`` (Theorem U) and ``misses`` (how often each is wrong, where it is hardest, in SETS data sets). What it
prints are tables in Markdown, kept in ``stakes.md``: mean widths, or ends, in points, of calibrated scores unless the
design says otherwise. Earlier stakes are written out here, so that one run has both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

import calibrant as cal
from calibrant.stats import variable
from calibrant.stats.betting import Above, gammas, steady_bet_sizes
from calibrant.stats.bounds import gap_evidence, linear_cost, penalty_cost, product_evidence
from calibrant.stats.cells import Cells
from calibrant.stats.clusters.bounds import BLOCKS, SOFT, gap_of, residuals
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.evidence import Gap, log_mean_exp
from calibrant.stats.variable import RowLedger
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
    yield head("scores", "rows", "delta", "before", "now", "ratio")
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
    yield head("clusters", "number", "before", "now", "ratio", "normal", "now, of normal")
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


# ---- The overall shift beside a variable's error ----


def five_stakes(ledger: RowLedger, _: float) -> Gap:
    """A mean of five stakes of a standard deviation of one half, doubled each time."""
    kappas = np.minimum(np.array([0.5, 1.0, 2.0, 4.0, 8.0]) / (0.5 * np.sqrt(len(ledger.residual))), 0.45)
    return Gap.of(lambda m, sign: log_mean_exp([np.log1p(sign * k * (ledger.residual - m)).sum() for k in kappas]))


def dealt(rng: np.random.Generator, residual: Floats) -> RowLedger:
    """Rows in twenty cells and eight blocks."""
    n = len(residual)
    return RowLedger(residual, rng.integers(0, 20, n).astype(np.int32), rng.integers(0, 8, n).astype(np.uint8), 20, 8)


def shift(sets: int) -> Iterator[str]:
    """Yield rows of the table, beside the normal interval."""
    yield head("scores", "rows", "before, of normal", "now, of normal", "ratio")
    for name, draw in SCORES.items():
        for n in (50, 300, 1000, 5000, 20_000):
            found = []
            for k in range(sets):
                rng = np.random.default_rng([3, n, k])
                p = draw(rng, n)
                rows, normal = dealt(rng, (rng.uniform(size=n) < p) - p), 1.959964 * np.sqrt((p * (1 - p)).sum()) / n
                found.append(
                    [width(of(rows, 0.025), 0.025) / (200.0 * normal) for of in (five_stakes, variable.gap_evidence)]
                )
            yield line(name, f"{n:,}", *np.mean(found, axis=0))


# ---- Theorem U ----

CENTS = (np.arange(100) + 0.5) / 100.0
RARE, RARER = np.round(
    np.quantile(np.random.default_rng(0).beta(0.5, [[30.0], [250.0]], (2, 40_000)), CENTS, axis=1), 3
).T
LEVELS: dict[str, tuple[Floats, Floats]] = {  # scores, equally likely, and event rates
    "100 values": (CENTS, CENTS),
    "10 values": (CENTS[5::10], CENTS[5::10]),
    "one value, .3": (np.full(1, 0.3), np.full(1, 0.3)),
    "sharp": (np.array([0.02, 0.98]), np.array([0.02, 0.98])),
    "1.6 % events": (RARE, RARE),
    ".2 % events": (RARER, RARER),
    "100 values, 3 points off in turn": (CENTS, np.clip(CENTS + 0.03 * np.where(np.arange(100) % 2, 1, -1), 0, 1)),
    "100 values, 5 points off": (CENTS, np.clip(CENTS + 0.05, 0, 1)),
    "1.6 % events, half again as many": (RARE, 1.5 * RARE),
    ".2 % events, twice as many": (RARER, 2.0 * RARER),
    "sharp, 20 points off": (np.array([0.02, 0.98]), np.array([0.22, 0.78])),
    "nearly sure, 20 points off": (np.array([0.001, 0.999]), np.array([0.201, 0.799])),
}


def tables(name: str, n: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Scores, rows and events of a sample."""
    rng = np.random.default_rng([4, n, seed])
    s, rate = LEVELS[name]
    rows = rng.multinomial(n, np.full(len(s), 1.0 / len(s)))
    return s, rows.astype(float), rng.binomial(rows, rate).astype(float)


def products(s: Floats, n: Floats, k: Floats, gamma: Floats, weights: Floats) -> Above:
    """Theorem U by bets that the number of rows chooses."""
    kept = n > 0
    s, n, k = s[kept], n[kept], k[kept]
    linear = linear_cost(s, n, k, gamma[:, None])
    notch, better = penalty_cost(s, n, k, gamma[:, None])
    both = np.stack([linear.sum(axis=1), np.where(better, notch, linear).sum(axis=1)], axis=1)
    return Above(both.ravel(), np.repeat(gamma, 2), weights, int(n.sum()))


def eight_alike(s: Floats, n: Floats, k: Floats) -> Above:
    """Four bets and both forms, an eighth each."""
    return products(s, n, k, gammas(int(n.sum())), np.full(8, 1 / 8))


def five_alone(s: Floats, n: Floats, k: Floats) -> Above:
    """One bet with the notch; a billionth for the linear form."""
    return products(s, n, k, gammas(int(n.sum()))[:1], np.array([1e-9, 1.0 - 1e-9]))


def upper(sets: int) -> Iterator[str]:
    """Yield rows of the table: upper ends."""
    yield head("scores", "rows", "delta", "before", "one bet of 5, of before", "now", "of before")
    for name in LEVELS:
        for n in (500, 1000, 5000, 50_000):
            many = [tables(name, n, k) for k in range(sets)]
            for delta in DELTAS:
                ends = [[of(*one).limit(delta) for of in (eight_alike, five_alone, product_evidence)] for one in many]
                before, alone, now = 100.0 * np.mean(ends, axis=0)
                cells = f"{before:.2f} | {alone / before:.2f} | {now:.2f} | {now / before:.3f}"
                yield f"| {name} | {n:,} | {delta:.4f} | {cells} |"


# ---- How often each is wrong ----

ALPHA = 0.1  # an end; so large that what is too short shows


def gap_missed(name: str, n: int, seed: int) -> list[bool]:
    """Whether the ends of a population's gap miss it: scores below their median are ten points low, others high."""
    rng = np.random.default_rng([5, n, seed])
    p, (middle, truth) = SCORES[name](rng, n), halves(name)
    cells = everyone(cal.predictions(rng.uniform(size=n) < moved(p, middle), p), seed).cells
    gap = gap_evidence(cells, ALPHA)
    return [gap.at_most.limit(ALPHA) > truth + 2e-4, gap.at_least.limit(ALPHA) < truth - 2e-4]  # the truth's own error


def moved(p: Floats, middle: float) -> Floats:
    """Rates ten points above scores below the middle, and ten below the others."""
    return np.clip(p + np.where(p < middle, 0.1, -0.1), 0.0, 1.0)


@cache
def halves(name: str) -> tuple[float, float]:
    """The mean of scores, and their gap; by four million of them."""
    p = SCORES[name](np.random.default_rng(0), 4_000_000)
    middle = float(p.mean())
    return middle, float((moved(p, middle) - p).mean())


def tied_missed(law: str, m: int, seed: int) -> list[bool]:
    """Whether the ends of a gap of clusters of one fate miss it, where large ones have more events."""
    size, chance, rate = TIED[law]
    rng = np.random.default_rng([6, m, seed])
    kind = rng.choice(len(size), m, p=chance)
    cluster = np.repeat(np.arange(m), size[kind])
    y = (rng.uniform(size=m) < rate[kind])[cluster]
    identities = rng.integers(0, 2**63, m, dtype=np.uint64)
    q = Clusters.hash_split(cluster, np.full(len(y), 0.3), y.astype(np.int8), np.ones(len(y)), identities)
    gap, weight = gap_of(q, ALPHA), chance * np.minimum(size, q.largest)
    truth = float(weight @ (rate - 0.3) / weight.sum())
    return [gap.at_most.limit(ALPHA) > truth, gap.at_least.limit(ALPHA) < truth]


TIED = {  # sizes, their probabilities, event rates
    "1 to 100 rows": tuple(map(np.array, (TAIL[0], TAIL[1], [0.2, 0.25, 0.3, 0.4, 0.7]))),
    "one in fifty of 1,000 rows": (np.array([1, 1000]), np.array([0.98, 0.02]), np.array([0.25, 0.6])),
    "5 rows": (np.array([5]), np.array([1.0]), np.array([0.3])),
}


def shift_missed(name: str, n: int, seed: int) -> list[bool]:
    """Whether the ends of the overall shift miss none, of a calibrated score."""
    rng = np.random.default_rng([7, n, seed])
    p = SCORES[name](rng, n)
    gap = variable.gap_evidence(dealt(rng, (rng.uniform(size=n) < p) - p), ALPHA)
    return [gap.at_most.limit(ALPHA) > 0.0, gap.at_least.limit(ALPHA) < 0.0]


def upper_missed(name: str, n: int, seed: int) -> list[bool]:
    """Whether Theorem U's end is below the error."""
    s, rate = LEVELS[name]
    return [product_evidence(*tables(name, n, seed)).at(float(np.abs(s - rate).mean())) >= -np.log(ALPHA)]


HARDEST: tuple[tuple[str, Callable[[str, int, int], list[bool]], Sequence[str], tuple[int, ...]], ...] = (
    ("gap of a population", gap_missed, ("uniform", "1.5 % events", "sharp"), (20, 100, 1000)),
    ("gap of clusters", tied_missed, tuple(TIED), (20, 100, 1000)),
    ("overall shift", shift_missed, ("uniform", ".2 % events", "sharp"), (20, 100, 1000)),
    ("Theorem U", upper_missed, ("one value, .3", "sharp", ".2 % events, twice as many"), (100, 1000, 20_000)),
)


def misses(sets: int) -> Iterator[str]:
    """Yield rows of the table: rates of wrong ends, and the probability of as many at the rate that is allowed."""
    yield head("end", "design", "rows or clusters", "data sets", "wrong, low or high", "allowed", "p")
    for end, of, names, sizes in HARDEST:
        for name in names:
            for n in sizes:
                wrong = np.sum([of(name, n, k) for k in range(sets)], axis=0)
                p = min(float(binom.sf(w - 1, sets, ALPHA)) for w in wrong)
                rates = ", ".join(f"{w / sets:.3f}" for w in wrong)
                yield f"| {end} | {name} | {n:,} | {sets:,} | {rates} | {ALPHA} | {p:.2g} |"


def head(*names: str) -> str:
    """Return the head of a table."""
    return f"| {' | '.join(names)} |\n{'|---' * len(names)}|"


def line(*cells: object) -> str:
    """Return a line of a table whose last two cells are numbers, and their ratio."""
    *first, before, now = cells
    return f"| {' | '.join(map(str, first))} | {before:.2f} | {now:.2f} | {now / before:.2f} |"  # type: ignore[str-format]


PARTS = {"groups": groups, "clusters": clusters, "shift": shift, "upper": upper, "misses": misses}

if __name__ == "__main__":
    chosen = [a for a in sys.argv[1:] if a in PARTS] or list(PARTS)
    many = next((int(a) for a in sys.argv[1:] if a.isdigit()), 20)
    for part in chosen:
        print(f"\n{part}\n")
        for text in PARTS[part](many):
            print(text, flush=True)
