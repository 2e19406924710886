"""Commands that are stopped, piped, or short of disk: what stood before stands, or what is new is whole."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant.cli import main
from calibrant.repair.calibrators.curves import Logistic

OLD = b"what stood here before"
LS = ("--label", "y", "--score", "p")
LONG = pytest.mark.slow
OUTPUTS = {  # command line, and what it writes
    "audit": ("audit log.parquet LS --quick -o out.html", "out.html"),
    "json": ("audit log.parquet LS --quick -o out.json", "out.json"),
    "sketch": ("sketch log.parquet LS --out out.sketch", "out.sketch"),
    "merge": ("merge a.sketch b.sketch --out out.sketch", "out.sketch"),
    "apply": ("apply calibrator.json log.parquet --score p --out out.parquet", "out.parquet"),
    "repair": ("repair log.parquet LS --quick --method platt -o out.json --out out.parquet", "out.parquet"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a log, two sketches and a map in it."""
    place = tmp_path_factory.mktemp("made")
    for seed, name in ((1, "log.parquet"), (2, "other.parquet")):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=30_000)
        columns = {"y": (rng.uniform(size=len(p)) < p**1.3).astype(int), "p": p, "x": rng.normal(size=len(p))}
        pq.write_table(pa.table(columns), place / name, row_group_size=5_000)
    (place / "calibrator.json").write_text(Logistic(recipe="Platt", slope=2.0, intercept=0.0).to_json())
    log, other, one, two = (str(place / n) for n in ("log.parquet", "other.parquet", "a.sketch", "b.sketch"))
    assert main(["sketch", log, *LS, "--out", one]) == 0
    assert main(["sketch", other, "--like", one, "--out", two]) == 0
    return place


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a copy of these files in it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(line: str) -> list[str]:
    return [word for w in line.split() for word in (LS if w == "LS" else (w,))]


def command(words: Sequence[str], **more: object) -> subprocess.Popen[str]:
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
    return subprocess.Popen([sys.executable, "-m", "calibrant", *words], **given)  # type: ignore[call-overload,no-any-return]


def parts(folder: Path) -> list[str]:
    return [f.name for f in folder.iterdir() if f.name.endswith(".part")]


# ---- a disk that is full ----

COMPILED = """
import sys
from calibrant.kernels import runtime
runtime._takes = lambda folder: True
from calibrant.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n if n in ("audit", "sketch", "apply") else pytest.param(n, marks=pytest.mark.nightly) for n in OUTPUTS]
)
def test_a_full_disk_leaves_what_stood_there(folder: Path, name: str) -> None:
    line, out = OUTPUTS[name]
    assert main(arguments(line)) in (0, 1, 3)  # compiled code is stored now, so that the limit hits the output alone
    whole = (folder / out).stat().st_size
    (folder / out).write_bytes(OLD)

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole // 2,) * 2)

    script = [sys.executable, "-c", COMPILED, *arguments(line)]
    with subprocess.Popen(script, stderr=subprocess.PIPE, text=True, preexec_fn=no_room) as run:
        _, stated = run.communicate()
    assert run.returncode == 2, stated
    assert stated.count("\n") == 1, stated
    assert "cannot write" in stated
    assert "File too large" in stated
    assert (folder / out).read_bytes() == OLD
    assert not parts(folder)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_told(folder: Path) -> None:
    with Path("/dev/full").open("w") as full, command(["plan", "0.02"], stdout=full) as run:
        _, stated = run.communicate()
    assert run.returncode == 2
    assert stated == "calibrant: cannot write to standard output: No space left on device\n"


# ---- pipes and streams that are closed ----


@pytest.mark.slow
def test_a_reader_that_leaves_does_not_change_the_status(folder: Path) -> None:
    line = "audit log.parquet LS --quick --limit 0.01 --json"
    expected = main(arguments(line))
    assert expected == 1
    with command(arguments(line)) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.wait() == expected
        assert run.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_disk_behind_standard_error_does_not_change_the_status(folder: Path) -> None:
    with open("/dev/full", "w") as full, command(["audit", "no.csv", *LS], stderr=full) as run:
        assert run.wait() == 2  # not 1, which says that a limit is broken


@pytest.mark.slow
def test_a_closed_standard_input_is_told(folder: Path) -> None:
    with command(["audit", "-", *LS], preexec_fn=lambda: os.close(0)) as run:
        assert "standard input (-) is closed" in run.communicate()[1]


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(1,), pytest.param((2,), marks=LONG), pytest.param((1, 2), marks=LONG), (0, 1, 2)])
def test_closed_streams_do_not_matter(folder: Path, closed: tuple[int, ...]) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    words = arguments("audit log.parquet LS --quick -o out.json")
    with command(words, preexec_fn=close) as run:
        out, stated = run.communicate()
    assert run.returncode == 0
    assert (1 in closed) or "rows" in out or out
    assert stated == ("" if 2 in closed else "written: out.json\n")
    assert (folder / "out.json").read_text().startswith("{")


# ---- little memory ----


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space hold on Linux")
@pytest.mark.parametrize(("megabytes", "statuses"), [(400, {2}), (800, {0, 2}), (1_200, {0}), (3_000, {0})])
def test_a_limit_of_address_space_is_kept_or_reported(folder: Path, megabytes: int, statuses: set[int]) -> None:
    """Arrow's own pool takes a gigabyte of it, and linear algebra then asked for a little more without end.

    A run takes 650 to 800 MB, by how its threads meet: there either end is right, but none without a word.
    """

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2)

    words = arguments("audit log.parquet LS --quick -o out.json")
    with command(words, preexec_fn=little) as run:
        _, stated = run.communicate(timeout=120)
    assert run.returncode in statuses, stated
    assert ("not enough memory" in stated) == (run.returncode == 2)
    assert stated.count("\n") == 1  # why not, or what was written
    assert (folder / "out.json").exists() == (run.returncode == 0)


# ---- signals ----

SLOW = """
import sys, time
import calibrant.data.targets as targets
from pathlib import Path
replace = targets.os.replace
def slowly(source, target):
    Path("writing").touch()
    time.sleep(60)
    replace(source, target)
