"""How parts become one summary: on local threads, or where the rows are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Any

from calibrant.data.engines.work import Task
from calibrant.data.sketch import Sketch
from calibrant.data.sources import Part, Source
from calibrant.data.spec import Spec
from calibrant.data.survey import FirstLook
from calibrant.errors import BadInput, EngineFailed
from calibrant.kernels.runtime import one_thread

Progress = Callable[[int], None]
CHANGED = "the data changed while it was read: {} rows at first, then {}; cache it, or write it to files"
MANY_GROUPS = 400  # above this one thread keeps one set of counts


def first_look(source: Source, spec: Spec, by: Sequence[str], covariates: Sequence[str]) -> FirstLook:
    """Read groups and covariates once, never the labels."""
    task = Task(kind="look", spec=spec, by=tuple(by), covariates=tuple(covariates))
    found: FirstLook = _reduced(source, task, None)
    if source.rows not in (None, found.rows_read):
        raise BadInput(CHANGED.format(source.rows, found.rows_read))
    return found


def sketch_source(
    source: Source,
    spec: Spec,
    drop_missing: bool = False,
    progress: Progress | None = None,
    looked: FirstLook | None = None,
) -> Sketch:
    """Read every part once, in record batches, and return the checked sketch.

    Memory is one sketch a thread plus a few batches; the counts do not depend on the number of threads. `looked` is the
    look that fixed the spec, if there was one: both must have seen as many rows.
    """
    known = looked.look.n if looked is not None and looked.covariates else None
    task = Task(kind="count", spec=spec, drop_missing=drop_missing, rows=known)
    whole: Sketch = _reduced(source, task, progress)
    whole.faults.check(spec, drop_missing)
    expected = source.rows if looked is None else looked.rows_read
    if expected is not None and expected != whole.rows_read:
        raise BadInput(CHANGED.format(expected, whole.rows_read))
    whole.checked()
    if (
        task.rows is not None
        and spec.sample
        and len(whole.parts["sample"].arrays()["lines"]) < min(spec.sample, whole.n)
    ):
        return _reduced(source, replace(task, rows=None), None).checked()  # type: ignore[no-any-return]
    return whole


def _reduced(source: Source, task: Task, progress: Progress | None) -> Any:
    if source.cluster is None:
        return _on_threads(source, task, progress)
    from calibrant.data.engines.work import joined

    messages, count = source.cluster.run(task)
    whole, parts = joined(task, messages)
    if count not in (None, len(parts)):
        raise EngineFailed(f"{len(parts)} of {count} parts came back: nothing was counted, so run it again")
    if progress is not None:
        progress(whole.rows_read)
    return whole


def _on_threads(source: Source, task: Task, progress: Progress | None) -> Any:
    many = task.kind == "count" and task.spec.group_count > MANY_GROUPS
    threads = 1 if many else max(min(len(source.parts), os.cpu_count() or 1, 8), 1)
    queue, lock = list(reversed(source.parts)), Lock()

    def next_part() -> Part | None:
        with lock:
            return queue.pop() if queue else None

    def work(_: int) -> Any:
        summary = task.start()
        while (part := next_part()) is not None:
            _read_part(summary, part, task, progress)
        return summary

    with one_thread(), ThreadPoolExecutor(threads) as pool:  # the parts are what runs side by side
        summaries = list(pool.map(work, range(threads)))
    whole = summaries[0]
    for other in summaries[1:]:
        whole.merge(other)
    return whole


def _read_part(summary: Any, part: Part, task: Task, progress: Progress | None) -> None:
    row = part.first_row
    columns = task.columns
    for batch in part.read(columns, [c for c in columns if c == task.spec.score]):
        summary.update(batch, part=part.name, first_row=row)
        row += batch.num_rows
        if progress is not None:
            progress(batch.num_rows)
