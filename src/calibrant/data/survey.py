"""The first look: groups and covariates, never labels, fix a spec; labels only show which columns reproduce them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import Caller
from calibrant.data.columns import LONGEST, Floats, Ids, clipped, label_values, require, score_values, short
from calibrant.data.leaks import Column, Leak, leaks
from calibrant.data.predictions import Predictions, remembered
from calibrant.data.profile import ColumnProfile, LevelCounts
from calibrant.data.sketches.parts import ends_of
from calibrant.data.sketches.sample import (
    ABSENT,
    COVARIATES,
    DATE,
    HERE,
    NOTHING_SHARED,
    NUMBER,
    TEXT,
    WITH,
    Batch,
    Origin,
    RawSample,
    SharedColumns,
    doubles_of,
    labels_of,
    scores_of,
    shared_codes,
    shared_numbers,
)
from calibrant.data.sources.source import marks_of
from calibrant.data.specs.attributes import attributes_of
from calibrant.data.specs.coding import codings
from calibrant.data.specs.local import DRAWS, MOST, local_spec, simulates
from calibrant.data.specs.sketch_file import Integers, packed, unpacked
from calibrant.data.specs.spec import MOST_SAMPLED, Spec
from calibrant.errors import BadInput
from calibrant.kernels.tally import SCORE_BITS

# ---- one look at groups and covariates, mergeable like a sketch ----

T = TypeVar("T")
LARGEST = np.int64(2**63 - 1)
UNLABELLED = -1
LOOK = 20_000  # rows that fix the codings: a quantile of them is off by 0.35 points of rank, a standard error


class Look(RawSample):
    """Rows seen, those with a score, the sum of the scores, and a sample of their covariates and labels.

    Labels are read by `leaks` alone: nothing that is fixed here but what is left out depends on them.
    """

    lenient = True

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, LOOK)
        self.rows, self.n, self.total = 0, 0, 0
        self._profiles: dict[str, ColumnProfile] = {}

    @property
    def expected(self) -> float:
        """Sum of the scores, each rounded down to 2^-30: the same in any order."""
        return self.total / (1 << SCORE_BITS)

    @cached_property
    def seen(self) -> pa.Table:
        """The covariates of the sample, once all rows were looked at."""
        return self.table()

    def profile(self, name: str) -> ColumnProfile:
        """What one of them holds, looked at once."""
        if name not in self._profiles:
            self._profiles[name] = ColumnProfile(self.seen.column(name), name)
        return self._profiles[name]

    def leaks(self, names: Sequence[str], seed: int) -> tuple[Leak, ...]:
        """Those of some columns that reproduce the outcome, in the rows of the sample that have a label."""
        lines = self._labelled()
        return tuple(leaks(self._each(names, lines, comparable), labels_of(lines), scores_of(lines), seed))

    def repeats_score(self, name: str) -> bool:
        """Whether a column is the score again, or a decision by it."""
        p = scores_of(self.lines)
        return any(column.repeats(p) for column in self._each((name,), self.lines, comparable).values())

    def shared(self, names: Sequence[str]) -> SharedColumns:
        """The rows of the sample that have a label, with what they share of some columns."""
        lines = self._labelled()
        kept = {name: of for name, of in self._each(names, lines, self._shared).items() if of is not None}
        return SharedColumns(kept, labels_of(lines), scores_of(lines), min(len(self.lines) / max(self.n, 1), 1.0))

    def _labelled(self) -> Integers:
        """The lines of rows that have a label."""
        y, lines = labels_of(self.lines), self.lines
        return lines[np.flatnonzero((y == 0) | (y == 1))]

    def _each(self, names: Sequence[str], lines: Integers, made: Callable[[Integers, pa.DataType], T]) -> dict[str, T]:
        """What is made of the values and the type of some columns, those left out that cannot be read."""
        wanted = {name for name in names if name not in self.unread}
        at = (j for j, name in enumerate(self.names) if name in wanted and not pa.types.is_null(self.types[j]))
        return {self.names[j]: made(lines[:, COVARIATES + j], self.types[j]) for j in at}

    def _shared(self, values: Integers, kind: pa.DataType) -> tuple[Integers, bool] | None:
        """Codes of the values of a column, and whether they are numbers; None where rows share nothing by it."""
        if kind == NUMBER:
            return shared_numbers(values)
        if kind == TEXT:
            blank = [h for h, text in self.texts.items() if not text]
            return shared_codes(values, (values != 0) & ~np.isin(values, blank), is_number=False)
        return shared_codes(values, values != ABSENT, is_number=kind == DATE)

    def see(self, ids: Ids, p: Floats, batch: Batch, y: NDArray[np.int8] | None = None) -> None:
        """Look at a batch. Identities are not hashed again: two samples of the same rows may hold other ones."""
        good = (p >= 0.0) & (p <= 1.0)
        self.rows += len(p)
        self.n += int(np.count_nonzero(good))
        self.total += int(np.floor(p[good] * (1 << SCORE_BITS)).astype(np.int64).sum())
        self.keep(ids, p, np.full(len(p), UNLABELLED, dtype=np.int8) if y is None else y, batch, good)

    def merge(self, other: Look) -> None:
        """Add another look at the same columns."""
        self.rows += other.rows
        self.n += other.n
        self.total += other.total
        super().merge(other)


def comparable(values: Integers, kind: pa.DataType) -> Column:
    """A column of a look as it is held against labels."""
    if kind == TEXT:
        return Column.of_text(np.where(values == 0, -1, values & LARGEST))
    return Column.of_number(doubles_of(values) if kind == NUMBER else np.where(values == ABSENT, np.nan, values))


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What stands before the numbers of a first look that travels."""

    rows_read: int
    n: int
    total: int
    profiles: tuple[LevelCounts, ...]
    texts: dict[int, str]  # by hash
    undated: tuple[str, ...]  # columns of text that is not all dates
    unread: dict[str, str]  # columns that cannot be read, and why
    types: bytes  # the covariates' names and types, as Arrow writes a schema
    lines: int


