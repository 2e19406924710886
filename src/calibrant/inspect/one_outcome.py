"""Columns within whose values the label never changes: one outcome looked at many times, or made from the outcome.

Labels are compared with columns here, and never with a score.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.columns import are_absent, row_ids
from calibrant.data.reading import Reading
from calibrant.data.sketches.sample import shared_codes
from calibrant.data.survey import leaks_in
from calibrant.errors import BadInput
from calibrant.inspect.looked import Column
from calibrant.inspect.roles import WHOLE

Ints = NDArray[np.int64]

FEWEST, GROUPS = 20, 30  # values that two rows share, at least; values that are groups
LEAST = 1.05  # rows a value, under which a few copies of rows are all that is shared
CHANCE = 0.01  # of independent rows, of all that is looked at
PAIRS = 100  # of columns
SHARED, NEAREST, LARGEST = 1.2, 3.0, 200  # rows of one value of a pair: at least, of those looked at first, at most


def one_outcome(
    table: pa.Table, columns: Sequence[Column], requested: Reading, taken: Iterable[str]
) -> tuple[tuple[str, ...], ...]:
    """The columns, and pairs of others, within whose values rows have one label, though chance does not do that.

    Numbers that order the label are none: what is made from the outcome, such as days to it, orders it too. Nor are
    pairs that hold what reproduces the label.
    """
    label = requested.label
    if label not in table.column_names:
        return ()
    y = _codes(table, label)
    if int(y.max(initial=-1)) != 1:
        return ()
    codes: dict[str, Ints] = {}
    for c in columns:
        whole = c.kind in ("category", "code", "cluster", "id", "date") or (c.kind == "number" and c.why == WHOLE)
        if whole and c.name in table.column_names and c.name not in taken:
            with suppress(BadInput):
                codes[c.name] = _codes(table, c.name)
    levels = {name: int(code.max(initial=-1)) + 1 for name, code in codes.items()}
    pairs = []
    for a, b in itertools.combinations(levels, 2):
        both, larger = levels[a] * levels[b], max(levels[a], levels[b])
        if both > max(GROUPS, len(y) / LARGEST) and larger < len(y) / SHARED:
            pairs.append((abs(math.log(NEAREST * both / len(y))), (a, b)))
    looked = [*((name,) for name in levels), *(names for _, names in sorted(pairs)[:PAIRS])]
    out: list[tuple[str, ...]] = []
    for names in looked:
        if not any({*one} <= {*names} for one in out) and _constant([codes[n] for n in names], y, CHANCE / len(looked)):
            out.append(names)
    numbers = {c.name for c in columns if c.kind in ("number", "date")}
    out = [n for n in out if not (len(n) == 1 and n[0] in numbers and _ordered(table, n[0], y))]
    of_two = tuple(dict.fromkeys(name for names in out if len(names) > 1 for name in names))
    leaks = leaks_in(table, label, requested.positive, of_two, requested.seed) if of_two else ()
    made = [{*leak.columns} for leak in leaks if leak.kind == "leak" or len(leak.columns) > 1]
    return tuple(names for names in out if len(names) == 1 or not any(own <= {*names} for own in made))


def _codes(table: pa.Table, name: str) -> Ints:
    """Codes from 0 of equal values; negative where one is missing."""
    column = table.column(name)
    return shared_codes(row_ids([column], 0, (name,)), ~are_absent(column, name))[0]


def _constant(codes: Sequence[Ints], y: Ints, chance: float) -> bool:
    """Whether all rows of one value have one label, where independent rows have it with a smaller chance than this."""
    there = (y >= 0) & np.all([c >= 0 for c in codes], axis=0)
    if not there.any():
        return False
    first, *more = (c[there] for c in codes)
    for c in more:
        first = first * (int(c.max()) + 1) + c
    cluster = np.unique(first, return_inverse=True)[1].reshape(-1)
    size, events = np.bincount(cluster), np.bincount(cluster, y[there])
    many = size > 1
    if (
        len(size) <= GROUPS
        or many.sum() < FEWEST
        or size.sum() < LEAST * len(size)
        or ((events > 0) & (events < size)).any()
    ):
        return False
    rate = float(y[there].mean())
    return bool(np.log(rate ** size[many] + (1.0 - rate) ** size[many]).sum() < math.log(chance))


def _ordered(table: pa.Table, name: str, y: Ints) -> bool:
    """Whether the label changes less than half as often along a number as along values in no order."""
    code = _codes(table, name)
    there = (y >= 0) & (code >= 0)
    at = table.column(name).filter(pa.array(there)).combine_chunks()
    along = y[there][np.argsort(pc.rank(at, tiebreaker="first").to_numpy(zero_copy_only=False), kind="stable")]
    values = np.bincount(code[there], y[there]) > 0
    rate = float(values.mean())
    return int((along[1:] != along[:-1]).sum()) < rate * (1.0 - rate) * len(values)
