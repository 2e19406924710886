"""Fix the features of the local test from a sample of scores and covariates: no label is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Encoded, codings, encode
from calibrant.data.local_spec import SCORE, Levels, Line, LocalSpec
from calibrant.errors import BadInput
from calibrant.kernels.features_reference import CELLS, COORDINATE, coordinates
from calibrant.kernels.reference import mix
from calibrant.kernels.threads import one_thread

LANDMARKS = 128
KNOTS = 12
STEPS = (0.1, 0.25, 0.5, 0.75, 0.9)  # quantiles at which a step rises
SPAN = 2.0  # width of the joint kernel, in median distances; of a single coordinate's, one
TOLERANCE = 1e-4  # of the largest eigenvalue of a kernel's Gram matrix
PAIRS = 256  # rows whose distances give the median
JOINT_LEVELS = 16  # columns of a level variable that enters the joint kernel, at most
OWN, SHARED, LEVEL_COLUMNS = 96, 31, 1024  # columns for levels: of their own, shared by hash; of all variables
MOST = 100  # covariates
SIMULATED = 200_000  # rows up to which "auto" simulates the outcomes
ENOUGH = 100.0  # expected cases, and non-cases, from which on the Gaussian null is allowed
DRAWS = 999  # simulated outcomes that a sketch sums
NULLS = ("auto", "simulated", "gaussian")


def simulates(null: str, n: int, expected: float) -> bool:
    """Tell whether outcomes are simulated, from the number of rows and the expected number of cases."""
    if null == "auto":
        return n <= SIMULATED or min(expected, n - expected) < ENOUGH
    return null == "simulated"


def local_spec(
    p: Any, table: Any, how: Sequence[Coding], draws: int, seed: int, landmarks: int = LANDMARKS
) -> LocalSpec:
    """Return the features for a sample of rows in random order; `draws` is 0 for the Gaussian null."""
    import pyarrow as pa

    used = [c for c in how if c.kind != "constant"]
    if len(used) > MOST:
        raise BadInput(f"{len(used)} covariates are too many for one test (at most {MOST}): name fewer in variables=")
    score = codings(pa.table({SCORE: p}))[0]
    e = encode(table, used, len(p))
    z = np.column_stack([score.scaled(p), e.scaled]) if score.kind != "constant" else e.scaled
    names = ((SCORE,) if score.kind != "constant" else ()) + e.number_names
    for name in e.level_names + e.number_names:
        if name == SCORE or (e.level_names + e.number_names).count(name) > 1:
            raise BadInput(f"covariate {name!r}: the test gives that name to something else, so rename the column")
    fixed = coordinates(z)
    levels = _levels(e)
    with one_thread():
        lines = tuple(_line(name, fixed[:, j]) for j, name in enumerate(names))
        points = joint_points(fixed, e.codes, levels)
        marks, width, whitening = _joint(points, landmarks)
    return LocalSpec(
        seed=seed,
        draws=draws,
        score=score,
        lines=lines,
        levels=levels,
        landmarks=marks,
        width=width,
        whitening=whitening,
    )


def joint_points(fixed: Any, codes: Any, levels: Sequence[Levels]) -> Any:
    """Return the coordinates of the joint kernel, in steps: numbers, then one a level."""
    parts = [fixed]
    for j, q in enumerate(levels):
        if q.spread:
            parts.append(q.spread * (q.column[codes[:, j]][:, None] == np.arange(q.width)))
    return np.hstack(parts).astype(np.float64)


def distances(a: Any, b: Any) -> Any:
    """Return squared distances between rows of whole numbers, exactly."""
    return (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2.0 * (a @ b.T)


def _levels(e: Encoded) -> tuple[Levels, ...]:
    sizes = [len(labels) for labels in e.level_labels]
    wide = sum(s > JOINT_LEVELS for s in sizes)
    own = min(OWN, max(16, LEVEL_COLUMNS // max(wide, 1) - SHARED - 1))
    out = []
    for j, (name, size) in enumerate(zip(e.level_names, sizes, strict=True)):
        whole = size <= own + SHARED + 1
        q = Levels(name=name, size=size, own=size if whole else own, shared=0 if whole else SHARED, spread=0)
        share = np.bincount(q.column[e.codes[:, j]], minlength=q.width) / max(e.n, 1)
        differ = 1.0 - float((share**2).sum())
        spread = int(np.rint(COORDINATE / np.sqrt(differ))) if differ > 0 and size <= JOINT_LEVELS else 0
        out.append(Levels(name=name, size=size, own=q.own, shared=q.shared, spread=spread))
    return tuple(out)


def _line(name: str, fixed: Any) -> Line:
    knots = np.unique(np.rint(np.quantile(fixed, (np.arange(KNOTS) + 0.5) / KNOTS))) / COORDINATE
    width = _median(fixed[:PAIRS, None]) / COORDINATE
    cells = cell_of(fixed)
    rises = np.unique(cell_of(np.rint(np.quantile(fixed, STEPS)))) + 1
    top = int(cells.max())
    return Line(
        name=name,
        knots=tuple(knots.tolist()),
        width=width,
        steps=tuple(int(c) for c in rises if c <= top),
        whitening=tuple(map(tuple, _whitening(np.exp(-0.5 * (np.subtract.outer(knots, knots) / width) ** 2)).tolist())),
    )


def cell_of(fixed: Any) -> Any:
    """Return the table's cell of each coordinate."""
    return (fixed.astype(np.int64) >> 4) + CELLS // 2


def _median(points: Any) -> float:
    d = distances(points, points)[np.triu_indices(len(points), 1)]
    there = d[d > 0]
    return float(np.sqrt(np.median(there))) if len(there) else float(COORDINATE)


def _whitening(gram: Any) -> Any:
    """Return G with ``G' K G = 1`` over the eigenvectors that count."""
    from scipy.linalg import eigh

    values, vectors = eigh(gram)
    kept = values > TOLERANCE * values[-1]
    return (vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1]


def _joint(points: Any, size: int) -> tuple[Any, float, Any]:
    where = np.sort(np.unique(points, axis=0, return_index=True)[1])[:size]
    if len(where) < 2:
        return (), 1.0, ()
    marks = points[where]
    width = SPAN * _median(points[:PAIRS]) / COORDINATE
    gram = np.exp(-distances(marks, marks) * (0.5 / (width * COORDINATE) ** 2))
    fixed = np.rint(_whitening(gram) * COORDINATE)
    return _whole(marks), width, _whole(fixed)


def _whole(rows: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, rows.astype(np.int64).tolist()))


def salt_of(seed: int) -> int:
    """Return the number that makes the test's simulated outcomes its own."""
    return int(mix(np.array([seed ^ 0x6C6F63616C], dtype=np.uint64))[0])
