"""From the sums of the local test to its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.data.coding import Coding
from calibrant.data.local import LocalSums, joined
from calibrant.data.local_plan import JOINT_LEVELS, KNOTS, STEPS
from calibrant.data.local_spec import SCORE, LocalSpec
from calibrant.detect.local_exact import CONTRADICTED, METHOD, NULL
from calibrant.kernels.features_reference import CELLS, HALF, LOGIT, REACH, SCORE_STEPS, UNIT, VARIANCE
from calibrant.kernels.threads import one_thread
from calibrant.results import Outcome
from calibrant.stats.local_findings import GLOBAL, LOCAL, Findings, findings
from calibrant.stats.spectra import LEAST, Block, gaussian_scores

GAUSSIAN = 4000  # draws
LEAST_GAUSSIAN = 25.0  # null variance from which on the sum of a step or a level counts as Gaussian
STREAM = 0x10CA1
EXACT = "exact simulation"
LIMIT = "asymptotic: the sums' joint Gaussian law"
CLUSTERED = "sign flips of whole clusters, asymptotic in their number"


def blocks_of(spec: LocalSpec) -> list[Block]:
    """Return the columns of each variable; a missing-value indicator is a variable of its own."""
    out = []
    for q, first, last in zip(spec.lines, spec.starts, spec.starts[1:], strict=False):
        out.append(Block(q.name, np.arange(first, first + q.smooth), np.arange(first + q.smooth, last)))
    after = spec.starts[len(spec.lines) :]
    for v, first, last in zip(spec.levels, after, after[1:], strict=False):
        out.append(Block(v.name, np.arange(first, last), np.arange(first, last), levels=True))
    return out


def populous(b: Block, gram: Any) -> Block:
    """Return a variable without the levels whose sums are too small to be Gaussian."""
    if not b.levels:
        return b
    variance = np.diag(gram)[b.smooth]
    kept = b.smooth[(variance >= LEAST_GAUSSIAN) | (variance == 0.0)]  # nothing is read from an empty one
    return Block(b.name, kept, kept, levels=True)


def sizes(spec: LocalSpec) -> Any:
    """Return the steps of each feature in one."""
    out = np.ones(spec.columns)
    out[1], out[2 : 2 + spec.joint] = LOGIT, UNIT
    for b in blocks_of(spec):
        if not b.levels:
            out[b.smooth] = UNIT
    return out


def natural(sums: LocalSums) -> tuple[Any, Any, Any]:
    """Return the sums of features times residuals (data, then draws), their null covariance, and the features' sums."""
    size = sizes(sums.spec)
    expected = (np.ldexp(sums.means[:, 0].astype(np.float64), HALF) + sums.means[:, 1]) / SCORE_STEPS
    half = np.triu(joined(sums.gram))
    gram = (half + np.triu(half, 1).T) / np.outer(size, size) / VARIANCE
    return (sums.hits - expected[:, None]) / size[:, None], gram, sums.means[:, 2] / size


def outcome(
    sums: LocalSums, codings: Sequence[Coding], flips: Any = None, left_out: Sequence[tuple[str, str]] = ()
) -> Outcome:
    """Return the outcome of the default test; `flips` are sums of features times sign-flipped residuals of clusters."""
    spec = sums.spec
    with one_thread():
        score, gram, rows = natural(sums)
        simulated = bool(spec.draws) or flips is not None
        if flips is not None:
            score = np.column_stack([score[:, 0], flips / sizes(spec)[:, None]])
        elif not simulated:
            rng = np.random.default_rng([STREAM, spec.seed])
            score = np.column_stack([score[:, 0], gaussian_scores(gram, GAUSSIAN, rng)])
        joint = np.arange(2, 2 + spec.joint)
        blocks = blocks_of(spec)
        if not simulated:
            blocks = [populous(b, gram) for b in blocks]
        found = findings(score, gram, joint, blocks, LEAST if simulated else LEAST_GAUSSIAN)
    law = CLUSTERED if flips is not None else EXACT if simulated else LIMIT
    n, cases, contradicted = (int(v) for v in sums.counts)
    squared = float(joined(sums.diagonal)[0]) / UNIT / (1 << 16)
    raw = (float((score[joint, 0] ** 2).sum()) - squared) / (n * (n - 1.0))
    return Outcome(
        method=METHOD,
        statistic=raw,
        p_value=0.0 if contradicted else found.overall,
        alternative="the event rate given score and covariates is not the score",
        null=NULL,
        law=f"certain: {CONTRADICTED}" if contradicted else law,
        settings=settings(spec, codings, score.shape[1] - 1, n, left_out),
        parts={
            "p_global": found.everyone,
            "p_local": found.local,
            "p_joint": found.joint,
            "p_intercept": found.p_values["intercept"],
            "p_intercept_slope": found.p_values["intercept and slope"],
            "cases": cases,
            "expected": cases - float(score[0, 0]),
            "contradicted": contradicted,
            "statistics": tuple(found.p_values),
            "p_values": tuple(found.p_values.values()),
            "variables": tuple(found.variables),
            "variable_p": tuple(p for p, _ in found.variables.values()),
            "variable_adjusted_p": tuple(q for _, q in found.variables.values()),
            **region(spec, codings, found, score, rows),
        },
    )


