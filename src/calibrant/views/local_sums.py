"""Sums over rows as the local test and the kernel error read them: in natural units, and equation 4 of the sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import names
from calibrant.data.predictions import Predictions, codes_of
from calibrant.data.sketches.sample import identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import SCORE, Coding
from calibrant.data.specs.local import (
    ENOUGH,
    SQUARE,
    Features,
    LocalSpec,
    LocalSums,
    distances,
    joined,
    local_spec,
    part_of,
    salt_of,
    simulates,
)
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import outcomes
from calibrant.kernels.features import (
    CELLS,
    CLUSTER,
    COORDINATE,
    HALF,
    LOGIT,
    PER_UNIT,
    REACH,
    ROWS,
    SCORE_STEPS,
    VARIANCE,
)
from calibrant.kernels.runtime import one_thread
from calibrant.stats.local.spectra import Block, Findings, Statistics
from calibrant.views.features import chunks, first_look
from calibrant.views.people import people_of
from calibrant.views.points import even_weights

Floats = NDArray[np.float64]
EXACT = "exact simulation"
CLUSTERED = "sign flips of whole clusters, asymptotic in their number"
FLIPS, FLIP_STREAM = 250, 0xF11B  # sign flips at once, for memory; of random numbers
BELL = (
    0.5 / PER_UNIT + 0.5 / CLUSTER
)  # how far a tabulated bell is from the bell, at most: middle of an entry, rounding


# ---- from rows in memory to sums ----


def sums_of_rows(
    data: Predictions, variables: Iterable[str] | str | None, draws: int, null: str, seed: int, landmarks: int
) -> tuple[LocalSums | WeightedSums, tuple[Coding, ...], tuple[tuple[str, str], ...]]:
    """The sums over all rows, weighted or not, how covariates are coded, and which were left out and why.

    Outcomes are simulated of independent rows, so many of each; clusters keep theirs.
    """
    own = draws if data.cluster is None else 0
    if data.weights is not None:
        spec, used, left_out = fixed_features(data, variables, own, seed, landmarks)
        return weighted_sums(data, spec, used, own), used, left_out
    simulated = own > 0 and _simulates(data, null)
    spec, used, left_out = fixed_features(data, variables, draws if simulated else 0, seed, landmarks)
    # (2) One pass adds up ``S = Phi' e``, ``Sigma = Phi' V Phi`` and ``S* = Phi' E*`` (step 2).
    sums = LocalSums(spec)
    for rows in chunks(data, used, identities_of(data.n, seed)):
        sums.update(rows)
    return sums, used, left_out


def sums_of_sketch(data: Sketch, variables: Iterable[str] | str | None) -> LocalSums:
    """The sums that a sketch holds."""
    sketch = data.checked()
    if "local" not in sketch.parts:
        raise BadInput("this sketch holds no sums for tests: make it with cal.sketch(..., variables=[...], tests=True)")
    wanted, kept = names("variables", variables, what="a covariate"), tuple(c.name for c in sketch.spec.codings)
    if variables is not None and set(wanted) != set(kept):
        raise BadInput(f"variables={variables!r}: this sketch holds sums for all of {', '.join(kept)} jointly")
    if sketch.n < 2:
        raise NotComputable("a single row has no pairs: pass two rows or more")
    sums: LocalSums = sketch.parts["local"]
    return sums


def fixed_features(
    data: Predictions, variables: Iterable[str] | str | None, draws: int, seed: int, landmarks: int
) -> tuple[LocalSpec, tuple[Coding, ...], tuple[tuple[str, str], ...]]:
    """Fix features from a random sample of rows, without a label; say what was left out and why."""
    p, table, used, left_out = first_look(data, variables, seed, identities_of(data.n, seed))
    return local_spec(p, table, used, draws, seed, landmarks), used, left_out


def _simulates(data: Predictions, null: str) -> bool:
    expected = float(data.p.sum())
    fewest = min(expected, data.n - expected)
    if null == "gaussian" and fewest < ENOUGH:
        raise NotComputable(
            f"only {fewest:.0f} events or non-events are expected: the Gaussian null needs {ENOUGH:.0f}; use "
            "null='simulated'"
        )
    return simulates(null, data.n, expected)


# ---- sums over rows that weigh: in natural units from the start, for weights are no whole numbers ----


@dataclass(frozen=True)
class WeightedSums:
    """Sums over rows of features times weighted residuals, weights with mean one."""

    spec: LocalSpec
    score: Floats  # shape (columns, 1 + draws): `sum w phi (y - p)` of the data, then of simulated outcomes
    gram: Floats  # shape (columns, columns): their null covariance, `sum w^2 p (1 - p) phi phi'`
    # `means` and `rows`, shape (columns,): `sum w phi`, and `sum phi`: how many rows a step or a level holds, whatever
    # they weigh.
    means: Floats
    rows: Floats
    counts: NDArray[np.int64]  # shape (3,): rows, events, and outcomes that the score called impossible
    expected: float  # events expected, not weighted
    # The weighted equation 4: `sum_{i != j} w_i e_i phi_i' phi_j e_j w_j / sum_{i != j} w_i w_j`, joint features.
    squared: float


def featured(data: Predictions, spec: LocalSpec, how: Sequence[Coding]) -> Iterator[tuple[slice, Floats]]:
    """Yield some rows, and their features in whole steps, shape (rows, columns)."""
    features, first = Features(spec), 0
    for rows in chunks(data, how, identities_of(data.n, spec.seed)):
        for start in range(0, len(rows.p), ROWS):
            at = slice(start, start + ROWS)
            f = np.empty((len(rows.p[at]), spec.columns))
            features.of(rows.p[at], part_of(rows.encoded, at), f)
            yield slice(first, first + len(f)), f
            first += len(f)


def weighted_sums(
    data: Predictions, spec: LocalSpec, how: Sequence[Coding], draws: int, drawn: NDArray[np.uint8] | None = None
) -> WeightedSums:
    """Add up rows that weigh, with so many simulated outcomes of each: those that were `drawn`, shape (n, draws)."""
    d, ids, size, salt = spec.columns, identities_of(data.n, spec.seed), steps_of(spec), salt_of(spec.seed)
    weights, joint = even_weights(data), slice(2, 2 + spec.joint)
    score, gram, kept, own = np.zeros((d, 1 + draws)), np.zeros((d, d)), np.zeros((2, d)), 0.0
    for at, f in featured(data, spec, how):
        p, y = data.p[at], data.y[at]
        kept[1] += f.sum(axis=0) / size
        f *= weights[at, None] / size  # what a row weighs, in natural units
        own_draws = outcomes(ids[at], p, 0, draws, salt) if drawn is None else drawn[at]
        kind = np.float64 if drawn is None else np.float32  # sums of a few thousand rows, of data and draws alike
        score += f.T.astype(kind) @ (np.column_stack([y, own_draws]) - p[:, None]).astype(kind)
        gram += f.T @ ((p * (1.0 - p))[:, None] * f)
        kept[0] += f.sum(axis=0)
        own += float(((f[:, joint] ** 2).sum(axis=1) * (y - p) ** 2).sum())
    impossible = int(np.count_nonzero(np.where(data.y == 1, data.p == 0.0, data.p == 1.0)))
    pairs = float(weights.sum() ** 2 - (weights**2).sum())
    return WeightedSums(
        spec,
        score,
        gram,
        kept[0],
        kept[1],
        np.array([data.n, data.events, impossible]),
        float(data.p.sum()),
        float((score[joint, 0] ** 2).sum() - own) / pairs,
    )


# ---- sums in natural units ----


def natural(sums: LocalSums | WeightedSums) -> tuple[Floats, Floats, Floats]:
    """The sums of features times residuals (data, then draws), their null covariance, and the features' sums."""
    if isinstance(sums, WeightedSums):
        return sums.score, sums.gram, sums.means
    size = steps_of(sums.spec)
    expected = (np.ldexp(sums.means[:, 0].astype(np.float64), HALF) + sums.means[:, 1]) / SCORE_STEPS
    half = np.triu(joined(sums.gram))
    gram = (half + np.triu(half, 1).T) / np.outer(size, size) / VARIANCE
    return (sums.hits - expected[:, None]) / size[:, None], gram, sums.means[:, 2] / size


