"""Columns that are probabilities of several classes: in each row they add up to one. No label is held against them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.classes.columns import ROUNDED, differing, matched
from calibrant.data.columns import Floats, as_float, as_text, letters_of
from calibrant.data.layouts import decoded
from calibrant.data.read import classes_in_memory
from calibrant.data.reading import Reading
from calibrant.data.sources.source import CLASS, DETECTED, Source, is_listed, listed, pair_of, parts_of
from calibrant.data.specs.options import BY_NUMBER
from calibrant.errors import BadInput, NotComputable
from calibrant.inspect.looked import Column
from calibrant.inspect.roles import LABELS, SCORES, called

Scale = Literal["probability", "percent", "log"]
LEAST = 3  # classes; of two the second is a score like any other
LEAST_ROWS = 5
PLACES = 2  # of a list of the most probable classes, at least
HALF = 0.5  # share of zeros from which on rows are lists of some classes
DIGITS = 0.005  # that rounding changes of each probability, at most
OFF = 1e-6  # of a probability, by arithmetic
NAMED = SCORES | {"probs", "logprob", "logprobs", "class"}
LOGS = {"logprob", "logprobs", "logp"}
LOGITS = {"logit", "logits", "z"}
SPARSE = SCORES | {"probs", "data"}  # what columns of lists and of sparse matrices are called
GRADES = {"grade", "grades", "stage", "stars", "rating", "likert", "severity", "level", "rank"}  # that have an order
SCALES = (  # words that have an order, from the lowest
    ("very low", "low", "mid", "middle", "medium", "moderate", "high", "very high"),
    ("very poor", "poor", "fair", "good", "great", "very good", "excellent", "best"),
    ("none", "mild", "moderate", "severe", "critical"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("bad", "okay", "ok", "good", "great"),
    ("small", "medium", "large"),
)


@dataclass(frozen=True)
class ClassColumns:
    """A column of probabilities for each class, and the columns that say which class was true."""

    columns: tuple[str, ...]
    names: tuple[str, ...]  # of the classes, in the order of the columns
    scale: Scale
    truth: tuple[str, ...]  # one column that names the class; or one a class, in that order; or none
    named: bool  # the columns are called as scores are
    renormalize: bool = False  # a row may miss a sum of one by more than an audit takes
    rest: bool = False  # rows list some classes only
    listed: tuple[str, ...] = ()  # the columns that name the classes of `columns`, which are places in a list
    ordered: tuple[str, ...] = ()  # the classes from the lowest to the highest, or `BY_NUMBER`

    @property
    def partial(self) -> bool:
        """Rows list some classes: what a row lacks is the rest, and no gap."""
        return self.rest or bool(self.listed)


def classes_stated(opened: Source, columns: Sequence[Column], options: Reading) -> ClassColumns | None:
    """The columns of classes that were named, or that a pattern stands for; None where none were.

    The one that says which was true is that which was named, or is called so.
    """
    if not options.scores:
        return None
    family = matched(options.scores, opened.columns, options.caller)
    scale: Scale = "log" if options.logits else "percent" if options.percent else "probability"
    truth = options.labels or ((options.label,) if options.label else _truth(columns, family, differing(family)))
    return ClassColumns(family, differing(family), scale, truth, named=True)


def lists_of_classes(table: pa.Table) -> tuple[str, ...]:
    """Patterns of the parts of columns whose lists or structs add up to one: probabilities of classes."""
    result = list[str]()
    for name in table.column_names:
        column = next((c for chunk in table.column(name).chunks if len(c := listed(chunk).drop_null())), None)
        if column is not None and pair_of(column.type):
            result.append(f"{name}_*")
        if column is None or not is_listed(column.type):
            continue
        struct = pa.types.is_struct(column.type)
        own = [f"{name}.{f.name}" for f in column.type] if struct else [f"{name}_{i}" for i in range(len(column[0]))]
        with suppress(BadInput):  # of several lengths
            values = pa.table(parts_of(column, name, own, 0))
            sums = _missed(values, own, "probability"), _missed(values, own, "probability", parts=True)
            if len(own) >= LEAST and (sums[0] is not None or (struct and sums[1] is not None)):
                result.append(f"{name}{'.' if struct else '_'}*")
    return tuple(result)


def class_errors(table: pa.Table, options: Reading) -> tuple[str, ...]:
    """Why an audit of all classes would refuse these rows: it reads them as the audit does."""
    try:
        classes_in_memory(table, replace(options, form=DETECTED, variables=()))
    except (BadInput, NotComputable) as e:
        return (str(e),)
    return ()


def classes_of(table: pa.Table, columns: Sequence[Column]) -> ClassColumns | None:
    """The columns of classes, if there are any; with their order, where their names have one."""
    if table.num_rows < LEAST_ROWS:
        return None
    detected = _listed(table, columns) or _summed(table, columns) or _unsummed(table, columns)
    return None if detected is None else replace(detected, ordered=() if detected.partial else _order(detected))


def _order(classes: ClassColumns) -> tuple[str, ...]:
    """The order of classes that are numbered grades, or words of a scale; empty where they have none."""
    if len(classes.truth) == 1 and called(classes.truth[0], GRADES) and all(n.isdecimal() for n in classes.names):
        return BY_NUMBER
    at = {name: re.sub(r"[_.\s-]+", " ", name).strip().lower() for name in classes.names}
    scale = next((scale for scale in SCALES if {*at.values()} <= {*scale}), ())
    return tuple(sorted(classes.names, key=lambda name: scale.index(at[name]))) if scale else ()


def _listed(table: pa.Table, columns: Sequence[Column]) -> ClassColumns | None:
    """Columns of the probabilities of each row's most probable classes, next to those that name the classes."""
    texts = [c for c in columns if c.of_kind.names]
    own = [c.name for c in columns if _scale(c)]
    pairs = {name: f"{name}{CLASS}" for name in own if f"{name}{CLASS}" in table.column_names}
    for some, others in product(_numbered(own), _numbered([c.name for c in texts])):
        if some.keys() == others.keys():
            pairs = pairs or {some[i]: others[i] for i in some}
    if len(pairs) < PLACES:
        return None
    logs = {_scale(c) == "log" for c in columns if c.name in pairs}
    missed = _missed(table, tuple(pairs), "log" if logs == {True} else "probability", parts=True)
    named = {*pc.unique(pa.chunked_array([as_text(decoded(table.column(c))) for c in pairs.values()])).to_pylist()}
    free = [c for c in columns if c.name not in pairs and c.name not in pairs.values()]
    truth = [c.name for c in free if c.frequent and all(v in named for v, _ in c.frequent[:PLACES])]
    if missed is None or not truth:
        return None
    kind: Scale = "log" if logs == {True} else "probability"
    best = next((name for name in truth if called(name, LABELS)), truth[0])
    return ClassColumns(tuple(pairs), tuple(pairs), kind, (best,), named=True, listed=tuple(pairs.values()))


