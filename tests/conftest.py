"""What runs when, and when a skip is a failure."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))  # so that tests may share modules: `from validity import designs`

import effort  # noqa: E402  (beside this file)

LONG = ("browser", "papers", "validity")  # folders of tests that run with --all...
QUICK = "test_exact_"  # ...but for the files in them that enumerate instead of simulating
SHARED = "CALIBRANT_SHARED"
EFFORTS = {
    "all": "also run simulations, papers, browser, engines, the code of the documentation, and all examples",
    "rest": "run what --all adds and nothing else",
    "nightly": "also run the heavy simulations",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, says in EFFORTS.items():
        parser.addoption(f"--{name}", action="store_const", const=name, dest="effort", default="quick", help=says)


def pytest_configure(config: pytest.Config) -> None:
    effort.load(config.getoption("effort"))


def pytest_report_header(config: pytest.Config) -> str:
    chosen = config.getoption("effort")
    return "quick tests only: the rest run with --all" if chosen == "quick" else f"tests chosen by --{chosen}"


def is_long(item: pytest.Item) -> bool:
    """Tell whether a test runs with --all only, for its folder or its marker."""
    folder = item.path.relative_to(HERE).parts[0]
    return bool(item.get_closest_marker("all")) or (folder in LONG and not item.path.name.startswith(QUICK))


def runs(item: pytest.Item) -> bool:
    """Tell whether the options choose a test; a file named on the command line runs whole."""
    how = item.config.getoption("effort")
    if item.get_closest_marker("nightly"):
        return bool(how == "nightly")
    if how == "rest":
        return is_long(item) or effort.has_rest(getattr(item, "obj", None))
    named = {(item.config.invocation_params.dir / a.split("::")[0]).resolve() for a in item.config.args}
    return how != "quick" or not is_long(item) or item.path in named


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = {i.nodeid: runs(i) for i in items}
    config.hook.pytest_deselected(items=[i for i in items if not chosen[i.nodeid]])
    items[:] = [i for i in items if chosen[i.nodeid]]


def forbidden(reason: str) -> bool:
    """Tell whether a skip for this reason is a failure in this environment."""
    if os.environ.get("CALIBRANT_REQUIRE_ALL") != "1":
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


class SharedData:
    """Data and golden values that are not in the repository: `shared / "data/x.csv"` is there, or the test is skipped."""

    def __truediv__(self, name: str) -> Path:
        path = Path(os.environ.get(SHARED, HERE.parents[1] / "shared")) / name
        if not path.exists():
            pytest.skip(f"there is no {path}: set {SHARED} to the directory of shared data")
        return path


@pytest.fixture(scope="session")
def shared() -> SharedData:
    return SharedData()
