"""Dask DataFrames, and Parquet row groups read by a `distributed.Client`'s workers: partial sums, joined in a tree."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from calibrant.data.engines.work import caller
from calibrant.data.sources.source import Fragments, Share
from calibrant.errors import EngineFailed

if TYPE_CHECKING:
    import pandas as pd
    from dask.dataframe import DataFrame
    from dask.delayed import Delayed
    from distributed import Client

FAN = 8  # sums that one task joins: a worker holds no more of them at once


class DaskFrame:
    """The rows of a Dask DataFrame.

    `client`: by default the scheduler that Dask would use.
    """

    def __init__(self, frame: DataFrame, client: Client | None = None) -> None:
        self.frame, self.client = frame, client
        self.columns = tuple(map(str, frame.columns))

    def run(self, task: bytes, columns: Sequence[str]) -> tuple[list[bytes], int]:
        """Messages that together cover every partition once, and how many partitions there are."""
        import dask

        count = dask.delayed(_counting(task, "count_pandas"), pure=False)
        parts = self.frame[list(columns)].to_delayed()
        return _joined(task, [count(i, part) for i, part in enumerate(parts)], self.client), len(parts)


class DaskFragments:
    """Row groups of Parquet files that the workers open themselves."""

    def __init__(self, client: Client, fragments: Fragments) -> None:
        self.client, self.fragments = client, fragments

    def run(self, task: bytes, columns: Sequence[str]) -> tuple[list[bytes], int]:  # noqa: ARG002 - the task names the columns
        """Messages that together cover every share of fragments once, and how many there are."""
        import dask

        count = dask.delayed(_counting(task, "count_fragments"), pure=False, traverse=False)
        shares = self.fragments.shares()
        sums = [count(i, dask.delayed(s, traverse=False)) for i, s in enumerate(shares)]
        return _joined(task, sums, self.client), len(shares)


def _joined(raw: bytes, sums: list[Delayed], client: Client | None) -> list[bytes]:
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
        if client is not None and futures:
            client.cancel(futures)
        if isinstance(e, Exception):
            why = (str(e) or type(e).__name__).splitlines()[0][:300]
            raise EngineFailed(f"the Dask computation failed, and nothing was counted: {why}") from e
        raise


def _active() -> Client | None:
    """The client that Dask would use; None if it would use this process, as `dask.config.set` may say."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if isinstance(owner, distributed.Client) else None


# ---- what travels: no name of calibrant may be needed to unpickle it ----


def _counting(raw: bytes, name: str) -> Callable[[int, pd.DataFrame | Share], bytes]:
    call = caller("Dask")

    def sum_up(part: int, inputs: pd.DataFrame | Share) -> bytes:
        return call(name, raw, part, inputs)

    return sum_up


def _joining(raw: bytes) -> Callable[[list[bytes]], bytes]:
    call = caller("Dask")

    def join(messages: list[bytes]) -> bytes:
        return call("join", raw, 0, messages)

    return join
