"""Runs the command: parse, do it, and say by exit status how it went."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module

from calibrant.arguments import COMMAND
from calibrant.cli.options import OWN
from calibrant.cli.parser import COMMANDS, build_parser
from calibrant.cli.standard_output import StandardOutput
from calibrant.data.targets import remove_all
from calibrant.errors import BadInput, NotComputable
from calibrant.plugins import COMMANDS as PLUGGED
from calibrant.sanitize import as_message

BAD, UNEXPECTED, STOPPED = 2, 70, 130
LEAST, PLENTY = 640 << 20, 8 << 30  # bytes of address space in which libraries can be loaded; that spare nothing
WIDE = 256  # a matrix for which linear algebra reserves all that it needs
SPARING = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MIMALLOC_ARENA_RESERVE": "65536", "OPENBLAS_NUM_THREADS": "1"}
NO_MEMORY = ("failed to map segment", "cannot allocate memory", "can't start new thread")  # as libraries say it
ELSEWHERE = {  # the modules of commands that are not in `commands`
    **dict.fromkeys(("accept", "compare"), "deciding"),
    **dict.fromkeys(("repair", "apply"), "repairing"),
    **dict.fromkeys(("measure", "detect", "diagnose"), "methods"),
    **dict.fromkeys(("more", "completion"), "completion"),
    "plan": "planning",
    "report": "reporting",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    What it prints on standard output is held until it is done: the status then reports the verdict even where nobody
    reads on, and a full disk behind standard output is reported in one line.
    """
    _open_streams()
    kept = StandardOutput()
    with _terminated(), redirect_stdout(kept):
        status = _run(argv)
    try:
        sys.stdout.write(kept.shown(sys.stdout.isatty()))
        sys.stdout.flush()
    except BadInput as e:
        return _refused(str(e), BAD)
    except OSError as e:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is tried again at exit
        if isinstance(e, BrokenPipeError):  # a reader such as `head` has seen enough
            return status
        return _refused(f"cannot write to standard output: {e.strerror or e}", BAD)
    return status


def _run(argv: Sequence[str] | None) -> int:
    """Do what the arguments say; say in one line why it cannot be done."""
    a = Namespace()
    try:
        _spare_memory(own=argv is None)  # before libraries are loaded, which they are to parse what may be written
        build_parser().parse_args(argv, a)
        if argv is None and a.command != "report":  # the process is the command's own, and reads rows
            _spare_pandas()
            with _spared_fortran():
                return _command(a)
        return _command(a)
    except SystemExit as e:
        return int(e.code or 0)
    except BadInput as e:
        return _refused(_as_option(e, a), BAD)
    except NotComputable as e:
        return _refused(str(e), BAD)
    except KeyboardInterrupt:
        return _refused("stopped", STOPPED)
    except Exception as e:
        if os.environ.get("CALIBRANT_TRACEBACK"):
            raise
        if isinstance(e, MemoryError) or any(text in str(e) for text in NO_MEMORY):
            return _refused("not enough memory: name fewer columns, or sketch parts of the data and merge", BAD)
        if isinstance(e, OSError) and e.errno is not None:  # a disk, a network or a folder, no fault of the program
            place = f"{e.filename}: " if e.filename else ""
            return _refused(f"{place}{e.strerror or e}", BAD)
        more = "set CALIBRANT_TRACEBACK=1 to see where"
        return _refused(f"unexpected {type(e).__name__}: {e} ({more})", UNEXPECTED)


def _command(a: Namespace) -> int:
    if a.command not in COMMANDS:
        one = PLUGGED.own(a.command) if a.command in PLUGGED.table else PLUGGED.loaded(a.command)
        with PLUGGED.calling(a.command):
            return int(one.run(a))
    module = import_module(f"calibrant.cli.{ELSEWHERE.get(a.command, 'commands')}")
    return int(getattr(module, a.command)(a))


def _as_option(e: BadInput, a: Namespace) -> str:
    """What a refusal says, with the argument at its beginning called as this command's option is."""
    why, name = str(e), e.argument
    if (hasattr(a, name) or hasattr(a, OWN + name)) and why.startswith(f"{name}="):
        return COMMAND.name(name) + why[len(name) :]
    return why


def _refused(why: str, status: int) -> int:
    with suppress(OSError):  # a full disk behind standard error must not turn into another status
        print(f"calibrant: {as_message(why)}", file=sys.stderr)
    return status


# ---- what a process of our own may leave out ----


def _spare_memory(own: bool) -> None:
    """Keep libraries from reserving what a limit of address space (`ulimit -v`) does not give.

    Arrow's own pool reserves a gigabyte at once. Linear algebra reserves a part for each thread, and where it gets none
    it asks again without end, or ends the process: it gets its own before rows take the rest.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if not own or limit == resource.RLIM_INFINITY or limit > PLENTY:
        return
    if limit < LEAST:
        raise BadInput(
            f"not enough memory: the limit of address space (ulimit -v) is {limit >> 20:,} MB, and calibrant takes "
            f"{LEAST >> 20:,} MB: raise it"
        )
    for name, value in SPARING.items():
        os.environ.setdefault(name, value)
    import numpy as np
    from scipy.linalg import blas

    one = np.ones((WIDE, WIDE))
    blas.dgemm(1.0, one, one @ one)  # both libraries: NumPy has one of its own


class _NoPandas:
    """A finder of modules for which pandas is not installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse pandas, and know nothing of others."""
        if name == "pandas":
            raise ModuleNotFoundError("not asked for", name=name)


def _spare_pandas() -> None:
    """Keep Arrow from importing pandas, which it does on the first value made, only to know objects of pandas.

    The command reads files, in which there are none; `to_pandas`, which columns of periods need, imports it still.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.scalar("")  # looks for pandas once, and remembers
    finally:
        sys.meta_path.remove(_NoPandas)


@contextmanager
def _spared_fortran() -> Iterator[None]:
    """Keep SciPy from importing NumPy's compiler of Fortran, which it does only to copy the names of NumPy.

    Who comes after, in a process that goes on, finds NumPy as it was.
    """
    import numpy

    names = vars(numpy)
    names.setdefault("f2py", None)
    try:
        yield
    finally:
        if names.get("f2py", 0) is None:
            del names["f2py"]


# ---- streams and signals as a shell, a service or a scheduler leaves them ----


def _open_streams() -> None:
    """Give every standard stream that is closed a place that takes all, and the others UTF-8.

    A file opened later would else take a closed stream's number, and messages of libraries would land in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as we run
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


@contextmanager
def _terminated() -> Iterator[None]:
    """End where a scheduler sends SIGTERM or a terminal goes away, and remove what is half written.

    No exception is raised, for it could come in the midst of an import that swallows it, and the work would go on.
    """

    def end(number: int, _: object) -> None:
        remove_all()
        with suppress(OSError):
            os.write(2, b"calibrant: stopped by a signal\n")
        os._exit(128 + number)

    kept = {}
    for name in ("SIGTERM", "SIGHUP"):
        with suppress(AttributeError, ValueError):  # Windows has no SIGHUP; only the main thread takes signals
            number = signal.Signals[name] if name in signal.Signals.__members__ else None
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores one: so do we
                kept[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
