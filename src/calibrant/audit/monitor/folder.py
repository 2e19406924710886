"""A monitor in a folder: one writer at a time, files that change whole or not at all, and labels that come late.

``monitor.json`` is the monitor. Of predictions that wait for their labels ``waiting/DAY.parquet`` holds the rows, and
``labels/`` what labels have come. A day enters `monitor.json` in one step, and the files it was made of are removed
after it, so that whoever is ended in between finds either a day that still waits, or files that are no longer needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from calibrant.arguments import shown
from calibrant.audit.monitor.monitor import Monitor, MonitorState
from calibrant.data.columns import require, score_values
from calibrant.data.sources.files import open_source
from calibrant.data.targets import remove, temporary, written
from calibrant.errors import BadInput

MONITOR, WAITING, LABELS, LOCK = "monitor.json", "waiting", "labels", "lock"
NAME, LABEL = "name", "label"  # columns of what is kept of labels
BETWEEN = "\x1f"  # the parts of a name of several columns


@dataclass(frozen=True)
class Arrived:
    """What came of a delivery of labels."""

    matched: int
    unmatched: int  # labels of no row that waits: their day has closed, or was never entered
    entered: tuple[str, ...]  # days that were complete, and have entered
    state: MonitorState | None  # None before the first day has entered


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Refuse two writers; the lock of a process that ends, however it ends, is gone with it."""
    if not folder.is_dir():
        raise BadInput(f"there is no directory {str(folder)!r}: start one with calibrant watch start")
    with (folder / LOCK).open("ab") as file:
        if not _lock(file):
            raise BadInput(f"another process is writing to {str(folder)!r}: wait until it is done")
        yield


