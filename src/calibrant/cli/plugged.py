"""What plug-ins add to the parser: outputs as options, those of installed packages when they are asked for."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from calibrant.cli.options import Command
from calibrant.errors import BadInput
from calibrant.plugins import installed, loaded, ours

Of = Literal["record", "calibrator"]
INSTALLED = "installed"  # in what a command line gives: the outputs of installed packages that it may name


def arranged(base: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return entries by name, each plug-in behind the entry it names; those that name none come last."""
    order = list(base)
    for name, one in added.items():
        order.insert(order.index(one.after) + 1 if one.after in order else len(order), name)
    return {name: base[name] if name in base else added[name] for name in order}


# ---- outputs ----


def outputs(of: Of) -> dict[str, Any]:
    """Return our outputs of records, or of calibrators, by name."""
    return {name: one for name, one in ours("outputs").items() if one.of == of}


def asked(a: argparse.Namespace, of: Of) -> dict[str, Any]:
    """Return the outputs that a command line can name: ours, and those installed if they were looked for."""
    return outputs(of) | {name: loaded("outputs", name) for name in _named(a, of)}


def _named(a: argparse.Namespace, of: Of) -> Iterator[str]:
    """Yield the installed outputs that were asked for."""
    names: Sequence[str] = getattr(a, INSTALLED, ())
    yield from (name for name in names if value(a, name, of) not in (None, False))


def value(a: argparse.Namespace, name: str, of: Of) -> Any:
    """Return what was given for an output."""
    return getattr(a, dest(name, of), None)


def dest(name: str, of: Of) -> str:
    """Return how an output is called among all that a command line gives."""
    return f"{'print_' if of == 'calibrator' else ''}{name.replace('-', '_')}"


def add_output(p: Any, name: str, one: Any, of: Of) -> None:
    """Add an output of ours as an option."""
    _option(p, name, of, one.line, one.metavar)
    one.options(p)


def with_installed_outputs(p: Command, group: Any, of: Of) -> None:
    """Add the outputs of installed packages, and of those that cannot be used, why."""
    names = []
    for name in installed("outputs"):
        try:
            one = loaded("outputs", name)
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
            one.options(p)
    p.set_defaults(**{INSTALLED: tuple(names)})


def _option(p: Any, name: str, of: Of, line: str, metavar: str) -> None:
    option, line = f"--{dest(name, of).replace('_', '-')}", line.replace("%", "%%")
    if of == "calibrator":
        p.add_argument(option, action="store_true", help=line)
    else:
        p.add_argument(option, metavar=metavar, help=line)