class FirstLook:
    """What the group columns hold, and a sample of the covariates.

    `spec`: of columns, key and seed only: what is to be fixed is still missing. `by`: group columns. `covariates`:
    columns to sample; none for no sample.
    """

    def __init__(self, spec: Spec, by: Sequence[str], covariates: Sequence[str]) -> None:
        self.spec, self.covariates = spec, tuple(covariates)
        self.profiles = [LevelCounts(name) for name in by]
        self.look = Look(self.covariates)
        self.rows_read = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        sampled = (self.spec.label, self.spec.score, *self.covariates, *self.spec.key) if self.covariates else ()
        return tuple(dict.fromkeys([*(q.name for q in self.profiles), *sampled]))

    def update(self, batch: Batch, *, part: str = "", first_row: int = 0) -> None:
        """Look at an Arrow record batch; `part` and `first_row` as in `Sketch.update`."""
        self.rows_read += batch.num_rows
        for profile in self.profiles:
            profile.update(batch.column(profile.name))
        if not self.covariates or not batch.num_rows:
            return
        require(self.columns, batch.schema.names, "covariate")
        ids = Origin.of(batch, self.spec, part, first_row).identities(batch.num_rows, self.spec)
        p = score_values(batch.column(self.spec.score), self.spec.score, self.spec.percent)
        labels: NDArray[np.int8] | None = None
        with suppress(BadInput):  # what is wrong with labels is said when they are counted
            y = label_values(batch.column(self.spec.label), self.spec.label, self.spec.positive)
            labels = np.where((y == 0) | (y == 1), y, UNLABELLED).astype(np.int8)
        self.look.see(ids, p, batch, labels)

    def add(self, other: FirstLook) -> FirstLook:
        """Add what another part showed, and return this."""
        self.rows_read += other.rows_read
        for mine, theirs in zip(self.profiles, other.profiles, strict=True):
            mine.merge(theirs)
        self.look.merge(other.look)
        return self

    def to_bytes(self, *, level: int = 6) -> bytes:
        """The state: what `load` takes."""
        look = self.look
        lines = look.lines
        header = Looked(
            rows_read=self.rows_read,
            n=look.n,
            total=look.total,
            profiles=tuple(self.profiles),
            texts=look.texts,
            undated=tuple(sorted(look.undated)),
            unread=look.unread,
            types=pa.schema(list(zip(look.names, look.types, strict=True))).serialize().to_pybytes(),
            lines=len(lines),
        )
        return packed(header, [lines], level)

    def load(self, raw: bytes) -> FirstLook:
        """Take over the state that `to_bytes` wrote, and return this."""
        header, numbers = unpacked(raw, Looked)
        look = self.look
        self.rows_read, look.rows, look.n, look.total = header.rows_read, header.rows_read, header.n, header.total
        self.profiles, look.texts = list(header.profiles), header.texts
        look.undated, look.unread = set(header.undated), header.unread
        look.types = list(pa.ipc.read_schema(pa.py_buffer(header.types)).types)
        shape = (header.lines, COVARIATES + len(look.names))
        look.load({"lines": numbers.take(shape[0] * shape[1]).reshape(shape)})
        numbers.end()
        return self