targets.os.replace = slowly
from calibrant.cli import main
sys.exit(main(sys.argv[1:]))
"""


def _heeds_ctrl_c() -> None:
    """Undo what a shell does to a job in the background, such as these tests."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stopped(folder: Path, line: str, number: int) -> tuple[int, str]:
    """Stop a command by a signal while its output is written, but does not have its name yet."""
    end = time.monotonic() + 60
    script = [sys.executable, "-c", SLOW, *arguments(line)]
    with subprocess.Popen(script, stderr=subprocess.PIPE, text=True, preexec_fn=_heeds_ctrl_c) as run:
        while not (folder / "writing").exists() and run.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        assert (folder / "writing").exists()
        run.send_signal(number)
        _, stated = run.communicate(timeout=30)
    return run.returncode, stated


def signals() -> Iterator[Any]:
    """Yield every signal with every output; all outputs come into place by one function, so most wait for the night."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        for name in OUTPUTS:
            usual = name == "audit" or (number == signal.SIGTERM and name in ("sketch", "apply"))
            yield pytest.param(number, name, marks=() if usual else pytest.mark.nightly)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name"), [*signals()])
def test_a_signal_leaves_what_stood_there(folder: Path, name: str, number: int) -> None:
    line, out = OUTPUTS[name]
    (folder / out).write_bytes(OLD)
    status, stated = stopped(folder, line, number)
    assert (folder / out).read_bytes() == OLD
    if number == signal.SIGKILL:
        assert status == -signal.SIGKILL  # nothing can be tidied up: a hidden file ending in .part may stay
        return
    assert status == {signal.SIGTERM: 143, signal.SIGINT: 130}[signal.Signals(number)]
    assert "stopped" in stated
    assert stated.count("\n") == 1
    assert not parts(folder)


def test_handlers_of_signals_are_put_back(folder: Path) -> None:
    kept = signal.getsignal(signal.SIGTERM)
    main(["plan", "0.02"])
    assert signal.getsignal(signal.SIGTERM) is kept


# ---- what an operating system refuses ----


@pytest.mark.parametrize(
    ("error", "stated"),
    [
        (OSError(5, "Input/output error", "/mnt/log"), "calibrant: /mnt/log: Input/output error\n"),
        (MemoryError(), "calibrant: not enough memory"),
        (pa.ArrowMemoryError("malloc"), "calibrant: not enough memory"),
    ],
)
def test_what_a_system_refuses_is_no_unexpected_error(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    stated: str,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("calibrant.cli.commands.audited", broken)
    assert main(arguments("audit log.parquet LS --quick")) == 2
    assert capsys.readouterr().err.startswith(stated)


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_folder_that_may_not_be_written_is_named_before_work(folder: Path, name: str) -> None:
    typed, output = OUTPUTS[name]
    (folder / "kept").mkdir()
    words = [*arguments(typed)]
    words[words.index(output)] = f"kept/{output}"
    closed = "mount -t tmpfs -o ro none kept" if os.geteuid() == 0 else "chmod 500 kept"
    apart = ["unshare", "--mount"] if os.geteuid() == 0 else []
    shell = [*apart, "sh", "-c", f'{closed} || exit 99; exec "$@"', "sh", sys.executable, "-m", "calibrant", *words]
    run = subprocess.run(shell, capture_output=True, text=True, check=False)
    if run.returncode == 99:
        pytest.skip("no folder can be closed to the system's administrator here")
    assert run.returncode == 2, run.stderr
    assert run.stderr == f"calibrant: cannot write 'kept/{output}': its directory may not be written\n"


@pytest.mark.slow
def test_docstrings_may_be_left_out(folder: Path) -> None:
    """`python -OO` strips docstrings and assertions: nothing rests on them."""
    for words in (arguments("audit log.parquet LS --quick -o out.html"), ["audit", "--help"]):
        with command(words, env={**os.environ, "PYTHONOPTIMIZE": "2"}) as run:
            out, stated = run.communicate()
        assert run.returncode == 0, stated
        assert out


@pytest.mark.slow
def test_nowhere_to_store_what_is_compiled(folder: Path) -> None:
    script = COMPILED.replace("lambda folder: True", "lambda *_: False\nruntime.FEW = -1")
    words = [sys.executable, "-c", script, *arguments("audit log.parquet LS --quick")]
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    run = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_an_installation_that_cannot_be_written_compiles_elsewhere(folder: Path) -> None:
    """The package and the home directory are read-only, as in many containers and on many servers."""
    script = """
import sys
from calibrant.kernels import runtime
runtime._takes = lambda folder: "compiled" in folder.name
runtime.FEW = -1  # nothing is counted in NumPy, small as the file is
from calibrant.cli import main
sys.exit(main(sys.argv[1:]))
"""
    temporary = folder / "tmp"
    temporary.mkdir()
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"TMPDIR": str(temporary)}
    words = arguments("audit log.parquet LS --quick")
    run = subprocess.run([sys.executable, "-c", script, *words], env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert list(temporary.rglob("*.nbc")), "the compiled kernels are stored in the temporary directory"
