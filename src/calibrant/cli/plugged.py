"""What plug-ins add to the parser: outputs as options, those of installed packages when they are asked for."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from calibrant.cli.options import Command
from calibrant.errors import BadInput
from calibrant.plugins import OUTPUTS, Output
from calibrant.plugins import Command as CommandPlugin

Of = Literal["record", "calibrator"]
INSTALLED = "installed"  # in what a command line gives: the outputs of installed packages that it may name


def arranged(names: Iterable[str], added: Mapping[str, Output] | Mapping[str, CommandPlugin]) -> list[str]:
    """Return names in the order of the help, each plug-in behind the name that it gives; those that give none last."""
    order = list(names)
    for name, one in added.items():
        order.insert(order.index(one.after) + 1 if one.after in order else len(order), name)
    return order


# ---- outputs ----


def outputs(of: Of) -> dict[str, Output]:
    """Return our outputs of records, or of calibrators, by name."""
    return {name: one for name, one in OUTPUTS.ours().items() if one.of == of}


def requested(a: argparse.Namespace, of: Of) -> dict[str, Output]:
    """The outputs that a command line can name: ours, and those installed if they were looked for."""
    return outputs(of) | {name: OUTPUTS.loaded(name) for name in _named(a, of)}


def _named(a: argparse.Namespace, of: Of) -> Iterator[str]:
    """Yield the installed outputs that were asked for."""
    names: Sequence[str] = getattr(a, INSTALLED, ())
    yield from (name for name in names if getattr(a, dest(name, of), None))


def target(a: argparse.Namespace, name: str) -> str | None:
    """The file that was named for an output of a record."""
    result: str | None = getattr(a, dest(name, "record"))
    return result


def printed(a: argparse.Namespace) -> str:
    """Return in which language of a plug-in a calibrator is to be printed; nothing where in none."""
    return next((name for name in requested(a, "calibrator") if getattr(a, dest(name, "calibrator"))), "")


def dest(name: str, of: Of) -> str:
    """Return how an output is called among all that a command line gives."""
    return f"{'print_' if of == 'calibrator' else ''}{name.replace('-', '_')}"


def add_output(p: Command, group: argparse._ActionsContainer, name: str, one: Output, of: Of) -> None:
    """Add an output of ours as an option."""
    _option(group, name, of, one.line, one.metavar)
    one.options(p)


def with_installed_outputs(p: Command, group: argparse._ActionsContainer, of: Of) -> None:
    """Add the outputs of installed packages, and of those that cannot be used, why."""
    names = []
    for name in OUTPUTS.installed:
        try:
            one = OUTPUTS.loaded(name)
            if one.of != of:
                continue
            line, metavar = one.line, one.metavar
        except BadInput as e:
            one, line, metavar = None, str(e), "OUT"
        if f"--{dest(name, of).replace('_', '-')}" in p._option_string_actions:
            continue  # of two options that are called alike ours is taken
        names.append(name)
        _option(group, name, of, line, metavar)
        if one is not None:
            with OUTPUTS.calling(name):
                one.options(p)
    p.set_defaults(**{INSTALLED: tuple(names)})


def _option(p: argparse._ActionsContainer, name: str, of: Of, line: str, metavar: str) -> None:
    option, line = f"--{dest(name, of).replace('_', '-')}", line.replace("%", "%%")
    if of == "calibrator":
        p.add_argument(option, action="store_true", help=line)
    else:
        p.add_argument(option, metavar=metavar, help=line)
