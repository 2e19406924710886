"""The sums that the local test reads: features fixed from a sample of rows, whole numbers however the rows were split.

Step numbers are those of "How it works" in docs/tests.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated

import numpy as np
import pyarrow as pa
from msgspec import Meta
from numpy.typing import NDArray

from calibrant.data.columns import Floats, Ids
from calibrant.data.specs.coding import SCORE, TOP, Codes, Coding, Encoded, Rows, codings, encode
from calibrant.data.specs.sketch_file import Integers, Sums, need
from calibrant.errors import BadInput
from calibrant.kernels.draws import mix, outcomes
from calibrant.kernels.features import (
    CELLS,
    CLUSTER,
    COORDINATE,
    HALF,
    REACH,
    ROWS,
    SCORE_STEPS,
    VARIANCE,
    Tables,
    bells,
    coordinates,
    flagged,
    logits,
    variances,
)
from calibrant.kernels.runtime import one_thread
from calibrant.kernels.tally import SCORE_BITS

Labels = NDArray[np.int8]

# What is fixed before any label is read (1). Widths and numbers were chosen by power in simulation: uniform landmarks
# beat random Fourier features of the same number, and at these widths a kernel's effective rank is far below its
# landmarks.

LANDMARKS = 128
KNOTS = 12
STEPS = (0.1, 0.25, 0.5, 0.75, 0.9)  # quantiles at which a step rises
SPAN = 2.0  # width of the joint kernel, in median distances; of a single coordinate's, one
TOLERANCE = 1e-4  # of the largest eigenvalue of a kernel's Gram matrix: smaller ones are its rounding
PAIRS = 256  # rows whose distances give the median: 32,640 pairs
JOINT_LEVELS = 16  # columns of a level variable that enters the joint kernel, at most
OWN, SHARED, LEVEL_COLUMNS = 96, 31, 1024  # columns for levels: of their own, shared by hash; of all variables
MOST = 100  # covariates
INSTEAD = f"name at most {MOST} in variables=, or run calibrant.audit, which chooses some on rows that it does not test"
SIMULATED = 200_000  # rows up to which "auto" simulates the outcomes
ENOUGH = 100.0  # expected events, and non-events, from which on the Gaussian null is allowed
DRAWS = 999  # simulated outcomes that a sketch sums: the smallest p-value is 0.001
NULLS = ("auto", "simulated", "gaussian")

# What a stored spec may hold: more than any that is made here, and no more than memory can take.

MOST_DRAWS = 4096
MOST_COLUMNS = 4096  # features
MOST_MARKS, MOST_KNOTS = 256, 64
FAR = 1 << 24  # of a landmark's coordinates, in steps
STEEP = 1 << 40  # of the joint whitening, in steps
NARROW, WIDE = 1e-5, 1e5  # of a bell, in standard deviations; coordinates have steps of 1/4096 and end at 8
LARGE = 1e6  # in absolute value, of a line's whitening

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Near = Annotated[int, Meta(ge=-FAR, le=FAR)]
Weight = Annotated[int, Meta(ge=-STEEP, le=STEEP)]
Matrix = tuple[tuple[int, ...], ...]


# ---- what the sums are sums of ----


@dataclass(frozen=True, kw_only=True)
class Line:
    """Functions of one coordinate: smooth ones, and steps."""

    name: str  # of the covariate, or ``"(score)"``
    knots: tuple[float, ...]  # centres of the Gaussian bells, in standard deviations
    width: float
    whitening: tuple[tuple[float, ...], ...]  # from bells to functions that are orthonormal in the kernel's space
    steps: tuple[Count, ...]  # cells at which a step rises from zero to one

    @property
    def smooth(self) -> int:
        """Number of smooth functions."""
        return len(self.whitening[0])

    @cached_property
    def table(self) -> NDArray[np.int16]:
        """The functions at the middle of every cell, in whole steps."""
        z = (np.arange(CELLS) + 0.5) * (2.0 * REACH / CELLS) - REACH
        bells = np.exp(-0.5 * ((z[:, None] - np.array(self.knots)) / self.width) ** 2)
        smooth = np.einsum("ck,kr->cr", bells, np.array(self.whitening))
        rises = np.arange(CELLS)[:, None] >= np.array(self.steps, dtype=np.int64)
        return np.hstack([np.clip(np.rint(CLUSTER * smooth), -CLUSTER, CLUSTER), rises]).astype(np.int16)

    def check(self, where: str) -> None:
        """Refuse a stored line that no sample can have led to."""
        need(0 < len(self.knots) <= MOST_KNOTS and increasing(self.knots), where, "has knots that do not increase")
        need(NARROW <= self.width <= WIDE and max(map(abs, self.knots)) <= WIDE, where, f"has width {self.width}")
        need(_shaped(self.whitening, len(self.knots)), where, "has a whitening of the wrong shape")
        need(all(abs(v) <= LARGE for row in self.whitening for v in row), where, "has a whitening out of reach")
        need(increasing((-1, *self.steps, CELLS)), where, "has steps outside the table")


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Columns of one level variable."""

    name: str
    size: Count  # levels, "other" and "missing" included
    # Levels with a column of their own, from the first on; if there are more, the last one ("missing") too.
    own: Count
    shared: Annotated[int, Meta(ge=0, le=TOP)]  # columns among which the remaining levels are dealt by hash
    # Coordinate of a level in the joint kernel, in steps; 0 if the variable does not enter it.
    spread: Annotated[int, Meta(ge=0, le=FAR)]

    @property
    def width(self) -> int:
        """Columns."""
        return self.own + (self.size > self.own) + self.shared

    @cached_property
    def column(self) -> Integers:
        """Column of each level."""
        level = np.arange(self.size)
        if self.size == self.own:
            return level
        shared = self.own + 1 + (mix(level.astype(np.uint64)) % np.uint64(max(self.shared, 1))).astype(np.int64)
        return np.where(level < self.own, level, np.where(level == self.size - 1, self.own, shared))

    def check(self, where: str) -> None:
        """Refuse stored columns that go with no level variable."""
        need(1 <= self.own <= self.size, where, "has an odd number of columns")
        need((self.shared > 0) == (self.size > self.own), where, "shares columns among no levels")


