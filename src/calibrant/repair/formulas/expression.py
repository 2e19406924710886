"""Formulas of a row: arithmetic, choices and tests of columns, as a tree that SQL and JavaScript are written from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from calibrant.data.specs.coding import Coding

# ---- Numbers ----

Operation = Literal["+", "-", "*", "/"]
Function = Literal["ln", "exp", "floor", "least", "greatest"]


@dataclass(frozen=True)
class Term:
    """A number that each row has; terms add, subtract, multiply and divide."""

    def __add__(self, other: Term | float) -> Term:
        return Binary("+", self, term(other))

    def __sub__(self, other: Term | float) -> Term:
        return Binary("-", self, term(other))

    def __mul__(self, other: Term | float) -> Term:
        return Binary("*", self, term(other))

    def __truediv__(self, other: Term | float) -> Term:
        return Binary("/", self, term(other))

    def __rsub__(self, other: float) -> Term:
        return Binary("-", term(other), self)

    def below(self, edge: Term | float) -> Test:
        """The test that the number is below another."""
        return Compared("<", self, term(edge))

    def upto(self, edge: Term | float) -> Test:
        """The test that the number is at most another."""
        return Compared("<=", self, term(edge))


@dataclass(frozen=True)
class Number(Term):
    """A constant."""

    value: float


@dataclass(frozen=True)
class Score(Term):
    """The score, from 0 to 1; of several classes that of one of them."""

    at: int = 0


@dataclass(frozen=True)
class Covariate(Term):
    """A number or date (days since 1970), its median where it is missing."""

    coding: Coding


@dataclass(frozen=True)
class Named(Term):
    """A number that was worked out in an earlier step."""

    name: str


@dataclass(frozen=True)
class Binary(Term):
    """The sum, difference, product or quotient of two terms."""

    operation: Operation
    left: Term
    right: Term

    def operands(self) -> tuple[tuple[Term, bool], tuple[Term, bool]]:
        """Both sides, and whether each must stand in brackets; some parsers take ages over needless ones."""
        own = RANK[self.operation]
        left, right = (RANK[t.operation] if isinstance(t, Binary) else 3 for t in (self.left, self.right))
        return (self.left, left < own), (self.right, right <= own)


RANK: Mapping[Operation, int] = MappingProxyType({"+": 1, "-": 1, "*": 2, "/": 2})


@dataclass(frozen=True)
class Applied(Term):
    """A function of terms."""

    function: Function
    of: tuple[Term, ...]


@dataclass(frozen=True)
class Chosen(Term):
    """The term of the first test that holds, or the last one."""

    events: tuple[tuple[Test, Term], ...]
    otherwise: Term


def term(value: Term | float) -> Term:
    return value if isinstance(value, Term) else Number(float(value))


# ---- Tests of a row ----


@dataclass(frozen=True)
class Test:
    """What holds of a row, or does not."""


@dataclass(frozen=True)
class Compared(Test):
    """One number is below another, or at most another."""

    sign: Literal["<", "<="]
    left: Term
    right: Term


@dataclass(frozen=True)
class Among(Test):
    """A category is one of some levels; one that is none of those known (`other`); or missing."""

    coding: Coding
    levels: tuple[str, ...]
    other: bool
    missing: bool


@dataclass(frozen=True)
class Missing(Test):
    """A number or date is missing, or is there."""

    coding: Coding
    so: bool = True


@dataclass(frozen=True)
class Joined(Test):
    """All of some tests hold, or any of them; all of none hold, any of none does not."""

    word: Literal["and", "or"]
    tests: tuple[Test, ...]


# ---- What maps are made of ----


TOGETHER = 256  # terms of a sum that stand side by side: engines bound how deep a formula is nested, some at 1,000


def total(terms: Sequence[Term]) -> Term:
    """The sum of terms: of long ones, the sum of sums."""
    if len(terms) > TOGETHER:
        return total([total(terms[k : k + TOGETHER]) for k in range(0, len(terms), TOGETHER)])
    return reduce(add, terms) if terms else Number(0.0)


def clipped(x: Term, low: float, high: float) -> Term:
    """A number moved to the nearer end of a range that it is outside of."""
    return Applied("least", (Applied("greatest", (x, Number(low))), Number(high)))


def logged(x: Term) -> Term:
    """The natural logarithm."""
    return Applied("ln", (x,))


FARTHEST = 700.0  # log-odds: beyond it some engines refuse the exponential, and the probability is 0 or 1 to 1e-300


def probability(eta: Term) -> Term:
    """The probability of log-odds."""
    return Number(1.0) / (Applied("exp", (0.0 - clipped(eta, -FARTHEST, FARTHEST),)) + 1.0)


def logarithm(p: Term, edge: float) -> Term:
    """The logarithm, continued below `edge` along its tangent; as `regression.log_of`."""
    above = Applied("ln", (Applied("greatest", (p, Number(edge))),))
    return above + Applied("least", (p - edge, Number(0.0))) / edge


def largest(terms: Sequence[Term]) -> Term:
    """The largest of terms; functions of engines take some hundred at most."""
    if len(terms) > WIDEST:
        return largest([largest(terms[k : k + WIDEST]) for k in range(0, len(terms), WIDEST)])
    return Applied("greatest", tuple(terms)) if len(terms) > 1 else terms[0]


WIDEST = 64  # arguments of a function: SQLite bounds them by 100


def softmax(row: Formula, z: Sequence[Term]) -> tuple[Term, ...]:
    """The probabilities of classes, given what their logarithms are up to a constant of the row."""
    every = list(row.step({f"class{k}": t for k, t in enumerate(z)}).values())
    top = row.step({"largest": largest(every)})["largest"]
    # a class that is e^-700 as likely as another is that: some engines refuse a smaller exponential
    shares = {
        f"share{k}": Applied("exp", (Applied("greatest", (t - top, Number(-FARTHEST))),)) for k, t in enumerate(every)
    }
    kept = list(row.step(shares).values())
    whole = row.step({"whole": total(kept)})["whole"]
    return tuple(t / whole for t in kept)


def log_odds(p: Term, edges: tuple[float, float]) -> Term:
    """The log-odds, continued along their tangents; as `regression.log_odds`."""
    return logarithm(p, edges[0]) - logarithm(1.0 - p, edges[1])


def stairs(x: Term, edges: Sequence[float], values: Sequence[Term | float], *, upto: bool = False) -> Term:
    """The value of the bin that a number is in; a bin holds its lower edge, or with `upto` its upper one.

    Halves of halves: as many comparisons a row as the number of edges has binary digits.
    """
    if not len(edges):
        return term(values[0])
    middle = len(edges) // 2
    edge = float(edges[middle])
    low = stairs(x, edges[:middle], values[: middle + 1], upto=upto)
    high = stairs(x, edges[middle + 1 :], values[middle + 1 :], upto=upto)
    return Chosen(((x.upto(edge) if upto else x.below(edge), low),), high)


def broken_line(x: Term, knots: Sequence[float], heights: Sequence[float]) -> Term:
    """The height at a number of the line through points, level outside of them; as `numpy.interp`."""
    pieces: list[Term | float] = [float(heights[0])]
    for a, b, low, high in zip(knots, knots[1:], heights, heights[1:], strict=False):
        slope = (high - low) / (b - a) if b > a else 0.0
        pieces.append(low if low == high else (x - a) * slope + low)
    return stairs(x, knots, [*pieces, float(heights[-1])])


def within(x: Term, edges: Sequence[float], bins: Callable[[int], bool]) -> Test:
    """The test that a number is in some of its bins, of which each holds its lower edge."""
    kept = [bins(b) for b in range(len(edges) + 1)]
    results: list[Test] = []
    for first in range(len(kept)):
        if kept[first] and not (first and kept[first - 1]):
            last = next((b for b in range(first, len(kept)) if not kept[b]), len(kept))
            ends: list[Test] = [] if first == 0 else [term(float(edges[first - 1])).upto(x)]
            ends += [] if last == len(kept) else [x.below(float(edges[last - 1]))]
            results.append(Joined("and", tuple(ends)))
    return Joined("or", tuple(results))


# ---- A map: its steps and what it shows ----


@dataclass(frozen=True)
class Variable:
    """A level variable: a category, or whether a number is missing."""

    coding: Coding

    def among(self, codes: Callable[[int], bool]) -> Test:
        """The test that the code is one of some."""
        if self.coding.kind != "category":
            kept = [codes(0), codes(1)]
            if kept[0] == kept[1]:
                return Joined("and" if kept[0] else "or", ())
            # of two levels, no and yes: "no" is whatever is not missing
            return Missing(self.coding, so=kept[1])
        n = len(self.coding.levels)
        levels = tuple(level for k, level in enumerate(self.coding.levels) if codes(k))
        return Among(self.coding, levels, codes(n), codes(n + 1))

    def table(self, codes: Sequence[int], values: Sequence[float]) -> Term:
        """The value that stands next to the code, 0 where none does."""
        events = tuple((self.among(c.__eq__), term(v)) for c, v in zip(codes, values, strict=True) if v)
        return Chosen(events, Number(0.0)) if events else Number(0.0)


@dataclass
class Formula:
    """A map of the score as a formula, under way."""

    codings: tuple[Coding, ...] = ()  # of the covariates that it reads
    # What is worked out before the result, step by step: each may use those before it.
    steps: list[dict[str, Term]] = field(default_factory=list)
    score: Term = field(default_factory=Score)

    @cached_property
    def numbers(self) -> tuple[Term, ...]:
        """The numbers and dates as they come, their medians where they are missing."""
        return tuple(Covariate(c) for c in self.codings if c.kind in ("number", "date"))

    @cached_property
    def scaled(self) -> tuple[Term, ...]:
        """The numbers and dates, standardised, or their standardised ranks."""
        ranked = {f"number{k}": x for k, x in enumerate(self.numbers) if isinstance(x, Covariate) and x.coding.ranks}
        kept = self.step(ranked) if ranked else {}  # a table of ranks names its number at every one of them
        every = ((kept.get(f"number{k}", x), x) for k, x in enumerate(self.numbers))
        return tuple(_scaled(shown, x.coding) for shown, x in every if isinstance(x, Covariate))

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The level variables, in the order of `inputs_of`."""
        numbers = [c for c in self.codings if c.kind in ("number", "date")]
        flagged = (c for c in numbers if c.missing)
        return tuple(map(Variable, (*(c for c in self.codings if c.kind == "category"), *flagged)))

    def step(self, terms: Mapping[str, Term]) -> dict[str, Term]:
        """Work out numbers before the rest, so that they are written once; return them by name."""
        names = {name: f"calibrant_{name}_{len(self.steps)}" for name in terms}
        self.steps.append({names[name]: kept for name, kept in terms.items()})
        return {name: Named(names[name]) for name in terms}


