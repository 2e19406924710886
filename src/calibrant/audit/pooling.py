"""Small groups are never shown alone, and never recoverable by subtraction from totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.coding import MISSING
from calibrant.data.columns import decoded
from calibrant.data.predictions import Predictions


def pool_levels(rows: Sequence[int], smallest: int) -> list[tuple[int, ...]]:
    """Pool the levels of one variable.

    Parameters
    ----------
    rows : sequence of int
        People per level.
    smallest : int
        Counts below this are not shown.

    Returns
    -------
    list of tuple of int
        Groups of level indices: singles, and last at most one pool. The pool holds every small level and as many
        of the next smallest as it takes to have two members and `smallest` people; without a small level there
        is no pool. If everything would be pooled, the list is empty: the pool would be everyone.
    """
    present = [i for i in range(len(rows)) if rows[i] > 0]
    small = [i for i in present if rows[i] < smallest]
    if not small:
        return [(i,) for i in present]
    order = sorted(present, key=lambda i: (rows[i], i))
    size = len(small)
    while size < len(order) and (size < 2 or sum(rows[i] for i in order[:size]) < smallest):
        size += 1
    if size == len(order):
        return []
    pool = set(order[:size])
    return [*((i,) for i in present if i not in pool), tuple(sorted(pool))]


def pool_pairs(rows: Any, smallest: int) -> list[tuple[int, ...]]:
    """Pool the cells of a two-way table whose margins may be known.

    A pooled cell can be solved for from the margins exactly when, in the graph that joins row and column levels by
    pooled cells, it is a bridge. So the next smallest cells join the pool until no small cell is a bridge.

    Parameters
    ----------
    rows : int array of shape (a, b)
    smallest : int

    Returns
    -------
    list of tuple of int
        Groups of flat cell indices, as `pool_levels`.
    """
    flat = rows.reshape(-1)
    present = [int(i) for i in np.flatnonzero(flat)]
    small = {i for i in present if flat[i] < smallest}
    if not small:
        return [(i,) for i in present]
    order = sorted(present, key=lambda i: (flat[i], i))
    size = len(small)
    while size < len(order):
        pool = order[:size]
        if flat[pool].sum() >= smallest and not any(_is_bridge(i, pool, rows.shape[1]) for i in small):
            return [*((i,) for i in present if i not in set(pool)), tuple(sorted(pool))]
        size += 1
    return []


def _is_bridge(cell: int, pool: Sequence[int], columns: int) -> bool:
    """Tell whether the ends of `cell` fall apart when it is removed from the pooled cells."""
    start, goal = ("row", cell // columns), ("column", cell % columns)
    edges: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for i in pool:
        if i != cell:
            a, b = ("row", i // columns), ("column", i % columns)
            edges.setdefault(a, []).append(b)
            edges.setdefault(b, []).append(a)
    seen, stack = {start}, [start]
    while stack:
        for other in edges.get(stack.pop(), ()):
            if other == goal:
                return False
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return True


def pooled_rows(rows: Predictions, smallest: int) -> Predictions:
    """Return rows whose small levels are joined, as `pool_levels`; a category that pools away altogether is left out."""
    import pyarrow as pa

    if rows.covariates is None:
        return rows
    columns = {}
    for name in rows.covariates.schema.names:
        column = decoded(rows.covariates.column(name))
        kept = _pooled_text(column, smallest) if pa.types.is_string(column.type) else column
        if kept is not None:
            columns[name] = kept
    return replace(rows, covariates=pa.table(columns) if columns else None, cache={})


def _pooled_text(column: Any, smallest: int) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pc.dictionary_encode(column)
    labels, codes = coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    counts = np.bincount(np.where(codes < 0, len(labels), codes), minlength=len(labels) + 1).tolist()
    groups = pool_levels(counts, smallest)
    if not groups:
        return None
    names, new = [*labels, None], np.full(len(labels) + 1, -1, dtype=np.int32)
    titles: list[str] = []
    for members in groups:
        title = names[members[0]] if len(members) == 1 else pool_name([names[m] or MISSING for m in members])
        for m in members:
            new[m] = len(titles) if title is not None else -1
        titles += [] if title is None else [title]
    return pa.DictionaryArray.from_arrays(pa.array(new[codes], mask=new[codes] < 0), pa.array(titles, pa.string()))


def pool_name(labels: Sequence[str]) -> str:
    """Name a pool by its members, or by the first two and how many more."""
    if len(labels) <= 3:
        return " + ".join(labels)
    return f"{labels[0]} + {labels[1]} + {len(labels) - 2} more"
