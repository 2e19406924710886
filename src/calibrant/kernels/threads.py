"""One thread for small decompositions, so that their last bits do not depend on how many a machine has."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def one_thread() -> Any:
    """Return a context in which linear algebra runs on one thread."""
    return _controller().limit(limits=1, user_api="blas")