def steps_of(spec: LocalSpec) -> Floats:
    """The whole-numbered steps of each feature in one cluster of it."""
    out = np.ones(spec.columns)
    out[1], out[2 : 2 + spec.joint] = LOGIT, CLUSTER
    for b in blocks_of(spec):
        if not b.levels:
            out[b.smooth] = CLUSTER
    return out


def blocks_of(spec: LocalSpec) -> list[Block]:
    """The columns of each variable; a missing-value indicator is a variable of its own.

    The score has no trend of its own: that is the slope of everyone.
    """
    out = []
    for q, first, last in zip(spec.lines, spec.starts, spec.starts[1:], strict=False):
        smooth, rises = np.arange(first, first + q.smooth), np.arange(first + q.smooth, last)
        trend: Floats | None = None
        if q.name != SCORE:  # the straight line through the knots, one at the farthest, as a sum of smooth functions
            knots = np.array(q.knots)
            trend = np.array(q.whitening).T @ (knots / max(float(np.abs(knots).max()), 1e-300))
        out.append(Block(q.name, smooth, rises, trend=trend))
    after = spec.starts[len(spec.lines) :]
    for v, first, last in zip(spec.levels, after, after[1:], strict=False):
        out.append(Block(v.name, np.arange(first, last), np.arange(first, last), levels=True))
    return out


