"""One pass over a source: its parts become one summary, on local threads or where the rows are; and sketches of files,
added up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from threading import Event, Lock
from typing import Any, TypeVar, cast

import pyarrow as pa

from calibrant.arguments import PYTHON, Caller
from calibrant.data.columns import require
from calibrant.data.engines.work import Summary, Task, joined
from calibrant.data.reading import Reading
from calibrant.data.sketches.rows import Choice, Chosen
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.files import open_source
from calibrant.data.sources.frames import lazy_columns
from calibrant.data.sources.query import Query
from calibrant.data.sources.source import JOINT, OnRows, Part, Source, parallel_map, with_joint
from calibrant.data.specs.follow_up import candidates, ends
from calibrant.data.specs.sketch_file import stored_sketch
from calibrant.data.specs.spec import Spec
from calibrant.data.survey import FirstLook
from calibrant.errors import BadInput, EngineFailed
from calibrant.kernels.runtime import one_thread, sized

S = TypeVar("S", bound=Summary)

CHANGED = "the data changed while it was read: {} rows at first, then {}; cache it, or write it to files"
MOST_THREADS = 8  # each keeps counts of its own
MANY_GROUPS = 400  # above this one thread keeps one set of counts: 120 MB

# ---- whose rows, and whose machines: recognised by the name of a module, for nothing may be imported to find out ----

ENGINES = "pass a live SparkSession or a distributed.Client"
KNOWN = {"pyspark": "spark", "dask": "dask", "distributed": "dask", "duckdb": "duckdb", "_duckdb": "duckdb"}
LIVE = {"spark": ("sql", "range", "addTag"), "dask": ("gather", "compute", "cancel")}  # of a session, of a client


def kind_of(thing: object) -> str:
    """What a frame, session, client or connection is of: "spark", "dask", "duckdb" or ""."""
    return KNOWN.get(type(thing).__module__.lower().split(".")[0], "")


def is_live(engine: object, kind: str) -> bool:
    """Whether an engine is a session or client of this kind."""
    return kind in LIVE and kind_of(engine) == kind and all(hasattr(engine, a) for a in LIVE[kind])


def source_of(
    source: object, options: Reading, wanted: Sequence[str] = (), engine: object = None, texts: Collection[str] = ()
) -> Source:
    """A source as `open_source` does, or as rows that a cluster sums up, with the clusters that were asked for.

    `source` may be open already, and `engine` reads Parquet files on its own machines. `wanted`: columns that will be
    read. `texts`: columns that an earlier look at other files took for text.
    """
    own = [c for name in options.clusters for c in name.split(JOINT)]
    wanted = (*wanted, *own) if wanted else ()  # every column
    return with_joint(_source_of(source, options, wanted, engine, texts), options.clusters)


def _source_of(
    source: object, options: Reading, wanted: Sequence[str], engine: object, texts: Collection[str]
) -> Source:
    if isinstance(source, Source):
        return source
    kind = kind_of(source)
    if kind in LIVE and hasattr(source, "columns"):
        if engine is not None and not is_live(engine, kind):
            raise BadInput(
                f"engine= is a {type(engine).__name__} and the source a {kind.capitalize()} DataFrame: leave it out"
            )
        return _cluster_frame(source, kind, engine)
    if kind_of(engine) == "duckdb":
        raise BadInput("a DuckDB connection runs queries: pass calibrant.sql(text, connection=...) in place of engine=")
    if isinstance(source, Query) and engine is not None:
        raise BadInput("a query runs in DuckDB: leave engine= out, or pass the session's own DataFrame")
    if wanted and ends(options.label):  # a lazy frame computes with it the times that show whether it is an event seen
        wanted = (*wanted, *(time for time, _ in candidates(options.label, lazy_columns(source))))
    result = open_source(source, wanted, options.form).knowing(texts)
    if engine is None:
        return result
    if not is_live(engine, kind_of(engine)):
        raise BadInput(f"engine is a {type(engine).__name__}: {ENGINES}")
    if result.fragments is None:
        raise BadInput(
            "engine= reads Parquet files only: leave it out to read this here, or pass a frame of the engine"
        )
    from calibrant.data.engines.dask import DaskFragments
    from calibrant.data.engines.spark import SparkFragments

    made = SparkFragments if kind_of(engine) == "spark" else DaskFragments
    return replace(result, engine=made(engine, result.fragments))


def _cluster_frame(frame: Any, kind: str, engine: object) -> Source:
    """A DataFrame's rows, which have no numbers."""
    if kind == "spark":
        from calibrant.data.engines.spark import SparkFrame

        # a DataFrame of Connect has every attribute: it takes any for a column
        frame = frame.to_spark() if type(frame).__module__.startswith("pyspark.pandas") else frame
        rows = SparkFrame(frame)
        return Source("frame", rows.columns, (), None, numbered=False, engine=rows)
    from calibrant.data.engines.dask import DaskFrame

    parts = DaskFrame(frame, engine)
    return Source("frame", parts.columns, (), None, numbered=False, engine=parts)


# ---- the passes ----


def first_look(
    source: Source, spec: Spec, by: Sequence[str], covariates: Sequence[str], progress: OnRows | None = None
) -> FirstLook:
    """Read groups and covariates once, never the labels."""
    task = Task(kind="look", spec=spec, by=tuple(by), covariates=tuple(covariates))
    result = cast(FirstLook, _reduced(source, task, progress))
    if source.rows not in (None, result.rows_read):
        raise BadInput(CHANGED.format(source.rows, result.rows_read))
    return result


