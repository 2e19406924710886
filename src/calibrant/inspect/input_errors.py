"""All that would make an audit refuse what it is given, found at once; it stops at the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import ParamSpec

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.columns import (
    Floats,
    absent_labels,
    is_number,
    label_values,
    no_events,
    no_such_event,
    require,
    score_values,
)
from calibrant.data.layouts import decoded
from calibrant.data.profile import LevelCounts
from calibrant.data.reading import Reading, fits
from calibrant.data.sketches.sample import RowAttributes
from calibrant.data.sources.source import Source
from calibrant.data.specs.coding import codings
from calibrant.data.specs.faults import WEIGHT_ZERO, Faults
from calibrant.data.survey import EVERY
from calibrant.errors import BadInput
from calibrant.inspect.columns import Sampled
from calibrant.inspect.looked import UNLABELLED, WEIGHTLESS

P = ParamSpec("P")


class InputErrors:
    """Refusals, each said once, in the order in which they were met."""

    def __init__(self) -> None:
        self.stated: list[str] = []

    @contextmanager
    def met(self) -> Iterator[None]:
        """Note a refusal and go on after it."""
        try:
            yield
        except BadInput as e:
            self.note(str(e))

    def note(self, refusal: str) -> None:
        """Note a refusal."""
        if refusal not in self.stated:
            self.stated.append(refusal)

    def passes(self, check: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Whether a check passes; note why if it does not."""
        try:
            check(*args, **kwargs)
        except BadInput as e:
            self.note(str(e))
            return False
        return True


def input_errors(source: Source, rows: Sampled, options: Reading) -> tuple[str, ...]:
    """Every refusal that an audit of these rows would end in, as far as the rows read show."""
    result = InputErrors()
    if not rows.table.num_rows:
        result.note(source.no_rows())
    # (1) columns that are there and may play the part
    named = [(options.label, "label"), (options.score, "score"), *((b, "group") for b in options.by)]
    named += [*((c, "cluster") for c in options.levels or (options.cluster,)), (options.weights, "weights")]
    named += [*((k, "key") for k in options.key), *((v, "covariate") for v in options.variables if v != EVERY)]
    there = {name for name, role in named if name and result.passes(require, [name], source.columns, role)}
    with result.met():
        known = {part: [c for c in columns if c in there] for part, columns in options.roles.items()}
        fits(_with_nothing(source), known)
    with result.met():
        options.plain_spec(_with_nothing(source, *(n for n, _ in named)))
    for name in rows.mixed:
        if name in there:
            result.note(f"column {name!r} is stored in types that do not go together: store it one way in every file")
            there.discard(name)
    # (2) what they hold
    kept = there & {*rows.table.column_names}
    label, score = (name if name in kept else "" for name in (options.label, options.score))
    _values(result, source, rows, replace(options, label=label, score=score))
    for name in options.by:
        if name in kept:
            with result.met():
                counts = LevelCounts(name)
                counts.update(rows.table.column(name))
                counts.variable(options.bins.get(name))
    for name in options.variables:
        if name in kept:
            result.passes(codings, rows.table.select([name]), [name])
    return tuple(result.stated)


def _with_nothing(source: Source, *more: str) -> Source:
    """The source with the names of absent columns among its own, which were refused before."""
    return replace(source, columns=(*source.columns, "", *(c for c in more if c and c not in source.columns)))


