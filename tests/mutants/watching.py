"""Plugins of pytest: one records which functions of the library a test enters, one runs tests against a mutant."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from mutants.mutant import Finder

INSIDE = os.sep + os.path.join("src", "calibrant") + os.sep
SLOW, PATIENCE = 10.0, 20.0  # times what a test took, and CPU seconds on top: then it is taken for one that never ends


class Enough(Exception):
    """A test has taken longer than it may."""


def used() -> float:
    """Return the CPU seconds of this process."""
    times = os.times()
    return times.user + times.system


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `Enough` after so many CPU seconds; never for none, or for infinitely many."""

    def ring(*_: Any) -> None:
        raise Enough(f"over {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds if math.isfinite(seconds) else 0.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


class Trace:
    """Writes a line of JSON a test: its name, CPU seconds, how it ended, and what it entered as ``module:function``.

    A test that takes longer than `limit` is cut off: what a simulation enters, it enters in its first data sets.
    """

    def __init__(self, out: Path, limit: float) -> None:
        self.out, self.limit = out, limit
        self.seen: set[CodeType] = set()

    def _enter(self, frame: FrameType, _event: str, _arg: Any) -> None:
        self.seen.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Watch a test and its fixtures."""
        self.seen.clear()
        self.ended, self.took = "ok", 0.0
        sys.settrace(self._enter)
        threading.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            with self.out.open("a", encoding="utf-8") as file:
                print(json.dumps([item.nodeid, round(self.took, 3), self.ended, self._entered()]), file=file)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[Any]:
        """Time a test, and cut it off."""
        start = used()
        try:
            with at_most(self.limit):
                return (yield)
        except Enough:
            self.ended = "cut"
        except BaseException:
            self.ended = "cut" if self.limit and used() - start > 0.95 * self.limit else "failed"
            if self.ended == "failed":
                raise
        finally:
            self.took = used() - start

    def _entered(self) -> list[str]:
        found = set()
        for code in self.seen:
            at = code.co_filename.find(INSIDE)
            if at >= 0:
                module = code.co_filename[at + len("/src/") : -len(".py")].replace(os.sep, ".")
                found.add(f"{module}:{code.co_qualname}")
        return sorted(found)


class Against:
    """Runs some tests against a mutant, each file until a test of it fails.

    Parameters
    ----------
    chosen : mapping of str to float
        Names of tests, and the CPU seconds that each took without the mutant; infinity if that is not known.
    """

    def __init__(self, chosen: Mapping[str, float]) -> None:
        self.chosen = chosen
        self.killed: dict[str, str] = {}
        self.ran: set[str] = set()
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Find an example that fails; do not make it smaller, and choose the same ones every time."""
        from hypothesis import Phase, settings

        name = settings.get_current_profile_name()
        settings.register_profile(
            name, settings.get_profile(name), phases=(Phase.explicit, Phase.generate), derandomize=True, database=None
        )
        settings.load_profile(name)

    def pytest_sessionstart(self) -> None:
        """Find the mutant before pytest does, which rewrites every file called like a test, the library's too."""
        sys.meta_path.sort(key=lambda finder: not isinstance(finder, Finder))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that were chosen, the quickest of each file first."""
        kept = [i for i in items if i.nodeid in self.chosen]
        items[:] = sorted(kept, key=lambda i: (self._file(i), self.chosen[i.nodeid]))

    @staticmethod
    def _file(item: pytest.Item) -> str:
        return item.nodeid.split("::")[0]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Leave out what is left of a file that has killed."""
        if self._file(item) in self.killed:
            pytest.skip("killed already")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[Any]:
        """Give up on a test that does not end."""
        start = used()
        try:
            with at_most(SLOW * self.chosen[item.nodeid] + PATIENCE):
                return (yield)
        finally:
            self.seconds[item.nodeid] = used() - start

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first failure of a file, in a test or in what it is given."""
        file = report.nodeid.split("::")[0]
        if report.failed:
            self.killed.setdefault(file, report.nodeid)
        if report.when == "call" and not report.skipped:
            self.ran.add(file)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported has seen the mutant too."""
        if report.failed:
            self.killed.setdefault(report.nodeid.split("::")[0], report.nodeid)


def files_of(tests: Collection[str]) -> list[str]:
    """Return the files of tests, sorted."""
    return sorted({name.split("::")[0] for name in tests})
