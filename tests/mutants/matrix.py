"""Which file of tests kills which mutant: `python tests/mutants/matrix.py`, from the root of the repository.

Two steps, each kept in a folder (`--work`) so that it can be done again by itself:

1. ``trace``: every file runs once without a mutant, and what each test enters of the library is recorded; a simulation
   is cut off after a second. It has to pass.
2. ``run``: every mutant meets the tests that enter what it breaks: first those that enumerate, then others that
   compute, a few files at a time until one has killed it (``--every-file``: all of them); simulations only if it is
   still alive. Each file stops at its first failure.

The table `matrix.csv` has a line for each mutant and a column for each file: ``K`` killed, ``s`` survived, ``-`` not
run, for the mutant was dead by then, and nothing where no test of the file enters what is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib
import json
import os
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")  # before NumPy is there; a process is copied without threads

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TABLE = HERE / "matrix.csv"
sys.path.insert(0, str(HERE.parent))

from mutants.mutant import Loader, Mutant, install  # noqa: E402  (beside this folder)
from mutants.registry import MUTANTS  # noqa: E402

KILLED, SURVIVED, NOT_RUN, UNREACHED = "K", "s", "-", ""
COMPUTED = (  # files that compute or enumerate
    "tests/validity/test_exact_*.py",
    *(f"tests/unit/{part}/**/test_*.py" for part in ("stats", "certify", "decisions", "detect", "measure", "diagnose")),
    *(f"tests/unit/{part}/**/test_*.py" for part in ("audit", "repair", "weights", "published")),
    "tests/property/test_*.py",
    "tests/golden/test_*.py",
)
SIMULATED = ("tests/validity/test_*.py",)  # those that are none of the others
CUT, A_FILE, A_MUTANT = 1.0, 2.0, 15.0  # CPU seconds: of a simulation that is traced, of one file's and all tests run
AT_A_TIME = 4  # files, before it is asked whether the mutant is dead
FIRST, LAST = ("mutant", "breaks", "module"), "killers"
LIBRARIES = (
    "numpy",
    "pytest",
    "hypothesis",
    "scipy.stats",
    "scipy.optimize",
    "sklearn.tree",
    "pyarrow.dataset",
    "numba",
)


class Found(TypedDict):
    """What tests did to a mutant: the first that failed, by file; files that were run; CPU seconds."""

    killed: dict[str, str]
    ran: list[str]
    seconds: float


NOTHING: Found = {"killed": {}, "ran": [], "seconds": 0.0}


def files(patterns: Sequence[str]) -> list[str]:
    """Return the files of some patterns."""
    return sorted({path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)})


def computed() -> list[str]:
    """Return the files that compute or enumerate."""
    return files(COMPUTED)


def simulations() -> list[str]:
    """Return the files that simulate."""
    return sorted(set(files(SIMULATED)) - set(computed()))


# ---- 1. What each test enters ----


@dataclass(frozen=True)
class Traced:
    """A test as it was without a mutant."""

    name: str
    seconds: float
    ended: str
    entered: frozenset[str]

    @property
    def file(self) -> str:
        """Its file."""
        return self.name.split("::")[0]

    def reaches(self, mutant: Mutant) -> bool:
        """Tell whether it enters what the mutant breaks."""
        return any(name in self.entered for name in mutant_names(mutant))


def mutant_names(mutant: Mutant) -> tuple[str, ...]:
    """Return what is broken, as `Trace` calls it."""
    return tuple(f"{mutant.module}:{name}" for name in mutant.entered)


def pytest_options(paths: Sequence[str]) -> list[str]:
    """Return the options of every run: in order, in this process, nothing stored, random examples the same."""
    quiet = ["-q", "--tb=no", "-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    return [*quiet, "--no-header", "-W", "ignore", *paths]


def trace(paths: Sequence[str], out: Path, limit: float) -> None:
    """Run files in this process, and write what their tests enter."""
    import pytest

    from mutants.watching import Trace

    pytest.main(pytest_options(paths), plugins=[Trace(out, limit)])


def trace_all(work: Path, only: Sequence[str]) -> None:
    """Trace what computes and what simulates, each in a process of its own: every file, or those that are named."""
    for kind, every, limit in (("computed", computed(), 0.0), ("simulated", simulations(), CUT)):
        (work / f"trace-{kind}.jsonl").unlink(missing_ok=True)
        paths = [path for path in every if path in only or not only]
        if not paths:
            continue
        if not (pid := os.fork()):
            trace(paths, work / f"trace-{kind}.jsonl", limit)
            os._exit(0)
        os.waitpid(pid, 0)


def traces(work: Path) -> list[Traced]:
    """Return what was recorded."""
    found = []
    for file in sorted(work.glob("trace-*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            name, seconds, ended, entered = json.loads(line)
            found.append(Traced(name, seconds, ended, frozenset(entered)))
    return found


# ---- 2. Each mutant against the tests that enter what it breaks ----


def chosen(mutant: Mutant, tests: Sequence[Traced], a_file: float, in_all: float) -> dict[str, float]:
    """Return the tests to run: of each file the quickest that reach the mutant, up to a file's and to all time."""
    by_file: dict[str, list[Traced]] = defaultdict(list)
    for test in tests:
        if test.ended != "failed" and test.reaches(mutant):
            by_file[test.file].append(test)
    out: dict[str, float] = {}
    left = in_all
    for file, own in sorted(by_file.items(), key=lambda pair: (first(pair[0]), min(t.seconds for t in pair[1]))):
        taken = 0.0
        for test in sorted(own, key=lambda t: t.seconds):
            if taken and first(file) and (taken + test.seconds > a_file or left < test.seconds):
                break
            out[test.name] = test.seconds if test.ended == "ok" else float("inf")
            taken, left = taken + test.seconds, left - test.seconds
    return out


