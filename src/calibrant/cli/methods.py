"""The commands that ask one public function of a file: measure, detect and diagnose, whatever their faces hold.

The settings of a function are read off its signature, and their words off its docstring.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast, get_args, get_type_hints

import calibrant
from calibrant.arguments import COMMAND
from calibrant.cli import options as take
from calibrant.cli.commands import Files, Plain, data_of, inputs_of, report_left_out
from calibrant.cli.options import CHECK_STATUS, OWN, Listed, choices_of, names, taken
from calibrant.cli.standard_output import print_result
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.read import classes_in_memory, in_memory
from calibrant.data.reading import OF_ROWS, Reading
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.attributes import THE_SCORE
from calibrant.data.survey import EVERY
from calibrant.data.targets import checked_targets, written
from calibrant.errors import BadInput, CalibrantWarning
from calibrant.measure import by_group
from calibrant.plugins import Parser
from calibrant.repair.judge.evaluate import audited_variables
from calibrant.report.outputs import results
from calibrant.results import Curve, Estimate, Outcome
from calibrant.sanitize import as_message

DATA = "data"  # how the functions call what they are asked about
COVARIATES = "variables"  # the columns that a function reads if none are named: every one
COLUMNS = COVARIATES, "variable", "by_variable", "first", "second", "by", "site"  # settings that name columns
Parsed = Literal["flag", "one", "many"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a function as an option: ``--name``, with ``-`` for ``_``."""

    name: str
    parsed: Parsed  # given or not; one value; several, separated by commas
    kinds: tuple[type, ...]  # what a value may be, the strictest first: int, float or str
    choices: tuple[object, ...]  # the values there are; empty for any
    default: object  # `inspect.Parameter.empty` where there is none
    words: str  # what the docstring says of it

    @property
    def needed(self) -> bool:
        """It has no default."""
        return self.default is inspect.Parameter.empty

    @property
    def columns(self) -> bool:
        """It names one or more columns of the data."""
        return self.name in COLUMNS

    @property
    def example(self) -> str:
        """A value that it takes."""
        if self.columns:
            return "sex" if self.name == "second" else "age"
        return str(self.choices[0]) if self.choices else {int: "10", float: "0.05", str: "NAME"}[self.kinds[0]]

    def read(self, text: str) -> int | float | str:
        """What a text says, as the strictest kind that takes it."""
        for kind in self.kinds:
            try:
                return kind(text)  # type: ignore[no-any-return]
            except ValueError:
                continue
        raise ValueError(text)


@dataclass(frozen=True, slots=True)
class Method:
    """A public function of the data."""

    name: str
    function: Callable[..., Any]
    settings: tuple[Setting, ...]  # those that a command line can give: models, curves and arrays are for Python
    several: bool  # it takes several classes
    two: bool  # it takes two
    returns: type

    @property
    def grouped(self) -> bool:
        """It can be asked of each group by itself: a number, and no column has a part in it."""
        return self.returns is Estimate and self.two and not any(s.columns for s in self.settings)

    @property
    def line(self) -> str:
        """What it does, as plain text."""
        return _doc(self.function).partition("\n")[0].replace("`", "")

    def page(self, face: str) -> str:
        """The page of the reference: that of the folder it stands in, where another face has it too."""
        folder = self.function.__module__.split(".")[1]
        other = folder in calibrant._MODULES and self.name in getattr(calibrant, folder).__all__
        return f"calibrant.{folder if other else face}.{self.name}"

    def example(self, face: str) -> str:
        """A command that asks it, with what it needs."""
        needed = (f"--{s.name.replace('_', '-')} {s.example}" for s in self.settings if s.needed)
        return " ".join((f"calibrant {face} {self.name} log.parquet --label y --score p", *needed))


def methods(face: str) -> Mapping[str, Method]:
    """The functions of a face whose first argument is the data, by name."""
    kept = getattr(calibrant, face)
    made = (_method(name, getattr(kept, name)) for name in sorted(kept.__all__))
    return {m.name: m for m in made if m is not None}


