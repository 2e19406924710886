"""Options, and rules about skips, that all tests share."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))  # so that tests may share modules: `from validity import designs`

NIGHTLY = "heavy simulation: run with --nightly"
SHARED = "CALIBRANT_SHARED"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="also run the heavy simulations")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--nightly"):
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason=NIGHTLY))


def forbidden(reason: str) -> bool:
    """Tell whether a skip for this reason is a failure in this environment."""
    if os.environ.get("CALIBRANT_REQUIRE_ALL") != "1" or NIGHTLY in reason:
        return False
    return SHARED in os.environ if SHARED in reason else True


def refuse_skip(report: Any) -> Any:
    """Turn a report of a forbidden skip into one of a failure."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if forbidden(reason):
            report.outcome, report.longrepr = "failed", f"{reason} (CALIBRANT_REQUIRE_ALL=1 allows no skips)"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    return refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    return refuse_skip((yield))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Directory of the data and golden values that are not in the repository."""
    path = Path(os.environ.get(SHARED, HERE.parents[1] / "shared"))
    if not path.is_dir():
        pytest.skip(f"there is no {path}: set {SHARED} to the directory of shared data")
    return path
