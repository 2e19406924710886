"""Sums over rows as the local test and the kernel error read them: in natural units, and equation 4 of the sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import names
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import SCORE, Coding
from calibrant.data.specs.local import (
    ENOUGH,
    SQUARE,
    Features,
    Line,
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
from calibrant.kernels.features import CLUSTER, COORDINATE, HALF, LOGIT, PER_UNIT, ROWS, SCORE_STEPS, VARIANCE
from calibrant.kernels.runtime import one_thread
from calibrant.stats.local.spectra import Block
from calibrant.views.features import chunks, first_look
from calibrant.views.points import even_weights

Floats = NDArray[np.float64]
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


def weighted_sums(data: Predictions, spec: LocalSpec, how: Sequence[Coding], draws: int) -> WeightedSums:
    """Add up rows that weigh, with so many simulated outcomes of each."""
    d, ids, size = spec.columns, identities_of(data.n, spec.seed), steps_of(spec)
    weights = even_weights(data)
    score, gram, kept, own, first = np.zeros((d, 1 + draws)), np.zeros((d, d)), np.zeros((2, d)), 0.0, 0
    features, joint = Features(spec), slice(2, 2 + spec.joint)
    for rows in chunks(data, how, ids):
        for start in range(0, len(rows.p), ROWS):
            at = slice(start, start + ROWS)
            p, y, f = rows.p[at], rows.y[at], np.empty((len(rows.p[at]), d))
            features.of(p, part_of(rows.encoded, at), f)
            kept[1] += f.sum(axis=0) / size
            f *= weights[first : first + len(f), None] / size  # what a row weighs, in natural units
            drawn = np.column_stack([y, outcomes(rows.ids[at], p, 0, draws, salt_of(spec.seed))])
            score += f.T @ (drawn - p[:, None])
            gram += f.T @ ((p * (1.0 - p))[:, None] * f)
            kept[0] += f.sum(axis=0)
            own += float(((f[:, joint] ** 2).sum(axis=1) * (y - p) ** 2).sum())
            first += len(f)
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
        out.append(Block(q.name, smooth, rises, trend=None if q.name == SCORE else _trend(q)))
    after = spec.starts[len(spec.lines) :]
    for v, first, last in zip(spec.levels, after, after[1:], strict=False):
        out.append(Block(v.name, np.arange(first, last), np.arange(first, last), levels=True))
    return out


def _trend(q: Line) -> Floats:
    """The straight line through the knots as a sum of a line's smooth functions, one at the farthest knot."""
    knots = np.array(q.knots)
    trend: Floats = np.array(q.whitening).T @ (knots / max(float(np.abs(knots).max()), 1e-300))
    return trend


# ---- equation 4 of the sums, and how large its kernel can be ----


def squared_error(sums: LocalSums | WeightedSums, score: Floats) -> float:
    """Return ``KLCE^2`` under the joint features: the square of their sums less the rows' own squares (equation 4)."""
    if isinstance(sums, WeightedSums):
        return sums.squared
    n, joint = int(sums.counts[0]), slice(2, 2 + sums.spec.joint)
    own = float(joined(sums.diagonal)[0]) / CLUSTER / SQUARE
    return (float((score[joint] ** 2).sum()) - own) / (n * (n - 1.0))


def kernel_bound(spec: LocalSpec) -> float:
    """Return B with ``|phi(z)|^2 <= B`` for the joint features phi of every row z, as they are computed.

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
