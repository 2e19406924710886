"""Whose probabilities a column of several classes holds, what refusals call columns and rows, and rows that list some
classes only: what they lack of one is one more class.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import PYTHON, Caller, shown
from calibrant.data.arrays import column_of
from calibrant.data.columns import (
    ABSENT,
    Floats,
    absent_labels,
    as_text,
    is_number,
    label_values,
    letters_of,
    number_texts,
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
    """What was asked for with columns in place of patterns; those that name classes may come with the others."""
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


# ---- Rows that list some classes only, such as the most probable ----

REST = "(rest)"  # the class of whatever a row does not list
MOST = 1 << 27  # probabilities of all classes at most: 1 GB


def class_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Labels, or names of classes, as text; null where there is none."""
    plain = decoded(column)
    return number_texts(plain) if is_number(plain.type) else as_text(plain)


def by_class(p: Floats, listed: Sequence[pa.Array], called: ClassInputs) -> tuple[Floats, tuple[str, ...]]:
    """The probabilities that rows list, by class: a column for each that any row lists, NaN where a row does not.

    `p` (n, k): NaN where a row lists fewer. `listed`: the classes of its columns.
    """
    texts = [class_texts(column) for column in listed]
    there = ~np.isnan(p)
    seen = pc.unique(pa.concat_arrays([text.filter(pa.array(own)) for text, own in zip(texts, there.T, strict=True)]))
    order = sorted(seen.drop_null().to_pylist(), key=lambda n: (not n.isdecimal(), int(n) if n.isdecimal() else 0, n))
    if len(p) * len(order) > MOST:
        raise BadInput(
            f"{called.every_score}: {len(p):,} rows list {len(order):,} classes, and {MOST:,} probabilities fit in "
            "memory: name fewer rows, or call rare classes by one name"
        )
    code = np.column_stack([pc.fill_null(pc.index_in(t, value_set=pa.array(order)), -1) for t in texts])
    if (lack := there & (code < 0)).any():
        row, at = np.argwhere(lack)[0]
        raise BadInput(f"{called.score(at)}: {called.place(row)} has a probability and no class: name the class")
    row, at = np.nonzero(there)
    place = row * len(order) + code[row, at]
    if len(twice := np.flatnonzero(np.diff(np.sort(place)) == 0)):
        first, which = divmod(int(np.sort(place)[twice[0]]), len(order))
        raise BadInput(
            f"{called.every_score}: {called.place(first)} lists {order[which]!r} twice: list each class once"
        )
    out = np.full((len(p), len(order)), np.nan)
    out.reshape(-1)[place] = p[row, at]
    return out, tuple(order)


def with_rest(
    p: Floats, labels: pa.Array, names: tuple[str, ...], called: ClassInputs
) -> tuple[Floats, pa.Array, tuple[str, ...]]:
    """Probabilities, labels and names of classes, of which the last, `REST`, has what a row lacks of one.

    A class that is NaN or 0 is not listed. A row whose label it does not list belongs to `REST`. So whether a class is
    listed and true has exactly the probability listed, if all probabilities are right, whatever chose the lists. A row
    that lists no class has no most probable one: it comes back as missing.
    """
    if REST in names:
        raise BadInput(f"{called.every_score} lists a class {REST!r}, which is what the rest is called: rename it")
    p = np.where(np.isnan(p), 0.0, p)
    total = p.sum(axis=1)
    wrong = (p < 0.0).any(axis=1) | ~(total <= 1.0 + ROUNDED)
    if wrong.any():
        raise BadInput(_no_lists(p, total, wrong, called))
    p /= np.maximum(total, 1.0)[:, None]
    rest = 1.0 - p.sum(axis=1)
    known, texts = ~absent_labels(labels, names), class_texts(labels)
    code = pc.fill_null(pc.index_in(texts, value_set=pa.array(names)), -1).to_numpy(zero_copy_only=False)
    if known.any() and not (known & (code >= 0)).any():
        label = texts[int(np.argmax(known))].as_py()
        raise BadInput(
            f"{called.label} holds {label!r} and no class that a row lists, such as {names[0]!r}: write both alike"
        )
    listed = pa.array((code >= 0) & (p[np.arange(len(p)), code] > 0.0))
    labels = pc.if_else(pa.array(known), pc.if_else(listed, texts, REST), None)
    out = np.column_stack([p, np.where(rest > EXACT, rest, 0.0)])
    out[total == 0.0] = np.nan
    return out, labels, (*names, REST)


def named_labels(labels: pa.Array | pa.ChunkedArray, options: Reading) -> pa.Array:
    """Labels; numbers as text where they are what columns are called, p_1 to p_5 of 1 to 5, and of lists."""
    plain, texts = decoded(labels), class_texts(labels)
    names = {*differing(options.scores)}
    return texts if options.rest or {*pc.unique(texts.drop_null()).to_pylist()} <= names else plain


def probabilities_of(
    table: pa.Table, labels: pa.Array, names: tuple[str, ...], options: Reading, called: ClassInputs
) -> tuple[Floats, pa.Array, tuple[str, ...]]:
    """Probabilities of all classes, labels and names; with `REST` where rows list some classes."""
    p = class_scores(table, options)
    if options.listed:
        p, names = by_class(p, [table.column(c) for c in options.listed], called)
    elif not options.rest:
        return p, labels, names
    return with_rest(p, labels, names, called)


def _no_lists(p: Floats, total: Floats, wrong: NDArray[np.bool_], called: ClassInputs) -> str:
    """Say what is wrong with the first row that lists no probabilities, and what to do."""
    row, n = int(np.argmax(wrong)), int(wrong.sum())
    stated = f"{called.every_score}: {n:,} {'row lists' if n == 1 else 'rows list'} no probabilities that add up to at "
    stated += f"most one; first: {called.place(row)}, "
    if (negative := p[row] < 0.0).any():
        mend = "of log-probabilities pass " + (called.by.turns_on("logits") if called.caller else "their exponential")
        return f"{stated}{p[row, int(np.argmax(negative))]:.6g}: {mend}"
    percent = f"of percentages pass {called.by.turns_on('percent')}" if called.caller else "pass y_prob / 100"
    return f"{stated}sum {total[row]:.6g}: {percent if total[row] > 2.0 else 'correct them'}"
