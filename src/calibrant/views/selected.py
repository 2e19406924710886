"""The rows of a group or a subgroup, by its name as a report writes it: `site = Valley`, `age over 60 and sex = f`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.data.classes.columns import class_scores
from calibrant.data.columns import score_values
from calibrant.data.layouts import DAY
from calibrant.data.reading import Reading
from calibrant.data.specs.coding import Coding, encode
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput
from calibrant.views.features import SCORE
from calibrant.views.rules import EPOCH, Columns, Condition, Rule, quoted
from calibrant.views.sample import Group, keyed

if TYPE_CHECKING:
    import pyarrow as pa

Flags = NDArray[np.bool_]
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
        return _of_levels(name, match[1] == "=", _split(match[2]), coding)
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


def _of_levels(name: str, are: bool, levels: tuple[str, ...], coding: Coding) -> Condition:
    if unknown := [v for v in levels if v not in coding.labels]:
        some = ", ".join(map(quoted, coding.labels[:NEAR])) + (", …" if len(coding.labels) > NEAR else "")
        raise BadInput(f"column {name!r} has no value {unknown[0]!r}: its values are {some}")
    named, others = (levels, ()) if are else ((), levels)
    return Condition(variable=name, kind="category", levels=named, others=others)


def _split(text: str) -> tuple[str, ...]:
    values = re.findall(rf"({OUTSIDE})(?: or |$)", text)[:-1]
    return tuple(str(json.loads(v)) if v.startswith('"') else v for v in values)


def _number(text: str, kind: str, rule: str) -> float:
    try:
        if kind != "date":
            return float(text)
        at = datetime.fromisoformat(text)
        return (at.replace(tzinfo=UTC) - EPOCH).total_seconds() * 1e6 / DAY
    except ValueError:
        what = "date such as 2026-01-31" if kind == "date" else "number"
        raise BadInput(f"rows of {rule!r}: {text!r} is no {what}") from None
