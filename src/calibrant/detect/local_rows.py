"""Rows in memory to the sums of the default local test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, codings, encode
from calibrant.data.identity import identities_of
from calibrant.data.local import LocalSums, part_of
from calibrant.data.local_plan import ENOUGH, local_spec, simulates
from calibrant.data.look import LOOK
from calibrant.data.parts import Rows
from calibrant.data.predictions import Predictions
from calibrant.data.sample import smallest
from calibrant.data.spec import Spec
from calibrant.data.survey import EVERY, survey_rows
from calibrant.detect.local_exact import checked_names
from calibrant.errors import NotComputable
from calibrant.kernels.features_reference import ROWS

AT_ONCE = 1 << 15  # rows encoded at once
STREAM = 0xF11B
FLIPS = 250  # sign flips at once


def sums_of_rows(
    data: Predictions, variables: Sequence[str] | None, draws: int, null: str, seed: int, landmarks: int
) -> tuple[LocalSums, tuple[Coding, ...], tuple[tuple[str, str], ...]]:
    """Return the sums over all rows, how covariates are coded, and which were left out and why."""
    ids = identities_of(data.n, seed)
    p, table, how, left_out = first_look(data, variables, seed, ids)
    simulated = data.clusters is None and _simulates(data, null)
    used = tuple(c for c in how if c.kind != "constant")
    constant = tuple((c.name, "it takes one value only") for c in how if c.kind == "constant")
    sums = LocalSums(local_spec(p, table, used, draws if simulated else 0, seed, landmarks))
    for rows in chunks(data, used, ids):
        sums.update(rows)
    return sums, used, (*left_out, *constant)


def first_look(data: Predictions, variables: Sequence[str] | None, seed: int, ids: Any) -> tuple[Any, Any, Any, Any]:
    """Return scores and covariates of a sample of rows, their codings, and the columns left out, without a label."""
    import pyarrow as pa

    checked_names(variables)
    wanted = tuple(variables) if variables is not None else (EVERY,) if data.covariates is not None else ()
    found = survey_rows(data, Spec(label="y_true", score="y_prob", seed=seed), wanted)
    if found is None:
        order = smallest(ids, (data.p,), LOOK)
        return data.p[order], pa.table({}), (), ()
    return found.p, found.table, codings(found.table, found.names), found.left_out


def chunks(data: Predictions, how: Sequence[Coding], ids: Any) -> Any:
    """Yield the rows, covariates encoded."""
    import pyarrow as pa

    table = data.covariates if data.covariates is not None else pa.table({})
    for start in range(0, data.n, AT_ONCE):
        at = slice(start, start + AT_ONCE)
        p = data.p[at]
        yield Rows(p, data.y[at], ids[at], encode(table.slice(start, AT_ONCE), how, len(p)))


def _simulates(data: Predictions, null: str) -> bool:
    expected = float(data.p.sum())
    fewest = min(expected, data.n - expected)
    if null == "gaussian" and fewest < ENOUGH:
        raise NotComputable(
            f"only {fewest:.0f} cases or non-cases are expected: the Gaussian null needs {ENOUGH:.0f}; use null='simulated'"
        )
    return simulates(null, data.n, expected)


def flipped(sums: LocalSums, data: Predictions, how: Sequence[Coding], draws: int, seed: int) -> Any:
    """Return sums of features times residuals, the residuals of whole clusters with random signs: (columns, draws)."""
    cluster = np.unique(data.clusters, return_inverse=True)[1].reshape(-1)
    size = int(cluster.max()) + 1
    if size < 2:
        raise NotComputable("all rows are one cluster: nothing tells its noise from a bias")
    total = np.zeros((size, sums.spec.columns))
    first = 0
    for rows in chunks(data, how, identities_of(data.n, seed)):
        for start in range(0, len(rows.p), ROWS):
            at = slice(start, start + ROWS)
            f = np.empty((len(rows.p[at]), sums.spec.columns))
            sums.features.of(rows.p[at], part_of(rows.encoded, at), f)
            np.add.at(total, cluster[first : first + len(f)], f * (rows.y[at] - rows.p[at])[:, None])
            first += len(f)
    rng = np.random.default_rng([STREAM, seed])
    signs = (rng.integers(0, 2, (size, min(FLIPS, draws - s))) * 2.0 - 1.0 for s in range(0, draws, FLIPS))
    return np.hstack([total.T @ s for s in signs])
