"""Coverage of the mean over sites and of a new site's prediction interval.

Without arguments 150 data sets a design; `--full` draws 300, and designs of 100 sites too. Prints the table of
docs/covariates.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from scipy.special import expit, logit

from calibrant.stats.clusters.sites import Likelihoods, fitted

MEAN, ALPHA, SPREAD = 0.2, 0.05, 0.7
UNEQUAL = (20, 50, 2000)
Design = tuple[int, tuple[int, ...], float, float]


def designs(full: bool) -> Iterator[Design]:
    """Yield sites, their sizes, tau and the event rate at the middle score."""
    for k in (5, 20, 100) if full else (5, 20):
        for sizes, rate in (((20,), 0.1), ((20,), 0.5), ((200,), 0.02), ((200,), 0.5), (UNEQUAL, 0.02), (UNEQUAL, 0.2)):
            for tau in (0.0, 0.2, 0.5):
                yield k, sizes, rate, tau


def drawn(design: Design, rng: np.random.Generator) -> tuple[Likelihoods, float]:
    """Return the likelihoods of one data set, and a new site's shift."""
    k, sizes, rate, tau = design
    site = np.repeat(np.arange(k), rng.choice(sizes, k))
    x = logit(rate) + rng.normal(0.0, SPREAD, len(site))
    gap = rng.normal(MEAN, tau, k)
    y = (rng.random(len(site)) < expit(x + gap[site])).astype(float)
    return Likelihoods(site, x, y, k), rng.normal(MEAN, tau)


def line(design: Design, runs: int) -> str:
    """Return a line of the table."""
    rng, k = np.random.default_rng(7), design[0]
    found = []
    for _ in range(runs):
        sites, new = drawn(design, rng)
        if min((sites.events > 0).sum(), (sites.events < sites.rows).sum()) < 3:
            continue
        fit = fitted(sites, ALPHA)
        found.append((fit.low <= MEAN <= fit.high, fit.new_low <= new <= fit.new_high, fit.tau))
    mean, new_site, tau = np.mean(found, axis=0)
    size = str(design[1][0]) if len(design[1]) == 1 else "20, 50 or 2,000"
    reported = f"| {k} | {size} | {design[2]} | {design[3]} | {mean:.3f} | {new_site:.3f} | {tau:.2f} |"
    return reported if len(found) == runs else f"{reported[:-1]}({runs - len(found)} of {runs} refused) |"


if __name__ == "__main__":
    full = "--full" in sys.argv
    print("| sites | rows each | rate | tau | mean | new site | tau found |\n|---|---|---|---|---|---|---|")
    for one in designs(full):
        print(line(one, 300 if full else 150), flush=True)
