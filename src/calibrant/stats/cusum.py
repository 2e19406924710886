"""The score CUSUM along an ordering of rows by predicted residual, and simpler statistics of the same ordering.

Feng, Gossmann, Pirracchio, Petrick, Pennello & Sahiner (2024), "Is this model reliable for everyone?", AISTATS: the
paper whose theorems are named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import LANES, peaks, words

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Ids = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Outcomes = NDArray[np.int8] | NDArray[np.uint8] | Floats

# ---- The path: which rows, in what order, and how their scores add up ----

Alternative = Literal["two-sided", "greater", "less"]
Detector = Literal["default", "paper", "authors"]
EVENTS = 2.0  # null variance, in expected events, that a studentised sum must cover
FEWEST = 4  # rows beyond the tolerance below which the authors' program leaves a model out
GAP = 2.0  # mean that the authors' program gives to its weights
EMPTY: dict[str, float] = {"default": 0.0, "paper": 0.0, "authors": -np.inf}  # the empty set of rows counts, or not
SHARE = 1e-9  # of a sum over rows, its rounding


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """Event rates at the edge of the tolerance: ``p + delta`` and ``p - delta``, kept in [0, 1]."""

    p: Floats  # shape (n,)
    high: Floats  # shape (n,)
    low: Floats  # shape (n,)
    tolerance: float

    @classmethod
    def of(cls, p: Floats, tolerance: float) -> Boundary:
        """The edges for a tolerance; the score itself, to the last bit, for none."""
        return cls(p=p, high=np.minimum(p + tolerance, 1.0), low=np.maximum(p - tolerance, 0.0), tolerance=tolerance)

    def rows(self, which: Rows | Flags) -> Boundary:
        """The edges of some rows."""
        return Boundary(p=self.p[which], high=self.high[which], low=self.low[which], tolerance=self.tolerance)

    def impossible(self, events: ArrayLike, others: ArrayLike, alternative: Alternative) -> int:
        """Count outcomes that have probability zero under every rate within the tolerance."""
        up = np.asarray(events)[self.high <= 0.0].sum() if alternative != "less" else 0
        return int(up + (np.asarray(others)[self.low >= 1.0].sum() if alternative != "greater" else 0))


def within(tolerance: float, alternative: Alternative, known: str = "p, x") -> str:
    """The null hypothesis, as a formula."""
    rate = f"E[Y | {known}]"
    gap = {"two-sided": f"|{rate} - p|", "greater": f"{rate} - p", "less": f"p - {rate}"}[alternative]
    return f"{gap} <= {tolerance:g} for every row"


def off_by(tolerance: float, alternative: Alternative, what: str = "the score") -> str:
    """Where the event rate is under the alternative."""
    where = {"two-sided": "off", "greater": "above", "less": "below"}[alternative]
    return f"{where} {what}" + (f" by more than {tolerance:g}" if tolerance else "")


@dataclass(frozen=True, kw_only=True)
class Path:
    """One model's ordering of the rows, from the largest predicted residual beyond the tolerance down."""

    rows: Rows  # shape (K,): row of each step
    upper: Flags  # shape (K,): the row is compared with `p + delta` (more events than predicted), else with `p - delta`
    excess: Floats  # shape (K,): predicted residual beyond the tolerance, positive and never increasing
    weight: Floats  # shape (K,): signed weight of `y - rate` in the score
    rate: Floats  # shape (K,): event rate at the edge of the tolerance
    scale: Floats  # shape (K,): multiplier of the cumulative score; 0 where it is not looked at

    @cached_property
    def word(self) -> Ids:
        """Index of each step's word in the draws of all rows: two a row, the lower rate first."""
        return (2 * self.rows + self.upper).astype(np.uint64)

    @cached_property
    def drift(self) -> Floats:
        """What the cumulative score holds whatever the outcomes."""
        return -np.cumsum(self.weight * self.rate)

    def scores(self, y: Outcomes) -> Floats:
        """Each step's score."""
        return self.weight * (y[self.rows] - self.rate)

    def curve(self, y: Outcomes) -> Floats:
        """The scaled cumulative score at every step that is looked at, and NaN elsewhere."""
        sums = np.cumsum(self.weight * y[self.rows]) + self.drift
        return np.where(self.scale > 0, self.scale * sums, np.nan)


