"""Progress on standard error."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """The hook for progress that the commands pass: what is being done, on standard error when it is a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("reading", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: str, rows: int) -> None:
        """Show what is being done, and of how many rows."""
        if self._bar is not None:
            self._bar.update(self._task, description=f"{step}: {rows:,} rows" if rows else step)
