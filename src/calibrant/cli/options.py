"""Options that several commands take, and the parser that adds them when a command is first used."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from calibrant.arguments import MISSING_WAYS
from calibrant.data.sources.standard_input import FORMATS, READ
from calibrant.errors import BadInput
from calibrant.sanitize import sanitize

Options = Callable[["Command"], None]


class Command(argparse.ArgumentParser):
    """A command; its options are added when it is first used, so that other commands need not load what names them."""

    options: Options | None = None
    installed: Options | None = None  # adds what installed packages bring, when it is asked for
    spelt: Mapping[str, str] = MappingProxyType({})  # other ways to write the first word

    def _filled(self) -> None:
        if (options := self.options) is not None:
            self.options = None
            options(self)

    def _widened(self) -> None:
        if (installed := self.installed) is not None:
            self.installed = None
            installed(self)

    def _beyond(self, args: Sequence[str]) -> bool:
        """Tell whether arguments ask for a command or an option that is none of ours."""
        for word in args:
            if self._subparsers is not None and not word.startswith("-"):
                return all(word not in (group.choices or ()) for group in self._subparsers._group_actions)
            if word == "--":
                return False
            option = word.partition("=")[0]
            if option.startswith("--") and not any(o.startswith(option) for o in self._option_string_actions):
                return True
        return False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse with every option."""
        self._filled()
        if self.installed is not None and self._beyond(sys.argv[1:] if args is None else args):
            self._widened()
        args = [self.spelt.get(args[0], args[0]), *args[1:]] if self.spelt and args else args
        result, more = super().parse_known_args(args, namespace)
        if getattr(result, "files", None) is not None and not any(word.startswith("-") for word in more):
            result.files, more = [*result.files, *more], []  # files may stand among the options
        return result, more

    def error(self, message: str) -> NoReturn:
        """Say in a line what is wrong with the arguments, which come from anywhere."""
        if message.endswith("expected one argument"):
            message += " (one that begins with - is written --option=-1)"
        self.exit(2, f"{self.prog}: {sanitize(message)}; all options: {self.prog} --help\n")

    def format_help(self) -> str:
        """Describe every option."""
        self._filled()
        self._widened()
        return super().format_help()


NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",][^,]*|))\s*(?:,|$)')  # in quotes as CSV has them, or plain


def names(text: str) -> tuple[str, ...]:
    """Split a list at its commas; a name that holds one is in double quotes: ``"a,b",c``."""
    out, at = [], 0
    while at < len(text):
        result = NAME.match(text, at)
        if result is None:
            raise argparse.ArgumentTypeError(f"{text!r}: close the quotes and put a comma after them")
        quoted, plain = result.groups()
        if quoted is not None or plain.strip():
            out.append(plain.strip() if quoted is None else quoted.replace('""', '"'))
        at = result.end()
    if not out:  # as an unset variable of a shell leaves it
        raise argparse.ArgumentTypeError(f"{text!r} names nothing: leave the option out, or name something")
    return tuple(out)


class Listed(argparse.Action):
    """Names that add up where an option is given more than once."""

    def __call__(self, _: Any, namespace: Any, values: Any, __: Any = None) -> None:
        """Add names to those before them."""
        setattr(namespace, self.dest, (*(getattr(namespace, self.dest) or ()), *values))


def listed(p: Command, option: str, line: str, metavar: str = "COLUMNS") -> None:
    """Add an option that takes names, once or more."""
    p.add_argument(option, metavar=metavar, type=names, action=Listed, help=line)