def beyond(g: Floats, edge: Boundary, alternative: Alternative, plain: bool = False) -> tuple[Floats, Flags]:
    """By how much predicted residuals lie beyond the tolerance, and whether above it.

    `g` (n,): predicted ``E[Y - p | x]``. `plain`: take the tolerance itself off, as the authors' program does, where
    the edge was cut off at 0 or 1 too. Returns `excess` (n,): ``max(g - (p_delta - p), (p - p_-delta) - g, 0)``, of one
    side only for a one-sided alternative. Zero where the edge is 0 or 1 already, so that no outcome can show a
    violation on that side. `upper` (n,).
    """
    if plain:
        above, below = g - edge.tolerance, -g - edge.tolerance
    else:
        above = np.where(edge.high < 1.0, g - (edge.high - edge.p), 0.0)
        below = np.where(edge.low > 0.0, -g - (edge.p - edge.low), 0.0)
    if alternative == "greater":
        below = np.zeros(len(g))
    elif alternative == "less":
        above = np.zeros(len(g))
    return np.maximum(np.maximum(above, below), 0.0), above > below


def path(
    g: Floats,
    edge: Boundary,
    alternative: Alternative = "two-sided",
    detector: Detector = "default",
    weights: Floats | float = 1.0,
    min_size: float = 0.0,
) -> Path:
    """Order the rows by predicted residual beyond the tolerance, and say how their scores add up.

    `g` (n,): predicted ``E[Y - p | x]``, from rows other than the row itself. `detector`: ``"default"``: score ``g+ (y
    - rate)``, divided by ``(V_k V_K)^(1/4)``, V the null variance so far and in all, once ``sum rate (1 - rate)``
    reaches 2. ``"paper"``: the same score over n. ``"authors"``: weight ``max(0, g+ / sd - mean + 2)`` over the rows
    beyond the tolerance, divided by the root of their number; fewer than four such rows are left out. `weights` (n,):
    of rows, mean one. `min_size`: the least share of rows (of weight) that a group must have to be looked at, in [0,
    1).
    """
    # (1) Soft-threshold at the tolerance.
    return by_variable(beyond(g, edge, alternative, detector == "authors"), edge, detector, weights, min_size)


def by_variable(
    past: tuple[Floats, Flags],
    edge: Boundary,
    detector: Detector = "default",
    weights: Floats | float = 1.0,
    min_size: float = 0.0,
) -> Path:
    """Order the rows by what is past the tolerance, as `beyond` returns it; the rest as `path`."""
    # (1) Order by what is left, the largest first.
    excess, upper = past
    result = np.flatnonzero(excess > 0)
    rows = result[np.argsort(-excess[result], kind="stable")]
    h, side, rate = excess[rows], upper[rows], np.where(upper[rows], edge.high[rows], edge.low[rows])
    # (2) Weigh each score by what is left, towards its side.
    own = np.broadcast_to(weights, excess.shape)[rows]
    size = h
    if detector == "authors":  # the weights of the authors' program, which are constant where the predictions are
        spread = float(h.std()) if len(h) else 0.0
        size = np.maximum(0.0, h / spread - float((h / spread).mean()) + GAP) if spread else np.full(len(h), GAP)
    weight = np.where(side, size, -size) * own
    # (3) Scale the sums so far; look only where a run of ties ends, and where a group is large enough.
    scale = _scale(detector, weight, rate, len(excess))
    scale[:-1][h[:-1] == h[1:]] = 0.0
    scale[np.cumsum(own) < (min_size - SHARE) * len(excess)] = 0.0
    return Path(rows=rows, upper=side, excess=h, weight=weight, rate=rate, scale=scale)


def _scale(detector: Detector, weight: Floats, rate: Floats, n: int) -> Floats:
    if detector == "paper":
        return np.full(len(weight), 1.0 / n)
    if detector == "authors":
        return np.full(len(weight), 1.0 / np.sqrt(len(weight)) if len(weight) >= FEWEST else 0.0)
    spread = rate * (1.0 - rate)
    seen = np.cumsum(weight**2 * spread)
    # scores in round numbers cover the events exactly, where the order of adding up must not decide
    ready = (np.cumsum(spread) >= EVENTS * (1.0 - SHARE)) & (seen > 0)
    return np.where(ready, (np.where(ready, seen, 1.0) * (seen[-1] if ready.any() else 1.0)) ** -0.25, 0.0)