def _method(name: str, function: Callable[..., Any]) -> Method | None:
    parameters = inspect.signature(function).parameters
    if next(iter(parameters), None) != DATA or get_type_hints(function)["return"] not in (Estimate, Outcome, Curve):
        return None
    hints, words = get_type_hints(function), _parameters(_doc(function))
    made = (_setting(p, hints[p.name], words.get(p.name, "")) for p in parameters.values() if p.name != DATA)
    kinds = get_args(hints[DATA]) or (hints[DATA],)
    several = any(getattr(t, "__name__", "") == "MulticlassPredictions" for t in kinds)
    settings, two = tuple(s for s in made if s is not None), len(kinds) > several
    return Method(name, function, settings, several, two, hints["return"])


def _setting(parameter: inspect.Parameter, hint: object, words: str) -> Setting | None:
    """A parameter as an option; None if what it takes cannot be written on a command line."""
    _, several, plain = taken(hint)
    chosen = choices_of(plain)
    kinds = tuple(k for k in (int, float, str) if k in plain or any(type(c) is k for c in chosen))
    if bool in plain:
        return Setting(parameter.name, "flag", (), (), parameter.default, words)
    if not kinds:
        return None
    return Setting(parameter.name, "many" if several else "one", kinds, chosen, parameter.default, words)


PARAMETER = re.compile(r"^(?P<names>[\w*][\w, *]*?)(?: : (?P<kind>.*))?$")


def _doc(function: Callable[..., Any]) -> str:
    """The docstring, which an optimised Python has not."""
    return inspect.getdoc(function) or ""


def _parameters(doc: str) -> dict[str, str]:
    """What a docstring says of each parameter: in a sentence, or of what kind it is."""
    section = doc.partition("\n\nParameters\n----------\n")[2].partition("\n\n")[0]
    out: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", section):
        head, *lines = block.split("\n")
        if result := PARAMETER.match(head):
            words = " ".join(line.strip() for line in lines) or (result["kind"] or "")
            out |= dict.fromkeys(result["names"].split(", "), words)
    return out


# ---- as commands ----

ABOUT = """\
example:
  {example}

what it assumes and guarantees, and its references: reference/generated/{page}.html of the documentation

{status}"""
VALUES = {int: "N", float: "X", str: "TEXT"}  # how the help writes a value


def add_methods(
    p: Parser, face: str, notes: Mapping[str, str], own: Mapping[str, tuple[str, str, take.Options]]
) -> None:
    """Add the functions of a face as commands, each with its own settings; those of `own` have their options."""
    known, raw = methods(face), argparse.RawDescriptionHelpFormatter
    each = p.add_subparsers(dest="method", metavar="METHOD", required=True)
    for name, m in known.items():
        about = ABOUT.format(example=m.example(face), page=m.page(face), status=CHECK_STATUS)
        line = f"{m.line}\n\n{notes[name]}" if name in notes else m.line
        plain = m.line.replace("%", "%%")
        sub = each.add_parser(name, help=plain, description=line, epilog=about, formatter_class=raw)
        sub.options = partial(_add_method, m)
    for name, (line, more, options) in own.items():
        more = f"{notes[name]}\n\n{more}" if name in notes else more
        sub = each.add_parser(
            name, help=line, description=f"{line}\n\n{more}", epilog=CHECK_STATUS, formatter_class=raw
        )
        sub.options = options
    p.spelt = {name.replace("_", "-"): name for name in (*known, *own)}


def _add_method(m: Method, p: Parser) -> None:
    """Add what a function can be asked with; what the reading of the data has already is reported there."""
    take.files(p, ", sketch")
    take.columns(p)
    if m.several:
        take.listed(p, "--scores", "of several classes: a column of probabilities each, in place of --score")
        take.listed(
            p, "--classes", "what the labels call them, in that order (default: by column, or 0, 1, 2, …)", "NAMES"
        )
        take.reading(p, *take.CLASSES)
    if m.grouped:
        take.listed(p, "--by", "group columns: each group separately, not simultaneously")
        take.reading(p, "intersections")
    for own in m.settings:
        if own.name not in OF_ROWS:
            _own(p, own)
    take.as_json(p, "print JSON, which holds all of it, instead of text")
    kinds = ".json, .csv or, of a curve, .html"
    take.out(p, f"also write it, once or more: {kinds}", "FILE")
    take.csv_form(p)


