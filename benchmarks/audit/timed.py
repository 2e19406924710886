"""CPU seconds and peak memory of processes, of this checkout and of another revision, warm and cold."""

from __future__ import annotations

import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SHORT, TRIES = 6.0, 3  # CPU seconds up to which a process is run again, and how often in all: the least counts
PATIENCE = 900.0  # CPU seconds of a process, after which it is ended and told


class Cost(NamedTuple):
    """What a process took: CPU seconds of user and system, megabytes at its peak, and what went wrong, if anything."""

    cpu: float
    peak: float
    failed: str = ""
    printed: str = ""


@dataclass(frozen=True)
class Tree:
    """A checkout that is timed: its `src`, its own cache of machine code, and its name in the table."""

    name: str
    source: Path
    cache: Path
    python: str = sys.executable
    settings: Mapping[str, str] = field(default_factory=dict)

    def environment(self, cache: Path | None = None, source: Path | None = None) -> dict[str, str]:
        """Return what its processes see: one thread for linear algebra, its own code, its own cache."""
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        places = {"PYTHONPATH": str(source or self.source), "NUMBA_CACHE_DIR": str(cache or self.cache)}
        kept = {"PYTHONDONTWRITEBYTECODE": ""}  # installed packages hold the bytecode of their files: 0.4 CPU s a run
        return {**os.environ, **threads, **places, **kept, **self.settings}

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the command that runs calibrant with these words."""
        return [self.python, "-m", "calibrant", *words]


def once(command: Sequence[str], environment: Mapping[str, str], folder: Path, patience: float = PATIENCE) -> Cost:
    """Run a command and return what it took, the processes that it waited for included."""
    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        started = subprocess.Popen(
            list(command), env=dict(environment), cwd=folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        resource.prlimit(started.pid, resource.RLIMIT_CPU, (math.ceil(patience), math.ceil(patience) + 1))
        try:
            _, status, used = os.wait4(started.pid, 0)
        except BaseException:  # such as Ctrl-C
            started.kill()
            raise
        started.returncode = os.waitstatus_to_exitcode(status)
    stated = err.read_text(errors="replace").strip().splitlines()
    failed = (
        "" if started.returncode in (0, 1, 3) and "Traceback" not in "".join(stated) else (stated or ["no word"])[-1]
    )
    if started.returncode < 0:
        failed = f"ended after {patience:.0f} CPU-s"
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, failed[:160], out.read_text(errors="replace"))


def least(command: Sequence[str], environment: Mapping[str, str], folder: Path, patience: float = PATIENCE) -> Cost:
    """Return the least of three runs where the first is short, else of that one."""
    runs = [once(command, environment, folder, patience)]
    while len(runs) < TRIES and runs[0].cpu <= SHORT and not runs[0].failed:
        runs.append(once(command, environment, folder, patience))
    return min(runs, key=lambda r: r.cpu)


def cold(tree: Tree, words: Sequence[str], folder: Path) -> Cost:
    """Return what a command takes as if just installed: no byte code of calibrant, and no machine code anywhere.

    The package is copied without its `__pycache__`, and the cache of machine code is an empty folder. Libraries keep
    their byte code, as pip leaves it, and files are in the memory of the system: a disk is not timed.
    """
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        source, cache = Path(temporary) / "src", Path(temporary) / "machine-code"
        shutil.copytree(tree.source, source, ignore=shutil.ignore_patterns("__pycache__"))
        cache.mkdir()
        return once(tree.command(words), tree.environment(cache, source), folder)


@contextmanager
def checkouts(revision: str, folder: Path) -> Iterator[list[Tree]]:
    """Give this checkout and, where a revision is named, one of it in a folder that is removed again."""
    trees = [Tree("now", ROOT / "src", folder / "cache-now")]
    if not revision:
        yield trees
        return
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / "revision"
        subprocess.run([*git, "add", "--detach", str(place), revision], check=True, capture_output=True)
        try:
            yield [Tree("before", place / "src", folder / "cache-before"), *trees]
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=False, capture_output=True)
