"""Whether a map that was read from outside could have been fitted: types, finite numbers, lengths that agree.

Compiled code trusts the numbers of a map as indices, so that one that was damaged is refused before it is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from calibrant.data.coding import Coding

LARGEST = 1.7e308


@dataclass(frozen=True)
class Inputs:
    """What a map sees of a row besides the score.

    Parameters
    ----------
    numbers : int
        Numbers and dates.
    levels : tuple of int
        How many levels each level variable has.
    """

    numbers: int
    levels: tuple[int, ...]

    @property
    def columns(self) -> int:
        """Numbers and level variables."""
        return self.numbers + len(self.levels)


def inputs_of(codings: Sequence[Coding]) -> Inputs:
    """Return what `encode` makes of covariates."""
    numbers = [c for c in codings if c.kind in ("number", "date")]
    categories = tuple(len(c.labels) for c in codings if c.kind == "category")
    return Inputs(len(numbers), (*categories, *(2 for c in numbers if c.missing)))


def sound(holds: bool, why: str) -> None:
    """Raise `ValueError` unless something holds."""
    if not holds:
        raise ValueError(why)


def rising(values: Sequence[float], strictly: bool = False) -> bool:
    """Tell whether values never fall, or always rise."""
    return all(a < b if strictly else a <= b for a, b in itertools.pairwise(values))


def shares(values: Sequence[float]) -> bool:
    """Tell whether values lie in [0, 1]."""
    return all(0.0 <= v <= 1.0 for v in values)


def known(codes: Sequence[Sequence[int]], levels: Sequence[int]) -> bool:
    """Tell whether there are codes for each level variable, all of levels that it has."""
    return len(codes) == len(levels) and all(0 <= c < n for own, n in zip(codes, levels, strict=True) for c in own)


def checked_types(one: Any) -> None:
    """Raise `ValueError` if a field of a dataclass is not of its type, or holds a number that is not finite."""
    kind: Any = type(one)
    hints = _hints(kind)
    for f in fields(one):
        sound(_fits(getattr(one, f.name), hints[f.name]), f"{f.name} is not what a fit leaves there")


def checked_codings(codings: Sequence[Coding]) -> None:
    """Raise `ValueError` if covariates could not be coded so."""
    for c in codings:
        checked_types(c)
        whole = c.scale > 0 and len(c.ranks) != 1 and rising(c.ranks) and (c.kind != "category" or c.levels)
        sound(bool(whole), f"the coding of covariate {c.name!r} is not what a fit leaves there")
    sound(len({c.name for c in codings}) == len(codings), "a covariate is coded twice")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    inside = get_args(hint)
    if hint in (int, float):
        number = isinstance(value, int if hint is int else (int, float)) and not isinstance(value, bool)
        return number and (-LARGEST <= value <= LARGEST if hint is float else abs(value) < 2**63)
    if hint in (str, bool):
        return isinstance(value, hint)
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in inside
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping)
    if get_origin(hint) is not tuple:
        return True
    if not isinstance(value, tuple):
        return False
    if inside[-1] is Ellipsis:
        return all(_fits(v, inside[0]) for v in value)
    return len(value) == len(inside) and all(map(_fits, value, inside))
