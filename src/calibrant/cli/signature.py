"""Public functions as commands: their settings, read off the signature, and their words, read off the docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import calibrant
from calibrant.results import Estimate

DATA = "data"  # how the functions call what they are asked about
COVARIATES = "variables"  # the columns that a function reads if none are named: every one
COLUMNS = COVARIATES, "variable", "by_variable", "first", "second", "by", "site"  # settings that name columns
OWN = "own "  # before the names of settings among all that a command line gives, which may be called alike
Parsed = Literal["flag", "one", "many"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a function as an option: ``--name``, with ``-`` for ``_``."""

    name: str
    parsed: Parsed  # given or not; one value; several, separated by commas
    kinds: tuple[type, ...]  # what a value may be, the strictest first: int, float or str
    choices: tuple[object, ...]  # the values there are; empty for any
    default: object  # `inspect.Parameter.empty` where there is none
    words: str  # what the docstring says of it

    @property
    def needed(self) -> bool:
        """It has no default."""
        return self.default is inspect.Parameter.empty

    @property
    def columns(self) -> bool:
        """It names one or more columns of the data."""
        return self.name in COLUMNS

    def read(self, text: str) -> int | float | str:
        """Return what a text says, as the strictest kind that takes it."""
        for kind in self.kinds:
            try:
                return kind(text)  # type: ignore[no-any-return]
            except ValueError:
                continue
        raise ValueError(text)


@dataclass(frozen=True, slots=True)
class Method:
    """A public function of the data."""

    name: str
    function: Callable[..., Any]
    settings: tuple[Setting, ...]  # those that a command line can give: models, curves and arrays are for Python
    several: bool  # it takes several classes too
    returns: type

    @property
    def grouped(self) -> bool:
        """It can be asked of each group by itself: a number, and no column has a part in it."""
        return self.returns is Estimate and not any(s.columns for s in self.settings)

    @property
    def line(self) -> str:
        """What it does."""
        return _doc(self.function).partition("\n")[0]

    @property
    def about(self) -> str:
        """What stands before its parameters, as it is written."""
        return _doc(self.function).partition("\n\nParameters\n---")[0]

    @property
    def notes(self) -> str:
        """What it assumes, guarantees, costs and departs from, as it is written."""
        return _doc(self.function).partition("Notes\n-----\n")[2].partition("\n\nReferences\n---")[0]


def methods(face: str) -> Mapping[str, Method]:
    """The functions of a face whose first argument is the data, by name."""
    kept = getattr(calibrant, face)
    made = (_method(name, getattr(kept, name)) for name in sorted(kept.__all__))
    return {m.name: m for m in made if m is not None}


def _method(name: str, function: Callable[..., Any]) -> Method | None:
    parameters = inspect.signature(function).parameters
    if next(iter(parameters), None) != DATA:
        return None
    hints, words = get_type_hints(function), _parameters(_doc(function))
    made = (_setting(p, hints[p.name], words.get(p.name, "")) for p in parameters.values() if p.name != DATA)
    several = any(getattr(t, "__name__", "") == "MulticlassPredictions" for t in get_args(hints[DATA]))
    return Method(name, function, tuple(s for s in made if s is not None), several, hints["return"])


# ---- types ----


def _setting(parameter: inspect.Parameter, hint: object, words: str) -> Setting | None:
    """A parameter as an option; None if what it takes cannot be written on a command line."""
    several, plain = _taken(hint)
    chosen = tuple(c for t in plain if get_origin(t) is Literal for c in get_args(t))
    kinds = tuple(k for k in (int, float, str) if k in plain or any(type(c) is k for c in chosen))
    if bool in plain:
        return Setting(parameter.name, "flag", (), (), parameter.default, words)
    if not kinds:
        return None
    parsed: Parsed = "many" if several else "one"
    return Setting(parameter.name, parsed, kinds, chosen, parameter.default, words)


def _taken(hint: object) -> tuple[bool, set[Any]]:
    """Whether a type takes several values, and the plain types that it takes; none if it takes others too.

    A setting that may be anything, such as a level, is a number if it reads as one; a mapping has a plain form in
    addition to it.
    """
    several, plain = False, set[Any]()
    for member in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        origin = get_origin(member)
        if origin in (Sequence, Iterable):
            inner = _taken(get_args(member)[0])[1]
            several, plain = True, plain | inner
            if not inner:
                return False, set()
        elif member in (object, Any):
            plain |= {int, float, str}
        elif origin is Literal or member in (int, float, str, bool):
            plain.add(member)
        elif member is not NoneType and origin is not Mapping:
            return False, set()
    return several, plain


# ---- words ----

PARAMETER = re.compile(r"^(?P<names>[\w*][\w, *]*?)(?: : (?P<kind>.*))?$")


def _doc(function: Callable[..., Any]) -> str:
    """The docstring, which an optimised Python has not."""
    return inspect.getdoc(function) or ""


def _parameters(doc: str) -> dict[str, str]:
    """Return what a docstring says of each parameter: in a sentence, or of what kind it is."""
    section = doc.partition("\n\nParameters\n----------\n")[2].partition("\n\n")[0]
    out: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", section):
        head, *lines = block.split("\n")
        if result := PARAMETER.match(head):
            words = " ".join(line.strip() for line in lines) or (result["kind"] or "")
            out |= dict.fromkeys(result["names"].split(", "), words)
    return out