# ---- equation 4 of the sums, and how large its kernel can be ----


def squared_error(sums: LocalSums | WeightedSums, score: Floats) -> float:
    """``KLCE^2`` under the joint features: the square of their sums less the rows' own squares (equation 4)."""
    if isinstance(sums, WeightedSums):
        return sums.squared
    n, joint = int(sums.counts[0]), slice(2, 2 + sums.spec.joint)
    own = float(joined(sums.diagonal)[0]) / CLUSTER / SQUARE
    return (float((score[joint] ** 2).sum()) - own) / (n * (n - 1.0))


def kernel_bound(spec: LocalSpec) -> float:
    """The bound B with ``|phi(z)|^2 <= B`` for the joint features phi of every row z, as they are computed.

    Exact ones are a projection of ``k(z, .)``, whose length is 1. With the landmarks' Gram matrix K, the whitening G as
    stored and the bells b of z as tabulated, ``|G'b| <= sqrt(|G'KG|) + |G| |b - k_z|``, and rounding adds half a step
    a feature; the derivation is in docs/proofs-methods.md.
    """
    if not spec.joint:
        return 0.0
    marks, whitening = np.array(spec.landmarks, dtype=np.float64), np.array(spec.whitening) / COORDINATE
    with one_thread():
        projected = whitening.T @ np.exp(-distances(marks, marks) * spec.scale) @ whitening
        length = np.sqrt(np.linalg.norm(projected, 2)) + np.linalg.norm(whitening, 2) * BELL * np.sqrt(len(marks))
    return float(length + 0.5 / CLUSTER * np.sqrt(spec.joint)) ** 2


# ---- Clusters: whole ones with random signs ----