# ---- The statistic: the peak of a path, of the data and of 64 simulated data sets at once ----

Words = Callable[[int], Ids]  # first draw -> 64 draws of each bit, one word a bit


class Steps(NamedTuple):
    """A path as simulations take it: the word of each step, what its bit adds, what is there anyway, the scale."""

    at: Ids
    gain: Floats
    drift: Floats
    scale: Floats


def observed(paths: Sequence[Path], y: Outcomes, detector: Detector = "default") -> Floats:
    """Each model's largest scaled cumulative score, by the arithmetic of `simulated`."""
    word = np.repeat(np.asarray(y).astype(np.uint64), 2)
    return np.array([peaks(word, q.word, q.weight, q.drift, q.scale, EMPTY[detector])[0] for q in paths])


def simulated(
    paths: Sequence[Path], edge: Boundary, ids: Ids, draws: int, salt: int, detector: Detector = "default"
) -> Floats:
    """The models' statistics under outcomes drawn at the edge of the tolerance.

    One uniform number a row and draw serves both signs and all models (Theorem 4): an outcome of a row compared with
    ``p + delta`` is ``U < p + delta``, of one compared with ``p - delta`` it is ``U < p - delta``.

    The result has shape (draws, models).
    """
    used = np.zeros(len(ids), dtype=bool)
    for q in paths:
        used[q.rows] = True
    new = np.cumsum(used) - 1
    steps = [Steps((2 * new[q.rows] + q.upper).astype(np.uint64), q.weight, q.drift, q.scale) for q in paths]
    return _all_peaks(_outcomes(edge.rows(used), ids[used], salt), steps, draws, detector)


def multiplied(
    paths: Sequence[Path],
    y: Outcomes,
    clusters: tuple[Rows, Ids],
    draws: int,
    salt: int,
    detector: Detector = "default",
) -> Floats:
    """The models' statistics with the scores of each cluster multiplied by one random sign.

    `clusters` are the cluster of each row, 0 to C - 1, and identities of the clusters. The result has shape (draws,
    models).
    """
    cluster, ids = clusters
    steps = []
    for q in paths:
        score = q.scores(y)
        steps.append(Steps((2 * cluster[q.rows]).astype(np.uint64), 2.0 * score, -np.cumsum(score), q.scale))
    return _all_peaks(_signs(ids, salt), steps, draws, detector)


def first_simulated(path: Path, edge: Boundary, ids: Ids, draws: int, salt: int) -> Iterator[Floats]:
    """Yield each step's score in the first draws that `simulated` adds up, 64 at most."""
    for outcome in _bits(_outcomes(edge, ids, salt)(0)[path.word], draws):
        yield path.weight * (outcome - path.rate)


def first_multiplied(path: Path, y: Outcomes, clusters: tuple[Rows, Ids], draws: int, salt: int) -> Iterator[Floats]:
    """Yield each step's score in the first draws that `multiplied` adds up, 64 at most."""
    (cluster, ids), score = clusters, path.scores(y)
    for coin in _bits(_signs(ids, salt)(0)[2 * cluster[path.rows]], draws):
        yield (2.0 * coin - 1.0) * score


def _bits(word: Ids, draws: int) -> Iterator[Floats]:
    """Yield the first draws of each word."""
    for b in range(draws):
        yield ((word >> np.uint64(b)) & np.uint64(1)).astype(float)


def _outcomes(edge: Boundary, ids: Ids, salt: int) -> Words:
    """Draws of outcomes at both edges: two words a row, the lower rate first."""
    return lambda first: words(ids, edge.low, edge.high, first, salt).reshape(-1)


def _signs(ids: Ids, salt: int) -> Words:
    """Fair coins: two equal words an identity."""
    half = np.full(len(ids), 0.5)
    return lambda first: words(ids, half, half, first, salt).reshape(-1)


def _all_peaks(word: Words, steps: Sequence[Steps], draws: int, detector: Detector) -> Floats:
    out = np.empty((draws, len(steps)))
    for first in range(0, draws, LANES):
        bits, count = word(first), min(LANES, draws - first)
        for m, s in enumerate(steps):
            out[first : first + count, m] = peaks(bits, s.at, s.gain, s.drift, s.scale, EMPTY[detector])[:count]
    return out


