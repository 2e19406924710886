"""The published bounds on the L1 calibration error, arrays in, numbers out (arXiv:2512.13872)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.smooth import smooth, taut_string

# ---- The sech perturbation of a score: normaliser, exact sampling, and the derivative bounds it buys ----

Floats = NDArray[np.float64]

_CHUNK = 2**15


def gudermannian(x: Floats) -> Floats:
    """`arctan(sinh x)`, the antiderivative of sech, without the overflow of sinh."""
    return np.asarray(2.0 * np.arctan(np.tanh(0.5 * x)), dtype=np.float64)


def perturbed(scores: Floats, bandwidth: float, rng: np.random.Generator) -> Floats:
    """Draw `s` from the density `sech((s - p) / h) / Z(p, h)` on [0, 1] (eq. 8), one draw a score.

    Exact inversion: the distribution function is affine in `gd((s - p) / h)`, so a uniform angle between
    `gd(-p / h)` and `gd((1 - p) / h)` is turned back by the inverse Gudermannian `arcsinh(tan(angle))`.
    """
    out = np.empty(scores.size)
    for start in range(0, scores.size, _CHUNK):
        p = scores[start : start + _CHUNK]
        low, high = gudermannian(-p / bandwidth), gudermannian((1.0 - p) / bandwidth)
        angle = low + rng.random(p.size) * (high - low)
        out[start : start + _CHUNK] = p + bandwidth * np.arcsinh(np.tan(angle))
    return np.clip(out, 0.0, 1.0, out=out)


def derivative_bounds(bandwidth: float) -> tuple[float, float]:
    """The uniform bounds on the first and second derivative of the perturbed calibration function.

    Lemma 1: `b1 = 1 / (2 h)` (also the Lipschitz constant) and `b2 = 3 / (2 h^2)`, whatever the classifier.
    """
    return 0.5 / bandwidth, 1.5 / bandwidth**2


# ---- The published bounds on the L1 calibration error, arrays in, numbers out (arXiv:2512.13872) ----

BUCKETS = tuple(2**k for k in range(3, 13))
SHIFTS = 4


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound, the point estimate under it, and the terms it is made of."""

    value: float
    high: float
    parts: Mapping[str, Any]


def empirical_bernstein(n: int, delta: float, variance: float) -> float:
    """BB of section 3: `sqrt(2 v ln(3/delta) / n) + 3 ln(3/delta) / n`, `v` with divisor `n`."""
    log = math.log(3.0 / delta)
    return math.sqrt(2.0 * variance * log / n) + 3.0 * log / n


def plug_in_bandwidth(n_train: int, slope: float, curvature: float) -> tuple[float, float]:
    """The smoothing bandwidth `t^2` of Appendix E, raw and clipped to [1e-4, 1/4].

    `t` is the root of `2 b t^5 + a t^3 - c / 2`, which is convex and increasing: Newton from the root of
    the cubic part, which lies to the right, falls monotonically.
    """
    a, b, c = 3.0 / 8.0 * slope, curvature / 10.0, 1.15 / (2.0 * math.sqrt(2.0 * n_train))
    t = (0.5 * c / a) ** (1.0 / 3.0)
    for _ in range(200):
        step = (2.0 * b * t**5 + a * t**3 - 0.5 * c) / (10.0 * b * t**4 + 3.0 * a * t**2)
        t -= step
        if abs(step) <= 1e-15 * t:
            break
    return t * t, min(max(t * t, 1e-4), 0.25)


def denoising_radius(n_train: int, delta: float) -> float:
    """`t2 = |T| lambda` of Lemma 4: `sqrt(|T| / 8 ln(4 (|T| - 1) / delta))`."""
    return math.sqrt(n_train / 8.0 * math.log(4.0 * (n_train - 1) / delta))


def denoising_error(n_train: int, delta: float, variation: float) -> float:
    """TVB of Corollary 1; its square is `(t1 + sqrt(t1^2 + 4 t2 V))^2 / |T|`, expanded in print."""
    t1 = math.sqrt(0.5 * math.log(4.0 / delta))
    t2 = denoising_radius(n_train, delta)
    return (t1 + math.sqrt(t1**2 + 4.0 * t2 * variation)) / math.sqrt(n_train)


