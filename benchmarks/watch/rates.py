"""How often a monitor is wrong over three years: alarms, and ranges that miss the truth, on streams of known truth.

    python benchmarks/watch/rates.py                              100 streams of 1,095 days of each kind
    python benchmarks/watch/rates.py --streams 1000 --out FILE    a line of JSON for each 100 streams of a kind
    python benchmarks/watch/rates.py --read FILE                  the table of what is in it

A day has 200 rows, scores from Beta(2, 6 - 3 s) and the columns `site` (a tenth of rows is "a") and `sex`. In every
kind outcomes follow the scores: *drift* moves s from 0 to 1, *seasons* by a wave of 90 days; *late*
has rows only whose label came: nine in ten where the score is low, half where it is high. *Shocks*: all rows of a day
are more, or less, often events by half of ``min(p, 1 - p)``; declared by `shared_shocks`. *Clusters*: 40 of five rows,
which share one uniform number; declared by `cluster`. Nothing is tolerated.

For each kind: streams with an alarm of any error (`alpha` 5%: at most so many), alarms of a change and days for each
(at A of 365 and of 3,650 days: no fewer), streams with a range of the gap of everyone or a site that ever misses the
mean of ``E[y | features] - p``, in the window or over all days, and the same of the upper limit of everyone's error in
every tenth stream (each day). A verdict that is wrong needs a range that misses: both together at most `alpha`.

Rows are summed here by a compiled loop that multiplies where the library adds logarithms, and the e-detector by its
recursion where the library keeps starts; both, and the evidence of ranges, are held against the library as it runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

import calibrant as cal
from calibrant.audit.monitor.plan import SHAPES, Plan
from calibrant.audit.monitor.state import EVERYONE, FLOOR, GAP, WINDOW
from calibrant.stats.betting import log_curvature
from calibrant.stats.sequential import bets, ranges
from calibrant.stats.sequential.detector import Detector

Floats = NDArray[np.float64]
ROWS, ALPHA, BETWEEN, DAYS_OF_WINDOW, CHUNK = 200, 0.05, (365.0, 3650.0), 28, 100
SITES, SEXES = "abcd", "fm"
KINDS = "calibrated", "drift", "seasons", "late", "shocks", "clusters"
TILTS = np.array([sign * t for sign in bets.SIGNS for t in bets.TILTS])


@dataclass
class Day:
    """One day of all streams: rows that have weight 0 are not there."""

    p: Floats  # (streams, rows)
    eta: Floats
    y: Floats
    there: NDArray[np.bool_]
    site: NDArray[np.int64]
    sex: NDArray[np.int64]
    cluster: NDArray[np.int64] | None


def stream(kind: str, days: int, streams: int, rng: np.random.Generator) -> Iterator[Day]:
    """Every day of some streams."""
    shape = (streams, ROWS)
    for day in range(days):
        share = {"drift": day / days, "seasons": 0.5 + 0.5 * np.sin(2 * np.pi * day / 90)}.get(kind, 0.5)
        p, u = rng.beta(2.0, 6.0 - 3.0 * share, shape), rng.uniform(size=shape)
        site = np.searchsorted((0.1, 0.4, 0.7), rng.uniform(size=shape), side="right")
        sex = rng.integers(0, 2, shape)
        there, cluster, eta = np.ones(shape, dtype=bool), None, p
        if kind == "late":
            there = rng.uniform(size=shape) < np.where(p < 0.3, 0.9, 0.5)
        elif kind == "shocks":
            p = np.clip(p, 0.0, 1.0)
            sign = rng.choice((-1.0, 1.0), (streams, 1))
            y = (u < p + sign * 0.5 * np.minimum(p, 1.0 - p)).astype(float)
        elif kind == "clusters":
            cluster = np.broadcast_to(np.arange(ROWS) // 5, shape)
            u = u[:, (np.arange(ROWS) // 5) * 5]
        if kind != "shocks":
            y = (u < p).astype(float)
        yield Day(p, eta, y, there, site, sex, cluster)


# ---- what a day's bets win ----


@njit(cache=True)
def won(rows, f, partitions, tilts, out):  # type: ignore[no-untyped-def]
    """Log likelihood ratios of each stream (streams, directions, tilts) with tolerance 0, as `bets.row_gains`.

    `rows`: outcomes, scores, and whether a row is there, each (streams, rows). `f`: functions (functions, streams,
    rows), which are directions 1 on. `partitions`: codes (partitions, streams, rows), and where each begins.
    """
    y, p, there = rows
    codes, first = partitions
    functions, streams, number = f.shape
    size = out.shape[1]
    product = np.empty(size)
    for t in range(len(tilts)):
        d, e = tilts[t], np.expm1(tilts[t])
        for s in range(streams):
            product[:] = 1.0
            for i in range(number):
                if not there[s, i]:
                    continue
                event = y[s, i] > 0.5
                whole = 1.0 / (1.0 + p[s, i] * e)
                whole = whole * (1.0 + e) if event else whole
                for c in range(len(codes)):
                    product[first[c] + codes[c, s, i]] *= whole
                for k in range(functions):
                    g = np.exp(d * f[k, s, i])
                    own = 1.0 / (1.0 + p[s, i] * (g - 1.0))
                    product[1 + k] *= own * g if event else own
            for j in range(size):
                out[s, j, t] = np.log(product[j])


class Bets:
    """The plan of streams of one kind, and what each day wins by it."""

    def __init__(self, kind: str, first: Day) -> None:
        more = {"shared_shocks": kind == "shocks", "cluster": "c" if kind == "clusters" else None}
        self.watch = cal.Monitor(label="y", score="p", by="site", variables="sex", alpha=ALPHA, **more)
        # One plan for all streams, from scores of their own: every stream would choose nearly this one.
        self.plan = Plan.of(self.watch.settings, self.rows(first, 0))
        self.sizes = [d.size for d in self.plan.directions(self.rows(first, 0))]
        self.independent = kind not in ("shocks", "clusters")
        self.checks = 0

    def rows(self, day: Day, s: int) -> cal.Predictions:
        """The rows of one stream, as people pass them."""
        t = day.there[s]
        columns = {"site": np.array(list(SITES))[day.site[s][t]], "sex": np.array(list(SEXES))[day.sex[s][t]]}
        cluster = None if day.cluster is None else day.cluster[s][t]
        return cal.predictions(day.y[s][t], day.p[s][t], columns, cluster=cluster)

    def codes(self, day: Day) -> list[NDArray[np.int64]]:
        """Codes of every partition, in the order of the plan: levels of site and sex are followed by other, missing."""
        edges = np.asarray(self.plan._edges)
        score = np.searchsorted(edges, day.p, side="right")
        wide = len(SEXES) + 2
        return [np.zeros(day.p.shape, dtype=np.int64), score, day.site, day.sex, day.site * wide + day.sex]

    def functions(self, day: Day) -> Floats:
        return np.stack([f.reshape(day.p.shape) for f in self.plan.functions(day.p.ravel())])

    def gains(self, day: Day) -> Floats:
        """What each bet of each stream won, (streams, directions, bets)."""
        size, streams = sum(self.sizes), len(day.p)
        if self.independent:
            first = np.array([0, *np.cumsum(self.sizes)[SHAPES:][:-1]])
            out = np.empty((streams, size, len(TILTS)))
            codes = np.stack(self.codes(day))
            won((day.y, day.p, day.there), self.functions(day), (codes, first), TILTS, out)
        else:
            codes, f = self.codes(day), self.functions(day)
            out = np.stack([self.of_clusters(day, s, [c[s] for c in codes], f[:, s]) for s in range(streams)])
        if self.checks < 3:  # as the library has it
            self.checks += 1
            for s in (0, streams - 1):
                assert np.allclose(out[s], self.plan.day(self.rows(day, s))[0], atol=1e-9)
        return out

    def of_clusters(self, day: Day, s: int, codes: list[NDArray[np.int64]], f: Floats) -> Floats:
        levels = [bets.Levels(c, n) for c, n in zip(codes, (1, *self.sizes[1 + SHAPES :]), strict=True)]
        directions = [levels[0], *map(bets.Function, f), *levels[1:]]
        of = np.zeros(ROWS, dtype=np.int64) if day.cluster is None else day.cluster[s]
        return bets.cluster_gains(day.y[s], day.p[s], directions, 0.0, of, int(of.max()) + 1)


# ---- ranges, by the evidence against the truth ----


def day_sums(day: Day, shocks: bool) -> Floats:
    """Sums of everyone and the sites of each stream, (streams, 5, SUMS)."""
    streams, out = len(day.p), None
    if day.cluster is None and not shocks:
        r, v, w = day.y - day.p, day.p * (1.0 - day.p), day.there.astype(float)
        out = np.zeros((streams, 1 + len(SITES), ranges.SUMS))
        for g, mask in enumerate((w, *(w * (day.site == k) for k in range(len(SITES))))):
            n, sums = mask.sum(axis=1), [(mask * x).sum(axis=1) for x in (r, r * r, day.p, v)]
            columns = (n, n, sums[0], sums[1], sums[0], n, np.ones(streams), sums[2], sums[3], sums[3])
            out[:, g] = np.stack(columns, axis=1)
        return out
    of = np.arange(ROWS) // 5 if day.cluster is not None else np.zeros(ROWS, dtype=np.int64)
    every = np.zeros(ROWS, dtype=np.int64)
    return np.stack(
        [
            np.concatenate([ranges.day_sums(y, p, c, k, of) for c, k in ((every, 1), (site, len(SITES)))])
            for y, p, site in zip(day.y, day.p, day.site, strict=True)
        ]
    )


def missed(sums: Floats, delta: Floats, truth: float = 0.0) -> NDArray[np.bool_]:
    """Whether ranges of the gap leave out the truth, by the evidence of `ranges.gap_limits` against it."""
    rows = np.maximum(sums[..., ranges.ROWS], 1e-9)
    least = np.maximum(sums[..., ranges.NOISE], 0.25)
    most = np.maximum(np.maximum(sums[..., ranges.SHARED], sums[..., ranges.NOISE]), 0.25)
    out = np.zeros(rows.shape, dtype=bool)
    for count in (3, 5):
        chosen = (most < 2.0 * least) == (count == 3)
        steps = np.linspace(0.0, 1.0, count)
        low, high = np.log(least / ranges.WIDER), np.log(most * ranges.WIDER)
        noise = np.exp(low[..., None] + (high - low)[..., None] * steps)
        largest = np.maximum(sums[..., ranges.LARGEST], 1.0)[..., None]
        b = np.minimum(np.sqrt(2.0 * np.log(2.0 / delta)[..., None] / noise), ranges.LARGEST_BET / largest)
        c = log_curvature(2.0 * b * largest) * b**2
        for side in (1.0, -1.0):
            slope = b * rows[..., None] - 2.0 * c * side * sums[..., ranges.CROSS, None]
            sizes = np.maximum(sums[..., ranges.SIZES, None], 1e-9)
            m = np.minimum(np.maximum(side * truth, -slope / (2.0 * c * sizes)), 1.0)
            growth = b * side * sums[..., ranges.RESIDUAL, None] - c * sums[..., ranges.SQUARES, None]
            growth = growth - slope * m - c * sizes * m**2
            log_e = np.logaddexp.reduce(growth, axis=-1) - np.log(count)
            out |= chosen & (log_e >= np.log(2.0 / delta))
    return out & (sums[..., ranges.ROWS] > 0)


def as_the_library(sums: Floats, delta: Floats) -> None:
    """Hold `missed` against limits of the library, at truths around their ends."""
    for own, d in zip(sums.reshape(-1, ranges.SUMS)[:10], delta.ravel()[:10], strict=True):
        low, high = ranges.gap_limits(own, float(d))
        for truth, out in ((low - 1e-4, True), (low + 1e-4, False), (high - 1e-4, False), (high + 1e-4, True)):
            if -1.0 < truth < 1.0:
                assert missed(own[None], np.array([d]), truth)[0] == out


# ---- all of it ----


def run(kind: str, days: int, streams: int, seed: int) -> dict[str, object]:
    """What went wrong on some streams of a kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    plan, ever, detectors = None, None, []
    alarmed, gap_missed, error_missed = (np.zeros(streams, dtype=bool) for _ in range(3))
    false = dict.fromkeys(map(str, BETWEEN), 0)
    window: list[Floats] = []
    counts: list[list[NDArray[np.int64]]] = [[] for _ in range(0, streams, 10)]
    truths: list[list[Floats]] = [[] for _ in range(0, streams, 10)]
    total, all_counts, all_truths = 0.0, [0] * len(counts), [0.0] * len(counts)
    held: Detector | None = None
    for number, day in enumerate(stream(kind, days, streams, rng)):
        plan = plan or Bets(kind, day)
        log_prior = np.log(plan.plan.prior / plan.plan.prior.sum())
        gains = plan.gains(day)
        ever = gains if ever is None else ever + gains
        detectors = detectors or [np.full(gains.shape, -np.inf) for _ in BETWEEN]
        alarmed |= np.logaddexp.reduce((ever + log_prior).reshape(streams, -1), axis=1) >= -np.log(ALPHA)
        for k, a in enumerate(BETWEEN):
            detectors[k] = np.logaddexp(detectors[k], 0.0) + gains
            log = np.logaddexp.reduce((detectors[k] + log_prior).reshape(streams, -1), axis=1)
            if k == 0 and number < 60:
                held = (held or Detector.fresh(plan.plan.prior)).after(gains[0], number, 1)
                assert np.isclose(held.log_change, log[0]), "the recursion is the sum over starts"
            over = log >= np.log(a)
            false[str(a)] += int(over.sum())
            detectors[k][over] = -np.inf
            held = held.restarted() if held is not None and k == 0 and over[0] else held
        # Ranges of everyone and the sites; levels that stand for the rest have no rows, and no share.
        sums = day_sums(day, kind == "shocks")
        window = [*window, sums][-DAYS_OF_WINDOW:]
        total = sums if number == 0 else ranges.added(np.stack([total, sums]))
        alpha, groups = ranges.look_alpha(ALPHA, number + 1), len(SITES)
        for span, own in ((WINDOW, ranges.added(np.stack(window))), (1.0 - WINDOW, total)):
            everyone = span * alpha * EVERYONE * (GAP if plan.independent else 1.0)
            each = span * alpha * (1.0 - EVERYONE) / groups
            delta = np.broadcast_to([everyone, *[each] * len(SITES)], own.shape[:2])
            if number in (0, 40):
                as_the_library(own, np.ascontiguousarray(delta))
            gap_missed |= missed(own, delta).any(axis=1)
            if not plan.independent:
                continue
            for i, s in enumerate(range(0, streams, 10)):
                if span == WINDOW:
                    t = day.there[s]
                    level = np.floor(day.p[s][t] * ranges.LEVELS + 0.5).astype(int)
                    off = np.bincount(level, level / ranges.LEVELS - day.eta[s][t], ranges.LEVELS + 1)
                    counts[i] = [*counts[i], ranges.level_counts(day.y[s][t], day.p[s][t])][-DAYS_OF_WINDOW:]
                    truths[i] = [*truths[i], off][-DAYS_OF_WINDOW:]
                    all_counts[i], all_truths[i] = all_counts[i] + counts[i][-1], all_truths[i] + off
                    seen, true = np.sum(counts[i], axis=0), np.sum(truths[i], axis=0)
                else:
                    seen, true = all_counts[i], all_truths[i]
                error_missed[s] |= (
                    ranges.error_limit(seen, everyone * (1.0 - FLOOR * (span == WINDOW)))
                    < np.abs(true).sum() / seen.sum() - 1e-12
                )
    return {
        "kind": kind,
        "streams": streams,
        "days": days,
        "ever": int(alarmed.sum()),
        "false": false,
        "gap_missed": int(gap_missed.sum()),
        "error_missed": int(error_missed.sum()),
        "of": len(counts) if plan is not None and plan.independent else 0,
    }


