"""All that would make an audit refuse what it is given, found at once; it stops at the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ParamSpec

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.columns import ABSENT, Floats, label_values, require, score_values
from calibrant.data.layouts import decoded
from calibrant.data.profile import Profile
from calibrant.data.reading import Reading, fits
from calibrant.data.sketches.beside import Beside
from calibrant.data.sources.source import Source
from calibrant.data.specs.coding import codings
from calibrant.data.specs.faults import KINDS, Faults
from calibrant.data.survey import EVERY
from calibrant.errors import BadInput
from calibrant.look.looked import UNLABELLED
from calibrant.look.sample import Sampled

P = ParamSpec("P")


class Obstacles:
    """Refusals, each said once, in the order in which they were met."""

    def __init__(self) -> None:
        self.said: list[str] = []

    @contextmanager
    def met(self) -> Iterator[None]:
        """Note a refusal and go on after it."""
        try:
            yield
        except BadInput as e:
            self.note(str(e))

    def note(self, refusal: str) -> None:
        """Note a refusal."""
        if refusal not in self.said:
            self.said.append(refusal)

    def passes(self, check: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Return whether a check passes; note why if it does not."""
        try:
            check(*args, **kwargs)
        except BadInput as e:
            self.note(str(e))
            return False
        return True


def obstacles(source: Source, rows: Sampled, asked: Reading) -> tuple[str, ...]:
    """Return every refusal that an audit of these rows would end in, as far as the rows read show."""
    found = Obstacles()
    if not rows.table.num_rows:
        found.note(source.no_rows())
    # (1) columns that are there and may play the part
    named = [(asked.label, "label"), (asked.score, "score"), *((b, "group") for b in asked.by)]
    named += [*((c, "cluster") for c in asked.levels or (asked.cluster,)), (asked.weights, "weights")]
    named += [*((k, "key") for k in asked.key), *((v, "covariate") for v in asked.variables if v != EVERY)]
    there = {name for name, role in named if name and found.passes(require, [name], source.columns, role)}
    with found.met():
        known = {part: [c for c in columns if c in there] for part, columns in asked.roles.items()}
        fits(_with_nothing(source), known)
    with found.met():
        asked.plain_spec(_with_nothing(source, *(n for n, _ in named)))
    for name in rows.mixed:
        if name in there:
            found.note(f"column {name!r} is stored in types that do not go together: store it one way in every file")
            there.discard(name)
    # (2) what they hold
    held = there & {*rows.table.column_names}
    label, score = (name if name in held else "" for name in (asked.label, asked.score))
    _values(found, source, rows, replace(asked, label=label, score=score))
    for name in asked.by:
        if name in held:
            found.passes(_group, rows.table.column(name), name, asked)
    for name in asked.variables:
        if name in held:
            found.passes(codings, rows.table.select([name]), [name])
    return tuple(found.said)


def _with_nothing(source: Source, *more: str) -> Source:
    """Return the source with the names of absent columns among its own, which were refused before."""
    return replace(source, columns=(*source.columns, "", *(c for c in more if c and c not in source.columns)))


def _group(column: pa.ChunkedArray, name: str, asked: Reading) -> None:
    profile = Profile(name)
    profile.update(column)
    profile.variable(asked.bins.get(name))


def _values(found: Obstacles, source: Source, rows: Sampled, asked: Reading) -> None:
    """Note what is wrong with labels, and with scores, each column by itself."""
    n = rows.table.num_rows
    y, p = np.zeros(n), np.zeros(n)
    readable = found.passes(labels_of, rows.table, asked)
    if not readable:
        y[absent(rows.table.column(asked.label), asked.label)] = np.nan  # what is missing is missing all the same
    else:
        y = labels_of(rows.table, asked)
    taken = source.kinds.get(asked.score)
    if taken is None or found.passes(taken.score, asked.score):  # names the line of the file
        with found.met():
            p = scores_of(rows.table, asked)
    faults, spec, at = Faults(asker=asked.asker), asked.rows_spec(), 0
    held = {*rows.table.column_names}
    others = [c for c in dict.fromkeys((*asked.by, *asked.variables, *asked.key)) if c in held]
    cluster, weights = (name if name in held else "" for name in (spec.cluster, spec.weights))
    beside = replace(spec, cluster=cluster, weights=weights)
    for part, first, count in rows.runs:
        faults.see(p[at : at + count], spec.percent, part)
        faults.note(p[at : at + count], y[at : at + count], part, first)
        with found.met():
            Beside.of(rows.table.slice(at, count), beside, faults, part, first)
        if readable:
            faults.note_case(rows.table.slice(at, count), spec)
        faults.note_gaps(rows.table.slice(at, count), spec, others, part, first)
        at += count
    for kind in range(KINDS):
        one = replace(faults, counts=[c * (k == kind) for k, c in enumerate(faults.counts)], gaps={}, spelt=set())
        found.passes(one.check, spec)
    found.passes(replace(faults, counts=[0] * KINDS, gaps={}).check, spec)  # how the event is spelt
    for name, gap in faults.gaps.items():
        one = replace(faults, counts=[0] * KINDS, gaps={name: gap}, spelt=set())
        found.passes(one.check, spec)
    if asked.label and asked.positive is not None and readable and n and not (y == 1).any():
        found.note(f"positive={asked.positive!r} does not occur in column {asked.label!r}; check its spelling")
    if asked.score:
        found.passes(faults.check_scale, spec)
    if n and spec.drops and not (~np.isnan(y) & ~np.isnan(p)).any():
        found.note("no rows are left after dropping missing values")


def labels_of(table: pa.Table, asked: Reading) -> Floats:
    """Return labels as numbers, NaN where missing; zeros without a label."""
    if asked.label not in table.column_names:
        return np.zeros(table.num_rows)
    return label_values(table.column(asked.label), asked.label, asked.positive).astype(np.float64)


def scores_of(table: pa.Table, asked: Reading) -> Floats:
    """Return scores as numbers from 0 to 1, NaN where missing; zeros without a score."""
    if asked.score not in table.column_names:
        return np.zeros(table.num_rows)
    return score_values(table.column(asked.score), asked.score, asked.percent)


def dropped_rows(table: pa.Table, asked: Reading) -> dict[str, int]:
    """Return the rows that are left out where label or score is missing, by reason."""
    gone = {}
    for name in (asked.label, asked.score):
        gone[name] = np.zeros(table.num_rows, dtype=bool)
        if name in table.column_names:
            gone[name] = absent(table.column(name), name)
    y, p = gone[asked.label], gone[asked.score]
    found = {UNLABELLED: y & ~p, "score missing": p & ~y, "label and score missing": y & p}
    return {why: int(rows.sum()) for why, rows in found.items() if rows.any()}


def absent(column: pa.ChunkedArray, name: str) -> NDArray[np.bool_]:
    """Return where a column holds nothing: null, NaN, or a text that says so."""
    values = decoded(column, name)
    there = values.is_valid()
    if pa.types.is_floating(values.type):
        there = pc.and_(there, pc.fill_null(pc.invert(pc.is_nan(values)), False))
    if pa.types.is_string(values.type):
        there = pc.and_(there, pc.invert(pc.is_in(values, value_set=pa.array(ABSENT))))
    out: NDArray[np.bool_] = ~there.to_numpy(zero_copy_only=False)
    return out