@dataclass(frozen=True, kw_only=True)
class LocalSpec:
    """Features of the local test; two sums add up only if their specs are equal."""

    seed: Count
    draws: Annotated[int, Meta(ge=0, le=MOST_DRAWS)]  # simulated outcomes summed with the data; 0 for the Gaussian null
    score: Coding  # how the score is standardised
    lines: tuple[Line, ...]  # the score (unless constant), then the numeric covariates
    levels: tuple[Levels, ...]  # of the level variables, in the order of the encoded codes
    landmarks: tuple[tuple[Near, ...], ...]  # coordinates of rows, in steps: score, numbers, then one a level
    width: float  # of the joint Gaussian kernel, in standard deviations
    # From landmarks to features that are orthonormal in the joint kernel's space, in steps of 1/4096.
    whitening: tuple[tuple[Weight, ...], ...]

    @property
    def joint(self) -> int:
        """Joint features."""
        return len(self.whitening[0]) if self.whitening else 0

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """First column of each line, then of each level variable, then the number of columns.

        Columns 0 and 1 are the constant and the logit; the joint features follow.
        """
        widths = [len(q.whitening[0]) + len(q.steps) for q in self.lines] + [q.width for q in self.levels]
        return tuple(int(v) for v in np.cumsum([2 + self.joint, *widths]))

    @property
    def columns(self) -> int:
        """Features in all."""
        return self.starts[-1]

    @property
    def scale(self) -> float:
        """Exponent of the joint kernel per squared step."""
        return 0.5 / (self.width * COORDINATE) ** 2

    def check(self, how: Sequence[Coding]) -> None:
        """Refuse a stored spec that does not go with the codings of the covariates."""
        numbers = [c for c in how if c.kind != "category"]
        categories = [(c.name, len(c.labels)) for c in how if c.kind == "category"]
        flags = [(f"{c.name} is missing", 2) for c in numbers if c.missing]
        need(self.score.name == SCORE and self.score.kind in ("number", "constant"), "spec.local.score", "is not it")
        self.score.check("spec.local.score")
        own = [SCORE] if self.score.kind == "number" else []
        need([q.name for q in self.lines] == own + [c.name for c in numbers], "spec.local.lines", "are not the numbers")
        need([(q.name, q.size) for q in self.levels] == categories + flags, "spec.local.levels", "are not the levels")
        for line in self.lines:
            line.check(f"spec.local line {line.name!r}")
        for q in self.levels:
            q.check(f"spec.local level {q.name!r}")
        where, marks = "spec.local.landmarks", len(self.landmarks)
        wide = len(self.lines) + sum(q.width for q in self.levels if q.spread)
        need(bool(self.landmarks) == bool(self.whitening), where, "do not go with the whitening")
        need(NARROW <= self.width <= WIDE, where, f"have width {self.width}")
        need(marks <= MOST_MARKS and all(len(m) == wide for m in self.landmarks), where, "have the wrong shape")
        need(not marks or _shaped(self.whitening, marks), "spec.local.whitening", "has the wrong shape")
        need(self.columns <= MOST_COLUMNS, "spec.local", f"has {self.columns:,} features")