def numbers(text: str) -> tuple[float, ...]:
    """Split a list of numbers at its commas."""
    try:
        return tuple(float(t) for t in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: pass numbers, such as 0.1,0.2") from None


def bin_edges(items: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return bin edges by column."""
    out = {}
    for item in items:
        name, _, edges = item.rpartition("=")
        try:
            out[name] = tuple(float(e) for e in edges.split(","))
        except ValueError:
            name = ""
        if not name:
            raise BadInput(f"--bins {item!r}: write COLUMN=EDGE,EDGE,… such as age=18,40,65")
    return out


def files(p: Command, more: str = "") -> None:
    p.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"{READ}{more}; a quoted glob or a directory works too, and - for standard input",
    )
    source(p)


def source(p: Command) -> None:
    p.add_argument("--sql", metavar="SELECT", help="one SELECT in DuckDB's SQL in place of files, which is only read")
    p.add_argument("--encoding", metavar="NAME", help="of files of text, such as cp1252 (default: detected)")
    p.add_argument("--delimiter", metavar="CHAR", help="between their columns, tab for a tab (default: detected)")
    p.add_argument("--decimal", choices=(".", ","), help="mark of their fractions (default: detected)")
    p.add_argument("--sheet", metavar="NAME", help="of an Excel file that has several")
    p.add_argument("--format", choices=FORMATS, help="of standard input, where its first bytes do not say")


def columns(p: Command) -> None:
    label(p)
    score(p)
    row_options(p)


def row_options(p: Command) -> None:
    p.add_argument("--positive", metavar="VALUE", help="the label value that counts as an event")
    listed(p, "--cluster", "rows of one value are one cluster (a patient); of several columns the coarsest counts")
    p.add_argument("--weights", metavar="COLUMN", help="how much each row counts: positive numbers")
    allow_same(p)


def label(p: Command) -> None:
    p.add_argument("--label", metavar="COLUMN", help="outcomes: 0 and 1, or any values with --positive")


def score(p: Command, required: bool = False) -> None:
    p.add_argument("--score", required=required, metavar="COLUMN", help="predicted probabilities, 0 to 1")
    p.add_argument("--percent", action="store_true", help="they are percentages, 0 to 100")
    p.add_argument(
        "--missing",
        choices=MISSING_WAYS,
        default="level",
        help="a missing label or score is refused, other missing values are a level of their own (level, the default); "
        "rows without label, score, cluster or weight are left out and counted (drop); rows without a label are "
        "counted apart (keep); or nothing may be missing (refuse)",
    )
    p.add_argument("--drop-missing", action="store_true", help="short for --missing drop")


def allow_same(p: Command) -> None:
    p.add_argument("--allow-same", action="store_true", help="let rows that two files hold count twice")


def identity(p: Command) -> None:
    listed(p, "--key", "columns that identify a row (default: file and row number)")
    seed(p)


def seed(p: Command) -> None:
    p.add_argument("--seed", type=int, default=0, help="assigns rows to random blocks (default 0)")


def groups(p: Command, purpose: str) -> None:
    listed(p, "--by", "group columns, separated by commas; quote a name that holds one: '\"a,b\",c'")
    more = "every other column that can be used; 'none' for none"
    listed(p, "--variables", f"covariates to {purpose} (default: {more})")
    p.add_argument(
        "--bins",
        metavar="COLUMN=A,B,…",
        action="append",
        default=[],
        help="bin edges of a numeric group column, such as age=18,40,65",
    )


def intersections(p: Command) -> None:
    p.add_argument("--intersections", action="store_true", help="also every pair of the group columns")


def levels(p: Command, what: str) -> None:
    p.add_argument("--steps", type=int, default=100, metavar="K", help=f"{what} (default 100: whole percent)")


def acting(p: Command, line: str) -> None:
    """Add the two ways to say from which score on people are acted on."""
    p.add_argument("--threshold", type=numbers, action=Listed, metavar="T,…", help=line)
    p.add_argument(
        "--costs",
        type=numbers,
        metavar="FP,FN",
        help="in place of --threshold: costs of acting on a non-event, and of not acting on an event; 1,4 acts from "
        "0.2 on",
    )


def target(p: Command) -> None:
    p.add_argument(
        "--target",
        choices=("population", "rows"),
        default="population",
        help="about future rows like these (default), or about the rows at hand, given their scores",
    )
