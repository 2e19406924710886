"""A formula as a JavaScript function, for a page or a service without Python."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from calibrant.errors import NotComputable
from calibrant.toolkit.formulas import Among, Chosen, Coding, Formula, Term, Writer

MATH = MappingProxyType(
    {"ln": "Math.log", "exp": "Math.exp", "floor": "Math.floor", "least": "Math.min", "greatest": "Math.max"}
)
DAY = 86_400_000  # milliseconds
ISO = r"/^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:?\d\d)?)?$/"  # other text means one day here and another there
TINY = "2.3e-308"  # numbers nearer to 0 are 0, as in `finite_numbers`


@dataclass(frozen=True)
class Script(Writer):
    """JavaScript of one formula: covariates stand in constants v0, v1, ..., in the order of the codings."""

    formula: Formula
    classes: int = 1  # how many scores it takes, as an array; 1 is one number
    words: ClassVar[Mapping[str, str]] = MappingProxyType({"and": "&&", "or": "||", "all": "true", "any": "false"})

    @property
    def functions(self) -> Mapping[str, str]:
        return MATH

    def function(self, results: Sequence[Term], name: str, cluster: float) -> str:
        """The function of a score and an object of covariates; it returns null for what cannot be repaired."""
        read = "typeof score === 'number' ? " + ("score" if cluster == 1.0 else f"score / {cluster}") + " : NaN"
        if self.classes == 1:
            lines = [f"function {name}(score, row = {{}}) {{", f"  const p = {read};"]
            lines.append("  if (!(p >= 0 && p <= 1)) return null;")
        else:
            lines = [f"function {name}(scores, row = {{}}) {{"]
            lines.append(f"  if (!Array.isArray(scores) || scores.length !== {self.classes}) return null;")
            lines.append(f"  const p = scores.map(score => {read});")
            lines.append("  if (!p.every(q => q >= 0 && q <= 1)) return null;")
        for k, c in enumerate(self.formula.codings):
            lines += self._read(k, c)
        for step in self.formula.steps:
            lines += [f"  const {own} = {self.term(t)};" for own, t in step.items()]
        shown = [t if cluster == 1.0 else f"{cluster} * ({t})" for t in map(self.term, results)]
        lines += [f"  return {shown[0] if self.classes == 1 else '[' + ', '.join(shown) + ']'};", "}"]
        return "\n".join(lines) + "\n"

    def _read(self, k: int, c: Coding) -> list[str]:
        raw = f"row[{_island(json.dumps(c.name))}] ?? null"
        if c.kind == "category":
            return [f"  const v{k} = String({raw} ?? '');"]
        if c.kind == "date":  # a Date, or text that is one; without a zone it is of universal time
            iso = r"replace(' ', 'T').replace(/T[\d:.]+$/, '$&Z')"
            return [
                f"  let d{k} = {raw};",
                f"  if (typeof d{k} === 'string') d{k} = d{k}.{iso};",
                f"  const v{k} = d{k} === null || d{k} === '' ? NaN : new Date(d{k}).getTime() / {DAY};",
                f"  if (Number.isNaN(v{k}) ? d{k} : typeof d{k} === 'string' && !{ISO}.test(d{k})) return null;",
                f"  const x{k} = Number.isNaN(v{k}) ? {_number(c.fill)} : v{k};",
            ]
        return [
            f"  const v{k} = {raw} ?? NaN;",
            f"  if (typeof v{k} !== 'number' || Math.abs(v{k}) === Infinity) return null;",
            f"  const x{k} = Number.isNaN(v{k}) ? {_number(c.fill)} : Math.abs(v{k}) < {TINY} ? 0 : v{k};",
        ]

    def number(self, value: float) -> str:
        return _number(value)

    def named(self, name: str) -> str:
        return name

    def scored(self, at: int) -> str:
        return "p" if self.classes == 1 else f"p[{at}]"

    def filled(self, c: Coding) -> str:
        return f"x{self._place(c)}"

    def chosen(self, t: Chosen) -> str:
        events = "".join(f"{self.test(test)} ? {self.term(then)} : " for test, then in t.events)
        return f"({events}{self.term(t.otherwise)})"

    def missing(self, c: Coding, *, so: bool) -> str:
        return f"{'' if so else '!'}Number.isNaN(v{self._place(c)})"

    def among(self, t: Among) -> str:
        x, known = f"v{self._place(t.coding)}", [level for level in t.coding.levels if level]
        if t.other:
            left = [level for level in known if level not in t.levels]
            result = f"!{json.dumps(left if t.missing else [*left, ''])}.includes({x})"
        else:
            result = f"{json.dumps([*(v for v in known if v in t.levels), *([''] if t.missing else [])])}.includes({x})"
        return _island(result)

    def _place(self, c: Coding) -> int:
        return self.formula.codings.index(c)


def _island(text: str) -> str:
    """A script's text so that it can stand in a page."""
    return text.replace("<", "\\u003c")


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise NotComputable(f"a calibrator with the constant {value} cannot be written: apply it in Python")
    digits = repr(float(value))
    return f"({digits})" if digits.startswith("-") else digits
