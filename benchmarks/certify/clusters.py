"""Coverage and width with clusters or weights: ``python benchmarks/certify/clusters.py [SETS | --full]``,
and what it prints as a table by ``... table < FILE``. ``... distance [SETS | --full]`` does the same of the distance
from calibration, by units and by rows, with a few designs more; ``... distance alone`` compares high ends of the
distance of independent rows, certified as such and as units by themselves.

Every end is asked for at 95 %, one-sided (both ends of the gap at 2.5 %), of a score of 19 values. The truth is a
formula, also of the weights that the certificate took (``min(1, M / W)`` of each unit). Beside it stand, for one set
in five, the same rows taken as independent and of equal weight, and the percentiles of 200 bootstraps of whole units.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.special import ndtr
from scipy.stats import binom

import calibrant as cal
from calibrant.certify.whole import distance_certificate
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.clusters.distance import distance_above
from calibrant.views.people import people_of
from calibrant.views.population import SCALE, Population
from calibrant.views.sample import everyone

SETS, FULL = 40, 1000
SOME = 5  # of so many data sets one is given to the other methods
SELDOM = 20  # the same of the distance; the high end of units, too, is solved for so seldom
BOOTSTRAPS = 200
ALONE = 5  # data sets of independent rows
LAWS = {
    "calibrated": lambda p: p,
    "at the ends": lambda p: p,
    "ten points high": lambda p: np.minimum(p + 0.1, 1.0),
    "squares": lambda p: p**2,
}
KINDS = ("clusters", "rows", "bootstrap")
GRID = 1e-6  # to which the linear programme is solved
USUAL = np.arange(1, 20) / 20.0
RARE = np.array([0.002, 0.005, 0.01, 0.02, 0.04])
MIXED = (1, 2, 5, 10, 20, 50, 100, 200)


@dataclass(frozen=True)
class Design:
    """Units with a Gaussian copula within them.

    Parameters
    ----------
    name : str
    clusters : int
    sizes : tuple of int
        Equally likely.
    intraclass_correlation : float
        Correlation of the latent normal numbers of one unit.
    off : float
        The rate is so much above the score at every second value, and below it at the others.
    large : float
        The rate of units above the median size is higher by so much, that of the others lower.
    weights : float
        Coefficient of variation of log-normal weights, one a row; 0 for none.
    scores : tuple of float
    """

    name: str
    clusters: int
    sizes: tuple[int, ...] = (1,)
    intraclass_correlation: float = 0.0
    off: float = 0.0
    large: float = 0.0
    weights: float = 0.0
    scores: tuple[float, ...] = tuple(USUAL.tolist())

    @property
    def p(self) -> np.ndarray:
        return np.array(self.scores)

    def rates(self, size: np.ndarray) -> np.ndarray:
        """Return the event rate by size and score, shape (sizes, scores)."""
        signs = np.where(np.arange(len(self.scores)) % 2, -1.0, 1.0)
        tilt = np.where(size > np.median(self.sizes), self.large, -self.large) if self.large else 0.0 * size
        return np.clip(self.p + self.off * np.minimum(self.p, 1 - self.p) * signs + tilt[:, None], 0.0, 1.0)

    def drawn(self, rng: np.random.Generator) -> cal.Predictions:
        """Return one data set."""
        size = rng.choice(self.sizes, self.clusters)
        cluster_code = np.repeat(np.arange(self.clusters), size)
        value = rng.integers(0, len(self.scores), len(cluster_code))
        latent = np.sqrt(self.intraclass_correlation) * rng.normal(size=self.clusters)[cluster_code]
        latent = latent + np.sqrt(1.0 - self.intraclass_correlation) * rng.normal(size=len(cluster_code))
        y = ndtr(latent) < self.rates(size)[cluster_code, value]
        spread = np.sqrt(np.log1p(self.weights**2))
        weights = rng.lognormal(0.0, spread, len(cluster_code)) if self.weights else None
        return cal.predictions(y, self.p[value], weights=weights, cluster=cluster_code if max(self.sizes) > 1 else None)

    def truth(self, largest: float) -> tuple[float, float]:
        """Return error and gap where a unit weighs at most `largest`; weights have nothing to do with outcomes."""
        size = np.array(self.sizes)
        each = size if self.weights else np.minimum(size, largest)
        gaps = (each @ (self.rates(size) - self.p)) / each.sum()
        return float(np.abs(gaps).mean()), float(gaps.mean())

    def distance(self, largest: float) -> float:
        """Return the distance from calibration where a unit weighs at most `largest`."""
        size = np.array(self.sizes)
        each = size if self.weights else np.minimum(size, largest)
        return least_moved(self.scores, tuple(np.round((each @ self.rates(size)) / each.sum(), 12)))


@lru_cache(maxsize=1000)
def least_moved(scores: tuple[float, ...], rates: tuple[float, ...]) -> float:
    """Return the least ``E|p - u|`` over calibrated u, by a linear programme over (p, y, u).

    Of u in steps of 1/400, of scores and of rates: of others it could be a little less.
    """
    v, r = np.array(scores), np.array(rates)
    u = np.unique(np.concatenate([np.arange(401) / 400.0, v, r]))
    k, m = len(v), len(u)
    cost = np.abs(v[:, None, None] - u) + np.zeros((k, 2, 1))
    marginal = np.kron(np.eye(2 * k), np.ones(m))
    calibrated = np.tile(np.hstack([np.diag(-u), np.diag(1 - u)]), k)
    given = np.append(np.stack([1 - r, r], axis=1).reshape(-1) / k, np.zeros(m))
    equal = csr_array(np.vstack([marginal, calibrated]))
    return float(linprog(cost.reshape(-1), A_eq=equal, b_eq=given, method="highs").fun)


def designs() -> Iterator[Design]:
    """Yield every design, calibrated and off."""
    for off in (0.0, 0.3):
        for cv in (0.5, 2.0) if off else (0.5, 1.0, 2.0):
            yield Design(f"2,000 rows, weights of CV {cv:g}", 2000, off=off, weights=cv)
        for intraclass_correlation in (0.0, 0.9) if off else (0.0, 0.3, 0.9):
            yield Design(
                f"200 units of 10, correlation {intraclass_correlation:g}", 200, (10,), intraclass_correlation, off
            )
        if not off:
            yield Design("40 units of 50, correlation 0.5", 40, (50,), 0.5)
        yield Design("100 units of 1 to 200, correlation 0.3", 100, MIXED, 0.3, off)
        yield Design("200 units of 1 to 20, rates 8 points higher in large ones", 200, MIXED[:5], 0.1, off, 0.04)
        yield Design("400 units of 10, rare events, correlation 0.3", 400, (10,), 0.3, off, scores=tuple(RARE))
        yield Design("200 units of 1 to 20, weights of CV 2, correlation 0.3", 200, MIXED[:5], 0.3, off, weights=2.0)


def designs_of_distance() -> Iterator[Design]:
    """Yield the designs above, and others of few and of many units."""
    yield from designs()
    for off in (0.0, 0.3):
        yield Design("20 units of 20, correlation 0.3", 20, (20,), 0.3, off)
        yield Design("5,000 units of 4, correlation 0.5", 5000, (4,), 0.5, off)
    yield Design("200 units of 1 to 20, rates 20 points higher in large ones", 200, MIXED[:5], 0.1, 0.0, 0.2)


def ends(q: Population) -> tuple[float, float, float, float]:
    """Return the ends of the error, low and high, and of the gap."""
    gap = q.gap(0.025)
    low, high = q.below(0.05, 0).limit(0.05), q.as_it_is().above.limit(0.05)
    return low, high, *gap.limits(0.05)


def bootstrapped(data: cal.Predictions, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Return percentiles of the error and the gap over resampled units."""
    cluster = np.arange(data.n) if data.cluster is None else data.cluster
    weight = np.ones(data.n) if data.weights is None else data.weights
    values, cell = np.unique(data.p, return_inverse=True)
    count = int(cluster.max()) + 1
    at = cluster * len(values) + cell
    sums = np.bincount(at, weight * (data.y - data.p), count * len(values)).reshape(count, -1)
    times = rng.multinomial(count, np.full(count, 1.0 / count), BOOTSTRAPS)
    drawn = (times @ sums) / (times @ np.bincount(cluster, weight, count))[:, None]
    error, gap = np.abs(drawn).sum(axis=1), drawn.sum(axis=1)
    return (*np.quantile(error, [0.05, 0.95]), *np.quantile(gap, [0.025, 0.975]))


