"""The rows that a look reads, and what each column of them, or of a sketch, holds, seen by itself, the label too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.arguments import lacking
from calibrant.data.columns import as_text, is_number, score_values
from calibrant.data.layouts import decoded, is_text, plain, readings
from calibrant.data.profile import ColumnProfile
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.inferred_types import DAY_OR_MONTH, REASONS, STORED, TEXT, UNDATED, shown
from calibrant.data.sources.source import Part, Source
from calibrant.data.specs.coding import Coding
from calibrant.data.specs.column_names import CLUSTERS, FEWEST, about_cluster, names_cluster
from calibrant.data.specs.spec import Variable
from calibrant.errors import BadInput
from calibrant.inspect.looked import KINDS, NO_NUMBER, UNLABELLED, Column, Look, Role
from calibrant.inspect.roles import GROUPS, KEYS, called

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


def followed_less(table: pa.Table, ends: Sequence[str]) -> tuple[str, ...]:
    """How many rows without the event were followed for less than the latest event took, and of how many.

    Of a column of 0 and 1, or of false and true; nothing of another.
    """
    if len(ends) != 2:
        return ()
    time, event = (table.column(name).combine_chunks() for name in ends)
    if not (pa.types.is_boolean(event.type) or is_number(event.type)) or not is_number(time.type):
        return ()
    t, e = (column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in (time, event))
    if set(np.unique(e[~np.isnan(e)])) != {0.0, 1.0}:
        return ()
    none = e == 0.0
    shorter = none & (t < np.nanmax(t[e == 1.0]))
    return str(int(shorter.sum())), str(int(none.sum()))


def sampled(source: Source, score: str = "", most: int | None = None) -> Sampled:
    """Read rows of a source; `score` is read as real numbers where types are guessed."""
    columns = [c for c, n in Counter(source.columns).items() if n == 1]
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
    for path, _, _, run, *_ in source.fragments.pieces:
        groups.setdefault(path, []).extend(range(*run))
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
    """Runs and batches of parts, each of which gives its share of what is still wanted, and whether nothing is left.

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
    """Batches as one table; a column whose types do not go together becomes text."""
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


# ---- what each column of them holds ----

SHOWN = 12  # most frequent values kept of a category, code or label
DECIMALS, NEARLY, LEAST_DECIMALS = r"^\s*[-+]?\d*[.,]\d+([eE][-+]?\d+)?\s*$", 0.9, 20  # of texts that are numbers
SHARED = 1.2  # rows a value, on average, from which on an identifier is of a cluster that several rows share
NO_COVARIATE = ("id", "constant", "unusable")


