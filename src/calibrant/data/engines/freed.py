"""Free memory goes back to the system: what allocators keep for later counts as this process's, and is seldom used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pyarrow as pa


def release_memory() -> None:
    """Return free memory to the system: Arrow's, and that of the C library where it can be asked to (glibc).

    Threads that read leave a heap each, mostly free but no smaller.
    """
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    import ctypes

    try:
        result: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):  # another system, or another C library
        return None
    return result
