"""Dask DataFrames, and Parquet row groups read by the workers of a `distributed.Client`: partial sums, joined in a tree."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from calibrant.data.engines.work import Task, caller
from calibrant.data.sources import Fragments
from calibrant.errors import EngineFailed

FAN = 8  # sums that one task joins


class DaskFrame:
    """The rows of a Dask DataFrame.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    client : distributed.Client or None
        By default the scheduler that Dask would use.
    """

    def __init__(self, frame: Any, client: Any = None) -> None:
        self.frame, self.client = frame, client

    def run(self, task: Task) -> tuple[list[bytes], int]:
        """Return messages that together cover every partition once, and how many partitions there are."""
        import dask

        raw = task.to_bytes()
        count = dask.delayed(_counting(raw, "count_pandas"), pure=False)
        parts = self.frame[list(task.columns)].to_delayed()
        return _joined(raw, [count(i, part) for i, part in enumerate(parts)], self.client), len(parts)


class DaskFragments:
    """Row groups of Parquet files that the workers open themselves.

    Parameters
    ----------
    client : distributed.Client
    fragments : Fragments
    """

    def __init__(self, client: Any, fragments: Fragments) -> None:
        self.client, self.fragments = client, fragments

    def run(self, task: Task) -> tuple[list[bytes], int]:
        """Return messages that together cover every share of fragments once, and how many there are."""
        import dask

        raw = task.to_bytes()
        count = dask.delayed(_counting(raw, "count_fragments"), pure=False, traverse=False)
        shares = self.fragments.shares()
        sums = [count(i, dask.delayed(s, traverse=False)) for i, s in enumerate(shares)]
        return _joined(raw, sums, self.client), len(shares)


def _joined(raw: bytes, sums: list[Any], client: Any) -> list[bytes]:
    import dask

    join = dask.delayed(_joining(raw), pure=False)
    while len(sums) > FAN:
        sums = [join(sums[i : i + FAN]) for i in range(0, len(sums), FAN)]
    client, futures = client or _active(), []
    try:
        if client is None:
            return list(dask.compute(*sums))
        futures = client.compute(sums)
        return list(client.gather(futures))
    except BaseException as e:
        if futures:
            client.cancel(futures)
        if isinstance(e, Exception):
            why = (str(e) or type(e).__name__).splitlines()[0][:300]
            raise EngineFailed(f"the Dask computation failed, and nothing was counted: {why}") from e
        raise


def _active() -> Any:
    """Return the client that Dask would use; None if it would use this process, as `dask.config.set` may say."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if isinstance(owner, distributed.Client) else None


# ---- what travels: no name of calibrant may be needed to unpickle it ----


def _counting(raw: bytes, name: str) -> Callable[[int, Any], Any]:
    call = caller("Dask")

    def sum_up(part: int, given: Any) -> Any:
        return call(name, raw, part, given)

    return sum_up


def _joining(raw: bytes) -> Callable[[list[bytes]], Any]:
    call = caller("Dask")

    def join(messages: list[bytes]) -> Any:
        return call("join", raw, 0, messages)

    return join