def first(file: str) -> int:
    """Return 0 for a file that enumerates, 1 for the others: the first are run in full."""
    return 0 if "/test_exact_" in file else 1


def against(mutant: Mutant, tests: Mapping[str, float]) -> Found:
    """Run tests against a mutant in this process, and return what killed it."""
    install(mutant)
    import pytest

    from mutants.watching import Against, files_of

    plugin = Against(tests)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        status = pytest.main(pytest_options(files_of(tests)), plugins=[plugin])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        raise RuntimeError(f"pytest ended with {status!r}")
    if not isinstance(sys.modules[mutant.module].__loader__, Loader):
        raise RuntimeError("the tests met the library as it is")
    return {"killed": plugin.killed, "ran": sorted(plugin.ran), "seconds": sum(plugin.seconds.values())}


def meets(mutant: Mutant, tests: Mapping[str, float], work: Path) -> Found:
    """Run tests against a mutant in a process of its own, which has the libraries and none of calibrant."""
    if not tests:
        return NOTHING
    out = work / f"found-{mutant.name}-{os.getpid()}.json"
    if not (pid := os.fork()):
        code = 1
        try:
            out.write_text(json.dumps(against(mutant, tests)), encoding="utf-8")
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"{mutant.name}: its tests could not be run")
    found: Found = json.loads(out.read_text(encoding="utf-8"))
    out.unlink()
    return found