def _values(result: InputErrors, source: Source, rows: Sampled, options: Reading) -> None:
    """Note what is wrong with labels, and with scores, each column by itself."""
    n = rows.table.num_rows
    y, p, readable = np.zeros(n), np.zeros(n), False
    with result.met(), source.naming_lines():
        y, readable = labels_of(rows.table, options), True
    if not readable:
        y[absent(rows.table.column(options.label), options.label)] = np.nan  # what is missing is missing all the same
    taken = source.kinds.get(options.score)
    if taken is None or result.passes(taken.score, options.score):  # names the line of the file
        with result.met():
            p = scores_of(rows.table, options)
    faults, spec, at = Faults(caller=options.caller), options.rows_spec(), 0
    kept = {*rows.table.column_names}
    others = [c for c in dict.fromkeys((*options.by, *options.variables, *options.key)) if c in kept]
    cluster, weights = (name if name in kept else "" for name in (spec.cluster, spec.weights))
    present = replace(spec, cluster=cluster, weights=weights)
    for part, first, count in rows.runs:
        faults.see(p[at : at + count], spec.percent, part)
        faults.note(p[at : at + count], y[at : at + count], part, first)
        with result.met():
            RowAttributes.of(rows.table.slice(at, count), present, faults, part, first)
        if readable:
            faults.note_event(rows.table.slice(at, count), spec)
        faults.note_gaps(rows.table.slice(at, count), spec, others, part, first)
        at += count
    for _, why in sorted(faults.refusals(spec, source.place)):
        result.note(why)
    if options.label and options.positive is not None and readable and n and not (y == 1).any():
        values = no_events(
            rows.table.column(options.label), options.label, options.positive, np.ones(n, dtype=np.bool_)
        )
        result.note(no_such_event(values, f"column {options.label!r}", options.positive))
    if options.score:
        result.passes(faults.check_scale, spec)
    if n and faults.counts[WEIGHT_ZERO] == n:
        result.note(f"column {weights!r} is 0 in every row: no rows are left")
    if n and spec.drops and not (~np.isnan(y) & ~np.isnan(p)).any():
        result.note("no rows are left after dropping missing values")


def labels_of(table: pa.Table, options: Reading) -> Floats:
    """Labels as numbers, NaN where missing; zeros without a label."""
    if options.label not in table.column_names:
        return np.zeros(table.num_rows)
    return label_values(table.column(options.label), options.label, options.positive).astype(np.float64)


def scores_of(table: pa.Table, options: Reading) -> Floats:
    """Scores as numbers from 0 to 1, NaN where missing; zeros without a score."""
    if options.score not in table.column_names:
        return np.zeros(table.num_rows)
    return score_values(table.column(options.score), options.score, options.percent)


def dropped_rows(
    table: pa.Table, labels: Sequence[str], scores: Sequence[str], classes: Sequence[str] = ()
) -> dict[str, int]:
    """The rows that are left out where a label or a score is missing, by reason; `classes` are no missing labels."""
    y, p = _gone(table, labels, classes), _gone(table, scores)
    results = {UNLABELLED: y & ~p, "score missing": p & ~y, "label and score missing": y & p}
    return {why: int(rows.sum()) for why, rows in results.items() if rows.any()}


def _gone(table: pa.Table, columns: Sequence[str], classes: Sequence[str] = ()) -> NDArray[np.bool_]:
    """In which rows one of some columns holds nothing."""
    each = [absent(table.column(name), name, classes) for name in columns if name in table.column_names]
    return np.any(each, axis=0) if each else np.zeros(table.num_rows, dtype=bool)


def first_dropped(source: Source, rows: Sampled, columns: Sequence[str], classes: Sequence[str] = ()) -> str:
    """Say where the first row stands in which one of some columns holds nothing; nothing if all have values."""
    gone, at = _gone(rows.table, columns, classes), 0
    for part, first, count in rows.runs if gone.any() else ():
        if gone[at : at + count].any():
            return source.place(part, first + int(np.argmax(gone[at : at + count])))
        at += count
    return ""


def weightless(table: pa.Table, weights: str) -> dict[str, int]:
    """The rows that are left out because their weight is 0, by reason; none where the column holds no numbers."""
    values = decoded(table.column(weights), weights) if weights in table.column_names else pa.nulls(0)
    rows = (pc.sum(pc.equal(values, 0)).as_py() or 0) if is_number(values.type) else 0
    return {WEIGHTLESS: rows} if rows else {}


def absent(column: pa.ChunkedArray, name: str, classes: Sequence[str] = ()) -> NDArray[np.bool_]:
    """Where a column holds nothing: null, NaN, or a text that says so and is none of the `classes`."""
    return absent_labels(decoded(column, name), classes)
