"""A formula as a JavaScript function, for a page or a service without Python."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from calibrant.data.specs.coding import Coding
from calibrant.errors import NotComputable
from calibrant.repair.formulas.expression import (
    Among,
    Applied,
    Binary,
    Chosen,
    Compared,
    Covariate,
    Formula,
    Joined,
    Missing,
    Named,
    Number,
    Present,
    Score,
    Term,
    Test,
)

MATH = {"ln": "Math.log", "exp": "Math.exp", "floor": "Math.floor", "least": "Math.min", "greatest": "Math.max"}
DAY = 86_400_000  # milliseconds
TINY = "2.3e-308"  # numbers nearer to 0 are 0, as in `finite_numbers`


@dataclass(frozen=True)
class Script:
    """JavaScript of one formula: covariates stand in constants v0, v1, ..., in the order of the codings."""

    formula: Formula

    def function(self, result: Term, name: str, unit: float) -> str:
        """Return the function of a score and an object of covariates; it returns null for what cannot be repaired."""
        lines = [f"function {name}(score, row = {{}}) {{"]
        lines.append("  const p = typeof score === 'number' ? " + ("score" if unit == 1.0 else f"score / {unit}"))
        lines[-1] += " : NaN;"
        lines.append("  if (!(p >= 0 && p <= 1)) return null;")
        for k, c in enumerate(self.formula.codings):
            lines += self._read(k, c)
        for step in self.formula.steps:
            lines += [f"  const {own} = {self.term(t)};" for own, t in step.items()]
        shown = self.term(result)
        lines += [f"  return {shown if unit == 1.0 else f'{unit} * ({shown})'};", "}"]
        return "\n".join(lines) + "\n"

    def _read(self, k: int, c: Coding) -> list[str]:
        raw = f"row[{_text(c.name)}] ?? null"
        if c.kind == "category":
            return [f"  const v{k} = String({raw} ?? '');"]
        if c.kind == "date":  # a Date, or text that is one; without a zone it is of universal time
            iso = r"replace(' ', 'T').replace(/T[\d:.]+$/, '$&Z')"
            return [
                f"  let d{k} = {raw};",
                f"  if (typeof d{k} === 'string') d{k} = d{k}.{iso};",
                f"  const v{k} = d{k} === null || d{k} === '' ? NaN : new Date(d{k}).getTime() / {DAY};",
                f"  const x{k} = Number.isNaN(v{k}) ? {_number(c.fill)} : v{k};",
            ]
        return [
            f"  const v{k} = {raw} ?? NaN;",
            f"  if (typeof v{k} !== 'number' || Math.abs(v{k}) === Infinity) return null;",
            f"  const x{k} = Number.isNaN(v{k}) ? {_number(c.fill)} : Math.abs(v{k}) < {TINY} ? 0 : v{k};",
        ]

    def term(self, t: Term) -> str:
        """Return a number."""
        if isinstance(t, Number):
            return _number(t.value)
        if isinstance(t, Named):
            return t.name
        if isinstance(t, Score):
            return "p"
        if isinstance(t, Covariate):
            return f"x{self._place(t.coding)}"
        return self._made(t)

    def _made(self, t: Term) -> str:
        if isinstance(t, Binary):
            sides = [f"({self.term(s)})" if bracketed else self.term(s) for s, bracketed in t.operands()]
            return f" {t.operation} ".join(sides)
        if isinstance(t, Applied):
            return f"{MATH[t.function]}({', '.join(map(self.term, t.of))})"
        if isinstance(t, Chosen):
            cases = "".join(f"{self.test(test)} ? {self.term(then)} : " for test, then in t.cases)
            return f"({cases}{self.term(t.otherwise)})"
        raise TypeError(f"no JavaScript for {type(t).__name__}")

    def test(self, t: Test) -> str:
        """Return a test."""
        if isinstance(t, Compared):
            return f"{self.term(t.left)} {t.sign} {self.term(t.right)}"
        if isinstance(t, Joined):
            if not t.tests:
                return "true" if t.word == "and" else "false"
            return "(" + (" && " if t.word == "and" else " || ").join(map(self.test, t.tests)) + ")"
        if isinstance(t, Missing):
            return f"Number.isNaN(v{self._place(t.coding)})"
        if isinstance(t, Present):
            return f"!Number.isNaN(v{self._place(t.coding)})"
        if isinstance(t, Among):
            return self._among(t)
        raise TypeError(f"no JavaScript for {type(t).__name__}")

    def _among(self, t: Among) -> str:
        x, known = f"v{self._place(t.coding)}", [level for level in t.coding.levels if level]
        if t.other:
            left = [level for level in known if level not in t.levels]
            found = f"!{json.dumps(left if t.missing else [*left, ''])}.includes({x})"
        else:
            found = f"{json.dumps([*(v for v in known if v in t.levels), *([''] if t.missing else [])])}.includes({x})"
        return _island(found)

    def _place(self, c: Coding) -> int:
        return self.formula.codings.index(c)


def _text(name: str) -> str:
    return _island(json.dumps(name))


def _island(text: str) -> str:
    """Return a script's text so that it can stand in a page."""
    return text.replace("<", "\\u003c")


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise NotComputable(f"a map with the constant {value} cannot be written: apply it in Python")
    digits = repr(float(value))
    return f"({digits})" if digits.startswith("-") else digits
