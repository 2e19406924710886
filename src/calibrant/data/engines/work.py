"""What travels to another machine and runs there: sum up one part of the rows, or join what parts gave.

A refusal is an answer that comes back, so that no engine tries it again. A message is a header and a summary's bytes
(see `data.sketch_file`); the header names the parts that it covers, so that a part that a cluster ran twice cannot
count twice.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Literal, Protocol, Self

import msgspec
import pyarrow as pa

import calibrant
from calibrant.data.sketches.sample import Batch
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.columnar import read_fragments
from calibrant.data.sources.source import Share
from calibrant.data.specs.faults import Faults
from calibrant.data.specs.sketch_file import halves, text_of, with_sizes
from calibrant.data.specs.spec import Spec
from calibrant.data.survey import FirstLook
from calibrant.errors import BadInput, EngineFailed, NotComputable, first_line
from calibrant.kernels.runtime import one_thread, sized

if TYPE_CHECKING:
    import pandas as pd

Numbered = tuple[str, int, pa.RecordBatch]  # part, number of the first row, record batch
Call = Callable[..., bytes]

QUICK = 1  # compression of what travels and is unpacked at once
SPARE = 12.0  # standard deviations by which more rows than a sample holds are kept in each part: all but never too few
ROWS_SENT = 1 << 17  # smaller batches are joined until they have so many rows
WORK = "calibrant.data.engines.work"
TURN = Lock()
REFUSALS: dict[str, type[Exception]] = {"BadInput": BadInput, "NotComputable": NotComputable}


# ---- what is asked, and what is answered ----


class Summary(Protocol):
    """Something that rows are added to and that adds up."""

    rows_read: int

    def update(self, batch: Batch, *, part: str = "", first_row: int = 0) -> None:
        """Add the rows of an Arrow record batch."""

    def add(self, other: Self) -> Self:
        """Add the rows of another part."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One pass over the rows."""

    kind: Literal["look", "count"]  # fix a spec, or fill a sketch
    spec: Spec
    # `by` and `covariates`: of a look.
    by: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    rows: int | None = None  # rows in all, if known: what cannot be among the smallest hashes then need not travel

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        return self.spec.columns if self.kind == "count" else FirstLook(self.spec, self.by, self.covariates).columns

    def start(self) -> Sketch | FirstLook:
        """An empty summary."""
        if self.kind == "look":
            return FirstLook(self.spec, self.by, self.covariates)
        sketch = Sketch(self.spec)
        if self.rows is not None and "sample" in sketch.parts and not self.spec.row_attributes:
            # rows below a share s of all hashes are Binomial(rows, s): kept are so many that k or more are all but sure
            k = self.spec.sample
            sketch.parts["sample"].narrow((k + SPARE * k**0.5 + SPARE**2) / max(self.rows, 1))
        return sketch

    def to_bytes(self) -> bytes:
        """The task as bytes."""
        return zlib.compress(msgspec.json.encode(self))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Task:
        """Rebuild what `to_bytes` wrote."""
        return msgspec.json.decode(zlib.decompress(raw), type=cls)


@dataclass(frozen=True, kw_only=True)
class WorkResult:
    """What stands before a summary's bytes."""

    parts: tuple[int, ...]  # that it covers
    # `refused` and `why`: name and line of the refusal; empty if there is a summary.
    refused: str = ""
    why: str = ""
    faults: Faults | None = None  # of a sketch


def message(answer: WorkResult, summary: bytes = b"") -> bytes:
    """An answer and a summary as bytes."""
    return with_sizes(msgspec.json.encode(answer), summary)


def refusal(error: Exception, parts: Iterable[int]) -> bytes:
    """A refusal as a message."""
    return message(WorkResult(parts=tuple(parts), refused=type(error).__name__, why=text_of(str(error))))


def summary_of(summary: Sketch | FirstLook, parts: Iterable[int]) -> bytes:
    """A summary as a message. Faulty rows that may not be left out are reported without their counts."""
    if isinstance(summary, FirstLook):
        return message(WorkResult(parts=tuple(parts)), summary.to_bytes(level=QUICK))
    first = [f and (text_of(f[0]), f[1]) for f in summary.faults.first]
    files = {text_of(name): seen for name, seen in summary.faults.files.items()}
    faults = replace(summary.faults, first=first, files=files)
    try:
        summary.faults.check(summary.spec)
    except BadInput:
        summary = Sketch(summary.spec)
    return message(WorkResult(parts=tuple(parts), faults=faults), summary.to_bytes(level=QUICK))


def _merged(task: Task, full_sketch: Sketch | FirstLook, answer: WorkResult, raw: memoryview) -> None:
    """Add the summary of a message to the whole."""
    if isinstance(full_sketch, FirstLook):
        full_sketch.add(FirstLook(task.spec, task.by, task.covariates).load(bytes(raw)))
        return
    sketch = Sketch.from_bytes(bytes(raw))
    sketch.faults = answer.faults or Faults()
    full_sketch.add(sketch)


# ---- what runs there ----


