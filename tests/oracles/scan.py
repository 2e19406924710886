"""The scan over boxes in plain Python: every box and every subset of levels, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.stats import norm

from calibrant.data.sketches.sums import Layout
from calibrant.data.specs.attributes import Attribute
from calibrant.data.specs.coding import SCORE
from calibrant.kernels.boxes import SUMS
from calibrant.stats.subgroups.scan import Scan
from calibrant.views.boxes import SampleRows, Tables

STEPS = 2.0**30


def attributes_of(kinds: str, size: int) -> tuple[Attribute, ...]:
    """The score ("s"), numbers ("n") and categories ("c") of so many cells, the last one of missing values."""
    numbers = tuple(float(k) for k in range(size - 2))
    names = tuple("abcdefgh"[: size - 2])
    how: dict[str, dict[str, Any]] = {
        "s": {"kind": "number", "edges": numbers},
        "n": {"kind": "number", "edges": numbers},
        "c": {"kind": "category", "levels": names},
    }
    return tuple(Attribute(name=SCORE if k == "s" else f"{k}{j}", **how[k]) for j, k in enumerate(kinds))


def tables_of(kinds: str, size: int, held: SampleRows, order: int) -> Tables:
    """Tables of rows whose cells are given."""
    layout = Layout(attributes_of(kinds, size), order)
    sums = np.zeros((layout.cells, SUMS), dtype=np.int64)
    layout.summed(held.cells, held.p, held.y, sums)
    return Tables(layout=layout, sums=sums, n=len(held.p), sample_rows=held)


def named(t: Attribute) -> tuple[int, ...]:
    """Cells of levels of a category, but for those that share one."""
    return (*range(len(t.levels)), t.size - 1) if t.kind == "category" else ()


def scan_of(tables: Tables, tolerance: float = 0.0, sides: tuple[int, ...] = (0, 1), fewest: int = 1) -> Scan:
    """The scan of few rows: boxes may have one."""
    return Scan(
        family=tables.family(0.0, fewest),
        tables=tables.tables,
        levels=tuple(named(t) for t in tables.attributes),
        fewest=fewest,
        tolerance=tolerance,
        sides=sides,
    )


def _sets(t: Attribute) -> Iterator[tuple[int, ...]]:
    if t.kind == "category":
        yield from ((c,) for c in named(t))
        yield from combinations(named(t), 2)
        return
    yield from (tuple(range(i, j)) for i, j in combinations(range(t.size), 2))  # runs of the cells of values
    if t.name != SCORE:
        yield (t.size - 1,)


def boxes(tables: Tables, fewest: int) -> Iterator[tuple[int, Any]]:
    """The table of each box of the family, and which rows lie in it."""
    cells, n = tables.sample_rows.cells, tables.n  # type: ignore[union-attr]
    rare = {
        (j, c): (cells[j] == c).sum() < fewest for j, t in enumerate(tables.attributes) for c in named(t)
    }  # such a level is part of no box
    for table, own in enumerate(tables.layout.combined):
        sets = [[s for s in _sets(tables.attributes[j]) if not any(rare.get((j, c)) for c in s)] for j in own]
        for chosen in product(*sets):
            parts = [np.isin(cells[j], s) for j, s in zip(own, chosen, strict=True)]
            inside = np.logical_and.reduce(parts)
            if fewest <= inside.sum() < n and (len(own) == 1 or not any(p.all() for p in parts)):
                yield table, inside


def subsets(tables: Tables, fewest: int) -> Iterator[tuple[int, Any, Any]]:
    """The table of each subset of levels that leaves one out, which rows lie in it, and in all levels together."""
    cells = tables.sample_rows.cells  # type: ignore[union-attr]
    for table, own in enumerate(tables.layout.combined):
        for category, other in [(own[0], None)] if len(own) == 1 else [own, own[::-1]] if len(own) == 2 else []:
            levels = named(tables.attributes[category])
            others = [None] if other is None else _sets(tables.attributes[other])
            for within in others if levels else ():
                if within is not None and len(within) == 2 and tables.attributes[other].kind == "category":
                    continue
                inside = np.ones(tables.n, dtype=bool) if within is None else np.isin(cells[other], within)
                there = [c for c in levels if (inside & (cells[category] == c)).any()]
                if within is not None and (inside.all() or inside.sum() < fewest):
                    continue
                for k in range(1, len(there)):
                    for some in combinations(there, k):
                        rows = inside & np.isin(cells[category], some)
                        if rows.sum() >= fewest:
                            yield table, rows, inside & np.isin(cells[category], there)


def score(inside: Any, y: Any, p: Any, tolerance: float, extra: float) -> tuple[float, float]:
    """More cases than expected beyond the tolerance, and fewer, in standard deviations."""
    q = np.floor(p * STEPS)
    variance = np.floor(q * (STEPS - q) / STEPS)[inside].sum() / STEPS
    residual, allowed = y[inside].sum() - q[inside].sum() / STEPS, tolerance * inside.sum()
    return (residual - allowed) / np.sqrt(variance + extra), (-residual - allowed) / np.sqrt(variance + extra)


def needed(tables: Tables, scan: Scan) -> tuple[Any, Any]:
    """The scores that the boxes need, and of each table the largest: what a subset of levels needs."""
    own = norm.isf(0.025 * scan.family.weight)
    table = np.array([t for t, _ in boxes(tables, int(scan.fewest))])
    most = [own[table == t].max() if (table == t).any() else own.max() for t in range(len(tables.layout.combined))]
    return own, np.array(most)


def largest(tables: Tables, scan: Scan, outcomes: Callable[[int], Any]) -> float:
    """The largest margin of boxes and of subsets, given the outcomes that each side compares with."""
    p = tables.sample_rows.p  # type: ignore[union-attr]
    fewest = int(scan.fewest)
    own, most = needed(tables, scan)
    found = [(inside, asked) for (_, inside), asked in zip(boxes(tables, fewest), own, strict=True)]
    found += [(inside, most[t]) for t, inside, _ in subsets(tables, fewest)]
    return max(
        score(inside, outcomes(s), p, scan.tolerance, scan.extra)[s] - asked
        for inside, asked in found
        for s in scan.sides
    )
