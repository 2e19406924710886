"""The table of plug-ins: formats that can be read, outputs that can be written, commands; ours, and those installed.

An installed package adds to it by entry points in the groups ``calibrant.formats``, ``calibrant.outputs`` and
``calibrant.commands``. The name of an entry point is what users write: the ending of files, the word before the colon
of ``-o``, the command. Its object is one of the protocols below, or a class that makes one; who derives from the
protocol inherits defaults.
Packages are looked through only when a name is asked for that is not ours, or when help lists what there is; of equal
names ours is taken.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from calibrant.errors import BadInput, NotComputable

if TYPE_CHECKING:
    from argparse import Action, Namespace, _ActionsContainer
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from calibrant.arguments import Place
    from calibrant.data.sources.source import Form, Source


class Format(Protocol):
    """A kind of file that can be read.

    An installed one is asked where the ending of a file, or its first bytes, are none that calibrant knows.
    """

    called: str  # as a message names it, such as "an Inspect log"
    endings: tuple[str, ...] = ()  # in small letters; of an installed format its name is one, with a dot before it

    def begins(self, first: bytes) -> bool:
        """Tell a file by its first 4,096 bytes."""
        return False

    def holds(self, names: Collection[str]) -> bool:
        """Tell a zip file by the names in it."""
        return False

    @abstractmethod
    def open(self, path: Path, name: str, form: Form) -> Source:
        """The rows of a file; `name` distinguishes its rows from those of other files of the same data set."""
        ...


class Parser(Protocol):
    """What `options` of an output or a command adds options to: a parser of `argparse`, whose help has headings.

    ``p.add_argument("--channel", help="where to")``, ``p.add_subparsers(...)`` and ``p.set_defaults(...)`` are those of
    `argparse`. ``p.under(OUTPUT, "--channel").add_argument("--channel", help="where to")`` puts an option under one of
    the headings of `calibrant.arguments`, and leaves it out of the short help. Options that commands share take the
    parser: ``options.files(p)``, of `calibrant.toolkit.command`.
    """

    spelt: Mapping[str, str]  # of commands within this one: other ways to write them, and what each is called

    @property
    def old(self) -> dict[str, Callable[[str, str], str]]:
        """Options of before: from the option and the word behind it to what to write."""
        ...

    def add_argument(self, *names: str, **how: Any) -> Action: ...

    def add_subparsers(self, *, dest: str, metavar: str, required: bool) -> Any: ...

    def set_defaults(self, **values: object) -> None: ...

    def under(self, place: Place, *options: str) -> _ActionsContainer: ...


class Output(Protocol):
    """What can be written of the record of an audit, or of a calibrator: ``-o NAME:FILE``."""

    line: str  # of the help
    of: Literal["record", "calibrator"] = "record"
    metavar: str = "OUT"
    kept: tuple[str, ...] = ()  # files in the folder of `-o DIR/` that hold it too; of an installed one if it is named

    def options(self, p: Parser) -> None:
        """Add further options; their values are in the `given` of the others."""
        return

    def reads(self, inputs: Namespace) -> Sequence[str]:
        """Files that are read with the data, so that none of them is written over."""
        return ()

    def check(self, target: str | None, inputs: Namespace) -> None:
        """Refuse by `BadInput`, before any work is done, what cannot be written; `target` is None if not asked for."""
        return

    @abstractmethod
    def content(self, thing: Any, target: str, inputs: Namespace) -> str:
        """What is written of an `AuditRecord` to `target`, or of a `Calibrator` with `target` as its name.

        Of a record `inputs.language` is the language of its report, and all there is for a file in the folder ``DIR/``.
        """
        ...


class Command(Protocol):
    """A command: ``calibrant NAME``."""

    line: str  # in the list of commands
    more: str = ""  # of its own help
    status: str = ""  # what its exit statuses mean
    after: str = ""  # the command after which the help lists it; last where there is none

    def options(self, p: Parser) -> None:
        """Add the options; `calibrant.toolkit.command` has those that commands share."""
        return

    @abstractmethod
    def run(self, inputs: Namespace) -> int:
        """Do it, and return the exit status. `BadInput` and `NotComputable` become one line, and the status 2."""
        ...


P = TypeVar("P", bound=Format | Output | Command)


@dataclass(frozen=True, eq=False)
class Plugins(Generic[P]):
    """The plug-ins of one kind: ours, which are loaded when they are used, and those of installed packages."""

    kind: str  # "format", "output" or "command"
    protocol: type
    table: Mapping[str, str]  # ours by name, and where each is
    used: dict[str, P] = field(default_factory=dict)  # installed ones that were loaded

    def own(self, name: str) -> P:
        """One of ours."""
        module, _, inner = self.table[name].partition(":")
        result: P = getattr(import_module(module), inner)
        return result

    def ours(self) -> Mapping[str, P]:
        """All of ours by name."""
        return {name: self.own(name) for name in self.table}

    @cached_property
    def installed(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        """The entry points of installed packages by name, unloaded, without those that are called as ours."""
        from importlib.metadata import entry_points

        results: dict[str, tuple[EntryPoint, ...]] = {}
        for one in entry_points(group=f"calibrant.{self.kind}s"):
            if one.name not in self.table:
                results[one.name] = (*results.get(one.name, ()), one)
        return dict(sorted(results.items()))

    def loaded(self, name: str) -> P:
        """An installed plug-in.

        Raises
        ------
        BadInput
            It cannot be loaded, is not what its group asks for, or several packages have one: one line that names them.
        """
        if name not in self.used:
            self.used[name] = self._loaded(*self.installed[name])
        return self.used[name]

    def _loaded(self, point: EntryPoint, *more: EntryPoint) -> P:
        if more:
            packages = " and ".join(sorted(map(_package, (point, *more))))
            raise BadInput(f"{packages} each bring the {self.kind} {point.name!r}: remove all but one")
        try:
            made = point.load()
            result: P = made() if isinstance(made, type) else made
            members = {n for n in (*self.protocol.__annotations__, *vars(self.protocol)) if not n.startswith("_")}
            lacks = sorted(n for n in members if not hasattr(result, n))
            why = f"it has no {lacks[0]}" if lacks else ""
        except (Exception, SystemExit) as e:  # whatever a package of others may raise
            why = f"{type(e).__name__}: {e}"
        if why:
            reported = f"the {self.kind} {point.name!r} of {_package(point)} cannot be used"
            raise BadInput(f"{reported}: {' '.join(why.split())}; update the package, or remove it")
        return result

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Turn what an installed plug-in raises into one line that names its package, but for refusals and disks."""
        try:
            yield
        except (BadInput, NotComputable, OSError, MemoryError):
            raise
        except Exception as e:
            if name in self.table or os.environ.get("CALIBRANT_TRACEBACK"):
                raise
            packages = " and ".join(map(_package, self.installed[name]))
            why = " ".join(f"{type(e).__name__}: {e}".split())
            raise NotComputable(f"the {self.kind} {name!r} of {packages} failed: {why}") from e


