"""Whose probabilities a column of several classes holds, and what refusals call columns and rows."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from calibrant.arguments import PYTHON, Caller, shown
from calibrant.data.arrays import column_of
from calibrant.data.columns import (
    ABSENT,
    Floats,
    label_values,
    letters_of,
    score_values,
)
from calibrant.data.inputs import row_number
from calibrant.data.layouts import decoded, is_text
from calibrant.data.reading import Reading
from calibrant.data.sources.source import CLASS, FITTED_ON, REPAIRED, Place, row_of
from calibrant.errors import BadInput
from calibrant.kernels.runtime import parts_of


@dataclass(frozen=True)
class ClassInputs:
    """What refusals call the parts of rows of several classes: arguments and rows, or columns and lines of a file."""

    label: str = "y_true"
    weights: str = "weights"
    cluster: str = "cluster"
    scores: tuple[str, ...] = ()  # columns of probabilities, one a class; none of an array
    place: Callable[[int], str] = row_number  # where a row stands
    caller: Caller | None = None  # names the options of a reader of files, None those of arrays

    @property
    def by(self) -> Caller:
        """Who passed the arguments."""
        return self.caller or PYTHON

    @property
    def every_score(self) -> str:
        """All probabilities."""
        return f"columns {self.scores[0]!r} to {self.scores[-1]!r}" if self.scores else "y_prob"

    def score(self, k: int) -> str:
        """Those of one class."""
        return f"column {self.scores[k]!r}" if self.scores else f"column {k}"


ARRAYS = ClassInputs()


def class_names(classes: object, y_prob: object, labels: pa.Array, k: int) -> tuple[str, ...]:
    """The names of the classes in the order of the columns; empty where labels are their numbers."""
    if classes is None:
        names = getattr(y_prob, "column_names", getattr(y_prob, "columns", ()))
        if not is_text(labels.type) or not all(isinstance(n, str) for n in names):
            return ()
        return tuple(names)
    order = tuple(decoded(column_of(classes, "classes")).cast(pa.string()).to_pylist())
    if len(set(order)) != k or len(order) != k or None in order:
        raise BadInput(f"classes={shown(classes)}: name each of the {k} columns of y_prob once")
    return order


def class_labels(columns: Sequence[str], values: Iterable[object]) -> tuple[str, ...]:
    """What text labels call the classes of these columns: the columns, or what their names differ by.

    As labels write it, whatever the case and the marks between words; those that mean "no label" are passed over.
    """
    there = {letters_of(str(v)): str(v) for v in values if v is not None}
    for names in (tuple(columns), differing(columns)):
        known = {letters_of(name) for name in names}
        if all(plain in known or v in ABSENT for plain, v in there.items()):
            return tuple(there.get(letters_of(name), name) for name in names)
    return differing(columns)


def differing(family: Sequence[str]) -> tuple[str, ...]:
    """What names differ by: of p_home and p_away it is home and away."""
    first, last = whole(beginning(family)), whole(beginning([name[::-1] for name in family]))
    rest = [name[len(first) : len(name) - len(last)] for name in family]
    return tuple(rest) if all(rest) else tuple(family)


def beginning(names: Sequence[str]) -> str:
    """What all names begin with: what the first and the last in their order do."""
    first, last = min(names), max(names)
    return next((first[:i] for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), first)


def whole(shared: str) -> str:
    """What names share, up to the last mark between words; a beginning such as that of p1 and p2 as it is."""
    marks = [m.end() for m in re.finditer(r"[_.\s-]", shared)]
    return shared[: marks[-1]] if marks else ("" if len(shared) > 1 and shared.isalpha() else shared)


EXACT = 1e-9  # by which probabilities of a row, as computed, may miss one in sum
ROUNDED = 1e-3 + EXACT  # the same as written: 0.999 misses by 1e-3 and what doubles add to it
LARGEST_LOG = 1e-6  # of a probability, by its digits
AT_ONCE = 32  # columns of probabilities that are copied together
OTHERS = REPAIRED, FITTED_ON, "_perturbed", "_certified"  # ends of columns that a repair or a perturbation adds


def of_pattern(pattern: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that a pattern such as ``p_*`` stands for; of what was added only where it ends so."""
    others = tuple(end for end in OTHERS if not pattern.endswith(end))
    return tuple(name for name in fnmatch.filter(columns, pattern) if not name.endswith(others))


