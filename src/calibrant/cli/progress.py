"""Progress on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from calibrant.data.reading import Reading


class Progress:
    """The hook for progress that the commands pass: what is being done, on standard error when it is a terminal."""

    def __init__(self) -> None:
        self._shown: tuple[Bar, TaskID] | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            bar = Bar(*columns, console=Console(stderr=True), transient=True)
            bar.start()
            self._shown = bar, bar.add_task("reading", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def __call__(self, step: str, rows: int) -> None:
        """Show what is being done, and of how many rows."""
        if self._shown is not None:
            bar, task = self._shown
            bar.update(task, description=visible(f"{step}: {rows:,} rows" if rows else step))


def told_first(source: object, asked: Reading) -> object:
    """Say on standard error, when it is a terminal, what the data are taken for and all that is in the way.

    Return the source to go on with: it is opened once.
    """
    if not sys.stderr.isatty():
        return source
    from calibrant.look.run import glance
    from calibrant.report.looked import short

    opened, seen = glance(source, asked)
    if seen is not None:
        print(short(seen), end="\n\n", file=sys.stderr)
    return opened
