"""Progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from calibrant.data.progress import ProgressEvent
from calibrant.sanitize import sanitize

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import Task

    from calibrant.data.reading import Reading

WIDE = 16  # cells of the bar
BLOCK, SPACE = "\u2588", "\u2591"  # done, and to do
ALMOST = 0.99  # of a run that has not ended, at most


class Progress:
    """The hook for progress that the commands pass: the step, its share of the run and the time left, on a terminal.

    Where standard error is none, nothing is shown. Between two calls the share moves on with the time, as far as the
    estimate of what is left allows.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to show it; standard error if that is a terminal.
    clock : callable
        Seconds since any moment.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._bar: Bar | None = None
        self._event_now, self._reported, self._began, self._shown = ProgressEvent(step="reading"), clock(), clock(), 0.0

    def __enter__(self) -> Progress:
        if self._console is None and sys.stderr.isatty():
            from rich.console import Console

            self._console = Console(stderr=True)
        if self._console is not None:
            from rich.progress import Progress as Bar
            from rich.progress import ProgressColumn, SpinnerColumn
            from rich.text import Text

            line = self.line

            class Reported(ProgressColumn):
                """What is being done, rendered again whenever the terminal is."""

                def render(self, _: Task) -> Text:
                    return Text(line())

            self._bar = Bar(SpinnerColumn(), Reported(), console=self._console, transient=True)
            self._bar.start()
            self._bar.add_task("", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __call__(self, event_now: ProgressEvent) -> None:
        """Show what is being done, and how far the run is."""
        self._event_now, self._reported = event_now, self._clock()

    def line(self) -> str:
        """What is shown now: a bar, the step, its rows and the time left; the time so far where that is open."""
        event_now = self.now()
        if event_now.share is None:
            return sanitize(f"{event_now}, {self._clock() - self._began:.0f} s so far")
        return sanitize(f"{BLOCK * int(WIDE * event_now.share):{SPACE}<{WIDE}} {event_now}")

    def now(self) -> ProgressEvent:
        """Where the run is: what was reported last, and what has passed since."""
        event_now, passed = self._event_now, self._clock() - self._reported
        if event_now.share is None or not event_now.left:
            return event_now
        share = event_now.share + (1.0 - event_now.share) * passed / event_now.left
        share = min(
            share, event_now.until or event_now.share, ALMOST
        )  # a step that takes longer than planned does not end
        self._shown = max(self._shown, share)
        left = event_now.left * (1.0 - self._shown) / max(1.0 - event_now.share, 1.0 - ALMOST)
        return replace(event_now, share=self._shown, left=left)


def reported_first(source: object, options: Reading) -> object:
    """Say on standard error, when it is a terminal, what the data are interpreted as and all that is in the way.

    Return the source to go on with: it is opened once.
    """
    if not sys.stderr.isatty():
        return source
    from calibrant.inspect.run import preview
    from calibrant.report.looked import short

    opened, seen = preview(source, options)
    if seen is not None:
        print(short(seen), end="\n\n", file=sys.stderr)
    return opened