def increasing(values: Sequence[float]) -> bool:
    """Whether every value is larger than the one before."""
    return all(a < b for a, b in pairwise(values))


def _shaped(rows: Sequence[Sequence[float]], size: int) -> bool:
    """Whether a whitening of so many functions has a row for each, all of one width from 1 to their number."""
    return len(rows) == size and 1 <= len(rows[0]) <= size and all(len(r) == len(rows[0]) for r in rows)


# ---- from a sample of rows to the features ----


def simulates(null: str, n: int, expected: float) -> bool:
    """Whether outcomes are simulated, from the number of rows and the expected number of events."""
    if null == "auto":
        return n <= SIMULATED or min(expected, n - expected) < ENOUGH
    return null == "simulated"


def local_spec(
    p: Floats, table: pa.Table, how: Sequence[Coding], draws: int, seed: int, landmarks: int = LANDMARKS
) -> LocalSpec:
    """The features for a sample of rows in random order; `draws` is 0 for the Gaussian null."""
    used = [c for c in how if c.kind != "constant"]
    if len(used) > MOST:
        raise BadInput(f"{len(used)} covariates are too many for one test: {INSTEAD}")
    score = codings(pa.table({SCORE: p}))[0]
    e = encode(table, used, len(p))
    names = ((SCORE,) if score.kind != "constant" else ()) + e.number_names
    for name in e.level_names + e.number_names:
        if name == SCORE or (e.level_names + e.number_names).count(name) > 1:
            raise BadInput(f"covariate {name!r}: the test gives that name to something else, so rename the column")
    fixed = coordinates(standardised(score, p, e))
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


def standardised(score: Coding, p: Floats, e: Encoded) -> Floats:
    """The score (unless constant) and the numbers, in standard deviations."""
    return np.column_stack([score.scaled(p), e.scaled]) if score.kind != "constant" else e.scaled


def joint_points(fixed: Floats, codes: Codes, levels: Sequence[Levels]) -> Floats:
    """The coordinates of the joint kernel, in steps: numbers, then one a level."""
    parts = [fixed]
    for j, q in enumerate(levels):
        if q.spread:
            parts.append(q.spread * (q.column[codes[:, j]][:, None] == np.arange(q.width)))
    return np.hstack(parts).astype(np.float64)


def distances(a: Floats, b: Floats) -> Floats:
    """Squared distances between rows of whole numbers, exactly."""
    squared: Floats = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2.0 * (a @ b.T)
    return squared


