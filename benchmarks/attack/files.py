"""Attacks on what reads and writes files: damaged files, bombs, kills while outputs are written; prints what held.

    python benchmarks/attack/files.py                    # 5,000 damaged files, all bombs, 100 kills
    python benchmarks/attack/files.py damaged --count 200 --only record,sketch --show

A damaged file holds where the command ends in the time and memory that any file under 10 MB may take, with a status
that it documents, and says in one line why where that is 2.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

SECONDS, MEMORY = 30.0, 2_000  # of CPU, and megabytes, that a file under 10 MB may take
PATIENCE = 4 * SECONDS  # of CPU, after which a command is stopped
HANGING = 1800.0  # seconds by the clock, after which it counts as hanging, however busy the machine is
LONGEST = 1_000  # characters of a refusal
LARGE = 10_000_000  # bytes of a bomb, at most
FRESH = 450  # megabytes that a process holds once it has started, at most


class Try(NamedTuple):
    """One attack: its kind, which it was, what is wrong with how it ended, and what it took where that is measured."""

    kind: str
    what: str
    fault: str
    seconds: float | None = None
    megabytes: int | None = None


# ---- a process that runs one command after another, and one that watches it ----


def serve() -> None:
    """Run each command that a line of standard input holds; answer with status, text, seconds and peak of memory."""
    import io
    import traceback
    from contextlib import redirect_stderr, redirect_stdout

    from calibrant.cli import main

    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
        began, printed, said = time.process_time(), io.StringIO(), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(said):
            try:
                status = main(json.loads(line))
            except BaseException as e:  # what the command should have caught
                place = " < ".join(
                    f"{f.filename.split('/')[-1]}:{f.lineno}" for f in traceback.extract_tb(e.__traceback__)[:-4:-1]
                )
                status, _ = -1, said.write(f"{place} {type(e).__name__}: {e}")
        if json.loads(line)[0] == "look" and status == 2 and printed.getvalue():
            said = io.StringIO("a look says what cannot be used, and the rest of what it sees\n")
        text = Path("/proc/self/status").read_text()
        peak = int(text.split("VmHWM:")[1].split()[0]) // 1024
        done = {"status": status, "said": said.getvalue(), "seconds": time.process_time() - began, "megabytes": peak}
        answers.write(json.dumps(done) + "\n")
        answers.flush()


class Runner:
    """Commands run in a process of their own, which is replaced where one takes it down or takes too long."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, words: list[str]) -> dict[str, object]:
        """What became of a command."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
            self.run(["example", "--quick"])  # what is loaded once is no file's
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        answer, end, spent = b"", time.monotonic() + HANGING, self._spent()
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], 0.2)
            part = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if ready and not part:
                return self._end("")
            if time.monotonic() > end or self._spent() > spent + PATIENCE or self._resident() > 2 * MEMORY:
                return self._end("stopped: it took too long, or too much memory")
            answer += part
        done: dict[str, object] = json.loads(answer)
        return done

    def _spent(self) -> float:
        """The seconds of CPU that the process has taken."""
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _resident(self) -> int:
        """The megabytes that the process takes now."""
        assert self.process is not None
        text = Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

    def _end(self, why: str) -> dict[str, object]:
        assert self.process is not None
        size = self._resident() if why else 0
        self.process.kill()
        status, self.process = self.process.wait(), None
        return {"status": why or status, "said": "", "seconds": PATIENCE, "megabytes": size}

    def close(self, above: int = 0) -> None:
        """End the process, if it holds more megabytes than that."""
        if self.process is not None and self._resident() > above:
            self._end("closed")


def fault(done: dict[str, object]) -> str:
    """What is wrong with how a command ended; nothing where all is as promised."""
    status, said = done["status"], str(done["said"])
    if status not in (0, 1, 2, 3):
        return f"ended with {status}: {said.strip()[:200]}"
    if status == 2 and (said.count("\n") != 1 or len(said) > LONGEST or not said[:-1].isprintable()):
        return f"refused in other than a line: {said[:300]!r} ({len(said)})"
    if float(str(done["seconds"])) > SECONDS or int(str(done["megabytes"])) > MEMORY:
        return f"took {done['seconds']:.0f} s and {done['megabytes']} MB"
    return ""


def measured(kind: str, what: str, done: dict[str, object]) -> Try:
    """What a command that ended comes to."""
    return Try(kind, what, fault(done), float(str(done["seconds"])), int(str(done["megabytes"])))


# ---- damaged files ----


def damaged(count: int, only: set[str], seed: int) -> Iterator[Try]:
    """Try damaged files of each kind."""
    from e2e.hostile_files import damaged_file, kinds

    runner = Runner()
    with tempfile.TemporaryDirectory() as place:
        (out := Path(place) / "files").mkdir()
        every = kinds(Path(place))
        for name, kind in every.items():
            if only and name not in only:
                continue
            for i in range(-(-count // len(every))):
                words = damaged_file(kind, seed * 1_000_000 + i, out)
                yield measured(name, f"{i} {words[0]}", runner.run(words))
                for left in out.iterdir():
                    left.unlink()


# ---- bombs ----


def bombs(only: set[str], show: bool) -> Iterator[Try]:
    """Try each bomb in a process that holds no more than at its start."""
    from e2e.bombs import BOMBS

    runner = Runner()
    for name in BOMBS:
        if only and not any(name.startswith(part) for part in only):
            continue
        with tempfile.TemporaryDirectory() as place:
            words = made(name, place)
            size = max(f.stat().st_size for f in Path(place).iterdir())
            if size > LARGE:
                raise SystemExit(f"{name} has {size:,} bytes: a bomb has under 10 MB")
            done = runner.run(words)
            runner.close(above=FRESH)
        if show:
            took = f"{float(str(done['seconds'])):.1f} s, {done['megabytes']} MB"
            print(f"{name} ({size:,}): {done['status']}, {took} {str(done['said']).strip()[:250]}", flush=True)
        yield measured(name.split(":")[0], name, done)


def made(name: str, place: str) -> list[str]:
    """Write a bomb in a process that ends then, for what it is made of takes memory; the command that reads it."""
    done = subprocess.run([sys.executable, __file__, "make", "--only", name, "--folder", place], stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"{name} cannot be made")
    words: list[str] = json.loads(done.stdout)
    return words


# ---- kills, and two writers ----

WRITES = {  # what writes a file, and which
    "audit": (["audit", "rows.csv", "--label", "y", "--score", "p", "--quick", "-o", "out.html"], "out.html"),
    "json": (["audit", "rows.csv", "--label", "y", "--score", "p", "--quick", "-o", "out.json"], "out.json"),
    "sketch": (["sketch", "rows.csv", "--label", "y", "--score", "p", "--out", "out.sketch"], "out.sketch"),
    "apply": (["apply", "calibrator.json", "rows.csv", "--score", "p", "--out", "out.csv"], "out.csv"),
}


def kills(count: int, seed: int) -> Iterator[Try]:
    """Kill a command at any moment, and let two write one file at once: it is the old file or a whole new one."""
    import random

    from e2e.hostile_files import calibrators, texts

    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "rows.csv").write_bytes(texts()[0][1])
        (folder / "calibrator.json").write_bytes(calibrators()[0][1])
        for name, (words, file) in WRITES.items():
            began = time.monotonic()
            _started(words, place).wait()
            took, whole = time.monotonic() - began, (folder / file).read_bytes()
            for i in range(-(-count // len(WRITES))):
                (folder / file).write_bytes(OLD)
                run = _started(words, place)
                time.sleep(took * rng.uniform(0.5, 1.1))
                run.kill()
                run.wait()
                now = (folder / file).read_bytes()
                yield Try(f"kill {name}", str(i), "" if now in (OLD, whole) else f"a file of {len(now)} bytes")
            both = [_started(words, place) for _ in range(2)]
            ended = [run.wait() for run in both]
            now = (folder / file).read_bytes()
            good = now == whole and set(ended) <= {0, 1, 3}
            yield Try("two writers", name, "" if good else f"{ended}, a file of {len(now)} bytes")


OLD = b"what stood here before"


def _started(words: list[str], place: str) -> subprocess.Popen[bytes]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", "calibrant", *words], cwd=place, **quiet)  # type: ignore[call-overload,no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", default="all", choices=["all", "serve", "make", "damaged", "bombs", "kills"])
    parser.add_argument("--count", type=int, default=5_000, help="damaged files")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", default="", help="kinds, with commas between")
    parser.add_argument("--folder", default=".", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="each that fell")
    a = parser.parse_args()
    if a.part == "serve":
        return serve()
    if a.part == "make":
        from e2e.bombs import BOMBS

        return print(json.dumps(BOMBS[a.only](Path(a.folder))))
    began, tried = time.monotonic(), dict[str, list[Try]]()
    only = set(filter(None, a.only.split(",")))
    parts: dict[str, Callable[[], Iterator[Try]]] = {
        "damaged": lambda: damaged(a.count, only, a.seed),
        "bombs": lambda: bombs(only, a.show),
        "kills": lambda: kills(a.kills, a.seed),
    }
    for part, attack in parts.items():
        for one in attack() if a.part in ("all", part) else ():
            tried.setdefault(f"{part}: {one.kind}", []).append(one)
            if one.fault and a.show:
                print(f"FELL {one.kind} {one.what}: {one.fault}", flush=True)
    print(
        f"{time.monotonic() - began:.0f} s\n\n"
        "| kind | tried | held | most seconds | most MB |\n|---|---:|---:|---:|---:|"
    )
    for kind, own in tried.items():
        print(f"| {kind} | {len(own):,} | {sum(not one.fault for one in own):,} | {most(own)} |")
    sys.exit(any(one.fault for own in tried.values() for one in own))


def most(own: list[Try]) -> str:
    """The most time and memory that attacks of one kind took, as cells of a table."""
    times = [one.seconds for one in own if one.seconds is not None]
    sizes = [one.megabytes for one in own if one.megabytes is not None]
    return f"{max(times):.1f} | {max(sizes):,}" if times else " | "


if __name__ == "__main__":
    main()
