"""Rules: conditions on covariates that select rows, written as a reader would."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.layouts import DAY
from calibrant.data.predictions import Predictions
from calibrant.data.specs.coding import Coding, codings, encode
from calibrant.views.features import SCORE

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WORDING = re.compile(r'["=\n]|(?:^|\s)(?:or|and|not|over|after|up\s+to)(?:\s|$)')  # what rules are written with


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What a rule asks of one variable."""

    variable: str
    kind: str  # "number", "date" or "category": a date counts days since 1970
    # `above` and `up_to`: a number is over the first and at most the second; both infinite for a missing one.
    above: float | None = None
    up_to: float | None = None
    missing: bool = False  # a missing number is selected as well
    levels: tuple[str, ...] = ()  # a category is one of these; empty for any
    others: tuple[str, ...] = ()  # a category is none of these
    whole: bool = False  # the number takes whole values only; the date has no time of day

    @property
    def text(self) -> str:
        """The condition in words; names and levels that would read as words of a rule stand in quotes."""
        name = quoted(self.variable)
        if self.kind == "category":
            if self.levels:
                return f"{name} = {' or '.join(map(quoted, self.levels))}"
            return f"{name} not {' or '.join(map(quoted, self.others))}"
        if self.above == np.inf:
            return f"{name} missing"
        over = "after" if self.kind == "date" else "over"
        above, up_to = (None if v is None else number_words(v, self.kind, self.whole) for v in (self.above, self.up_to))
        parts = [f"{over} {above}"] if above is not None else []
        parts += [f"up to {up_to}"] if up_to is not None else []
        parts = parts or ["known"]
        return f"{name} {', '.join(parts)}{' or missing' if self.missing else ''}"

    def joined(self, other: Condition, labels: Sequence[str] = ()) -> Condition:
        """The one condition that says the same as both; `labels` are the levels that rows have."""
        if self.kind == "category":
            others = tuple(sorted({*self.others, *other.others}))
            both = set(self.levels or labels) & set(other.levels or labels) - set(others)
            if both and (self.levels or other.levels or len(both) == 1):
                return replace(self, levels=tuple(v for v in labels if v in both), others=())
            return replace(self, levels=(), others=others if both else tuple(labels))
        above = [v for v in (self.above, other.above) if v is not None]
        up_to = [v for v in (self.up_to, other.up_to) if v is not None]
        return Condition(
            variable=self.variable,
            kind=self.kind,
            above=max(above, default=None),
            up_to=min(up_to, default=None),
            missing=self.missing and other.missing,
            whole=self.whole,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` reads it back."""
        known = {k: v for k, v in asdict(self).items() if v is not None and v is not False and v != ()}
        return {**known, "above": "missing"} if self.above == np.inf else known

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Condition:
        """Rebuild from plain data."""
        known: dict[str, Any] = {k: tuple(v) if k in ("levels", "others") else v for k, v in d.items()}
        return cls(**(known | ({"above": np.inf, "missing": True} if known.get("above") == "missing" else {})))


Rule = tuple[Condition, ...]


def number_words(value: float, kind: str, whole: bool) -> str:
    """A number, or the day or time of a date, as rules write it; `whole`: the date has no time of day."""
    if kind == "date":
        at = EPOCH + timedelta(microseconds=round(value * DAY))
        return at.date().isoformat() if whole else at.replace(tzinfo=None).isoformat()
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def quoted(name: str) -> str:
    """A name or level as it is, or in quotes where it is empty or would read as part of the rule's wording."""
    plain = name.strip() == name and name and not WORDING.search(name)
    return name if plain else json.dumps(name, ensure_ascii=False)


def text_of(conditions: Sequence[Condition]) -> str:
    """A rule in words."""
    return " and ".join(c.text for c in conditions)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What rules read of the rows."""

    numbers: dict[str, Floats]  # each of shape (n,): numbers and dates as they came, NaN where missing; the score
    codes: dict[str, Codes]  # each of shape (n,): levels of categories
    labels: dict[str, tuple[str, ...]]  # names of the levels
    how: dict[str, Coding]  # of the covariates

    def kind(self, name: str) -> tuple[str, bool]:
        """Return "number" or "date" for a column of numbers, and whether all are whole."""
        coding = self.how.get(name)
        return ("number", False) if name == SCORE or coding is None else (coding.kind, coding.whole)

    def select(self, condition: Condition) -> Flags:
        """Return which rows meet a condition."""
        if condition.kind == "category":
            labels = self.labels[condition.variable]
            meets = [(not condition.levels or v in condition.levels) and v not in condition.others for v in labels]
            wanted: Flags = np.array(meets)
            return wanted[self.codes[condition.variable]]
        x = self.numbers[condition.variable]
        absent = np.isnan(x)
        inside: Flags = ~absent
        if condition.above is not None:
            inside &= x > condition.above
        if condition.up_to is not None:
            inside &= x <= condition.up_to
        return inside | absent if condition.missing else inside

    def matching(self, conditions: Sequence[Condition]) -> Flags:
        """Return which rows meet all conditions of a rule."""
        out = np.ones(len(next(iter(self.numbers.values()))), dtype=bool)
        for condition in conditions:
            out &= self.select(condition)
        return out

    def rows(self, which: NDArray[Any]) -> Columns:
        """The columns of some rows."""
        return Columns(
            numbers={k: v[which] for k, v in self.numbers.items()},
            codes={k: v[which] for k, v in self.codes.items()},
            labels=self.labels,
            how=self.how,
        )


def extended(rule: Rule, step: Condition, columns: Columns) -> Rule:
    """Add a condition to a rule, joined with what the rule asks of the same variable already."""
    present: tuple[str, ...] = ()
    if step.kind == "category":
        rows = np.bincount(columns.codes[step.variable], minlength=len(columns.labels[step.variable]))
        present = tuple(v for v, n in zip(columns.labels[step.variable], rows, strict=True) if n)
    same = [c for c in rule if c.variable == step.variable]
    merged = same[0].joined(step, present) if same else step.joined(step, present)
    return (*(c for c in rule if c.variable != step.variable), merged)


def columns_of(data: Predictions, variables: Iterable[str] | None) -> Columns:
    """Return score and covariates as rules read them."""
    how = codings(data.covariates, variables)
    numbers: dict[str, Floats] = {SCORE: data.p}
    codes: dict[str, Codes] = {}
    labels: dict[str, tuple[str, ...]] = {}
    if how:
        x = encode(data.covariates.select([c.name for c in how]), how)
        numbers |= {name: x.numbers[:, j] for j, name in enumerate(x.number_names)}
        for j, name in enumerate(x.level_names):
            if x.level_of[j] == name:
                codes[name], labels[name] = x.codes[:, j], x.level_labels[j]
    return Columns(numbers=numbers, codes=codes, labels=labels, how={c.name: c for c in how})