def _package(point: EntryPoint) -> str:
    return "a package without a name" if point.dist is None else f"package {point.dist.name} {point.dist.version}"


# ---- the table ----

FORMATS = Plugins[Format](
    "format",
    Format,
    {
        "eval": "calibrant.apps.llm_logs.known:INSPECT",
        "lm-eval": "calibrant.apps.llm_logs.known:LM_EVAL",
        "openai-evals": "calibrant.apps.llm_logs.known:OPENAI_EVALS",
        "promptfoo": "calibrant.apps.llm_logs.known:PROMPTFOO",
        "deepeval": "calibrant.apps.llm_logs.known:DEEPEVAL",
    },
)
OUTPUTS = Plugins[Output](
    "output",
    Output,
    {
        "tripod": "calibrant.apps.guidelines.output:TRIPOD",
        "summary": "calibrant.apps.trackers.outputs:SUMMARY",
        "metrics": "calibrant.apps.trackers.outputs:METRICS",
        "model-card": "calibrant.apps.trackers.outputs:MODEL_CARD",
        "javascript": "calibrant.apps.javascript.output:JAVASCRIPT",
    },
)
COMMANDS = Plugins[Command](
    "command",
    Command,
    {
        "papers": "calibrant.apps.papers.command:PAPERS",
        "grades": "calibrant.apps.grades.command:GRADES",
        "weights": "calibrant.apps.population.command:WEIGHTS",
        "watch": "calibrant.cli.watching:WATCH",
    },
)