def population_transfer(n_train: int, variations: float, delta2: float, delta3: float) -> float:
    """PTB of equation 5, where `variations` is `V + V^`."""
    dvoretzky = math.sqrt(math.log(2.0 / delta2) / (2.0 * n_train))
    return variations * dvoretzky + math.sqrt(math.log(2.0 / delta3) / (2.0 * n_train))


def _sorted_pairs(scores: Floats, labels: NDArray[Any]) -> tuple[Floats, Floats]:
    order = np.argsort(scores, kind="stable")
    return np.ascontiguousarray(scores[order]), labels[order].astype(np.float64)


def _deal(n: int, folds: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Deal rows to folds whose sizes differ by at most one, at random."""
    fold = np.resize(np.arange(folds, dtype=np.int32), n)
    rng.shuffle(fold)
    return fold


def _validation_rows(n: int, n_rest: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Appendix E, validation subsampling: `min(15000, max(5000, 0.05 n))` held-out rows, uniform, sorted."""
    size = min(n_rest, int(min(15000.0, max(5000.0, 0.05 * n))))
    return np.sort(rng.choice(n_rest, size, replace=False, shuffle=False))


def _ceiling(train: Floats, width: float, slope: float, curvature: float) -> float:
    """R of Proposition 2, raised to 1 if some point of [0, 1] has no training score within `width`."""
    printed = slope * width + 0.5 * curvature * width**2 + 0.5
    inner = float(np.max(np.diff(train))) if train.size > 1 else 0.0
    covered = train[0] < width and 1.0 - train[-1] < width and inner < 2.0 * width
    return printed if covered else max(printed, 1.0)


class Folds(NamedTuple):
    """How rows are dealt for cross-fitting, and whether held-out rows are thinned as in Appendix E."""

    number: int
    subsample: bool
    rng: np.random.Generator


def kernel_bound(scores: Floats, labels: NDArray[Any], bandwidth: float, alpha: float, folds: Folds) -> Bound:
    """The bound of Proposition 2 on the perturbed score, cross-fitted, held-out points pooled."""
    slope, curvature = derivative_bounds(bandwidth)
    s, y = _sorted_pairs(perturbed(scores, bandwidth, folds.rng), labels)
    fold = _deal(s.size, folds.number, folds.rng)
    gaps, errors, widths, ceiling, alone = [], [], [], 0.0, 0
    for k in range(folds.number):
        is_kept = fold == k
        train, outcome, at = s[~is_kept], y[~is_kept], s[is_kept]
        if folds.subsample:
            at = at[_validation_rows(s.size, at.size, folds.rng)]
        width = plug_in_bandwidth(train.size, slope, curvature)[1]
        limit = _ceiling(train, width, slope, curvature)
        fit, error, fallen = smooth(at, train, outcome, width, slope, curvature)
        gaps.append(np.abs(fit - at))
        errors.append(np.minimum(error, limit))
        widths.append(width)
        ceiling, alone = max(ceiling, limit), alone + int(fallen)
    facts = {"smoothing_bandwidth": float(np.mean(widths)), "nearest_neighbour": alone}
    return _proposition_2(np.concatenate(gaps), np.concatenate(errors), ceiling, alpha, facts)


def _proposition_2(gap: Floats, error: Floats, ceiling: float, alpha: float, facts: dict[str, Any]) -> Bound:
    """Add up Proposition 2 over the held-out rows; each Bernstein term has half of `alpha`."""
    first = empirical_bernstein(gap.size, alpha / 2, float(np.var(gap)))
    second = ceiling * empirical_bernstein(gap.size, alpha / 2, float(np.var(error / ceiling)))
    parts = {
        **facts,
        "evaluated": int(gap.size),
        "surrogate_gap": float(np.mean(gap)),
        "smoothing_error": float(np.mean(error)),
        "concentration": first + second,
    }
    high = parts["surrogate_gap"] + parts["smoothing_error"] + parts["concentration"]
    return Bound(parts["surrogate_gap"], min(1.0, high), parts)


def denoised(scores: Floats, labels: Floats, radius: float) -> tuple[Floats, Floats]:
    """The distinct scores and the total-variation fit at each; `scores` ascend.

    Equal scores share one value, so the fit is a function of the score and does not depend on row order: the
    minimum of equation 2 over functions of the score, as `eta_T` is one, and Lemma 4 reads unchanged.
    """
    starts = np.flatnonzero(np.diff(scores, prepend=-1.0) > 0.0)
    counts = np.diff(starts, append=scores.size).astype(np.float64)
    sums = np.add.reduceat(labels, starts)
    return scores[starts], taut_string(counts, sums, radius)


def total_variation_bound(
    scores: Floats, labels: NDArray[Any], variation: float, alpha: float, folds: int, rng: np.random.Generator
) -> Bound:
    """The bound of Proposition 1, cross-fitted, held-out points pooled, `delta` in quarters."""
    delta = alpha / 4
    s, y = _sorted_pairs(scores, labels)
    fold = _deal(s.size, folds, rng)
    gaps, result, errors, transfers = [], [], [], []
    for k in range(folds):
        is_kept = fold == k
        train, at = s[~is_kept], s[is_kept]
        knots, values = denoised(train, y[~is_kept], denoising_radius(train.size, delta))
        fit = values[np.maximum(np.searchsorted(knots, at, side="right") - 1, 0)]
        gaps.append(np.abs(at - fit))
        result.append(float(np.abs(np.diff(values)).sum()))
        errors.append(denoising_error(train.size, delta, variation))
        transfers.append(population_transfer(train.size, variation + result[-1], delta, delta))
    gap = np.concatenate(gaps)
    parts = {
        "surrogate_variation": float(np.mean(result)),
        "surrogate_gap": float(np.mean(gap)),
        "denoising_error": float(np.mean(errors)),
        "population_transfer": float(np.mean(transfers)),
        "concentration": empirical_bernstein(gap.size, delta, float(np.var(gap))),
    }
    high = sum(parts[name] for name in parts if name != "surrogate_variation")
    return Bound(parts["surrogate_gap"], min(1.0, high), parts)


class Prefix(NamedTuple):
    """Ascending scores, and the prefix sums of scores and labels, each with a leading 0."""

    s: Floats
    sums: Floats
    positives: Floats

    @classmethod
    def of(cls, s: Floats, y: Floats) -> Prefix:
        """Add up scores and labels in the order given."""
        return cls(s, *(np.concatenate([[0.0], np.cumsum(x)]) for x in (s, y)))


def bucket_bound(rows: Prefix, buckets: int, shift: float, lipschitz: float, delta: float) -> tuple[float, float]:
    """The mean of `|s - ybar|` and the bound for one partition, derived in `published_lipschitz`."""
    s, sums, positives = rows
    n = s.size
    inner = (np.arange(buckets) + shift) / buckets
    edges = np.unique(np.concatenate([[0], np.searchsorted(s, inner[inner > 0.0]), [n]]))
    a, b = edges[:-1], edges[1:]
    size = (b - a).astype(np.float64)
    mean = (positives[b] - positives[a]) / size
    c = np.clip(np.searchsorted(s, mean), a, b)
    gap = mean * (c - a) - (sums[c] - sums[a]) + (sums[b] - sums[c]) - mean * (b - c)
    noise = np.sqrt(math.log(4.0 * a.size / delta) / (2.0 * size))
    bias = 0.5 * lipschitz * (s[b - 1] - s[a])
    total = np.minimum(size, gap + size * (noise + bias)).sum() / n
    return float(gap.sum() / n), float(total) + math.sqrt(math.log(2.0 / delta) / (2.0 * n))


def lipschitz_bound(
    scores: Floats, labels: NDArray[Any], bandwidth: float, alpha: float, rng: np.random.Generator
) -> Bound:
    """The least bound over bucket counts and shifts on the perturbed score (Appendix E)."""
    slope = derivative_bounds(bandwidth)[0]
    s, y = _sorted_pairs(perturbed(scores, bandwidth, rng), labels)
    rows = Prefix.of(s, y)
    delta = alpha / (len(BUCKETS) * SHIFTS)
    candidates = []
    for buckets in BUCKETS:
        for r in range(SHIFTS):
            gap, high = bucket_bound(rows, buckets, r / SHIFTS, slope, delta)
            candidates.append((high, gap, buckets, r))
    high, gap, buckets, r = min(candidates)
    parts = {"buckets": buckets, "shift": r, "surrogate_gap": gap, "lipschitz": slope}
    return Bound(gap, min(1.0, high), parts)
