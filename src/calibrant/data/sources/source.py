"""What a source is: columns, and parts that are read here or where they lie."""

from __future__ import annotations

import fnmatch
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.columns import clipped, joint_texts
from calibrant.data.sources.inferred_types import InferredType
from calibrant.errors import BadInput

Read = Callable[[Sequence[str], Sequence[str]], Iterator[pa.RecordBatch]]
OnRows = Callable[[int], None]  # is given how many more rows were read

ROWS = 1 << 17  # of a batch: it fills the cache-sized counters of every block many times over
VALUES = 1 << 23  # of a batch at most, 64 MB of doubles: wide rows come fewer at a time


def rows_at_once(columns: int) -> int:
    """How many rows of so many columns make a batch; which rows are in one changes no number."""
    return max(1 << 10, min(ROWS, VALUES // max(columns, 1)))


# ---- how a file of text is to be taken ----


@dataclass(frozen=True)
class Form:
    """What the reader of files of text or sheets is reported; what is empty it finds out."""

    encoding: str = ""  # of text, such as ``"cp1252"``
    delimiter: str = ""  # between columns
    decimal: str = ""  # mark of fractions
    sheet: str = ""  # of a workbook
    dates: str = ""  # which comes first, day or month, where either can
    format: str = ""  # of standard input, where its first bytes do not tell


DETECTED = Form()  # everything is found out


# ---- what a source is ----

Place = Callable[[str, int], str]  # a part and a row of it, to the words for where it stands


def row_of(part: str, row: int) -> str:
    """Where a row stands that has no line in a file of text."""
    return f"row {row:,}{f' of {part}' if part else ''}, counting from 0"


SeenEvents: TypeAlias = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class Log:
    """What the log of an evaluation is, and which of its columns play which part; all empty where it is none."""

    tool: str = ""  # as a message calls it: ``"an Inspect log"``
    label: str = ""  # column of right and wrong; empty where several could be it
    verdicts: tuple[str, ...] = ()  # columns of every scorer: what they hold was known no earlier than the label
    confidences: tuple[tuple[str, str], ...] = ()  # columns of confidences, and the log's field that each comes from
    # `question` and `noun`: column of the question, and what rows are called.
    question: str = ""
    noun: str = ""
    own: tuple[str, ...] = ()  # columns that name the answer and are no groups separately
    # Logs of evaluations that did not come to their end, each with how many answers it has.
    unfinished: tuple[str, ...] = ()
    # Rows that a calibrator was fitted on, which were left out: how many, and who says so.
    excluded: tuple[str, ...] = ()
    # Of outcomes by a horizon: how they were made and how many rows came to what; and means and shares of rows kept and
    # of those that entered too late (column, level, kept, late).
    horizon: Mapping[str, str | int | float | None] = field(default_factory=dict)
    compared: tuple[tuple[str, str, float, float], ...] = ()
    # Of a label that may be an event seen by the end of follow-up: the columns, and rows that may be no non-events.
    seen_events: SeenEvents = field(default_factory=dict)

    def merged(self, other: Log) -> Log:
        """What is true of the rows of both; what is unfinished of either is of both."""
        either = tuple(dict.fromkeys((*self.unfinished, *other.unfinished)))
        rows = tuple(dict.fromkeys((*self.excluded, *other.excluded)))
        plain, others = (replace(each, unfinished=(), excluded=(), seen_events={}) for each in (self, other))
        seen = joined_events(self.seen_events, other.seen_events)
        return replace(plain if plain == others else NO_LOG, unfinished=either, excluded=rows, seen_events=seen)


def joined_events(one: SeenEvents, other: SeenEvents) -> SeenEvents:
    """What was noticed of the label of both: rows add up where they are of the same columns; else that of one."""
    if not (one and other) or any(one[k] != other[k] for k in ("time", "label")):
        return one or other
    counts = {k: int(one[k]) + int(other[k]) for k in ("lost", "none")}
    latest = max(float(one["latest"]), float(other["latest"]))
    return {**one, **counts, "latest": latest, "sure": bool(one["sure"] or other["sure"])}


CARRIED = "unfinished", "excluded", "horizon", "seen_events"  # what rows in memory keep of it
NO_LOG = Log()
SAME_NAME = "several columns have this name: rename all but one"


@dataclass(frozen=True)
class Part:
    """A run of rows that one thread reads."""

    name: str  # file relative to the data set's root; empty for a single file or a frame
    first_row: int  # number of the first row within that file
    read: Read  # columns, and those of them to read as real numbers where types are guessed, to batches


class Engine(Protocol):
    """Rows that lie elsewhere, and machines that sum them up."""

    def run(self, task: bytes, columns: Sequence[str]) -> tuple[list[bytes], int | None]:
        """Do a task (see `engines.work`) on these columns of every row.

        Return messages that together cover every part once, and how many parts there are, if known.
        """


@dataclass(frozen=True)
class Source:
    """Columns, and parts that are read here or an engine that reads them there."""

    name: str
    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    rows: int | None
    again: bool = True  # the rows can be read more than once
    files: tuple[str, ...] = ()
    numbered: bool = True  # a row has a file and a number, so that it is known without a key
    engine: Engine | None = None
    fragments: Fragments | None = None  # the same rows as row groups of Parquet files, if that is what they are
    partial: tuple[str, ...] = ()  # columns that only some of the files have: they are not read
    unread: tuple[tuple[str, str], ...] = ()  # columns that cannot be read, and why
    check: Callable[[], None] = lambda: None  # refuses files that are no longer those that were opened
    # Of untyped text: what columns are interpreted as, and why.
    kinds: Mapping[str, InferredType] = field(default_factory=dict)
    # Of untyped text and names of folders: some columns, to the same rows with those as text, character for character.
    as_text: Callable[[Collection[str]], Source] | None = None
    form: Form = DETECTED  # of text: how it is written
    log: Log = NO_LOG  # of logs of evaluations
    place: Place = row_of  # where a row of a part stands: of text, in which line of its file

    @property
    def not_read(self) -> tuple[tuple[str, str], ...]:
        """Columns that cannot be read, and why: those of `unread`, and those of which several have one name."""
        twice = {name: SAME_NAME for name, n in Counter(self.columns).items() if n > 1}
        return tuple((twice | dict(self.unread)).items())

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of every part, one after the other."""
        return (batch for part in self.parts for batch in part.read(columns, ()))

    def no_rows(self) -> str:
        """Say that there is nothing below the names of the columns, and of which file."""
        where = Path(self.files[0]).name if len(self.files) == 1 else f"{len(self.files)} files" if self.files else "it"
        seen = ", ".join(repr(clipped(c)) for c in self.columns[:12])
        return f"no rows to audit: {where} has the columns {seen} and nothing below them: check how it was written"

    @contextmanager
    def naming_lines(self) -> Iterator[None]:
        """Add to a refusal that names the value which made a column text in which line it first stands."""
        try:
            yield
        except BadInput as e:
            for name, kind in self.kinds.items():
                about = f"column {name!r} holds {clipped(kind.value.strip())!r}"
                if kind.line and about in str(e) and kind.file not in str(e):
                    raise BadInput(f"{e}. First: line {kind.line:,} of {kind.file}.") from None
            raise

    def knowing(self, texts: Collection[str]) -> Source:
        """This source with those columns as text that an earlier look at other files took for text."""
        there = [t for t in texts if t in self.columns]
        return self.as_text(there) if self.as_text and there else self

    @contextmanager
    def one_pass(self) -> Iterator[None]:
        """Refuse, at the end or for whatever goes wrong, files that changed meanwhile."""
        try:
            with self.naming_lines():
                yield
        except Exception:
            self.check()
            raise
        self.check()


# ---- columns that are made of others, and rows left out, as they are read ----

# The rows of a batch, what of them is asked for, and the number of their first row within its part, to the columns
# made and which rows are chosen; None for all.
Made = Callable[[pa.RecordBatch, Collection[str], int], tuple[Mapping[str, pa.Array], pa.Array | None]]


def making(read: Read, needs: Mapping[str, Sequence[str]], made: Made, always: Sequence[str] = ()) -> Read:
    """A reader with columns that are made of those that each `needs`; those of `always` are read whatever is asked."""

    def read_all(columns: Sequence[str], real: Sequence[str]) -> Iterator[pa.RecordBatch]:
        used, row = [c for c in columns if c in needs], 0
        own = (c for c in columns if c not in needs)
        there = list(dict.fromkeys((*own, *(c for name in used for c in needs[name]), *always)))
        for batch in read(there, [c for c in real if c not in needs]):
            new, chosen = made(batch, used, row)
            row += batch.num_rows
            rows = pa.RecordBatch.from_arrays([new[c] if c in new else batch.column(c) for c in columns], list(columns))
            yield rows if chosen is None else rows.filter(chosen)

    return read_all


# ---- rows that a calibrator was fitted on: on these its scores look better than they are ----

# What names of repaired scores end with, and of the column that marks such rows.
REPAIRED, FITTED_ON = "_repaired", "_fitted_on"
MARKED, UNMARKED = ["1", "1.0", "true"], ["0", "0.0", "false"]


def marks_of(names: Collection[str]) -> tuple[str, ...]:
    """Columns that mark rows of a calibrator of one of the others, whichever is audited: they record a split."""
    ends = ((name, name.removesuffix(FITTED_ON)) for name in names if name.endswith(FITTED_ON))
    return tuple(name for name, score in ends if score in names or f"{score}{REPAIRED}" in names)


def unfitted(opened: Source, scores: Sequence[str]) -> Source:
    """A source without the rows that the calibrator of one of the scores was fitted on, where a column says so.

    Which rows it marks is read first, for they are counted.
    """
    marks = (f"{score.removesuffix(REPAIRED)}{FITTED_ON}" for score in scores if score.endswith(REPAIRED))
    for mark in dict.fromkeys(mark for mark in marks if opened.columns.count(mark) == 1):
        if not opened.again or opened.engine is not None:
            raise BadInput(
                f"column {mark!r} marks the rows that the calibrator was fitted on, and rows of a stream or a cluster "
                "are not left out: pass the others alone"
            )
        opened = _without(opened, mark)
    return opened


def _without(opened: Source, mark: str) -> Source:
    fitted = sum(int(pc.sum(marked(batch.column(mark), mark)).as_py() or 0) for batch in opened.read([mark]))

    def others(batch: pa.RecordBatch, _: Collection[str], _row: int) -> tuple[dict[str, pa.Array], pa.Array]:
        return {}, pc.invert(marked(batch.column(mark), mark))

    if not fitted:
        return opened
    why = f"{fitted:,} {'row' if fitted == 1 else 'rows'} that the calibrator was fitted on, by column {mark!r}"
    return replace(
        opened,
        parts=tuple(replace(part, read=making(part.read, {}, others, [mark])) for part in opened.parts),
        columns=tuple(c for c in opened.columns if c != mark),
        rows=None if opened.rows is None else opened.rows - fitted,
        fragments=None,
        place=row_of,  # rows are numbered without those left out
        log=replace(opened.log, excluded=(*opened.log.excluded, why)),
    )


def spread(opened: Source, patterns: Sequence[str]) -> Source:
    """A source with a column for each part of lists or structs that patterns such as ``probs_*`` stand for.

    Of lists ``probs_0``, ``probs_1``; of structs ``probs.cat``, called as their fields. Lists may be text in JSON.
    """
    for pattern in patterns:
        name, mark = pattern[:-2], pattern[-2:]
        alone = opened.columns.count(name) == 1 and not fnmatch.filter(opened.columns, pattern)
        if mark in ("_*", ".*") and alone and opened.again and opened.engine is None:
            opened = _spread(opened, name)
    return opened


def _spread(opened: Source, name: str) -> Source:
    first = next((c for batch in opened.read([name]) if len(c := listed(batch.column(name)).drop_null())), None)
    if first is not None and pair_of(first.type):
        return _paired(opened, name)
    if first is None or not is_listed(first.type):
        return opened
    struct = pa.types.is_struct(first.type)
    own = (
        tuple(f"{name}.{f.name}" for f in first.type) if struct else tuple(f"{name}_{i}" for i in range(len(first[0])))
    )

    return _replaced(opened, name, own, lambda column, row: parts_of(listed(column), name, own, row))


def _replaced(
    opened: Source, name: str, own: Sequence[str], parts_made: Callable[[pa.Array, int], dict[str, pa.Array]]
) -> Source:
    """A source with several columns in place of one; a function makes them of it, and its first row."""

    def kept(part: Part) -> Part:
        def made(batch: pa.RecordBatch, used: Collection[str], row: int) -> tuple[dict[str, pa.Array], None]:
            return (parts_made(batch.column(name), part.first_row + row) if used else {}), None

        return replace(part, read=making(part.read, dict.fromkeys(own, (name,)), made))

    at = opened.columns.index(name)
    columns = (*opened.columns[:at], *own, *opened.columns[at + 1 :])
    kinds = {k: v for k, v in opened.kinds.items() if k != name}
    parts = tuple(map(kept, opened.parts))
    return replace(opened, parts=parts, columns=columns, kinds=kinds, as_text=None, fragments=None)


# ---- lists of classes with their probabilities, such as the most probable ----

PAIRS = "[{"  # how a text in JSON begins that lists pairs
CLASS = " class"  # behind the column of a probability: that of its class
LONGEST_LIST = 1000  # classes that a row lists


def pair_of(t: pa.DataType) -> tuple[str, str] | None:
    """The fields of a class and of its probability, where a type is lists of such pairs."""
    if not (pa.types.is_list(t) or pa.types.is_large_list(t)) or not pa.types.is_struct(t.value_type):
        return None
    texts = [f.name for f in t.value_type if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    numbers = [f.name for f in t.value_type if pa.types.is_floating(f.type)]
    return (texts[0], numbers[0]) if texts and numbers else None


def _paired(opened: Source, name: str) -> Source:
    """A source whose lists of pairs are columns ``name_1``, ``name_1 class``, ``name_2`` and so on."""
    lists = (listed(batch.column(name)) for batch in opened.read([name]))
    longest = max(pc.max(pc.list_value_length(each)).as_py() or 0 for each in lists)
    if longest > LONGEST_LIST:
        raise BadInput(f"column {name!r} lists {longest:,} classes in a row: list {LONGEST_LIST:,} at most")
    own = [f"{name}_{i + 1}{end}" for i in range(longest) for end in ("", CLASS)]

    def parts_made(column: pa.Array, _: int) -> dict[str, pa.Array]:
        lists = listed(column)
        if (fields := pair_of(lists.type)) is None:  # a batch of no list
            return {c: pa.nulls(len(column), pa.string() if c.endswith(CLASS) else pa.float64()) for c in own}
        values, starts = lists.values, lists.offsets.to_numpy()
        length = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        out = {}
        for i in range(longest):
            at = pa.array(np.minimum(starts[:-1] + i, max(len(values) - 1, 0)), mask=length <= i)
            for field_name, end in zip(fields, (CLASS, ""), strict=True):
                out[f"{name}_{i + 1}{end}"] = pc.struct_field(values, field_name).take(at)
        return out

    return _replaced(opened, name, own, parts_made)


def is_listed(t: pa.DataType) -> bool:
    """Whether an Arrow type is lists of numbers, or structs of them."""
    if pa.types.is_struct(t):
        return bool(t.num_fields) and all(pa.types.is_floating(f.type) or pa.types.is_integer(f.type) for f in t)
    lists = pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t)
    return bool(lists) and (pa.types.is_floating(t.value_type) or pa.types.is_integer(t.value_type))


def listed(column: pa.Array) -> pa.Array:
    """A column with texts such as ``"[0.2, 0.8]"`` as lists; any other as it is."""
    text = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    first = next((v for v in text.slice(0, ROWS).drop_null().slice(0, 1).to_pylist()), None)
    if not isinstance(first, str) or not first.startswith("["):
        return column
    try:
        lists = [None if not v else json.loads(v) for v in text.to_pylist()]
        return pa.array(lists, None if first.startswith(PAIRS) else pa.list_(pa.float64()))
    except (ValueError, pa.ArrowInvalid, pa.ArrowTypeError):
        return column


def parts_of(column: pa.Array, name: str, own: Sequence[str], row: int) -> dict[str, pa.Array]:
    """The parts of lists or structs as columns, null where there is none; refuse lists of another length."""
    if not is_listed(column.type) and column.null_count < len(column):
        raise BadInput(f"column {name!r} holds {column.type} from row {row:,} on, and lists before: store lists alone")
    if column.null_count == len(column):
        return {part: pa.nulls(len(column), pa.float64()) for part in own}
    if pa.types.is_struct(column.type):
        return {part: pc.struct_field(column, part[len(name) + 1 :]) for part in own}
    k, lengths = len(own), pc.list_value_length(column)
    wrong = pc.fill_null(pc.not_equal(lengths, k), False)
    if pc.any(wrong).as_py():
        at = pc.index(wrong, True).as_py()
        n = pc.sum(wrong).as_py()
        rows = "row has" if n == 1 else "rows have"
        raise BadInput(
            f"column {name!r}: {n:,} {rows} lists of another length than {k}, first row {row + at:,} with "
            f"{lengths[at].as_py():,}: give every class a probability"
        )
    at_least = pc.if_else(column.is_valid(), column, pa.scalar([None] * k, column.type))
    return {part: pc.list_element(at_least, i) for i, part in enumerate(own)}


def marked(column: pa.Array, name: str) -> pa.Array:
    """Whether each row is marked, from truth values, 0 and 1, or their words; a missing mark is none."""
    if pa.types.is_boolean(column.type):
        return pc.fill_null(column, False)
    words = pc.fill_null(pc.utf8_lower(column.cast(pa.string())), "0")
    if not pc.all(pc.is_in(words, pa.array([*MARKED, *UNMARKED]))).as_py():
        raise BadInput(f"column {name!r} should say which rows the calibrator was fitted on: true or false, 0 or 1")
    return pc.is_in(words, pa.array(MARKED))


# ---- columns that name clusters together ----

JOINT = "+"


def with_joint(opened: Source, names: Sequence[str]) -> Source:
    """The source with columns such as ``a+b`` that are asked for: one value for each of `a` and `b` together.

    A column that is called so is read as it is.
    """
    joint = {name: tuple(name.split(JOINT)) for name in names if JOINT in name and name not in opened.columns}
    needs = {name: of for name, of in joint.items() if {*of} <= {*opened.columns} and len({*of}) == len(of)}
    if not needs:
        return opened
    if opened.engine is not None:
        raise BadInput(
            f"cluster {clipped(next(iter(needs)))!r}: of a Spark or Dask DataFrame columns are not joined: make one "
            "column of them first"
        )

    def joined(batch: pa.RecordBatch, used: Collection[str], _: int) -> tuple[dict[str, pa.Array], None]:
        return {name: joint_texts([batch.column(c) for c in needs[name]], needs[name]) for name in used}, None

    parts = tuple(replace(part, read=making(part.read, needs, joined)) for part in opened.parts)
    return replace(opened, columns=(*opened.columns, *needs), parts=parts, fragments=None)


# ---- logs of one data set: what all of them have ----


def shared(opened: Sequence[Source]) -> tuple[tuple[str, ...], Log]:
    """The columns of a data set and what its logs are: of logs those columns that all have.

    Tasks know different things of a question; the columns that play a part must be in every log all the same.
    """
    first = opened[0]
    if not first.log.tool or len(opened) == 1:
        return first.columns, first.log
    every = set.intersection(*(set(one.columns) for one in opened))
    kept = replace(
        first.log,
        label=first.log.label if all(one.log.label == first.log.label for one in opened) else "",
        verdicts=tuple(dict.fromkeys(c for one in opened for c in one.log.verdicts if c in every)),
        unfinished=tuple(reported for one in opened for reported in one.log.unfinished),
        confidences=tuple(pair for pair in first.log.confidences if pair[0] in every),
    )
    return tuple(c for c in first.columns if c in every), kept


# ---- row groups of Parquet files, as plain data that another machine can read them by ----

LEAST_SHARES = 64  # so that a cluster of that many cores has work for each
SHARE = 1 << 24  # rows that one task reads, about: seconds of work

Key = tuple[str, "str | None", bool]  # column, value, all values of it are whole numbers: it stands in a folder's name
Fragment = tuple[str, str, int, tuple[int, int], int, tuple[Key, ...]]  # path, part, first row, row groups, rows, keys
Share = tuple["pa.fs.FileSystem", list[Fragment]]


@dataclass(frozen=True)
class Fragments:
    """All row groups of a data set."""

    filesystem: pa.fs.FileSystem
    pieces: tuple[Fragment, ...]

    def shares(self) -> list[Share]:
        """The row groups, dealt to tasks in runs of about equally many rows."""
        total = sum(p[4] for p in self.pieces)
        size = total / min(len(self.pieces), max(LEAST_SHARES, -(-total // SHARE))) if total else 1.0
        shares: list[list[Fragment]] = []
        before, last = 0, -1
        for piece in self.pieces:
            if (at := int(before // size)) != last:
                shares.append([])
                last = at
            shares[-1].append(piece)
            before += piece[4]
        return [(self.filesystem, share) for share in shares]


# ---- work on several parts at a time: on threads, or one after another where one at a time is asked for ----


T = TypeVar("T")
R = TypeVar("R")


def parallel_map(
    work: Callable[[T], R], items: Sequence[T], most: int, failed: Callable[[], object] = lambda: None
) -> list[R]:
    """What work gives for each item, in their order, at most so many at a time.

    Where one at a time is asked for, work is done where this is called. The first failure is raised; `failed` is
    called before what else is under way is waited for.
    """
    if min(most, len(items)) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(most, len(items))) as pool:
        try:
            return list(pool.map(work, items))
        except BaseException:
            failed()
            raise