def sketch_source(
    source: Source, spec: Spec, progress: OnRows | None = None, looked: FirstLook | None = None, caller: Caller = PYTHON
) -> Sketch:
    """Read every part once, in record batches, and return the checked sketch.

    Memory is one sketch a thread plus a few batches; the counts do not depend on the number of threads. `looked` is the
    look that fixed the spec, if there was one: both must have seen as many rows.
    """
    known = looked.look.n if looked is not None and looked.covariates else None
    task = Task(kind="count", spec=spec, rows=known)
    whole = cast(Sketch, _reduced(source, task, progress))
    whole.faults.caller = caller
    whole.faults.check(spec, source.place)
    expected = source.rows if looked is None else looked.rows_read
    if expected is not None and expected != whole.rows_read:
        raise BadInput(CHANGED.format(expected, whole.rows_read))
    whole.checked()
    whole.faults.check_scale(spec)
    sample = whole.parts.get("sample")
    if known is not None and sample is not None and not sample.whole and len(sample.lines) < min(spec.sample, whole.n):
        # rows were narrowed by a count of them that included some without a label: read again, keeping more
        return cast(Sketch, _reduced(source, replace(task, rows=None), None)).checked()
    return whole


def chosen_rows(
    source: Source, spec: Spec, names: Sequence[str], most: int, progress: OnRows | None = None, caller: Caller = PYTHON
) -> Chosen:
    """Read a source once and keep the `most` sound rows with the smallest hashed identities, covariates as they are.

    Raises
    ------
    BadInput
        A column is not there, or a score or label cannot be used: it names column, count and first row.
    """
    for role, columns in (spec.roles | {"covariate": tuple(names)}).items():
        require(columns, source.columns, role)
    if not source.again:
        raise BadInput("a stream can be read only once, and a repair is fitted before it is applied: pass a file")
    columns = Choice(spec, names, most).columns
    with source.one_pass():
        result = _on_threads(source, lambda: Choice(spec, names, most), columns, spec.score, MOST_THREADS, progress)
    chosen = result.chosen(source.name, caller, source.place)
    result.faults.check_scale(spec)
    return chosen


def _reduced(source: Source, task: Task, progress: OnRows | None) -> Summary:
    with source.one_pass():
        return _summed(source, task, progress)


def _summed(source: Source, task: Task, progress: OnRows | None) -> Summary:
    if source.engine is None:
        many = task.kind == "count" and task.spec.group_count > MANY_GROUPS
        most = 1 if many else MOST_THREADS
        return _on_threads(source, task.start, task.columns, task.spec.score, most, progress)
    messages, count = source.engine.run(task.to_bytes(), task.columns)
    whole, parts = joined(task, messages)
    if count not in (None, len(parts)):
        raise EngineFailed(f"{len(parts)} of {count} parts came back: nothing was counted, so run it again")
    if progress is not None:
        progress(whole.rows_read)
    return whole


def _on_threads(
    source: Source, start: Callable[[], S], columns: Sequence[str], score: str, most: int, progress: OnRows | None
) -> S:
    """Read the parts on up to `most` threads, each with a summary of its own, and merge the summaries."""
    threads = max(min(len(source.parts), os.cpu_count() or 1, most), 1)
    queue, lock, stopped = list(reversed(source.parts)), Lock(), Event()
    real = [c for c in columns if c == score]

    def next_part() -> Part | None:
        with lock:
            return queue.pop() if queue else None

    def work(_: int) -> S:
        summary = start()
        while (part := next_part()) is not None:
            row = part.first_row
            for batch in part.read(columns, real):
                if stopped.is_set():
                    return summary
                with sized(source.rows or 0):
                    summary.update(batch, part=part.name, first_row=row)
                row += batch.num_rows
                if progress is not None:
                    progress(batch.num_rows)
        return summary

    with one_thread():  # the parts are what runs side by side
        # one part is refused, or somebody stops it all: the others need not be read to the end
        whole, *others = parallel_map(work, range(threads), threads, failed=stopped.set)
    while others:
        whole.add(others.pop())
    release_memory()
    return whole


# ---- free memory goes back to the system ----


def release_memory() -> None:
    """Give free memory back to the system: Arrow's, and that of the C library where it can be asked to (glibc).

    Threads that read leave a heap each, mostly free but no smaller.
    """
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    import ctypes

    try:
        result: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):  # another system, or another C library
        return None
    return result


# ---- Sketch files, added up; the same rows do not count twice unless somebody means it ----


def merged(files: Sequence[str], allow_same: bool = False) -> Sketch:
    """The sum of sketch files; refuse two that hold the same rows, or some of them, and name both."""
    whole = _read(files[0])
    known = {whole.fingerprint: files[0]}
    for k, file in enumerate(files[1:], 1):
        one = _read(file)
        if not allow_same:
            # the sum is asked first, and each sketch in it only once it is known that there is something to tell
            twin = known.setdefault(one.fingerprint, file)
            if twin != file or file in files[:k]:
                _refuse(twin, file, f"hold the same {one.n:,} rows")
            if why := whole.shares(one):
                each = ((before, _read(before).shares(one)) for before in files[:k])
                _refuse(*next(((before, file, own) for before, own in each if own), ("the others", file, why)))
        try:
            whole.add(one)
        except BadInput as e:
            raise BadInput(f"{file}: {e}") from None
    return whole


def _read(file: str) -> Sketch:
    try:
        return Sketch.from_bytes(stored_sketch(file))
    except BadInput as e:
        raise BadInput(f"{file}: {e}") from None


def _refuse(first: str, second: str, why: str) -> None:
    raise BadInput(
        f"{first} and {second} {why}, which would count twice: leave one out, or pass --allow-same if that is meant"
    )