@dataclass(frozen=True)
class Flips:
    """Sums of features times residuals, those of whole clusters with random signs; and who is on which side of a step.

    Parameters
    ----------
    sums : float64 array of shape (columns, draws)
    inside, outside : int64 arrays of shape (columns,)
        Clusters with a row where the feature is not 0, and with one where it is.
    """

    sums: Floats
    inside: NDArray[np.int64]
    outside: NDArray[np.int64]

    @classmethod
    def of(cls, spec: LocalSpec, data: Predictions, how: Sequence[Coding], draws: int) -> Flips:
        """Add up the rows of each cluster, and draw signs."""
        total, inside, outside = by_cluster(spec, data, how)
        rng = np.random.default_rng([FLIP_STREAM, spec.seed])
        size = len(total)
        signs = (rng.integers(0, 2, (size, min(FLIPS, draws - s))) * 2.0 - 1.0 for s in range(0, draws, FLIPS))
        return cls(np.hstack([total.T @ s for s in signs]), inside.sum(axis=0), outside.sum(axis=0))


def by_cluster(
    spec: LocalSpec, data: Predictions, how: Sequence[Coding]
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Each cluster's sums of features times residuals, and whether it has rows with the feature, or without."""
    off = (data.y - data.p) * even_weights(data)
    people_of(data).needs_two()
    cluster = codes_of(data)
    size = int(cluster.max()) + 1
    total = np.zeros((size, spec.columns))
    inside, outside = (np.zeros((size, spec.columns), dtype=np.bool_) for _ in range(2))
    for at, f in featured(data, spec, how):
        np.add.at(total, cluster[at], f * off[at, None])
        np.logical_or.at(inside, cluster[at], f != 0.0)
        np.logical_or.at(outside, cluster[at], f == 0.0)
    return total, inside, outside


# ---- The step or level that deviates most, in the user's units ----


def region_of(
    spec: LocalSpec, how: Sequence[Coding], result: Findings | Statistics, off: Floats, values: tuple[Floats, Floats]
) -> dict[str, Any]:
    """The step or level that deviates most from the rest, on the side with fewer rows.

    `off` are the columns' sums of residuals, `values` those of weights and of rows.
    """
    if result.column < 0:
        return {}
    j = int(np.searchsorted(spec.starts, result.column, side="right")) - 1
    (mass, n), (size, count) = ([float(v[k]) for v in values] for k in (0, result.column))
    gap, sign = float(off[result.column]), 1.0
    side, value = _named(spec, how, j, result.column)
    if side == "at least" and count > n / 2:
        side, count, size, gap, sign = "under", n - count, mass - size, float(off[0]) - gap, -1.0
    return {
        "region_variable": [*(q.name for q in spec.lines), *(q.name for q in spec.levels)][j],
        "region_side": side,
        "region_value": value,
        "region_rows": round(count),
        "region_gap": gap / size,
        "region_excess": sign * result.excess / size,
        "region_z": sign * result.z,
    }


def _named(spec: LocalSpec, how: Sequence[Coding], j: int, column: int) -> tuple[str, float | str]:
    """The side and the value of a step in the covariate's own unit, or "is" and the name of the level."""
    if j >= len(spec.lines):
        v = spec.levels[j - len(spec.lines)]
        members = np.flatnonzero(v.column == column - spec.starts[j])
        labels: Sequence[str] = next((c.labels for c in how if c.name == v.name), ("no", "yes"))
        return "is", str(labels[int(members[0])]) if len(
            members
        ) == 1 else f"one of {len(members)} less frequent levels"
    q = spec.lines[j]
    c = spec.score if q.name == SCORE else next(c for c in how if c.name == q.name)
    cell = q.steps[column - spec.starts[j] - q.smooth]
    # The lower end of a cell; coordinates are rounded to 1 / 4096, so half of that lies below it.
    scaled = (cell * (2.0 * REACH / CELLS) - REACH - 0.5 / 4096) * c.scale + c.location
    return "at least", float(np.interp(scaled, np.linspace(0.0, 1.0, len(c.ranks)), c.ranks)) if c.ranks else float(
        scaled
    )
