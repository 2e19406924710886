"""Sums over rows as the local test and the kernel error read them: in natural units, and equation 4 of the sums."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import SCORE, Coding
from calibrant.data.specs.local import (
    ENOUGH,
    SQUARE,
    Line,
    LocalSpec,
    LocalSums,
    distances,
    joined,
    local_spec,
    simulates,
)
from calibrant.errors import NotComputable
from calibrant.kernels.features import COORDINATE, HALF, LOGIT, PER_UNIT, SCORE_STEPS, UNIT, VARIANCE
from calibrant.kernels.runtime import one_thread
from calibrant.stats.spectra import Block
from calibrant.views.coded import chunks, first_look

Floats = NDArray[np.float64]
BELL = 0.5 / PER_UNIT + 0.5 / UNIT  # how far a tabulated bell is from the bell, at most: middle of an entry, rounding


# ---- from rows in memory to sums ----


def sums_of_rows(
    data: Predictions, variables: Iterable[str] | str | None, draws: int, null: str, seed: int, landmarks: int
) -> tuple[LocalSums, tuple[Coding, ...], tuple[tuple[str, str], ...]]:
    """Return the sums over all rows, how covariates are coded, and which were left out and why."""
    ids = identities_of(data.n, seed)
    # (1) Features are fixed from a random sample of rows, without a label (theory 3, step 1).
    p, table, how, left_out = first_look(data, variables, seed, ids)
    simulated = data.cluster is None and _simulates(data, null)
    used = tuple(c for c in how if c.kind != "constant")
    constant = tuple((c.name, "it takes one value only") for c in how if c.kind == "constant")
    # (2) One pass adds up ``S = Phi' e``, ``Sigma = Phi' V Phi`` and ``S* = Phi' E*`` (step 2).
    sums = LocalSums(local_spec(p, table, used, draws if simulated else 0, seed, landmarks))
    for rows in chunks(data, used, ids):
        sums.update(rows)
    return sums, used, (*left_out, *constant)


def _simulates(data: Predictions, null: str) -> bool:
    expected = float(data.p.sum())
    fewest = min(expected, data.n - expected)
    if null == "gaussian" and fewest < ENOUGH:
        raise NotComputable(
            f"only {fewest:.0f} cases or non-cases are expected: the Gaussian null needs {ENOUGH:.0f}; use "
            "null='simulated'"
        )
    return simulates(null, data.n, expected)


# ---- sums in natural units ----


def natural(sums: LocalSums) -> tuple[Floats, Floats, Floats]:
    """Return the sums of features times residuals (data, then draws), their null covariance, and the features' sums."""
    size = steps_of(sums.spec)
    expected = (np.ldexp(sums.means[:, 0].astype(np.float64), HALF) + sums.means[:, 1]) / SCORE_STEPS
    half = np.triu(joined(sums.gram))
    gram = (half + np.triu(half, 1).T) / np.outer(size, size) / VARIANCE
    return (sums.hits - expected[:, None]) / size[:, None], gram, sums.means[:, 2] / size


def steps_of(spec: LocalSpec) -> Floats:
    """Return the whole-numbered steps of each feature in one unit of it."""
    out = np.ones(spec.columns)
    out[1], out[2 : 2 + spec.joint] = LOGIT, UNIT
    for b in blocks_of(spec):
        if not b.levels:
            out[b.smooth] = UNIT
    return out


def blocks_of(spec: LocalSpec) -> list[Block]:
    """Return the columns of each variable; a missing-value indicator is a variable of its own.

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
    """Return the straight line through the knots as a sum of a line's smooth functions, one at the farthest knot."""
    knots = np.array(q.knots)
    trend: Floats = np.array(q.whitening).T @ (knots / max(float(np.abs(knots).max()), 1e-300))
    return trend


# ---- equation 4 of the sums, and how large its kernel can be ----


def squared_error(sums: LocalSums, score: Floats) -> float:
    """Return ``KLCE^2`` under the joint features: the square of their sums less the rows' own squares (equation 4)."""
    n, joint = int(sums.counts[0]), slice(2, 2 + sums.spec.joint)
    own = float(joined(sums.diagonal)[0]) / UNIT / SQUARE
    return (float((score[joint] ** 2).sum()) - own) / (n * (n - 1.0))


def kernel_bound(spec: LocalSpec) -> float:
    """Return B with ``|phi(z)|^2 <= B`` for the joint features phi of every row z, as they are computed.

    Exact ones are a projection of ``k(z, .)``, whose length is 1. With the landmarks' Gram matrix K, the whitening G as
    stored and the bells b of z as tabulated, ``|G'b| <= sqrt(|G'KG|) + |G| |b - k_z|``, and rounding adds half a step
    a feature; the derivation is in docs/methods/klce.md.
    """
    if not spec.joint:
        return 0.0
    marks, whitening = np.array(spec.landmarks, dtype=np.float64), np.array(spec.whitening) / COORDINATE
    with one_thread():
        projected = whitening.T @ np.exp(-distances(marks, marks) * spec.scale) @ whitening
        length = np.sqrt(np.linalg.norm(projected, 2)) + np.linalg.norm(whitening, 2) * BELL * np.sqrt(len(marks))
    return float(length + 0.5 / UNIT * np.sqrt(spec.joint)) ** 2
