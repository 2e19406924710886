"""Rules say what they select: text and data read back to the same rows, and joined conditions to their intersection."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.specs.attributes import between
from calibrant.diagnose.rule_search import Binned, conditions_of
from calibrant.views.features import SCORE
from calibrant.views.rules import Columns, Condition, columns_of, extended, quoted, text_of
from effort import examples


def drawn(seed: int, n: int = 160) -> Any:
    """Rows with whole numbers, decimals with gaps, dates, levels, and ties."""
    rng = np.random.default_rng([0x2C1E, seed])
    bmi = np.where(rng.random(n) < 0.2, np.nan, rng.normal(27, 5, n).round(int(rng.integers(0, 4))))
    day = np.datetime64("2020-01-01") + rng.integers(0, 400, n)
    at = np.datetime64("2021-03-01T08:00:00") + rng.integers(0, 10**7, n)
    table = {
        "age": rng.integers(18, 95, n),
        "bmi": bmi,
        "day": day,
        "at": at,
        "tiny": rng.normal(size=n) * 1e-7,
        "ward": rng.choice(["north", "south", "east"], n),
        "sex": rng.choice(["f", "m"], n),
        "big": rng.integers(0, 10**9, n),
    }
    return cal.predictions(rng.integers(0, 2, n), rng.uniform(size=n), table)


def read(text: str, columns: Columns) -> Any:
    """Select rows by the words of a rule alone."""
    out = np.ones(len(next(iter(columns.numbers.values()))), dtype=bool)
    for part in text.split(" and "):
        name = next(n for n in (SCORE, *columns.how) if part.startswith(f"{n} "))
        rest = part.removeprefix(f"{name} ")
        if name in columns.codes:
            labels = np.array(columns.labels[name])[columns.codes[name]]
            wanted = rest.removeprefix("= ").removeprefix("not ").split(" or ")
            out &= np.isin(labels, wanted) == rest.startswith("= ")
            continue
        x, absent = columns.numbers[name], np.isnan(columns.numbers[name])
        inside = ~absent & (rest != "missing")
        for word, number in re.findall(r"(over|after|up to) (\S+?)(?:,|$| or)", rest):
            if word == "after" or (word == "up to" and re.match(r"\d{4}-\d\d-", number)):
                t = float(np.datetime64(number, "us").astype(np.int64)) / 86_400_000_000
            else:
                t = float(number)
            inside &= x > t if word in ("over", "after") else x <= t
        out &= inside | absent if rest.endswith("missing") else inside
    return out


@examples(25)
@given(seed=st.integers(0, 10**6))
def test_rules_of_trees_read_back_to_the_same_rows(seed: int) -> None:
    data = drawn(seed)
    columns = columns_of(data, None)
    target = np.random.default_rng([1, seed]).normal(size=data.n)
    rules = Binned.of(columns).grown(target, np.ones(len(target)), 3, 4)
    assert rules
    for rule in rules:
        rows = columns.matching(rule)
        assert 0 < rows.sum() < data.n
        np.testing.assert_array_equal(rows, read(text_of(rule), columns))
        np.testing.assert_array_equal(rows, columns.matching([Condition.from_dict(c.to_dict()) for c in rule]))
        assert len({c.variable for c in rule}) == len(rule)


@examples(25)
@given(seed=st.integers(0, 10**6), picks=st.lists(st.integers(0, 10**6), min_size=2, max_size=4))
def test_joined_conditions_select_the_intersection(seed: int, picks: list[int]) -> None:
    columns = columns_of(drawn(seed), None)
    every = conditions_of(columns, 5)
    rule: tuple[Condition, ...] = ()
    rows = np.ones(160, dtype=bool)
    for pick in picks:
        rule = extended(rule, every[pick % len(every)], columns)
        rows &= columns.select(every[pick % len(every)])
        np.testing.assert_array_equal(columns.matching(rule), rows)
    if rows.any():
        np.testing.assert_array_equal(rows, read(text_of(rule), columns))


@given(low=st.floats(-1e12, 1e12), gap=st.floats(1e-6, 1e12))
def test_a_cut_parts_what_it_should_and_is_short(low: float, gap: float) -> None:
    high = low + gap
    if low < high:
        t = between(low, high, "number", False)
        assert low <= t < high
        assert len(repr(t)) <= len(repr(low)) + 24
    a, b = float(np.floor(low)), float(np.floor(low)) + 1.0 + np.floor(gap)
    t = between(a, b, "number", True)
    assert a <= t < b
    assert t.is_integer()


@pytest.mark.parametrize("end", [{"above": 0.0}, {"up_to": 0.0}, {"above": 0.0, "up_to": 2.0}, {"above": np.inf}])
def test_a_condition_at_zero_is_written_as_data(end: dict[str, float]) -> None:
    asked = Condition(variable="x", kind="number", missing=np.inf in end.values(), **end)
    assert Condition.from_dict(asked.to_dict()) == asked


def test_words() -> None:
    assert Condition(variable="age", kind="number", above=72.0).text == "age over 72"
    assert Condition(variable="age", kind="number", above=30.0, up_to=40.5).text == "age over 30, up to 40.5"
    assert Condition(variable="bmi", kind="number", up_to=20.0, missing=True).text == "bmi up to 20 or missing"
    assert Condition(variable="bmi", kind="number", above=np.inf, missing=True).text == "bmi missing"
    assert Condition(variable="day", kind="date", above=18262.0, whole=True).text == "day after 2020-01-01"
    assert Condition(variable="sex", kind="category", levels=("female",)).text == "sex = female"
    assert Condition(variable="ward", kind="category", others=("a", "b")).text == "ward not a or b"
    joined = Condition(variable="ward", kind="category", others=("a",)).joined(
        Condition(variable="ward", kind="category", others=("b",)), ("a", "b", "c")
    )
    assert joined.text == "ward = c"


AWKWARD = [
    "x or y",
    "not z",
    "",
    "a and b",
    "c",
    "x",
    "y",
    "z",
    " x",
    "over 5",
    "up to 5",
    "a = b",
    'say "x"',
    "\\",
]


def parts(text: str) -> list[str]:
    """Split a rule into quoted names and plain words, quotes taken off the former."""
    pieces = re.findall(r'("(?:[^"\\]|\\.)*")|([^" ]+)', text)
    return [repr(json.loads(q)) if q else word for q, word in pieces]


@examples(200)
@given(
    names=st.lists(
        st.sampled_from(["ward", "sex and age", "not in", "b = c", ""]), min_size=1, max_size=3, unique=True
    ),
    levels=st.lists(st.lists(st.sampled_from(AWKWARD), min_size=1, max_size=3, unique=True), min_size=3, max_size=3),
    no=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_awkward_names_are_quoted_so_that_a_rule_reads_one_way(names: Any, levels: Any, no: Any) -> None:
    rule, expected = [], []
    for name, some, negated in zip(names, levels, no, strict=False):
        rule.append(Condition(variable=name, kind="category", **{"others" if negated else "levels": tuple(some)}))
        stated = [quoted(v) for v in (name, *some)]
        reported = [repr(v) if q != v else v for v, q in zip((name, *some), stated, strict=True)]
        expected += ["and"] * bool(expected) + [reported[0], "not" if negated else "="]
        expected += [word for v in reported[1:] for word in (v, "or")][:-1]
    assert parts(text_of(rule)) == expected


@pytest.mark.parametrize(
    "name", ["c", "north", "in hospital", "stopover", "missing", "R&D", "not_married", "30–39", "O'Brien", "the score"]
)
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert quoted(name) == name


def test_the_quoted_words() -> None:
    levels = Condition(variable="c", kind="category", others=("a and b", "not z"))
    assert levels.text == 'c not "a and b" or "not z"'
    assert Condition(variable="c", kind="category", levels=("",)).text == 'c = ""'
    assert Condition(variable="hours over 40", kind="number", above=3.0).text == '"hours over 40" over 3'
