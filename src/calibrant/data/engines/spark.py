"""Spark DataFrames, and Parquet row groups read by a Spark session's executors: classic or Connect, by `mapInArrow`.

One task a partition sums its rows up. The sums are joined in two stages: first in groups, each by a task of its own,
then what the groups gave in a few buckets, which alone reach the driver; `repartition` deals them and `mapInArrow`
joins them. Few partitions go to the buckets at once. Nothing of the session is changed but a job tag, by which the work
can be cancelled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from calibrant.data.engines.work import caller
from calibrant.data.sources.source import Fragments, Share
from calibrant.errors import EngineFailed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Batches = Callable[["Iterable[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]  # what `mapInArrow` takes

BUCKETS = 32  # sums that reach the driver, at most: a joined one is some megabytes
GROUP = 64  # sums that one task of the first stage joins, about: half a gigabyte where each is large
PIECE = 1 << 23  # bytes of a sum that one row carries: far below what one Arrow value or message may hold
ADAPTIVE = (
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.coalescePartitions.enabled",
)  # small tasks are joined
SCHEMA = "bucket int, part long, piece int, pieces int, data binary"
LACKING = re.compile(r"No module named 'pyarrow|PACKAGE_NOT_INSTALLED.*PyArrow|PyArrow .*must be installed")
NO_ARROW = (
    "the Python of its workers has no pyarrow: install calibrant there, or set PYSPARK_PYTHON to a Python that has it "
    "before the session begins"
)
TOO_OLD = "Spark {}: calibrant needs Spark 4 or later, on the cluster too (here: pip install 'pyspark[connect]>=4')"


class SparkFrame:
    """The rows of a Spark DataFrame."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame
        self.columns = tuple(map(str, frame.columns))

    def run(self, task: bytes, columns: Sequence[str]) -> tuple[list[bytes], None]:
        """Messages that together cover every partition once; how many there are, only the job knows."""
        quoted = ["`" + c.replace("`", "``") + "`" for c in columns]
        return _run(self.frame.sparkSession, lambda: self.frame.select(*quoted), task, _of_rows(task)), None


class SparkFragments:
    """Row groups of Parquet files that the executors open themselves."""

    def __init__(self, session: SparkSession, fragments: Fragments) -> None:
        self.session, self.fragments = session, fragments

    def run(self, task: bytes, columns: Sequence[str]) -> tuple[list[bytes], int]:  # noqa: ARG002 - the task names the columns
        """Messages that together cover every share of fragments once, and how many there are."""
        shares = self.fragments.shares()
        if not shares:
            return [], 0

        def numbers() -> DataFrame:
            return self.session.range(0, len(shares), 1, len(shares))

        return _run(self.session, numbers, task, _of_fragments(task, shares), len(shares)), len(shares)


def _run(
    session: SparkSession, rows: Callable[[], DataFrame], raw: bytes, sum_up: Batches, parts: int | None = None
) -> list[bytes]:
    tag = f"calibrant-{uuid4().hex}"
    try:
        if int(session.version.split(".")[0]) < 4:
            raise EngineFailed(TOO_OLD.format(session.version))
        session.addTag(tag)
        sums = rows().mapInArrow(sum_up, SCHEMA)
        adapts = all(session.conf.get(name) == "true" for name in ADAPTIVE)
        for how in stages(adapts, parts):
            sums = sums.repartition(*how).mapInArrow(_joining(raw), SCHEMA)
        table = sums.toArrow()
    except BaseException as e:
        with suppress(Exception):  # the session may be what failed
            session.interruptTag(tag)
        if _interrupted(e):
            raise KeyboardInterrupt from e
        if type(e).__module__.startswith(("pyspark.", "py4j.", "grpc")) or isinstance(e, ConnectionError):
            raise EngineFailed(f"the Spark job failed, and nothing was counted: {reported(e)}") from e
        raise
    finally:
        with suppress(Exception):
            session.removeTag(tag)
    try:
        return list(_gatherer()(table.to_batches()))
    except RuntimeError as e:
        raise EngineFailed(f"{e}: nothing was counted, so run it again") from None


