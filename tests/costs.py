"""What tests cost: seconds of CPU of each, its fixtures apart, summed up at the end and held to a limit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

TOOK = "cpu"  # the name under which a report carries the seconds


def cpu() -> float:
    """Return the seconds of CPU that this process took, and the processes that it has waited for."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def taken(report: pytest.TestReport) -> float:
    return float(str(dict(report.user_properties).get(TOOK, 0.0)))


class Costs:
    """Measures every test; with ``most``, fails one that takes more twice in a row."""

    def __init__(self, most: float | None, table: str | None) -> None:
        self.most, self.table = most, table
        self.seconds: dict[str, float] = {}
        self.fixtures = self.begun = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Any:
        """Add to the report of a phase what it took."""
        report = yield
        now = cpu()
        report.user_properties = [*report.user_properties, (TOOK, now - self.begun)]
        self.begun = now
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a test that takes too long once more: the first of a file pays for imports and for what it compiles."""
        self.begun = cpu()
        if self.most is None or item.get_closest_marker("slow"):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if self.over(reports):
            self.begun = cpu()
            item._initrequest()  # type: ignore[attr-defined]
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            for report in self.over(reports):
                report.outcome = "failed"
                report.longrepr = (
                    f"{item.nodeid} took {taken(report):.2f} seconds of CPU, twice; at most {self.most:g} are allowed: "
                    "make it smaller, or mark it @pytest.mark.slow"
                )
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def over(self, reports: list[pytest.TestReport]) -> list[pytest.TestReport]:
        """Return the report of a call that took too long, unless something failed anyway."""
        if self.most is None or not all(r.passed for r in reports):
            return []
        return [r for r in reports if r.when == "call" and taken(r) > self.most]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.seconds[report.nodeid] = taken(report)
        else:
            self.fixtures += taken(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        tests = sum(self.seconds.values())
        terminalreporter.write_line(f"Tests took {tests:.0f} seconds of CPU, their fixtures {self.fixtures:.0f}.")
        if self.table:
            lines = (f"{s:.2f}\t{name}\n" for name, s in sorted(self.seconds.items(), key=lambda t: -t[1]))
            Path(self.table).write_text("".join(lines), encoding="utf-8")
