"""The plugin for pytest: a fixture that audits and asserts, and an option that keeps the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from calibrant.audit.record import AuditRecord

    Audited = Callable[..., AuditRecord]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    group = parser.getgroup("calibrant", "calibration")
    group.addoption("--calibrant-pages", metavar="DIR", help="write the page of every audit into a directory")


@pytest.fixture
def calibrant_audit(request: pytest.FixtureRequest) -> Audited:
    """A function that audits and fails in one line where somebody is over the limit or undecided.

    It takes what `calibrant.audit` takes, and `groups`, `subgroups` and `allow_undecided` of `assert_within`; it
    returns the record. The verdict goes into JUnit's XML as a property of the test.
    """

    def audited(
        source: object,
        *,
        groups: bool = True,
        subgroups: bool = True,
        allow_undecided: bool = False,
        **settings: object,
    ) -> AuditRecord:
        __tracebackhide__ = True
        import calibrant  # here, so that suites that never ask pay nothing

        record: AuditRecord = calibrant.audit(source, **settings)  # type: ignore[call-overload]
        request.node.user_properties.append((f"calibrant {record.name}", record.verdict))
        if folder := request.config.getoption("--calibrant-pages"):
            _keep(record, Path(folder), request.node.name)
        calibrant.testing.assert_within(record, groups=groups, subgroups=subgroups, allow_undecided=allow_undecided)
        return record

    return audited


def _keep(record: AuditRecord, folder: Path, test: str) -> None:
    """Write the page under the name of its test; the second of a test has a number."""
    folder.mkdir(parents=True, exist_ok=True)
    name, number = re.sub(r"[^\w.-]+", "-", test).strip("-") or "test", 1
    while (path := folder / (f"{name}.html" if number == 1 else f"{name}-{number}.html")).exists():
        number += 1
    record.save(path)
