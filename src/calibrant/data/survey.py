"""The first look at covariates: a uniform sample of rows, without their labels, fixes how a sketch codes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.data.coding import TOP, codings, is_date, is_number
from calibrant.data.columns import as_float, require
from calibrant.data.fine import ends_of
from calibrant.data.identity import identities
from calibrant.data.local_plan import DRAWS, MOST, local_spec, simulates
from calibrant.data.look import Look
from calibrant.data.predictions import Predictions
from calibrant.data.spec import Spec
from calibrant.errors import BadInput

EVERY = "*"
KEPT = 300_000  # rows that a sketch for tests keeps
ONE_VALUE = "it takes one value only"


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


def survey_rows(data: Predictions, spec: Spec, names: tuple[str, ...]) -> Survey | None:
    """Sample the covariates of rows in memory; None if no covariates are named."""
    if not names:
        return None
    table = data.covariates
    used = wanted(names, () if table is None else tuple(table.schema.names), spec)
    look = Look()
    look.add(identities(data.n, 0, spec.salt("")), data.p, {name: table.column(name) for name in used})
    return survey(look, used, EVERY in names)


def survey(look: Look, names: tuple[str, ...], every: bool) -> Survey:
    """Return what was seen; of "every column", leave out those that cannot be used."""
    import pyarrow as pa

    if look.empty:
        raise BadInput("no rows to audit: the data is empty")
    _, p, columns = look.best()
    left = tuple((name, why) for name in names if every and (why := _unusable(columns[name])))
    gone = {name for name, _ in left}
    used = tuple(name for name in names if name not in gone)
    return Survey(pa.table({n: columns[n] for n in used}), p, look.n, look.expected, used, left)


def with_parts(spec: Spec, found: Survey | None, tests: bool) -> Spec:
    """Return the spec with everything that the first look fixes."""
    if found is None:
        if tests:
            raise BadInput("tests need covariates: name them in variables=, or pass variables='*' for every column")
        return spec
    coded = codings(found.table, found.names)
    constant = tuple((c.name, ONE_VALUE) for c in coded if c.kind == "constant")
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


def wanted(names: tuple[str, ...], available: Sequence[str], spec: Spec) -> tuple[str, ...]:
    """Return the covariates to look at: those named, or every column that is not label, score or key."""
    taken = {spec.label, spec.score, *spec.key}
    if EVERY in names:
        return tuple(dict.fromkeys(c for c in available if c not in taken))
    require(names, available, "covariate")
    wrong = sorted(taken & set(names))
    if wrong:
        raise BadInput(f"covariate {wrong[0]!r} is the label, the score or the key: leave it out of variables")
    return tuple(dict.fromkeys(names))


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
