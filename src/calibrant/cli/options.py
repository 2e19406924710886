"""Options of commands, made from what declares the argument; and the parser that adds them when they are needed."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from itertools import zip_longest
from os import PathLike
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from calibrant.arguments import COMMAND, HEADINGS, INPUT, OUTPUT, Option, Place, declared
from calibrant.data.sources.standard_input import READ
from calibrant.data.specs.options import OF_HORIZON, CommandOptions
from calibrant.errors import BadInput
from calibrant.plugins import OUTPUTS, Output, Parser
from calibrant.plugins import Command as CommandPlugin
from calibrant.sanitize import as_message

Options = Callable[["Command"], None]
UNUSABLE = "the data or a setting cannot be used; one line says why"
PREFIX = re.compile(r"([A-Za-z][\w-]+):(.*)", re.DOTALL)  # before what -o names; one letter is a drive of Windows
SIMILAR = 0.65  # from here on a word is taken for a misspelt one, as difflib measures it
# What people write who know other packages, and what it is called here.
KNOWN_AS = {
    **dict.fromkeys(("y", "y-true", "labels", "target-column", "truth", "actual", "outcome-column"), "--label"),
    **dict.fromkeys(("prob", "probs", "proba", "probability", "p", "y-prob", "y-score", "y-pred"), "--score"),
    **dict.fromkeys(("pred", "preds", "prediction", "predictions", "risk-column"), "--score"),
    **dict.fromkeys(("pos-label", "positive-label", "positive-class"), "--positive"),
    **dict.fromkeys(("group", "groups", "group-by", "sensitive-features", "strata", "subgroup"), "--by"),
    **dict.fromkeys(("weight", "sample-weight", "sample-weights"), "--weights"),
    **dict.fromkeys(("clusters", "unit", "units", "id", "patient"), "--cluster"),
    **dict.fromkeys(("random-state", "random-seed"), "--seed"),
    **dict.fromkeys(("confidence", "confidence-level", "level", "significance"), "--alpha"),
    **dict.fromkeys(("n-bins", "nbins", "bin"), "--bins"),
    **dict.fromkeys(("output", "html", "csv", "md", "save", "write"), "--out"),
    **dict.fromkeys(("features", "covariates", "columns"), "--variables"),
    **dict.fromkeys(("max-error", "tol", "max-gap"), "--limit"),
    **dict.fromkeys(("cost",), "--costs"),
    **dict.fromkeys(("thresholds", "cutoff"), "--threshold"),
    "help": "--help",
    "version": "--version",
    "calibrate": "repair",
    "recalibrate": "repair",
    "fit": "repair",
    "check": "look",
    "describe": "look",
    "validate": "audit",
    "evaluate": "audit",
    "show": "report",
}
OWN = "own "  # before the names of a function's settings among all that a command line gives, which may be called alike


def statuses(zero: str, one: str = "", two: str = UNUSABLE, three: str = "") -> str:
    """What exit statuses mean, as the help lists them."""
    lines = {0: zero, 1: one, 2: two, 3: three, 70: "an unexpected error: please report it"}
    return "exit status:\n" + "".join(f"  {n:<4}{line}\n" for n, line in lines.items() if line)


CHECK_STATUS = statuses(
    "it is printed, whatever was found",
    two="the data or a setting cannot be used, or it cannot be computed; one line says why",
)


class Command(argparse.ArgumentParser):
    """A command; its options are added when it is first used, so that other commands need not load what names them."""

    options: Options | None = None
    installed: Options | None = None  # adds what installed packages bring, when it is asked for
    spelt: Mapping[str, str] = MappingProxyType({})  # other ways to write the first word
    lists = "--help"  # what lists the commands of this one

    @cached_property
    def old(self) -> dict[str, Callable[[str, str], str]]:
        """Options of before: from the option and the word behind it to what to write."""
        return {}

    @cached_property
    def folded(self) -> set[str]:
        """Options that the short help leaves out."""
        return set()

    @cached_property
    def _headings(self) -> dict[str, argparse._ArgumentGroup]:
        return {}

    def under(self, place: Place, *options: str) -> argparse._ActionsContainer:
        """Where the help lists options: under a heading, or among all; they are left out of the short help there."""
        if not place.short:
            self.folded |= {*options}
        if not place.heading:
            return self
        if place.heading not in self._headings:
            self._headings[place.heading] = self.add_argument_group(place.heading)
        return self._headings[place.heading]

    def note(self, text: str) -> None:
        """Add what the whole help says under the heading of outputs."""
        group = self.under(OUTPUT)
        if isinstance(group, argparse._ArgumentGroup) and text:
            group.description = f"{group.description}\n{text}" if group.description else text

    def _filled(self) -> None:
        if (options := self.options) is not None:
            self.options = None
            options(self)
            if self.folded:
                none, line = argparse.SUPPRESS, "show every option, and exit"
                self.add_argument("--help-all", action=_HelpAll, dest=none, default=none, nargs=0, help=line)

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
            if (prefix := PREFIX.match(word.removeprefix("--out=").removeprefix("-o"))) and prefix[
                1
            ] not in OUTPUTS.table:  # it may be an output of others
                return True
        return False

    def _refuse_old(self, args: Sequence[str]) -> None:
        """Refuse options of before, with what to write in their place."""
        for word, after in zip_longest(args, args[1:], fillvalue=""):
            if word == "--":
                return
            option, joined, value = word.partition("=")
            if option not in self.old:
                continue
            value = value if joined else "" if after.startswith("-") and after != "-" else after
            if option not in self._option_string_actions or joined or value == "-" or value.endswith(".json"):
                self.error(f"{option}{f' {value}' if value else ''}: {self.old[option](option, value)}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse with every option."""
        self._filled()
        if self.old:
            self._refuse_old(sys.argv[1:] if args is None else args)
        if self.installed is not None and self._beyond(sys.argv[1:] if args is None else args):
            self._widened()
        args = [self.spelt.get(args[0], args[0]), *args[1:]] if self.spelt and args else args
        self._refuse_unknown(sys.argv[1:] if args is None else args)
        result, more = super().parse_known_args(args, namespace)
        if getattr(result, "files", None) is not None and not any(word.startswith("-") for word in more):
            result.files, more = [*result.files, *more], []  # files may stand among the options
        if more and self._subparsers is None:
            self.error(self._unknown(more))
        return result, more

    def error(self, message: str) -> NoReturn:
        """Say in a line what is wrong with the arguments, which come from anywhere."""
        if message.endswith("expected one argument"):
            message += " (one that begins with - is written --option=-1)"
        every = f"all options: {self.prog} {'--help-all' if self.folded else '--help'}"
        if (kind := self._kind()) is not None:
            every = f"all {kind}s: {self.prog} {self.lists}"
        every = f" {every.capitalize()}" if message.endswith("?") else f"; {every}"
        self.exit(2, f"{self.prog}: {as_message(message)}{every}\n")

    def _kind(self) -> str | None:
        """What its words are called: "command" or "method"; None where it takes options alone."""
        groups = [] if self._subparsers is None else self._subparsers._group_actions
        return next((str(group.metavar).lower() for group in groups), None)

    def _refuse_unknown(self, args: Sequence[str]) -> None:
        """Refuse a command that there is not, and name the one that is meant."""
        word = next((w for w in args if not w.startswith("-")), None)
        if word is None or self._subparsers is None:
            return
        known = [name for group in self._subparsers._group_actions for name in group.choices or ()]
        if word not in known:
            instead = KNOWN_AS.get(word) or next(iter(get_close_matches(word, known, 1, SIMILAR)), "")
            self.error(f"no {self._kind()} {word!r}" + (f": did you mean {self.prog} {instead}?" if instead else ""))

    def _unknown(self, words: Sequence[str]) -> str:
        """What to say of arguments that nothing takes: of an option, which is meant."""
        option = next((w.partition("=")[0] for w in words if w.startswith("-")), "")
        if not option:
            return f"unrecognized arguments: {' '.join(words)}"
        known = list(self._option_string_actions)
        instead = KNOWN_AS.get(option.lstrip("-").replace("_", "-"), "")
        if instead not in known:
            plain = {o.lstrip("-"): o for o in known}
            close = get_close_matches(option.lstrip("-").replace("_", "-"), plain, 1, SIMILAR)
            instead = plain[close[0]] if close else ""
        return f"no option {option}" + (f": did you mean {instead}?" if instead else "")

    def format_usage(self) -> str:
        """Name the command, and what stands by its place."""
        self._filled()
        places = [str(a.metavar or a.dest) for a in self._actions if not a.option_strings]
        more = ["..."] if any(a.nargs in ("*", "+") for a in self._actions if not a.option_strings) else []
        return f"usage: {' '.join([self.prog, *places, *more, '[options]'])}\n"

    def format_help(self, *, every: bool = False) -> str:
        """Describe the options that most need, or every one."""
        self._filled()
        every = every or not self.folded
        if every:
            self._widened()
        formatter = self._get_formatter()
        formatter.add_text(self.format_usage().rstrip())
        formatter.add_text(self.description)
        order = {heading: i for i, heading in enumerate(HEADINGS)}
        groups = sorted(self._action_groups, key=lambda g: order.get(str(g.title), -1))
        sections = [(g.title, g.description, g._group_actions) for g in groups]
        if not every:  # one list of those that most need
            shown = [a for g in groups[1:] for a in g._group_actions if self.folded.isdisjoint(a.option_strings)]
            sections = [
                sections[0],
                (groups[1].title, None, sorted(shown, key=lambda a: a.option_strings[0] in ("-h", "--help-all"))),
            ]
        for title, description, actions in sections:
            formatter.start_section(title)
            formatter.add_text(description)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


