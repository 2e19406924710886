"""Customers on a rating scale, one a row: rows of one customer are put together, and customers put into segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant import Predictions, predictions
from calibrant.arguments import refuse, shown
from calibrant.errors import BadInput, NotComputable
from calibrant.toolkit.data import as_text, clipped, decoded, finite_numbers, is_number, number_texts, require
from calibrant.toolkit.methods import refuse_rows

Ints = NDArray[np.int64]
FEW = 50  # grades, and levels of a segment: rating scales have 5 to 25
NO_SEGMENT = "none"  # what a missing value of a segment is called


def texts_of(rows: Predictions, column: str, role: str) -> list[str | None]:
    """A covariate as text, None where missing; whole numbers as they are written."""
    table = rows.covariates
    require([column], () if table is None else tuple(table.schema.names), role)
    kept = decoded(table.column(column), column)
    kept = number_texts(kept) if is_number(kept.type) else as_text(kept)
    made: list[str | None] = kept.to_pylist()
    return made


def numbers_of(rows: Predictions, column: str) -> NDArray[np.float64]:
    """What is owed, in numbers from 0."""
    require([column], () if rows.covariates is None else tuple(rows.covariates.schema.names), "exposure")
    owed = finite_numbers(rows.covariates.column(column), column, "exposure")
    if (below := np.flatnonzero(~(owed >= 0.0))).size:
        what = f"exposure column {column!r}: {below.size:,} values are missing or below 0, first in row {below[0]}"
        raise BadInput(f"{what}; give what was owed at the beginning, 0 for nothing")
    if not owed.sum() > 0.0:
        raise BadInput(f"exposure column {column!r} holds zeros only: leave it out")
    return owed


def one_a_customer(rows: Predictions, constant: Sequence[str], exposure: str | None) -> tuple[Predictions, int | None]:
    """Put the rows of each cluster together as one customer; and how many rows there were, None without clusters.

    A customer defaults if any of its rows does, and owes what they add up to. Its PD is their mean, which the scale
    then checks. The columns in `constant` have one value a customer.
    """
    if rows.crossing is not None:
        both = " and ".join(rows.crossing.names)
        raise NotComputable(f"clusters of {both} cross: name one column that names the customers, --cluster COLUMN")
    if rows.cluster is None:
        return rows, None
    refuse_rows(rows, weights="customers are counted one by one: leave weights= (--weights) out")
    names, first, at = np.unique(rows.cluster.astype(str), return_index=True, return_inverse=True)
    at = at.reshape(-1)
    columns: dict[str, object] = {}
    for column in dict.fromkeys(constant):
        texts = np.array(texts_of(rows, column, "grade"), dtype=object)
        own = texts[first]
        if (apart := np.flatnonzero(own[at] != texts)).size:
            i = apart[0]
            who = f"customer {clipped(str(names[at[i]]))!r} has {shown(own[at[i]])} and {shown(texts[i])}"
            raise BadInput(f"column {column!r}: {who}; rows of one customer (cluster=, --cluster) have one value")
        columns[column] = pa.array(list(own), pa.string())
    count = np.bincount(at)
    if exposure is not None:
        columns[exposure] = np.bincount(at, numbers_of(rows, exposure))
    low, high = np.full(len(names), np.inf), np.zeros(len(names))
    np.minimum.at(low, at, rows.p)
    np.maximum.at(high, at, rows.p)
    pd = np.where(low == high, low, np.clip(np.bincount(at, rows.p) / count, 0.0, 1.0))
    made = predictions(np.bincount(at, rows.y) > 0, pd, columns, name=rows.name)
    return made, rows.n


def segments_of(rows: Predictions, by: Sequence[str]) -> list[tuple[str, list[str], Ints]]:
    """Each column of segments: its name, its levels in order, and the level of every customer."""
    made = []
    for column in by:
        texts = [NO_SEGMENT if v is None else v for v in texts_of(rows, column, "segment")]
        levels = sorted(set(texts))
        if len(levels) > FEW:
            what = f"segment column {column!r} holds {len(levels):,} values"
            raise BadInput(f"{what}: name a column of at most {FEW} segments, or leave it out of by= (--by)")
        place = {level: i for i, level in enumerate(levels)}
        made.append((column, levels, np.array([place[v] for v in texts], dtype=np.int64)))
    return made


def named_segments(by: object, taken: Iterable[str | None]) -> tuple[str, ...]:
    """The columns of segments; none of them is a column that is read as something else."""
    listed = () if by is None else (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Iterable) else (by,)
    names: list[str] = []
    for name in listed:
        if not isinstance(name, str):
            refuse("by", by, "names of columns", "such as ['region']")
        if name in taken:
            raise BadInput(
                f"by= (--by) names {clipped(name)!r}, which is the grade or the exposure: name other columns"
            )
        names.append(name)
    return tuple(dict.fromkeys(names))