def table(lines: list[dict[str, object]]) -> str:
    """The sums of what was run, by kind."""
    out = ["| kind | streams | any error | days for each change, A = 365 | A = 3,650 | gap missed | error missed |"]
    out.append("|---|---|---|---|---|---|---|")
    for kind in KINDS:
        own = [x for x in lines if x["kind"] == kind]
        if not own:
            continue
        n, days = sum(x["streams"] for x in own), sum(x["streams"] * x["days"] for x in own)
        mean = []
        for a in map(str, BETWEEN):
            alarms = sum(x["false"][a] for x in own)
            mean.append(f"{days / alarms:,.0f} ({alarms} alarms)" if alarms else f"none in {days:,}")
        ever, gap, error, of = (sum(x[k] for x in own) for k in ("ever", "gap_missed", "error_missed", "of"))
        cells = [kind, f"{n:,}", f"{ever / n:.1%}", *mean, f"{gap / n:.1%}", f"{error} of {of}" if of else "–"]
        out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="streams that are there already, a multiple of 100")
    parser.add_argument("--days", type=int, default=1095)
    parser.add_argument("--out", metavar="FILE")
    parser.add_argument("--read", metavar="FILE")
    a = parser.parse_args()
    lines = []
    if a.read:
        print(table([json.loads(line) for line in Path(a.read).read_text().splitlines()]))
        return
    for chunk in range(a.first, a.streams, CHUNK):
        for kind in KINDS:
            lines.append(run(kind, a.days, min(CHUNK, a.streams - chunk), chunk))
            if a.out:
                with Path(a.out).open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    print(table(lines))


if __name__ == "__main__":
    main()
