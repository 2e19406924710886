"""A formula as SQL: an expression of columns, or a query that adds columns to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from calibrant.data.specs.coding import Coding
from calibrant.errors import BadInput, NotComputable
from calibrant.repair.formulas.dialects import Dialect
from calibrant.repair.formulas.expression import Among, Chosen, Formula, Term, Writer

FINITE = 1.7e308  # a number beyond it is infinite
TINY = 2.3e-308  # numbers nearer to 0 are 0, as in `finite_numbers`


@dataclass(frozen=True)
class Written(Writer):
    """SQL of one formula."""

    dialect: Dialect
    scores: tuple[str, ...]  # the column of the score, or of each class, as they were given
    unit: float = 1.0  # what a score of 1 is in these columns: 100 for percent

    words: ClassVar[Mapping[str, str]] = MappingProxyType({"and": "AND", "or": "OR", "all": "1 = 1", "any": "1 = 0"})

    @property
    def functions(self) -> Mapping[str, str]:
        return self.dialect.functions

    def result(self, t: Term) -> str:
        """The repaired score in the unit of the column."""
        return self.term(t) if self.unit == 1.0 else f"{self.dialect.number(self.unit)} * ({self.term(t)})"

    # ---- numbers ----

    def number(self, value: float) -> str:
        return self.dialect.number(value)

    def named(self, name: str) -> str:
        return self.dialect.name(name)

    def scored(self, at: int) -> str:
        raw = self.double(self.scores[at])
        return raw if self.unit == 1.0 else f"({raw} / {self.number(self.unit)})"

    def chosen(self, t: Chosen) -> str:
        events = " ".join(f"WHEN {self.test(test)} THEN {self.term(then)}" for test, then in t.events)
        return f"CASE {events} ELSE {self.term(t.otherwise)} END"

    def double(self, column: str) -> str:
        return f"CAST({self.dialect.name(column)} AS {self.dialect.double})"

    def _value(self, c: Coding) -> str:
        """A number, or a date as days since 1970, as it came."""
        if c.kind == "date":
            return self.dialect.days.format(self.dialect.name(c.name))
        return self.double(c.name)

    def filled(self, c: Coding) -> str:
        number, x = self.number, self._value(c)
        tiny = "" if c.kind == "date" else f"WHEN {x} > {number(-TINY)} AND {x} < {number(TINY)} THEN {number(0.0)} "
        return f"CASE WHEN {self._gone(c)} THEN {number(c.fill)} {tiny}ELSE {x} END"

    # ---- tests ----

    def missing(self, c: Coding, *, so: bool) -> str:
        return f"{'' if so else 'NOT '}({self._gone(c)})"

    def _gone(self, c: Coding) -> str:
        """The bare test that a number is missing: null, or no number."""
        x = self._value(c)
        return " OR ".join([f"{x} IS NULL", *([self.dialect.nan.format(x)] if self.dialect.nan else [])])

    def among(self, t: Among) -> str:
        name, d = self.dialect.name(t.coding.name), self.dialect
        x = (d.text if t.coding.kind != "category" or t.coding.of_text else d.truth or d.text).format(name)
        known = [level for level in t.coding.levels if level]
        absent, parts = d.literal(""), list[str]()
        if t.other:
            rest = [d.literal(level) for level in known if level not in t.levels]
            parts.append(f"{x} NOT IN ({', '.join([*rest, absent])})")
        elif levels := [d.literal(level) for level in known if level in t.levels]:
            parts.append(f"{x} = {levels[0]}" if len(levels) == 1 else f"{x} IN ({', '.join(levels)})")
        if t.missing:
            parts.append(f"{name} IS NULL OR {x} = {absent}")
        return f"({' OR '.join(parts)})" if parts else self.words["any"]

    # ---- rows that can be repaired ----

    def sound(self, codings: Sequence[Coding]) -> str:
        """The test that scores are from 0 to 1, that numbers are finite, and that dates are dates."""
        number, parts = self.number, list[str]()
        for column in self.scores:
            p = self.double(column)
            parts += [f"{p} >= {number(0.0)} AND {p} <= {number(self.unit)}", *self._numbers(column)]
        for c in codings:
            if c.kind == "number":
                x = self._value(c)
                parts.append(f"({self._gone(c)} OR {x} > {number(-FINITE)} AND {x} < {number(FINITE)})")
                parts += self._numbers(c.name)
            if c.kind == "date" and self.dialect.dated:
                parts.append(self.dialect.dated.format(self.dialect.name(c.name)))
        return " AND ".join(parts)

    def _numbers(self, column: str) -> list[str]:
        """The test that a column holds a number or nothing, where a cast would make 0 of text."""
        return [self.dialect.numeric.format(self.dialect.name(column))] if self.dialect.numeric else []


def expression(formula: Formula, result: Term, w: Written) -> str:
    """The repaired score as one expression of columns; null where the score cannot be repaired."""
    if formula.steps:
        raise NotComputable(
            "this calibrator takes several steps, each on what the one before it says, which no single expression "
            "holds: pass table= (--table) for a query"
        )
    return f"CASE WHEN {w.sound(formula.codings)} THEN {w.result(result)} END"


def query(
    formula: Formula,
    results: Mapping[str, Term],
    w: Written,
    *,
    table: str | Sequence[str],
    keep: Sequence[str] | None,
) -> str:
    """A query of every row of a table with its repaired scores, by name; null where they cannot be repaired."""
    d = w.dialect
    shown = "*, " if keep is None else "".join(f"{d.name(name)}, " for name in keep)
    source = d.table(table)
    if not formula.steps:
        made = ", ".join(f"{expression(formula, t, w)} AS {d.name(own)}" for own, t in results.items())
        return f"SELECT {shown}{made}\nFROM {source}"
    steps = [name for step in formula.steps for name in step]
    if keep is None:
        if not d.leave_out:
            raise BadInput(
                f"{d.title} has no SELECT * without some columns, and this calibrator takes several steps: "
                "name the columns to keep with keep= (--keep)"
            )
        shown = f"* {d.leave_out} ({', '.join(map(d.name, [*steps, SOUND]))}), "
    # (1) Which rows can be repaired; (2) the steps, each a query of the one before; (3) the result.
    flag = f"CASE WHEN {w.sound(formula.codings)} THEN 1 ELSE 0 END AS {d.name(SOUND)}"
    stages = [f"{d.name('calibrant_0')} AS {d.once}(SELECT *, {flag} FROM {source})"]  # noqa: S608 - every part is quoted
    for k, step in enumerate(formula.steps):
        columns = ", ".join(
            f"CASE WHEN {d.name(SOUND)} = 1 THEN {w.term(t)} END AS {d.name(name)}" for name, t in step.items()
        )
        before, here = d.name(f"calibrant_{k}"), d.name(f"calibrant_{k + 1}")
        stages.append(f"{here} AS {d.once}(SELECT *, {columns} FROM {before})")  # noqa: S608 - as above
    last = d.name(f"calibrant_{len(formula.steps)}")
    chosen = ", ".join(
        f"CASE WHEN {d.name(SOUND)} = 1 THEN {w.result(t)} END AS {d.name(own)}" for own, t in results.items()
    )
    return f"WITH {f',{chr(10)}'.join(stages)}\nSELECT {shown}{chosen}\nFROM {last}"


SOUND = "calibrant_sound"  # 1 where a row can be repaired
