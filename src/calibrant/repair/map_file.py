"""The text of a map, taken from anyone: how large, how deep and how full it may be is settled before it is parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from calibrant.errors import BadInput

LARGEST = 16 << 20  # bytes: the fullest map that a recipe makes has a few
LISTS = 200_000  # lists and objects: an empty one is three bytes in the file and seventy in memory
DEEPEST = 16  # of lists within lists: a map has five
WRITTEN = "a calibrator is written by to_json or calibrant repair --map"


def map_text(path: str) -> str:
    """Return the text of a map's file, read no further than a map can be long."""
    try:
        with open(path, "rb") as file:
            held = file.read(LARGEST + 1)
        if len(held) > LARGEST:
            raise BadInput(f"cannot read the calibrator {path!r}: it is larger than {LARGEST >> 20} MB; {WRITTEN}")
        return held.decode("utf-8-sig")
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
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise BadInput(f"not JSON (its lists are nested too deep): {WRITTEN}") from None
    except ValueError as e:
        raise BadInput(f"not JSON ({e}): {WRITTEN}") from None
    _check_depth(found)
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, of which a reader must not see one half and another reader the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"{twice[:60]!r} is there twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _check_depth(found: Any) -> None:
    level = [found]
    for _ in range(DEEPEST):
        level = [v for held in level for v in _inside(held) if isinstance(v, (list, Mapping))]
        if not level:
            return
    raise BadInput(f"no calibrator: its lists are nested deeper than {DEEPEST}; {WRITTEN}")


def _inside(held: Any) -> Sequence[Any]:
    if isinstance(held, Mapping):
        return list(held.values())
    return held if isinstance(held, list) else ()
