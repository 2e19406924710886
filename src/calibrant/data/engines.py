"""How parts become one sketch: ``reduce(merge, map_(sketch, parts))``, here on local threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from calibrant.data.sketch import Sketch
from calibrant.data.sources import Part, Source
from calibrant.data.spec import Spec
from calibrant.kernels.threads import one_thread

Progress = Callable[[int], None]
MANY_GROUPS = 400  # above this one thread keeps one set of counts


def sketch_source(source: Source, spec: Spec, drop_missing: bool = False, progress: Progress | None = None) -> Sketch:
    """Read every part once, in record batches, and return the checked sketch.

    Memory is one sketch a thread plus a few batches; the counts do not depend on the number of threads.
    """
    threads = 1 if spec.group_count > MANY_GROUPS else min(len(source.parts), os.cpu_count() or 1, 8)
    queue, lock = list(reversed(source.parts)), Lock()

    def next_part() -> Part | None:
        with lock:
            return queue.pop() if queue else None

    def work(_: int) -> Sketch:
        sketch = Sketch(spec, drop_missing)
        while (part := next_part()) is not None:
            _read_part(sketch, part, spec.columns, progress)
        return sketch

    with one_thread(), ThreadPoolExecutor(max(threads, 1)) as pool:  # the parts are what runs side by side
        sketches = list(pool.map(work, range(max(threads, 1))))
    whole = sketches[0]
    for other in sketches[1:]:
        whole.merge(other)
    return whole.checked()


def _read_part(sketch: Sketch, part: Part, columns: Sequence[str], progress: Progress | None) -> None:
    row = part.first_row
    for batch in part.read(columns, (sketch.spec.score,)):
        sketch.update(batch, part=part.name, first_row=row)
        row += batch.num_rows
        if progress is not None:
            progress(batch.num_rows)