class _HelpAll(argparse.Action):
    """Print the help with every option."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it, and exit."""
        if isinstance(parser, Command):
            sys.stdout.write(parser.format_help(every=True))
        parser.exit()


# ---- lists ----

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

    def __call__(self, _: object, namespace: argparse.Namespace, values: Any, __: object = None) -> None:
        """Add names to those before them."""
        setattr(namespace, self.dest, (*(getattr(namespace, self.dest) or ()), *values))


def listed(p: Parser | argparse._ActionsContainer, option: str, line: str, metavar: str = "COLUMNS") -> None:
    """Add an option that takes names, once or more."""
    p.add_argument(option, metavar=metavar, type=names, action=Listed, help=line)


def csv_form(p: Parser) -> None:
    """Add how numbers are written in tables of CSV."""
    at = p.under(OUTPUT, "--csv-decimal", "--csv-digits")
    line = "decimal mark in CSV that is written, . or , (cells are then separated by ;)"
    at.add_argument("--csv-decimal", choices=(".", ","), default=".", help=line)
    line = "significant digits in CSV that is written, ends of ranges rounded outward; 17 for all (default 4)"
    at.add_argument("--csv-digits", type=int, choices=range(1, 18), default=4, metavar="N", help=line)


def numbers(text: str) -> tuple[float, ...]:
    """Split a list of numbers at its commas."""
    try:
        return tuple(float(t) for t in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: pass numbers, such as 0.1,0.2") from None


def numbers_or_none(text: str) -> tuple[float, ...] | tuple[str]:
    """The same, or the word that says there is none."""
    return (text,) if text == "none" else numbers(text)


def count_or_word(text: str) -> int | str:
    """A whole number where it reads as one, else the word."""
    return int(text) if text.lstrip("+-").isdecimal() else text


def bin_edges(items: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Bin edges by column."""
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


# ---- from a declaration to an option ----


def taken(hint: object) -> tuple[bool, bool, set[type]]:
    """Whether a type takes one plain value, whether several, and the plain types there are; none if it takes others.

    A setting that may be anything, such as a level, is a number if it reads as one; a mapping has a plain form in
    addition to it, and so have a path and a record.
    """
    one, several, plain = False, False, set[type]()
    for member in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        origin = get_origin(member)
        if origin in (Sequence, Iterable):
            inner = taken(get_args(member)[0])[2]
            several, plain = True, plain | inner
            if not inner:
                return False, False, set()
        elif member in (object, Any):
            one, plain = True, plain | {int, float, str}
        elif origin is Literal or member in (int, float, str, bool):
            one = True
            plain.add(member)
        elif member is not NoneType and origin not in (Mapping, PathLike) and not _kept(member):
            return False, False, set()
    return one, several, plain


def _kept(member: object) -> bool:
    """Whether it is a record, which a file can hold; by its name, as help loads none."""
    return getattr(member, "__name__", "") == "AuditRecord"


def choices_of(plain: Iterable[object]) -> tuple[str, ...]:
    """The values there are, where a type says them."""
    return tuple(c for t in plain if get_origin(t) is Literal for c in get_args(t))


def add(p: Parser, name: str, hint: object, it: Option) -> None:
    """Add an argument as an option; of several, an option given twice adds up where one alone is enough, too."""
    option = COMMAND.name(name)
    how: dict[str, Any] = {"metavar": it.value, "help": it.words}
    one, several, plain = taken(hint)
    choices = it.choices or choices_of(plain)
    at = p.under(it.place, option)
    if several and bool in plain:  # a switch that may say more
        at.add_argument(option, nargs="?", const=True, type=names, **how)
    elif bool in plain:
        at.add_argument(option, action="store_true", help=it.words)
    elif not plain:
        at.add_argument(option, action="append", default=[], **how)
    elif several and float in plain:
        kind = numbers_or_none if plain == {float, str} else numbers
        at.add_argument(option, type=kind, action=Listed if one else "store", **how)
    elif several:
        split = one_or_names if name in LITERAL else names
        at.add_argument(option, metavar=it.value or "COLUMNS", type=split, action=Listed, help=it.words)
    elif choices:
        at.add_argument(option, choices=choices, default=it.default or None, **how)
    else:
        single = count_or_word if plain == {int, str} else next(k for k in (int, float, str) if k in plain)
        at.add_argument(option, type=single, default=it.default, **how)


LITERAL = "label", "score"  # mostly one column, whose name is taken as it is written unless a comma is in it


def one_or_names(text: str) -> tuple[str, ...]:
    """One name as it is written; where there is a comma, names as `names` reads them."""
    return names(text) if "," in text else (text,)


def of_options(p: Parser, options: type, *names: str, **words: str) -> None:
    """Add declared arguments, all if none are named; `words` replace those of the declaration."""
    every = declared(options)
    for name in names or [name for name, (_, it) in every.items() if it.words]:
        hint, it = every[name]
        add(p, name, hint, replace(it, words=words.get(name, it.words)))


def of_function(p: Parser, function: Callable[..., object], **words: str | tuple[str, str]) -> None:
    """Add arguments of a function, each with its words, or with how its value is written and its words."""
    hints, parameters = get_type_hints(function), inspect.signature(function).parameters
    for name, stated in words.items():
        value, line = stated if isinstance(stated, tuple) else (None, stated)
        add(p, name, hints[name], Option(value, parameters[name].default, words=line))


# ---- options that several commands share ----

ROW_OPTIONS = "positive", "cluster", "weights", "allow_same", *OF_HORIZON
SCORE = "score", "percent", "missing"
COLUMNS = "label", *SCORE, *ROW_OPTIONS
CLASSES = "renormalize", "logits", "listed", "rest", "ordered"
GROUPS = "by", "variables", "bins", "intersections", "allow"


def files(p: Parser, more: str = "") -> None:
    """Add the files, or the query in their place."""
    what = f"{READ}{more}; a quoted glob or a directory works too, and - for standard input"
    p.add_argument("files", nargs="*", metavar="FILE", help=what)
    p.old["--drop-missing"] = lambda *_: "write --missing drop"
    source(p)


def source(p: Parser) -> None:
    """Add a query, and how files are written."""
    line = "one SELECT in DuckDB's SQL in place of files, which is only read"
    p.under(INPUT, "--sql").add_argument("--sql", metavar="SELECT", help=line)
    reading(p, "encoding", "delimiter", "decimal", "sheet", "dates", "format")


def reading(p: Parser, *names: str, **words: str) -> None:
    """Add arguments of what is read."""
    of_options(p, CommandOptions, *names, **words)


def columns(p: Parser) -> None:
    """Add the columns of labels and scores, and what rows are."""
    reading(p, *COLUMNS)


def seed(p: Parser) -> None:
    """Add the seed."""
    reading(p, "seed")


def as_json(p: Parser, line: str = "print JSON instead of a table") -> None:
    """Add JSON in place of what is printed."""
    p.under(OUTPUT, "--json").add_argument("--json", action="store_true", help=line)


# ---- what is written ----

Of = Literal["record", "calibrator"]


class Once(argparse.Action):
    """A file, named once."""

    def __call__(self, _: object, namespace: argparse.Namespace, values: object, __: object = None) -> None:
        """Keep the name, unless there is one."""
        if (before := getattr(namespace, self.dest)) is not None:
            raise argparse.ArgumentError(self, f"{before} and {values}: this command writes one file, name one")
        setattr(namespace, self.dest, values)


def one_out(p: Parser, line: str, metavar: str = "OUT", *, required: bool = False) -> None:
    """Add where to write one file."""
    at = p.under(OUTPUT.first)
    at.add_argument("-o", "--out", action=Once, metavar=metavar, required=required, help=line)


def out(p: Parser, line: str, metavar: str = "OUT") -> None:
    """Add where to write, given once or more."""
    p.under(OUTPUT.first).add_argument("-o", "--out", action="append", default=[], metavar=metavar, help=line)


def arranged(names: Iterable[str], added: Mapping[str, CommandPlugin]) -> list[str]:
    """Names in the order of the help, each plug-in behind the name that it gives; those that give none last."""
    order = list(names)
    for name, one in added.items():
        order.insert(order.index(one.after) + 1 if one.after in order else len(order), name)
    return order


def outputs(of: Of) -> dict[str, Output]:
    """Our outputs of records, or of calibrators, by name."""
    return {name: one for name, one in OUTPUTS.ours().items() if one.of == of}


def plugged_outputs(p: Command, of: Of) -> None:
    """Add the further options of our outputs; those of installed packages where help is wanted, or one is named."""
    known = {*p._option_string_actions}
    for one in outputs(of).values():
        one.options(p)
    p.folded |= {*p._option_string_actions} - known
    p.installed = lambda p: _with_installed(p, of)


def _with_installed(p: Command, of: Of) -> None:
    lines = []
    for name in OUTPUTS.installed:
        try:
            one = OUTPUTS.loaded(name)
            if one.of != of:
                continue
            lines.append(output_line(name, one))
            with OUTPUTS.calling(name):
                one.options(p)
        except BadInput as e:  # the help says why; who names it gets the same
            lines.append(f"  -o {name}:OUT  {e}")
    p.note("\n".join(("of installed packages:", *lines) if lines else ()))


def output_line(name: str, one: Output) -> str:
    """An output as the help lists it."""
    return f"  -o {f'{name}:{one.metavar}':<24} {one.line}"