def seen(rows: Sampled, kinds: Mapping[str, str]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """What each column of some rows holds, and the refusals of those that cannot be read.

    `kinds` says of columns, where types are detected from text, why they are what they are.
    """
    result, refused = [], []
    for name in rows.table.column_names:
        column = rows.table.column(name)
        try:
            reported = _column(name, column, kinds.get(name, ""))
            in_all = rows.nulls.get(name) if reported.missing == column.null_count else None  # NaN is in no footer
            result.append(replace(reported, missing_in_all=in_all))
        except BadInput as e:
            refused.append(str(e))
            result.append(Column(name=name, kind="unusable", role="left out", why=str(e), stored=str(column.type)))
    return tuple(result), tuple(refused)


def _column(name: str, column: pa.ChunkedArray, why: str) -> Column:
    of = ColumnProfile(column, name)
    _percents(of)
    kind, t = _kind(of), column.type
    if KINDS[kind].worded and (shaped := _shaped(of, why) or _nearly_numbers(of, why)):
        kind, why = "text", shaped
    listed = KINDS[kind].listed or (kind == "number" and 0 < of.distinct <= SHOWN)
    people = names_cluster(name) and not called(name, {*GROUPS}) and of.distinct >= FEWEST
    return Column(
        name=name,
        kind=kind,
        role="left out" if of.kind in NO_COVARIATE else "",
        why=why or of.why,
        stored=str(t.value_type if pa.types.is_dictionary(t) else t),
        missing=of.missing,
        distinct=of.distinct if kind != "unusable" else None,
        low=_end(of.low, kind),
        high=_end(of.high, kind),
        frequent=_frequent(column, name) if listed and not people else (),  # no person is shown by name or number
    )


def _shaped(of: ColumnProfile, why: str) -> str:
    """Why text in the shape of dates is none, if that is what it is; `why` is what its file says of it."""
    if why or not of.examples or not is_text(of.column.type):
        return why if why.endswith((REASONS[DAY_OR_MONTH], REASONS[UNDATED])) else ""
    some = "shaped" in readings(pa.array(of.examples)) and "shaped" in readings(of.column)
    return f"{of.examples[0]!r}: {REASONS[STORED]}" if some else ""


def _nearly_numbers(of: ColumnProfile, why: str) -> str:
    """Why decimals are text, if a few values alone make them so; `why` is what their file says of it."""
    if not is_text(of.column.type) or of.distinct < LEAST_DECIMALS:
        return ""
    texts = as_text(of.column).drop_null()
    numbers = pc.match_substring_regex(texts, DECIMALS)
    if not NEARLY * len(texts) <= (pc.sum(numbers).as_py() or 0) < len(texts):
        return ""
    odd = texts.filter(pc.invert(numbers))
    of_text = f": {REASONS[TEXT]}"
    where = why.removesuffix(of_text) if why.endswith(of_text) else shown(odd[0].as_py())
    return f"{where}: {NO_NUMBER}, though {len(texts) - len(odd):,} of {len(texts):,} values are"


def _percents(of: ColumnProfile) -> None:
    """Take texts such as "12%" as the numbers that they are."""
    if of.examples and of.examples[0].rstrip().endswith("%"):
        with suppress(BadInput):
            values = 100.0 * score_values(of.column, of.name, percent=True)
            of.low, of.high = (f"{end:.15g}" for end in (np.nanmin(values), np.nanmax(values)))
            of.kind, of.why = "number", "its values are percent, with the sign"


def _kind(of: ColumnProfile) -> str:
    """The kind, clusters apart from other identifiers: several rows share one of a cluster."""
    if of.kind == "label":
        return "yes/no"
    if of.kind == "constant" and not of.distinct:
        return "empty"
    several = len(of.column) - of.missing >= SHARED * of.distinct
    if of.kind == "id":
        return "cluster" if several and of.distinct else "id"
    whole = of.kind in ("category", "code") or of.why == "its values are whole numbers"
    may = whole and several and of.distinct >= FEWEST and not about_cluster(of.name)
    named = called(of.name, KEYS & {"id"}) and called(of.name, CLUSTERS | {"id"})
    return "cluster" if may and named else of.kind


def _end(text: str, kind: str) -> float | str | None:
    """The end of numbers or dates."""
    if kind == "date":
        return text.split(" ")[0]
    if KINDS[kind].ends:
        with suppress(ValueError):
            return float(text) if math.isfinite(float(text)) else None
    return None


def _frequent(column: pa.ChunkedArray, name: str) -> tuple[tuple[str, int], ...]:
    """The most frequent values, as options name them, and their rows."""
    values = plain(column, name)
    if pa.types.is_dictionary(values.type):
        counts = np.bincount(values.indices.drop_null().to_numpy(), minlength=len(values.dictionary))
        there, texts = np.flatnonzero(counts), values.dictionary
        pairs = [(texts[int(i)].as_py(), int(counts[i])) for i in there[np.argsort(-counts[there])][: SHOWN + 1]]
    else:
        counted = pc.value_counts(decoded(values))
        order = np.argsort(-counted.field(1).to_numpy(zero_copy_only=False))[: SHOWN + 2]
        pairs = [(counted.field(0)[int(i)].as_py(), counted.field(1)[int(i)].as_py()) for i in order]
    kept = [(as_word(v), n) for v, n in pairs if v is not None and v != "" and v == v]
    return tuple(sorted(kept, key=lambda pair: (-pair[1], pair[0]))[:SHOWN])


def as_word(value: object) -> str:
    """A value as options name it: whole numbers without a point, truth values in small letters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


# ---- what a sketch holds: it has no rows any more, but what they were summed up as ----


OF_ROWS: tuple[tuple[Role, str], ...] = ("key", "id"), ("cluster", "cluster"), ("weights", "number")


def looked_at_sketch(sketch: Sketch, typed: str) -> Look:
    """What a sketch holds; `typed` is the audit of it."""
    spec = sketch.spec
    rows = sketch.group_levels.sum(axis=(1, 2, 3)) if spec.groupings else ()
    groups, first = [], 0
    for names, size in zip(spec.groupings, spec.sizes, strict=True):
        if len(names) == 1:
            groups.append(_group(spec.by_name[names[0]], [int(n) for n in rows[first : first + size]]))
        first += size
    named = {c.name for c in groups}
    columns = [
        Column(name=spec.label, kind="yes/no", role="label", distinct=2 if 0 < sketch.events < sketch.n else 1),
        Column(name=spec.score, kind="number", role="score"),
        *groups,
        *(_covariate(c) for c in spec.codings if c.name not in named),
        *(Column(name=n, kind=kind, role=role) for role, kind in OF_ROWS for n in spec.roles.get(role, ())),
        *(Column(name=n, kind=_left_kind(why), role="left out", why=why) for n, why in spec.left_out if n not in named),
    ]
    event, others = ("1", "0") if spec.positive is None else (spec.positive, "others")
    gone = {f"missing {lacking(spec.cluster, spec.weights)}": sketch.dropped, UNLABELLED: sketch.unlabelled}
    return Look(
        name=sketch.name,
        holds="sketch",
        files=tuple(sketch.files[:20]),
        rows=sketch.n,
        rows_read=sketch.n,
        columns=tuple(columns),
        label=spec.label,
        score=spec.score,
        event=event,
        label_values=((event, sketch.events), (others, sketch.n - sketch.events)),
        scale="probability",
        dropped={why: rows for why, rows in gone.items() if rows},
        warnings=("one-class",) if sketch.events in (0, sketch.n) else (),
        command=typed,
        settings={
            "seed": spec.seed,
            "blocks": spec.blocks,
            "intersections": tuple(" and ".join(names) for names in spec.groupings if len(names) > 1),
            "tests": spec.sample > 0,
            "covariates": len(spec.codings),
            "fingerprint": sketch.fingerprint,
            "missing": spec.missing,
        },
    )


def _group(of: Variable, rows: list[int]) -> Column:
    pairs = sorted(zip(of.labels, rows, strict=True), key=lambda pair: -pair[1])
    return Column(
        name=of.name,
        kind="number" if of.kind == "number" else "category" if of.kind == "category" else "date",
        role="group",
        missing=rows[-1],
        distinct=sum(n > 0 for n in rows[:-1]),
        frequent=tuple((v, n) for v, n in pairs if n)[:SHOWN],
    )


def _covariate(of: Coding) -> Column:
    low, high = (of.cells[0], of.cells[-1]) if of.cells and of.kind == "number" else (None, None)
    return Column(name=of.name, kind=of.kind, role="covariate", distinct=len(of.levels) or None, low=low, high=high)


def _left_kind(why: str) -> str:
    return "constant" if "one value" in why else "empty" if "empty" in why else "id" if "identifier" in why else "other"