def _levels(e: Encoded) -> tuple[Levels, ...]:
    """The columns of each level variable; wide ones share the columns that are left by hash."""
    sizes = [len(labels) for labels in e.level_labels]
    wide = sum(s > JOINT_LEVELS for s in sizes)
    own = min(OWN, max(16, LEVEL_COLUMNS // max(wide, 1) - SHARED - 1))
    out = []
    for j, (name, size) in enumerate(zip(e.level_names, sizes, strict=True)):
        whole = size <= own + SHARED + 1
        q = Levels(name=name, size=size, own=size if whole else own, shared=0 if whole else SHARED, spread=0)
        share = np.bincount(q.column[e.codes[:, j]], minlength=q.width) / max(e.n, 1)
        differ = 1.0 - float((share**2).sum())  # the chance that two rows differ: rare levels lie farther out
        spread = int(np.rint(COORDINATE / np.sqrt(differ))) if differ > 0 and size <= JOINT_LEVELS else 0
        out.append(replace(q, spread=spread))
    return tuple(out)


def _line(name: str, fixed: Floats) -> Line:
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


def cell_of(fixed: Floats) -> Integers:
    """The table's cell of each coordinate: 16 steps each."""
    return (fixed.astype(np.int64) >> 4) + CELLS // 2


def _median(points: Floats) -> float:
    """The median distance between rows that differ."""
    d = distances(points, points)[np.triu_indices(len(points), 1)]
    there = d[d > 0]
    return float(np.sqrt(np.median(there))) if len(there) else float(COORDINATE)


def _whitening(gram: Floats) -> Floats:
    """The matrix G with ``G' K G = 1`` over the eigenvectors that count."""
    from scipy.linalg import eigh

    values, vectors = eigh(gram)
    kept = values > TOLERANCE * values[-1]
    whitened: Floats = (vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1]
    return whitened


def _joint(points: Floats, size: int) -> tuple[Matrix, float, Matrix]:
    """Landmarks, width and whitening of the joint kernel: the first so many distinct rows (Nystrom)."""
    where = np.sort(np.unique(points, axis=0, return_index=True)[1])[:size]
    if len(where) < 2:
        return (), 1.0, ()
    marks = points[where]
    width = SPAN * _median(points[:PAIRS]) / COORDINATE
    gram = np.exp(-distances(marks, marks) * (0.5 / (width * COORDINATE) ** 2))
    fixed = np.rint(_whitening(gram) * COORDINATE)
    return _integer_rows(marks), width, _integer_rows(fixed)


def _integer_rows(rows: Floats) -> Matrix:
    return tuple(map(tuple, rows.astype(np.int64).tolist()))


# ---- from rows to sums ----
# Coordinates are whole steps of 1/4096, features f of 1/8192, variances v = p (1 - p) of 2^-18, scores of 2^-30. Over
# ROWS = 2^11 rows |sum f f v| <= 2^13 2^13 2^16 2^11 = 2^53, and sums of f times an outcome stay within 2^24: what
# float64 and float32 hold exactly, so that neither order nor chunks nor the BLAS matter. Larger sums are two limbs.

LIMB = 20  # bits of the lower limb; with the upper one there is room for 2^83
SQUARE = 1 << 16  # steps of a squared residual in one
WITH = 4  # columns next to the weighted features: outcome, two halves of the score, one
PANEL = 64  # columns of the Gram matrix multiplied at once: half the work of the whole, for it is symmetric
COUNTS = ("rows", "events", "contradicted")
STREAM = 0x6C6F63616C  # "local": the test's simulated outcomes are its own


def salt_of(seed: int) -> int:
    """The number that makes the test's simulated outcomes its own."""
    return int(mix(np.array([seed ^ STREAM], dtype=np.uint64))[0])


class Features:
    """From rows to whole-numbered features."""

    def __init__(self, spec: LocalSpec) -> None:
        self.spec = spec
        self.tables = Tables([q.table for q in spec.lines], 2 + spec.joint)
        self.landmarks = np.array(spec.landmarks, dtype=np.float64)
        self.whitening = np.array(spec.whitening, dtype=np.float64) / COORDINATE  # exact: a power of two

    def of(self, p: Floats, e: Encoded, out: Floats) -> None:
        """Write the features into `out`, float64 of shape (rows, columns): whole, within plus and minus 8192."""
        s = self.spec
        fixed = coordinates(standardised(s.score, p, e))
        out[:, 0], out[:, 1] = 1.0, logits(p)
        if s.joint:
            near = bells(joint_points(fixed, e.codes, s.levels), self.landmarks, s.scale)
            smooth = near @ self.whitening
            np.rint(smooth, out=smooth)
            np.clip(smooth, -CLUSTER, CLUSTER, out=out[:, 2 : 2 + s.joint])
        self.tables.write(cell_of(fixed), out)
        if s.levels:
            out[:, s.starts[len(s.lines)] :] = 0.0
            columns = np.column_stack([q.column[e.codes[:, j]] for j, q in enumerate(s.levels)])
            flagged(columns, s.starts[len(s.lines) : -1], out)


class LocalSums(Sums):
    """Sums of features times outcomes, simulated outcomes, scores and null variances."""

    def __init__(self, spec: LocalSpec) -> None:
        self.spec = spec
        d = spec.columns
        self.counts = np.zeros(len(COUNTS), dtype=np.int64)
        self.hits = np.zeros((d, 1 + spec.draws), dtype=np.int64)
        self.means = np.zeros((d, 3), dtype=np.int64)
        self.gram = np.zeros((2, d, d), dtype=np.int64)
        self.diagonal = np.zeros((2, 1), dtype=np.int64)

    @cached_property
    def features(self) -> Features:
        """From rows to features; made when the first rows are added, for stored sums need none."""
        return Features(self.spec)

    @cached_property
    def _room(self) -> tuple[Floats, Floats]:
        d = self.spec.columns
        return np.empty((ROWS, d)), np.empty((ROWS, d + WITH))

    def update(self, rows: Rows) -> None:
        """Add rows."""
        for start in range(0, len(rows.p), ROWS):
            at = slice(start, start + ROWS)
            f = self._room[0][: len(rows.p[at])]
            self.features.of(rows.p[at], part_of(rows.encoded, at), f)
            self._add(rows.p[at], rows.y[at], rows.ids[at], f)

    def _add(self, p: Floats, y: Labels, ids: Ids, f: Floats) -> None:
        n, d = f.shape
        # (2) answers: features times outcomes, and times the score in two halves, so that each product is exact
        self.counts += np.array([n, np.count_nonzero(y), np.count_nonzero(np.where(y == 1, p == 0.0, p == 1.0))])
        steps = np.rint(p * SCORE_STEPS).astype(np.int64)
        left = self._room[1][:n]
        left[:, 0], left[:, 1], left[:, 2], left[:, 3] = y, steps >> HALF, steps & ((1 << HALF) - 1), 1.0
        # (3) and (4) the covariance of the sums if the model is right: features times features, weighted by p (1 - p)
        np.multiply(f, variances(p, ids)[:, None], out=left[:, WITH:])
        for first in range(0, d, PANEL):
            part = slice(first and first + WITH, first + WITH + PANEL)
            product = left[:, part].T @ f[:, first:]
            if not first:
                self.hits[:, 0] += product[0].astype(np.int64)
                self.means += product[1:WITH].T.astype(np.int64)
                product = product[WITH:]
            add(self.gram[:, first : first + PANEL, first:], product)
        if self.spec.draws:
            # sums of outcomes tossed with the chance that the score says, by identity: the same in any chunk
            drawn = outcomes(ids, p, 0, self.spec.draws, salt_of(self.spec.seed))
            self.hits[:, 1:] += (f.astype(np.float32).T @ drawn.astype(np.float32)).astype(np.int64)
        joint = f[:, 2 : 2 + self.spec.joint]
        square = np.rint((y - p) ** 2 * SQUARE)
        add(self.diagonal, np.atleast_1d(np.rint(np.einsum("ij,ij->i", joint, joint) / CLUSTER) @ square))

    def settle(self) -> None:
        """Carry what runs over a limb."""
        carry(self.gram)
        carry(self.diagonal)

    def arrays(self) -> dict[str, Integers]:
        """The state."""
        return {name: getattr(self, name) for name in ("counts", "hits", "means", "gram", "diagonal")}

    def check(self, n: int, events: int, shown: float) -> None:
        """Refuse stored sums that no rows can have; `shown` is the sum of everyone's scores by the cells."""
        where = "the local test"
        rows = self.counts[0] == n and self.counts[1] == events and 0 <= self.counts[2] <= n
        need(rows, where, "has another number of rows")
        need(
            (np.abs(self.hits.astype(np.float64)) <= float(CLUSTER) * n).all(), where, "has impossible sums of outcomes"
        )
        own = self.hits[0]  # of the constant feature: numbers of events
        need(own[0] == events and (own >= 0).all() and (own <= n).all(), where, "has other outcomes")
        reach = float(CLUSTER) * n * np.array([1 << HALF, 1 << HALF, 1])
        means = (np.abs(self.means.astype(np.float64)) <= reach).all() and self.means[0, 2] == n
        need(means, where, "has impossible means")
        scores = (self.means[0, 0] * 2.0**HALF + self.means[0, 1]) / 2.0**SCORE_BITS
        need(abs(scores - shown) <= 4.0 * n / 2.0**SCORE_BITS + 1e-12 * n, where, "has other scores")  # each is rounded
        largest = float(CLUSTER) ** 2 * VARIANCE, float(CLUSTER) * (1 << 20) * len(self.gram[0])
        for limbs, most in zip((self.gram, self.diagonal), largest, strict=True):
            need(((limbs[0] >= 0) & (limbs[0] < 1 << LIMB)).all(), where, "has sums out of range")
            high = np.abs(limbs[1].astype(np.float64)) * (1 << LIMB)
            need((high <= most * n + (1 << LIMB)).all(), where, "has sums out of range")


def part_of(e: Encoded, at: slice) -> Encoded:
    """Some of the rows."""
    return replace(e, numbers=e.numbers[at], scaled=e.scaled[at], codes=e.codes[at])


def add(limbs: Integers, more: Floats) -> None:
    """Add whole numbers (exact in float64) to sums kept as two limbs."""
    limbs[0] += more.astype(np.int64)
    carry(limbs)


def carry(limbs: Integers) -> None:
    """Leave `LIMB` bits in the lower limb, so that equal sums have equal limbs."""
    limbs[1] += limbs[0] >> LIMB
    limbs[0] &= (1 << LIMB) - 1


def joined(limbs: Integers) -> Floats:
    """Sums kept as two limbs as float64."""
    whole: Floats = np.ldexp(limbs[1].astype(np.float64), LIMB) + limbs[0]
    return whole
