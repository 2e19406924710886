"""From JSON back to the frozen dataclasses it was written from: every field there, of its type, finite, and no other."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from calibrant.errors import BadInput

T = TypeVar("T")
LARGEST = 2**63 - 1
SOUND: dict[Any, Callable[[Any], bool]] = {
    bool: lambda _: True,
    str: lambda v: v.isascii() or not any("\ud800" <= c <= "\udfff" for c in v),  # what UTF-8 can hold
    int: lambda v: -LARGEST <= v <= LARGEST,
    float: math.isfinite,
}


class Damaged(BadInput):
    """What was stored cannot have been written by this version."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"the sketch is damaged ({where[:100]} {what[:60]}): make it again")


@cache
def _fields(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def rebuilt(cls: type[T], plain: Any, where: str) -> T:
    """Return the dataclass that was stored as a mapping; `where` is what messages call it."""
    kind: Any = cls
    fields = _fields(kind)
    if not isinstance(plain, dict) or plain.keys() != fields.keys():
        known = plain.keys() if isinstance(plain, dict) else ()
        odd = sorted(set(known) ^ set(fields))
        raise Damaged(
            where, f"must have {odd[0]!r}" if odd and odd[0] in fields else f"holds {odd!r}" if odd else "is none"
        )
    given = {name: value(wanted, plain[name], f"{where}.{name}") for name, wanted in fields.items()}
    try:
        return cls(**given)
    except BadInput as e:
        raise Damaged(where, f"is unsound: {e}") from None


def value(kind: Any, plain: Any, where: str) -> Any:
    """Return one stored value as the type that its field declares, or refuse it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _row(inner, plain, where)
    if origin in (types.UnionType, Union):
        kinds = [k for k in inner if k is not type(None)]
        return None if plain is None and len(kinds) < len(inner) else value(kinds[0], plain, where)
    if origin is Literal:
        if isinstance(plain, str) and plain in inner:
            return plain
    elif dataclasses.is_dataclass(kind):
        return rebuilt(kind, plain, where)  # type: ignore[arg-type]
    elif type(plain) is kind and kind in SOUND and SOUND[kind](plain):
        return plain
    raise Damaged(where, f"is {str(plain)[:40]!r}")


def _row(inner: tuple[Any, ...], plain: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(plain, list):
        raise Damaged(where, "is no list")
    kinds = inner[:1] * len(plain) if inner[-1] is Ellipsis else inner
    if len(kinds) != len(plain):
        raise Damaged(where, f"has {len(plain)} entries, not {len(kinds)}")
    if inner[-1] is Ellipsis and inner[0] in SOUND and all(type(v) is inner[0] and SOUND[inner[0]](v) for v in plain):
        return tuple(plain)
    return tuple(value(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, plain, strict=True)))
