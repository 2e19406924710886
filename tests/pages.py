"""Pages of documentation: their blocks, and these run in order, what is printed held against what a page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from calibrant.cli import main

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)(?P=fence) *$", re.M | re.S
)
NUMBER = re.compile(r"[-+]?\d+(?:\u202f?\d{3})*(?:[.,]\d+)*")
VERSION = re.compile(r"\d+(?:\.\d+){2,}")  # of a program: no number
REL, ABS = 0.02, 0.002  # learners and simulated p-values differ a little by version
PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if p.exists()]
START = ROOT / "docs/start.md"
JUDGES = {"watch": (0, 1), "audit": (0, 1, 3), "compare": (0, 1, 3), "accept": (0, 1, 3), "repair": (0, 1, 3)}


def blocks(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the info string, the body and the line of each fenced block."""
    for found in FENCE.finditer(text):
        yield found["info"].strip(), found["body"], text.count("\n", 0, found.start("body")) + 1


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each `calibrant` command in a block of shell or of a CI file."""
    joined = re.sub(r"\\\n\s*|\n\s*(?=--)", " ", text)
    for line in joined.splitlines():
        start = re.match(r"\s*(?:\$ )?calibrant\s+(.*)", line)
        if start is None:
            continue
        lexer = shlex.shlex(start[1], posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if word[0] in "();<>|&" or word.startswith("#"):
                break
            words.append(word)
        yield words


@dataclass
class Played:
    """What a page printed: each command's text, and how many blocks of text were held against it."""

    commands: dict[str, str] = field(default_factory=dict)
    compared: int = 0


def play(text: str, capsys: pytest.CaptureFixture[str], python: tuple[str, ...] = ("python",)) -> Played:
    """Run the code and the commands of a page where it stands, and compare each block of text with what is before it.

    A verdict, whichever it is, is no error of a command; refused data are. Lines of other programs are not run, nor are
    blocks of `console` and `python no-run`; what such programs printed stands in blocks of `text elsewhere`.
    """
    out, printed, scope = Played(), "", {"__name__": "__docs__"}
    for info, body, line in blocks(text):
        if info in python:
            exec(compile("\n" * line + body, "page", "exec"), scope)  # noqa: S102
            printed = capsys.readouterr().out
        elif info == "bash":
            printed = "".join(run(words, capsys, out) for words in commands(body))
        elif info == "text":
            assert printed, f"line {line}: nothing was printed that could be shown"
            compare(printed, body)
            out.compared += 1
    return out


def name_of(page: Path) -> str:
    """Return the page's path from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


def visits() -> None:
    """Write the made-up log that the guide uses, by the code of the start page."""
    code = next(b for info, b, _ in blocks(START.read_text(encoding="utf-8")) if info == "python" and "visits.csv" in b)
    exec(compile(code, "start.md", "exec"), {"__name__": "__docs__"})  # noqa: S102


def run(words: list[str], capsys: pytest.CaptureFixture[str], out: Played) -> str:
    """Run a command, keep what it prints, and return it."""
    status = main(words)
    printed = capsys.readouterr().out
    assert status in JUDGES.get(words[0], (0,)), f"calibrant {' '.join(words)}: {status}"
    out.commands[" ".join(words)] = printed
    return printed


def apart(text: str) -> tuple[str, list[float]]:
    """Return a text without its numbers, and these; spaces that align columns count as one."""
    text = VERSION.sub(lambda found: found[0].replace(".", "·"), text)
    numbers = [float(re.sub(r"[\s,]", "", found)) for found in NUMBER.findall(text)]
    return re.sub(r"\s+", " ", NUMBER.sub("#", text)).strip(), numbers


def compare(printed: str, shown: str) -> None:
    """Hold what a page shows against what was printed: words are the same, numbers nearly.

    A line of `...` stands for lines that the page leaves out.
    """
    there = [apart(line) for line in printed.splitlines() if line.strip()]
    pieces = re.split(r"^\.\.\.\n", shown, flags=re.M)
    at = 0
    for i, piece in enumerate(pieces):
        lines = [apart(line) for line in piece.splitlines() if line.strip()]
        words = [stated for stated, _ in lines]
        last = len(there) - len(lines)
        starts = range(at, last + 1) if i else (0,)
        if i == len(pieces) - 1 and lines:
            starts = range(max(at, last), last + 1) if i else ((0,) if last == 0 else ())
        start = next((s for s in starts if [stated for stated, _ in there[s : s + len(lines)]] == words), None)
        assert start is not None, f"this is shown but not printed:\n{piece}\nbut this is:\n{printed}"
        for (_, found), (stated, expected) in zip(there[start : start + len(lines)], lines, strict=True):
            assert found == pytest.approx(expected, rel=REL, abs=ABS), stated
        at = start + len(lines)
