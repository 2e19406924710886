"""Several logs as one data set: what all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant.data.sources.source import Log, Source


def shared(opened: Sequence[Source]) -> tuple[tuple[str, ...], Log]:
    """Return the columns of a data set and what its logs are: of logs those columns that all have.

    Tasks know different things of a question; the columns that play a part must be in every log all the same.
    """
    first = opened[0]
    if not first.log.tool or len(opened) == 1:
        return first.columns, first.log
    every = set.intersection(*(set(one.columns) for one in opened))
    kept = replace(
        first.log,
        label=first.log.label if all(one.log.label == first.log.label for one in opened) else "",
        verdicts=tuple(dict.fromkeys(c for one in opened for c in one.log.verdicts if c in every)),
        unfinished=tuple(told for one in opened for told in one.log.unfinished),
        confidences=tuple(pair for pair in first.log.confidences if pair[0] in every),
    )
    return tuple(c for c in first.columns if c in every), kept