def _scaled(x: Term, c: Coding) -> Term:
    ranked = broken_line(x, c.ranks, np.linspace(0.0, 1.0, len(c.ranks)).tolist()) if c.ranks else x
    return (ranked - c.location) / c.scale


# ---- How it is written in any language: what each part is made of; a language spells its own words ----


class Writer(ABC):
    """Writes terms and tests; `words` spells "and" and "or", and "all" and "any": what holds of no tests."""

    words: ClassVar[Mapping[str, str]]

    # ---- what a language spells in its own way ----

    @property
    @abstractmethod
    def functions(self) -> Mapping[str, str]:
        """What the functions of terms are called."""

    @abstractmethod
    def number(self, value: float) -> str:
        """A constant."""

    @abstractmethod
    def named(self, name: str) -> str:
        """What was worked out in an earlier step."""

    @abstractmethod
    def scored(self, at: int) -> str:
        """The score, from 0 to 1; of several classes that of one."""

    @abstractmethod
    def filled(self, c: Coding) -> str:
        """A number or date, its median where it is missing."""

    @abstractmethod
    def chosen(self, t: Chosen) -> str:
        """The term of the first test that holds."""

    @abstractmethod
    def missing(self, c: Coding, *, so: bool) -> str:
        """The test that a number or date is missing, or that it is not."""

    @abstractmethod
    def among(self, t: Among) -> str:
        """The test that a category is one of some."""

    # ---- what all of them have in common ----

    def term(self, t: Term) -> str:
        match t:
            case Number(value):
                return self.number(value)
            case Named(name):
                return self.named(name)
            case Score(at):
                return self.scored(at)
            case Covariate(coding):
                return self.filled(coding)
            case Binary():
                sides = [f"({self.term(s)})" if bracketed else self.term(s) for s, bracketed in t.operands()]
                return f" {t.operation} ".join(sides)
            case Applied(function, of):
                return f"{self.functions[function]}({', '.join(map(self.term, of))})"
            case Chosen():
                return self.chosen(t)
        raise TypeError(f"a formula holds no {type(t).__name__}")

    def test(self, t: Test) -> str:
        match t:
            case Compared(sign, left, right):
                return f"{self.term(left)} {sign} {self.term(right)}"
            case Joined(word, ()):
                return self.words["all" if word == "and" else "any"]
            case Joined(word, tests):
                return "(" + f" {self.words[word]} ".join(map(self.test, tests)) + ")"
            case Missing(coding, so):
                return self.missing(coding, so=so)
            case Among():
                return self.among(t)
        raise TypeError(f"a formula holds no {type(t).__name__}")
