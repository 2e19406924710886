"""Covariates as they come: what becomes a number, a level, a date, a missing indicator, or nothing."""

from __future__ import annotations

import datetime as dt

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data.specs.coding import Coding, codings, encode


def one(values: object) -> Coding:
    return codings(pa.table({"v": values}))[0]


def test_kinds() -> None:
    rng = np.random.default_rng(5)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 300, 50)]
    file_versions = pa.array([dt.datetime(2024, 1, 1, 6) + dt.timedelta(days=i) for i in range(9)])
    assert [
        one(v).kind
        for v in (rng.normal(size=50), ["a", "b"], [True, False], days, file_versions, [3, 3, 3], pa.nulls(4))
    ] == [
        "number",
        "category",
        "category",
        "date",
        "date",
        "constant",
        "constant",
    ]
    assert encode(pa.table({"v": file_versions}), [one(file_versions)]).numbers[0, 0] == 19723.25


def test_missing_numbers_are_filled_flagged_and_kept() -> None:
    t = pa.table({"v": pa.array([1.0, None, 3.0, 10.0]), "c": ["a", None, "", "b"]})
    how = codings(t)
    e = encode(t, how)
    assert how[0].fill == 3.0
    assert how[0].missing
    assert np.isnan(e.numbers[1, 0])
    assert not np.isnan(e.scaled).any()
    assert e.level_names == ("c", "v is missing")
    assert e.level_of == ("c", "v")
    labels = [e.level_labels[0][k] for k in e.codes[:, 0]]
    assert labels == ["a", "missing", "missing", "b"]
    assert e.codes[:, 1].tolist() == [0, 1, 0, 0]


def test_heavy_tails_use_ranks_and_say_so() -> None:
    rng = np.random.default_rng(6)
    heavy, light = one(rng.standard_cauchy(5000)), one(rng.normal(size=5000))
    assert (heavy.scaling, light.scaling) == ("rank", "standard")
    scaled = encode(pa.table({"v": [1e12, -1e12, 0.0]}), [heavy]).scaled[:, 0]
    assert np.abs(scaled).max() < 2


def test_levels_not_seen_before_are_other() -> None:
    how = codings(pa.table({"v": ["a", "b", "a"]}))
    t = pa.table({"v": pa.array(["b", "z", None]).dictionary_encode()})
    e = encode(t, how)
    assert [e.level_labels[0][k] for k in e.codes[:, 0]] == ["b", "other", "missing"]


def test_a_value_called_missing_is_told_from_a_missing_one() -> None:
    assert one(["missing", "other", None]).labels[-2:] == ("(other)", "(missing)")


def test_thousands_of_levels() -> None:
    rng = np.random.default_rng(7)
    values = [f"shop {k}" for k in rng.integers(0, 6000, 20_000)]
    c = one(values)
    assert len(c.levels) == 4096
    assert encode(pa.table({"v": values}), [c]).codes.max() == 4096


@pytest.mark.parametrize(("values", "says"), [([1.0, np.inf], "infinite"), ([[1], [2]], "list"), ([b"\xff"], "UTF-8")])
def test_what_cannot_be_used_is_refused(values: object, says: str) -> None:
    with pytest.raises(cal.BadInput, match=f"'v'.*{says}"):
        one(values)


def test_codings_survive_a_round_trip() -> None:
    from dataclasses import asdict

    for c in codings(pa.table({"v": np.random.default_rng(8).standard_cauchy(900), "c": ["x", "y", None] * 300})):
        assert msgspec.convert(asdict(c), Coding) == c
