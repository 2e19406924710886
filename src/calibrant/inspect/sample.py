"""The rows that a look reads: all of them while they are few, else as many from evenly spread places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from calibrant.data.sources.source import Part, Source
from calibrant.errors import BadInput

CELLS = 6_000_000  # values that a look reads: about a second
LEAST, MOST = 5_000, 500_000  # rows, however wide or narrow the data are
BYTES = 256 << 20  # of long texts; where they are reached, fewer rows are read
AT_ONCE = 32  # columns
FOOTERS = 64  # files whose footers are read again
PLACES = 16  # parts, of many, that rows are taken from

Run = tuple[str, int, int]  # part, number of the first row within it, rows


@dataclass(frozen=True)
class Sampled:
    """Rows that were read."""

    table: pa.Table
    rows: int | None  # of the source in all; None if only reading on would tell
    runs: tuple[Run, ...] = ()  # where they come from
    mixed: tuple[str, ...] = ()  # columns that the files store in types that do not go together; they are held as text
    # Of the columns of Parquet files that were not read to the end: nulls among all rows, as the files say.
    nulls: Mapping[str, int] = field(default_factory=dict)


def sampled(source: Source, score: str = "", most: int | None = None) -> Sampled:
    """Read rows of a source; `score` is read as real numbers where types are guessed."""
    columns = [c for c in source.columns if source.columns.count(c) == 1]
    most = most or max(LEAST, min(MOST, CELLS // max(len(columns), 1)))
    parts = source.parts
    if source.rows is None or source.rows > most:  # (1) not more parts than places, evenly spread
        step = max(len(parts) / PLACES, 1.0)
        parts = tuple(parts[int(i * step)] for i in range(min(len(parts), PLACES)))
    # (2) columns of Parquet are read a few at a time, for its batches are long
    few = len(columns) if source.fragments is None else AT_ONCE
    tables, mixed, runs = list[pa.Table](), list[str](), list[Run]()
    complete = len(parts) == len(source.parts)
    for first in range(0, max(len(columns), 1), max(few, 1)):
        some = columns[first : first + few]
        runs, batches, ended = _read(parts, some, [c for c in some if c == score], most, few == len(columns))
        table, clashing = _joined(batches, some)
        tables.append(table)
        mixed += clashing
        complete &= ended
    whole = pa.table({name: t.column(name) for t in tables for name in t.column_names})
    counted = complete and source.rows is None and source.numbered  # rows without a number are the first of more
    known = whole.num_rows if counted else source.rows
    nulls = {} if known == whole.num_rows else nulls_of(source)
    return Sampled(whole, known, tuple(runs), tuple(mixed), nulls)


def nulls_of(source: Source) -> dict[str, int]:
    """The nulls of each column among all rows, from what Parquet files say of themselves; few files only."""
    from pyarrow.parquet import ParquetFile

    if source.fragments is None:
        return {}
    groups: dict[str, list[int]] = {}
    for path, _, _, group, *_ in source.fragments.pieces:
        groups.setdefault(path, []).append(group)
    result: Counter[str] = Counter()
    unknown: set[str] = set()
    for path in groups if len(groups) <= FOOTERS else ():
        with ParquetFile(path, filesystem=source.fragments.filesystem) as file:
            chunks = [
                file.metadata.row_group(g).column(i) for g in groups[path] for i in range(file.metadata.num_columns)
            ]
        for chunk in chunks:
            counted = chunk.is_stats_set and chunk.statistics.has_null_count
            result[chunk.path_in_schema] += chunk.statistics.null_count if counted else 0
            unknown |= set() if counted else {chunk.path_in_schema}
    return {name: n for name, n in result.items() if name not in unknown}


def _read(
    parts: Sequence[Part], columns: Sequence[str], real: Sequence[str], most: int, at_once: bool
) -> tuple[list[Run], list[pa.RecordBatch], bool]:
    """Return runs and batches of parts, each of which gives its share of what is still wanted, and if nothing is left.

    Long texts end it sooner, if all columns are read `at_once`: others could not be put next to fewer rows.
    """
    runs, batches = list[Run](), list[pa.RecordBatch]()
    complete, kept, read = True, 0, 0
    for i, part in enumerate(parts):
        before, share = read, -(-(most - read) // (len(parts) - i))
        for batch in part.read(columns, real):
            left = before + share - read
            whole = batch.num_rows <= left and not (at_once and kept > BYTES)
            batches.append(batch if whole else batch.slice(0, left))
            read, kept = read + batches[-1].num_rows, kept + batch.nbytes
            if not whole:
                complete = False
                break
        runs.append((part.name, part.first_row, read - before))
    return runs, batches, complete


def _joined(batches: Sequence[pa.RecordBatch], columns: Sequence[str]) -> tuple[pa.Table, tuple[str, ...]]:
    """Return batches as one table; a column whose types do not go together becomes text."""
    if not batches:
        return pa.table({c: pa.nulls(0) for c in columns}), ()
    out, mixed = {}, []
    for i, name in enumerate(batches[0].schema.names):
        chunks = [b.column(i) for b in batches]
        try:
            tables = [pa.table({"": c}) for c in chunks]
            one = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries().column(0)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            mixed.append(name)
            one = pa.chunked_array([_as_text(c, name) for c in chunks])
        out[name] = one
    return pa.table(out), tuple(mixed)


def _as_text(column: pa.Array, name: str) -> pa.Array:
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadInput(
            f"column {name!r} is stored as {column.type} in one file and as something else in another: store it one way"
        ) from None
