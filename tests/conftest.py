"""What runs when, what a test may cost, and when a skip is a failure.

Three tiers. *Quick*, the default: every test takes under 0.4 seconds of CPU. `--rest`: the files of `LONG`, of what is
marked `slow` and of the examples of a property that quick leaves out one third, of the long simulations one tenth, and
all that is `slow(turns=1)`. Both: `--all`. `--nightly`: every simulation, those marked `nightly` too.

The third and the tenth are `CALIBRANT_SLICE`, 0 to 9, or `all`; else the number of days on which the branch changed:
changes on ten days run all. A test's share follows from its name, and stays when others come and go.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import calibrant as cal

for library in ("OMP", "OPENBLAS", "MKL"):  # threads of small matrices, in two workers, mostly wait for each other
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")  # workers of xdist and commands inherit it
# Spark Connect takes its Python from the environment of the Java process, which the first test with Spark starts.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))  # so that tests may share modules: `from validity import designs`

import effort  # noqa: E402  (beside this file)
from costs import Costs  # noqa: E402

LONG = (
    "browser",
    "papers",
    "validity",
    "unit/apps/losses/test_objectives.py",
    "unit/test_reference.py",
)  # places that wait for --rest: PyTorch is large, and Sphinx is of the site
SIMULATIONS = ("papers", "validity")  # of these one tenth runs, but when they are named
EXACT = "test_exact_"  # in them, files that enumerate instead of simulating do not wait, and run whole
SHARED = "CALIBRANT_SHARED"
SLICE = "CALIBRANT_SLICE"
TURNS = 3  # days of which one brings a slow test, and the further examples of a property
EFFORTS = {
    "all": "run the quick tests and the rest",
    "rest": "run what takes longer: the browser each time, slow tests and long simulations in turn",
    "nightly": "run everything, the heavy simulations too",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, says in EFFORTS.items():
        parser.addoption(f"--{name}", action="store_const", const=name, dest="effort", default="quick", help=says)
    parser.addoption("--every", type=int, default=1, metavar="K", help="of each file run one test in K, the first too")
    parser.addoption("--cpu-table", metavar="FILE", help="write the CPU seconds that each test took, the longest first")
    parser.addoption("--cpu-most", type=float, metavar="S", help="fail a test that takes over S seconds of CPU, twice")


def pytest_configure(config: pytest.Config) -> None:
    effort.load(config.getoption("effort"))
    if config.getoption("effort") in ("all", "rest"):
        which = os.environ.setdefault(SLICE, effort.slice_of_today(HERE))  # one for all workers, be it midnight
        if which not in effort.SLICES:
            raise pytest.UsageError(f"{SLICE}={which}: pass 0 to 9, or all")
    config.pluginmanager.register(Costs(config.getoption("cpu_most"), config.getoption("cpu_table")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    how = config.getoption("effort")
    if how == "quick":
        terminalreporter.write_line("These were the quick tests; what takes longer runs with --rest, or --all.")
    elif how != "nightly":
        terminalreporter.write_line(f"Of what takes turns ran slice {os.environ[SLICE]} ({SLICE}: 0 to 9, or all).")


def waits(path: Path) -> bool:
    """Tell whether a file or folder of tests runs with --rest, not by default."""
    place = path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else ""
    return place.startswith(LONG) and not path.name.startswith(EXACT)


def simulates(path: Path) -> bool:
    """Tell whether a file of tests simulates."""
    return waits(path) and path.relative_to(HERE).as_posix().startswith(SIMULATIONS)


def named(path: Path, config: pytest.Config) -> bool:
    """Tell whether the command line asks for a file, or for a folder around it that waits."""
    asked = [(config.invocation_params.dir / a.split("::")[0]).resolve() for a in config.args]
    return path in asked or any(a in path.parents and waits(a) for a in asked)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    quick = config.getoption("effort") == "quick" and collection_path.is_file()
    return True if quick and waits(collection_path) and not named(collection_path, config) else None


def runs(item: pytest.Item, how: str) -> bool:
    """Tell whether a test is among those that the options ask for."""
    if item.get_closest_marker("nightly"):
        return how == "nightly"
    slow = item.get_closest_marker("slow")
    waiting = waits(item.path) or slow is not None
    if how == "quick":
        return not waiting or named(item.path, item.config)
    turns = 10 if simulates(item.path) else 1 if slow is None else slow.kwargs.get("turns", TURNS)
    if how != "nightly" and turns > 1:
        return effort.in_slice(item.nodeid, os.environ[SLICE], turns)
    if how != "rest" or waiting:
        return True
    return effort.has_rest(getattr(item, "obj", None)) and effort.in_slice(item.nodeid, os.environ[SLICE], TURNS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one process, but where each takes long: what it makes and compiles is made once."""
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group, file = str(super()._split_scope(nodeid)), nodeid.split("::")[0]
            return file if group == nodeid and not waits(config.rootpath / file) else group

    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "example" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("example"))
    chosen = {i.nodeid: runs(i, config.getoption("effort")) for i in items}
    seen = Counter[Path]()
    for item in items:
        if chosen[item.nodeid]:
            chosen[item.nodeid] = seen[item.path] % config.getoption("every") == 0
            seen[item.path] += 1
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
    """Data and golden values that are not in the repository: `shared / "data/x.csv"` is there or skips the test."""

    def __truediv__(self, name: str) -> Path:
        path = Path(os.environ.get(SHARED, HERE.parents[1] / "shared")) / name
        if not path.exists():
            pytest.skip(f"there is no {path}: set {SHARED} to the directory of shared data")
        return path


@pytest.fixture(scope="session")
def shared() -> SharedData:
    return SharedData()


@dataclass(frozen=True)
class Example:
    """What `calibrant example` leaves: its words, its record and its page."""

    printed: str
    record: cal.AuditRecord
    page: Path


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The audit of the bundled data takes half a minute: made once, by the one process that runs all who ask for it."""
    from calibrant.cli import main

    page = tmp_path_factory.mktemp("example") / "example.html"
    record, printed = page.with_suffix(".json"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(["example", "-o", str(page), "-o", str(record)])
    return Example(printed.getvalue(), cal.AuditRecord.from_json(record.read_text(encoding="utf-8")), page)