def preload() -> None:
    """Import what tests and library need, once for all mutants."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def joined(one: Found, other: Found) -> Found:
    """Return what two runs found."""
    return {
        "killed": {**one["killed"], **other["killed"]},
        "ran": sorted({*one["ran"], *other["ran"]}),
        "seconds": one["seconds"] + other["seconds"],
    }


def portions(tests: Mapping[str, float], size: int) -> Iterator[dict[str, float]]:
    """Yield tests in their order: of the first file, then so many files at a time."""
    names = list(dict.fromkeys(name.split("::")[0] for name in tests))
    for part in (names[:1], *(names[at : at + size] for at in range(1, len(names), size))):
        own = set(part)
        yield {name: seconds for name, seconds in tests.items() if name.split("::")[0] in own}


def run_one(mutant: Mutant, tests: Sequence[Traced], work: Path, every: bool, simulate: bool) -> None:
    """Run a mutant against what computes, then, if it is alive, what simulates; keep what was found."""
    kept, own = work / f"mutant-{mutant.name}.json", set(computed())
    if kept.exists():
        known = json.loads(kept.read_text(encoding="utf-8"))
        if known["killed"] or known["simulated"] or not simulate:
            return
    quick = chosen(mutant, [t for t in tests if t.file in own], A_FILE, A_MUTANT)
    long = chosen(mutant, [t for t in tests if t.file not in own], float("inf"), float("inf"))
    found = NOTHING
    if kept.exists():
        found = {k: known[k] for k in NOTHING}  # type: ignore[assignment]
    else:
        for part in portions(quick, max(len(quick), 1) if every else AT_A_TIME):
            found = joined(found, meets(mutant, part, work))
            if found["killed"] and not every:
                break
    simulated = simulate and not found["killed"]
    for part in portions(long, 1) if simulated else ():
        found = joined(found, meets(mutant, part, work))
        if found["killed"] and not every:
            break
    reached = {t.file for t in tests if t.reaches(mutant)}
    kept.write_text(json.dumps({**found, "reached": sorted(reached), "simulated": simulated}), encoding="utf-8")
    says = "killed" if found["killed"] else "ALIVE"
    print(f"{mutant.name}: {says}, {found['seconds']:.1f} s of tests", file=sys.stderr, flush=True)


# ---- the table ----


def entries(mutant: Mutant, work: Path, columns: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return what each file did to a mutant, and the first test of each file that killed it."""
    reported = json.loads((work / f"mutant-{mutant.name}.json").read_text(encoding="utf-8"))
    killed, ran = reported["killed"], set(reported["ran"])
    out = {}
    for file in columns:
        here = KILLED if file in killed else SURVIVED if file in ran else NOT_RUN
        out[file] = here if file in reported["reached"] or file in killed else UNREACHED
    return out, [killed[file] for file in sorted(killed)]


def write(work: Path) -> None:
    """Write the table of what is known: what was run now, and of other mutants what the table has."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        lines = {line[FIRST[0]]: line for line in csv.DictReader(file)}
    every = [*computed(), *simulations()]
    for m in MUTANTS:
        if (work / f"mutant-{m.name}.json").exists():
            line, killers = entries(m, work, every)
            lines[m.name] = line | dict(zip(FIRST, (m.name, m.breaks, m.module), strict=True))
            lines[m.name][LAST] = " ".join(shortest(killers))
    columns = [*FIRST, *(c for c in every if any(line.get(c) for line in lines.values())), LAST]
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, columns, restval="", extrasaction="ignore", lineterminator="\n")
        out.writeheader()
        out.writerows(lines[m.name] for m in MUTANTS if m.name in lines)


def shortest(killers: Sequence[str]) -> list[str]:
    """Return the tests that kill, without what they were given: three at most."""
    return [name.split("[")[0].removeprefix("tests/") for name in killers[:3]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("step", nargs="?", default="all", choices=["all", "trace", "run", "table"])
    parser.add_argument("names", nargs="*", help="of mutants, or of files to trace; all by default")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "calibrant-mutants")
    parser.add_argument("-j", type=int, default=2, help="processes")
    parser.add_argument("--every-file", action="store_true", help="do not stop at the first files that kill")
    parser.add_argument("--no-simulations", action="store_true", help="leave them for another run")
    asked = parser.parse_args(arguments)
    os.environ["CALIBRANT_SLICE"] = "all"
    by_name = {m.name: m for m in MUTANTS}
    asked.work.mkdir(parents=True, exist_ok=True)
    if asked.step in ("all", "trace"):
        trace_all(asked.work, asked.names if asked.step == "trace" else ())
    tests = traces(asked.work)
    if failed := [t.name for t in tests if t.ended == "failed"]:
        print(f"without a mutant {len(failed)} tests fail, such as {failed[0]}", file=sys.stderr)
        return 1
    if not tests and asked.step == "run":
        print("nothing is traced: first matrix.py trace, or matrix.py trace FILE of the tests to meet", file=sys.stderr)
        return 2
    if asked.step in ("all", "run"):
        preload()
        mutants = [by_name[n] for n in asked.names] or list(MUTANTS)
        workers = []
        for k in range(asked.j):
            if not (pid := os.fork()):
                for mutant in mutants[k :: asked.j]:
                    run_one(mutant, tests, asked.work, asked.every_file, not asked.no_simulations)
                os._exit(0)
            workers.append(pid)
        if any(os.waitpid(pid, 0)[1] for pid in workers):
            return 1
    write(asked.work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
