"""Made-up data behind the estimates of the first screen: intervals that may cover, and one group that is off."""

from __future__ import annotations

from typing import Any

import numpy as np

import calibrant as cal
from calibrant.report.findings import by_evidence
from calibrant.stats.measures import Weighed, WeighedByClusters
from calibrant.views.population import Estimated

SHAPES = {"beta(2, 5)": (2.0, 5.0), "beta(1, 49)": (1.0, 49.0), "beta(9, 1)": (9.0, 1.0)}
EXPECTED = (10, 20, 50, 200)  # events, or non-events where these are fewer
ALPHA, CLUSTER, ERRORS = 0.05, 4, 5.0


def outcomes(rng: np.random.Generator, rate: Any, cluster: Any) -> Any:
    """Draw labels at these rates; rows of one cluster share a normal number, with a correlation of a half."""
    from scipy.special import ndtri
    from scipy.stats import norm

    own = rng.normal(size=len(rate))
    if cluster is not None:
        own = np.sqrt(0.5) * rng.normal(size=int(cluster.max()) + 1)[cluster] + np.sqrt(0.5) * own
    return (norm.cdf(own) < rate).astype(np.float64) if cluster is None else (own < ndtri(rate)).astype(np.float64)


def covered(shape: tuple[float, float], expected: int, clustered: bool, off: float, sets: int) -> tuple[float, float]:
    """How often the intervals of the gap, and of observed over expected, hold the truth, over new scores and labels."""
    rng, share = np.random.default_rng([expected, clustered, int(10 * off), int(shape[1])]), shape[0] / sum(shape)
    n = round(expected / min(share * off, 1.0 - share * off))
    hits = np.zeros(2)
    for _ in range(sets):
        p = rng.beta(*shape, n)
        cluster = np.sort(rng.integers(0, max(n // CLUSTER, 2), n)) if clustered else None
        rate = np.clip(off * p, 0.0, 1.0)
        y, ones = outcomes(rng, rate, cluster), np.ones(n)
        weighed = Weighed(y, ones, ones) if cluster is None else WeighedByClusters(y, ones, ones, cluster)
        of = Estimated(None, p, weighed)  # type: ignore[arg-type]  # whose population only the error reads
        gap, ratio = of.gap(ALPHA), of.observed_expected(ALPHA)
        # Scores are given: the truth is of these rows, or of all rows like these where clusters are drawn.
        truth = rate.mean() - p.mean()
        hits += gap.low <= truth <= gap.high, ratio is None or ratio.low <= rate.mean() / p.mean() <= ratio.high
    return float(hits[0] / sets), float(hits[1] / sets)


def planted(seed: int) -> tuple[dict[str, Any], str, bool]:
    """A made-up log in which one group is off by five standard errors, and the name of that group."""
    rng = np.random.default_rng([seed, 0xE71D])
    n, k, clustered = int(rng.integers(2_000, 20_001)), int(rng.integers(5, 26)), bool(rng.integers(0, 2))
    p = rng.beta(*list(SHAPES.values())[int(rng.integers(0, 2))], n)
    cluster = rng.integers(0, n // CLUSTER, n) if clustered else None
    group = rng.choice(k, n, p=rng.dirichlet(np.full(k, 2.0)))
    few = [min(p[group == g].sum(), (1.0 - p[group == g]).sum()) for g in range(k)]
    if max(few) < 10.0:
        return planted(seed + 100_000)
    worst = int(rng.choice(np.flatnonzero(np.array(few) >= 10.0)))
    here = group == worst
    variance = float((p[here] * (1.0 - p[here])).sum())
    if cluster is not None:  # rows of one cluster are correlated by less than a half
        sizes = np.bincount(cluster[here]).astype(float)
        variance *= 1.0 + 0.4 * float((sizes**2).sum() / sizes.sum() - 1.0)
    error = ERRORS * np.sqrt(variance) / here.sum()
    low, high = 0.0, 1.0  # of the share by which rates go from the score towards one
    for _ in range(40):
        share = (low + high) / 2.0
        low, high = (share, high) if (share * (1.0 - p[here])).mean() < error else (low, share)
    rate = np.where(here, p + low * (1.0 - p), p)
    y = outcomes(rng, rate, cluster)
    data = {"y": y.astype(int), "p": p, "site": [f"s{g:02d}" for g in group]}
    data["ward"] = [f"w{g}" for g in rng.integers(0, 4, n)]
    return data | ({"unit": cluster} if clustered else {}), f"s{worst:02d}", clustered


def first(seed: int) -> bool:
    """Whether the group that is off stands first by evidence."""
    data, worst, clustered = planted(seed)
    unit = "unit" if clustered else None
    record = cal.audit(data, label="y", score="p", by=["site", "ward"], limit=0.05, quick=True, cluster=unit)
    return by_evidence(record.groups)[0].variables == (("site", worst),)
