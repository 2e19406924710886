"""What runs on another machine: sum up one part of the rows, or join what parts gave. Refusals come back as data.

A message is the length of a JSON header, the header, and a summary's bytes. The header names the parts it covers, so
that a part that a cluster ran twice cannot count twice.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from calibrant.data.fragments import read_fragment
from calibrant.data.task import Task, dumped, loaded
from calibrant.errors import BadInput, EngineFailed, NotComputable

Numbered = tuple[str, int, Any]  # part, number of the first row, record batch
ROWS = 1 << 17  # smaller batches are joined until they have so many rows
TURN = Lock()
REFUSALS: dict[str, type[Exception]] = {"BadInput": BadInput, "NotComputable": NotComputable}


def message(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Return header and body as bytes."""
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + body


def parsed(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and body of a message."""
    size = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def summarise(raw: bytes, part: int, batches: Iterable[Numbered]) -> bytes:
    """Do a task on one part of the rows; a refusal is an answer, so that no engine tries it again."""
    make_room()
    task = Task.from_bytes(raw)
    try:
        with _one_thread():
            summary = task.start()
            for name, first_row, batch in batches:
                summary.update(batch, part=name, first_row=first_row)
            faults, state = dumped(summary)
    except (BadInput, NotComputable) as e:
        return message({"refused": type(e).__name__, "why": str(e), "parts": [part]})
    return message({"parts": [part], "faults": faults}, state)


def count_frame(raw: bytes, part: int, batches: Iterable[Any]) -> bytes:
    """Do a task on the record batches of one partition of a frame."""
    return summarise(raw, part, from_frame(batches, part))


def count_pandas(raw: bytes, part: int, frame: Any) -> bytes:
    """Do a task on one pandas partition."""
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame[list(Task.from_bytes(raw).columns)], preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
        why = f"a column mixes types ({str(e).splitlines()[0]}): make it text or numbers"
        return message({"refused": "BadInput", "why": why, "parts": [part]})
    return summarise(raw, part, from_frame(table.to_batches(), part))


def count_fragments(raw: bytes, part: int, share: Any) -> bytes:
    """Do a task on row groups of Parquet files, read here."""
    filesystem, pieces = share
    columns = Task.from_bytes(raw).columns
    return summarise(raw, part, (row for piece in pieces for row in read_fragment(filesystem, piece, columns)))


def join(raw: bytes, messages: Iterable[bytes]) -> bytes:
    """Join the messages of disjoint parts; the refusal of the first part wins."""
    make_room()
    task = Task.from_bytes(raw)
    whole, parts = joined(task, messages, refuse=False)
    if isinstance(whole, Exception):
        return message({"refused": type(whole).__name__, "why": str(whole), "parts": parts})
    faults, state = dumped(whole)
    return message({"parts": parts, "faults": faults}, state)


def joined(task: Task, messages: Iterable[bytes], refuse: bool = True) -> tuple[Any, list[int]]:
    """Return the summary of all parts and which they are; raise (or with not `refuse` return) a refusal."""
    whole, seen, refusals = task.start(), set[int](), list[tuple[int, Exception]]()
    refused = set[int]()
    for raw in messages:
        header, body = parsed(raw)
        parts = set(header["parts"])
        if "refused" in header:  # a worker of another version may not know which parts it was to join
            refused |= parts
            refusals.append((min(parts), REFUSALS.get(header["refused"], EngineFailed)(header["why"])))
            continue
        if twice := seen & parts:
            raise EngineFailed(f"part {min(twice)} came back twice: nothing was counted, so run it again")
        seen |= parts
        if not refusals:
            try:
                whole.merge(loaded(task, header["faults"], body))
            except BadInput as e:
                refusals.append((min(parts), e))
    if not refusals:
        return whole, sorted(seen)
    error = min(refusals, key=lambda r: r[0])[1]
    if refuse:
        raise error
    return error, sorted(seen | refused)


def from_frame(batches: Iterable[Any], part: int) -> Iterator[Numbered]:
    """Join small batches; their rows are numbered within the part, for messages only."""
    held, rows, first = list[Any](), 0, 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= ROWS:
            yield from _together(held, part, first)
            held, rows, first = [], 0, first + rows
    if held:
        yield from _together(held, part, first)


def _together(held: list[Any], part: int, first: int) -> Iterator[Numbered]:
    """Yield batches as one, or as more where texts are too long for one array."""
    import pyarrow as pa

    whole = held if len(held) == 1 else pa.Table.from_batches(held).combine_chunks().to_batches()
    for batch in whole:
        yield f"partition {part}", first, batch
        first += batch.num_rows


def make_room() -> None:
    """Let compiled functions be stored somewhere where neither the package nor the home directory can be written."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~")) / ".cache")
    places = (Path(__file__).parent, home, home.parent)
    if "NUMBA_CACHE_DIR" not in os.environ and not any(os.access(p, os.W_OK) for p in places):
        os.environ["NUMBA_CACHE_DIR"] = _own_directory()


def _own_directory() -> str:
    """Return a temporary directory in which nobody else can write: what is stored there is code."""
    me = os.getuid() if hasattr(os, "getuid") else 0
    where = Path(tempfile.gettempdir()) / f"calibrant-compiled-{me}"
    try:
        where.mkdir(mode=0o700, exist_ok=True)
        found = where.lstat()
    except OSError:
        return tempfile.mkdtemp(prefix="calibrant-compiled-")
    mine = stat.S_ISDIR(found.st_mode) and (os.name == "nt" or (found.st_uid == me and not found.st_mode & 0o022))
    return str(where) if mine else tempfile.mkdtemp(prefix="calibrant-compiled-")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Linear algebra on one thread, set and unset by the first of the tasks that overlap where workers are threads.

    Were each to restore what it found, the last would restore what the first had set. The sums are exact either way.
    """
    if not TURN.acquire(blocking=False):
        yield
        return
    try:
        from calibrant.kernels.threads import one_thread

        with one_thread():
            yield
    finally:
        TURN.release()