# ---- what was found, and the spec that it fixes ----

EVERY = "*"
KEPT = 300_000  # rows that a sketch for tests keeps: 55 MB with 20 covariates
VALUES = 60_000_000  # of covariates that they have at most, 480 MB: of 500 covariates 120,000 rows are kept
ROOM = 8_000_000  # numbers that rows of clusters have at least, 64 MB: a million rows of five groups and no covariate
ONE_VALUE = "it takes one value only"
LEAKED = "it reproduces the outcome"
REPEATED = "it follows from the score"


@dataclass(frozen=True)
class Survey:
    """What the first look found."""

    table: pa.Table  # covariates of the sampled rows, by increasing hashed identity
    p: Floats  # scores of the sampled rows
    n: int  # rows with a score in all
    expected: float  # sum of all scores
    names: tuple[str, ...]  # covariates that can be used
    left_out: tuple[tuple[str, str], ...] = ()  # those that cannot, and why
    leaks: tuple[Leak, ...] = ()  # columns that reproduce the outcome, left out or asked about
    allowed: tuple[str, ...] = ()  # columns that were to be kept


SPEC_IN_MEMORY = Spec(label="y_true", score="y_prob")  # what rows in memory are called


def survey_rows(data: Predictions, names: tuple[str, ...], seed: int, allow: Sequence[str] = ()) -> Survey | None:
    """Sample the covariates of rows in memory; None if none are named. One that is named stays, whatever it is.

    Made once for all that asks for the same: which columns reproduce the outcome takes most of the time.
    """
    if not names:
        return None

    def made() -> Survey:
        spec, every = replace(SPEC_IN_MEMORY, seed=seed), EVERY in names
        look = look_at(data, spec, wanted(names, covariate_names(data), spec))
        return survey(look, look.names, every, allow if every else None)

    return remembered(data, ("survey", names, seed, tuple(allow)), made)


def no_attributes(data: Predictions, seed: int, allow: Sequence[str] = ()) -> dict[str, str]:
    """The covariates that reproduce the outcome or follow from the score, and why each is left out; `allow` keeps."""
    result = None if data.covariates is None else survey_rows(data, (EVERY,), seed, allow)
    reasons = () if result is None else result.left_out
    return {name: why for name, why in reasons if why == REPEATED or why.startswith(LEAKED)}


def covariate_names(data: Predictions) -> tuple[str, ...]:
    """The names of the covariates of rows in memory."""
    return () if data.covariates is None else tuple(data.covariates.schema.names)


def look_at(data: Predictions, spec: Spec, names: Sequence[str]) -> Look:
    """Look at covariates of rows in memory."""
    look = Look(names)
    covariates = pa.table({}) if data.covariates is None else data.covariates
    look.see(HERE.identities(data.n, spec), data.p, covariates, data.y)
    return look


