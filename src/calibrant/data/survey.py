"""The first look at covariates: a uniform sample of rows, without their labels, fixes how a sketch codes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.data.coding import TOP, codings, is_date, is_number
from calibrant.data.columns import as_float, decoded, require, row_ids
from calibrant.data.fine import ends_of
from calibrant.data.identity import identities
from calibrant.data.local_plan import DRAWS, MOST, local_spec, simulates
from calibrant.data.predictions import Predictions
from calibrant.data.sample import smallest
from calibrant.data.sources import Source
from calibrant.data.spec import Spec
from calibrant.errors import BadInput

EVERY = "*"
LOOK = 20_000  # rows that fix the codings
KEPT = 300_000  # rows that a sketch for tests keeps


@dataclass(frozen=True)
class Survey:
    """What the first look found.

    Parameters
    ----------
    table : pyarrow.Table
        Covariates of the sampled rows, by increasing hashed identity.
    p : float64 array
        Scores of the sampled rows.
    n : int
        Rows with a score in all.
    expected : float
        Sum of all scores.
    names : tuple of str
        Covariates that can be used.
    left_out : tuple of (str, str)
        Those of "every column" that cannot, and why.
    """

    table: Any
    p: Any
    n: int
    expected: float
    names: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def survey(opened: Source, spec: Spec, names: tuple[str, ...]) -> Survey | None:
    """Sample the covariates of a source in one pass; None if no covariates are named."""
    if not names:
        return None
    if not opened.again:
        raise BadInput(
            "a stream can be read only once and covariates need a first look: pass spec=, or a table or file"
        )
    wanted = _wanted(names, opened.columns, spec)
    look = _Look()
    for part in opened.parts:
        row, salt = part.first_row, spec.salt("" if spec.key else part.name)
        for batch in part.read(list(dict.fromkeys([spec.score, *wanted, *spec.key])), (spec.score,)):
            own = row_ids([batch.column(k) for k in spec.key], spec.seed) if spec.key else None
            ids = identities(batch.num_rows, row, salt, own)
            p = as_float(batch.column(spec.score), spec.score, "score")
            look.add(ids, p, {name: batch.column(name) for name in wanted})
            row += batch.num_rows
    return look.survey(wanted, EVERY in names)


def survey_rows(data: Predictions, spec: Spec, names: tuple[str, ...]) -> Survey | None:
    """Sample the covariates of rows in memory; None if no covariates are named."""
    if not names:
        return None
    table = data.covariates
    wanted = _wanted(names, () if table is None else tuple(table.schema.names), spec)
    look = _Look()
    look.add(identities(data.n, 0, spec.salt("")), data.p, {name: table.column(name) for name in wanted})
    return look.survey(wanted, EVERY in names)


def with_parts(spec: Spec, found: Survey | None, tests: bool) -> Spec:
    """Return the spec with everything that the first look fixes."""
    if found is None:
        if tests:
            raise BadInput("tests need covariates: name them in variables=, or pass variables='*' for every column")
        return spec
    coded = codings(found.table, found.names)
    constant = tuple((c.name, "it takes one value only") for c in coded if c.kind == "constant")
    used = tuple(
        replace(c, cells=ends_of(found.table.column(c.name), c.name)) if c.kind in ("number", "date") else c
        for c in coded
        if c.kind != "constant"
    )
    spec = replace(spec, codings=used, left_out=(*found.left_out, *constant), sample=KEPT if tests else 0)
    if not tests or len(used) > MOST:
        return spec
    draws = DRAWS if simulates("auto", found.n, found.expected) else 0
    return replace(spec, local=local_spec(found.p, found.table, used, draws, spec.seed))


def _wanted(names: tuple[str, ...], available: Sequence[str], spec: Spec) -> tuple[str, ...]:
    taken = {spec.label, spec.score, *spec.key}
    if EVERY in names:
        return tuple(dict.fromkeys(c for c in available if c not in taken))
    require(names, available, "covariate")
    wrong = sorted(taken & set(names))
    if wrong:
        raise BadInput(f"covariate {wrong[0]!r} is the label, the score or the key: leave it out of variables")
    return tuple(dict.fromkeys(names))


class _Look:
    """Bottom-k sample of rows by hashed identity."""

    def __init__(self) -> None:
        self.n, self.expected = 0, 0.0
        self.kept: list[tuple[Any, Any, dict[str, Any]]] = []
        self.limit = np.uint64(0xFFFFFFFFFFFFFFFF)  # no larger hash can be among the smallest

    def add(self, ids: Any, p: Any, columns: dict[str, Any]) -> None:
        """Look at a batch: keep its smallest hashes only."""
        import pyarrow as pa

        good = (p >= 0.0) & (p <= 1.0)
        self.n += int(good.sum())
        self.expected += float(p[good].sum())
        rows = np.flatnonzero(good & (ids <= self.limit))
        rows = rows[smallest(ids[rows], (), LOOK)]
        take = pa.array(rows)
        self.kept.append((ids[rows], p[rows], {k: _taken(v, take) for k, v in columns.items()}))
        if sum(len(k[0]) for k in self.kept) > 3 * LOOK:
            self.kept = [self._best()]
            self.limit = self.kept[0][0][-1]

    def _best(self) -> tuple[Any, Any, dict[str, Any]]:
        import pyarrow as pa

        ids, p = (np.concatenate([k[i] for k in self.kept]) for i in (0, 1))
        order = smallest(ids, (p,), LOOK)
        take = pa.array(order)
        columns = {name: _joined([k[2][name] for k in self.kept], name).take(take) for name in self.kept[0][2]}
        return ids[order], p[order], columns

    def survey(self, names: tuple[str, ...], every: bool) -> Survey:
        """Return what was seen; of "every column", leave out those that cannot be used."""
        import pyarrow as pa

        if not self.kept:
            raise BadInput("no rows to audit: the data is empty")
        _, p, columns = self._best()
        left = tuple((name, why) for name in names if every and (why := _unusable(columns[name])))
        gone = {name for name, _ in left}
        used = tuple(name for name in names if name not in gone)
        return Survey(pa.table({n: columns[n] for n in used}), p, self.n, self.expected, used, left)


def _taken(column: Any, take: Any) -> Any:
    """Return some values in a plain layout; a dictionary is not spelt out for the others."""
    import pyarrow as pa

    return decoded((column if pa.types.is_dictionary(column.type) else decoded(column)).take(take))


def _joined(chunks: Sequence[Any], name: str) -> Any:
    import pyarrow as pa

    try:
        table = pa.concat_tables([pa.table({"x": c}) for c in chunks], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise BadInput(
            f"covariate {name!r} is stored as different types in different files: store it one way"
        ) from None
    return decoded(table.column("x"))


def _unusable(column: Any) -> str:
    """Return why a column is no covariate; empty if it is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t = column.type
    if pa.types.is_null(t):
        return "it is empty"
    if is_number(t) or is_date(t) or pa.types.is_boolean(t):
        if is_number(t) and not np.isfinite(v := as_float(column, "", "covariate"))[~np.isnan(v)].all():
            return "it holds infinite values"
        return ""
    if not pa.types.is_string(t):
        return f"it holds {t}"
    distinct = len(pc.unique(column))
    if distinct > max(TOP, 12) or (distinct > 12 and distinct > 0.5 * len(column)):
        return "it looks like an identifier: most of its values occur once"
    return ""
