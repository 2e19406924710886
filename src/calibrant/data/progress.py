"""How far a run is: the value that every hook for progress is called with, and the count behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock

from calibrant.data.sources.source import OnRows

SOON = 1.0  # seconds of work after which the pace of this machine is heeded


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressEvent:
    """What is being done, and how far the run is.

    Parameters
    ----------
    step : str
        What is being done, such as ``"reading"``; in the first calls of an audit, what the data are interpreted as.
    rows : int
        Rows read in this step so far; 0 where the step reads none.
    of : int or None
        Rows that it will read, where the source can tell.
    share : float or None
        Of the whole run that is done, from 0 to 1; it never falls. None while that is unknown.
    left : float or None
        Seconds until the end, about.
    until : float or None
        The share at the end of this step, about.
    """

    step: str
    rows: int = 0
    of: int | None = None
    share: float | None = None
    left: float | None = None
    until: float | None = None

    def __str__(self) -> str:
        read = f" {self.rows:,}{f' of {self.of:,}' if self.of else ''} rows" if self.rows else ""
        share = f" {100 * self.share:.0f}%" if self.share is not None else ""
        left = f", {about(self.left)} left" if self.left is not None else ""
        return f"{self.step}{':' if read or share else ''}{read}{',' if read and share else ''}{share}{left}"


Progress = Callable[[ProgressEvent], None]
"""The one hook for progress: called with a `ProgressEvent` when a step begins, and as its rows are read.

``progress=print`` will do. Rows are read on several threads, and the calls come one at a time.
"""


def about(seconds: float) -> str:
    """A time as one would say it: two digits at most."""
    if seconds < 90:
        return f"about {max(round(seconds, -1 if seconds >= 10 else 0), 1):.0f} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} min" if minutes < 90 else f"about {minutes / 60:.0f} h"


def counted(progress: Progress | None, what: str, of: int | None = None) -> OnRows | None:
    """A function that adds rows up, from any thread, and informs the hook; None where there is no hook."""
    if progress is None:
        return None
    lock, rows = Lock(), 0

    def add(more: int) -> None:
        nonlocal rows
        with lock:
            rows += more
            progress(ProgressEvent(step=what, rows=rows, of=of))

    progress(ProgressEvent(step=what, of=of))
    return add


class ProgressTracker:
    """Informs a hook how far a run is that reads rows and then takes steps of known cost."""

    def __init__(
        self,
        hook: Progress | None,
        passes: int,  # times that the rows are read
        # Seconds that all steps after the reading take for a number of rows, on a machine of usual speed.
        later: Callable[[int], float],
        clock: Callable[[], float] = time.monotonic,  # seconds since any moment
    ) -> None:
        self.hook, self.passes, self.later, self.clock = hook, passes, later, clock
        self.start = self.read = clock()
        self.steps: list[str] = []
        self.costs: dict[str, float] = {}  # of what is not done, in order
        self.done = self.share = 0.0

    def reading(self, event_now: ProgressEvent) -> None:
        """Tell of rows that are read, and how far the run is where the source reported how many there are."""
        if event_now.step not in self.steps:
            self.steps.append(event_now.step)
        before = len(self.steps) - 1  # passes that are over
        if event_now.of and (event_now.rows or before):
            passed = self.clock() - self.start
            part = (before + min(event_now.rows / event_now.of, 1.0)) / max(self.passes, before + 1)
            self._report(event_now, passed, passed / part * (1.0 - part) + self.later(event_now.of))
        elif self.hook is not None:
            self.hook(event_now)

    def expect(self, costs: Mapping[str, float]) -> None:
        """Say what each step to come costs, now that the rows are read."""
        self.costs, self.read = dict(costs), self.clock()

    def begin(self, step: str) -> None:
        """Tell that a step begins."""
        now = next(iter(self.costs.values()), 0.0)
        self._report(
            ProgressEvent(step=step), self.clock() - self.start, self.pace * sum(self.costs.values()), self.pace * now
        )

    def finish(self, code: str) -> None:
        """Count the cost of what is done."""
        self.done += self.costs.pop(code, 0.0)

    @property
    def pace(self) -> float:
        """Seconds of this machine for a second of a usual one, as far as the steps taken tell."""
        return (self.clock() - self.read + SOON) / (self.done + SOON)

    def _report(self, event_now: ProgressEvent, passed: float, left: float, step: float = 0.0) -> None:
        whole = passed + left
        self.share = max(self.share, passed / whole if whole > 0 else 0.0)
        until = max(self.share, (passed + step) / whole if whole > 0 else 0.0)
        if self.hook is not None:
            self.hook(replace(event_now, share=self.share, left=left, until=until))