def settings(
    spec: LocalSpec, codings: Sequence[Coding], draws: int, n: int, left_out: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Return what the number depends on, and what was done to the covariates."""
    shared = tuple(q.name for q in spec.levels if q.shared)
    return {
        "features": "default",
        "n": n,
        "draws": draws,
        "seed": spec.seed,
        "landmarks": len(spec.landmarks),
        "joint_features": spec.joint,
        "columns": spec.columns,
        "width": spec.width,
        "knots": KNOTS,
        "steps": STEPS,
        "variables": tuple(c.name for c in codings),
        "score_only": not codings,
        "score_scaling": "constant" if spec.score.kind == "constant" else spec.score.scaling,
        "ranked": tuple(c.name for c in codings if c.scaling == "rank"),
        "left_out": tuple(tuple(pair) for pair in left_out),
        "levels_shared": shared,
        "levels_in_joint": JOINT_LEVELS,
        "weights": tuple((GLOBAL | LOCAL).items()),
        "logit_limit": UNIT / LOGIT,
    }


def region(spec: LocalSpec, codings: Sequence[Coding], found: Findings, score: Any, rows: Any) -> dict[str, Any]:
    """Return the step or level that deviates most from the rest, on the side with fewer rows."""
    if found.column < 0:
        return {}
    j = int(np.searchsorted(spec.starts, found.column, side="right")) - 1
    n, count, gap, sign = float(rows[0]), float(rows[found.column]), float(score[found.column, 0]), 1.0
    side, value = named(spec, codings, j, found.column)
    if side == "at least" and count > n / 2:
        side, count, gap, sign = "under", n - count, float(score[0, 0]) - gap, -1.0
    return {
        "region_variable": [*(q.name for q in spec.lines), *(q.name for q in spec.levels)][j],
        "region_side": side,
        "region_value": value,
        "region_rows": round(count),
        "region_gap": gap / count,
        "region_excess": sign * found.excess / count,
        "region_z": sign * found.z,
    }


def named(spec: LocalSpec, codings: Sequence[Coding], j: int, column: int) -> tuple[str, float | str]:
    """Return the side and the value of a step, or "is" and the level."""
    if j >= len(spec.lines):
        v = spec.levels[j - len(spec.lines)]
        return "is", level_label(v.name, np.flatnonzero(v.column == column - spec.starts[j]), codings)
    q = spec.lines[j]
    coding = spec.score if q.name == SCORE else next(c for c in codings if c.name == q.name)
    return "at least", original(coding, q.steps[column - spec.starts[j] - q.smooth])


def original(c: Coding, cell: int) -> float:
    """Return the value at the lower end of a cell, in the covariate's own unit."""
    scaled = (cell * (2.0 * REACH / CELLS) - REACH - 0.5 / 4096) * c.scale + c.location
    if not c.ranks:
        return float(scaled)
    return float(np.interp(scaled, np.linspace(0.0, 1.0, len(c.ranks)), c.ranks))


def level_label(name: str, members: Any, codings: Sequence[Coding]) -> str:
    """Name the levels of one column."""
    labels: Sequence[str] = next((c.labels for c in codings if c.name == name), ("no", "yes"))
    if len(members) == 1:
        return str(labels[int(members[0])])
    return f"one of {len(members)} less frequent levels"