def _own(p: Parser, own: Setting) -> None:
    """Add a setting; where it is not given, the function has its default."""
    option, dest = f"--{own.name.replace('_', '-')}", OWN + own.name
    line = own.words.replace("`", "").replace("%", "%%")
    if own.parsed == "flag":
        option, action = (f"--no-{option[2:]}", "store_false") if own.default is True else (option, "store_true")
        p.add_argument(option, dest=dest, action=action, default=None, help=line)
        return
    many = own.parsed == "many"
    value = "COLUMN" if own.columns else VALUES[own.kinds[0]]
    metavar = f"{value}S" if own.columns and many else f"{value},…" if many else value
    default = ",".join(map(str, own.default)) if isinstance(own.default, tuple) else str(own.default)
    line += "" if own.needed or own.default is None else f" (default {default})"
    how: dict[str, Any] = {"type": partial(_value, own), "metavar": metavar}
    if own.columns and many:
        how |= {"type": names, "action": Listed}
    elif own.choices and not many:
        how |= {"choices": own.choices, "metavar": None}
    p.add_argument(option, dest=dest, required=own.needed, help=line.strip(), **how)


def _value(own: Setting, text: str) -> Any:
    """What was written; one of several is itself, where the function takes it so."""
    try:
        if own.parsed == "one":
            return own.read(text)
        result = tuple(map(own.read, names(text)))
    except ValueError:
        kind = "a whole number" if own.kinds == (int,) else "a number"
        raise argparse.ArgumentTypeError(f"{text!r}: pass {kind}") from None
    return result if len(result) > 1 or isinstance(own.default, tuple) else result[0]


# ---- asked ----

NONE = "none"  # of the other columns
NO_GROUPS = "of several classes no group is measured: leave --by out, or name one class by --score and --positive"


def run_method(a: Namespace) -> int:
    """Ask a function of the data, with the settings that were given; the others have their own defaults."""
    m = methods(a.command)[a.method]
    own = {s.name: v for s in m.settings if (v := _passed(a, s)) is not None}
    files = inputs_of(a)
    checked_targets({f"-o {out}": results.checked(out, m.returns is Curve) for out in a.out}, files)
    data = data_of(a, files, partial(_rows, a, m, own))
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always", CalibrantWarning)
        if m.grouped and a.by is not None:
            two = cast("Predictions | Sketch", data)  # of several classes groups were refused
            result = by_group(m.function, two, by=a.by, intersections=a.intersections, **own)
        else:
            result = m.function(data, **own)
    for warning in reported:
        _say(str(warning.message))
    for out in a.out:
        written(out, results.content(result, out, results.CsvForm(a.csv_decimal, a.csv_digits)))
        _say(f"written: {out}")
    print_result(a.json, lambda: results.as_json(result), lambda: results.lines(result))
    return 0


def _rows(
    a: Namespace, m: Method, own: dict[str, Any], files: Files, how: Plain
) -> Predictions | MulticlassPredictions:
    """The rows; of the columns only those are read that the function may look at.

    Where it takes covariates and none are named, those that can be used are put into its `own` settings.
    """
    named = [n for s in m.settings if s.columns and s.name in own for n in _names(own[s.name]) if n != THE_SCORE]
    every = COVARIATES not in own and any(s.name == COVARIATES for s in m.settings)
    if own.get(COVARIATES) == NONE:
        named, own[COVARIATES] = [n for n in named if n != NONE], ()
    by = a.by if m.grouped else None
    options = Reading.of(caller=COMMAND, by=by, variables=EVERY if every else named, **how)
    rows: Predictions | MulticlassPredictions
    if m.several and (a.scores or options.scores):
        if a.scores and (options.score or options.scores):
            raise BadInput("--score and --scores name the same columns: leave one out")
        if by:
            raise BadInput(NO_GROUPS)
        rows = classes_in_memory(files, replace(options, scores=a.scores or options.scores), a.classes or ())
        seen = rows.top_label()
    else:
        rows = seen = in_memory(files, options.named())
    report_left_out(seen)
    if every:
        own[COVARIATES], left_out = audited_variables(seen, None, 0)
        for name, why in left_out:
            _say(f"left out {name}: {why}")
    return rows


def _passed(a: Namespace, s: Setting) -> Any:
    """What was given for a setting, one column by itself."""
    v = getattr(a, OWN + s.name, None)
    return v[0] if s.columns and s.parsed == "many" and v is not None and len(v) == 1 else v


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _say(line: str) -> None:
    print(as_message(line), file=sys.stderr)


measure = detect = diagnose = run_method
