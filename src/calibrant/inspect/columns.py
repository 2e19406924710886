"""What one column holds: its kind, what is missing, its values. Each is seen by itself, the label too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.columns import score_values
from calibrant.data.kinds import Kind, kind_of_column
from calibrant.data.layouts import decoded, plain
from calibrant.data.specs.cluster_names import CLUSTERS, FEWEST, about_cluster, names_cluster
from calibrant.errors import BadInput
from calibrant.inspect.looked import Column
from calibrant.inspect.roles import GROUPS, KEYS, called
from calibrant.inspect.sample import Sampled

SHOWN = 12  # most frequent values kept of a category, code or label
SHARED = 1.2  # rows a value, on average, from which on an identifier is of a cluster that several rows share
NO_COVARIATE = ("id", "constant", "unusable")
COUNTED = ("yes/no", "code", "category", "constant")


def seen(rows: Sampled, kinds: Mapping[str, str]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Return what each column of some rows holds, and the refusals of those that cannot be read.

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
    taken = kind_of_column(column, name)
    taken = _percents(taken, column, name)
    rows = len(column) - taken.missing
    kind = _kind(taken, name, rows)
    listed = kind in COUNTED or (kind == "number" and 0 < taken.distinct <= SHOWN)
    people = names_cluster(name) and not called(name, {*GROUPS}) and taken.distinct >= FEWEST
    frequent = _frequent(column, name) if listed and not people else ()  # no person is shown by name or number
    return Column(
        name=name,
        kind=kind,
        role="left out" if taken.kind in NO_COVARIATE else "",
        why=why or taken.why,
        stored=_stored(column.type),
        missing=taken.missing,
        distinct=taken.distinct if kind != "unusable" else None,
        low=_end(taken.low, kind),
        high=_end(taken.high, kind),
        frequent=frequent,
    )


def _percents(taken: Kind, column: pa.ChunkedArray, name: str) -> Kind:
    """Return texts such as "12%" as the numbers that they are."""
    if not taken.examples or not taken.examples[0].rstrip().endswith("%"):
        return taken
    try:
        values = 100.0 * score_values(column, name, percent=True)
    except BadInput:
        return taken
    low, high = (f"{end:.15g}" for end in (np.nanmin(values), np.nanmax(values)))
    return replace(taken, kind="number", why="its values are percent, with the sign", low=low, high=high)


def _kind(taken: Kind, name: str, rows: int) -> str:
    """The kind, clusters apart from other identifiers: several rows share one of a cluster."""
    if taken.kind == "label":
        return "yes/no"
    if taken.kind == "constant" and not taken.distinct:
        return "empty"
    several = rows >= SHARED * taken.distinct
    if taken.kind == "id":
        return "cluster" if several and taken.distinct else "id"
    whole = taken.kind in ("category", "code") or taken.why == "its values are whole numbers"
    many = several and taken.distinct >= FEWEST
    if whole and many and called(name, KEYS & {"id"}) and called(name, CLUSTERS | {"id"}) and not about_cluster(name):
        return "cluster"
    return taken.kind


def _stored(t: pa.DataType) -> str:
    """A type as it is stored, the values of a dictionary in its place."""
    return str(t.value_type if pa.types.is_dictionary(t) else t)


def _end(text: str, kind: str) -> float | str | None:
    """The end of numbers or dates."""
    if kind == "date":
        return text.split(" ")[0]
    return float(text) if kind in ("number", "yes/no", "constant", "id", "cluster", "code") and _numeric(text) else None


def _numeric(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


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
