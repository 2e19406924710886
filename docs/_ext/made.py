"""What the documentation makes from the code: index of the API, command line, record, details of papers, tables."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import calibrant as cal
from calibrant.audit.record import SCHEMA, AuditRecord, CheckRecord, Finding, Share
from calibrant.cli import build_parser
from calibrant.results import Curve, Estimate, Interval, Layered, Outcome

DOCS = Path(__file__).resolve().parents[1]
RESULTS = (Estimate, Interval, Outcome, Curve, Layered, AuditRecord, Finding, CheckRecord, Share)
MARK = re.compile(r"<!-- made: (\w+) -->\n")
CELL = re.compile(r"([\\`*_\[\]<>$|])")
COMMON = ("-h", "--help", "--version")


def cell(text: str) -> str:
    """Return a text as a cell of a Markdown table, its characters as they stand."""
    return CELL.sub(r"\\\1", " ".join(text.split()))


def rows(head: tuple[str, ...], lines: list[tuple[str, ...]]) -> list[str]:
    """Return a Markdown table."""
    rule = "|" + "---|" * len(head)
    return ["", f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(line)} |" for line in lines), ""]


# ---- the index of the API ----


def first_line(thing: Any) -> str:
    """First sentence of a docstring, as text."""
    paragraph = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0].replace("`", "")


def api() -> list[str]:
    """Every public name with the first line of its docstring, module by module; fields of results."""
    out = []
    for name, module in [("calibrant", cal), *((f"calibrant.{m}", getattr(cal, m)) for m in cal._MODULES)]:
        names = [
            n for n in sorted(module.__all__) if not n.startswith("_") and not inspect.ismodule(getattr(module, n))
        ]
        line = first_line(module) if module is not cal else "The data and the audit."
        shown = [(f"{{py:obj}}`{n} <{name}.{n}>`", cell(first_line(getattr(module, n)))) for n in names]
        out += [f"## {name}", "", line, *rows(("name", "does"), shown)]
    fields = [
        (f"`{c.__name__}`", cell(first_line(c)), ", ".join(f"`{f.name}`" for f in dataclasses.fields(c)))
        for c in RESULTS
    ]
    return [*out, "## What functions return", *rows(("class", "is", "fields"), fields)]


# ---- the command line ----


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Commands below a parser, by name; its own options are filled in."""
    parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def options(parser: argparse.ArgumentParser, without: frozenset[str] = frozenset()) -> list[str]:
    """Options of a command as tables, one for each of its groups."""
    formatter, lines, out = parser._get_formatter(), [], []
    for group in parser._action_groups:
        title = group.title if group.title not in ("options", "positional arguments") else ""
        lines = lines if not title and not out else []
        for action in group._group_actions:
            spelt = action.option_strings or [str(action.metavar or action.dest)]
            ours = not isinstance(action, argparse._SubParsersAction) and action.help != argparse.SUPPRESS
            if ours and not {*spelt} & {*COMMON, *without}:
                value = (
                    ""
                    if action.nargs == 0 or not action.option_strings
                    else formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
                )
                words = formatter._expand_help(action) if action.help else ""
                lines.append((f"`{', '.join(spelt)}{' ' if value else ''}{value}`".replace("|", "\\|"), cell(words)))
        if lines and (title or group.title == "options"):
            out += [f"*{title[0].upper()}{title[1:]}*"] if title else []
            out += rows(("option", "means"), lines)
    return out


