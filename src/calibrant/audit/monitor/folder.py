"""A monitor in a folder: one writer at a time, files that change whole or not at all, and labels that come late.

``monitor.json`` is the monitor. Of predictions that wait for their labels ``waiting/DAY.parquet`` holds the rows, and
``labels/DAY/`` the labels of that day's rows, a file for each delivery, as 0 and 1. A day enters `monitor.json` in one
step, then its names are kept (`names`), and the files it was made of are removed, so that whoever is ended in between
finds either a day that still waits, or files that are no longer needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from calibrant.arguments import Caller, shown
from calibrant.audit.monitor import names as kept_names
from calibrant.audit.monitor.drift import DriftNow
from calibrant.audit.monitor.locking import locked
from calibrant.audit.monitor.monitor import SAVED, Monitor, MonitorState
from calibrant.audit.monitor.state import day_text
from calibrant.data.columns import label_values, require
from calibrant.data.predictions import Predictions
from calibrant.data.sources.files import open_source
from calibrant.data.targets import remove, temporary, written
from calibrant.errors import BadInput

MONITOR, WAITING, LABELS = "monitor.json", "waiting", "labels"
NAME, LABEL = "calibrant: name", "calibrant: label"  # columns of what is kept, next to columns of the data
NONE = pa.schema({NAME: pa.string(), LABEL: pa.int8()})
COMMAND = Caller(
    command=True,
    lacks=("missing",),
    calls=(("positive", "positive (of watch start)"), ("percent", "percent (of watch start)")),
)
BETWEEN = "\x1f"  # the parts of a name of several columns


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """What came of a delivery of labels."""

    matched: int = 0  # labels of rows that wait
    again: int = 0  # of these, how many had come before
    unmatched: int = 0  # labels of no row that still waits: their day has closed, or was never entered
    absent: int = 0  # rows of the files without a label yet
    entered: tuple[str, ...]  # days that were complete, and have entered
    alarmed: bool  # one of these days brought an alarm
    state: MonitorState | None  # None before the first day has entered


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
    try:
        return Monitor.from_json(path.read_text(encoding="utf-8"), COMMAND)
    except (BadInput, UnicodeDecodeError) as e:
        why = str(e).removesuffix(f": {SAVED}")
        raise BadInput(f"{str(path)!r} cannot be read ({why}): put a copy back, or start another monitor") from None


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


def predictions(folder: Path, files: object, at: object) -> tuple[int, DriftNow | None]:
    """Keep the predictions of a day until their labels have come; return how many they are, and the drift."""
    with locked(folder):
        monitor = _waits(opened(folder))
        day, s, dated = monitor.day_number(at), monitor.settings, monitor.is_date(at)
        waiting = _days(folder)
        latest = max([*waiting, *(() if monitor.last is None else (monitor.last,))], default=-1)
        # Of a day at which a process ended the drift is known, and no rows: it can be entered again, and none before.
        counted = -1 if monitor.last_drift is None else monitor.last_drift
        if day <= latest or day < counted:
            latest = max(latest, counted)
            raise BadInput(
                f"predictions of {at} come after those of {day_text(latest, dated=dated)}: days go in their order, and "
                "what is entered stays, since labels may have come"
            )
        columns = dict.fromkeys(filter(None, (*s.key, s.score, *s.attributes, s.cluster)))
        table = _table(files, tuple(columns))
        names = _names(table, s.key)
        if len(pc.unique(names)) < len(names):
            twice = next(v for v, n in zip(*pc.value_counts(names).flatten(), strict=True) if n.as_py() > 1)
            raise BadInput(f"--key {','.join(s.key)}: {shown(_plain(twice))} names several rows: name more columns")
        for other in waiting:
            there = pc.is_in(names, _names_of(folder, other))
            if pc.any(there).as_py():
                again = _plain(names.filter(there)[0])
                raise BadInput(
                    f"{shown(again)} waits for its label since {day_text(other, dated=dated)}: a row's name must be "
                    "its own, such as a number of the prediction"
                )
        if (old := kept_names.entered(folder, names)).any():
            raise BadInput(
                f"{shown(_plain(names.filter(pa.array(old))[0]))} has named a row of an earlier day, whose outcome "
                "would become this row's label: start with a --key that has the day, too, or a number of the prediction"
            )
        # Read as they will be when the day is complete, so that what cannot be used is refused today; and what is
        # watched is fixed by all rows of the first day, not by those that will have a label.
        no_outcomes = np.zeros(table.num_rows, dtype=np.int8)
        data = _joined(monitor, table, no_outcomes)
        fixed = monitor.fix(data)
        # Drift enters before the day waits: whoever is ended in between enters the day again, in its own place.
        if monitor.predicted(data, at) is not None or fixed:
            _save(folder, monitor)
        (folder / WAITING).mkdir(exist_ok=True)
        with temporary(_file(folder, day)) as part:
            pq.write_table(table.append_column(NAME, names), part)
        return int(table.num_rows), monitor.drift


def labels(folder: Path, files: object | None, at: object) -> tuple[Monitor, Arrived]:
    """Keep labels that came on a day, and enter the days that are complete by then."""
    with locked(folder):
        monitor = _waits(opened(folder))
        day, s = monitor.day_number(at), monitor.settings
        new = None if files is None else _delivered(monitor, files)
        closing = [d for d in _days(folder) if _closes(monitor, d, day)]
        own = {} if new is None else _by_day(folder, new, [d for d in _days(folder) if d not in closing])
        matched = sum(o.rows for o in own.values())
        if new is not None and new.table.num_rows and not matched:
            _check_names(folder, new.table.column(NAME), closing, s.key)
        # What cannot be used has been refused: from here on days enter, and labels are kept.
        entered, alarmed = _closed(folder, monitor, closing, at)
        for other, labels_ in own.items():
            _keep(folder, other, labels_.fresh, day)
        state = None if monitor.last is None else monitor.state
        return monitor, Arrived(
            matched=matched,
            again=sum(o.rows - o.fresh.num_rows for o in own.values()),
            unmatched=0 if new is None else new.table.num_rows - matched,
            absent=0 if new is None else new.absent,
            entered=entered,
            alarmed=alarmed,
            state=state,
        )


def waiting(folder: Path) -> tuple[tuple[int, int, int], ...]:
    """The days that wait: each with its number, its rows, and how many of them have a label."""
    out = []
    for day in _days(folder):
        with suppress(OSError):  # another process has entered it meanwhile, and its file is gone
            rows = pq.read_metadata(_file(folder, day)).num_rows
            out.append((day, rows, sum(pq.read_metadata(p).num_rows for p in _deliveries(folder, day))))
    return tuple(out)


def _waits(monitor: Monitor) -> Monitor:
    if monitor.settings.labels_within is None:
        raise BadInput("this monitor takes days that are complete: use watch update, or start it with --labels-within")
    return monitor


def _file(folder: Path, day: int) -> Path:
    return folder / WAITING / f"{day}.parquet"


def _days(folder: Path) -> list[int]:
    """The days that wait, oldest first."""
    return sorted(int(p.stem) for p in (folder / WAITING).glob("*.parquet") if p.stem.isdigit())


def _deliveries(folder: Path, day: int) -> list[Path]:
    """The files of labels of a day's rows, by the day on which they came."""
    return sorted((folder / LABELS / str(day)).glob("*.parquet"), key=_arrival)


