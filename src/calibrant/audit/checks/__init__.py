"""The questions that an audit asks, a file each or a few: a file declares its own, and `run` asks all of them in order.

To add a check, write a file here that holds ``DECLARED``; nothing else lists the checks.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from calibrant.audit.context import Check


@cache
def all_checks() -> tuple[Check, ...]:
    """The questions that the files of this folder declare, in order."""
    files = (import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__))
    results: list[Check] = [q for f in files for q in getattr(f, "DECLARED", ())]
    return tuple(sorted(results, key=lambda q: q.order))


def of_code(code: str) -> Check | None:
    """The question of a code; None where no file declares it."""
    return next((q for q in all_checks() if q.code == code), None)


def gates() -> tuple[str, ...]:
    """The codes of the tests that may count for the exit status."""
    return tuple(q.code for q in all_checks() if q.gate)
