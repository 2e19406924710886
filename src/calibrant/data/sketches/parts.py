"""What a sketch may hold with its score cells: sums along covariates, for the local test, and whole rows.

Each part sees every sound row once and adds up: whole numbers, or a sample by identity, the same however the rows were
split, ordered or spread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, Self, TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.columns import Floats, Ids, finite_numbers, picked
from calibrant.data.layouts import DAY, as_days, decoded, is_date
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.contents import Contents
from calibrant.data.sketches.sample import (
    COVARIATES,
    HASH,
    LABEL,
    WITH,
    Origin,
    Sample,
    SharedColumns,
    bits_of,
    doubles_of,
    hashes_of,
    labels_of,
    lines_of,
    of_clusters,
    scores_of,
    shared_numbers,
    source_order,
)
from calibrant.data.sketches.sums import Boxes, UnlabelledRows, Values
from calibrant.data.specs.coding import Coding, Encoded, Rows, by_kind, encode
from calibrant.data.specs.local import LocalSums
from calibrant.data.specs.sketch_file import Integers, Sums, need
from calibrant.data.specs.spec import MOST_CELLS, Spec
from calibrant.errors import BadInput
from calibrant.kernels.draws import mix
from calibrant.kernels.strata import fine_sums, locate
from calibrant.kernels.tally import SCORE_BITS


class Part(Protocol):
    """Integer sums, or a sample by identity."""

    def update(self, rows: Rows) -> None:
        """Add rows."""

    def merge(self, other: Self) -> None:
        """Add another part of the same spec."""

    def arrays(self) -> dict[str, Integers]:
        """The state as int64 arrays by name, the same bits for the same rows."""

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be this part's state."""

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the state that `arrays` described."""


class Parts(TypedDict, total=False):
    """The parts of a sketch."""

    boxes: Boxes
    contents: Contents
    fine: Fine
    local: LocalSums
    sample: SampledRows
    unlabelled: UnlabelledRows
    values: Values


def parts_of(spec: Spec) -> Parts:
    """The empty parts that a spec asks for; what the rows hold and the scores themselves are always there."""
    parts: Parts = {"contents": Contents(spec), "values": Values(spec)}
    if spec.codings:
        parts["fine"] = Fine(spec)
    if spec.keeps:
        parts["unlabelled"] = UnlabelledRows(spec)
    if spec.sample:
        parts["sample"] = SampledRows(spec)
    if spec.attributes:
        parts["boxes"] = Boxes(spec)
    if spec.local:
        parts["local"] = LocalSums(spec.local)
    return parts


def sound_rows(
    spec: Spec,
    p: Floats,
    y: NDArray[np.int8],
    stacked: NDArray[np.int32],
    columns: Mapping[str, pa.Array],
    origin: Origin,
) -> Rows | None:
    """The rows whose score and label are sound, covariates encoded; None if there are none.

    `stacked` has a row for each grouping of the spec.
    """
    table = pa.table({c.name: columns[c.name] for c in spec.codings})
    known = spec.sample or spec.local
    ids = origin.identities(len(p), spec) if known else np.zeros(len(p), dtype=np.uint64)
    coded = {c.name for c in spec.codings}
    good = (p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1))
    keys, clusters, weights = origin.keys, origin.clusters(spec), origin.row_attributes.weights
    if not good.all():
        p, y, ids = p[good], y[good], ids[good]
        keys, clusters, weights = picked(keys, good), picked(clusters, good), picked(weights, good)
        table = table.filter(pa.array(good)) if table.num_columns else table
        stacked = stacked[:, good]
    encoded = encode(table, spec.codings, len(p), spec.local is not None)
    of = dict(zip(spec.groupings, stacked, strict=True))
    groups = tuple(of[v.name,] for v in spec.variables if v.name not in coded)
    return Rows(p, y, ids, encoded, groups, keys, origin.part, stacked, clusters, weights) if len(p) else None


MOST_ROWS = 1 << 40  # so that no sum over all rows leaves 64 bits


def need_within(counts: Integers, sums: Integers, step: int, where: str) -> None:
    """Refuse stored counts of rows, and sums over them of whole numbers from 0 to ``step - 1``, that cannot be."""
    need((counts >= 0).all() and (counts <= MOST_ROWS).all(), where, "has a negative or impossible count")
    need((sums >= 0).all() and (sums <= counts * (step - 1)).all(), where, "has a sum that its rows cannot have")


# ---- cells along every covariate, from which curves, rankings and errors along a variable are read ----

MOST = 1 << 31  # rows of a cell, side and label: so many squares of 16-bit scores stay within 63 bits
FIELDS = 4  # rows, sum of the 30-bit score, sum of the squared 16-bit score, sum of the 16-bit place in the cell
HALF = 1 << (SCORE_BITS - 1)  # scores from here on are on the upper side
PLACES = 1 << 16
SHORT = SCORE_BITS - 16  # bits that the score loses before it is squared
SLACK = 1e-9  # of a float64 comparison of sums below 2^63


def ends_of(column: pa.Array | pa.ChunkedArray, name: str) -> tuple[float, ...]:
    """Where the cells along a number or date begin, and where the last ends; labels play no part.

    At most 1,024 distinct values have a cell each, from the value up to the next; otherwise cells hold about equally
    many of the rows seen, and equal values share one.
    """
    column = decoded(column, name)
    values = as_days(column, name) if is_date(column.type) else finite_numbers(column, name, "covariate")
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return ()
    starts = np.unique(values)
    if len(starts) > MOST_CELLS:
        starts = np.unique(values[np.arange(MOST_CELLS) * len(values) // MOST_CELLS])
    return (*starts.tolist(), float(values[-1]))


class Fine(Sums):
    """Int64 sums per cell, side of the score (below one half or not) and label, for every covariate of the spec.

    The score is read as ``q = min(floor(p 2^30), 2^30 - 1)``; its square as that of ``q >> 14``. A value's place in its
    cell is read in 65,535 steps, and one outside the range first seen counts at the range's end. The last cell of a
    number or date is for missing values.
    """

    def __init__(self, spec: Spec) -> None:
        self.numbers, self.levels, _ = by_kind(spec.codings)
        self.stored: dict[str, Integers] = {
            c.name: np.zeros((cells_of(c), 2, 2, FIELDS), dtype=np.int64) for c in (*self.numbers, *self.levels)
        }

    def update(self, rows: Rows) -> None:
        """Add rows."""
        for j, c in enumerate(self.numbers):
            x, ends = np.ascontiguousarray(rows.encoded.numbers[:, j]), np.array(c.cells)
            fine_sums(locate(x, ends[1:-1]), x, ends, rows.p, rows.y, self.stored[c.name])
        for j, c in enumerate(self.levels):
            fine_sums(rows.encoded.codes[:, j], None, None, rows.p, rows.y, self.stored[c.name])
        self.settle()

    def settle(self) -> None:
        """Refuse more rows than the sums can hold."""
        for name, kept in self.stored.items():
            if int(kept[..., 0].max(initial=0)) > MOST:
                raise BadInput(
                    f"covariate {name!r}: more than {MOST:,} rows share one value, outcome and side of 0.5; "
                    "sketch fewer rows at a time, or leave it out of variables"
                )

    def arrays(self) -> dict[str, Integers]:
        """The sums by covariate."""
        return dict(self.stored)

    def check(self, totals: Integers) -> None:
        """Refuse stored sums that no rows can have; `totals` are everyone's rows and score sums by side and label."""
        low = np.array([0, HALF], dtype=np.int64)[:, None]
        for name, kept in self.stored.items():
            where = f"covariate {name!r}"
            n, q, square, place = (kept[..., k] for k in range(FIELDS))
            rest = q - n * low  # sums of q wrap where they leave 64 bits, alike on both sides
            need((n <= MOST).all(), where, "has an impossible count")
            need_within(n, place, PLACES, where)
            need_within(n, rest, HALF, where)
            same = (n.sum(axis=0) == totals[:, :2]).all() and (rest.sum(axis=0) == totals[:, 2:]).all()
            need(same, where, "does not add up to the cells")
            # s is q in 16 bits, rounded down: (sum s)^2 <= n sum s^2, and sum s^2 <= (2^16 - 1) sum s
            most, least = q * ((PLACES - 1) / 2.0**SHORT), np.maximum(q / 2.0**SHORT - n, 0.0) ** 2
            sound = (square >= 0) & (square <= most * (1 + SLACK))
            sound &= square * n.astype(np.float64) * (1 + SLACK) + SLACK >= least
            need(sound.all(), where, "has squares that its rows cannot have")