def stages(adapts: bool, parts: int | None) -> list[tuple[int | str, ...]]:
    """How the sums are dealt to the tasks of each stage: in how many, by which column.

    A task costs more than the sums of a small log, so few parts are joined in one stage. How many partitions a
    DataFrame has is known to its job alone: where that adapts, as many tasks join the groups as there are megabytes for
    them, and where it does not, there are no groups. A sum, or bucket, is never split.
    """
    if parts is None:
        return [("part",), ("bucket",)] if adapts else [(BUCKETS, "bucket")]
    groups = [(-(-parts // GROUP), "part")] if parts > BUCKETS * GROUP else []
    return [*groups, (min(BUCKETS, parts), "bucket")]


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: a classic session hides it behind that of the job it cancelled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def reported(error: BaseException) -> str:
    """The one line of an engine's error that says most: the last of a Python traceback, or the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [q for q in lines if not q.startswith("An error occurred while calling")]
    if any(LACKING.search(q) for q in lines):
        return NO_ARROW
    python = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    if python:
        after = [q for q in lines[python[0] + 1 :] if not q.startswith(("File ", "at ", "^")) and ": " in q]
        lines = after or lines
    return (lines or [type(error).__name__])[0][:300]


# ---- what travels: no name of calibrant may be needed to unpickle it ----


def _of_rows(raw: bytes) -> Batches:
    call, pieces = caller("Spark"), _cutter()

    def sum_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        part = TaskContext.get().partitionId()
        yield from pieces(part, call("count_frame", raw, part, batches))

    return sum_up


def _of_fragments(raw: bytes, shares: Sequence[Share]) -> Batches:
    call, pieces = caller("Spark"), _cutter()

    def sum_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield from pieces(part, call("count_fragments", raw, part, shares[part]))

    return sum_up


def _joining(raw: bytes) -> Batches:
    call, pieces, whole = caller("Spark"), _cutter(), _gatherer()

    def join(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import itertools

        from pyspark import TaskContext

        messages, bucket = whole(batches), TaskContext.get().partitionId()
        first = next(messages, None)
        if first is not None:  # what follows is joined as it comes
            yield from pieces(bucket, call("join", raw, bucket, itertools.chain([first], messages)))

    return join


def _cutter() -> Callable[[int, bytes], Iterator[pa.RecordBatch]]:
    buckets, size = _labels(BUCKETS), PIECE

    def pieces(part: int, data: bytes) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        types = (pa.int32(), pa.int64(), pa.int32(), pa.int32(), pa.binary())
        names, of = ["bucket", "part", "piece", "pieces", "data"], max(-(-len(data) // size), 1)
        for i in range(of):
            row = (buckets[part % len(buckets)], part, i, of, data[i * size : (i + 1) * size])
            columns = [pa.array([v], t) for v, t in zip(row, types, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names)

    return pieces


def _labels(buckets: int) -> list[int]:
    """Numbers that Spark's hash deals to different buckets; any others would add up to the same, less evenly."""
    results: dict[int, int] = {}
    number = 0
    while len(results) < buckets:
        results.setdefault(_murmur(number) % buckets, number)
        number += 1
    return list(results.values())


def _murmur(number: int) -> int:
    """Murmur3 of a 32-bit number with Spark's seed, signed."""
    whole = 0xFFFFFFFF
    k = number * 0xCC9E2D51 & whole
    h = 42 ^ (((k << 15 | k >> 17) & whole) * 0x1B873593 & whole)
    h = ((h << 13 | h >> 19) & whole) * 5 + 0xE6546B64 & whole ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & whole
    h = (h ^ h >> 13) * 0xC2B2AE35 & whole
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _gatherer() -> Callable[[Iterable[pa.RecordBatch]], Iterator[bytes]]:
    def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        values: dict[int, dict[int, bytes]] = {}
        for batch in batches:
            rows = (batch.column(i).to_pylist() for i in range(5))
            for _, part, piece, of, data in zip(*rows, strict=True):
                values.setdefault(part, {})[piece] = data
                if len(values[part]) == of:
                    own = values.pop(part)
                    yield b"".join(own[i] for i in range(of))
        if values:
            raise RuntimeError(f"pieces of part {min(values)} are missing")

    return whole
