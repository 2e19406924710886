"""What a command is called where data came as arrays or frames: the Python call that does the same, option by option.

A report is written in options of the command line; of data in Python, `in_python` words every one of them anew. So no
sentence has to ask who reads it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from calibrant.report.spans import Span

WIDTH = 84  # characters of a line
DATA = "data"  # what the data are called that an audit in Python was given
LISTS = ("by", "key", "variables", "allow", "fail_on")
NUMBERS = ("limit", "limit_relative", "steps", "alpha", "tolerance", "seed", "missing_odds", "mask")
SEVERAL = ("threshold", "costs")
SWITCHES = ("intersections", "percent", "drop_missing", "quick", "publish", "allow_same")
TEXTS = (
    *("label", "score", "positive", "cluster", "weights", "missing", "judge", "target", "outcome", "name", "date"),
    *("noun", "model", "intended_use", "period", "population", "set_by"),
)
FORM = ("encoding", "delimiter", "decimal", "sheet", "dates", "format")
READ = ("label", "score", "positive", "cluster", "weights", "by", "missing", "drop_missing", "percent", *FORM)
PLANNED = ("by", "intersections", "limit", "steps", "alpha")
COMPARED = (*("by", "variables", "bins", "limit", "judge", "threshold", "costs", "steps", "alpha", "seed"),)
ARGUMENTS = (*LISTS, *NUMBERS, *SEVERAL, *SWITCHES, *TEXTS, *FORM, "bins")
OPTION = re.compile(
    rf"--({'|'.join(sorted((a.replace('_', '-') for a in ARGUMENTS), key=len, reverse=True))})(?![\w-])"
)
WITH_VALUE = re.compile(rf"{OPTION.pattern}[ =](none\b|[A-Z]{{3,}}\b)")  # in the middle of a sentence
Node = TypeVar("Node")


def arguments(words: Sequence[str]) -> dict[str, str]:
    """The arguments that options are in Python, each as it is written there."""
    out: dict[str, str] = {}
    bins: dict[str, list[float]] = {}
    for name, value in _pairs(words):
        if name == "bins":
            column, _, edges = value.rpartition("=")
            bins[column] = [float(edge) for edge in edges.split(",")]
        else:
            out[name] = _written(name, value)
    return out | ({"bins": _literal(bins)} if bins else {})


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options and their values, such as ``("limit_relative", "0.2")``; a switch has none."""
    tokens = shlex.split(" ".join(words))
    while tokens:
        name, _, value = tokens.pop(0).partition("=")
        name = name.lstrip("-").replace("-", "_")
        if name not in SWITCHES and not value:
            value = tokens.pop(0)
        yield name, value


def _written(name: str, value: str) -> str:
    if name in SWITCHES:
        return "True"
    if name in NUMBERS:
        return value if value != "none" else '"none"'
    if name in SEVERAL:
        numbers = [float(v) for v in value.split(",")]
        return _literal(numbers if len(numbers) > 1 else numbers[0])
    if name in LISTS:
        if value == "none":
            return "()"
        items = _items(value)
        return _literal(items if len(items) > 1 else items[0])
    return _literal(value)


def _items(value: str) -> list[str]:
    """The names of a list as an option takes it: some of them in quotes."""
    out = re.findall(r'"((?:[^"]|"")*)"|([^,]+)', value)
    return [quoted.replace('""', '"') or plain for quoted, plain in out]


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def call(what: str, words: Sequence[str], arrays: bool, variable: str = "") -> str:
    """The Python lines that do what a command does, or show the error along a variable.

    `arrays`: the data are `Predictions`, whose columns are known.
    """
    given = arguments(words)
    known = ("label", "score", *FORM) if arrays else ()
    kept = {k: v for k, v in given.items() if k not in known and (k, v) != ("name", _literal(DATA))}
    if what == "look":
        return f"{_called('look = cal.look', kept)}\nprint(look)"
    if what == "audit" and not variable:
        outputs = [kept.pop(k) for k in ("report", "json") if k in kept]
        return "\n".join([_called("record = cal.audit", kept), *(f"record.save({name})" for name in outputs)])
    rows = DATA if arrays else "rows"
    lines = [] if arrays else [_called("rows = cal.read", {k: kept[k] for k in READ if k in kept})]
    if variable:
        lines.append(f"print(cal.diagnose.variable_curve({rows}, {_literal(variable)}).to_frame())")
    elif what == "plan":
        lines.append(_called("plan = cal.certify.decidable", {k: kept[k] for k in PLANNED if k in kept}, rows))
        lines.append("print(plan.to_frame())")
    else:
        lines.append(_called("result = cal.repair.compare", {k: kept[k] for k in COMPARED if k in kept}, rows))
        lines.append("print(result.recommended, result.verdicts)")
    return "\n".join(lines)


def _called(function: str, given: Mapping[str, str], first: str = DATA) -> str:
    """A call on one line, or with its arguments on as few lines as hold them."""
    inside = [first, *(f"{k}={v}" for k, v in given.items())]
    if len(line := f"{function}({', '.join(inside)})") <= WIDTH:
        return line
    lines = [f"    {inside[0]},"]
    for word in inside[1:]:
        if len(lines[-1]) + len(word) + 2 > WIDTH:
            lines.append(f"    {word},")
        else:
            lines[-1] += f" {word},"
    return "\n".join([f"{function}(", *lines, ")"])


def rows_where(conditions: Sequence[tuple[str, str]]) -> str:
    """The rows of a frame that have these values."""
    each = [f"(data[{_literal(k)}].astype(str) == {_literal(v)})" for k, v in conditions]
    return f"rows = data[{' & '.join(each)}]"


# ---- options in sentences ----


def in_python(node: Node) -> Node:
    """The same node with every option of its sentences as the argument that it is in Python."""
    made: Any = node
    if isinstance(made, Span):
        made = replace(made, text=_coded(made.text) if made.kind == "code" else _worded(made.text))
    elif isinstance(made, tuple):
        inside = tuple(map(in_python, made))
        made = type(made)(*inside) if hasattr(made, "_fields") else inside
    elif is_dataclass(made) and not isinstance(made, type):
        own = {f.name: getattr(made, f.name) for f in fields(made)}
        new = {k: in_python(v) for k, v in own.items() if isinstance(v, tuple) or is_dataclass(v)}
        made = replace(made, **{k: v for k, v in new.items() if v != own[k]})
    result: Node = made
    return result


def _coded(text: str) -> str:
    """An option with its value, such as ``--cluster none``, as an argument; other code as it is."""
    if not OPTION.match(text):
        return text
    return ", ".join(f"{k}={v}" for k, v in arguments([text]).items()) if " " in text or "=" in text else _named(text)


def _worded(text: str) -> str:
    """The options in a sentence by their names in Python, with a value that follows."""
    return OPTION.sub(lambda found: _named(found[0]), WITH_VALUE.sub(_valued, text))


def _named(option: str) -> str:
    name = option.lstrip("-").replace("-", "_")
    return f"{name}=True" if name in SWITCHES else f"{name}="


def _valued(found: re.Match[str]) -> str:
    name = found[1].replace("-", "_")
    return found[0] if name in SWITCHES else f"{name}={_literal(found[2])}"
