"""Rows that list some classes only, such as the most probable: what they lack of one is one more class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.classes.columns import EXACT, ROUNDED, ClassInputs, class_scores, differing
from calibrant.data.columns import (
    Floats,
    absent_labels,
    as_text,
    is_number,
    number_texts,
)
from calibrant.data.layouts import decoded
from calibrant.data.reading import Reading
from calibrant.errors import BadInput

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
