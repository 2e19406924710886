"""Rules: conditions on covariates that select rows, written and read as reports do: `age over 60 and sex = f`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.classes.columns import class_scores
from calibrant.data.columns import score_values
from calibrant.data.layouts import DAY
from calibrant.data.predictions import Predictions
from calibrant.data.reading import Reading
from calibrant.data.specs.coding import Coding, codings, encode
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput
from calibrant.views.features import SCORE
from calibrant.views.sample import Group, keyed

if TYPE_CHECKING:
    import pyarrow as pa

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
        """Plain data; `from_dict` reads it back."""
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
        """The kind of a column of numbers, "number" or "date", and whether all are whole."""
        coding = self.how.get(name)
        return ("number", False) if name == SCORE or coding is None else (coding.kind, coding.whole)

    def select(self, condition: Condition) -> Flags:
        """Which rows meet a condition."""
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
        """Which rows meet all conditions of a rule."""
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
    """Score and covariates as rules read them."""
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


# ---- The rows of a group or a subgroup, by its name ----

OUTSIDE = r'(?:[^"]|"(?:[^"\\]|\\.)*")*?'  # text whose quotes are closed
MISSING = " or missing"
NEAR = 5  # values that a refusal lists


@dataclass(frozen=True)
class Selected:
    """A group by its levels, or a subgroup by its rule, with the coding of its columns that was fixed before."""

    spec: Spec
    group: Group = ()
    rule: Rule = ()
    classes: Reading | None = None  # of several: how they are read, of which the most probable one's is the score

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it looks at, other than the score."""
        names = [name for name, _ in self.group] or [c.variable for c in self.rule]
        return tuple(dict.fromkeys(n for n in names if n != SCORE))

    @property
    def has_thresholds(self) -> bool:
        """Whether a number or a date is compared with one that its name writes."""
        return any(v is not None and np.isfinite(v) for c in self.rule for v in (c.above, c.up_to))

    def of(self, batch: pa.RecordBatch) -> Flags:
        """Which rows of a batch are of it."""
        if self.group:
            out = np.ones(batch.num_rows, dtype=bool)
            for name, level in self.group:
                variable = self.spec.by_name[name]
                out &= variable.codes(batch.column(name)) == variable.labels.index(level)
            return out
        how = [c for c in self.spec.codings if c.name in self.reads]
        x = encode(batch, how, batch.num_rows, scale=False)
        numbers = {name: x.numbers[:, j] for j, name in enumerate(x.number_names)}
        numbers[SCORE] = self._scores(batch)
        levels = [j for j, name in enumerate(x.level_names) if x.level_of[j] == name]
        codes = {x.level_names[j]: x.codes[:, j] for j in levels}
        labels = {x.level_names[j]: x.level_labels[j] for j in levels}
        return Columns(numbers=numbers, codes=codes, labels=labels, how={c.name: c for c in how}).matching(self.rule)

    def _scores(self, batch: pa.RecordBatch) -> NDArray[np.float64]:
        if self.classes is None:
            return score_values(batch.column(self.spec.score), self.spec.score, self.spec.percent)
        p = class_scores(batch, self.classes)
        return np.asarray(p.max(axis=1) / p.sum(axis=1))


def selected(spec: Spec, text: str) -> Selected:
    """The group or subgroup that a name means; refuse one that is none of these data."""
    for grouping in range(len(spec.groupings)):
        for name in spec.group_names(grouping):
            if text in (
                keyed(name),
                ", ".join(f"{k} = {v}" for k, v in name),
                " and ".join(f"{k} = {v}" for k, v in name),
            ):
                return Selected(spec, group=name)
    return Selected(spec, rule=parsed(text, spec.codings))


def parsed(text: str, how: Sequence[Coding]) -> Rule:
    """The rule that a text says, as `text_of` writes rules of these covariates."""
    kinds = {c.name: c for c in how}
    parts = re.findall(rf"({OUTSIDE})(?: and |$)", text)[:-1] if text else []
    return tuple(_condition(part, text, kinds) for part in parts or [text])


def _condition(part: str, text: str, kinds: dict[str, Coding]) -> Condition:
    names = sorted((*kinds, SCORE), key=len, reverse=True)
    name = next((n for n in names if part.startswith(f"{quoted(n)} ")), None)
    if name is None:
        known = ", ".join(map(quoted, sorted(kinds))) or "none"
        raise BadInput(f"rows of {text!r}: {part!r} names no group and no column; columns that can be named: {known}")
    rest, coding = part[len(quoted(name)) + 1 :], kinds.get(name)
    kind = "number" if coding is None else coding.kind
    if kind == "category" and coding is not None and (match := re.fullmatch(r"(=|not) (.+)", rest, re.DOTALL)):
        return _of_levels(name, match[1] == "=", match[2], coding)
    missing = rest.endswith(MISSING)
    rest = rest.removesuffix(MISSING)
    if rest == "missing":
        return Condition(variable=name, kind=kind, above=np.inf, missing=True)
    match = re.fullmatch(r"(?:known|(?:(?:over|after) (\S+?))?(?:, )?(?:up to (\S+))?)", rest)
    if kind == "category" or match is None or not rest:
        way = f"write {quoted(name)} = VALUE" if kind == "category" else f"write {quoted(name)} over X, up to Y"
        raise BadInput(f"rows of {text!r}: cannot read {part!r}; {way}, as a report names it")
    above, up_to = (None if v is None else _number(v, kind, text) for v in match.groups())
    return Condition(variable=name, kind=kind, above=above, up_to=up_to, missing=missing)


def _of_levels(name: str, are: bool, text: str, coding: Coding) -> Condition:
    values = re.findall(rf"({OUTSIDE})(?: or |$)", text)[:-1]
    levels = tuple(str(json.loads(v)) if v.startswith('"') else v for v in values)
    if unknown := [v for v in levels if v not in coding.labels]:
        some = ", ".join(map(quoted, coding.labels[:NEAR])) + (", …" if len(coding.labels) > NEAR else "")
        raise BadInput(f"column {name!r} has no value {unknown[0]!r}: its values are {some}")
    named, others = (levels, ()) if are else ((), levels)
    return Condition(variable=name, kind="category", levels=named, others=others)


def _number(text: str, kind: str, rule: str) -> float:
    try:
        if kind != "date":
            return float(text)
        at = datetime.fromisoformat(text)
        return (at.replace(tzinfo=UTC) - EPOCH).total_seconds() * 1e6 / DAY
    except ValueError:
        what = "date such as 2026-01-31" if kind == "date" else "number"
        raise BadInput(f"rows of {rule!r}: {text!r} is no {what}") from None
