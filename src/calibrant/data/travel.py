"""Functions that a cluster carries to machines where calibrant may be missing, or another version.

They are built inside a function, so that every engine's pickling sends their code and not their name; they import
calibrant only when they run, and answer with a refusal if they cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import calibrant

WORK = "calibrant.data.work"


def caller(engine: str) -> Callable[..., Any]:
    """Return a function that runs one of `data.work` by name where it is unpickled.

    Called with the function's name, the task and the part, then what the function takes; returns its message.
    """
    version, work = calibrant.__version__, WORK

    def call(name: str, task: bytes, part: int, *given: Any) -> bytes:
        import importlib
        import json
        import platform

        where = f"{platform.node()} (Python {platform.python_version()})"
        try:
            there = getattr(importlib.import_module("calibrant"), "__version__", "another version")
            if there == version:
                arguments = (task, *given) if name == "join" else (task, part, *given)
                run: Callable[..., bytes] = getattr(importlib.import_module(work), name)
                return run(*arguments)
            why = f"a {engine} worker, {where}, has calibrant {there} and this session has {version}: install the same version on both"
        except ImportError as e:
            why = f"a {engine} worker, {where}, cannot import calibrant {version} ({e}): install it on every worker"
        head = json.dumps({"refused": "BadInput", "why": why, "parts": [part]}).encode()
        return len(head).to_bytes(8, "little") + head

    return call
