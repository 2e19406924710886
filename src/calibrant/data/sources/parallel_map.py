"""Work on several things at a time: on threads, or one after another where one at a time is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def parallel_map(
    work: Callable[[T], R], items: Sequence[T], most: int, failed: Callable[[], object] = lambda: None
) -> list[R]:
    """Return what work gives for each item, in their order, at most so many at a time.

    Where one at a time is asked for, work is done where this is called. The first failure is raised; `failed` is
    called before what else is under way is waited for.
    """
    if min(most, len(items)) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(most, len(items))) as pool:
        try:
            return list(pool.map(work, items))
        except BaseException:
            failed()
            raise
