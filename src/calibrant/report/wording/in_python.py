"""Options of the command line in sentences and code, as the arguments that they are in Python, and calls of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Literal, TypeVar, cast, get_args

from calibrant.arguments import declared
from calibrant.report.spans import Span

WIDTH = 84  # characters of a line of a command
DATA = "data"  # what the data are called that an audit in Python was passed
FORM = ("encoding", "delimiter", "decimal", "sheet", "dates", "format")
AT = ("time", "event", "horizon", "entered", "closed", "competing", "way", "within")
READ = (
    *("horizon", "label", "score", "positive", "cluster", "weights", "by", "missing", "drop_missing", "percent"),
    *FORM,
)
OF_ROWS = ("label", "score", "positive", "percent", "drop_missing", "missing", "key", "cluster", "weights")  # of arrays
PLANNED = ("by", "intersections", "limit", "steps", "alpha")
COMPARED = (*("by", "variables", "bins", "limit", "judge", "threshold", "costs", "steps", "alpha", "seed"),)

HELP = re.compile(r"calibrant (\w+) (\w+) --help")
Node = TypeVar("Node")
Form = Literal["switch", "number", "numbers", "names", "text"]


@cache
def forms() -> Mapping[str, Form]:
    """How the value of each argument of an audit is written in Python, by its declared type."""
    from calibrant.audit.judging import JudgingOptions
    from calibrant.data.specs.options import ColumnOptions, CommandOptions

    every = {**declared(CommandOptions), **declared(ColumnOptions), **declared(JudgingOptions)}
    made = {name: _form(kind) for name, (kind, _) in every.items()}
    return {name: form for name, form in made.items() if form} | {"cluster": "text"}  # of which "none" is no list


def _form(kind: type) -> Form | None:
    """None of what is no number or text: edges of bins, an earlier audit, a file of words."""
    kinds = get_args(kind) or (kind,)
    if kind is bool:
        return "switch"
    if Sequence[float] in kinds and str not in kinds:
        return "numbers"
    if float in kinds or kinds[0] is int:
        return "number"
    if Iterable[str] in kinds:
        return "names"
    return "text" if kinds[0] is str else None


@cache
def _option(end: str = "") -> re.Pattern[str]:
    """An option in a sentence, and what ends it."""
    every = sorted((name.replace("_", "-") for name in (*forms(), "bins")), key=len, reverse=True)
    return re.compile(rf"--({'|'.join(every)})(?![\w-]){end}")


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
    if not _option().match(text):
        return text
    return ", ".join(f"{k}={v}" for k, v in arguments([text]).items()) if " " in text or "=" in text else _named(text)


def _worded(text: str) -> str:
    """The options in a sentence by their names in Python, with a value that follows."""
    valued = _option(r"[ =](none\b|[A-Z]{3,}\b)").sub(_valued, text)
    return _option().sub(lambda result: _named(result[0]), valued)


def _named(option: str) -> str:
    name = option.lstrip("-").replace("-", "_")
    return f"{name}=True" if forms().get(name) == "switch" else f"{name}="


def _valued(result: re.Match[str]) -> str:
    name = result[1].replace("-", "_")
    return result[0] if forms().get(name) == "switch" else f"{name}={in_code(result[2])}"


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
    return out | ({"bins": in_code(bins)} if bins else {})


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options and their values, such as ``("limit_relative", "0.2")``; a switch has none."""
    tokens = unquoted(" ".join(words))
    while tokens:
        name, _, value = tokens.pop(0).partition("=")
        name = name.lstrip("-").replace("-", "_")
        if forms().get(name) != "switch" and not value:
            value = tokens.pop(0)
        yield name, value


def unquoted(command: str) -> list[str]:
    """The words of a command that `shlex.quote` wrote; `shlex.split` takes the square of a long word's time."""
    words = re.finditer(r"""(?:'[^']*'|"[^"]*"|[^\s'"]+)+""", command)
    return [re.sub(r"""'[^']*'|"[^"]*\"""", lambda m: m[0][1:-1], word[0]) for word in words]


def _written(name: str, value: str) -> str:
    match forms().get(name):
        case "switch":
            return "True"
        case "number":
            return f"[{value}]" if "," in value else value if value != "none" else '"none"'
        case "numbers":
            numbers = [float(v) for v in value.split(",")]
            return in_code(numbers if len(numbers) > 1 else numbers[0])
        case "names" if value == "none":
            return "()"
        case "names":
            listed = re.findall(r'"((?:[^"]|"")*)"|([^,]+)', value)  # some of them in quotes
            items = [quoted.replace('""', '"') or plain for quoted, plain in listed]
            return in_code(items if len(items) > 1 else items[0])
    return in_code(value)


def in_code(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def call(what: str, words: Sequence[str], arrays: bool, variable: str = "", made: str = "") -> str:
    """The Python lines that do what a command does, or show the error along a variable.

    `arrays`: the data are `Predictions`, whose columns are known; `made`: the line that makes `rows` of them.
    """
    saved = [word.removeprefix("-o ") for word in words if word.startswith("-o ")]
    passed = arguments([word for word in words if not word.startswith("-o ")])
    known = (*OF_ROWS, *FORM) if arrays else ()
    kept = {k: v for k, v in passed.items() if k not in known}
    if passed.get("cluster") == in_code("none"):  # which no array says
        kept["cluster"] = passed["cluster"]
    if what == "look":
        return f"{called('look = cal.look', kept)}\nprint(look)"
    if what == "audit" and not variable:
        return "\n".join([called("record = cal.audit", kept), *(f"record.save({in_code(out)})" for out in saved)])
    rows = DATA if arrays and not made else "rows"
    reader = "at_horizon" if "time" in kept else "read"
    own = {k: kept[k] for k in (*AT, *READ) if k in kept}
    lines = [made] if made else [] if arrays else [called(f"rows = cal.{reader}", own)]
    if variable:
        lines.append(f"print(cal.diagnose.variable_curve({rows}, {in_code(variable)}).to_frame())")
    elif what == "plan":
        lines.append(called("plan = cal.certify.decidable", {k: kept[k] for k in PLANNED if k in kept}, rows))
        lines.append("print(plan.to_frame())")
    else:
        lines.append(called("result = cal.repair.evaluate", {k: kept[k] for k in COMPARED if k in kept}, rows))
        lines.append("print(result)\ncalibrator = result.calibrators.get(result.recommended)")
    return "\n".join(lines)


def called(function: str, passed: Mapping[str, str], first: str = DATA) -> str:
    """A call on one line, or with its arguments on as few lines as hold them."""
    inside = [first, *(f"{k}={v}" for k, v in passed.items())]
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
    each = [f"(data[{in_code(k)}].astype(str) == {in_code(v)})" for k, v in conditions]
    return f"rows = data[{' & '.join(each)}]"
