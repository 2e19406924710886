"""Margins of a population in a file of TOML or JSON."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from calibrant.errors import BadInput

LARGEST = 16_000_000  # bytes
Names = Callable[[str], tuple[str, ...]]
Margins = dict[object, Mapping[object, object]]


def margins_of(path: str, names: Names) -> Margins:
    """Return what a file says: a table for each column, a level and its share or count on each line.

    Of several columns jointly, both the columns and their levels are separated by commas, as `names` splits them.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            raw = opened.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise BadInput(f"{path}: more than {LARGEST // 1_000_000} MB of margins; name fewer levels")
        text = raw.decode("utf-8")
        kept = json.loads(text) if file.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as e:
        raise BadInput(f"cannot read {path!r}: {e.strerror or e}") from None
    except (ValueError, RecursionError) as e:
        raise BadInput(f"{path}: not {'JSON' if file.suffix.lower() == '.json' else 'TOML'} ({e})") from None
    if not isinstance(kept, dict) or not kept or not all(isinstance(v, dict) and v for v in kept.values()):
        raise BadInput(f"{path}: write a table for each column, such as [sex] with the line F = 0.51")
    return dict(_margin(key, levels, names) for key, levels in kept.items())


def _margin(key: str, levels: Mapping[str, object], names: Names) -> tuple[object, Mapping[object, object]]:
    columns = names(key)
    if len(columns) == 1:
        return columns[0], dict[object, object](levels.items())
    jointly: dict[object, object] = {names(level): share for level, share in levels.items()}
    return columns, jointly
