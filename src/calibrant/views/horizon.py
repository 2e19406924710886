"""Rows whose label is an outcome by a horizon, made of times and events; and those of unknown outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import takes
from calibrant.data.columns import Floats
from calibrant.data.predictions import Predictions, Unlabelled
from calibrant.data.read import in_memory
from calibrant.data.reading import Reading
from calibrant.data.specs.horizon import Way
from calibrant.data.specs.options import FIRST, Columns, RowOptions
from calibrant.errors import NotComputable
from calibrant.stats import survival
from calibrant.stats.survival import Steps
from calibrant.views.sample import Group, rows_of_groups

NO_PROOF = (
    "of outcomes by a horizon, weights of censoring are proved for independent rows of equal weight: leave {} out"
)


@takes(RowOptions, FIRST)
def at_horizon(
    source: object,
    *,
    score: str,
    time: str,
    event: str,
    horizon: float,
    entered: str | None = None,
    closed: str | float | date | None = None,
    competing: Columns = None,
    way: Way = "followed",
    **settings: Unpack[RowOptions],
) -> Predictions:
    """Make rows whose label is an outcome by a horizon: within 30 days, within a year.

    With ``T`` the time to the event and ``C`` the end of follow-up, a row has ``min(T, C)`` and what ended it. The
    outcome is 1 where the event came by the horizon H, and 0 where follow-up reached H without it, or another event
    came first. It is unknown where follow-up ended before H without an event.

    Parameters
    ----------
    source : path, glob, list of paths, directory or frame
        As `read`.
    score : str
        Column of the probability of the event by the horizon; with competing events, of its absolute risk.
    time, event : str
        Columns of the time to the event or to the end of follow-up (numbers, or dates if `entered` has dates), and of
        what ended it: 1, or `positive`, is the event; every other value but those of `competing` is none.
    horizon : float above 0
        In the unit of the times; days where they are dates.
    entered, closed : str, optional
        Column of entry, and the last date of follow-up. Rows with ``entered + horizon > closed`` are left out, and
        counted: all that remain could be followed to the horizon. With dates, times count in days.
    competing : str or sequence of str, optional
        Values of `event` of other events, such as death, after which this one cannot come: outcome 0.
    way : {"followed", "weights", "unknown"}
        What is done about rows lost before the horizon. ``"followed"`` refuses them with their count. ``"weights"``
        takes being lost as independent of the outcome: `certify.horizon` and the measures weigh the other rows.
        ``"unknown"`` assumes nothing: `certify.missing_labels` reads them.
    positive, by, cluster, weights, percent, missing, drop_missing, encoding, delimiter, decimal, sheet, dates
        As `read`; ``missing="drop"`` leaves out rows without a time, an event or an entry too.

    Returns
    -------
    Predictions
        With ``followed`` where outcomes are unknown; methods that read known outcomes alone then raise `NotComputable`.

    Raises
    ------
    BadInput
        A column is not there, a value cannot be used, or rows were lost and `way` does not say what that means.

    Examples
    --------
    >>> import calibrant as cal
    >>> log = {"days": [30, 400, 500, 90], "died": [1, 0, 1, 0], "risk": [0.6, 0.1, 0.2, 0.3]}
    >>> rows = cal.at_horizon(log, score="risk", time="days", event="died", horizon=365, way="unknown")
    >>> rows.y, len(rows.unlabelled.p)
    (array([1, 0, 0], dtype=int8), 1)
    """
    made = {"time": time, "event": event, "horizon": horizon, "entered": entered, "competing": competing, "way": way}
    ends = str(closed) if isinstance(closed, float) else closed
    return in_memory(source, Reading.of(score=score, closed=ends, allow_same=True, **made, **settings).named())


def groups_of_all(
    data: Predictions, by: tuple[str, ...], intersections: bool = False
) -> Iterator[tuple[Group, NDArray[np.intp]]]:
    """Yield each group, and the numbers of its rows: those of unknown outcome come after all others."""
    apart = data.unlabelled
    if apart is None:
        raise NotComputable("rows of unknown outcome were not kept")
    covariates = None if data.covariates is None else pa.concat_tables([data.covariates, apart.covariates])
    p = np.concatenate([data.p, apart.p])
    yield from rows_of_groups(Predictions(y=np.zeros(len(p), np.int8), p=p, covariates=covariates), by, intersections)


def follow_up_of_groups(
    data: Predictions, by: tuple[str, ...], intersections: bool = False
) -> Iterator[tuple[Group, Predictions]]:
    """Yield each group with its rows, those of unknown outcome among them, without covariates."""
    apart, followed = data.unlabelled, data.followed
    for name, rows in groups_of_all(data, by, intersections):
        if apart is not None and followed is not None:
            known, lost = rows[rows < data.n], rows[rows >= data.n] - data.n
            order = np.concatenate([known, lost + data.n])
            yield (
                name,
                replace(
                    data,
                    y=data.y[known],
                    p=data.p[known],
                    covariates=None,
                    unlabelled=Unlabelled(p=apart.p[lost], covariates=apart.covariates.take(pa.array(lost))),
                    followed=replace(followed, time=followed.time[order], kind=followed.kind[order]),
                    cache={},
                ),
            )


@dataclass(frozen=True)
class FollowedRows:
    """Every row, whether its outcome by the horizon is known or not."""

    p: Floats  # shape (n + m,): those with an outcome first
    y: Floats  # shape (n + m,): NaN where it is unknown
    time: Floats
    kind: NDArray[np.int8]  # what ended the follow-up
    horizon: float

    @classmethod
    def of(cls, data: Predictions) -> FollowedRows:
        """Those of rows from `at_horizon`; refuse rows without follow-up, and what no proof covers."""
        apart, followed = data.unlabelled, data.followed
        if apart is None or followed is None:
            raise NotComputable(
                "these rows have no follow-up: make them with calibrant.at_horizon(..., way='weights'), or by --time, "
                "--event, --horizon and --way weights"
            )
        for name in ("cluster", "weights"):
            if getattr(data, name) is not None:
                raise NotComputable(NO_PROOF.format(f"{name}="))
        return cls(
            np.concatenate([data.p, apart.p]),
            np.concatenate([data.y.astype(np.float64), np.full(len(apart.p), np.nan)]),
            followed.time,
            followed.kind,
            followed.horizon,
        )

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have an outcome."""
        return ~np.isnan(self.y)

    @property
    def until(self) -> Floats:
        """When each outcome is decided: at the event, or at the horizon."""
        return np.minimum(self.time, self.horizon)

    @cached_property
    def remaining(self) -> Steps:
        """The Kaplan-Meier estimate of still being followed."""
        return survival.censoring(self.time, self.kind)

    @cached_property
    def weights(self) -> Floats:
        """The inverse of how likely each outcome came to be known, by that estimate; 0 of those unknown."""
        return survival.inverse_weights(self.time, self.kind, self.horizon, self.remaining)

    @cached_property
    def risk(self) -> float:
        """The Aalen-Johansen estimate of the event's probability by the horizon."""
        return survival.incidence(self.time, self.kind).at(self.horizon)

    @cached_property
    def risk_error(self) -> float:
        """Its standard error."""
        return survival.incidence_variance(self.time, self.kind, self.horizon) ** 0.5
