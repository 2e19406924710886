"""Options of the command line in sentences and code, as the arguments that they are in Python."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from calibrant.report.commands import ARGUMENTS, SWITCHES, arguments, in_code
from calibrant.report.spans import Span

HELP = re.compile(r"calibrant (\w+) (\w+) --help")
OPTION = re.compile(
    rf"--({'|'.join(sorted((a.replace('_', '-') for a in ARGUMENTS), key=len, reverse=True))})(?![\w-])"
)
WITH_VALUE = re.compile(rf"{OPTION.pattern}[ =](none\b|[A-Z]{{3,}}\b)")  # in the middle of a sentence
Node = TypeVar("Node")


def in_python(node: Node) -> Node:
    """The same node with every option of its sentences as the argument that it is in Python."""
    made: object = node
    if isinstance(made, Span):
        made = replace(made, text=_coded(made.text) if made.kind == "code" else _worded(made.text))
    elif isinstance(made, tuple) and not hasattr(made, "_fields"):
        made = tuple(map(in_python, made))
    elif is_dataclass(made) and not isinstance(made, type):
        own = {f.name: getattr(made, f.name) for f in fields(made)}
        new = {k: in_python(v) for k, v in own.items() if isinstance(v, tuple) or is_dataclass(v)}
        made = replace(made, **{k: v for k, v in new.items() if v != own[k]})
    return cast("Node", made)


def _coded(text: str) -> str:
    """An option with its value, such as ``--cluster none``, as an argument; other code as it is."""
    if result := HELP.fullmatch(text):
        return f"help(cal.{result[1]}.{result[2]})"
    if not OPTION.match(text):
        return text
    return ", ".join(f"{k}={v}" for k, v in arguments([text]).items()) if " " in text or "=" in text else _named(text)


def _worded(text: str) -> str:
    """The options in a sentence by their names in Python, with a value that follows."""
    return OPTION.sub(lambda result: _named(result[0]), WITH_VALUE.sub(_valued, text))


def _named(option: str) -> str:
    name = option.lstrip("-").replace("-", "_")
    return f"{name}=True" if name in SWITCHES else f"{name}="


def _valued(result: re.Match[str]) -> str:
    name = result[1].replace("-", "_")
    return result[0] if name in SWITCHES else f"{name}={in_code(result[2])}"