def cells_of(coding: Coding) -> int:
    """How many cells a covariate has; a number's cells of values, and one of missing values."""
    if coding.kind == "constant":
        return 0
    return len(coding.labels) if coding.kind == "category" else max(len(coding.cells) - 1, 1) + 1


# ---- whole rows, for the methods that need rows ----

MASK = 2**64 - 1
MOST_OF_ONE_KEY = 0.01  # share of the sample that the rows of one key may be where the sample ends
LATEST = 106_751_991.0  # days that microseconds in 64 bits can hold


class SampledRows(Sample):
    """A uniform sample of the rows, or whole clusters; covariates as the spec codes them: numbers, days, levels.

    Of clusters also the sum of all rows' hashes, whether they are held or not: clusters and weights are in it.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec, self.total = spec, 0
        self.numbers, self.categories, flagged = by_kind(spec.codings)
        self.most = [len(c.labels) for c in self.categories] + [2] * len(flagged)
        super().__init__(
            spec.sample, len(self.numbers) + len(self.most), len(spec.sizes) if spec.row_attributes else None
        )

    def update(self, rows: Rows) -> None:
        """Add rows."""
        hashes, e = hashes_of(rows.ids), rows.encoded
        more: tuple[NDArray[np.generic], ...] = ()
        if self.whole:
            hashes, (own, weights) = of_clusters(hashes, rows.clusters, rows.weights)
            self.total = (self.total + sum_of(hashes, rows.p, rows.y, weights)) & MASK
            more = (own, weights, *rows.stacked)
        kept = self.candidates(hashes)
        covariates = [*e.numbers[kept].T, *e.codes[kept].T, *(column[kept] for column in more)]
        self.add(lines_of(hashes[kept], rows.p[kept], rows.y[kept], covariates))

    def merge(self, other: Self) -> None:
        """Add another sample of the same spec."""
        self.total = (self.total + other.total) & MASK
        super().merge(other)

    def arrays(self) -> dict[str, Integers]:
        """The state."""
        total = {"total": np.array([self.total], dtype=np.uint64).view(np.int64)}
        return super().arrays() | (total if self.whole else {})

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be this sample's state."""
        others = {name: shape for name, shape in shapes.items() if name != "total"}
        return super().takes(others) and shapes.get("total") == ((1,) if self.whole else None)

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the state that `arrays` described."""
        super().load(arrays)
        if self.whole:
            self.total = int(arrays["total"].view(np.uint64)[0])

    def shared(self, n: int) -> SharedColumns:
        """What the rows held share of covariates, of `n` rows in all; rare values coded as one are none."""
        lines, columns = self.lines, {}
        for j, c in enumerate((*self.numbers, *self.categories), COVARIATES):
            stored = lines[:, j]
            if c.kind == "category":
                columns[c.name] = np.where(stored < len(c.levels), stored, -1), False
            elif (codes := shared_numbers(stored)) is not None:
                columns[c.name] = codes
        kept = {name: of for name, of in columns.items() if name not in self.spec.by_name}
        return SharedColumns(kept, labels_of(lines), scores_of(lines), min(len(lines) / max(n, 1), 1.0))

    # ---- clusters ----

    @property
    def cut(self) -> bool:
        """Some clusters are not held."""
        return self.limit < MASK

    @property
    def clusters(self) -> int:
        """Clusters whose rows are held."""
        return len(np.unique(self.lines[:, HASH]))

    @property
    def of_clusters(self) -> int:
        """Clusters in all: counted where all are held, else about, by the share of hashes held."""
        return round(self.clusters / ((self.limit + 1) / 2.0**64)) if self.cut else self.clusters

    def named(self) -> NDArray[np.int64]:
        """The cluster of each row held, as a number of its own, in the order of `predictions`."""
        result: NDArray[np.int64] = self.lines[self._order(None), HASH]
        return result

    def levels(self, grouping: int) -> NDArray[np.int64]:
        """The level of each row held in one grouping, in the order of `predictions`."""
        result: NDArray[np.int64] = self.lines[self._order(None), self.own + WITH + grouping]
        return result

    def predictions(
        self, name: str = "data", at: NDArray[np.intp] | None = None, only: Collection[str] | None = None
    ) -> Predictions:
        """The sample as rows, covariates as the user knows them; in the order of the source if these are all.

        `at` picks some of these rows, `only` some of the covariates.
        """
        lines = self.lines
        self._check_key(lines)
        order = self._order(at)
        own = enumerate((*self.numbers, *self.categories), COVARIATES)
        values = {c.name: lines[:, j][order] for j, c in own if only is None or c.name in only}
        table = pa.table({c.name: _column(values[c.name], c) for c in self.spec.codings if c.name in values})
        short = lines[:, :COVARIATES][order]
        own_attributes = self.row_attributes(order, self.spec)
        table, y, p = table if values else None, labels_of(short), scores_of(short)
        known = self.cluster_ids(order)
        return Predictions(y=y, p=p, covariates=table, name=name, cluster_ids=known, **own_attributes)

    def _order(self, at: NDArray[np.intp] | None) -> NDArray[np.intp]:
        """Which line each row is, of some rows or of all."""
        order = source_order(self.row_hashes, self.spec)
        return order if at is None else order[at]

    def rows(self) -> Rows:
        """The sample as rows, covariates encoded but not scaled; their identities are hashed already."""
        lines = self.lines
        self._check_key(lines)
        last, end = COVARIATES + len(self.numbers), self.own
        numbers = [doubles_of(lines[:, j]) for j in range(COVARIATES, last)]
        encoded = Encoded(
            numbers=np.column_stack(numbers) if numbers else np.empty((len(lines), 0)),
            scaled=np.empty((len(lines), 0)),
            codes=lines[:, last:end].astype(np.int32),
            number_names=tuple(c.name for c in self.numbers),
            level_names=(),
            level_labels=(),
            level_of=(),
        )
        hashes = np.ascontiguousarray(self.row_hashes)
        return Rows(scores_of(lines), labels_of(lines), hashes, encoded)

    def _check_key(self, lines: Integers) -> None:
        """Refuse a sample that was cut through many rows of one key: which of them are in it, their content decides."""
        if not self.spec.key or len(lines) < self.size or self.whole:
            return
        last = int((lines[:, HASH] == lines[-1, HASH]).sum())
        if last > MOST_OF_ONE_KEY * len(lines):
            raise BadInput(
                f"key={'+'.join(self.spec.key)!r} distinguishes too few rows: {last:,} of {len(lines):,} sampled rows "
                "share one value (rows without a key share one): name more columns in key="
            )

    def check(self, n: int, events: int) -> None:
        """Refuse stored rows that cannot be among so many."""
        lines, where = self.lines, "the sample"
        need(len(lines) <= n, where, "has too many rows")
        hashes, p, y = lines[:, HASH].view(np.uint64), scores_of(lines), lines[:, LABEL]
        need((hashes[1:] >= hashes[:-1]).all(), where, "is out of order")
        sound = ((p >= 0.0) & (p <= 1.0)).all() and ((y == 0) | (y == 1)).all()
        need(sound, where, "has a score or label that is none")
        need(len(lines) < n or int(y.sum()) == events, where, "has other labels")
        for j, c in enumerate(self.numbers, COVARIATES):
            values = doubles_of(lines[:, j])
            reach = LATEST if c.kind == "date" else np.finfo(np.float64).max
            need((np.isnan(values) | (np.abs(values) <= reach)).all(), where, f"has an impossible {c.name!r}")
        for j, most in enumerate(self.most, COVARIATES + len(self.numbers)):
            codes = lines[:, j]
            need(((codes >= 0) & (codes < most)).all(), where, f"has an impossible level in column {j}")
        if self.whole:
            self._check_clusters(n)

    def _check_clusters(self, n: int) -> None:
        """Refuse stored clusters that rows cannot have, or that are not all there."""
        lines, where = self.lines, "the clusters"
        hashes, weights = lines[:, HASH].view(np.uint64), doubles_of(lines[:, self.own + 1])
        need(not len(lines) or int(hashes[-1]) <= self.limit, where, "are beyond their limit")
        need(self.cut or len(lines) == n, where, "are not all there")
        need(((weights > 0) & np.isfinite(weights)).all(), where, "have an impossible weight")
        need(bool(self.spec.weights) or bool((weights == 1.0).all()), where, "have weights of no column")
        for j, size in enumerate(self.spec.sizes, self.own + WITH):
            need(((lines[:, j] >= 0) & (lines[:, j] < size)).all(), where, "have an impossible group")
        whole = self.cut or sum_of(hashes, scores_of(lines), labels_of(lines), weights) == self.total
        need(whole, where, "do not add up")


def sum_of(hashes: Ids, p: Floats, y: NDArray[np.int8], weights: NDArray[np.generic]) -> int:
    """The sum of rows' hashes modulo 2^64: of unit, score, label and weight, the same in any order."""
    words = mix(mix(mix(hashes ^ bits_of(p).view(np.uint64)) ^ y.astype(np.uint64)) ^ bits_of(weights).view(np.uint64))
    return int(words.sum(dtype=np.uint64))


def _column(values: Integers, c: Coding) -> pa.Array:
    """A covariate of sampled rows: a number, a time, or text in which rare values are "other"."""
    if c.kind == "category":
        labels = pa.array(c.labels[:-1], pa.string())
        codes = pa.array(values.astype(np.int32), mask=values == len(c.levels) + 1)
        return pa.DictionaryArray.from_arrays(codes, labels)
    numbers = doubles_of(values)
    absent = np.isnan(numbers)
    if c.kind == "date":
        micro = (np.where(absent, 0.0, numbers) * DAY).round().astype(np.int64)
        return pa.array(micro, pa.timestamp("us"), mask=absent)
    return pa.array(numbers, mask=absent)
