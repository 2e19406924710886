"""How the parts of a record are noted: types of values, and what makes a type of fields that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, defstruct

Kind: TypeAlias = Any  # a type, made when this is loaded
Fields: TypeAlias = Mapping[str, Kind]  # types by the names of the fields that have them; a record may lack "name?"
Share = Annotated[float, Meta(ge=0, le=1)]
Gap = Annotated[float, Meta(ge=-1, le=1)]
Level = Annotated[float, Meta(gt=0, lt=1)]
Joint = Annotated[float, Meta(ge=0, lt=1)]  # of both ends of a range, each of which may spend half
Positive = Annotated[float, Meta(gt=0)]
Size = Annotated[float, Meta(ge=0)]
Odds = Annotated[float, Meta(ge=1)]
Zero = Annotated[float, Meta(ge=0, le=0)]
One = Annotated[float, Meta(ge=1, le=1)]
Count = Annotated[int, Meta(ge=0)]
Some = Annotated[int, Meta(ge=1)]
Several = Annotated[int, Meta(ge=2)]
Fewest = Annotated[int, Meta(ge=5)]  # people under whom a count is not shown
Steps = Annotated[int, Meta(ge=2, le=1024)]
Distinct = Annotated[int, Meta(ge=1, le=1024)]
Pair = Annotated[list[str], Meta(min_length=2, max_length=2)]
Condition: Kind = Annotated[dict, Meta(description="One condition of a rule, as data.")]
By = Literal["error", "gap"]
Judge = Literal["auto", "error", "gap"]
Target = Literal["rows", "population"]
Order = Literal[1, 2, 3]
RateName = Literal["selection_rate", "true_positive_rate", "false_positive_rate", "precision"]
Yes = Annotated[bool, Meta(extra_json_schema={"const": True})]
Rules: TypeAlias = Mapping[str, object] | None  # what types cannot say, in JSON Schema: for other programs alone
RULES: dict[str, dict[str, object]] = {}  # by the names of parts
ALL_OR_NONE: dict[str, int] = {}  # how many columns a curve has, by its method, where it may have none instead
UNDONE = {"enum": ["not-applicable", "not-run"]}
NULL = {"type": "null"}


def noted(kind: Kind, text: str, **bounds: Kind) -> Kind:
    """A type with what it means."""
    return Annotated[kind, Meta(description=text, **bounds)]


def many(kind: Kind) -> Kind:
    """A list of such."""
    return list[kind]


def named(kind: Kind) -> Kind:
    """Such, by their names."""
    return dict[str, kind]


def part(
    name: str,
    fields: Fields,
    text: str = "",
    tag: tuple[str, str] | None = None,
    rules: Rules = None,
    *,
    others: bool = False,
) -> Kind:
    """The type of a part of a record, which has no other field; a tag is a field with one value, and distinguishes it.

    With `others` it may have other fields when it is read, though the schema has none.
    """
    RULES[name] = dict(rules or {})
    kinds = [(key, kind) for keys, kind in fields.items() for key in keys.split()]
    return defstruct(
        name,
        [(k[:-1], kind | UnsetType, UNSET) if k.endswith("?") else (k, kind) for k, kind in kinds],
        namespace={"__doc__": text},
        tag_field=tag and tag[0],
        tag=tag and tag[1],
        kw_only=True,
        forbid_unknown_fields=not others,
    )


def settings_of(name: str, fields: Fields) -> Kind:
    """The type of the settings of a result, which may have others when read: no report of ours is refused."""
    return part(f"{name}Settings", fields, others=True)


def curve(method: str, text: str, columns: Fields | None = None, settings: Fields | None = None) -> Kind:
    """The type of a curve that a function draws: with those of what is in its columns, and of its settings.

    A curve that may lack each of its columns has all of them or none.
    """
    name = method.title().replace(".", "").replace("_", "")
    listed = None if columns is None else {names: many(kind) for names, kind in columns.items()}
    rules: Rules = None
    every = " ".join(columns or ()).split()
    if every and all(column.endswith("?") for column in every):
        ALL_OR_NONE[method] = len(every)
        rules = {"anyOf": [{"maxProperties": 0}, {"minProperties": len(every)}]}
    own = {
        "columns": named(list) if listed is None else part(f"{name}Columns", listed, rules=rules),
        "settings": dict if settings is None else settings_of(name, settings),
    }
    return part(name, own, text, ("method", method))