def misses(found: tuple[float, ...], error: float, gap: float) -> list[bool]:
    """Tell which ends are wrong."""
    return [found[0] > error, found[1] < error, found[2] > gap, found[3] < gap]


def measured(design: Design, sets: int) -> dict[str, object]:
    """Return misses and mean ends of each method."""
    wrong, at = {k: np.zeros(4, dtype=int) for k in KINDS}, {k: np.zeros(4) for k in KINDS}
    for k in range(sets):
        rng = np.random.default_rng([22, k])
        data = design.drawn(rng)
        q = everyone(data)
        assert q.clusters is not None
        found = {"clusters": ends(q)}
        if k % SOME == 0:
            found |= {"rows": ends(everyone(people_of(data).alone)), "bootstrap": bootstrapped(data, rng)}
        for kind, e in found.items():
            wrong[kind] += misses(e, *design.truth(q.clusters.largest if kind == "clusters" else np.inf))
            at[kind] += np.array(e) / sets * (1 if kind == "clusters" else SOME)
    return {
        "design": design.name,
        "off": design.off > 0,
        "error": design.truth(np.inf)[0],
        "sets": sets,
        "misses": {k: v.tolist() for k, v in wrong.items()},
        "ends": {k: [round(float(x), 5) for x in v] for k, v in at.items()},
    }