def matched(
    patterns: Sequence[str], columns: Sequence[str], caller: Caller, argument: str = "score", least: int = 3
) -> tuple[str, ...]:
    """The columns, three or more, that the names and patterns such as ``p_*`` of an argument stand for.

    Each once, those of a pattern in their order.
    """
    name, result = caller.name(argument), dict[str, None]()
    for pattern in patterns:
        own = (pattern,) if pattern in columns or "*" not in pattern else of_pattern(pattern, columns)
        if not own:
            raise BadInput(
                f"{name}={pattern!r} is the pattern of no column: there are {', '.join(map(repr, columns[:8]))}"
            )
        result |= dict.fromkeys(own)
    if len(result) < least:
        event, most = next(reversed(result)), "one column" if len(result) == 1 else "two columns"
        one = f"--score {event} --positive VALUE" if caller.command else f"score={event!r}, positive="
        raise BadInput(
            f"{name} names {most}, {', '.join(map(repr, result))}: of several classes name three or more; of two name "
            f"the event's alone, {one}"
        )
    return tuple(result)


def listed_columns(options: Reading, columns: Sequence[str]) -> Reading:
    """Return what was asked for with columns in place of patterns; those that name classes may come with the others."""
    by = options.caller
    named = {c for c in columns if c.endswith(CLASS) and c.removesuffix(CLASS) in columns}
    least = 1 if options.listed or named else 3
    scores = matched(options.scores, [c for c in columns if c not in named], by, least=least)
    if not options.listed:
        own = tuple(f"{name}{CLASS}" for name in scores)
        return replace(options, scores=scores, listed=own if {*own} <= named else ())
    listed = matched(options.listed, columns, by, "listed", 1)
    if len(listed) != len(scores):
        raise BadInput(
            f"{by.says('listed')} names {len(listed)} columns and {by.says('score')} {len(scores)}: name as many"
        )
    return replace(options, scores=scores, listed=listed)


def places_of(place: Place, parts: Sequence[tuple[str, list[pa.RecordBatch]]]) -> Callable[[int], str]:
    """What says where a row of all parts, one after another, stands in its file."""
    sizes = [(name, sum(b.num_rows for b in batches)) for name, batches in parts]

    def at_place(row: int) -> str:
        before, of_part = 0, Counter[str]()
        for name, rows in sizes:
            if row < before + rows:
                return place(name, of_part[name] + row - before)
            before += rows
            of_part[name] += rows
        return row_of("", row)

    return at_place


def class_scores(table: pa.Table | pa.RecordBatch, options: Reading) -> Floats:
    """The probabilities of every class, of columns of these or of what they are made of; NaN where one is missing."""
    p = np.empty((table.num_rows, len(options.scores)))
    for k in range(0, len(options.scores), AT_ONCE):  # side by side: a thousand columns written one by one are slow
        some = options.scores[k : k + AT_ONCE]
        own = np.stack([score_values(table.column(name), name, options.percent) for name in some])
        for rows in parts_of(len(p)):
            p[rows, k : k + AT_ONCE] = own[:, rows].T
    if options.logits and (options.listed or options.rest):
        if (p > LARGEST_LOG).any():
            fix = "of some classes logits tell no probability: pass log-probabilities, at most 0"
            raise BadInput(f"{options.caller.turns_on('logits')}: {fix}, and there is {np.nanmax(p):.6g}")
        return np.exp(p)
    if options.logits:
        from scipy.special import softmax

        return np.asarray(softmax(p, axis=1))
    if options.renormalize:
        return p / np.where((total := p.sum(axis=1, keepdims=True)) > 0.0, total, 1.0)
    return p


def one_label(table: pa.Table, labels: Sequence[str], called: ClassInputs) -> pa.Array:
    """The class of each row, of a column of 0 and 1 for each class, in the order of the columns of probabilities."""
    if len(labels) != len(called.scores):
        names = called.by.says("label")
        raise BadInput(f"{names} names {len(labels)} columns of {len(called.scores)} classes: name one of each")
    flags = np.column_stack([label_values(table.column(name), name, None) for name in labels])
    wrong = ~(flags.sum(axis=1) == 1.0)
    if wrong.any():
        first, named = called.place(int(np.argmax(wrong))), ", ".join(map(repr, labels[:4]))
        raise BadInput(f"columns {named}: {first} has not one of them at 1: each row belongs to one class")
    return pa.array([labels[i] for i in flags.argmax(axis=1).tolist()])