def caller(engine: str) -> Call:
    """A function that runs one of this file by name where it is unpickled, even where calibrant is not there.

    Called with the function's name, the task and the part, then what the function takes; returns its message.
    """
    version, work = calibrant.__version__, WORK
    hint = ", or set PYSPARK_PYTHON to a Python that has it before the session begins" if engine == "Spark" else ""

    def call(name: str, task: bytes, part: int, *value: object) -> bytes:
        import importlib
        import json
        import platform
        import struct

        where = f"{platform.node()} (Python {platform.python_version()})"
        try:
            there = getattr(importlib.import_module("calibrant"), "__version__", "another version")
            if there == version:
                arguments = (task, *value) if name == "join" else (task, part, *value)
                run: Call = getattr(importlib.import_module(work), name)
                return run(*arguments)
            why = (
                f"a {engine} worker, {where}, has calibrant {there} and this session has {version}: "
                "install the same version on both"
            )
        except ImportError as e:
            why = (
                f"a {engine} worker, {where}, cannot import calibrant {version} ({e}): install it on every worker{hint}"
            )
        head = json.dumps({"refused": "BadInput", "why": why, "parts": [part]}).encode()
        return struct.pack("<QQ", len(head), 0) + head  # as `with_sizes`, which may not be there

    return call


def summarise(raw: bytes, part: int, batches: Iterable[Numbered], in_files: bool = False) -> bytes:
    """Do a task on one part of the rows; those of a frame are of no file, whatever messages call their part."""
    task = Task.from_bytes(raw)
    try:
        with _one_thread(), sized(task.rows or 0):
            summary = task.start()
            for name, first_row, batch in batches:
                summary.update(batch, part=name, first_row=first_row)
            if isinstance(summary, Sketch) and not in_files:
                summary.parts["contents"].name("")
                summary.faults.in_one()
            return summary_of(summary, [part])
    except (BadInput, NotComputable) as e:
        return refusal(e, [part])


def count_frame(raw: bytes, part: int, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Do a task on the record batches of one partition of a frame."""
    return summarise(raw, part, from_frame(batches, part))


def count_pandas(raw: bytes, part: int, frame: pd.DataFrame) -> bytes:
    """Do a task on one pandas partition."""
    try:
        table = pa.Table.from_pandas(frame[list(Task.from_bytes(raw).columns)], preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
        return refusal(BadInput(f"a column mixes types ({first_line(e)}): make it text or numbers"), [part])
    return summarise(raw, part, from_frame(table.to_batches(), part))


def count_fragments(raw: bytes, part: int, share: Share) -> bytes:
    """Do a task on row groups of Parquet files, read here."""
    filesystem, pieces = share
    columns = Task.from_bytes(raw).columns
    return summarise(raw, part, read_fragments(filesystem, pieces, columns), in_files=True)


def join(raw: bytes, messages: Iterable[bytes]) -> bytes:
    """Join the messages of disjoint parts; the refusal of the first part wins, and one message is what it is."""
    first, *second = itertools.islice(messages := iter(messages), 2)
    if not second:
        return first
    messages = itertools.chain([first], second, messages)
    whole, parts, refused = _joined(Task.from_bytes(raw), messages)
    return summary_of(whole, parts) if refused is None else refusal(refused, parts)


def joined(task: Task, messages: Iterable[bytes]) -> tuple[Sketch | FirstLook, Sequence[int]]:
    """The summary of all parts and which they are; raise the refusal of the first part."""
    whole, parts, refused = _joined(task, messages)
    if refused is not None:
        raise refused
    return whole, parts


def _joined(task: Task, messages: Iterable[bytes]) -> tuple[Sketch | FirstLook, list[int], Exception | None]:
    whole, seen, refused = task.start(), set[int](), set[int]()
    refusals: list[tuple[int, Exception]] = []
    for raw in messages:
        head, body = halves(raw)
        answer = msgspec.json.decode(head, type=WorkResult)
        parts = set(answer.parts)
        if answer.refused:  # a worker of another version may not know which parts it was to join
            refused |= parts
            refusals.append((min(parts), REFUSALS.get(answer.refused, EngineFailed)(answer.why)))
            continue
        if twice := seen & parts:
            raise EngineFailed(f"part {min(twice)} came back twice: nothing was counted, so run it again")
        seen |= parts
        if not refusals:
            try:
                _merged(task, whole, answer, body)
            except BadInput as e:
                refusals.append((min(parts), e))
    first = min(refusals, key=lambda r: r[0])[1] if refusals else None
    return whole, sorted(seen | refused), first


def from_frame(batches: Iterable[pa.RecordBatch], part: int) -> Iterator[Numbered]:
    """Join small batches; their rows are numbered within the part, for messages only."""
    kept, rows, first = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        if batch.num_rows:
            kept.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_SENT:
            yield from _together(kept, part, first)
            kept, rows, first = [], 0, first + rows
    if kept:
        yield from _together(kept, part, first)


def _together(values: list[pa.RecordBatch], part: int, first: int) -> Iterator[Numbered]:
    """Yield batches as one, or as more where texts are too long for one array."""
    whole = values if len(values) == 1 else pa.Table.from_batches(values).combine_chunks().to_batches()
    for batch in whole:
        yield f"partition {part}", first, batch
        first += batch.num_rows


@contextmanager
def _one_thread() -> Iterator[None]:
    """Linear algebra on one thread, set and unset by the first of the tasks that overlap where workers are threads.

    Were each to restore what it found, the last would restore what the first had set. The sums are exact either way.
    """
    if not TURN.acquire(blocking=False):
        yield
        return
    try:
        with one_thread():
            yield
    finally:
        TURN.release()
