"""How a formula is written in any language: what each part is made of; a language says how its own words are spelt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from calibrant.data.specs.coding import Coding
from calibrant.repair.formulas.expression import (
    Among,
    Applied,
    Binary,
    Chosen,
    Compared,
    Covariate,
    Joined,
    Missing,
    Named,
    Number,
    Present,
    Score,
    Term,
    Test,
)


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
        """Return what was worked out in an earlier step."""

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
    def missing(self, c: Coding, *, not_so: bool = False) -> str:
        """The test that a number or date is missing, or that it is not."""

    @abstractmethod
    def among(self, t: Among) -> str:
        """The test that a category is one of some."""

    # ---- what all of them have in common ----

    def term(self, t: Term) -> str:
        """A number."""
        if isinstance(t, Number):
            return self.number(t.value)
        if isinstance(t, Named):
            return self.named(t.name)
        if isinstance(t, Score):
            return self.scored(t.at)
        if isinstance(t, Covariate):
            return self.filled(t.coding)
        return self._made(t)

    def _made(self, t: Term) -> str:
        if isinstance(t, Binary):
            sides = [f"({self.term(s)})" if bracketed else self.term(s) for s, bracketed in t.operands()]
            return f" {t.operation} ".join(sides)
        if isinstance(t, Applied):
            return f"{self.functions[t.function]}({', '.join(map(self.term, t.of))})"
        if isinstance(t, Chosen):
            return self.chosen(t)
        raise TypeError(f"a formula holds no {type(t).__name__}")

    def test(self, t: Test) -> str:
        """A test."""
        if isinstance(t, Compared):
            return f"{self.term(t.left)} {t.sign} {self.term(t.right)}"
        if isinstance(t, Joined):
            if not t.tests:
                return self.words["all" if t.word == "and" else "any"]
            return "(" + f" {self.words[t.word]} ".join(map(self.test, t.tests)) + ")"
        if isinstance(t, Missing | Present):
            return self.missing(t.coding, not_so=isinstance(t, Present))
        if isinstance(t, Among):
            return self.among(t)
        raise TypeError(f"a formula holds no {type(t).__name__}")