def survey(
    look: Look, names: tuple[str, ...], every: bool, allow: Sequence[str] | None, seed: int = 0, by: Sequence[str] = ()
) -> Survey:
    """What was seen; leave out what reproduces the outcome and, of "every column", what cannot be used.

    Where `allow` is None all is allowed, and no label looked at.
    """
    if not look.rows:
        raise BadInput("no rows to audit: the data is empty")
    unread = [look.unread[name] for name in names if name in look.unread]
    if unread and not every:
        raise BadInput(unread[0])
    why = {name: look.unread.get(name) or look.profile(name).unusable for name in names} if every else {}
    left = tuple(
        (clipped(name, LONGEST), reason.replace(f"column {name!r} ", "it ", 1))
        for name, reason in why.items()
        if reason
    )
    used = tuple(name for name in names if not why.get(name))
    kept = (*(used if allow is None else allow), *by)
    out = {name: REPEATED for name in used if every and name not in kept and look.repeats_score(name)}
    detected = () if allow is None else look.leaks(tuple(name for name in used if name not in out), seed)
    out |= {name: f"{LEAKED}: {leak.says()}" for name, leak in leaking(detected, allow or ()).items()}
    used = tuple(name for name in used if name not in out)
    table, p = look.seen.select(list(used)), scores_of(look.lines)
    return Survey(table, p, look.n, look.expected, used, (*left, *out.items()), detected, tuple(allow or ()))


def leaking(detected: Sequence[Leak], allow: Sequence[str] = ()) -> dict[str, Leak]:
    """The columns to leave out, each with why: of pairs the one that several share, or else both.

    Of a pair of which one is allowed the other one is left out.
    """
    own = [(leak, [name for name in leak.columns if name not in allow]) for leak in detected if leak.kind == "leak"]
    out = {name: leak for leak, names in own if len(leak.columns) == 1 for name in names}
    pairs = [(leak, names) for leak, names in own if len(leak.columns) > 1 and names]
    while pairs := [(leak, names) for leak, names in pairs if not {*leak.columns} & {*out}]:
        most, times = Counter(name for _, names in pairs for name in names).most_common(1)[0]
        several = [most] if times > 1 else pairs[0][1]
        out |= {name: next(leak for leak, names in pairs if name in names) for name in several}
    return out


def refuse_leaks(look: Look, by: Sequence[str], allow: Sequence[str], seed: int, caller: Caller) -> None:
    """Refuse a group column that reproduces the outcome: its groups are made of what the score is held against."""
    for leak in look.leaks([name for name in by if name not in allow], seed):
        if leak.kind == "leak" and len(leak.columns) == 1:
            raise BadInput(
                f"group column {leak.columns[0]!r} reproduces the outcome ({leak.says()}): leave it out of "
                f"{caller.says('by')}, or name it in {caller.says('allow')} too if it was known before the outcome"
            )


def leaks_in(table: pa.Table, label: str, positive: str | None, names: Sequence[str], seed: int) -> tuple[Leak, ...]:
    """Columns of a table that reproduce the label, held against no score."""
    some = _spread(table)
    try:
        y = label_values(some.column(label), label, positive)
    except BadInput:  # said where labels are read
        return ()
    labels = np.where((y == 0) | (y == 1), y, UNLABELLED).astype(np.int8)
    return _look_in(some, names, seed, np.full(len(y), 0.5), labels).leaks(names, seed)


def repeated_in(table: pa.Table, score: str, percent: bool, names: Sequence[str], seed: int) -> tuple[str, ...]:
    """Columns of a table that an audit leaves out as the score again, such as decisions by it."""
    some = _spread(table)
    try:
        p = score_values(some.column(score), score, percent)
    except BadInput:  # said where scores are read
        return ()
    look = _look_in(some, names, seed, p)
    return tuple(name for name in names if look.repeats_score(name))


def _spread(table: pa.Table) -> pa.Table:
    """Rows of a table, evenly spread, as many as a look reads."""
    return table.take(np.unique(np.linspace(0, len(table) - 1, min(len(table), LOOK)).astype(np.int64)))