def _arrival(path: Path) -> tuple[int, str]:
    came, _, rest = path.stem.partition("-")
    return int(came), rest


def _names_of(folder: Path, day: int) -> pa.ChunkedArray:
    return pq.read_table(_file(folder, day), columns=[NAME]).column(NAME)


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
    parts = [_as_text(table.column(k), k) for k in key]
    for k, part in zip(key, parts, strict=True):
        if part.null_count:
            raise BadInput(f"--key {k}: {part.null_count:,} rows have no value, and cannot be found again")
    names = pc.binary_join_element_wise(*parts, BETWEEN) if len(parts) > 1 else parts[0]
    return names if isinstance(names, pa.ChunkedArray) else pa.chunked_array([names])


def _as_text(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Values of a key as text; whole numbers that are stored as real ones as whole numbers."""
    try:
        if pa.types.is_floating(column.type):
            column = column.cast(pa.int64())
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadInput(f"--key {name}: {column.type} names no row: use text, dates or whole numbers") from None


def _plain(name: pa.Scalar) -> str:
    return str(name.as_py()).replace(BETWEEN, ", ")


@dataclass(frozen=True)
class Delivered:
    """Labels that came: names of rows with 0 or 1, and how many rows of the files had no label yet."""

    table: pa.Table
    absent: int


def _delivered(monitor: Monitor, files: object) -> Delivered:
    """Read labels, and refuse those that are none."""
    s = monitor.settings
    table = _table(files, (*s.key, s.label))
    names = _names(table, s.key)
    if len(pc.unique(names)) < len(names):
        raise BadInput(f"--key {','.join(s.key)}: labels name a row twice: leave one of them out")
    values = label_values(table.column(s.label), s.label, s.positive, caller=COMMAND)
    there = ~np.isnan(values)
    wrong = np.flatnonzero(there & (values != 0) & (values != 1))
    if len(wrong):
        raise BadInput(
            f"label column {s.label!r} holds {values[wrong[0]]:g}, first in row {wrong[0] + 1:,}: labels are 0 "
            "and 1, or any values if the monitor is started with --positive"
        )
    known = np.where(there, values, 0.0).astype(np.int8)
    return Delivered(pa.table({NAME: names, LABEL: known}).filter(pa.array(there)), int(np.sum(~there)))


class OfDay(NamedTuple):
    """The labels of a delivery that are of one day's rows: how many, and those that had not come before."""

    rows: int
    fresh: pa.Table


def _by_day(folder: Path, new: Delivered, days: Sequence[int]) -> dict[int, OfDay]:
    """The labels of rows that wait, by the day that they wait for."""
    out, names = {}, new.table.column(NAME)
    for day in days:
        own = new.table.filter(pc.is_in(names, _names_of(folder, day)))
        known = _known(folder, day, None)
        at = pc.index_in(own.column(NAME), known.column(NAME))
        before = known.column(LABEL).take(at)
        if pc.any(differs := pc.fill_null(pc.not_equal(own.column(LABEL), before), False)).as_py():
            one = shown(_plain(own.column(NAME).filter(differs)[0]))
            raise BadInput(f"{one} has another label already, and labels that came stay: leave it out of the file")
        out[day] = OfDay(own.num_rows, own.filter(pc.is_null(at)))
    return out


def _check_names(folder: Path, names: pa.ChunkedArray, closing: Sequence[int], key: Sequence[str]) -> None:
    """Refuse labels of which none is of a row that was ever predicted."""
    if any(pc.any(pc.is_in(names, _names_of(folder, day))).as_py() for day in closing):
        return
    if not kept_names.entered(folder, names).any():
        raise BadInput(
            f"none of {len(names):,} labels is of a row that waits, or that has entered: check --key {','.join(key)} "
            "and the days"
        )


def _keep(folder: Path, day: int, fresh: pa.Table, came: int) -> None:
    """Keep the labels of a day's rows that came on a day."""
    if fresh.num_rows:
        content = hashlib.sha256("\n".join(map(str, fresh.to_pydict().items())).encode()).hexdigest()[:16]
        target = folder / LABELS / str(day) / f"{came}-{content}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary(target) as part:
            pq.write_table(fresh, part)


def _known(folder: Path, day: int, until: int | None) -> pa.Table:
    """The labels of a day's rows that came until a day, or at all."""
    there = [pq.read_table(p) for p in _deliveries(folder, day) if until is None or _arrival(p)[0] <= until]
    return pa.concat_tables(there) if there else NONE.empty_table()


def _joined(monitor: Monitor, rows: pa.Table, outcomes: NDArray[np.int8]) -> Predictions:
    """Rows with their outcomes."""
    return monitor.rows_of(rows.append_column(monitor.settings.label, pa.array(outcomes)), coded=True)


def _closes(monitor: Monitor, day: int, today: int) -> bool:
    """Whether a day that waits is complete before `today`, or had entered when a process ended."""
    return (monitor.last is not None and day <= monitor.last) or day + (monitor.settings.labels_within or 0) < today


def _closed(folder: Path, monitor: Monitor, days: Sequence[int], at: object) -> tuple[tuple[str, ...], bool]:
    """Enter days that are complete, oldest first; return them, and whether one brought an alarm."""
    entered, alarmed, within = [], False, monitor.settings.labels_within or 0
    for day in days:
        if monitor.last is None or day > monitor.last:
            rows = pq.read_table(_file(folder, day))
            known = _known(folder, day, day + within)
            names = rows.column(NAME)
            at_ = pc.index_in(names, known.column(NAME))
            there = pc.is_valid(at_)
            outcomes = known.column(LABEL).take(at_.drop_null()).to_numpy()
            data = _joined(monitor, rows.filter(there).drop_columns([NAME]), outcomes) if len(outcomes) else None
            text = day_text(day, dated=Monitor.is_date(at))
            left_out = rows.num_rows - len(outcomes)
            state = monitor.entered(data, text if Monitor.is_date(at) else day, unlabelled=left_out)
            _save(folder, monitor)
            entered.append(text)
            alarmed |= state.alarmed
        else:  # it had entered when a process ended
            names = _names_of(folder, day)
        kept_names.keep(folder, day, names)
        remove(folder / LABELS / str(day))  # the labels first: a day whose file is there is found again
        remove(_file(folder, day))
    return tuple(entered), alarmed
