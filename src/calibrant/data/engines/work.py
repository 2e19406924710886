"""What travels to another machine and runs there: tasks, fragments, summaries."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol, Self

import calibrant
from calibrant.data.predictions import Faults
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_file import sketch_bytes
from calibrant.data.sources import read_fragment
from calibrant.data.spec import Spec
from calibrant.data.survey import FirstLook
from calibrant.errors import BadInput, EngineFailed, NotComputable

# ---- Row groups of Parquet files as plain data, so that another machine can read them: path, name, first row, ----


# ---- What every part of a source is asked to do, and the two summaries that come of it; both travel as bytes ----

QUICK = 1  # compression of what travels and is unpacked at once
SPARE = 12.0  # standard deviations by which more rows than a sample holds are kept in each part


class Summary(Protocol):
    """Something that rows are added to and that adds up."""

    rows_read: int

    def update(self, batch: Any, *, part: str = "", first_row: int = 0) -> None:
        """Add the rows of an Arrow record batch."""

    def merge(self, other: Self) -> Self:
        """Add the rows of another part."""

    def to_bytes(self) -> bytes:
        """Return the state."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One pass over the rows.

    Parameters
    ----------
    kind : {"look", "count"}
        Fix a spec, or fill a sketch.
    spec : Spec
    by, covariates : tuple of str
        Of a look.
    drop_missing : bool
    rows : int or None
        Rows in all, if known: what cannot be among the smallest hashes then need not travel.
    """

    kind: Literal["look", "count"]
    spec: Spec
    by: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    drop_missing: bool = False
    rows: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        return self.spec.columns if self.kind == "count" else FirstLook(self.spec, self.by, self.covariates).columns

    def start(self) -> Any:
        """Return an empty summary."""
        if self.kind == "look":
            return FirstLook(self.spec, self.by, self.covariates)
        sketch = Sketch(self.spec, self.drop_missing)
        if self.rows is not None and "sample" in sketch.parts:
            size = self.spec.sample
            sketch.parts["sample"].narrow((size + SPARE * size**0.5 + SPARE**2) / max(self.rows, 1))
        return sketch

    def to_bytes(self) -> bytes:
        """Return the task as bytes."""
        return zlib.compress(json.dumps(asdict(self)).encode())

    @classmethod
    def from_bytes(cls, raw: bytes) -> Task:
        """Rebuild what `to_bytes` wrote."""
        d = json.loads(zlib.decompress(raw))
        more = {"spec": Spec.from_dict(d["spec"]), "by": tuple(d["by"]), "covariates": tuple(d["covariates"])}
        return cls(**(d | more))


def dumped(summary: Any) -> tuple[dict[str, Any], bytes]:
    """Return a summary's faults and state. Faulty rows that may not be left out are told; their counts need not travel."""
    if isinstance(summary, FirstLook):
        return {}, summary.to_bytes()
    faults = asdict(summary.faults)
    try:
        summary.faults.check(summary.spec, summary.drop_missing)
    except BadInput:
        summary = Sketch(summary.spec, summary.drop_missing)
    return faults, sketch_bytes(summary, QUICK)


def loaded(task: Task, faults: dict[str, Any], state: bytes) -> Any:
    """Rebuild what `dumped` returned."""
    if task.kind == "look":
        return task.start().load(state)
    sketch = Sketch.from_bytes(state)
    first = [None if f is None else (str(f[0]), int(f[1])) for f in faults["first"]]
    sketch.faults = Faults(**(faults | {"first": first}))
    return sketch


# ---- Functions that a cluster carries to machines where calibrant may be missing, or another version ----
# They are built inside a function, so that every engine's pickling sends their code and not their name; they import
# calibrant only when they run, and answer with a refusal if they cannot.

WORK = "calibrant.data.engines.work"


def caller(engine: str) -> Callable[..., Any]:
    """Return a function that runs one of `data.work` by name where it is unpickled.

    Called with the function's name, the task and the part, then what the function takes; returns its message.
    """
    version, work = calibrant.__version__, WORK

    def call(name: str, task: bytes, part: int, *given: Any) -> bytes:
        import importlib
        import json
        import platform

        where = f"{platform.node()} (Python {platform.python_version()})"
        try:
            there = getattr(importlib.import_module("calibrant"), "__version__", "another version")
            if there == version:
                arguments = (task, *given) if name == "join" else (task, part, *given)
                run: Callable[..., bytes] = getattr(importlib.import_module(work), name)
                return run(*arguments)
            why = f"a {engine} worker, {where}, has calibrant {there} and this session has {version}: install the same version on both"
        except ImportError as e:
            why = f"a {engine} worker, {where}, cannot import calibrant {version} ({e}): install it on every worker"
        head = json.dumps({"refused": "BadInput", "why": why, "parts": [part]}).encode()
        return len(head).to_bytes(8, "little") + head

    return call


# ---- What runs on another machine: sum up one part of the rows, or join what parts gave. Refusals come back ----
# A message is the length of a JSON header, the header, and a summary's bytes. The header names the parts it covers, so
# that a part that a cluster ran twice cannot count twice.

Numbered = tuple[str, int, Any]  # part, number of the first row, record batch
ROWS_SENT = 1 << 17  # smaller batches are joined until they have so many rows
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
        if rows >= ROWS_SENT:
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
        from calibrant.kernels.runtime import one_thread

        with one_thread():
            yield
    finally:
        TURN.release()