def statuses(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What the exit statuses of a command mean."""
    found = re.findall(r"^  (\d+) +(.+)$", parser.epilog or "", re.M)
    return dict(found)


def described(parser: argparse.ArgumentParser) -> list[str]:
    """What a command does, without the formulas of a docstring, and its examples as they are typed."""
    text, _, examples = (parser.description or "").partition("\n\nexample")
    code = [line.strip() for line in examples.partition(":\n")[2].splitlines() if line.strip()]
    line, _, more = text.strip().partition("\n\n")
    words = cell(f"{line.removesuffix('.')}." if "``" in text else f"{line.removesuffix('.')}. {more}")
    return [f"{words[:1].upper()}{words[1:]}", ""] + (["```bash", *code, "```", ""] if code else [])


def commands() -> list[str]:
    """Every command with its options and exit statuses; of a family the shared options once."""
    out: list[str] = []
    found = commands_of(build_parser())
    for name, parser in found.items():
        below = commands_of(parser)
        out += [f"## calibrant {name}", "", *described(parser)]
        if below:
            for one in below.values():
                one.format_help()
            shared = frozenset.intersection(*(frozenset(one._option_string_actions) for one in below.values()))
            out += [
                "Options of every method:",
                *options(
                    next(iter(below.values())), frozenset({*next(iter(below.values()))._option_string_actions} - shared)
                ),
            ]
            for method, one in below.items():
                own = options(one, frozenset({*shared, "FILE"}))
                out += [f"### calibrant {name} {method}", "", *described(one), *own]
        else:
            out += options(parser)
    meanings: dict[tuple[str, ...], list[str]] = {}
    for name, parser in found.items():
        if known := statuses(parser):
            meanings.setdefault(tuple(cell(known.get(s, "")) for s in "0123"), []).append(f"`{name}`")
    lines = [(", ".join(names), *meaning) for meaning, names in meanings.items()]
    head = ["## Exit statuses", *rows(("command", "0", "1", "2", "3"), lines), "Status 70 is an unexpected error.", ""]
    return [*head, *out]


# ---- the record ----


def kind(schema: dict[str, Any]) -> str:
    """What a value of a schema is, in Markdown; a named part is a link."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(v)}`" for v in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(s) for s in schema["anyOf"]))
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        return f"list of {kind(schema['items'])}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {kind(schema['additionalProperties'])}"
    known = schema.get("type", "any value")
    return " or ".join(known) if isinstance(known, list) else str(known)


def properties(schema: dict[str, Any]) -> list[str]:
    """The keys of an object as a table."""
    needed = {*schema.get("required", ())}
    lines = [
        (
            f"`{key}`" + ("" if key in needed else " (optional)"),
            kind(value).replace("|", "\\|"),
            cell(value.get("description", "")),
        )
        for key, value in schema.get("properties", {}).items()
    ]
    return rows(("key", "type", "holds"), lines) if lines else []


def record() -> list[str]:
    """The keys of a record and of every part, from its schema."""
    schema = json.loads((DOCS / "schema" / f"{SCHEMA.replace('/', '-')}.json").read_text(encoding="utf-8"))
    out = ["## The record", *properties(schema)]
    for name, part in schema["$defs"].items():
        if not name.endswith(("Settings", "Columns")):
            out += [f"### {name}", "", cell(part.get("description", "")), *properties(part)]
    out += ["## Columns of curves, and settings", ""]
    for name, part in schema["$defs"].items():
        if name.endswith(("Settings", "Columns")):
            out += [f"### {name}", *properties(part)]
    return out


def changelog() -> list[str]:
    """The changelog, its links as they lead from a page of the site."""
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n")[2]
    text = re.sub(r"\]\(docs/", "](", text)
    return [re.sub(r"\[([^\]]+)\]\((?!https?:)[A-Z]+\.md\)", r"\1", text)]


MADE: dict[str, Callable[[], list[str]]] = {
    "api": api,
    "changelog": changelog,
    "commands": commands,
    "record": record,
}


def filled(text: str) -> str:
    """Return a page with its parts made."""
    return MARK.sub(lambda m: "\n".join(MADE[m[1]]()) + "\n" if m[1] in MADE else m[0], text)


# ---- pages next to the sidebar: details of papers, and tables of the evidence ----


def tables(folder: Path) -> Iterator[str]:
    """Each table of a folder of CSV files, with the command that makes it."""
    with (folder / "tables.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            yield f"## {line['title']}\n"
            yield f"{line['what']}\n"
            if line["command"]:
                yield f"`{line['command']}`\n"
            yield f"```{{csv-table}}\n:file: {line['file']}\n:header-rows: 1\n```\n"
            yield f"{{download}}`{line['file']} <{line['file']}>`\n"


def write(path: Path, text: str) -> None:
    """Write a page where it has changed, so that it is not read again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def pages(_: Sphinx) -> None:
    """Write the pages that are in neither the sidebar nor the search."""
    sys.path.insert(0, str(DOCS.parent))
    from reproduce import page

    page.details(DOCS / "papers")
    evidence = DOCS / "evidence"
    head = f"{page.APART}# Tables of the evidence\n\n[Evidence](../evidence.md) says how they were made.\n"
    write(evidence / "tables.myst", "\n".join([head, *tables(evidence)]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", pages, priority=100)
    app.connect("source-read", lambda _, __, source: source.__setitem__(0, filled(source[0])))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
