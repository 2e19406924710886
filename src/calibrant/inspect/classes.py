"""Columns that are probabilities of several classes: in each row they add up to one. No label is held against them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from calibrant.data.classes.columns import ROUNDED, differing, matched
from calibrant.data.columns import Floats, as_float, letters_of
from calibrant.data.layouts import decoded
from calibrant.data.read import classes_in_memory
from calibrant.data.reading import Reading
from calibrant.data.sources.source import DETECTED, Source, is_listed, listed, parts_of
from calibrant.errors import BadInput, NotComputable
from calibrant.inspect.looked import Column
from calibrant.inspect.roles import LABELS, SCORES, called

Scale = Literal["probability", "percent", "log"]
LEAST = 3  # classes; of two the second is a score like any other
LEAST_ROWS = 5
DIGITS = 0.005  # that rounding changes of each probability, at most
OFF = 1e-6  # of a probability, by arithmetic
NAMED = SCORES | {"probs", "logprob", "logprobs", "class"}
LOGS = {"logprob", "logprobs", "logp"}


@dataclass(frozen=True)
class ClassColumns:
    """A column of probabilities for each class, and the columns that say which class was true."""

    columns: tuple[str, ...]
    names: tuple[str, ...]  # of the classes, in the order of the columns
    scale: Scale
    truth: tuple[str, ...]  # one column that names the class; or one a class, in that order; or none
    named: bool  # the columns are called as scores are
    rounded: bool = False  # to digits with which a row may miss a sum of one by more than an audit takes


def classes_stated(opened: Source, columns: Sequence[Column], options: Reading) -> ClassColumns | None:
    """Return the columns of classes that were named, or that a pattern stands for; None where none were.

    The one that says which was true is that which was named, or is called so.
    """
    if not options.scores:
        return None
    family = matched(options.scores, opened.columns, options.caller)
    scale: Scale = "log" if options.logits else "percent" if options.percent else "probability"
    truth = options.labels or ((options.label,) if options.label else _truth(columns, family, differing(family)))
    return ClassColumns(family, differing(family), scale, truth, named=True)


def lists_of_classes(table: pa.Table) -> tuple[str, ...]:
    """Return patterns of the parts of columns whose lists or structs add up to one: probabilities of classes."""
    result = list[str]()
    for name in table.column_names:
        column = next((c for chunk in table.column(name).chunks if len(c := listed(chunk).drop_null())), None)
        if column is None or not is_listed(column.type):
            continue
        struct = pa.types.is_struct(column.type)
        own = [f"{name}.{f.name}" for f in column.type] if struct else [f"{name}_{i}" for i in range(len(column[0]))]
        with suppress(BadInput):  # of several lengths
            values = pa.table(parts_of(column, name, own, 0))
            if len(own) >= LEAST and _missed(values, own, "probability") is not None:
                result.append(f"{name}{'.' if struct else '_'}*")
    return tuple(result)


def class_errors(table: pa.Table, options: Reading) -> tuple[str, ...]:
    """Return why an audit of all classes would refuse these rows: it reads them as the audit does."""
    try:
        classes_in_memory(table, replace(options, form=DETECTED, variables=()))
    except (BadInput, NotComputable) as e:
        return (str(e),)
    return ()


def classes_of(table: pa.Table, columns: Sequence[Column]) -> ClassColumns | None:
    """Return the largest set of columns that add up to one in each row, if there is one."""
    if table.num_rows < LEAST_ROWS:
        return None
    scales: dict[Scale, list[str]] = {"probability": [], "percent": [], "log": []}
    for c in columns:
        if scale := _scale(c):
            scales[scale].append(c.name)
    for scale, names in scales.items():
        for family in _families(names):
            missed = _missed(table, family, scale)
            if missed is not None:
                classes = differing(family)
                named = all(called(name, NAMED) for name in family)
                truth = _truth(columns, family, classes)
                return ClassColumns(family, classes, scale, truth, named, scale != "log" and missed > ROUNDED)
    return None


def _scale(c: Column) -> Scale | None:
    if c.kind != "number" or not isinstance(c.low, float) or not isinstance(c.high, float):
        return None
    if c.high <= OFF and c.low < 0.0:
        return "log"
    if c.low < 0.0 or c.high > 100.0 or (c.distinct or 0) < LEAST:
        return None
    return "probability" if c.high <= 1.0 + OFF else "percent"


def _families(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield sets of columns that may be one set, the largest first: all, and those of one beginning or end."""
    kept: dict[tuple[str, ...], None] = {tuple(names): None}
    for pattern in (r"([_.\s-]|(?<=\D)(?=\d)).*$", r"^.*[_.\s-]"):  # what is left is the first word, or the last
        by: dict[str, list[str]] = {}
        for name in names:
            by.setdefault(re.sub(pattern, "", name), []).append(name)
        kept |= {tuple(family): None for family in by.values()}
    yield from sorted((f for f in kept if len(f) >= LEAST), key=lambda f: -len(f))


def _missed(table: pa.Table, family: Sequence[str], scale: Scale) -> float | None:
    """By how much a row misses a sum of one at most; None where columns do not add up, but for their digits."""
    total: Floats = np.zeros(table.num_rows)
    for name in family:
        values = as_float(decoded(table.column(name), name), name, "score")
        total += np.exp(values) if scale == "log" else values / 100.0 if scale == "percent" else values
    there = total[~np.isnan(total)]
    if len(there) < LEAST_ROWS:
        return None
    missed = float(np.abs(there - 1.0).max())
    if scale == "log" and all(called(name, LOGS) for name in family):  # of answers that were not all offered
        return missed if (there <= 1.0 + OFF * len(family)).all() else None
    return missed if missed <= DIGITS * len(family) else None


def _truth(columns: Sequence[Column], family: Sequence[str], classes: Sequence[str]) -> tuple[str, ...]:
    """The columns that say which class was true, by their names and values."""
    others = [c for c in columns if c.name not in family]
    known = {letters_of(name) for name in classes}
    flags: Mapping[str, str] = {
        plain: c.name
        for c in others
        if c.distinct == 2
        for plain in (letters_of(c.name), *_ends(c.name))
        if plain in known
    }
    if len(flags) == len(known):
        return tuple(flags[letters_of(name)] for name in classes)
    for c in others:
        if c.frequent and 1 < (c.distinct or 0) == len(c.frequent) and {letters_of(v) for v, _ in c.frequent} <= known:
            return (c.name,)
    return tuple(c.name for c in others if called(c.name, LABELS) and 1 < (c.distinct or 0) <= len(classes))[:1]


def _ends(name: str) -> tuple[str, ...]:
    words = re.split(r"[_.\s-]", name)
    return (letters_of(words[-1]), letters_of(words[0])) if len(words) > 1 else ()
