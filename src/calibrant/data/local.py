"""The sums that the local test reads: features fixed from a sample of rows, whole numbers however the rows were split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Encoded, Rows, codings, encode
from calibrant.data.spec import SCORE, Levels, Line, LocalSpec
from calibrant.errors import BadInput
from calibrant.kernels.draws import mix
from calibrant.kernels.features import (
    CELLS,
    COORDINATE,
    HALF,
    ROWS,
    SCORE_STEPS,
    UNIT,
    coordinates,
    flagged,
    logits,
    variances,
)
from calibrant.kernels.runtime import one_thread

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
    return _integer_rows(marks), width, _integer_rows(fixed)


def _integer_rows(rows: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, rows.astype(np.int64).tolist()))


def salt_of(seed: int) -> int:
    """Return the number that makes the test's simulated outcomes its own."""
    return int(mix(np.array([seed ^ 0x6C6F63616C], dtype=np.uint64))[0])


LIMB = 20  # bits of the lower limb of a large sum

SQUARE = 1 << 16  # steps of a squared residual in one

BESIDE = 4  # columns beside the weighted features: outcome, two halves of the score, one

PANEL = 64  # columns of the Gram matrix multiplied at once

COUNTS = ("rows", "cases", "contradicted")


class Features:
    """From rows to whole-numbered features."""

    def __init__(self, spec: LocalSpec) -> None:
        from calibrant.kernels.features import Tables

        self.spec = spec
        self.tables = Tables([q.table for q in spec.lines], 2 + spec.joint)
        self.landmarks = np.array(spec.landmarks, dtype=np.float64)
        self.whitening = np.array(spec.whitening, dtype=np.float64) / COORDINATE  # exact: a power of two

    def of(self, p: Any, e: Encoded, out: Any) -> None:
        """Write the features into `out`, float64 of shape (rows, columns): whole, within plus and minus 8192."""
        from calibrant.kernels.features import bells

        s = self.spec
        z = np.column_stack([s.score.scaled(p), e.scaled]) if s.score.kind != "constant" else e.scaled
        fixed = coordinates(z)
        out[:, 0], out[:, 1] = 1.0, logits(p)
        if s.joint:
            near = bells(joint_points(fixed, e.codes, s.levels), self.landmarks, s.scale)
            smooth = near @ self.whitening
            np.rint(smooth, out=smooth)
            np.clip(smooth, -UNIT, UNIT, out=out[:, 2 : 2 + s.joint])
        self.tables.write(cell_of(fixed), out)
        if s.levels:
            out[:, s.starts[len(s.lines)] :] = 0.0
            columns = np.column_stack([q.column[e.codes[:, j]] for j, q in enumerate(s.levels)])
            flagged(columns, s.starts[len(s.lines) : -1], out)


class LocalSums:
    """Sums of features times outcomes, simulated outcomes, scores and null variances.

    Parameters
    ----------
    spec : LocalSpec
    """

    def __init__(self, spec: LocalSpec) -> None:
        self.spec = spec
        self.features = Features(spec)
        d = spec.columns
        self.counts = np.zeros(len(COUNTS), dtype=np.int64)
        self.hits = np.zeros((d, 1 + spec.draws), dtype=np.int64)
        self.means = np.zeros((d, 3), dtype=np.int64)
        self.gram = np.zeros((2, d, d), dtype=np.int64)
        self.diagonal = np.zeros((2, 1), dtype=np.int64)
        self._room = np.empty((ROWS, d)), np.empty((ROWS, d + BESIDE))

    def update(self, rows: Rows) -> None:
        """Add rows."""
        for start in range(0, len(rows.p), ROWS):
            at = slice(start, start + ROWS)
            f = self._room[0][: len(rows.p[at])]
            self.features.of(rows.p[at], part_of(rows.encoded, at), f)
            self._add(rows.p[at], rows.y[at], rows.ids[at], f)

    def _add(self, p: Any, y: Any, ids: Any, f: Any) -> None:
        n, d = f.shape
        self.counts += np.array([n, np.count_nonzero(y), np.count_nonzero(np.where(y == 1, p == 0.0, p == 1.0))])
        steps = np.rint(p * SCORE_STEPS).astype(np.int64)
        left = self._room[1][:n]
        for j, column in enumerate((y, steps >> HALF, steps & ((1 << HALF) - 1), 1.0)):
            left[:, j] = column
        np.multiply(f, variances(p, ids)[:, None], out=left[:, BESIDE:])
        for first in range(0, d, PANEL):
            part = slice(first and first + BESIDE, first + BESIDE + PANEL)
            product = left[:, part].T @ f[:, first:]
            if not first:
                self.hits[:, 0] += product[0].astype(np.int64)
                self.means += product[1:BESIDE].T.astype(np.int64)
                product = product[BESIDE:]
            add(self.gram[:, first : first + PANEL, first:], product)
        if self.spec.draws:
            self._simulate(p, ids, f)
        joint = f[:, 2 : 2 + self.spec.joint]
        square = np.rint((y - p) ** 2 * SQUARE)
        add(self.diagonal, np.atleast_1d(np.rint(np.einsum("ij,ij->i", joint, joint) / UNIT) @ square))

    def _simulate(self, p: Any, ids: Any, f: Any) -> None:
        from calibrant.kernels.draws import outcomes

        drawn = outcomes(ids, p, 0, self.spec.draws, salt_of(self.spec.seed))
        self.hits[:, 1:] += (f.astype(np.float32).T @ drawn.astype(np.float32)).astype(np.int64)

    def merge(self, other: LocalSums) -> None:
        """Add other sums of the same spec."""
        self.counts += other.counts
        self.hits += other.hits
        self.means += other.means
        for mine, theirs in ((self.gram, other.gram), (self.diagonal, other.diagonal)):
            mine += theirs
            carry(mine)

    def arrays(self) -> dict[str, Any]:
        """Return the state."""
        return {name: getattr(self, name) for name in ("counts", "hits", "means", "gram", "diagonal")}

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Tell whether arrays of these shapes can be this part's state."""
        return {name: held.shape for name, held in self.arrays().items()} == dict(shapes)

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over the state that `arrays` described."""
        for name, values in arrays.items():
            setattr(self, name, values)


def part_of(e: Encoded, at: slice) -> Encoded:
    """Return some of the rows."""
    return replace(e, numbers=e.numbers[at], scaled=e.scaled[at], codes=e.codes[at])


def add(limbs: Any, more: Any) -> None:
    """Add whole numbers (exact in float64) to sums kept as two limbs."""
    limbs[0] += more.astype(np.int64)
    carry(limbs)


def carry(limbs: Any) -> None:
    """Leave `LIMB` bits in the lower limb, so that equal sums have equal limbs."""
    limbs[1] += limbs[0] >> LIMB
    limbs[0] &= (1 << LIMB) - 1


def joined(limbs: Any) -> Any:
    """Return sums kept as two limbs as float64."""
    return np.ldexp(limbs[1].astype(np.float64), LIMB) + limbs[0]