def _lock(file: BinaryIO) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        take = partial(msvcrt.locking, file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        take = partial(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        take()
    except OSError:
        return False
    return True


def start(folder: Path, monitor: Monitor) -> None:
    """Make the folder of a new monitor."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BadInput(f"cannot make the directory {str(folder)!r}: {e.strerror}") from None
    with locked(folder):
        if (folder / MONITOR).exists():
            raise BadInput(f"{str(folder)!r} holds a monitor already: name another directory")
        _save(folder, monitor)


def opened(folder: Path) -> Monitor:
    """The monitor of a folder."""
    path = folder / MONITOR
    if not path.is_file():
        raise BadInput(f"{str(folder)!r} holds no monitor: start one with calibrant watch start")
    return Monitor.load(path)


def _save(folder: Path, monitor: Monitor) -> None:
    written(str(folder / MONITOR), monitor.to_json().encode())


def update(folder: Path, files: object, at: object, *, replace: bool = False) -> Monitor:
    """Enter a complete day."""
    with locked(folder):
        monitor = opened(folder)
        monitor.update(files, at=at, replace=replace)
        _save(folder, monitor)
        return monitor


# ---- predictions first, labels later ----


def predictions(folder: Path, files: object, at: object) -> int:
    """Keep the predictions of a day until their labels have come, and return how many they are."""
    with locked(folder):
        monitor = _waits(opened(folder))
        day, s = monitor.day_number(at), monitor.settings
        waiting = _days(folder)
        latest = max([*waiting, *(() if monitor.last is None else (monitor.last,))], default=None)
        if latest is not None and day <= latest:
            raise BadInput(
                f"predictions of {at} come after those of {_text(at, latest)}: days go in their order, and "
                "what is entered stays, since labels may have come"
            )
        columns = dict.fromkeys((*s.key, s.score, *s.attributes, *((s.cluster,) if s.cluster else ())))
        table = _table(files, tuple(columns))
        scores = score_values(table.column(s.score), s.score, s.percent)
        wrong = np.flatnonzero(~((scores >= 0.0) & (scores <= 1.0)))
        if len(wrong):
            value = table.column(s.score)[int(wrong[0])].as_py()
            raise BadInput(
                f"score column {s.score!r} holds {shown(value)}, first in row {int(wrong[0]) + 1:,}: pass "
                "probabilities from 0 to 1"
            )
        names = _names(table, s.key)
        if len(pc.unique(names)) < len(names):
            twice = next(v for v, n in zip(*pc.value_counts(names).flatten(), strict=True) if n.as_py() > 1)
            raise BadInput(f"--key {','.join(s.key)}: {shown(_plain(twice))} names several rows: name more columns")
        for other in waiting:
            there = pc.is_in(names, pq.read_table(_file(folder, other), columns=[NAME]).column(NAME))
            if pc.any(there).as_py():
                again = _plain(names.filter(there)[0])
                raise BadInput(
                    f"{shown(again)} waits for its label since {_text(at, other)}: a row's name must be its "
                    "own, such as a number of the prediction"
                )
        (folder / WAITING).mkdir(exist_ok=True)
        with temporary(_file(folder, day)) as part:
            pq.write_table(table.append_column(NAME, names), part)
        return int(table.num_rows)


def labels(folder: Path, files: object | None, at: object) -> tuple[Monitor, Arrived]:
    """Keep labels that came on a day, and enter the days that are complete by then."""
    with locked(folder):
        monitor = _waits(opened(folder))
        day, s = monitor.day_number(at), monitor.settings
        entered = _closed(folder, monitor, day, at)
        matched, unmatched = (0, 0) if files is None else _kept(folder, monitor, files, day)
        if files is not None and not matched:
            raise BadInput(
                f"none of {unmatched:,} labels is of a row that waits: check --key {','.join(s.key)} and the days"
            )
        state = None if monitor.last is None else monitor.state
        return monitor, Arrived(matched, unmatched, entered, state)


def waiting(folder: Path) -> tuple[tuple[int, int, int], ...]:
    """The days that wait: each with its number, its rows, and how many of them have a label."""
    out = []
    for day in _days(folder):
        names = pq.read_table(_file(folder, day), columns=[NAME]).column(NAME)
        there = _labels(folder, names, None)
        out.append((day, len(names), there.num_rows))
    return tuple(out)


def _waits(monitor: Monitor) -> Monitor:
    if monitor.settings.labels_within is None:
        raise BadInput("this monitor takes days that are complete: use watch update, or start it with --labels-within")
    return monitor


def _text(at: object, day: int) -> str:
    """A day as `at` is written."""
    return str(day) if isinstance(at, int) else date.fromordinal(day).isoformat()


def _file(folder: Path, day: int) -> Path:
    return folder / WAITING / f"{day}.parquet"


def _days(folder: Path) -> list[int]:
    """The days that wait, oldest first."""
    return sorted(int(p.stem) for p in (folder / WAITING).glob("*.parquet") if p.stem.isdigit())


def _table(files: object, columns: Sequence[str]) -> pa.Table:
    opened_ = open_source(files, columns)
    require(columns, opened_.columns, "needed")
    with opened_.one_pass():
        batches = [b for part in opened_.parts for b in part.read(list(columns), ())]
    table = pa.Table.from_batches(batches) if batches else None
    if table is None or not table.num_rows:
        raise BadInput(opened_.no_rows())
    return table


def _names(table: pa.Table, key: Sequence[str]) -> pa.ChunkedArray:
    """The name of each row: its columns of the key as text."""
    parts = [table.column(k).cast(pa.string()) for k in key]
    for k, part in zip(key, parts, strict=True):
        if part.null_count:
            raise BadInput(f"--key {k}: {part.null_count:,} rows have no value, and cannot be found again")
    names = pc.binary_join_element_wise(*parts, BETWEEN) if len(parts) > 1 else parts[0]
    return names if isinstance(names, pa.ChunkedArray) else pa.chunked_array([names])


def _plain(name: pa.Scalar) -> str:
    return str(name.as_py()).replace(BETWEEN, ", ")


def _kept(folder: Path, monitor: Monitor, files: object, day: int) -> tuple[int, int]:
    """Keep labels of rows that wait; those of others are counted."""
    s = monitor.settings
    table = _table(files, (*s.key, s.label))
    names = _names(table, s.key)
    if len(pc.unique(names)) < len(names):
        raise BadInput(f"--key {','.join(s.key)}: labels name a row twice: leave one of them out")
    mask = np.zeros(len(names), dtype=bool)
    for other in _days(folder):
        there = pq.read_table(_file(folder, other), columns=[NAME]).column(NAME)
        mask |= pc.is_in(names, there).to_numpy()
    kept = pa.table({NAME: names, LABEL: table.column(s.label)}).filter(pa.array(mask))
    content = hashlib.sha256("\n".join(map(str, kept.to_pydict().items())).encode()).hexdigest()[:16]
    target = folder / LABELS / f"{day}-{content}.parquet"
    if kept.num_rows and not target.exists():  # the same delivery again, after a crash, is the same file
        known = _labels(folder, kept.column(NAME), None)
        if known.num_rows:
            raise BadInput(f"{shown(_plain(known.column(NAME)[0]))} has a label already: leave it out of the file")
        target.parent.mkdir(exist_ok=True)
        with temporary(target) as part:
            pq.write_table(kept, part)
    return kept.num_rows, table.num_rows - kept.num_rows


def _labels(folder: Path, names: pa.ChunkedArray, until: int | None) -> pa.Table:
    """The labels of some rows that came until a day, or at all."""
    out = []
    for path in sorted((folder / LABELS).glob("*.parquet")):
        if until is None or int(path.stem.partition("-")[0]) <= until:
            table = pq.read_table(path)
            out.append(table.filter(pc.is_in(table.column(NAME), names)))
    if not out:
        return pa.table({NAME: pa.array([], pa.string()), LABEL: pa.array([], pa.int64())})
    return pa.concat_tables(out, promote_options="permissive")


def _closed(folder: Path, monitor: Monitor, today: int, at: object) -> tuple[str, ...]:
    """Enter every day that is complete before `today`, oldest first, and remove what is needed no longer."""
    s, entered = monitor.settings, []
    within = s.labels_within or 0
    for day in _days(folder):
        if monitor.last is not None and day <= monitor.last:  # it had entered when a process ended
            remove(_file(folder, day))
        elif day + within < today:
            rows = pq.read_table(_file(folder, day))
            known = _labels(folder, rows.column(NAME), day + within)
            text = _text(at, day)
            if not known.num_rows:
                raise BadInput(f"no label of {text} came within {within:,} days: check --key and the labels")
            joined = rows.join(known, NAME, join_type="inner").rename_columns(
                [s.label if c == LABEL else c for c in (*rows.column_names, LABEL)]
            )
            data = monitor.rows_of(joined.drop_columns([NAME]))
            monitor.entered(data, day if isinstance(at, int) else text, unlabelled=rows.num_rows - joined.num_rows)
            _save(folder, monitor)
            remove(_file(folder, day))
            entered.append(text)
    oldest = min(_days(folder), default=today)
    for path in (folder / LABELS).glob("*.parquet"):  # labels come no earlier than their day
        if int(path.stem.partition("-")[0]) < oldest:
            remove(path)
    return tuple(entered)