def too_low(q: Population, truth: float) -> bool:
    """Tell whether the high end of the distance is below the truth: whether the evidence against the truth suffices."""
    if truth <= GRID:
        return False  # no end is below 0
    assert q.clusters is not None
    return distance_above(q.clusters, q.scores / SCALE).at(truth - GRID) + np.log(0.05) >= 0.0


def distances(design: Design, sets: int) -> dict[str, object]:
    """Return misses of the distance's ends and their means.

    In one set of `SELDOM` both ends are computed, by rows too; in the others the low end, and whether the high one is
    too low.
    """
    wrong, at = {k: np.zeros(2, dtype=int) for k in KINDS[:2]}, {k: np.zeros(2) for k in KINDS[:2]}
    for k in range(sets):
        data = design.drawn(np.random.default_rng([23, k]))
        q = everyone(data)
        assert q.clusters is not None
        truth = design.distance(q.clusters.largest)
        low = distance_certificate(q).below(0.05, 0)
        at["clusters"][0] += low / sets
        wrong["clusters"][0] += low > truth + GRID
        if k % SELDOM:
            wrong["clusters"][1] += too_low(q, truth)
            continue
        high = distance_certificate(q).above(0.05)[0]
        assert (high < truth - GRID) == too_low(q, truth)
        at["clusters"][1] += high / sets * SELDOM
        wrong["clusters"][1] += high < truth - GRID
        rows, truth = everyone(people_of(data).alone), design.distance(np.inf)
        low, high = (distance_certificate(rows).run(spend, 0.95, 0).interval for spend in ((0.05, 0.0), (0.0, 0.05)))
        wrong["rows"] += [low.low > truth + GRID, high.high < truth - GRID]
        at["rows"] += np.array([low.low, high.high]) / sets * SELDOM
    return {
        "design": design.name,
        "off": design.off > 0,
        "error": design.truth(np.inf)[0],
        "distance": design.distance(np.inf),
        "sets": sets,
        "misses": {k: v.tolist() for k, v in wrong.items()},
        "ends": {k: [round(float(x), 5) for x in v] for k, v in at.items()},
    }


