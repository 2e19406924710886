"""The text of a map, taken from anyone: how large, how deep and how full it may be is settled before it is parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from calibrant.errors import BadInput

LARGEST = 16 << 20  # bytes: the fullest map that a recipe makes has a few
LISTS = 200_000  # lists and objects: an empty one is three bytes in the file and seventy in memory
DEEPEST = 16  # of lists within lists: a map has five
WRITTEN = "a calibrator is written by to_json or calibrant repair --calibrator"


def calibrator_text(path: str) -> str:
    """Return the text of a map's file, read no further than a map can be long."""
    try:
        with open(path, "rb") as file:
            kept = file.read(LARGEST + 1)
        if len(kept) > LARGEST:
            raise BadInput(f"cannot read the calibrator {path!r}: it is larger than {LARGEST >> 20} MB; {WRITTEN}")
        return kept.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as e:
        why = "it is not UTF-8" if isinstance(e, UnicodeDecodeError) else e.strerror or e
        raise BadInput(f"cannot read the calibrator {path!r}: {why}") from None


def parsed(text: str) -> Any:
    """Return what the JSON text of a map holds: every name once, every number finite, no deeper than a map is."""
    if len(text) > LARGEST:
        raise BadInput(f"no calibrator: the text is longer than {LARGEST >> 20} MB; {WRITTEN}")
    if text.count("[") + text.count("{") > LISTS:
        raise BadInput(f"no calibrator: it holds more than {LISTS:,} lists; {WRITTEN}")
    try:
        result = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise BadInput(f"not JSON (its lists are nested too deep): {WRITTEN}") from None
    except ValueError as e:
        raise BadInput(f"not JSON ({e}): {WRITTEN}") from None
    _check_depth(result)
    return result


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object, of which a reader must not see one half and another reader the other."""
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in result if names.count(name) > 1)
        raise ValueError(f"{twice[:60]!r} is there twice")
    return result


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _check_depth(result: Any) -> None:
    level = [result]
    for _ in range(DEEPEST):
        level = [v for kept in level for v in _inside(kept) if isinstance(v, (list, Mapping))]
        if not level:
            return
    raise BadInput(f"no calibrator: its lists are nested deeper than {DEEPEST}; {WRITTEN}")


def _inside(values: Any) -> Sequence[Any]:
    if isinstance(values, Mapping):
        return list(values.values())
    return values if isinstance(values, list) else ()
