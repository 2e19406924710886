"""Columns of every Arrow type in every role work, or are refused in one line; nothing else happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from column_types import N, columns

COLUMNS = list(columns())
RNG = np.random.default_rng(0x401E)
P = RNG.uniform(size=N)
Y = (RNG.uniform(size=N) < P).astype(int)
NAMED = {"label": "y", "score": "p"}


def table(**other: Any) -> pa.Table:
    return pa.table({"y": pa.array(Y), "p": pa.array(P)} | other)


ROLES: dict[str, Callable[[pa.Array], object]] = {
    "label": lambda c: cal.sketch(table(y=c), **NAMED),
    "case": lambda c: cal.sketch(table(y=c), positive="1", **NAMED),
    "score": lambda c: cal.sketch(table(p=c), **NAMED),
    "by": lambda c: cal.sketch(table(c=c), by="c", **NAMED),
    "rows": lambda c: cal.sketch(cal.read(table(c=c), by="c", **NAMED), by="c", variables="c"),
    "variable": lambda c: cal.sketch(table(c=c), variables="c", tests=True, **NAMED),
    "every": lambda c: cal.sketch(table(c=c), variables="*", **NAMED),
    "key": lambda c: cal.sketch(table(c=c), key="c", **NAMED),
}


def works_or_says_why(role: str, column: pa.Array) -> bool:
    try:
        ROLES[role](column)
    except cal.BadInput as e:
        why = str(e)
    else:
        return True
    assert "\n" not in why
    assert 20 < len(why) < 400
    return False


def test_there_are_hundreds_of_them() -> None:
    assert len(COLUMNS) >= 370
    assert len({str(column.type) for _, column in COLUMNS}) >= 150


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_a_sample_of_columns_in_a_role(role: str) -> None:
    for _, column in COLUMNS[sum(map(ord, role)) % 17 :: 17]:
        works_or_says_why(role, column)


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("start", [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in (1, 2))])
def test_every_column_in_a_role(role: str, start: int) -> None:
    for _, column in COLUMNS[start::3]:
        works_or_says_why(role, column)


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(1, 8))])
def test_audits_of_every_column(start: int) -> None:
    for name, column in COLUMNS[start::8]:
        sketched = works_or_says_why("by", column)
        try:
            cal.audit(table(c=column), by="c", variables="c", quick=True, **NAMED)
        except cal.BadInput:
            assert not sketched, name


USABLE = (
    "int",
    "uint",
    "halffloat few",
    "float few",
    "double few",
    "decimal",
    "date",
    "timestamp[",
    "bool",
    "string few",
)


@pytest.mark.slow
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("role", ["by", "rows", "variable"])
def test_usual_columns_are_used(role: str, every: int) -> None:
    usual = [
        (n, c) for n, c in COLUMNS if (n.startswith(USABLE) and " few" in n) or n.startswith(("bool", "uuid", "16 b"))
    ]
    assert len(usual) > 100
    assert [name for name, column in usual[::every] if not works_or_says_why(role, column)] == []


@pytest.mark.slow
def test_no_column_stops_an_audit_of_every_column() -> None:
    plain = [c for _, c in COLUMNS]
    many = table(**{f"c{j}": c for j, c in enumerate(plain)})
    found = cal.sketch(many, variables="*", **NAMED).spec
    assert len(found.codings) + len(found.left_out) == len(plain)
    assert all(why for _, why in found.left_out)
