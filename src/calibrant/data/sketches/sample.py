"""Who a row is, and the one sampler of whole rows: those with the smallest hashed identities.

A row's identity is one number that depends on its key, or on its file and row number, and never on its content. Hashed,
it decides whether the row is kept: a uniform sample without replacement that is the same however the rows were split,
ordered or spread over machines, and two samples make one (bottom-k sampling; Cohen and Kaplan, PODC 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import shown
from calibrant.data.columns import (
    Floats,
    Ids,
    are_absent,
    as_float,
    is_large,
    is_number,
    may_be_large,
    number_text,
    number_texts,
    picked,
    row_ids,
    text_hashes,
)
from calibrant.data.layouts import decoded, is_date, may_be_dates, plain, text_dates, times
from calibrant.data.specs.faults import CLUSTER_MISSING, WEIGHT_MISSING, WEIGHT_VALUE, WEIGHT_ZERO, Faults
from calibrant.data.specs.sketch_file import Integers
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.draws import mix


@dataclass(frozen=True)
class RowAttributes:
    """Clusters and weights of a run of rows."""

    cluster: Ids | None = None  # shape (n,): hashes of the cluster column; None where rows are independent
    # Shape (n,): positive and finite but for rows that are `gone`, or refused; None where every row counts alike.
    weights: Floats | None = None
    # Shape (n,): rows without a cluster, or without a weight above 0; None if there are none.
    gone: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls, batch: pa.RecordBatch | pa.Table, spec: Spec, faults: Faults, part: str = "", first_row: int = 0
    ) -> Self:
        """Read the spec's columns of a batch, and note what is missing or cannot be a weight."""
        columns = {role: batch.column(name) for role in READ for name in spec.roles.get(role, ())}
        return cls.of_columns(columns, spec, faults, (part, first_row))

    @classmethod
    def of_columns(cls, columns: Mapping[str, pa.Array], spec: Spec, faults: Faults, run: Run = ("", 0)) -> Self:
        """Read columns by what they are to the rows, whatever they are called."""
        values, gone = dict.fromkeys(READ), np.zeros(1, dtype=np.bool_)
        for role, read in READ.items():
            if role in columns:
                values[role], lacks = read(columns[role], spec, faults, run)
                gone = gone | lacks
        return cls(**values, gone=gone if gone.any() else None)

    def part(self, rows: slice) -> RowAttributes:
        """Clusters and weights of some rows."""
        return RowAttributes(picked(self.cluster, rows), picked(self.weights, rows))

    def labelled(self, y: NDArray[np.int8] | Floats) -> NDArray[np.int8] | Floats:
        """The labels, missing in rows that are gone, which are left out as if they had none.

        What rows lack is noted of the labels as they are.
        """
        return y if self.gone is None else np.where(self.gone, np.nan, y)

    def there(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of some rows are not gone."""
        return rows if self.gone is None else rows & ~self.gone


Run = tuple[str, int]  # of rows: the file that they come from, and the number of the first of them there


def _clusters(column: pa.Array, spec: Spec, faults: Faults, run: Run) -> tuple[Ids, NDArray[np.bool_]]:
    """The hashes of clusters, and which rows have none; note the first that there is."""
    absent = are_absent(column, spec.cluster)
    faults.note_rows(CLUSTER_MISSING, absent, *run)
    there = np.flatnonzero(~absent)[:1].tolist()
    faults.cluster = faults.cluster or "".join(shown(column[i].as_py()) for i in there)
    return row_ids([column], spec.seed, (spec.cluster,), "cluster"), absent


def _weights(column: pa.Array, spec: Spec, faults: Faults, run: Run) -> tuple[Floats, NDArray[np.bool_]]:
    """The weights, and which rows have none above 0."""
    weights = as_float(column, spec.weights, "weights")
    absent, zero = np.isnan(weights), weights == 0.0
    strange = ~absent & ~((weights >= 0) & np.isfinite(weights))
    faults.note_rows(WEIGHT_MISSING, absent, *run)
    faults.note_rows(WEIGHT_VALUE, strange, *run, weights)
    faults.note_rows(WEIGHT_ZERO, zero, *run)
    return weights, absent | strange | zero


Read = Callable[[pa.Array, Spec, Faults, Run], tuple[NDArray[np.generic], NDArray[np.bool_]]]
READ: dict[str, Read] = {"cluster": _clusters, "weights": _weights}


@dataclass(frozen=True)
class SharedColumns:
    """Rows with the columns whose values they may share; which of these are clusters, outcomes tell."""

    # Codes in the order of values, negative where missing, and whether these are numbers.
    columns: Mapping[str, tuple[Integers, bool]]
    y: NDArray[np.int8]
    p: Floats
    share: float  # of all rows that these are, a uniform sample
    apart: tuple[tuple[str, ...], ...] = ()  # pairs that reproduce the outcome together, and are no clusters


NOTHING_SHARED = SharedColumns({}, np.zeros(0, dtype=np.int8), np.zeros(0), 1.0)  # by which no column was left to look


def shared_codes(
    values: NDArray[np.generic], there: NDArray[np.bool_], is_number: bool = True
) -> tuple[Integers, bool]:
    """Codes of values in their order, negative where there is none, and whether they are numbers."""
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[there] = np.unique(values[there], return_inverse=True)[1].reshape(-1)
    return codes, is_number


def shared_numbers(bits: Integers) -> tuple[Integers, bool] | None:
    """The same of numbers as a line holds them; None of those that are not whole, for these are measured."""
    values, there = doubles_of(bits), bits != NAN
    finite = values[np.isfinite(values)]
    if not np.array_equal(finite, np.floor(finite)):
        return None
    large = len(finite) < np.count_nonzero(there)  # whole numbers that no double may be, by their texts' hashes
    return shared_codes(bits if large else values, there, is_number=not large)


NOTHING = RowAttributes()  # of independent rows that count alike


Labels = NDArray[np.int8]
Indices = NDArray[np.intp]
Batch: TypeAlias = "pa.RecordBatch | pa.Table"

SALT = np.uint64(0x5A3C91E7B2D4F680)  # any number, so that the sample is independent of the random blocks
ALL = np.uint64(2**64 - 1)  # no hash is larger
HASH, SCORE, LABEL, COVARIATES = range(4)  # where the parts of a line begin
WITH = 2  # columns of a cluster's rows behind the covariates: the row's hash and its weight
AT_ONCE = 1 << 16  # new lines, if twice the sample is fewer, from which on the largest hashes are thrown out


# ---- who a row is ----


@dataclass(frozen=True)
class Origin:
    """Where a run of rows comes from, by which each is known."""

    part: str = ""  # the file, relative to the data set's root; empty for a single file or a frame
    first_row: int = 0  # number, within that file, of the first row
    keys: Ids | None = None  # shape (n,): hashes of the key columns; file and number are then used in messages only
    row_attributes: RowAttributes = NOTHING  # the clusters that rows belong to, and how much they count

    @classmethod
    def of(cls, batch: Batch, spec: Spec, part: str, first_row: int, row_attributes: RowAttributes = NOTHING) -> Origin:
        """The origin of a record batch, by the spec's key if it has one."""
        keys = [batch.column(k) for k in spec.key]
        return cls(part, first_row, row_ids(keys, spec.seed, spec.key) if keys else None, row_attributes)

    def salt(self, spec: Spec) -> int:
        """What is mixed into the identities: the seed, and the file of rows without a key."""
        return spec.salt(self.part if self.keys is None else "")

    def identities(self, n: int, spec: Spec) -> Ids:
        """The identities of the n rows; all the same where only their clusters are known."""
        if not spec.numbered:
            return np.zeros(n, dtype=np.uint64)
        return identities(n, self.first_row, self.salt(spec), self.keys)

    def clusters(self, spec: Spec) -> Ids | None:
        """The identities of the clusters that rows belong to; None where each row is one."""
        clusters = self.row_attributes.cluster
        return None if clusters is None else mix(clusters ^ np.uint64(spec.salt("")))

    def keyed(self, spec: Spec) -> tuple[Ids | None, int]:
        """By which numbers rows go into blocks, None for their own, and what is mixed in: whole clusters."""
        clusters = self.row_attributes.cluster
        return (self.keys, self.salt(spec)) if clusters is None else (clusters, spec.salt(""))


HERE = Origin()  # of rows in memory, from the first on


def identities(n: int, first_row: int, salt: int, keys: Ids | None = None) -> Ids:
    """One uint64 a row, mixed: `keys` are hashes of key columns, or None to use row numbers."""
    own = np.arange(first_row, first_row + n, dtype=np.uint64) if keys is None else keys
    return mix(own ^ np.uint64(salt))


def identities_of(n: int, seed: int) -> Ids:
    """The identities of n rows in memory: those of the same rows read from one file."""
    return HERE.identities(n, Spec(label="y", score="p", seed=seed))


def hashes_of(ids: Ids) -> Ids:
    """The numbers that decide which rows are sampled."""
    return mix(ids ^ SALT)


def of_clusters(
    hashes: Ids, clusters: Ids | None, weights: Floats | None
) -> tuple[Ids, tuple[NDArray[np.generic], ...]]:
    """The hashes of rows' clusters, and with them the rows' own, and their weights, of 1 if of none."""
    own = (hashes.view(np.int64), np.ones(len(hashes)) if weights is None else weights)
    return hashes if clusters is None else hashes_of(clusters), own


def source_order(hashes: Ids, spec: Spec) -> Indices:
    """Where each row of the one file or frame stands among hashes, if they are those of all its rows.

    Otherwise (a key, several files, rows left out) the order is that given.
    """
    own = hashes_of(identities(len(hashes), 0, spec.salt("")))
    order, inputs = np.argsort(own, kind="stable"), np.argsort(hashes, kind="stable")
    if not np.array_equal(own[order], hashes[inputs]):
        return np.arange(len(hashes))
    at = np.empty_like(order)
    at[order] = inputs
    return at


# ---- which rows are kept ----


def smallest(hashes: Ids, size: int, ties: Callable[[], Sequence[NDArray[np.generic]]]) -> Indices:
    """The indices of the `size` smallest hashes in increasing order; equal hashes by `ties`, made if needed."""
    near = np.arange(len(hashes))
    if len(hashes) > 2 * size:
        near = np.flatnonzero(hashes <= np.partition(hashes, size)[size])
    order = near[np.argsort(hashes[near], kind="stable")]
    result = hashes[order]
    if (result[1:] == result[:-1]).any():
        order = near[np.lexsort((*(t[near] for t in reversed(ties())), hashes[near]))]
    return order[:size]


class Sample:
    """The rows with the smallest hashes, or the whole clusters with the smallest.

    One line a row, all in 64-bit integers: hash, score (bits of the double), label, covariates (bits or codes). Of
    clusters the hash is the cluster's, and behind the covariates stand the row's own hash and its weight (bits of the
    double), then the level of each grouping. A cluster is kept with all its rows, or none: those are left out, from the
    first on, by which there would be more than `size` rows.

    `size`: rows kept, at most. `width`: covariates of a row. `groupings`: of the levels held next to clusters; None for
    rows that each stand alone.
    """

    def __init__(self, size: int, width: int, groupings: int | None = None) -> None:
        self.size, self.whole = size, groupings is not None
        self.own = COVARIATES + width  # of clusters, where the row's hash stands, then its weight, then its groups
        more = 0 if groupings is None else WITH + groupings
        self._settled: Integers = np.zeros((0, COVARIATES + width + more), dtype=np.int64)
        self._new: list[Integers] = []
        self._stored = 0
        self._limit = ALL  # no larger hash can be among the smallest

    @property
    def lines(self) -> Integers:
        """The lines, by increasing hash."""
        if self._new:
            self._settle()
        return self._settled

    def _settle(self) -> None:
        """Throw out all but the smallest hashes; what is larger than them need not be looked at any more."""
        parts, self._new = [self._settled, *self._new], []
        lines = np.concatenate(parts)
        parts.clear()  # of many covariates a copy is hundreds of megabytes
        self._settled = lines[:0]
        if self.whole:
            order, self._limit = whole_clusters(lines, self.size, self._limit, self.own)
            self._settled, self._stored = lines[order], 0
            return
        order = smallest(lines[:, HASH].view(np.uint64), self.size, lambda: _ties(lines))
        self._settled, self._stored = lines[order], 0
        if len(order) == self.size:
            self._limit = self._settled[-1:, HASH].view(np.uint64)[0]

    def narrow(self, share: float) -> None:
        """Take only rows whose hash is in this smallest share of all: where enough of them are known to be there."""
        if share < 1.0:
            self._limit = np.uint64(int(share * 2.0**64))

    def candidates(self, hashes: Ids, sound: NDArray[np.bool_] | None = None) -> Indices:
        """The rows among these that may be kept; more than `size` only where hashes are equal."""
        near = np.flatnonzero(hashes <= self._limit if sound is None else sound & (hashes <= self._limit))
        if len(near) > self.size and not self.whole:
            near = near[hashes[near] <= np.partition(hashes[near], self.size - 1)[self.size - 1]]
        return near

    def add(self, lines: Integers) -> None:
        """Add lines, of candidates or of any rows."""
        self._new.append(lines)
        self._stored += len(lines)
        if self._stored > max(2 * self.size, AT_ONCE):
            self._settle()

    def merge(self, other: Self) -> None:
        """Add another sample of the same rows' columns."""
        self.add(other.lines)
        if self.whole:
            self._limit = min(self._limit, other._limit)  # a cluster that is not whole in one is whole nowhere

    @property
    def limit(self) -> int:
        """The largest hash up to which every cluster is held."""
        return int(self._limit) if len(self.lines) or self.whole else int(ALL)

    @property
    def row_hashes(self) -> Ids:
        """The rows' own hashes, in the order of the lines."""
        return self.lines[:, self.own if self.whole else HASH].view(np.uint64)

    def row_attributes(self, at: Indices, spec: Spec) -> dict[str, Any]:
        """The clusters and the weights of some lines where the spec names them; nobody may write to them."""
        stored: dict[str, tuple[int, type]] = {"cluster": (HASH, np.uint64), "weights": (self.own + 1, np.float64)}
        result = {role: self.lines[at, j].view(kind) for role, (j, kind) in stored.items() if role in spec.roles}
        for column in result.values():
            column.flags.writeable = False
        return result

    def cluster_ids(self, at: Indices) -> Ids | None:
        """The numbers by which the clusters of some lines are known; None where rows each stand alone."""
        return self.lines[at, HASH].view(np.uint64) if self.whole else None

    def arrays(self) -> dict[str, Integers]:
        """The state."""
        lines = self.lines
        return {"lines": lines} | ({"limit": np.array([self._limit]).view(np.int64)} if self.whole else {})

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether arrays of these shapes can be this sample's state."""
        shape, others = shapes.get("lines", ()), {name: s for name, s in shapes.items() if name != "lines"}
        fits = len(shape) == 2 and 0 <= shape[0] <= self.size and shape[1] == self._settled.shape[1]
        return fits and others == ({"limit": (1,)} if self.whole else {})

    def load(self, arrays: Mapping[str, Integers]) -> None:
        """Take over the state that `arrays` described."""
        self._settled, self._new, self._stored = arrays["lines"], [], 0
        if self.whole:
            self._limit = arrays["limit"].view(np.uint64)[0]


def whole_clusters(lines: Integers, size: int, limit: np.uint64, own: int) -> tuple[Indices, np.uint64]:
    """The lines of whole clusters in order, as many as have at most `size` rows, and the largest hash of these.

    Rows of a cluster are in the order of their own hashes, in column `own`. A cluster once cut stays cut: more rows
    only add to those before it. So the result depends on all rows, and on no order.
    """
    hashes = lines[:, HASH].view(np.uint64)
    near = np.flatnonzero(hashes <= limit)
    rows = lines[near, own].view(np.uint64)
    order = near[np.lexsort((rows, hashes[near]))]
    same = (hashes[order[1:]] == hashes[order[:-1]]) & (lines[order[1:], own] == lines[order[:-1], own])
    if same.any():
        order = near[np.lexsort((*(t[near] for t in reversed(_ties(lines))), rows, hashes[near]))]
    if len(order) <= size:
        return order, limit
    cut = hashes[order[size]]  # the unit of the first row too many
    kept = order[: np.searchsorted(hashes[order], cut)]
    return kept, np.uint64(max(int(cut), 1) - 1)


def _ties(lines: Integers) -> tuple[NDArray[np.generic], ...]:
    """What orders rows of one identity: their content, stirred; the label last, so that it does not choose."""
    others = [lines[:, j] for j in (SCORE, *range(COVARIATES, lines.shape[1]))]
    stirred: Ids = np.zeros(len(lines), dtype=np.uint64)
    for column in others:
        stirred = mix(stirred ^ column.view(np.uint64))
    return (stirred, *others, lines[:, LABEL])


def lines_of(hashes: Ids, p: Floats, y: Labels, covariates: Sequence[NDArray[np.generic]]) -> Integers:
    """The lines of rows; covariates are float64 values, or integers."""
    out = np.empty((len(hashes), COVARIATES + len(covariates)), dtype=np.int64)
    out[:, HASH], out[:, SCORE], out[:, LABEL] = hashes.view(np.int64), bits_of(p), y
    for j, values in enumerate(covariates, COVARIATES):
        out[:, j] = bits_of(values) if values.dtype == np.float64 else values
    return out


def bits_of(values: NDArray[np.generic]) -> Integers:
    """The bits of doubles, equal for equal values: minus zero is zero, and there is one NaN."""
    plain: Floats = np.asarray(values, dtype=np.float64) + 0.0
    plain[np.isnan(plain)] = np.nan
    return plain.view(np.int64)


def doubles_of(bits: Integers) -> Floats:
    """The doubles that have these bits."""
    return np.ascontiguousarray(bits).view(np.float64)


def labels_of(lines: Integers) -> Labels:
    """The labels of lines, which nobody may write to."""
    y = lines[:, LABEL].astype(np.int8)
    y.flags.writeable = False
    return y


def scores_of(lines: Integers) -> Floats:
    """The scores of lines, which nobody may write to."""
    p = doubles_of(lines[:, SCORE])
    p.flags.writeable = False
    return p


# ---- rows whose covariates are kept as they are stored, before any coding of them is known ----

ABSENT = np.iinfo(np.int64).min  # a missing date or truth value
NAN, PAYLOAD = np.int64(0x7FF8 << 48), np.uint64((1 << 51) - 1)  # bits of NaN, and those that may differ
NUMBER, DATE, TRUTH, TEXT = pa.float64(), pa.timestamp("us"), pa.bool_(), pa.string()


class RawSample(Sample):
    """A sample with covariates of any type.

    In the lines a number is a double (beyond 2^53 its text, by hash), a date microseconds, a truth value 0 or 1, and a
    text its hash: equal texts have equal hashes whatever came before them, so that samples merge without a table of
    codes. What cannot be a covariate keeps its type and loses its values.

    `names`: the columns. `size`: rows kept, at most. `whole`: they are those of whole clusters.
    """

    lenient = False  # a column that cannot be read is noted in `unread`, and is no reason to stop

    def __init__(self, names: Sequence[str], size: int, whole: bool = False) -> None:
        super().__init__(size, len(names), 0 if whole else None)
        self.names = tuple(names)
        self.types: list[pa.DataType] = [pa.null()] * len(names)
        self.texts: dict[int, str] = {}  # by hash, of rows held now or before
        self.undated: set[str] = set()  # columns of text that is not all dates, in whatever row
        self.unread: dict[str, str] = {}  # columns that cannot be read, and why; empty unless `lenient`
        self._most_texts = 4 * max(size, AT_ONCE)

    def keep(
        self,
        hashes: Ids,
        p: Floats,
        y: Labels,
        batch: Batch,
        sound: NDArray[np.bool_],
        row_attributes: Sequence[NDArray[np.generic]] = (),
    ) -> None:
        """Keep what may be kept of the sound rows of a batch; of clusters also each row's hash and weight."""
        rows = self.candidates(hashes, sound)
        columns = [self._sampled(j, batch.column(name), rows) for j, name in enumerate(self.names)]
        columns += [column[rows] for column in row_attributes]
        self.add(lines_of(hashes[rows], p[rows], y[rows], columns))
        if len(self.texts) > self._most_texts:  # leave out those of rows that were thrown out
            at = [j for j, t in enumerate(self.types, COVARIATES) if t in (TEXT, NUMBER)]
            kept = np.unique(self.lines[:, at]).tolist()
            self.texts = {h: self.texts[h] for h in kept if h in self.texts}
            self._most_texts = max(self._most_texts, 2 * len(self.texts))

    def _sampled(self, j: int, column: pa.Array | pa.ChunkedArray, rows: Indices) -> NDArray[np.generic]:
        """Some values of a column as the lines hold it; note what it is, from all of its values."""
        name = self.names[j]
        try:
            column = plain(column, name)
            result = self._values(j, decoded(column.take(pa.array(rows))))
        except BadInput as e:
            if not self.lenient:
                raise
            self._note(name, str(e))
            return np.zeros(len(rows), dtype=np.int64)
        if self.types[j] == TEXT and name not in self.undated and not may_be_dates(column):
            self.undated.add(name)
        return result

    def _note(self, name: str, why: str) -> None:
        """Note that a column cannot be read, and one reason: the same in any order."""
        self.unread[name] = min(why, self.unread.get(name, why))

    def _values(self, j: int, column: pa.Array) -> NDArray[np.generic]:
        """A decoded column as the lines hold it."""
        t = column.type
        if is_number(t):
            self._meet(j, NUMBER)
            return self._bits(column, self.names[j])
        if is_date(t) or pa.types.is_boolean(t):
            kept = times(column, self.names[j]) if is_date(t) else column
            self._meet(j, kept.type)
            whole: Integers = kept.cast(pa.int64()).fill_null(ABSENT).to_numpy(zero_copy_only=False)
            return whole
        self._meet(j, t)
        return self._hashed(column) if t == TEXT else np.zeros(len(column), dtype=np.int64)

    def _bits(self, column: pa.Array, name: str) -> Integers:
        """The bits of doubles; a whole number that no double may be is one of the NaNs, by its text's hash."""
        bits = bits_of(as_float(column, name, "covariate"))
        if may_be_large(column):
            coded = number_texts(column).dictionary_encode()
            texts = coded.dictionary.to_pylist()
            hashes = text_hashes(coded.dictionary.cast(pa.large_string()), 0)
            named = np.maximum(hashes & PAYLOAD, np.uint64(1)).view(np.int64) | NAN
            large = np.array([is_large(text) for text in texts])
            self.texts.update({int(h): text for h, text, kept in zip(named, texts, large, strict=True) if kept})
            at = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            bits = np.where(np.append(large, False)[at], np.append(named, NAN)[at], bits)
        return bits

    def _hashed(self, column: pa.Array) -> Integers:
        """The hashes of texts, 0 where null; remember what they stand for."""
        coded = column.dictionary_encode()
        texts = coded.dictionary.to_pylist()
        hashes = np.maximum(text_hashes(coded.dictionary.cast(pa.large_string()), 0), np.uint64(1)).view(np.int64)
        self.texts.update(zip(hashes.tolist(), texts, strict=True))
        codes = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        result: Integers = np.append(hashes, np.int64(0))[codes]
        return result

    def _meet(self, j: int, t: pa.DataType) -> None:
        """Note a column's type; null goes with every other."""
        known = self.types[j]
        if pa.types.is_null(known) or pa.types.is_null(t):
            self.types[j] = t if pa.types.is_null(known) else known
        elif known != t:
            raise BadInput(
                f"covariate {self.names[j]!r} is stored as different types in different files: store it one way"
            )

    def merge(self, other: Self) -> None:
        """Add another sample of the same columns."""
        for j, t in enumerate(other.types):
            try:
                self._meet(j, t)
            except BadInput as e:
                if not self.lenient:
                    raise
                self._note(self.names[j], str(e))
        self.texts |= other.texts
        self.undated |= other.undated
        for name, why in other.unread.items():
            self._note(name, why)
        super().merge(other)

    def table(self) -> pa.Table:
        """The covariates of the rows by increasing hash: texts by code, and as times if all are dates."""
        lines = self.lines
        columns = [self._column(j, lines[:, COVARIATES + j]) for j in range(len(self.names))]
        return pa.Table.from_arrays(columns, list(self.names))

    def _column(self, j: int, values: Integers) -> pa.Array:
        t = self.types[j]
        if self.names[j] in self.unread:
            return pa.nulls(len(values))
        if t == NUMBER:
            numbers = pa.array(doubles_of(values), from_pandas=True)
            if not ((values > NAN) & (values <= NAN | int(PAYLOAD))).any():
                return numbers
            result, codes = np.unique(values, return_inverse=True)
            plain_names = map(number_text, doubles_of(result).tolist())
            names = [self.texts.get(h) or name for h, name in zip(result.tolist(), plain_names, strict=True)]
            return pa.array(names, TEXT).take(pa.array(codes)).dictionary_encode()
        if t == TEXT:
            result, codes = np.unique(values, return_inverse=True)
            texts = pa.array([self.texts.get(h, "") for h in result.tolist()], TEXT)
            dates = None if self.names[j] in self.undated else text_dates(texts)
            if dates is not None:
                return dates.take(pa.array(codes, mask=values == 0))
            return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=values == 0), texts)
        if t in (DATE, TRUTH):
            return pa.array(values, mask=values == ABSENT).cast(t)
        return pa.nulls(len(values), t)
