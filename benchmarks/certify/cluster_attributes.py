"""Coverage and width along a variable and in pockets, where rows come in units or carry weights.

    python benchmarks/certify/cluster_attributes.py [SETS | --full]       # one line of JSON a design
    python benchmarks/certify/cluster_attributes.py table < FILE          # what was printed, as a table

Every end is asked for at 95 %, one-sided. The variable is the site of each unit; pockets are boxes of one or two of
site, score and a trait that differs within units, with a tenth of the rows or more. Truths are formulas: along the
site with the weights that the certificate took, in pockets about the people in the data, found out where an end can be
wrong and in one data set of ten: their column "truth" is the mean of these data sets alone. Beside the certificates
stand the same rows taken as independent and of equal weight, and the percentiles of 200 bootstraps of whole units, of
that one of ten too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import binom

import calibrant as cal
from calibrant.views.boxes import Tables, boxed, tables_of
from calibrant.views.people import people_of

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from validity.site_designs import HARD, OFF, Sites, inside, worst

SETS, FULL = 20, 1000
SOME = 10  # of so many data sets one is given to the other methods
BOOTSTRAPS = 200
KINDS = ("clusters", "rows", "bootstrap")
ENDS = 0.1  # two-sided, so that each end is wrong with probability at most half of it
LARGE = 0.1  # of the rows, that a pocket has at least

Ends = tuple[float, float]


class Drawn:
    """One data set, its boxes and what is true of them."""

    def __init__(self, design: Sites, seed: int) -> None:
        rng = np.random.default_rng([26, seed])
        self.data, self.eta = design.drawn(rng)
        self.times = rng
        self.cluster = np.arange(self.data.n) if self.data.cluster is None else np.asarray(self.data.cluster)
        self.weight = np.ones(self.data.n) if self.data.weights is None else np.asarray(self.data.weights)

    def boxes(self, data: cal.Predictions) -> np.ndarray:
        """Return which rows lie in each pocket that is looked at, given units or not."""
        tables: Tables = tables_of(data, None, 2, 0)
        family = boxed(data, tables).ranges(LARGE).family
        assert tables.sample_rows is not None
        return inside(family, tables.sample_rows.cells)

    def resampled(self, sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Return sums over sums of weights, of bootstraps of units, given those of each unit."""
        count = len(sums)
        times = self.times.multinomial(count, np.full(count, 1.0 / count), BOOTSTRAPS)
        return (times @ sums) / np.maximum(times @ mass, 1e-9)

    def by_cluster(self, values: np.ndarray) -> np.ndarray:
        """Return sums over the rows of each unit, which lie together."""
        return np.add.reduceat(values, np.flatnonzero(np.diff(self.cluster, prepend=-1)), axis=0)


def variable(d: Drawn, design: Sites, others: bool) -> dict[str, tuple[Ends, float]]:
    """Return the ends of the error along the site by each method, and the truth."""
    found = cal.certify.variable(d.data, "site", alpha=ENDS)
    out = {
        "clusters": (
            (found.interval.low, found.interval.high),
            design.by_variable(float(found.settings["largest_cluster"])),
        )
    }
    if others:
        rows = cal.certify.variable(people_of(d.data).alone, "site", alpha=ENDS).interval
        site = np.unique(d.data.covariates.column("site"), return_inverse=True)[1]
        cells = (site[:, None] == np.arange(site.max() + 1)) * d.weight[:, None]
        sums = d.by_cluster(cells * (d.data.y - d.data.p)[:, None])
        drawn = np.abs(d.resampled(sums, d.by_cluster(d.weight)[:, None])).sum(axis=1)
        low, high = np.quantile(drawn, [ENDS / 2, 1 - ENDS / 2])
        out |= {"rows": ((rows.low, rows.high), design.by_variable()), "bootstrap": ((low, high), design.by_variable())}
    return out


