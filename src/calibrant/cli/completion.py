"""The commands that say what there is, from the parser: more, and completion in a shell."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from calibrant.cli.options import Command
from calibrant.cli.parser import FIRST, build_parser
from calibrant.cli.standard_output import write_exact


@dataclass(frozen=True)
class Completed:
    """What may follow a command."""

    words: Mapping[str, str]  # commands of this one with a line each; empty where it has none
    options: Mapping[str, tuple[str, tuple[str, ...]]]  # a line and the values there are, by option


def known() -> dict[str, Completed]:
    """What may follow each command, such as "audit" or "measure ece"; "" is the command itself."""
    return dict(_walked(build_parser(), ""))


def _walked(p: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, Completed]]:
    if isinstance(p, Command):
        p.format_help(every=True)  # adds every option
    groups = [a for a in p._actions if isinstance(a, argparse._SubParsersAction)]
    lines = {c.dest: _line(c.help) for group in groups for c in group._choices_actions}
    places = (a for a in p._actions if not a.option_strings and a not in groups)
    lines |= {str(c): _line(a.help) for a in places for c in a.choices or ()}
    options = {
        o: (_line(a.help), tuple(map(str, a.choices or ())))
        for a in p._actions
        for o in a.option_strings
        if o.startswith("--") or o == "-o"
    }
    yield name, Completed(lines, options)
    for group in groups:
        for word, inner in group.choices.items():
            yield from _walked(inner, f"{name} {word}".strip())


def _line(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


BASH = """\
_calibrant() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} at=${{COMP_WORDS[1]}} words= options=
  COMPREPLY=()
  case $at in {families}) if (( COMP_CWORD > 2 )); then at="$at ${{COMP_WORDS[2]}}"; fi;; esac
  if (( COMP_CWORD == 1 )); then at=; fi
  case "$at $prev" in
{values}
  esac
  if [[ -z $words ]]; then case $at in
{words}
  esac; fi
  if [[ $cur == -* ]]; then words=$options; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o bashdefault -o default -F _calibrant calibrant
"""


def _bash(of: Mapping[str, Completed]) -> str:
    """For bash: words of a command, values of an option, and files where there are neither."""
    values = (
        f'    "{at} {option}") words={shlex.quote(" ".join(choices))};;'
        for at, one in of.items()
        for option, (_, choices) in one.options.items()
        if choices
    )
    words = (
        f'    "{at}") words={shlex.quote(" ".join(one.words))} options={shlex.quote(" ".join(one.options))};;'
        for at, one in of.items()
    )
    families = "|".join(at for at, one in of.items() if at and one.words)
    return BASH.format(families=families, values="\n".join(values), words="\n".join(words))


def _zsh(of: Mapping[str, Completed]) -> str:
    """For zsh, which runs what is written for bash."""
    return f"autoload -U +X compinit bashcompinit && compinit -u && bashcompinit\n{_bash(of)}"


def _fish(of: Mapping[str, Completed]) -> str:
    lines = []
    for at, one in of.items():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in at.split())
        none = f"not __fish_seen_subcommand_from {' '.join(one.words)}"
        first = f"-n {shlex.quote('; and '.join(filter(None, (seen, none))))} -f"
        lines += [f"complete -c calibrant {first} -a {w} -d {shlex.quote(d)}" for w, d in one.words.items()]
        where = f"-n {shlex.quote(seen)} " if seen else ""
        for option, (line, choices) in one.options.items():
            name = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            more = f" -x -a {shlex.quote(' '.join(choices))}" if choices else ""
            lines.append(f"complete -c calibrant {where}{name}{more} -d {shlex.quote(line)}")
    return "\n".join((*lines, ""))


SHELLS: Mapping[str, Callable[[Mapping[str, Completed]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def completion(a: argparse.Namespace) -> int:
    """Print what a shell reads to complete the command."""
    write_exact(SHELLS[a.shell](known()))
    return 0


def more(_: argparse.Namespace) -> int:
    """Print the commands that the first help leaves out, with those of installed packages."""
    top = build_parser()
    top.format_help()  # which looks for installed packages
    (group,) = (a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    others = {a.dest: _line(a.help) for a in group._choices_actions if a.dest not in (*FIRST, "more")}
    width = max(map(len, others)) + 2
    print("\n".join(("more commands:", *(f"  {name:<{width}}{line}" for name, line in others.items()))))
    return 0