def _look_in(table: pa.Table, names: Sequence[str], seed: int, p: Floats, y: NDArray[np.int8] | None = None) -> Look:
    look = Look(names)
    look.see(HERE.identities(len(p), replace(SPEC_IN_MEMORY, seed=seed)), p, table, y)
    return look


def with_parts(spec: Spec, result: Survey | None, tests: bool) -> Spec:
    """The spec with everything that the first look fixes."""
    if result is None:
        if tests:
            raise BadInput("tests need covariates: name them in variables=, or pass variables='*' for every column")
        return spec
    coded = codings(result.table, result.names)
    constant = tuple((c.name, ONE_VALUE) for c in coded if c.kind == "constant")
    used = tuple(
        replace(c, cells=ends_of(result.table.column(c.name), c.name)) if c.kind in ("number", "date") else c
        for c in coded
        if c.kind != "constant"
    )
    spec = replace(
        spec,
        codings=used,
        left_out=(*result.left_out, *constant),
        in_question=tuple(
            (name, leak.says())
            for leak in result.leaks
            for name in leak.columns
            if name in result.names and (leak.kind == "ask" or {*leak.columns} <= {*result.allowed})
        ),
        allowed=result.allowed,
        sample=min(KEPT, VALUES // max(len(used), 1)) if tests else 0,
    )
    if not tests or len(used) > MOST or spec.row_attributes:
        return spec
    spec = replace(spec, attributes=attributes_of(result.p, result.table, used))
    draws = DRAWS if simulates("auto", result.n, result.expected) else 0
    return replace(spec, local=local_spec(result.p, result.table, used, draws, spec.seed))


def with_clusters(spec: Spec) -> Spec:
    """The spec with room for whole clusters, if rows have clusters or weights: only that is proved."""
    if not spec.row_attributes:
        return spec
    columns = COVARIATES + len(spec.codings) + WITH + len(spec.groupings)
    return replace(spec, sample=min(max(spec.sample, ROOM // columns), MOST_SAMPLED))


def wanted(names: tuple[str, ...], available: Sequence[str], spec: Spec) -> tuple[str, ...]:
    """The covariates to look at: those named, or every column that plays no other part."""
    taken = {spec.label, spec.score, *spec.key}
    if EVERY in names:
        taken |= {*spec.row_attributes, *marks_of({*available, spec.score})}
        return tuple(c for c, n in Counter(available).items() if n == 1 and c not in taken)
    require(names, available, "covariate")
    short(names, "covariate")
    wrong = sorted(taken & set(names))
    if wrong:
        raise BadInput(f"covariate {wrong[0]!r} is the label, the score or the key: leave it out of variables")
    return tuple(dict.fromkeys(names))


# ---- columns whose values rows may share, though nobody said what rows belong to ----


def others(names: Sequence[str], available: Sequence[str], by: Sequence[str], spec: Spec) -> tuple[str, ...]:
    """Columns that are neither covariates nor groups, and play no other part: rows may share them too."""
    taken = {spec.label, spec.score, *spec.row_attributes, *by, *names, *marks_of({*available, spec.score})}
    return tuple(
        name for name, n in Counter(available).items() if n == 1 and name not in taken and len(name) <= LONGEST
    )


def shared_columns(look: Look | None, spec: Spec, result: Survey | None, allow: Sequence[str] = ()) -> SharedColumns:
    """What the look holds of columns that rows may share: groups too, and none that reproduces the outcome."""
    if look is None or not look.names:
        return NOTHING_SHARED
    judged = () if result is None else (*result.names, *(name for name, _ in result.left_out))
    detected = () if result is None else result.leaks
    rest = look.leaks([name for name in look.names if name not in judged], spec.seed)
    detected = (*detected, *(leak for leak in rest if not {*leak.columns} <= {*allow}))
    leaked = {name for leak in detected if leak.kind == "leak" for name in leak.columns}
    apart = tuple(leak.columns for leak in detected if len(leak.columns) > 1)
    return replace(look.shared([name for name in look.names if name not in leaked]), apart=apart)