def _numbered(names: Sequence[str]) -> list[dict[int, str]]:
    """Sets of names that differ by a number behind them, by that number: prob_1 to prob_5."""
    by: dict[str, dict[int, str]] = {}
    for name in names:
        if detected := re.fullmatch(r"(.*\D)(\d+)", name):
            by.setdefault(detected[1], {})[int(detected[2])] = name
    return [family for family in by.values() if len(family) >= PLACES]


def _unsummed(table: pa.Table, columns: Sequence[Column]) -> ClassColumns | None:
    """Columns that do not add up to one: logits, lists of some classes, or probabilities of each class by itself.

    By their names, where those of the classes are the values of one other column.
    """
    for family in _families([c.name for c in columns if c.kind == "number"]):
        classes = differing(family)
        truth = _truth(columns, family, classes)
        if not truth or not _all_known(columns, truth, classes):
            continue
        own = [c for c in columns if c.name in family]
        if all(called(name, LOGITS) for name in family):
            return ClassColumns(family, classes, "log", truth, named=True)
        if not all(called(c.name, NAMED | SPARSE) and isinstance(c.low, float) and c.low >= 0.0 for c in own):
            continue
        if _missed(table, family, "probability", parts=True) is not None:
            return ClassColumns(family, classes, "probability", truth, named=True, rest=True)
        return ClassColumns(family, classes, "probability", truth, named=True, renormalize=True)
    return None


def _all_known(columns: Sequence[Column], truth: Sequence[str], classes: Sequence[str]) -> bool:
    """Whether the values of the one column of labels are names of classes."""
    known = {letters_of(name) for name in classes}
    label = next(c for c in columns if c.name == truth[0])
    return len(truth) > 1 or {letters_of(v) for v, _ in label.frequent} <= known


def _gaps(table: pa.Table, family: Sequence[str]) -> float:
    """The share of probabilities that are 0 or missing."""
    gone = [~(as_float(decoded(table.column(name), name), name, "score") > 0.0) for name in family]
    return float(np.mean(gone))


def _summed(table: pa.Table, columns: Sequence[Column]) -> ClassColumns | None:
    """The largest set of columns that add up to one in each row, but for their digits."""
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
                detected = ClassColumns(family, classes, scale, truth, named)
                if scale == "log" or missed <= ROUNDED:
                    return detected
                lists = scale == "probability" and _gaps(table, family) > HALF
                lists = lists and _missed(table, family, scale, parts=True) is not None
                return replace(detected, rest=True) if lists else replace(detected, renormalize=True)
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


def _missed(table: pa.Table, family: Sequence[str], scale: Scale, parts: bool = False) -> float | None:
    """By how much a row misses a sum of one at most; None where columns do not add up, but for their digits.

    Where they are `parts` of one, what is missing is 0 and rows may lack anything, but not have more.
    """
    total: Floats = np.zeros(table.num_rows)
    for name in family:
        values = as_float(decoded(table.column(name), name), name, "score")
        values = np.nan_to_num(values, nan=-np.inf if scale == "log" else 0.0) if parts else values
        total += np.exp(values) if scale == "log" else values / 100.0 if scale == "percent" else values
    there = total[~np.isnan(total)]
    if len(there) < LEAST_ROWS:
        return None
    missed = float(np.abs(there - 1.0).max())
    if parts:
        return missed if (there <= 1.0 + ROUNDED).all() else None
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
        if c.frequent and 1 < (c.distinct or 0) <= len(known) and {letters_of(v) for v, _ in c.frequent} <= known:
            return (c.name,)
    labels = [c for c in others if called(c.name, LABELS) and (c.distinct or 0) > 1]
    few = [c for c in labels if (c.distinct or 0) <= len(classes)]
    mostly = [c for c in labels if 2 * sum(letters_of(v) in known for v, _ in c.frequent) > (c.distinct or 0)]
    return tuple(c.name for c in (*few, *mostly))[:1]  # of other values an audit names the first


def _ends(name: str) -> tuple[str, ...]:
    words = re.split(r"[_.\s-]", name)
    return (letters_of(words[-1]), letters_of(words[0])) if len(words) > 1 else ()