def subgroups(d: Drawn, _: Sites, others: bool) -> dict[str, tuple[Ends, float]]:
    """Return the ends of the worst gap of any pocket by each method, and the truth."""
    low, high = _worst(d.data)
    if not others and low == 0.0 and high >= np.abs(d.eta - d.data.p).max():  # neither end can be wrong
        return {"clusters": ((low, high), np.nan)}
    boxes = d.boxes(d.data)
    truth = float(worst(boxes, d.weight, d.eta - d.data.p))
    out = {"clusters": ((low, high), truth)}
    if others:
        same = people_of(d.data).alone
        out["rows"] = _worst(same), float(worst(d.boxes(same), d.weight, d.eta - d.data.p))
        of = boxes.T * d.weight[:, None]
        drawn = d.resampled(d.by_cluster(of * (d.data.y - d.data.p)[:, None]), d.by_cluster(of))
        low, high = np.quantile(np.abs(drawn).max(axis=1), [ENDS / 2, 1 - ENDS / 2])
        out["bootstrap"] = (float(low), float(high)), truth
    return out


def _worst(data: cal.Predictions) -> Ends:
    ends = cal.certify.subgroups(data, min_size=LARGE, clear_size=LARGE, alpha=ENDS).interval
    return ends.low, ends.high


CERTIFIED = {"variable": variable, "subgroups": subgroups}


def measured(design: Sites, sets: int) -> Iterator[dict[str, object]]:
    """Yield misses and mean ends of each certificate."""
    wrong = {c: {k: np.zeros(2, dtype=int) for k in KINDS} for c in CERTIFIED}
    at = {c: {k: np.zeros(2) for k in KINDS} for c in CERTIFIED}
    truths: dict[str, list[float]] = {c: [] for c in CERTIFIED}
    for seed in range(sets):
        d, others = Drawn(design, seed), seed % SOME == 0
        for name, certificate in CERTIFIED.items():
            for kind, ((low, high), true) in certificate(d, design, others).items():
                wrong[name][kind] += [low > true + 1e-8, high < true - 1e-8]
                at[name][kind] += np.array([low, high])
                if kind == "clusters":
                    truths[name].append(true)
    for name in CERTIFIED:
        of = {k: sets if k == "clusters" else -(-sets // SOME) for k in KINDS}
        yield {
            "certificate": name,
            "sets": of,
            "truth": round(float(np.nanmean(truths[name])), 5),
            "misses": {k: v.tolist() for k, v in wrong[name].items()},
            "ends": {k: [round(float(x), 5) for x in at[name][k] / of[k]] for k in KINDS},
            "accepted": all(binom.sf(w - 1, sets, ENDS / 2) >= 1e-6 for w in wrong[name]["clusters"]),
        }


def table(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table of what was printed: of each certificate, one design after the other."""
    every = [json.loads(text) for text in lines]
    for name in CERTIFIED:
        yield f"| {name}: design | truth | ends: {' | '.join(KINDS)} | wrong ends: {' | '.join(KINDS)} |"
        yield "|---|---|---|---|---|---|---|---|"
        for d in (e for e in every if e["certificate"] == name):
            ends = ("{:.1f} to {:.1f}".format(*(100 * x for x in d["ends"][k])) for k in KINDS)
            wrong = (", ".join(f"{w / d['sets'][k]:.3f}" for w in d["misses"][k]) for k in KINDS)
            off = ", off" if d["off"] else ""
            yield f"| {d['design']}{off} | {100 * d['truth']:.1f} | {' | '.join(ends)} | {' | '.join(wrong)} |"
        yield ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["table"]:
        print("\n".join(table(iter(sys.stdin))))
        sys.exit()
    sets = FULL if "--full" in sys.argv else int(sys.argv[1]) if len(sys.argv) > 1 else SETS
    for off in (0.0, OFF):
        for label, design in HARD.items():
            for line in measured(replace(design, off=off), sets):
                print(json.dumps({"design": label, "off": off > 0.0} | line), flush=True)