def by_themselves() -> Iterator[str]:
    """Yield high ends of the distance of independent rows, by rows and as if each were a unit of its own."""
    for n, law in ((n, law) for n in (1000, 10_000, 100_000) for law in LAWS):
        found = []
        for k in range(ALONE if n < 100_000 else 1):
            rng = np.random.default_rng([24, n, k])
            p = rng.uniform(size=n) if law != "at the ends" else rng.beta(0.3, 0.3, n)
            data = cal.predictions(rng.uniform(size=n) < LAWS[law](p), p)
            rows = distance_certificate(everyone(data)).above(0.05)[0]
            clusters = Clusters.hash_split(np.arange(n), data.p, data.y, np.ones(n), people_of(data).ids(0))
            found.append((rows, distance_above(clusters, np.zeros(0)).limit(0.05)))
        rows, clusters = np.mean(found, axis=0)
        yield json.dumps({"rows": n, "law": law, "by rows": rows, "as units": clusters, "ratio": clusters / rows})


def accepted(found: dict[str, object]) -> bool:
    """Tell whether the misses go with the claimed rates: refuted where their probability is below one in a million."""
    rates = (0.05, 0.05, 0.025, 0.025)
    wrong = found["misses"]["clusters"]
    return all(binom.sf(w - 1, found["sets"], rate) >= 1e-6 for w, rate in zip(wrong, rates[: len(wrong)], strict=True))


def table(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table of what was printed."""
    head = (
        "design",
        "error",
        "high end: " + ", ".join(KINDS),
        "half width of the gap",
        "wrong ends: units",
        *KINDS[1:],
    )
    yield f"| {' | '.join(head)} |"
    yield "|---|---|---|---|---|---|---|"
    for text in lines:
        d = json.loads(text)
        high = ", ".join(f"{100 * d['ends'][k][1]:.1f}" for k in KINDS)
        half = ", ".join(f"{50 * (d['ends'][k][3] - d['ends'][k][2]):.1f}" for k in KINDS)
        sets = [d["sets"], d["sets"] // SOME, d["sets"] // SOME]
        wrong = [", ".join(f"{w / n:.3f}" for w in d["misses"][k]) for k, n in zip(KINDS, sets, strict=True)]
        off = ", off" if d["off"] else ""
        yield f"| {d['design']}{off} | {100 * d['error']:.1f} | {high} | {half} | {' | '.join(wrong)} |"


def table_of_distances(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table of what was printed of distances."""
    head = ("design", "sets", "error", "distance", "low end: units, rows", "high end: units, rows")
    yield f"| {' | '.join((*head, 'wrong ends: units', 'rows'))} |"
    yield "|---|---|---|---|---|---|---|---|"
    for text in lines:
        d = json.loads(text)
        low, high = (", ".join(f"{100 * d['ends'][k][i]:.1f}" for k in KINDS[:2]) for i in (0, 1))
        sets = [d["sets"], -(-d["sets"] // SELDOM)]
        wrong = [", ".join(f"{w / n:.3f}" for w in d["misses"][k]) for k, n in zip(KINDS[:2], sets, strict=True)]
        truth = f"{100 * d['error']:.1f} | {100 * d['distance']:.1f}"
        off = ", off" if d["off"] else ""
        yield f"| {d['design']}{off} | {d['sets']} | {truth} | {low} | {high} | {' | '.join(wrong)} |"


if __name__ == "__main__":
    requested, apart = sys.argv[1:], "distance" in sys.argv
    if "table" in requested:
        print("\n".join((table_of_distances if apart else table)(iter(sys.stdin))))
        sys.exit()
    if "alone" in requested:
        for one in by_themselves():
            print(one, flush=True)
        sys.exit()
    sets = FULL if "--full" in requested else next((int(a) for a in requested if a.isdigit()), SETS)
    for one in designs_of_distance() if apart else designs():
        line = (distances if apart else measured)(one, sets)
        line["accepted"] = accepted(line)
        print(json.dumps(line), flush=True)