# ---- Scores added up in groups along the path: the adaptive chi-square and score tests ----


@dataclass(frozen=True, kw_only=True)
class BinnedPath:
    """One model's ordering of the rows, cut into groups."""

    rows: Rows  # shape (K,): row of each step, the most suspicious first
    upper: Flags  # shape (K,): the row is compared with `p + delta`, else with `p - delta`
    # `weight` and `rate`, shape (K,): signed weight of `y - rate` in the score, and the event rate at the edge of the
    # tolerance.
    weight: Floats
    rate: Floats
    cuts: tuple[tuple[int, int], ...]  # first step of each group, and the one after its last

    def spread(self, first: int, stop: int) -> float:
        """The null standard deviation of a group's sum."""
        rate = self.rate[first:stop]
        return float(np.sqrt((self.weight[first:stop] ** 2 * rate * (1.0 - rate)).sum()))


def binned(path: Path, n: int, bins: int, weights: Floats | float = 1.0, by_size: bool = False) -> BinnedPath:
    """Cut a path of n rows in all into groups of n / bins rows.

    `n`, `bins`: rows that the path does not hold come last: they fill groups, and add nothing. `weights` (n,): of rows.
    `by_size`: scores are multiplied by the predicted residual beyond the tolerance; by its sign alone otherwise.
    """
    weight = path.weight
    if not by_size:
        weight = np.where(path.upper, 1.0, -1.0) * np.broadcast_to(weights, n)[path.rows]
    size = len(path.rows)
    edges = [min(b * n // bins, size) for b in range(bins + 1)]
    cuts = tuple((a, b) for a, b in pairwise(edges) if b > a)
    return BinnedPath(rows=path.rows, upper=path.upper, weight=weight, rate=path.rate, cuts=cuts)


def squares(paths: Sequence[BinnedPath], y: Outcomes) -> Floats:
    """Each model's ``sum_b max(0, S_b)^2 / V_b`` over groups whose outcomes can vary, shape (models,)."""
    out = np.zeros(len(paths))
    for m, q in enumerate(paths):
        for first, stop in q.cuts:
            spread = q.spread(first, stop)
            if spread > 0:
                total = float(q.weight[first:stop] @ (y[q.rows[first:stop]] - q.rate[first:stop]))
                out[m] += max(total / spread, 0.0) ** 2
    return out


def simulated_squares(paths: Sequence[BinnedPath], edge: Boundary, ids: Ids, draws: int, salt: int) -> Floats:
    """The models' statistics under outcomes drawn at the edge of the tolerance, shape (draws, models).

    One uniform number a row and draw serves both signs, all groups and all models (Theorem 4).
    """
    steps = [_each(q, 2 * q.rows + q.upper, q.weight, -q.weight * q.rate) for q in paths]
    return _all_squares(_outcomes(edge, ids, salt), steps, draws)


def multiplied_squares(
    paths: Sequence[BinnedPath], y: Outcomes, clusters: tuple[Rows, Ids], draws: int, salt: int
) -> Floats:
    """The models' statistics with the scores of each cluster multiplied by one random sign, as `multiplied`."""
    cluster, ids = clusters
    steps = []
    for q in paths:
        score = q.weight * (y[q.rows] - q.rate)
        steps.append(_each(q, 2 * cluster[q.rows], 2.0 * score, -score))
    return _all_squares(_signs(ids, salt), steps, draws)


def _each(q: BinnedPath, at: Rows, gain: Floats, gap: Floats) -> list[Steps]:
    """A path for each group whose outcomes can vary: one that is looked at where the group ends."""
    out = []
    for first, stop in q.cuts:
        spread = q.spread(first, stop)
        if spread > 0:
            here, last = slice(first, stop), np.zeros(stop - first)
            last[-1] = 1.0 / spread
            drift = np.full(stop - first, gap[here].sum())
            out.append(Steps(at[here].astype(np.uint64), gain[here], drift, last))
    return out


def _all_squares(word: Words, models: Sequence[Sequence[Steps]], draws: int) -> Floats:
    out = np.zeros((draws, len(models)))
    for first in range(0, draws, LANES):
        bits, count = word(first), min(LANES, draws - first)
        for m, groups in enumerate(models):
            for s in groups:
                out[first : first + count, m] += peaks(bits, s.at, s.gain, s.drift, s.scale, 0.0)[:count] ** 2
    return out
